"""A sandbox as a tool of Anthropic's Messages API: the whole loop of an agent.

`create` is `anthropic.Anthropic().messages.create`. Without a key, the model here is a script, which calls the tool as
the real one would.
"""

import importlib
import os
from types import SimpleNamespace
from typing import Any, Callable, Dict, List

from wardian import Sandbox
from wardian.tools import ShellTool

TASK = "How many lines of /tmp/log mention an error?"


def agent(create: Callable[..., Any], sandbox: Sandbox, task: str) -> str:
    """Lets the model use the sandbox until it has an answer."""
    tool = ShellTool(sandbox, max_timeout=20)
    messages: List[Dict[str, Any]] = [{"role": "user", "content": task}]
    while True:
        response = create(
            model="claude-sonnet-4-5", max_tokens=4096, tools=[tool.anthropic_schema()], messages=messages
        )
        messages.append({"role": "assistant", "content": response.content})
        if response.stop_reason != "tool_use":
            return "".join(block.text for block in response.content if block.type == "text")
        results = [tool.anthropic_result(block) for block in response.content if block.type == "tool_use"]
        messages.append({"role": "user", "content": results})


def scripted_model(*, messages: List[Dict[str, Any]], tools: List[Dict[str, Any]], **_: Any) -> SimpleNamespace:
    """Calls the tool once, and answers with what it said."""
    if len(messages) == 1:
        call = {"command": "grep -c error /tmp/log"}
        block = SimpleNamespace(type="tool_use", id="toolu_1", name=tools[0]["name"], input=call)
        return SimpleNamespace(stop_reason="tool_use", content=[block])
    result = messages[-1]["content"][0]
    text = f"It is {result['content'].splitlines()[0]}."
    return SimpleNamespace(stop_reason="end_turn", content=[SimpleNamespace(type="text", text=text)])


def main() -> None:
    create: Callable[..., Any] = scripted_model
    if os.environ.get("ANTHROPIC_API_KEY"):
        create = importlib.import_module("anthropic").Anthropic().messages.create
    with Sandbox() as sandbox:
        sandbox.files.write("/tmp/log", "ok\nerror: disk\nok\nerror: net\n")
        print(agent(create, sandbox, TASK))


if __name__ == "__main__":
    main()
