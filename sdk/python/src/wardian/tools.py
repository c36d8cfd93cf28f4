"""A sandbox as a tool for a language model, in the formats of OpenAI and Anthropic.

A :class:`ShellTool` has the schema to send with a request, and answers the calls that come back, as plain dictionaries:
no vendor package is needed, and vendors' objects are accepted as well::

    tool = ShellTool(sandbox)
    response = client.messages.create(tools=[tool.anthropic_schema()], …)
    results = [tool.anthropic_result(block) for block in response.content if block.type == "tool_use"]

Whatever the model asks for, it gets a reply: failing commands, arguments that do not match the schema and limits are
reported to the model, not raised.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Optional, Tuple

from ._async import AsyncSandbox
from ._sync import Sandbox
from .errors import InvalidRequestError, RequestTooLargeError, SandboxError
from .results import RunResult

#: The tool's name where no other is given.
NAME = "shell"

_DESCRIPTION = (
    "Runs a script in a sandbox with a bash-compatible shell, the usual Unix tools and an in-memory file system. "
    "Shell state persists between calls: variables, functions and the working directory. "
    "Returns standard output and standard error, in the order they were written, and the exit code."
)
#: How many characters of output the model is shown.
_SHOWN = 20_000
#: What is the call's fault, and therefore told to the model. A server that died is not.
_REFUSALS = (ValueError, InvalidRequestError, RequestTooLargeError, SandboxError)


class _Tool:
    """What both kinds have in common: schemas, how a call is read and how an answer is written."""

    def __init__(self, name: str, description: Optional[str], max_timeout: float, max_output: int) -> None:
        self.name = name
        self.description = _DESCRIPTION if description is None else description
        self.max_timeout = max_timeout
        self.max_output = max_output

    def parameters(self) -> Dict[str, Any]:
        """The JSON schema of the tool's arguments."""
        return {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The script to run."},
                "timeout": {
                    "type": "number",
                    "description": f"Timeout in seconds; {self.max_timeout:g} is the maximum and the default.",
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        }

    def anthropic_schema(self) -> Dict[str, Any]:
        """The tool, as an entry of ``tools`` in Anthropic's Messages API."""
        return {"name": self.name, "description": self.description, "input_schema": self.parameters()}

    def openai_schema(self) -> Dict[str, Any]:
        """The tool, as an entry of ``tools`` in OpenAI's Chat Completions API."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters()},
        }

    def openai_responses_schema(self) -> Dict[str, Any]:
        """The tool, as an entry of ``tools`` in OpenAI's Responses API."""
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters(),
            "strict": False,
        }

    def _command(self, name: Any, arguments: Any) -> Tuple[str, float]:
        """The command of a call and its timeout. Raises ValueError with what to tell the model."""
        if name != self.name:
            raise ValueError(f"there is no tool called {name!r}, only {self.name!r}")
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"the arguments are not JSON: {error}") from None
        if not isinstance(arguments, Mapping) or not isinstance(arguments.get("command"), str):
            raise ValueError("the arguments must be an object with a string 'command'")
        arguments["command"].encode("utf-8")
        timeout = arguments.get("timeout")
        if timeout is None:
            return arguments["command"], self.max_timeout
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
            raise ValueError("'timeout' must be a positive number of seconds")
        return arguments["command"], min(float(timeout), self.max_timeout)

    def describe(self, result: RunResult) -> str:
        """Describes a result for the model: the output, then what it needs to know to interpret it."""
        parts = []
        if result.output:
            parts.append(self._shorten(result.output).rstrip("\n"))
        if result.truncated:
            # The place is marked in the output, but may be in what is left out of it here.
            cut = [name for name in ("stdout", "stderr") if getattr(result.truncated, name)]
            parts.append(f"[{' and '.join(cut)} longer than its limit: only the beginning was kept]")
        notes = [f"exit code {result.exit_code}"]
        notes += [note for note in (result.error_class, result.limit and f"limit reached: {result.limit}") if note]
        parts.append(f"[{', '.join(notes)}]")
        return "\n".join(parts)

    def _shorten(self, text: str) -> str:
        """The beginning and the end of a text that is too long, with a word of what is missing."""
        missing = len(text) - self.max_output
        if missing <= 0:
            return text
        half = self.max_output // 2
        return f"{text[:half]}\n[… {missing} characters left out …]\n{text[len(text) - (self.max_output - half) :]}"


def _anthropic(call: Any, content: str, failed: bool) -> Dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": _field(call, "id"), "content": content, "is_error": failed}


def _openai(call: Any, content: str) -> Dict[str, Any]:
    if _field(call, "type") == "function_call":
        return {"type": "function_call_output", "call_id": _field(call, "call_id"), "output": content}
    return {"role": "tool", "tool_call_id": _field(call, "id"), "content": content}


def _openai_call(call: Any) -> Tuple[Any, Any]:
    """The name and the arguments: the Responses API has them in the call, Chat Completions one level below."""
    asked = call if _field(call, "type") == "function_call" else _field(call, "function")
    return _field(asked, "name"), _field(asked, "arguments")


def _field(source: Any, name: str) -> Any:
    """A field of a dictionary, or of an object as the vendors' packages have them."""
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)


class ShellTool(_Tool):
    """The tool over a :class:`~wardian.Sandbox`.

    Args:
        sandbox: where commands run.
        name: the tool's name for the model.
        description: the tool's description for the model.
        max_timeout: the longest timeout in seconds, whatever the model asks for.
        max_output: the maximum characters of output shown to the model.
        contained: whether shell options and traps end with the command that set them, so that one ``set -e`` does not
            break all that follow. Variables, functions and the directory stay.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        name: str = NAME,
        description: Optional[str] = None,
        max_timeout: float = 30.0,
        max_output: int = _SHOWN,
        contained: bool = True,
    ) -> None:
        super().__init__(name, description, max_timeout, max_output)
        self.contained = contained
        self.sandbox = sandbox

    def anthropic_result(self, block: Any) -> Dict[str, Any]:
        """Answers a ``tool_use`` block with the ``tool_result`` block for the next message."""
        return _anthropic(block, *self._answer(_field(block, "name"), _field(block, "input")))

    def openai_result(self, call: Any) -> Dict[str, Any]:
        """Answers an entry of ``tool_calls`` with the ``tool`` message; of the Responses API, a ``function_call`` item
        with its ``function_call_output``.
        """
        return _openai(call, self._answer(*_openai_call(call))[0])

    def _answer(self, name: Any, arguments: Any) -> Tuple[str, bool]:
        try:
            command, timeout = self._command(name, arguments)
            result = self.sandbox.run(command, timeout=timeout, contained=self.contained)
        except _REFUSALS as error:
            return f"error: {error}", True
        return self.describe(result), not result.ok


class AsyncShellTool(_Tool):
    """The tool over an :class:`~wardian.AsyncSandbox`."""

    def __init__(
        self,
        sandbox: AsyncSandbox,
        *,
        name: str = NAME,
        description: Optional[str] = None,
        max_timeout: float = 30.0,
        max_output: int = _SHOWN,
        contained: bool = True,
    ) -> None:
        super().__init__(name, description, max_timeout, max_output)
        self.contained = contained
        self.sandbox = sandbox

    async def anthropic_result(self, block: Any) -> Dict[str, Any]:
        """Answers a ``tool_use`` block with the ``tool_result`` block for the next message."""
        return _anthropic(block, *await self._answer(_field(block, "name"), _field(block, "input")))

    async def openai_result(self, call: Any) -> Dict[str, Any]:
        """Answers an entry of ``tool_calls``, or a ``function_call`` item of the Responses API."""
        return _openai(call, (await self._answer(*_openai_call(call)))[0])

    async def _answer(self, name: Any, arguments: Any) -> Tuple[str, bool]:
        try:
            command, timeout = self._command(name, arguments)
            result = await self.sandbox.run(command, timeout=timeout, contained=self.contained)
        except _REFUSALS as error:
            return f"error: {error}", True
        return self.describe(result), not result.ok
