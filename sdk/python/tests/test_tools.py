"""The sandbox as a tool of a language model."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, Dict

import pytest

from wardian import AsyncSandbox, Sandbox, ServerDiedError
from wardian.tools import AsyncShellTool, ShellTool


def use(**arguments: Any) -> Dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": "shell", "input": arguments}


def test_schemas_have_the_vendors_shapes(sandbox: Sandbox) -> None:
    tool = ShellTool(sandbox, name="sh", description="Runs it", max_timeout=5)
    parameters = tool.parameters()
    assert parameters["required"] == ["command"] and set(parameters["properties"]) == {"command", "timeout"}
    assert tool.anthropic_schema() == {"name": "sh", "description": "Runs it", "input_schema": parameters}
    function = {"name": "sh", "description": "Runs it", "parameters": parameters}
    assert tool.openai_schema() == {"type": "function", "function": function}
    assert tool.openai_responses_schema() == {"type": "function", "strict": False, **function}
    json.dumps(tool.openai_schema())


def test_a_call_is_answered_in_each_format(sandbox: Sandbox) -> None:
    tool = ShellTool(sandbox)
    said = "hi\n[exit code 0]"
    assert tool.anthropic_result(use(command="echo hi")) == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": said,
        "is_error": False,
    }
    arguments = json.dumps({"command": "echo hi", "timeout": 3})
    chat = {"id": "call_1", "type": "function", "function": {"name": "shell", "arguments": arguments}}
    assert tool.openai_result(chat) == {"role": "tool", "tool_call_id": "call_1", "content": said}
    responses = {"type": "function_call", "call_id": "call_2", "name": "shell", "arguments": arguments}
    assert tool.openai_result(responses) == {"type": "function_call_output", "call_id": "call_2", "output": said}


def test_objects_of_the_vendors_packages_are_understood(sandbox: Sandbox) -> None:
    tool = ShellTool(sandbox)
    block = SimpleNamespace(**use(command="echo hi"))
    assert tool.anthropic_result(block)["tool_use_id"] == "toolu_1"
    function = SimpleNamespace(name="shell", arguments='{"command": "echo hi"}')
    call = SimpleNamespace(id="call_1", type="function", function=function)
    assert tool.openai_result(call)["content"] == "hi\n[exit code 0]"


def test_what_one_command_sets_does_not_break_the_next(sandbox: Sandbox) -> None:
    tool = ShellTool(sandbox)
    poison = "x=1; cd /tmp; set -eu; trap 'echo bye' EXIT; false"
    assert tool.anthropic_result(use(command=poison))["is_error"]
    after = tool.anthropic_result(use(command="false; echo $x $PWD ${none-unset}; trap"))
    assert after["content"] == "1 /tmp unset\n[exit code 0]"
    kept = ShellTool(sandbox, contained=False)
    kept.anthropic_result(use(command="set -o pipefail"))
    assert kept.anthropic_result(use(command="false | true"))["content"] == "[exit code 1]"
    assert sandbox.run("set -f; false | true", contained=True).exit_code == 1


def test_the_model_is_told_what_went_wrong(sandbox: Sandbox) -> None:
    failed = ShellTool(sandbox).anthropic_result(use(command="echo out; echo err >&2; exit 3"))
    assert failed["content"] == "out\nerr\n[exit code 3]" and failed["is_error"]
    turns = ShellTool(sandbox).anthropic_result(use(command="echo a; echo b >&2; echo c; echo d >&2"))
    assert turns["content"] == "a\nb\nc\nd\n[exit code 0]"
    late = ShellTool(sandbox, max_timeout=0.2).anthropic_result(use(command="while :; do :; done", timeout=1000))
    assert "TIMEOUT" in late["content"] and "exit code 124" in late["content"] and late["is_error"]


@pytest.mark.parametrize(
    "name, arguments, says",
    [
        ("other", {"command": "true"}, "no tool called 'other'"),
        ("shell", "{not json", "not JSON"),
        ("shell", "[" * 100_000, "not JSON"),
        ("shell", [], "must be an object"),
        ("shell", None, "must be an object"),
        ("shell", {}, "string 'command'"),
        ("shell", {"command": 1}, "string 'command'"),
        ("shell", {"command": "true", "timeout": "soon"}, "positive number"),
        ("shell", {"command": "true", "timeout": -1}, "positive number"),
        ("shell", {"command": "true", "timeout": True}, "positive number"),
        ("shell", '{"command": "true", "timeout": NaN}', "positive number"),
        ("shell", '{"command": "\\ud800"}', "surrogates not allowed"),
    ],
)
def test_whatever_a_model_sends_has_an_answer(sandbox: Sandbox, name: Any, arguments: Any, says: str) -> None:
    tool = ShellTool(sandbox)
    answer = tool.anthropic_result({"type": "tool_use", "id": "1", "name": name, "input": arguments})
    assert answer["is_error"] and says in answer["content"]


def test_long_output_is_shortened_and_says_so(sandbox: Sandbox) -> None:
    tool = ShellTool(sandbox, max_output=100)
    content = tool.anthropic_result(use(command="seq 1000"))["content"]
    assert content.startswith("1\n2\n") and "\n1000\n[exit code 0]" in content
    assert "[… 3793 characters left out …]" in content
    flooded = ShellTool(sandbox).anthropic_result(use(command="yes | head -c 2000000"))["content"]
    assert "stdout longer than its limit" in flooded and "limit reached: stdoutBytes" in flooded


def test_a_dead_server_is_not_the_models_business() -> None:
    with Sandbox() as sandbox:
        tool = ShellTool(sandbox)
        sandbox._handle.server.connection._process.kill()
        with pytest.raises(ServerDiedError):
            tool.anthropic_result(use(command="true"))


def test_the_same_for_asyncio() -> None:
    async def work() -> None:
        async with AsyncSandbox() as sandbox:
            tool = AsyncShellTool(sandbox)
            assert (await tool.anthropic_result(use(command="echo hi")))["content"] == "hi\n[exit code 0]"
            call = {"id": "1", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
            assert "string 'command'" in (await tool.openai_result(call))["content"]

    asyncio.run(work())
