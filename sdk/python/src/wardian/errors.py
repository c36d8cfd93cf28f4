"""The exceptions of the package, one class for each way a caller may want to react.

A command that fails, times out or hits a limit returns a :class:`~wardian.RunResult`; it does not raise unless it was
run with ``check=True``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from .results import RunResult


class WardianError(Exception):
    """The base class of all exceptions."""


class SandboxError(WardianError):
    """An operation in the sandbox failed: the file does not exist, the disk is full, and so on."""

    def __init__(self, message: str, errno: Optional[str] = None) -> None:
        super().__init__(message)
        #: The name of the errno, such as ``"ENOENT"``, if there is one.
        self.errno = errno


class InvalidRequestError(WardianError):
    """The server rejected the request: an unknown option, a sandbox that is gone, a limit reached."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        #: The JSON-RPC code.
        self.code = code


class RequestTooLargeError(WardianError):
    """A request does not fit into one line of the protocol (:attr:`Limits.rpc_bytes`). Nothing was sent."""


class ServerFaultError(WardianError):
    """An internal error in the server, with its message. The server keeps running."""


class ServerDiedError(WardianError):
    """The server died, and all its sandboxes with it."""


class ProtocolError(WardianError):
    """The server violated the protocol. It has been killed, because its responses can no longer be trusted."""


class SandboxClosedError(WardianError):
    """The sandbox, or the one it was created from, has been closed."""


class SandboxInUseError(WardianError):
    """The first sandbox of a server cannot be destroyed while its forks and siblings live on that server."""


class BinaryNotFoundError(WardianError):
    """The ``wardian`` program was not found."""


class CommandError(WardianError):
    """A command run with ``check=True`` failed."""

    def __init__(self, result: RunResult) -> None:
        super().__init__(result.describe())
        #: What came of it, output included.
        self.result = result


class CommandTimeoutError(CommandError):
    """A command run with ``check=True`` timed out."""
