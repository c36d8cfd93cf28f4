"""Processes beside the shell, for ordinary code."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Iterator, List, Mapping, Optional, Sequence, Union

from . import _process
from ._process import Collected, Mailbox, ProcessInfo, ProcessResult
from .files import Content
from .results import Output

if TYPE_CHECKING:
    from ._sync import Sandbox


class Process:
    """A process that runs beside the shell. Iterating over it yields what it writes, up to its end::

        process = sandbox.process.start("make -j2", cwd="/src")
        for piece in process:
            print(piece.stream, piece.data, end="")
        print(process.wait().exit_code)

    While nobody takes its output, it waits to write more than 256 KiB.
    """

    def __init__(self, sandbox: Sandbox, id: str, pid: int, mailbox: Mailbox) -> None:
        self._sandbox = sandbox
        #: Its id in the protocol.
        self.id = id
        #: Its process id in the sandbox.
        self.pid = pid
        self._mailbox = mailbox

    def __iter__(self) -> Iterator[Output]:
        while True:
            found = self._mailbox.take(None)
            if not isinstance(found, Output):
                return
            self._acknowledge(found)
            yield found

    def _acknowledge(self, piece: Output) -> None:
        # Nobody waits for the answer: it may have ended meanwhile.
        self._sandbox._handle.send(_process.acknowledge(self.id, len(piece.data_bytes)))

    def wait(self, timeout: Optional[float] = None) -> ProcessResult:
        """Waits for its end, and returns it with the output that was not taken before. Raises ``TimeoutError`` after
        ``timeout`` seconds; the process runs on, and output that was taken meanwhile is lost.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        collected = Collected()
        while True:
            found = self._mailbox.take(deadline)
            if not isinstance(found, Output):
                return collected.result(found)
            self._acknowledge(found)
            collected.add(found)

    def write(self, data: Content) -> None:
        """Writes to its standard input, or types at its terminal. Waits while too much of that is unread."""
        content = _process.encoded(data)
        for start in range(0, len(content), _process.PIECE):
            self._sandbox._do(_process.write(self.id, content[start : start + _process.PIECE]))

    def close_stdin(self) -> None:
        """Closes its standard input."""
        self._sandbox._do(_process.close_stdin(self.id))

    def signal(self, name: str) -> None:
        """Sends a signal, such as ``"TERM"``, to it and to what it started in its group."""
        self._sandbox._do(_process.signal(self.id, name))

    def kill(self) -> None:
        """Kills it and everything it started."""
        self.signal("KILL")

    def resize(self, rows: int, columns: int) -> None:
        """Changes the size of its terminal."""
        self._sandbox._do(_process.resize(self.id, rows, columns))


class Processes:
    """The processes beside the shell: ``sandbox.process``."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def start(
        self,
        command: Union[str, Sequence[str]],
        *,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        stdin: bool = False,
        timeout: Optional[float] = None,
    ) -> Process:
        """Starts a command in a fresh ``bash``, or a program with arguments.

        Args:
            command: a script, or a list of a program and its arguments.
            env: variables, in addition to those of the sandbox.
            cwd: where it starts.
            stdin: whether it has a standard input for :meth:`Process.write`; otherwise that is empty.
            timeout: seconds after which it is killed.
        """
        return self._start(command, env, cwd, stdin, timeout, None)

    def _start(
        self,
        command: Union[str, Sequence[str]],
        env: Optional[Mapping[str, str]],
        cwd: Optional[str],
        stdin: bool,
        timeout: Optional[float],
        pty: Optional[Mapping[str, int]],
    ) -> Process:
        call = _process.start(command, env, cwd, stdin, timeout, pty)
        mailbox = Mailbox()
        id, pid = call.answer(self._sandbox._handle.send(call, mailbox=mailbox).answer.result())
        return Process(self._sandbox, id, pid, mailbox)

    def list(self) -> List[ProcessInfo]:
        """Returns those that run."""
        return self._sandbox._do(_process.listing())


class Terminals:
    """Processes at a terminal: ``sandbox.pty``."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._processes = Processes(sandbox)

    def start(
        self,
        command: Union[str, Sequence[str]] = ("/bin/bash", "-i"),
        *,
        rows: int = 24,
        columns: int = 80,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Process:
        """Starts a program at a terminal of its own; by default, an interactive shell."""
        return self._processes._start(command, env, cwd, False, timeout, {"rows": rows, "columns": columns})
