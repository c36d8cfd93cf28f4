"""`wardian mcp`, with the official client of the Model Context Protocol."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any, Awaitable, Callable, List, Optional

import mcp.types
import pytest
from mcp import Client, StdioServerParameters

from wardian import _binary

PAGE = Path(__file__).parents[3] / "docs/mcp.md"
MODES = ["legacy", "auto"]


def use(work: Callable[[Any], Awaitable[None]], *options: str, mode: Any = "auto", ask: Any = None) -> None:
    async def main() -> None:
        server = StdioServerParameters(command=_binary.find(), args=["mcp", *options])
        async with Client(server, mode=mode, elicitation_callback=ask) as client:
            await work(client)

    asyncio.run(asyncio.wait_for(main(), 60))


async def call(client: Any, tool: str, /, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result


async def text(client: Any, tool: str, /, **arguments: Any) -> str:
    return str((await call(client, tool, **arguments)).content[0].text)


@pytest.mark.parametrize("mode", MODES)
def test_commands_python_and_files(mode: str) -> None:
    async def work(client: Any) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert len(tools) == 13 and "apply_changes" not in tools and "export_state" not in tools
        assert tools["read_file"].annotations.read_only_hint and not tools["run_command"].annotations.read_only_hint
        said = await text(client, "run_command", command="cat; echo $A >&2; exit 3", stdin="in\n", env={"A": "x"})
        assert said == "in\nx\n[exit code 3]"
        assert await text(client, "run_python", code="x = 2; print('hi')\nx * 21") == "hi\n42\n[exit code 0]"
        await call(client, "write_file", path="/tmp/d/f", content="a\nb\nc\n")
        assert await text(client, "read_file", path="/tmp/d/f", first_line=2, line_count=1) == "b\n"
        diff = await text(client, "edit_file", path="/tmp/d/f", old_text="b", new_text="B")
        assert diff == "--- a/tmp/d/f\n+++ b/tmp/d/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
        assert (await text(client, "list_directory", path="/tmp/d")).split() == ["6", "f"]
        assert await text(client, "search_files", path="/tmp/d", pattern="^B") == "/tmp/d/f:2:B"
        contents = (await client.read_resource("wardian://main/tmp/d/f")).contents
        assert contents[0].text == "a\nB\nc\n"

    use(work, mode=mode)


def test_a_long_result_is_cut_and_kept() -> None:
    async def work(client: Any) -> None:
        result = await call(client, "run_command", command="seq 10000")
        said, file = result.content[0].text, result.structured_content["output_file"]
        assert said.startswith("1\n2\n") and "9999\n10000\n[exit" in said and file in said and len(said) < 1500
        assert await text(client, "run_command", command=f"tail -n 1 {file}; wc -l < {file}") == (
            "10000\n10000\n[exit code 0]"
        )

    use(work, "--max-output", "1000")


def test_sandboxes_are_values(tmp_path: Path) -> None:
    async def work(client: Any) -> None:
        await call(client, "write_file", path="/tmp/f", content="old")
        snapshot = (await call(client, "snapshot")).structured_content["snapshot"]
        fork = (await call(client, "fork_sandbox")).structured_content["sandboxes"][0]
        await call(client, "export_state", name="kept")
        await call(client, "write_file", path="/tmp/f", content="new")
        assert await text(client, "read_file", path="/tmp/f", sandbox=fork) == "old"
        await call(client, "restore", snapshot=snapshot)
        assert await text(client, "read_file", path="/tmp/f") == "old"
        fresh = (await call(client, "create_sandbox")).structured_content["sandbox"]
        await call(client, "import_state", name="kept", sandbox=fresh)
        assert await text(client, "read_file", path="/tmp/f", sandbox=fresh) == "old"
        await call(client, "destroy_sandbox", sandbox=fork)
        listed = (await call(client, "list_sandboxes")).structured_content["sandboxes"]
        assert [one["sandbox"] for one in listed] == sorted([fresh, "main"])

    use(work, "--state-dir", str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["kept.wardian"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("action", [None, "accept", "decline"])
def test_changes_reach_the_host_when_the_user_agrees(tmp_path: Path, mode: str, action: Any) -> None:
    asked: List[str] = []

    async def ask(_context: Any, question: Any) -> Any:
        asked.append(question.message)
        return mcp.types.ElicitResult(action=action, content={"apply": True} if action == "accept" else None)

    async def work(client: Any) -> None:
        await call(client, "write_file", path="/work/f", content="new\n")
        assert "+new" in await text(client, "apply_changes", dry_run=True) and not (tmp_path / "f").exists()
        result = await client.call_tool("apply_changes", {})
        assert result.is_error == (action == "decline")

    use(work, "--mount", f"{tmp_path}:/work:overlay", mode=mode, ask=ask if action else None)
    assert (tmp_path / "f").exists() == (action != "decline")
    assert len(asked) == (1 if action else 0) and all("+new" in message for message in asked)


def test_progress_and_cancellation() -> None:
    async def work(client: Any) -> None:
        told: List[str] = []

        async def hear(_progress: float, _total: Optional[float], message: Optional[str]) -> None:
            told.append(message or "")

        await client.call_tool("run_command", {"command": "echo begun; sleep 1.2"}, progress_callback=hear)
        assert told and told[0].endswith("6 bytes of output: begun")
        endless = asyncio.create_task(client.call_tool("run_command", {"command": "while :; do :; done"}))
        await asyncio.sleep(0.3)
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        await asyncio.wait_for(call(client, "run_command", command="true"), 10)

    use(work)


def test_a_models_mistakes_are_answered_in_a_sentence() -> None:
    mistakes = [
        ("read_file", {"path": "/none"}, "ENOENT"),
        ("read_file", {"path": "/tmp"}, "list_directory"),
        ("run_command", {"command": "ls", "sandbox": "box-9"}, "no sandbox 'box-9'"),
        ("run_command", {"command": 3}, "must be a string"),
        ("run_command", {"command": "ls", "tiemout": 1}, "no argument 'tiemout'"),
        ("run_command", {}, "'command' is missing"),
        ("restore", {"snapshot": "x"}, "no snapshot 'x'"),
        ("no_tool", {}, "no tool 'no_tool'"),
        ("run_command", {"command": "while :; do :; done", "timeout_seconds": 0.2}, "TIMEOUT"),
    ]

    async def work(client: Any) -> None:
        for tool, arguments, says in mistakes:
            result = await client.call_tool(tool, arguments)
            assert result.is_error and says in result.content[0].text, (tool, arguments, result.content)

    use(work)


def test_the_page_has_configurations_that_clients_can_read() -> None:
    found = re.findall(r"^```json\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found
    for block in found:
        servers = json.loads(block)
        server = (servers.get("mcpServers") or servers["servers"])["wardian"]
        if server["type" if "url" in server else "command"] == "http":
            assert server["url"].endswith("/mcp") and server["headers"]["Authorization"].startswith("Bearer ")
        else:
            assert server["command"] == "wardian" and server["args"][0] == "mcp"
