"""The sandbox for ordinary code: every call blocks. Threads may share a sandbox."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Type, TypeVar, Union, overload

from . import _calls, _overlays, _ports, _stores, _watch
from ._callbacks import Callbacks
from ._calls import Call
from ._handle import ENDINGS, Handle, Origin, PathLike, start
from ._overlays import OverlayChange
from ._pieces import Pieces
from ._ports import Exchange, PortResponse
from ._process_sync import Processes, Terminals
from ._store_sync import Images, Saved
from ._stores import CommitLike
from ._watch import Watch, WatchBox
from .errors import ProtocolError, SandboxClosedError, SandboxError, ServerDiedError
from .extensions import ExtensionLike
from .files import Content, MountEntry, Source, parts
from .network import NetworkLike
from .options import HostMount, Limits, Mount, Options, Persistence, Pool
from .python import PythonResult, python
from .results import FileEntry, FileStat, HistoryEntry, Output, RunResult, SandboxInfo

T = TypeVar("T")


class Sandbox:
    """A computer that cannot do damage: a shell, the Unix tools, and files in memory.

    Best used in a ``with`` statement, which closes it::

        with Sandbox(timeout=10) as sandbox:
            sandbox.run("x=1; cd /tmp")
            print(sandbox.run("echo $x; pwd").stdout)

    Args:
        timeout: the timeout of a command in seconds; 30 by default, ``math.inf`` for none.
        fs_limit_bytes: the maximum size of its files.
        limits: its other limits.
        mounts: initial files.
        host_mounts: directories of this machine.
        env: initial variables.
        extensions: functions to expose as commands, see :mod:`wardian.extensions`.
        tool_allowlist: the only programs it may start.
        pool: how many shells the server keeps warm.
        nice: 0 to 19; a higher value means a smaller share of the CPU.
        cwd: the directory in which the shell starts.
        writable_paths: absolute paths; everything outside them is read-only.
        on_kill: ``"keep"`` or ``"rollback"``: what becomes of the files when a command is killed.
        python_path: directories where Python looks for modules first.
        network: what it may reach outside, a :class:`NetworkPolicy` or what docs/network.md describes:
            ``{"allowedHosts": ["pypi.org"]}``; nothing by default.
        background_timeout: how long processes in the background may outlive their command, in seconds; 600 by
            default, ``math.inf`` for as long as the sandbox lives.
        image: the image in the store that it starts from, instead of from nothing.
        persistence: the name under which it is saved in the store, and when.
        store: the directory of the server's store, or its URL (``s3://…``), for ``image`` and ``persistence``. Several
            servers may use one.
        state_dir: the directory for ``export_state(file=…)`` and ``import_state(file=…)``.
        http: the server also serves HTTP there, so that ports have a :attr:`Port.url`: a port (0 for one that is
            free) or an address with one.
        binary: the program, if not the one bundled with this package.
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
        options = Options(
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
        self._handle = start(options, Callbacks(extensions, network), binary, state_dir, http, store)

    def _beside(self, origin: Origin, id: str) -> Sandbox:
        """Returns another sandbox of the same server."""
        sandbox = Sandbox.__new__(Sandbox)
        sandbox._handle = self._handle.beside(origin, id)
        return sandbox

    def _do(self, call: Call[T]) -> T:
        return call.answer(self._handle.send(call).answer.result())

    def _ask(self, call: Call[T]) -> T:
        """Makes a call that is about no sandbox of this server."""
        return call.answer(self._handle.ask(call).answer.result())

    @property
    def id(self) -> Optional[str]:
        """Its id in the protocol; None for the server's first sandbox."""
        return self._handle.id

    @property
    def pid(self) -> int:
        """The process id of its server."""
        return self._handle.server.connection.pid

    @property
    def files(self) -> Files:
        """Its files."""
        return Files(self)

    @property
    def env(self) -> Env:
        """Its variables."""
        return Env(self)

    @property
    def process(self) -> Processes:
        """Processes beside the shell, several at once."""
        return Processes(self)

    @property
    def pty(self) -> Terminals:
        """Processes at a terminal of their own."""
        return Terminals(self)

    @property
    def saved(self) -> Saved:
        """The sandboxes in the server's store."""
        return Saved(self)

    @property
    def images(self) -> Images:
        """The images in the server's store."""
        return Images(self)

    @property
    def commands(self) -> Commands:
        """Its commands: ``commands.run`` is :meth:`run`."""
        return Commands(self)

    def __repr__(self) -> str:
        return f"<Sandbox {self.id or 'root'} of server {self.pid}>"

    # -- running -------------------------------------------------------------------------------------------------

    def run(
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
        """Runs a script. The shell's state persists between runs: variables, functions and the directory.

        Failures, timeouts and limits are returned, not raised, unless ``check`` is true. Commands of one
        sandbox run one after the other. If this call is interrupted (Ctrl-C), so is the command.

        Args:
            command: the script, of at most ``Limits.command_bytes``.
            stdin: its standard input.
            timeout: in seconds, for this command only.
            env: variables for this command only.
            cwd: the directory for this command only.
            contained: keeps shell options (``set``, ``shopt``) and traps that it sets from outliving it; variables,
                functions and the directory stay.
            output_file: a file of the sandbox in which all output is kept, beyond all limits of the result, which says
                what became of it: :attr:`RunResult.output_file`.
            check: raises :class:`CommandError` unless it succeeds.
            on_stdout: called in this thread with each piece of output as it arrives.
            on_stderr: the same for standard error.
        """
        streams = on_stdout is not None or on_stderr is not None
        call = _calls.run(command, stdin, timeout, streams, env, cwd, contained, output_file)
        result = self._hear(call, on_stdout, on_stderr) if streams else self._run(call)
        return result.check() if check else result

    def python(
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
        """Runs code in the sandbox's own interpreter. Variables, imports and open files live from call to call::

            sandbox.python("import math; radius = 2")
            print(sandbox.python("math.pi * radius ** 2").value)

        Errors are returned, not raised, unless ``check`` is true. A call that is killed leaves the interpreter as it
        was before.

        Args:
            code: of at most ``Limits.command_bytes``.
            context: which interpreter; each has variables of its own.
            stdin: its standard input.
            timeout: in seconds, for this call only.
            check: raises :class:`CommandError` unless it succeeds.
            on_stdout: called in this thread with each piece of output as it arrives.
            on_stderr: the same for standard error.
        """
        streams = on_stdout is not None or on_stderr is not None
        call = python(code, context, stdin, timeout, streams)
        result = self._hear(call, on_stdout, on_stderr) if streams else self._run(call)
        if check:
            result.check()
        return result

    def _hear(
        self,
        call: Call[T],
        on_stdout: Optional[Callable[[str], object]],
        on_stderr: Optional[Callable[[str], object]],
    ) -> T:
        """Runs a call that streams, and passes its output on."""
        listeners = {"stdout": on_stdout, "stderr": on_stderr}
        with Stream(self._handle, call) as stream:
            for piece in stream:
                listener = listeners[piece.stream]
                if listener is not None:
                    listener(piece.data)
            return call.answer(stream._request.answer.result())

    def _run(self, call: Call[T]) -> T:
        request = self._handle.send(call)
        try:
            return call.answer(request.answer.result())
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
    ) -> Stream:
        """Runs a script and returns its output as it arrives::

            with sandbox.stream("make") as stream:
                for piece in stream:
                    print(piece.data, end="")
            print(stream.result.exit_code)

        Leaving the block early cancels the command.
        """
        return Stream(self._handle, _calls.run(command, stdin, timeout, True, env, cwd, contained, output_file))

    def cancel(self) -> bool:
        """Cancels the running command, from another thread; False if there is none. The command exits with 125."""
        return self._do(_calls.cancel())

    def port(self, port: int) -> Port:
        """Returns a TCP port that a program in the sandbox listens at, or will::

        sandbox.run("python3 -m http.server 8000 > log 2>&1 &")
        print(sandbox.port(8000).request("GET", "/").text)
        """
        return Port(self, port)

    def suspend(self) -> None:
        """Pauses all its processes. A running command's clock stops."""
        self._do(_calls.suspend())

    def resume(self) -> None:
        """Resumes them."""
        self._do(_calls.resume())

    def history(self) -> List[HistoryEntry]:
        """Returns the commands that were run."""
        return self._do(_calls.history())

    def clear_history(self) -> None:
        """Clears the history."""
        self._do(_calls.clear_history())

    def mount(self, path: str, files: Mapping[str, MountEntry], *, writable: bool = False) -> None:
        """Mounts these files at ``path``. If they are writable, changes stay in the sandbox."""
        self._do(_calls.mount(path, files, writable))

    def diff(self, path: str) -> List[OverlayChange]:
        """Returns what was changed in the overlay mounted at ``path`` (:class:`HostMount`)."""
        return self._do(_overlays.diff(path))

    def patch(self, path: str) -> str:
        """Returns the same as a patch for ``git apply``; files that are not text are only named."""
        return self._do(_overlays.patch(path))

    def apply(self, path: str, *, dry_run: bool = False) -> List[OverlayChange]:
        """Applies these changes to the directory, all of them or none, and returns them. Raises :class:`SandboxError`
        (``EBUSY``) if the directory has changed under the sandbox. ``dry_run`` only checks.
        """
        return self._do(_overlays.apply(path, dry_run))

    # -- a sandbox is a value ------------------------------------------------------------------------------------

    @overload
    def fork(self) -> Sandbox: ...

    @overload
    def fork(self, count: int) -> List[Sandbox]: ...

    def fork(self, count: Optional[int] = None) -> Union[Sandbox, List[Sandbox]]:
        """Forks the sandbox: returns a copy-on-write clone, or a list of ``count`` of them."""
        forks = [self._beside(Origin.FORK, id) for id in self._do(_calls.fork(1 if count is None else count))]
        return forks[0] if count is None else forks

    def sibling(
        self, label: str = "", *, persistence: Optional[Persistence] = None, image: Optional[str] = None
    ) -> Sandbox:
        """Creates a fresh sandbox with the same options, on the same server: saved, or from an image, if asked."""
        return self._beside(Origin.SIBLING, self._do(_calls.create_sandbox(label, persistence, image)))

    def siblings(self) -> List[SandboxInfo]:
        """Returns the sandboxes created by :meth:`sibling`."""
        return self._do(_calls.list_sandboxes())

    def snapshot(self) -> str:
        """Takes a snapshot of the sandbox and returns its id."""
        return self._do(_calls.snapshot())

    def restore(self, snapshot: str) -> None:
        """Restores a snapshot, with files and shell. A snapshot can be restored many times."""
        self._do(_calls.restore(snapshot))

    def save(self) -> int:
        """Saves the sandbox now; returns the number of the commit. Only if it has a name (``persistence``)."""
        return self._do(_stores.save())

    def checkout(self, commit: CommitLike) -> int:
        """Goes back to one of its commits, by number or tag; returns the number of the commit that this makes."""
        return self._do(_stores.checkout(commit))

    @overload
    def export_state(self) -> bytes: ...

    @overload
    def export_state(self, *, file: str) -> None: ...

    def export_state(self, *, file: Optional[str] = None) -> Optional[bytes]:
        """Returns the whole sandbox as one archive, or has the server write it to ``file`` in ``state_dir``."""
        return self._do(_calls.export_state()) if file is None else self._do(_calls.export_state_to(file))

    @overload
    def import_state(self, data: bytes) -> None: ...

    @overload
    def import_state(self, *, file: str) -> None: ...

    def import_state(self, data: Optional[bytes] = None, *, file: Optional[str] = None) -> None:
        """Replaces the sandbox's state by an archive's. A damaged archive is an error and changes nothing."""
        if (data is None) == (file is None):
            raise TypeError("pass either data or file")
        self._do(_calls.import_state(data) if data is not None else _calls.import_state_from(file or ""))

    # -- the end -------------------------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Destroys this sandbox. Destroying the first one stops its server; while its forks or siblings live, that
        raises :class:`SandboxInUseError`. To stop all of them, call :meth:`close`.
        """
        if self._handle.origin is Origin.ROOT:
            self._handle.check_alone()
            return self.close()
        if not self._handle.gone:
            self._do(ENDINGS[self._handle.origin]())
            self._handle.note_end()

    def kill(self) -> None:
        """Stops everything immediately: this sandbox, all others of its server, and the server."""
        self._handle.server.connection.kill()

    def close(self) -> None:
        """Stops the server and all its sandboxes, and waits until it has exited. May be called again."""
        self._handle.server.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        try:
            if self._handle.origin is Origin.ROOT:
                self.close()
            else:
                self.destroy()
        except (ProtocolError, SandboxClosedError, ServerDiedError):
            # Then it is gone, which is all that was asked for.
            pass


class Port:
    """A TCP port of a sandbox."""

    def __init__(self, sandbox: Sandbox, port: int) -> None:
        self._sandbox = sandbox
        self.number = _ports.check(port)

    @property
    def url(self) -> str:
        """Where this port is served by HTTP, if the sandbox was created with ``http``; anyone who knows it can reach
        the port. Raises :class:`SandboxError` (``ENOTSUP``) otherwise: :meth:`request` needs no HTTP.
        """
        return self._sandbox._do(_ports.url(self.number))

    def request(
        self,
        method: str,
        path: str = "/",
        *,
        headers: Optional[Mapping[str, str]] = None,
        body: Optional[Content] = None,
        timeout: Optional[float] = None,
        max_bytes: Optional[int] = None,
    ) -> PortResponse:
        """Sends an HTTP request to the port and returns the whole response.

        Args:
            method: such as ``"GET"``.
            path: with its query.
            headers: further fields.
            body: text, which is encoded as UTF-8, or bytes.
            timeout: for all of it, in seconds; 30 by default.
            max_bytes: the longest body to accept; 64 MiB by default.
        """
        seconds, most = _ports.limits(timeout, max_bytes)
        return Exchange(self._sandbox._handle, self.number, seconds).run(method, path, headers, body, most)


class Commands:
    """An alternative way to call a sandbox's ``run``, ``stream`` and ``cancel``."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.run = sandbox.run
        self.stream = sandbox.stream
        self.cancel = sandbox.cancel


class Files:
    """A sandbox's files. These calls act immediately, even while a command runs. Relative paths start from the shell's
    directory, as the last command left it.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def read(self, path: str) -> bytes:
        """Reads a file, however long. One of up to 4 MiB is read at one moment."""
        data = bytearray()
        for part in self.read_parts(path):
            data += part
        return bytes(data)

    def read_parts(self, path: str) -> Iterator[bytes]:
        """Reads a file part by part, for one that is too long for memory."""
        offset = 0
        while True:
            part = self._sandbox._do(_calls.read_part(path, offset))
            offset += len(part.data)
            if part.data:
                yield part.data
            if not part.data or offset >= part.size > 0:
                return

    def read_text(self, path: str) -> str:
        """Reads a file as text, which must be UTF-8."""
        return self.read(path).decode("utf-8")

    def write(self, path: str, content: Source, *, mode: Optional[int] = None) -> None:
        """Writes a file, and creates missing directories on the way.

        ``content`` is text, which is encoded as UTF-8, or bytes, or an open binary file or pieces of bytes, which are
        sent part by part. Up to 4 MiB are written at once or not at all. ``mode`` sets the permission bits.
        """
        offset = 0
        for part in parts(content):
            self._sandbox._do(_calls.write_part(path, part, offset, mode))
            offset += len(part)

    def list(self, path: str = ".", *, recursive: bool = False) -> List[FileEntry]:
        """Lists a directory, sorted by name; with ``recursive``, everything below it, by its path in it."""
        return self._sandbox._do(_calls.list_files(path, recursive))

    def exists(self, path: str) -> bool:
        """Returns whether there is something at a path, including a dangling link."""
        try:
            self.stat(path)
        except SandboxError as error:
            if error.errno in ("ENOENT", "ENOTDIR"):
                return False
            raise
        return True

    def remove(self, path: str) -> None:
        """Removes a file, or a directory recursively; the same as :meth:`rm`."""
        self.rm(path)

    def mkdir(self, path: str) -> None:
        """Creates a directory and missing parents."""
        self._sandbox._do(_calls.mkdir(path))

    def rm(self, path: str) -> None:
        """Removes a file, or a directory recursively."""
        self._sandbox._do(_calls.rm(path))

    def rename(self, path: str, to: str) -> None:
        """Renames a file or a directory; replaces a file that is there."""
        self._sandbox._do(_calls.rename(path, to))

    def copy(self, path: str, to: str) -> None:
        """Copies a file with its permissions."""
        self._sandbox._do(_calls.copy(path, to))

    def chmod(self, path: str, mode: int) -> None:
        """Sets permission bits."""
        self._sandbox._do(_calls.chmod(path, mode))

    def watch(self, path: str, *, recursive: bool = False) -> Watch:
        """Tells of what changes in a directory from now on; with ``recursive``, of everything below it."""
        box = WatchBox()
        call = _watch.watch(path, recursive)
        answer = self._sandbox._handle.send(call, watch=box).answer.result()
        return Watch(self._sandbox._handle, call.answer(answer), box)

    def symlink(self, path: str, target: str) -> None:
        """Creates a symbolic link at ``path`` that leads to ``target``."""
        self._sandbox._do(_calls.symlink(path, target))

    def stat(self, path: str) -> FileStat:
        """Returns a file's metadata."""
        return self._sandbox._do(_calls.stat(path))


class Env(Mapping[str, str]):
    """The shell's variables: ``env["NAME"] = "value"``, ``dict(env)``. Listing them lists the exported ones; others
    can be read by name. These calls wait for a command in progress.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    @overload
    def get(self, name: str) -> Optional[str]: ...

    @overload
    def get(self, name: str, default: T) -> Union[str, T]: ...

    def get(self, name: str, default: object = None) -> object:
        """Returns a variable's value."""
        value = self._sandbox._do(_calls.get_env(name))
        return default if value is None else value

    def unset(self, name: str) -> None:
        """Removes a variable."""
        self._sandbox._do(_calls.unset_env(name))

    def set(self, name: str, value: str) -> None:
        """Sets and exports a variable."""
        self._sandbox._do(_calls.set_env(name, value))

    def all(self) -> Dict[str, str]:
        """Returns all exported variables."""
        return self._sandbox._do(_calls.list_env())

    def __getitem__(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: str) -> None:
        self.set(name, value)

    def __iter__(self) -> Iterator[str]:
        return iter(self.all())

    def __len__(self) -> int:
        return len(self.all())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None


class Stream(Iterator[Output]):
    """A command's output as it arrives, and then its result. Not thread-safe."""

    def __init__(self, handle: Handle, call: Call[Any]) -> None:
        # The connection must not hold on to this object, or nobody would hear that it was dropped.
        pieces, changed = Pieces(), threading.Condition()

        def put(stream: str, data: bytes) -> None:
            with changed:
                pieces.put(stream, data)
                changed.notify()

        def wake(answer: object) -> None:
            with changed:
                changed.notify()

        self._pieces = pieces
        self._changed = changed
        self._handle = handle
        self._call = call
        self._request = handle.send(call, put)
        self._request.answer.add_done_callback(wake)

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Output:
        with self._changed:
            piece = self._pieces.take()
            while piece is None and not self._request.answer.done():
                self._changed.wait()
                piece = self._pieces.take()
        if piece is not None:
            return piece
        error = self._request.answer.exception()
        if error is not None:
            raise error
        raise StopIteration

    @property
    def result(self) -> RunResult:
        """The command's result; waits for the command to finish. Drops unread pieces; the result contains them."""
        for _ in self:
            pass
        result: RunResult = self._call.answer(self._request.answer.result())
        return result

    def close(self) -> None:
        """Cancels the command, unless it has finished."""
        self._handle.abandon(self._request)

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_request"):
            self._handle.abandon_soon(self._request)
