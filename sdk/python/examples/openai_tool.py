"""A sandbox as a tool of OpenAI's Chat Completions API: the whole loop of an agent.

`create` is `openai.OpenAI().chat.completions.create`. Without a key, the model here is a script, which calls the tool
as the real one would. (For the Responses API take `openai_responses_schema`; `openai_result` answers both.)
"""

import importlib
import json
import os
from types import SimpleNamespace
from typing import Any, Callable, List

from wardian import Sandbox
from wardian.tools import ShellTool

TASK = "How many lines of /tmp/log mention an error?"


def agent(create: Callable[..., Any], sandbox: Sandbox, task: str) -> str:
    """Lets the model use the sandbox until it has an answer."""
    tool = ShellTool(sandbox, max_timeout=20)
    messages: List[Any] = [{"role": "user", "content": task}]
    while True:
        response = create(model="gpt-5", messages=messages, tools=[tool.openai_schema()])
        message = response.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            return str(message.content)
        messages += [tool.openai_result(call) for call in message.tool_calls]


def scripted_model(*, messages: List[Any], tools: List[Any], **_: Any) -> SimpleNamespace:
    """Calls the tool once, and answers with what it said."""
    if len(messages) == 1:
        arguments = json.dumps({"command": "grep -c error /tmp/log"})
        function = SimpleNamespace(name=tools[0]["function"]["name"], arguments=arguments)
        calls = [SimpleNamespace(id="call_1", type="function", function=function)]
        message = SimpleNamespace(role="assistant", content=None, tool_calls=calls)
    else:
        text = f"It is {messages[-1]['content'].splitlines()[0]}."
        message = SimpleNamespace(role="assistant", content=text, tool_calls=None)
    return SimpleNamespace(choices=[SimpleNamespace(message=message)])


def main() -> None:
    create: Callable[..., Any] = scripted_model
    if os.environ.get("OPENAI_API_KEY"):
        create = importlib.import_module("openai").OpenAI().chat.completions.create
    with Sandbox() as sandbox:
        sandbox.files.write("/tmp/log", "ok\nerror: disk\nok\nerror: net\n")
        print(agent(create, sandbox, TASK))


if __name__ == "__main__":
    main()
