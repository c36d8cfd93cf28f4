"""The sandbox for asyncio: every call is awaited, and cancelling a task that runs a command cancels the command."""

from __future__ import annotations

import asyncio
import inspect
import threading
from types import TracebackType
from typing import Any, AsyncIterator, Callable, Dict, List, Mapping, Optional, Sequence, Type, TypeVar, Union, overload

from . import _calls, _overlays, _ports, _stores, _watch
from ._callbacks import Callbacks
from ._calls import Call
from ._handle import ENDINGS, Handle, Origin, PathLike, start
from ._overlays import OverlayChange
from ._pieces import Pieces
from ._ports import Exchange, PortResponse
from ._process_async import AsyncProcesses, AsyncTerminals
from ._store_async import AsyncImages, AsyncSaved
from ._stores import CommitLike
from ._watch import AsyncWatch, WatchBox
from .errors import ProtocolError, SandboxClosedError, SandboxError, ServerDiedError
from .extensions import ExtensionLike
from .files import Content, MountEntry, Source, parts
from .network import NetworkLike
from .options import HostMount, Limits, Mount, Options, Persistence, Pool
from .python import PythonResult, python
from .results import FileEntry, FileStat, HistoryEntry, Output, RunResult, SandboxInfo

T = TypeVar("T")


class AsyncSandbox:
    """A :class:`~wardian.Sandbox` whose calls are awaited. It takes the same options::

        async with AsyncSandbox(timeout=10) as sandbox:
            print((await sandbox.run("echo hello")).stdout)

    Without ``async with``, call :meth:`start` first and :meth:`close` last. Extensions and an ``on_request`` that are
    ``async`` functions run in the loop that started it.
    """

    def __init__(
        self,
        *,
        timeout: Optional[float] = None,
        fs_limit_bytes: Optional[int] = None,
        limits: Limits = Limits(),
        mounts: Sequence[Mount] = (),
        host_mounts: Sequence[HostMount] = (),
        env: Optional[Mapping[str, str]] = None,
        extensions: Sequence[ExtensionLike] = (),
        tool_allowlist: Optional[Sequence[str]] = None,
        pool: Optional[Pool] = None,
        nice: Optional[int] = None,
        cwd: Optional[str] = None,
        writable_paths: Optional[Sequence[str]] = None,
        on_kill: Optional[str] = None,
        python_path: Optional[Sequence[str]] = None,
        network: Optional[NetworkLike] = None,
        background_timeout: Optional[float] = None,
        image: Optional[str] = None,
        persistence: Optional[Persistence] = None,
        store: Optional[PathLike] = None,
        state_dir: Optional[PathLike] = None,
        http: Union[int, str, None] = None,
        binary: Optional[PathLike] = None,
    ) -> None:
        self._options = Options(
            timeout=timeout,
            fs_limit_bytes=fs_limit_bytes,
            limits=limits,
            mounts=mounts,
            host_mounts=host_mounts,
            env=env or {},
            tool_allowlist=tool_allowlist,
            pool=pool,
            nice=nice,
            cwd=cwd,
            writable_paths=writable_paths,
            on_kill=on_kill,
            python_path=python_path,
            network=network,
            background_timeout=background_timeout,
            image=image,
            persistence=persistence,
        )
        self._callbacks = Callbacks(extensions, network)
        self._binary = binary
        self._state_dir = state_dir
        self._http = http
        self._store = store
        self._started: Optional[Handle] = None

    async def start(self) -> AsyncSandbox:
        """Starts its server. ``async with`` does this automatically."""
        if self._started is None:
            self._callbacks.run_in(asyncio.get_running_loop())
            self._started = await asyncio.to_thread(
                start, self._options, self._callbacks, self._binary, self._state_dir, self._http, self._store
            )
        return self

    @property
    def _handle(self) -> Handle:
        if self._started is None:
            raise SandboxClosedError("the sandbox has not been started: use 'async with', or await start()")
        return self._started

    def _beside(self, origin: Origin, id: str) -> AsyncSandbox:
        """Returns another sandbox of the same server."""
        sandbox = AsyncSandbox.__new__(AsyncSandbox)
        sandbox._started = self._handle.beside(origin, id)
        return sandbox

    async def _do(self, call: Call[T]) -> T:
        return call.answer(await asyncio.wrap_future(self._handle.send(call).answer))

    async def _ask(self, call: Call[T]) -> T:
        """Makes a call that is about no sandbox of this server."""
        return call.answer(await asyncio.wrap_future(self._handle.ask(call).answer))

    @property
    def id(self) -> Optional[str]:
        """Its id in the protocol; None for the server's first sandbox."""
        return self._handle.id

    @property
    def pid(self) -> int:
        """The process id of its server."""
        return self._handle.server.connection.pid

    @property
    def files(self) -> AsyncFiles:
        """Its files."""
        return AsyncFiles(self)

    @property
    def env(self) -> AsyncEnv:
        """Its variables."""
        return AsyncEnv(self)

    @property
    def process(self) -> AsyncProcesses:
        """Processes beside the shell, several at once."""
        return AsyncProcesses(self)

    @property
    def pty(self) -> AsyncTerminals:
        """Processes at a terminal of their own."""
        return AsyncTerminals(self)

    @property
    def saved(self) -> AsyncSaved:
        """The sandboxes in the server's store."""
        return AsyncSaved(self)

    @property
    def images(self) -> AsyncImages:
        """The images in the server's store."""
        return AsyncImages(self)

    @property
    def commands(self) -> AsyncCommands:
        """Its commands: ``commands.run`` is :meth:`run`."""
        return AsyncCommands(self)

    def __repr__(self) -> str:
        return "<AsyncSandbox>" if self._started is None else f"<AsyncSandbox {self.id or 'root'} of server {self.pid}>"

    # -- running -------------------------------------------------------------------------------------------------

    async def run(
        self,
        command: str,
        *,
        stdin: Optional[Content] = None,
        timeout: Optional[float] = None,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        contained: bool = False,
        output_file: Optional[str] = None,
        check: bool = False,
        on_stdout: Optional[Callable[[str], object]] = None,
        on_stderr: Optional[Callable[[str], object]] = None,
    ) -> RunResult:
        """Runs a script, like :meth:`Sandbox.run`. Listeners may be ``async`` functions."""
        streams = on_stdout is not None or on_stderr is not None
        call = _calls.run(command, stdin, timeout, streams, env, cwd, contained, output_file)
        result = await (self._hear(call, on_stdout, on_stderr) if streams else self._run(call))
        return result.check() if check else result

    async def python(
        self,
        code: str,
        *,
        context: Optional[str] = None,
        stdin: Optional[Content] = None,
        timeout: Optional[float] = None,
        check: bool = False,
        on_stdout: Optional[Callable[[str], object]] = None,
        on_stderr: Optional[Callable[[str], object]] = None,
    ) -> PythonResult:
        """Runs code in the sandbox's own interpreter, like :meth:`Sandbox.python`. Listeners may be ``async``
        functions.
        """
        streams = on_stdout is not None or on_stderr is not None
        call = python(code, context, stdin, timeout, streams)
        result = await (self._hear(call, on_stdout, on_stderr) if streams else self._run(call))
        if check:
            result.check()
        return result

    async def _hear(
        self,
        call: Call[T],
        on_stdout: Optional[Callable[[str], object]],
        on_stderr: Optional[Callable[[str], object]],
    ) -> T:
        """Runs a call that streams, and passes its output on."""
        listeners = {"stdout": on_stdout, "stderr": on_stderr}
        async with AsyncStream(self._handle, call) as stream:
            async for piece in stream:
                listener = listeners[piece.stream]
                heard = None if listener is None else listener(piece.data)
                if inspect.isawaitable(heard):
                    await heard
            return call.answer(stream._request.answer.result())

    async def _run(self, call: Call[T]) -> T:
        request = self._handle.send(call)
        try:
            return call.answer(await asyncio.wrap_future(request.answer))
        except BaseException:
            self._handle.abandon(request)
            raise

    def stream(
        self,
        command: str,
        *,
        stdin: Optional[Content] = None,
        timeout: Optional[float] = None,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        contained: bool = False,
        output_file: Optional[str] = None,
    ) -> AsyncStream:
        """Runs a script and returns its output as it arrives::

            async with sandbox.stream("make") as stream:
                async for piece in stream:
                    print(piece.data, end="")
            print((await stream.result()).exit_code)

        Leaving the block early cancels the command.
        """
        return AsyncStream(self._handle, _calls.run(command, stdin, timeout, True, env, cwd, contained, output_file))

    async def cancel(self) -> bool:
        """Cancels the running command; False if there is none. The command exits with 125."""
        return await self._do(_calls.cancel())

    def port(self, port: int) -> AsyncPort:
        """Returns a TCP port that a program in the sandbox listens at, or will::

        sandbox.run("python3 -m http.server 8000 > log 2>&1 &")
        print((await sandbox.port(8000).request("GET", "/")).text)
        """
        return AsyncPort(self, port)

    async def suspend(self) -> None:
        """Pauses all its processes. A running command's clock stops."""
        await self._do(_calls.suspend())

    async def resume(self) -> None:
        """Resumes them."""
        await self._do(_calls.resume())

    async def history(self) -> List[HistoryEntry]:
        """Returns the commands that were run."""
        return await self._do(_calls.history())

    async def clear_history(self) -> None:
        """Clears the history."""
        await self._do(_calls.clear_history())

    async def mount(self, path: str, files: Mapping[str, MountEntry], *, writable: bool = False) -> None:
        """Mounts these files at ``path``. If they are writable, changes stay in the sandbox."""
        await self._do(_calls.mount(path, files, writable))

    async def diff(self, path: str) -> List[OverlayChange]:
        """Returns what was changed in the overlay mounted at ``path`` (:class:`HostMount`)."""
        return await self._do(_overlays.diff(path))

    async def patch(self, path: str) -> str:
        """Returns the same as a patch for ``git apply``; files that are not text are only named."""
        return await self._do(_overlays.patch(path))

    async def apply(self, path: str, *, dry_run: bool = False) -> List[OverlayChange]:
        """Applies these changes to the directory, all of them or none, and returns them. Raises :class:`SandboxError`
        (``EBUSY``) if the directory has changed under the sandbox. ``dry_run`` only checks.
        """
        return await self._do(_overlays.apply(path, dry_run))

    # -- a sandbox is a value ------------------------------------------------------------------------------------

    @overload
    async def fork(self) -> AsyncSandbox: ...

    @overload
    async def fork(self, count: int) -> List[AsyncSandbox]: ...

    async def fork(self, count: Optional[int] = None) -> Union[AsyncSandbox, List[AsyncSandbox]]:
        """Forks the sandbox: returns a copy-on-write clone, or a list of ``count`` of them."""
        ids = await self._do(_calls.fork(1 if count is None else count))
        forks = [self._beside(Origin.FORK, id) for id in ids]
        return forks[0] if count is None else forks

    async def sibling(
        self, label: str = "", *, persistence: Optional[Persistence] = None, image: Optional[str] = None
    ) -> AsyncSandbox:
        """Creates a fresh sandbox with the same options, on the same server: saved, or from an image, if asked."""
        return self._beside(Origin.SIBLING, await self._do(_calls.create_sandbox(label, persistence, image)))

    async def siblings(self) -> List[SandboxInfo]:
        """Returns the sandboxes created by :meth:`sibling`."""
        return await self._do(_calls.list_sandboxes())

    async def snapshot(self) -> str:
        """Takes a snapshot of the sandbox and returns its id."""
        return await self._do(_calls.snapshot())

    async def restore(self, snapshot: str) -> None:
        """Restores a snapshot, with files and shell. A snapshot can be restored many times."""
        await self._do(_calls.restore(snapshot))

    async def save(self) -> int:
        """Saves the sandbox now; returns the number of the commit. Only if it has a name (``persistence``)."""
        return await self._do(_stores.save())

    async def checkout(self, commit: CommitLike) -> int:
        """Goes back to one of its commits, by number or tag; returns the number of the commit that this makes."""
        return await self._do(_stores.checkout(commit))

    @overload
    async def export_state(self) -> bytes: ...

    @overload
    async def export_state(self, *, file: str) -> None: ...

    async def export_state(self, *, file: Optional[str] = None) -> Optional[bytes]:
        """Returns the whole sandbox as one archive, or has the server write it to ``file`` in ``state_dir``."""
        if file is None:
            return await self._do(_calls.export_state())
        await self._do(_calls.export_state_to(file))
        return None

    @overload
    async def import_state(self, data: bytes) -> None: ...

    @overload
    async def import_state(self, *, file: str) -> None: ...

    async def import_state(self, data: Optional[bytes] = None, *, file: Optional[str] = None) -> None:
        """Replaces the sandbox's state by an archive's. A damaged archive is an error and changes nothing."""
        if (data is None) == (file is None):
            raise TypeError("pass either data or file")
        await self._do(_calls.import_state(data) if data is not None else _calls.import_state_from(file or ""))

    # -- the end -------------------------------------------------------------------------------------------------

    async def destroy(self) -> None:
        """Destroys this sandbox. Destroying the first one stops its server; while its forks or siblings live, that
        raises :class:`SandboxInUseError`. To stop all of them, call :meth:`close`.
        """
        if self._handle.origin is Origin.ROOT:
            self._handle.check_alone()
            return await self.close()
        if not self._handle.gone:
            await self._do(ENDINGS[self._handle.origin]())
            self._handle.note_end()

    async def kill(self) -> None:
        """Stops everything immediately: this sandbox, all others of its server, and the server."""
        await asyncio.to_thread(self._handle.server.connection.kill)

    async def close(self) -> None:
        """Stops the server and all its sandboxes, and waits until it has exited. May be called again."""
        await asyncio.to_thread(self._handle.server.close)

    async def __aenter__(self) -> AsyncSandbox:
        return await self.start()

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        try:
            if self._handle.origin is Origin.ROOT:
                await self.close()
            else:
                await self.destroy()
        except (ProtocolError, SandboxClosedError, ServerDiedError):
            # Then it is gone, which is all that was asked for.
            pass


class AsyncPort:
    """A TCP port of a sandbox, like :class:`~wardian.Port`."""

    def __init__(self, sandbox: AsyncSandbox, port: int) -> None:
        self._sandbox = sandbox
        self.number = _ports.check(port)

    async def url(self) -> str:
        """Returns where this port is served by HTTP, if the sandbox was created with ``http``."""
        return await self._sandbox._do(_ports.url(self.number))

    async def request(
        self,
        method: str,
        path: str = "/",
        *,
        headers: Optional[Mapping[str, str]] = None,
        body: Optional[Content] = None,
        timeout: Optional[float] = None,
        max_bytes: Optional[int] = None,
    ) -> PortResponse:
        """Sends an HTTP request to the port and returns the whole response."""
        seconds, most = _ports.limits(timeout, max_bytes)
        exchange = Exchange(self._sandbox._handle, self.number, seconds)
        try:
            return await asyncio.to_thread(exchange.run, method, path, headers, body, most)
        finally:
            # If this task is cancelled, the thread must not go on.
            exchange.close()


class AsyncCommands:
    """An alternative way to call a sandbox's ``run``, ``stream`` and ``cancel``."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self.run = sandbox.run
        self.stream = sandbox.stream
        self.cancel = sandbox.cancel


class AsyncFiles:
    """A sandbox's files. These calls act immediately, even while a command runs. Relative paths start from the shell's
    directory, as the last command left it.
    """

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._sandbox = sandbox

    async def read(self, path: str) -> bytes:
        """Reads a file, however long. One of up to 4 MiB is read at one moment."""
        data = bytearray()
        async for part in self.read_parts(path):
            data += part
        return bytes(data)

    async def read_parts(self, path: str) -> AsyncIterator[bytes]:
        """Reads a file part by part, for one that is too long for memory."""
        offset = 0
        while True:
            part = await self._sandbox._do(_calls.read_part(path, offset))
            offset += len(part.data)
            if part.data:
                yield part.data
            if not part.data or offset >= part.size > 0:
                return

    async def read_text(self, path: str) -> str:
        """Reads a file as text, which must be UTF-8."""
        return (await self.read(path)).decode("utf-8")

    async def write(self, path: str, content: Source, *, mode: Optional[int] = None) -> None:
        """Writes a file, and creates missing directories on the way.

        ``content`` is text, which is encoded as UTF-8, or bytes, or an open binary file or pieces of bytes, which are
        sent part by part. Up to 4 MiB are written at once or not at all. ``mode`` sets the permission bits.
        """
        offset = 0
        for part in parts(content):
            await self._sandbox._do(_calls.write_part(path, part, offset, mode))
            offset += len(part)

    async def list(self, path: str = ".", *, recursive: bool = False) -> List[FileEntry]:
        """Lists a directory, sorted by name; with ``recursive``, everything below it, by its path in it."""
        return await self._sandbox._do(_calls.list_files(path, recursive))

    async def exists(self, path: str) -> bool:
        """Returns whether there is something at a path, including a dangling link."""
        try:
            await self.stat(path)
        except SandboxError as error:
            if error.errno in ("ENOENT", "ENOTDIR"):
                return False
            raise
        return True

    async def remove(self, path: str) -> None:
        """Removes a file, or a directory recursively; the same as :meth:`rm`."""
        await self.rm(path)

    async def mkdir(self, path: str) -> None:
        """Creates a directory and missing parents."""
        await self._sandbox._do(_calls.mkdir(path))

    async def rm(self, path: str) -> None:
        """Removes a file, or a directory recursively."""
        await self._sandbox._do(_calls.rm(path))

    async def rename(self, path: str, to: str) -> None:
        """Renames a file or a directory; replaces a file that is there."""
        await self._sandbox._do(_calls.rename(path, to))

    async def copy(self, path: str, to: str) -> None:
        """Copies a file with its permissions."""
        await self._sandbox._do(_calls.copy(path, to))

    async def chmod(self, path: str, mode: int) -> None:
        """Sets permission bits."""
        await self._sandbox._do(_calls.chmod(path, mode))

    async def watch(self, path: str, *, recursive: bool = False) -> AsyncWatch:
        """Tells of what changes in a directory from now on; with ``recursive``, of everything below it."""
        box = WatchBox()
        call = _watch.watch(path, recursive)
        answer = await asyncio.wrap_future(self._sandbox._handle.send(call, watch=box).answer)
        return AsyncWatch(self._sandbox._handle, call.answer(answer), box)

    async def symlink(self, path: str, target: str) -> None:
        """Creates a symbolic link at ``path`` that leads to ``target``."""
        await self._sandbox._do(_calls.symlink(path, target))

    async def stat(self, path: str) -> FileStat:
        """Returns a file's metadata."""
        return await self._sandbox._do(_calls.stat(path))


class AsyncEnv:
    """The shell's variables. These calls wait for a command in progress."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._sandbox = sandbox

    async def get(self, name: str, default: Optional[str] = None) -> Optional[str]:
        """Returns a variable's value."""
        value = await self._sandbox._do(_calls.get_env(name))
        return default if value is None else value

    async def set(self, name: str, value: str) -> None:
        """Sets and exports a variable."""
        await self._sandbox._do(_calls.set_env(name, value))

    async def unset(self, name: str) -> None:
        """Removes a variable."""
        await self._sandbox._do(_calls.unset_env(name))

    async def all(self) -> Dict[str, str]:
        """Returns all exported variables."""
        return await self._sandbox._do(_calls.list_env())


class AsyncStream(AsyncIterator[Output]):
    """A command's output as it arrives, and then its result."""

    def __init__(self, handle: Handle, call: Call[Any]) -> None:
        # The connection must not hold on to this object, or nobody would hear that it was dropped.
        pieces, lock, changed = Pieces(), threading.Lock(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def wake(answer: object = None) -> None:
            try:
                loop.call_soon_threadsafe(changed.set)
            except RuntimeError:
                # The loop is closed: nobody listens any more.
                pass

        def put(stream: str, data: bytes) -> None:
            with lock:
                first = not pieces
                pieces.put(stream, data)
            # One that is not the first has been announced already.
            if first:
                wake()

        self._pieces = pieces
        self._lock = lock
        self._changed = changed
        self._handle = handle
        self._call = call
        self._request = handle.send(call, put)
        self._request.answer.add_done_callback(wake)

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> Output:
        while True:
            self._changed.clear()
            # Before the last look: what comes after it sets the event.
            over = self._request.answer.done()
            with self._lock:
                piece = self._pieces.take()
            if piece is not None:
                return piece
            if over:
                break
            await self._changed.wait()
        error = self._request.answer.exception()
        if error is not None:
            raise error
        raise StopAsyncIteration

    async def result(self) -> RunResult:
        """The command's result; waits for the command to finish. Drops unread pieces; the result contains them."""
        async for _ in self:
            pass
        result: RunResult = self._call.answer(self._request.answer.result())
        return result

    def close(self) -> None:
        """Cancels the command, unless it has finished."""
        self._handle.abandon(self._request)

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_request"):
            self._handle.abandon_soon(self._request)
