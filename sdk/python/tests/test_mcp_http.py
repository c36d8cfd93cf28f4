"""`/mcp` of `wardian serve --http`, with the official client of the Model Context Protocol."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any, Awaitable, Callable, Iterator

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from wardian import _binary

ONE, OTHER = "token-number-one", "token-of-another"
TOKENS = f"""
[[token]]
name = "one"
secret = "{ONE}"

[[token]]
name = "other"
secret = "{OTHER}"

[tenant.one]
sandboxes = 2
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of a server with two tenants."""
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(TOKENS)
    command = [_binary.find(), "serve", "--http", "0", "--tokens", str(tokens)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = server.stderr.readline().strip()
        yield said.replace("wardian: listening on ", "") + "/mcp"
        server.terminate()
        assert server.wait(30) == 0


def use(url: str, work: Callable[..., Awaitable[None]], *tokens: str, mode: Any) -> None:
    """Does something with a client for each token."""

    async def connected(clients: list[Any], left: tuple[str, ...]) -> None:
        if not left:
            return await work(*clients)
        headers = {"Authorization": f"Bearer {left[0]}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http_client:
            transport = streamable_http_client(url, http_client=http_client)
            async with Client(transport, mode=mode) as client:
                await connected([*clients, client], left[1:])

    asyncio.run(asyncio.wait_for(connected([], tokens), 120))


async def said(client: Any, tool: str, /, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    return str(result.content[0].text)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_tools_work_and_tenants_do_not_meet(url: str, mode: str) -> None:
    async def work(one: Any, other: Any) -> None:
        assert len((await one.list_tools()).tools) == 13
        assert await said(one, "run_command", command="echo one > f; cat f") == "one\n[exit code 0]"
        assert await said(other, "run_command", command="cat f || echo none") == (
            "cat: f: No such file or directory\nnone\n[exit code 0]"
        )
        assert await said(one, "run_command", command="cat f") == "one\n[exit code 0]"
        contents = (await one.read_resource("wardian://main/home/user/f")).contents
        assert contents[0].text == "one\n"
        assert await said(one, "create_sandbox") == "created the sandbox box-1"
        full = await one.call_tool("create_sandbox", {})
        assert full.is_error and "Maximum of 2 sandboxes of tenant one reached" in full.content[0].text

    use(url, work, ONE, OTHER, mode=mode)


def test_each_session_has_sandboxes_of_its_own_which_end_with_it(url: str) -> None:
    async def both(first: Any, second: Any) -> None:
        await said(first, "run_command", command="echo first > f")
        assert "No such file" in await said(second, "run_command", command="cat f")

    async def alone(client: Any) -> None:
        # The quota has room for two: those of the sessions before are gone, as soon as they are destroyed.
        while "Maximum of 2" in await said(client, "fork_sandbox"):
            await asyncio.sleep(0.02)

    use(url, both, ONE, ONE, mode="legacy")
    use(url, alone, ONE, mode="legacy")


def test_many_calls_at_once_get_their_own_answers(url: str) -> None:
    async def work(*clients: Any) -> None:
        async def call(number: int) -> None:
            client = clients[number % len(clients)]
            assert await said(client, "run_command", command=f"echo {number}") == f"{number}\n[exit code 0]"

        await asyncio.gather(*(call(number) for number in range(24)))

    use(url, work, OTHER, OTHER, OTHER, mode="auto")


def test_a_token_is_needed(url: str) -> None:
    async def status(headers: dict[str, str]) -> int:
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        headers = {"Accept": "application/json, text/event-stream", **headers}
        async with httpx2.AsyncClient() as client:
            return int((await client.post(url, json=request, headers=headers)).status_code)

    wrong = [{}, {"Authorization": "Bearer token-number-two"}]
    assert [asyncio.run(status(headers)) for headers in wrong] == [401, 401]
    origin = {"Authorization": f"Bearer {ONE}", "Origin": "https://evil.test"}
    assert asyncio.run(status(origin)) == 403
