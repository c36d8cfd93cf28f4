"""Processes beside the shell, for asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, AsyncIterator, List, Mapping, Optional, Sequence, Union

from . import _process
from ._process import Collected, Mailbox, ProcessInfo, ProcessResult
from .files import Content
from .results import Output

if TYPE_CHECKING:
    from ._async import AsyncSandbox


class AsyncProcess:
    """A process that runs beside the shell, like :class:`~wardian.Process`."""

    def __init__(self, sandbox: AsyncSandbox, id: str, pid: int, mailbox: Mailbox) -> None:
        self._sandbox = sandbox
        self.id = id
        self.pid = pid
        self._mailbox = mailbox
        self._changed = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(self._changed.set)
            except RuntimeError:
                # The loop is closed: nobody waits.
                pass

        mailbox.listener = wake

    async def _take(self) -> Union[Output, Mapping[str, Any]]:
        while True:
            self._changed.clear()
            found = self._mailbox.poll()
            if found is not None:
                # Others may wait for the rest.
                self._changed.set()
                return found
            await self._changed.wait()

    async def __aiter__(self) -> AsyncIterator[Output]:
        while True:
            found = await self._take()
            if not isinstance(found, Output):
                return
            self._acknowledge(found)
            yield found

    def _acknowledge(self, piece: Output) -> None:
        self._sandbox._handle.send(_process.acknowledge(self.id, len(piece.data_bytes)))

    async def wait(self) -> ProcessResult:
        """Waits for its end, and returns it with the output that was not taken before."""
        collected = Collected()
        while True:
            found = await self._take()
            if not isinstance(found, Output):
                return collected.result(found)
            self._acknowledge(found)
            collected.add(found)

    async def write(self, data: Content) -> None:
        """Writes to its standard input, or types at its terminal."""
        content = _process.encoded(data)
        for start in range(0, len(content), _process.PIECE):
            await self._sandbox._do(_process.write(self.id, content[start : start + _process.PIECE]))

    async def close_stdin(self) -> None:
        """Closes its standard input."""
        await self._sandbox._do(_process.close_stdin(self.id))

    async def signal(self, name: str) -> None:
        """Sends a signal, such as ``"TERM"``, to it and to what it started in its group."""
        await self._sandbox._do(_process.signal(self.id, name))

    async def kill(self) -> None:
        """Kills it and everything it started."""
        await self.signal("KILL")

    async def resize(self, rows: int, columns: int) -> None:
        """Changes the size of its terminal."""
        await self._sandbox._do(_process.resize(self.id, rows, columns))


class AsyncProcesses:
    """The processes beside the shell: ``sandbox.process``."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._sandbox = sandbox

    async def start(
        self,
        command: Union[str, Sequence[str]],
        *,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        stdin: bool = False,
        timeout: Optional[float] = None,
    ) -> AsyncProcess:
        """Starts a command in a fresh ``bash``, or a program with arguments."""
        return await self._start(command, env, cwd, stdin, timeout, None)

    async def _start(
        self,
        command: Union[str, Sequence[str]],
        env: Optional[Mapping[str, str]],
        cwd: Optional[str],
        stdin: bool,
        timeout: Optional[float],
        pty: Optional[Mapping[str, int]],
    ) -> AsyncProcess:
        call = _process.start(command, env, cwd, stdin, timeout, pty)
        mailbox = Mailbox()
        request = self._sandbox._handle.send(call, mailbox=mailbox)
        id, pid = call.answer(await asyncio.wrap_future(request.answer))
        return AsyncProcess(self._sandbox, id, pid, mailbox)

    async def list(self) -> List[ProcessInfo]:
        """Returns those that run."""
        return await self._sandbox._do(_process.listing())


class AsyncTerminals:
    """Processes at a terminal: ``sandbox.pty``."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._processes = AsyncProcesses(sandbox)

    async def start(
        self,
        command: Union[str, Sequence[str]] = ("/bin/bash", "-i"),
        *,
        rows: int = 24,
        columns: int = 80,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> AsyncProcess:
        """Starts a program at a terminal of its own; by default, an interactive shell."""
        return await self._processes._start(command, env, cwd, False, timeout, {"rows": rows, "columns": columns})
