"""A sandbox for AI agents: a shell, Unix tools and files, all of it in memory.

::

    from wardian import Sandbox

    with Sandbox() as sandbox:
        sandbox.files.write("/tmp/words", "pear\\napple\\n")
        print(sandbox.run("sort /tmp/words").stdout)

:class:`Sandbox` has blocking calls, :class:`AsyncSandbox` is for asyncio. :mod:`wardian.tools` makes a sandbox a
tool for a language model, :mod:`wardian.extensions` exposes your functions as commands in a sandbox.
"""

from ._async import AsyncPort, AsyncSandbox, AsyncStream
from ._overlays import OverlayChange
from ._ports import PortResponse
from ._process import ProcessInfo, ProcessResult
from ._process_async import AsyncProcess
from ._process_sync import Process
from ._sync import Port, Sandbox, Stream
from ._watch import AsyncWatch, Watch, WatchEvent
from .errors import (
    BinaryNotFoundError,
    CommandError,
    CommandTimeoutError,
    InvalidRequestError,
    ProtocolError,
    RequestTooLargeError,
    SandboxClosedError,
    SandboxError,
    SandboxInUseError,
    ServerDiedError,
    ServerFaultError,
    WardianError,
)
from .extensions import Extension, ExtensionResult
from .files import Directory, File, Symlink, read_directory
from .network import NetworkAnswer, NetworkDenial, NetworkPolicy, NetworkRequest
from .options import HostMount, Limits, Mount, Persistence, Pool
from .python import PythonFailure, PythonResult, PythonValue
from .results import (
    Change,
    Commit,
    FileEntry,
    FileStat,
    HistoryEntry,
    ImageInfo,
    Output,
    OutputFile,
    RunResult,
    SandboxInfo,
    SavedSandbox,
    Truncated,
)

__version__ = "0.1.0"

__all__ = [
    "AsyncPort",
    "AsyncProcess",
    "AsyncSandbox",
    "AsyncStream",
    "AsyncWatch",
    "BinaryNotFoundError",
    "Change",
    "CommandError",
    "CommandTimeoutError",
    "Commit",
    "Directory",
    "Extension",
    "ExtensionResult",
    "File",
    "FileEntry",
    "FileStat",
    "HistoryEntry",
    "HostMount",
    "ImageInfo",
    "InvalidRequestError",
    "Limits",
    "Mount",
    "NetworkAnswer",
    "NetworkDenial",
    "NetworkPolicy",
    "NetworkRequest",
    "Output",
    "OutputFile",
    "OverlayChange",
    "Persistence",
    "Pool",
    "Port",
    "PortResponse",
    "Process",
    "ProcessInfo",
    "ProcessResult",
    "ProtocolError",
    "PythonFailure",
    "PythonResult",
    "PythonValue",
    "RequestTooLargeError",
    "RunResult",
    "Sandbox",
    "SandboxClosedError",
    "SandboxError",
    "SandboxInUseError",
    "SandboxInfo",
    "SavedSandbox",
    "ServerDiedError",
    "ServerFaultError",
    "Stream",
    "Symlink",
    "Truncated",
    "WardianError",
    "Watch",
    "WatchEvent",
    "read_directory",
]
