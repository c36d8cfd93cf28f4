"""Code in a sandbox's own interpreter: its result, and the call."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from ._calls import Call, _get, _run_result
from .files import Content, encode
from .options import milliseconds
from .results import RunResult


@dataclass(frozen=True)
class PythonValue:
    """A value, as it describes itself."""

    #: ``repr()``.
    repr: str
    #: ``_repr_html_()``, where it has one.
    html: Optional[str] = None
    #: ``_repr_png_()``.
    png: Optional[bytes] = None
    #: ``_repr_json_()``.
    json: Any = None

    def __str__(self) -> str:
        return self.repr


@dataclass(frozen=True)
class PythonFailure:
    """An uncaught exception."""

    #: ``ValueError``, ``json.decoder.JSONDecodeError``.
    type: str
    message: str
    #: What Python prints, line by line.
    traceback: List[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(self.traceback) or f"{self.type}: {self.message}"


@dataclass(frozen=True)
class PythonResult(RunResult):
    """The result of code: that of a command, and its value."""

    #: The value of the last expression, if there is one and it is not ``None``.
    value: Optional[PythonValue] = None
    #: What was given to ``display()``.
    displays: List[PythonValue] = field(default_factory=list)
    #: What was raised and not caught; then the exit code is 1.
    error: Optional[PythonFailure] = None
    #: Whether a value or a traceback was longer than ``Limits.stdout_bytes``.
    value_truncated: bool = False

    def describe(self) -> str:
        """Returns what happened: the traceback, if there is one."""
        return str(self.error) if self.error is not None else super().describe()


def python(
    code: str, context: Optional[str], stdin: Optional[Content], timeout: Optional[float], stream: bool
) -> Call[PythonResult]:
    """Runs code in an interpreter."""
    params: Dict[str, Any] = {"code": code, "encoding": "base64", "output": True}
    if context is not None:
        params["context"] = context
    if stdin is not None:
        params["stdin"] = encode(stdin)
    if timeout is not None:
        params["timeoutMs"] = milliseconds(timeout)
    if stream:
        params["stream"] = True
    return Call("python.run", params, _python_result)


def _python_result(result: Any) -> PythonResult:
    error = result.get("error")
    return PythonResult(
        **vars(_run_result(result)),
        value=_value(result["value"]) if result.get("value") is not None else None,
        displays=[_value(each) for each in result.get("displays") or []],
        error=None if error is None else _error(error),
        value_truncated=bool(result.get("valueTruncated")),
    )


def _value(value: Any) -> PythonValue:
    png = value.get("png")
    return PythonValue(
        _get(value, "repr", str),
        value.get("html"),
        None if png is None else base64.b64decode(png),
        value.get("json"),
    )


def _error(error: Any) -> PythonFailure:
    return PythonFailure(_get(error, "type", str), _get(error, "message", str), list(_get(error, "traceback", list)))
