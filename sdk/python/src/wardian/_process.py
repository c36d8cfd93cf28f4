"""Processes beside the shell: what both kinds of sandbox have in common."""

from __future__ import annotations

import collections
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Deque, Dict, List, Mapping, Optional, Sequence, Union

from ._calls import Call, _get, _number, _order
from .errors import WardianError
from .files import Content, encode
from .options import milliseconds
from .results import Output

#: How much is written at once; the server takes at most 1 MiB.
PIECE = 256 << 10


@dataclass(frozen=True)
class ProcessResult:
    """How a process ended, and the output that nobody had taken before."""

    #: Its exit code; 128 and the signal if one ended it, 124 after its timeout.
    exit_code: int
    stdout_bytes: bytes
    stderr_bytes: bytes
    #: What it wrote to its terminal.
    pty_bytes: bytes
    execution_time_ms: float
    #: The number of the signal that ended it.
    signal: Optional[int] = None
    error_class: Optional[str] = None
    limit: Optional[str] = None

    @property
    def stdout(self) -> str:
        """Standard output as text; bytes that are not UTF-8 become U+FFFD."""
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """Standard error as text."""
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def pty(self) -> str:
        """What it wrote to its terminal, as text."""
        return self.pty_bytes.decode("utf-8", "replace")

    @property
    def ok(self) -> bool:
        """Whether it exited with 0, and nothing stopped it."""
        return self.exit_code == 0 and self.error_class is None


@dataclass(frozen=True)
class ProcessInfo:
    """A running process."""

    id: str
    pid: int
    #: What it was started with, its beginning.
    command: str
    #: Whether it has a terminal.
    pty: bool


class Mailbox:
    """What a process has written, until it is taken, and how it ended. At most 256 KiB: then the server waits."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pieces: Deque[Output] = collections.deque()
        self._end: Optional[Mapping[str, Any]] = None
        self._failure: Optional[WardianError] = None
        #: Called, in whatever thread, whenever something has changed.
        self.listener: Optional[Callable[[], None]] = None

    def put(self, stream: str, data: bytes) -> None:
        with self._changed:
            self._pieces.append(Output(stream, data))
            self._wake()

    def end(self, end: Mapping[str, Any]) -> None:
        with self._changed:
            self._end = end
            self._wake()

    def fail(self, failure: WardianError) -> None:
        with self._changed:
            if self._end is None:
                self._failure = failure
            self._wake()

    def _wake(self) -> None:
        self._changed.notify_all()
        if self.listener is not None:
            self.listener()

    def poll(self) -> Union[Output, Mapping[str, Any], None]:
        """The next piece, or the end after all of them, or None if there is nothing yet."""
        with self._changed:
            if self._pieces:
                return self._pieces.popleft()
            if self._failure is not None:
                raise self._failure
            return self._end

    def take(self, deadline: Optional[float]) -> Union[Output, Mapping[str, Any]]:
        """The same, when there is something. Raises TimeoutError."""
        with self._changed:
            while True:
                found = self.poll()
                if found is not None:
                    return found
                rest = None if deadline is None else deadline - time.monotonic()
                if rest is not None and rest <= 0:
                    raise TimeoutError("the process has not ended")
                self._changed.wait(rest)


class Collected:
    """Output that is put together for a result."""

    def __init__(self) -> None:
        self._streams = {"stdout": bytearray(), "stderr": bytearray(), "pty": bytearray()}

    def add(self, piece: Output) -> None:
        self._streams[piece.stream] += piece.data_bytes

    def result(self, end: Mapping[str, Any]) -> ProcessResult:
        def optional(name: str, kind: Any) -> Any:
            return _get(end, name, kind) if end.get(name) is not None else None

        taken = {name: bytes(data) for name, data in self._streams.items()}
        for data in self._streams.values():
            data.clear()
        return ProcessResult(
            exit_code=_get(end, "exitCode", int),
            stdout_bytes=taken["stdout"],
            stderr_bytes=taken["stderr"],
            pty_bytes=taken["pty"],
            execution_time_ms=_number(end, "executionTimeMs"),
            signal=optional("signal", int),
            error_class=optional("errorClass", str),
            limit=optional("limit", str),
        )


def start(
    command: Union[str, Sequence[str]],
    env: Optional[Mapping[str, str]],
    cwd: Optional[str],
    stdin: bool,
    timeout: Optional[float],
    pty: Optional[Mapping[str, int]],
) -> Call[Any]:
    """Starts a process."""
    params: Dict[str, Any] = {"command": command} if isinstance(command, str) else {"argv": list(command)}
    if env:
        params["env"] = dict(env)
    if cwd is not None:
        params["cwd"] = cwd
    if stdin:
        params["stdin"] = True
    if timeout is not None:
        params["timeoutMs"] = milliseconds(timeout)
    if pty is not None:
        params["pty"] = dict(pty)
    return Call("process.start", params, lambda result: (_get(result, "processId", str), _get(result, "pid", int)))


def write(id: str, data: bytes) -> Call[None]:
    return _order("process.write", processId=id, data=encode(data))


def close_stdin(id: str) -> Call[None]:
    return _order("process.closeStdin", processId=id)


def acknowledge(id: str, count: int) -> Call[None]:
    return _order("process.ack", processId=id, bytes=count)


def signal(id: str, name: str) -> Call[None]:
    return _order("process.signal", processId=id, signal=name)


def resize(id: str, rows: int, columns: int) -> Call[None]:
    return _order("process.resize", processId=id, rows=rows, columns=columns)


def listing() -> Call[List[ProcessInfo]]:
    def read(result: Any) -> List[ProcessInfo]:
        return [
            ProcessInfo(_get(one, "processId", str), _get(one, "pid", int), _get(one, "command", str), bool(one["pty"]))
            for one in _get(result, "processes", list)
        ]

    return Call("process.list", {}, read)


def encoded(data: Content) -> bytes:
    """What is written, as bytes."""
    return data.encode("utf-8") if isinstance(data, str) else bytes(data)
