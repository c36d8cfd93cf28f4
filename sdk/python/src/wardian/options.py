"""The options of a new sandbox. Anything left out has the server's default."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from .files import MountEntry, encode_all
from .network import NetworkLike, NetworkPolicy

#: The largest line a server can be told to take, and what the SDK tells it: the client is not the one to guard against.
_RPC_BYTES = 128 << 20


@dataclass(frozen=True)
class Limits:
    """The limits of a sandbox. None means the default."""

    stdout_bytes: Optional[int] = None
    stderr_bytes: Optional[int] = None
    command_bytes: Optional[int] = None
    file_count: Optional[int] = None
    rpc_bytes: Optional[int] = None
    memory_bytes: Optional[int] = None
    processes: Optional[int] = None
    open_files: Optional[int] = None

    def params(self) -> Dict[str, int]:
        """Returns their protocol representation."""
        named = {
            "stdoutBytes": self.stdout_bytes,
            "stderrBytes": self.stderr_bytes,
            "commandBytes": self.command_bytes,
            "fileCount": self.file_count,
            "rpcBytes": _RPC_BYTES if self.rpc_bytes is None else self.rpc_bytes,
            "memoryBytes": self.memory_bytes,
            "processes": self.processes,
            "openFiles": self.open_files,
        }
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True)
class Mount:
    """Files to mount at a path. They are in memory; :func:`~wardian.files.read_directory` reads them from the host."""

    path: str
    #: Contents by name; a name may have directories in it. Text and bytes are files that everybody may read;
    #: :class:`~wardian.File` has a mode, :class:`~wardian.Directory` and :class:`~wardian.Symlink` are what they say.
    files: Mapping[str, MountEntry]
    #: Whether the sandbox may change what it sees. What it writes stays in the sandbox.
    writable: bool = False

    def params(self) -> Dict[str, Any]:
        """Returns its protocol representation."""
        return {"path": self.path, "files": encode_all(self.files), "writable": self.writable}


@dataclass(frozen=True)
class HostMount:
    """A directory of this machine to mount at a path."""

    #: The directory; symbolic links in its path are followed before the server sees it.
    host: Union[str, "os.PathLike[str]"]
    #: Where it is in the sandbox.
    path: str
    #: ``"ro"``: nothing can be changed; ``"rw"``: everything can; ``"overlay"``: changes stay in the sandbox until
    #: they are applied.
    mode: str = "ro"

    def params(self) -> Dict[str, str]:
        """Returns its protocol representation."""
        return {"host": os.path.realpath(self.host), "path": self.path, "mode": self.mode}

    def flags(self) -> List[str]:
        """Returns what a server of its own has to be told for it."""
        return ["--allow-mount", f"{os.path.realpath(self.host)}:{'ro' if self.mode == 'ro' else 'rw'}"]


@dataclass(frozen=True)
class Pool:
    """How many shells the server keeps warm."""

    min_size: int
    max_size: int


@dataclass(frozen=True)
class Persistence:
    """Under which name a sandbox is saved in the server's store, and when."""

    name: str
    #: ``"persistent"``: after every command and call; ``"session"``: by :meth:`Sandbox.save` and at its end.
    mode: str = "persistent"
    #: How many seconds after a change it may be saved; None: before the call returns.
    autosave: Optional[float] = None
    #: After how many seconds without a call it leaves memory, until the next one; None: as the server does it.
    idle: Optional[float] = None

    def params(self) -> Dict[str, Any]:
        """Returns its protocol representation."""
        params: Dict[str, Any] = {"name": self.name, "mode": self.mode}
        if self.autosave is not None:
            params["durability"] = "interval"
            params["autosaveMs"] = milliseconds(self.autosave)
        if self.idle is not None:
            params["idleSeconds"] = math.ceil(self.idle)
        return params


@dataclass(frozen=True)
class Options:
    """The arguments of ``Sandbox(…)`` that the server needs."""

    timeout: Optional[float]
    fs_limit_bytes: Optional[int]
    limits: Limits
    mounts: Sequence[Mount]
    env: Mapping[str, str]
    tool_allowlist: Optional[Sequence[str]]
    pool: Optional[Pool]
    nice: Optional[int]
    cwd: Optional[str] = None
    writable_paths: Optional[Sequence[str]] = None
    on_kill: Optional[str] = None
    python_path: Optional[Sequence[str]] = None
    network: Optional[NetworkLike] = None
    background_timeout: Optional[float] = None
    image: Optional[str] = None
    persistence: Optional[Persistence] = None
    host_mounts: Sequence[HostMount] = ()

    def params(self, extensions: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
        """Returns the params of ``create``."""
        if not isinstance(self.limits, Limits):
            raise TypeError(f"limits must be a Limits, as in Limits(memory_bytes=…), not {self.limits!r}")
        params: Dict[str, Any] = {"limits": self.limits.params()}
        if self.timeout is not None:
            params["timeoutMs"] = milliseconds(self.timeout)
        if self.background_timeout is not None:
            params["backgroundTimeoutMs"] = milliseconds(self.background_timeout)
        if self.fs_limit_bytes is not None:
            params["fsLimitBytes"] = self.fs_limit_bytes
        if self.mounts:
            params["mounts"] = [mount.params() for mount in self.mounts]
        if self.host_mounts:
            params["hostMounts"] = [mount.params() for mount in self.host_mounts]
        if self.env:
            params["env"] = dict(self.env)
        if extensions:
            params["extensions"] = list(extensions)
        if self.tool_allowlist is not None:
            params["security"] = {"toolAllowlist": list(self.tool_allowlist)}
        if self.pool is not None:
            params["pool"] = {"minSize": self.pool.min_size, "maxSize": self.pool.max_size}
        if self.nice is not None:
            params["nice"] = self.nice
        if self.cwd is not None:
            params["cwd"] = self.cwd
        if self.writable_paths is not None:
            params["writablePaths"] = list(self.writable_paths)
        if self.on_kill is not None:
            params["onKill"] = self.on_kill
        if self.python_path is not None:
            params["pythonPath"] = list(self.python_path)
        if self.network is not None:
            network = self.network
            params["network"] = network.params() if isinstance(network, NetworkPolicy) else dict(network)
        if self.image is not None:
            params["image"] = self.image
        if self.persistence is not None:
            params["persistence"] = self.persistence.params()
        return params


def milliseconds(seconds: float) -> int:
    """Converts a timeout for the protocol: whole milliseconds, and zero for none."""
    if not seconds > 0:
        raise ValueError(f"a timeout is a positive number of seconds, not {seconds!r}")
    return 0 if math.isinf(seconds) else math.ceil(seconds * 1000)
