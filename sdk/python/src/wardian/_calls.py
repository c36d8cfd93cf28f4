"""Each method of the protocol as a value: what to send, and how to read the response.

:class:`~wardian.Sandbox` and :class:`~wardian.AsyncSandbox` differ only in how they wait; what they have in
common is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Generic, List, Mapping, Optional, Type, TypeVar, Union

from .errors import ProtocolError
from .files import PART, Content, MountEntry, decode, encode, encode_all
from .options import Persistence, milliseconds
from .results import FileEntry, FileStat, HistoryEntry, OutputFile, RunResult, SandboxInfo, Truncated

T = TypeVar("T")


@dataclass(frozen=True)
class Call(Generic[T]):
    """A method, its params, and how to read its response."""

    method: str
    params: Dict[str, Any]
    read: Callable[[Any], T]

    def answer(self, result: Any) -> T:
        """Reads the server's response; raises :class:`ProtocolError` if it is invalid."""
        try:
            return self.read(result)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            shown = repr(result)[:200]
            raise ProtocolError(f"unexpected response to {self.method}: {shown} ({error!r})") from None


def run(
    command: str,
    stdin: Optional[Content],
    timeout: Optional[float],
    stream: bool,
    env: Optional[Mapping[str, str]] = None,
    cwd: Optional[str] = None,
    contained: bool = False,
    output_file: Optional[str] = None,
) -> Call[RunResult]:
    """Runs a command. Its output is sent as base64, so that bytes that are not text are preserved."""
    params: Dict[str, Any] = {"command": command, "encoding": "base64", "output": True}
    if stdin is not None:
        params["stdin"] = encode(stdin)
    if timeout is not None:
        params["timeoutMs"] = milliseconds(timeout)
    if env:
        params["env"] = dict(env)
    if cwd is not None:
        params["cwd"] = cwd
    if stream:
        params["stream"] = True
    if contained:
        params["contained"] = True
    if output_file is not None:
        params["outputFile"] = output_file
    return Call("run", params, _run_result)


def _run_result(result: Any) -> RunResult:
    truncated = result.get("truncated") or {}
    stdout, stderr = decode(_get(result, "stdout", str)), decode(_get(result, "stderr", str))
    return RunResult(
        exit_code=_get(result, "exitCode", int),
        stdout_bytes=stdout,
        stderr_bytes=stderr,
        execution_time_ms=_number(result, "executionTimeMs"),
        truncated=Truncated(bool(truncated.get("stdout")), bool(truncated.get("stderr"))),
        error_class=_get(result, "errorClass", str) if result.get("errorClass") is not None else None,
        limit=_get(result, "limit", str) if result.get("limit") is not None else None,
        waited_ms=_number(result, "waitedMs") if result.get("waitedMs") is not None else 0.0,
        # Servers of other makes do not know it.
        output_bytes=decode(_get(result, "output", str)) if "output" in result else stdout + stderr,
        output_file=_output_file(result.get("outputFile")),
    )


def _output_file(result: Any) -> Optional[OutputFile]:
    if result is None:
        return None
    error = _get(result, "error", str) if result.get("error") is not None else None
    return OutputFile(_get(result, "path", str), _get(result, "bytes", int), error)


def cancel() -> Call[bool]:
    """Cancels the running command."""
    return Call("cancel", {}, lambda result: _get(result, "cancelled", bool))


@dataclass(frozen=True)
class Part:
    """Part of a file, and the size of all of it."""

    data: bytes
    size: int


def read_part(path: str, offset: int, length: int = PART) -> Call[Part]:
    """Reads part of a file."""

    def read(result: Any) -> Part:
        return Part(decode(_get(result, "data", str)), _get(result, "size", int))

    return Call("files.read", {"path": path, "offset": offset, "length": length}, read)


def write_part(path: str, data: bytes, offset: int, mode: Optional[int]) -> Call[None]:
    """Writes a file, from an offset on."""
    params: Dict[str, Any] = {"path": path, "data": encode(data), "parents": True}
    if offset:
        params["offset"] = offset
    if mode is not None:
        params["mode"] = mode
    return _order("files.write", **params)


def list_files(path: str, recursive: bool) -> Call[List[FileEntry]]:
    """Lists a directory."""

    def read(result: Any) -> List[FileEntry]:
        entries = _get(result, "entries", list)
        return [FileEntry(_get(e, "name", str), _get(e, "type", str), _get(e, "size", int)) for e in entries]

    params = {"path": path, "recursive": True} if recursive else {"path": path}
    return Call("files.list", params, read)


def mkdir(path: str) -> Call[None]:
    """Creates a directory and its parents."""
    return _order("files.mkdir", path=path)


def rm(path: str) -> Call[None]:
    """Removes a file or a directory."""
    return _order("files.rm", path=path)


def rename(path: str, to: str) -> Call[None]:
    """Renames a file or a directory."""
    return _order("files.rename", path=path, to=to)


def copy(path: str, to: str) -> Call[None]:
    """Copies a file."""
    return _order("files.copy", path=path, to=to)


def chmod(path: str, mode: int) -> Call[None]:
    """Sets permission bits."""
    return _order("files.chmod", path=path, mode=mode)


def symlink(path: str, target: str) -> Call[None]:
    """Creates a link."""
    return _order("files.symlink", path=path, target=target)


def unset_env(name: str) -> Call[None]:
    """Removes a variable."""
    return _order("env.unset", name=name)


def stat(path: str) -> Call[FileStat]:
    """Returns a file's metadata."""

    def read(result: Any) -> FileStat:
        return FileStat(
            name=_get(result, "name", str),
            type=_get(result, "type", str),
            size=_get(result, "size", int),
            mode=_get(result, "mode", int),
            mtime_ms=_number(result, "mtimeMs"),
        )

    return Call("files.stat", {"path": path}, read)


def set_env(name: str, value: str) -> Call[None]:
    """Sets and exports a variable."""
    return _order("env.set", name=name, value=value)


def get_env(name: str) -> Call[Optional[str]]:
    """Returns a variable's value."""
    return Call(
        "env.get", {"name": name}, lambda result: None if result["value"] is None else _get(result, "value", str)
    )


def list_env() -> Call[Dict[str, str]]:
    """Returns all exported variables."""

    def read(result: Any) -> Dict[str, str]:
        variables = _get(result, "variables", dict)
        return {name: _get(variables, name, str) for name in variables}

    return Call("env.list", {}, read)


def mount(path: str, files: Mapping[str, MountEntry], writable: bool) -> Call[None]:
    """Mounts files at a path."""
    return _order("mount", path=path, files=encode_all(files), writable=writable)


def snapshot() -> Call[str]:
    """Takes a snapshot of a sandbox."""
    return Call("snapshot.create", {}, lambda result: _get(result, "id", str))


def restore(snapshot: str) -> Call[None]:
    """Restores a snapshot."""
    return _order("snapshot.restore", id=snapshot)


def fork(count: int) -> Call[List[str]]:
    """Forks the sandbox; returns the new ids."""
    if count < 1:
        raise ValueError(f"cannot fork {count} times")

    def read(result: Any) -> List[str]:
        ids = _get(result, "sandboxIds", list)
        if len(ids) != count or not all(isinstance(one, str) for one in ids):
            raise ValueError(f"expected {count} ids")
        return ids

    return Call("sandbox.fork", {"count": count}, read)


def destroy() -> Call[None]:
    """Destroys a fork."""
    return _order("sandbox.destroy")


def create_sandbox(label: str, persistence: Optional[Persistence], image: Optional[str]) -> Call[str]:
    """Creates a fresh sandbox; returns its id."""
    params: Dict[str, Any] = {"label": label}
    if persistence is not None:
        params["persistence"] = persistence.params()
    if image is not None:
        params["image"] = image
    return Call("sandbox.create", params, lambda result: _get(result, "sandboxId", str))


def list_sandboxes() -> Call[List[SandboxInfo]]:
    """Lists the sandboxes."""

    def read(result: Any) -> List[SandboxInfo]:
        return [
            SandboxInfo(_get(one, "sandboxId", str), one.get("label") or "", _get(one, "createdAt", str))
            for one in result
        ]

    return Call("sandbox.list", {}, read)


def remove_sandbox() -> Call[None]:
    """Destroys a sandbox created by ``sandbox.create``."""
    return _order("sandbox.remove")


def suspend() -> Call[None]:
    """Pauses all processes."""
    return _order("sandbox.suspend")


def resume() -> Call[None]:
    """Resumes them."""
    return _order("sandbox.resume")


def export_state() -> Call[bytes]:
    """Returns the whole sandbox as an archive."""
    return Call("persistence.export", {}, lambda result: decode(_get(result, "data", str)))


def export_state_to(file: str) -> Call[None]:
    """Does the same, to the server's state directory."""
    return _order("persistence.export", file=file)


def import_state(data: bytes) -> Call[None]:
    """Replaces the sandbox's state by an archive's."""
    return _order("persistence.import", data=encode(data))


def import_state_from(file: str) -> Call[None]:
    """Does the same, from the server's state directory."""
    return _order("persistence.import", file=file)


def history() -> Call[List[HistoryEntry]]:
    """Returns the commands that were run."""

    def read(result: Any) -> List[HistoryEntry]:
        entries = _get(result, "entries", list)
        return [HistoryEntry(_get(e, "index", int), _get(e, "command", str), e["timestamp"]) for e in entries]

    return Call("shell.history.list", {}, read)


def clear_history() -> Call[None]:
    """Clears the history."""
    return _order("shell.history.clear")


def _order(method: str, **params: Any) -> Call[None]:
    """A call whose response only confirms that it was done."""
    return Call(method, params, lambda result: None)


def _get(result: Any, name: str, kind: Type[T]) -> T:
    value = result[name]
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {value!r}")
    return value


def _number(result: Any, name: str) -> float:
    value: Union[int, float] = result[name]
    if not isinstance(value, (int, float)):
        raise TypeError(f"{name} is {value!r}")
    return float(value)
