"""Your functions as commands in the sandbox.

A function becomes the program ``/usr/bin/NAME``, which pipes, ``xargs`` and ``type`` see like any other. It gets
the command-line arguments::

    def weather(city: str, days: str = "1") -> str:
        "Tells tomorrow's weather."
        return f"{city}: rain for {days} days\\n"

    with Sandbox(extensions=[weather]) as sandbox:
        sandbox.run("weather Bergen 3 | tr a-z A-Z")

``stdin``, ``env`` and ``cwd`` are passed if the function has them as keyword-only parameters::

    def shout(*words: str, stdin: str) -> str: ...

It returns its standard output, None for no output, or an :class:`ExtensionResult`. An exception becomes exit
code 1 and a line on standard error; ``sys.exit(n)`` becomes exit code n. The function may be ``async``.

It runs under the command's timeout: after that the sandbox no longer waits for it, but Python cannot stop the function.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from dataclasses import dataclass
from typing import Any, Callable, Coroutine, Dict, List, Mapping, Optional, Sequence, Union

from ._waiting import wait

_log = logging.getLogger("wardian")

#: What the server sends with a call, in addition to its arguments.
_CONTEXT = ("stdin", "env", "cwd")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
#: The exit code for a command line that does not fit.
_MISUSE = 2


@dataclass(frozen=True)
class ExtensionResult:
    """The result of a call."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0


@dataclass(frozen=True)
class Extension:
    """A function and its description in ``NAME --help`` and ``extensions list``.

    Anything left out is taken from the function: its name, the first line of its docstring, its parameters.
    """

    function: Callable[..., object]
    name: str = ""
    description: str = ""
    usage: str = ""
    examples: Sequence[str] = ()
    category: str = ""

    def __post_init__(self) -> None:
        for parameter in inspect.signature(self.function).parameters.values():
            keyword = parameter.kind is inspect.Parameter.KEYWORD_ONLY
            if parameter.name in _CONTEXT and not keyword:
                raise ValueError(f"{self.command}: '{parameter.name}' must stand behind a '*' in the parameters")
            if keyword and parameter.name not in _CONTEXT and parameter.default is parameter.empty:
                raise ValueError(f"{self.command}: nothing on a command line gives '{parameter.name}' a value")

    @property
    def command(self) -> str:
        """Its name in the sandbox."""
        return self.name or str(getattr(self.function, "__name__", ""))

    def spec(self) -> Dict[str, Any]:
        """Returns its protocol representation."""
        documented = (inspect.getdoc(self.function) or "").strip().split("\n")[0]
        return {
            "name": self.command,
            "description": self.description or documented,
            "usage": self.usage or self._usage(),
            "examples": list(self.examples),
            "category": self.category,
            "hasCommand": True,
        }

    def _usage(self) -> str:
        words = [self.command]
        for parameter in inspect.signature(self.function).parameters.values():
            shown = parameter.name.upper()
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                words.append(f"[{shown}…]")
            elif parameter.kind in _POSITIONAL:
                words.append(shown if parameter.default is parameter.empty else f"[{shown}]")
        return " ".join(words)

    def call(self, params: Mapping[str, Any], wait: Callable[[Coroutine[Any, Any, object]], object]) -> ExtensionResult:
        """Calls the function with a command line's arguments. ``wait`` runs a coroutine to its end."""
        signature = inspect.signature(self.function)
        context = {name: params[name] for name in _CONTEXT if name in signature.parameters}
        try:
            signature.bind(*params["args"], **context)
        except TypeError as error:
            message = f"{self.command}: {error}\nusage: {self.usage or self._usage()}\n"
            return ExtensionResult(stderr=message, exit_code=_MISUSE)
        returned = self.function(*params["args"], **context)
        if inspect.iscoroutine(returned):
            returned = wait(returned)
        if isinstance(returned, ExtensionResult):
            return returned
        if returned is None or isinstance(returned, str):
            return ExtensionResult(stdout=returned or "")
        raise TypeError(f"returned {type(returned).__name__}, not str, None or ExtensionResult")


#: What can be given as an extension.
ExtensionLike = Union[Extension, Callable[..., object]]


class Extensions:
    """The extensions of a server, by name, and how their coroutines are awaited."""

    def __init__(self, given: Sequence[ExtensionLike]) -> None:
        self._by_name: Dict[str, Extension] = {}
        #: The loop of an :class:`~wardian.AsyncSandbox`, where its async functions run.
        self.loop: Optional[asyncio.AbstractEventLoop] = None
        for one in given:
            extension = one if isinstance(one, Extension) else Extension(one)
            if extension.command in self._by_name:
                raise ValueError(f"two extensions are called {extension.command!r}")
            self._by_name[extension.command] = extension

    def specs(self) -> List[Dict[str, Any]]:
        """Returns their protocol representation."""
        return [extension.spec() for extension in self._by_name.values()]

    def invoke(self, params: Mapping[str, Any]) -> Dict[str, Any]:
        """Answers ``extension.invoke``, whatever the function does."""
        name = params.get("name")
        extension = self._by_name.get(name) if isinstance(name, str) else None
        if extension is None:
            result = ExtensionResult(stderr=f"no extension is called {name!r}\n", exit_code=127)
        else:
            result = self._call(extension, params)
        return {"exitCode": result.exit_code, "stdout": result.stdout, "stderr": result.stderr}

    def _call(self, extension: Extension, params: Mapping[str, Any]) -> ExtensionResult:
        try:
            return extension.call(params, lambda coroutine: wait(coroutine, self.loop))
        except SystemExit as leaving:
            return _left(extension.command, leaving.code)
        except (Exception, asyncio.CancelledError) as error:
            _log.warning("the extension %s failed", extension.command, exc_info=True)
            message = f"{extension.command}: {type(error).__name__}: {error}\n"
            return ExtensionResult(stderr=message, exit_code=1)


def _left(command: str, code: object) -> ExtensionResult:
    """``sys.exit``, as Python's own interpreter understands it."""
    if code is None or isinstance(code, int):
        return ExtensionResult(exit_code=(code or 0) & 0xFF)
    return ExtensionResult(stderr=f"{command}: {code}\n", exit_code=1)
