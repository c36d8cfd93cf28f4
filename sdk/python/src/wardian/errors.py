"""Everything that can go wrong, one class for each thing a caller may want to do about it.

A command that fails, times out or runs into a limit is not among them: that is a :class:`~wardian.RunResult`, unless it
was run with ``check=True``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from .results import RunResult


class WardianError(Exception):
    """The base of them all."""


class SandboxError(WardianError):
    """The sandbox said no: the file is not there, the disk is full, and the like."""

    def __init__(self, message: str, errno: Optional[str] = None) -> None:
        super().__init__(message)
        #: The name of the errno, such as ``"ENOENT"``, where there is one.
        self.errno = errno


class InvalidRequestError(WardianError):
    """The server does not take this request: an option it does not know, a sandbox that is gone, a cap reached."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        #: The JSON-RPC code.
        self.code = code


class RequestTooLargeError(WardianError):
    """A request does not fit into one line of the protocol (:attr:`Limits.rpc_bytes`). Nothing was sent."""


class ServerFaultError(WardianError):
    """Something broke in the server, and it says what. It lives on."""


class ServerDiedError(WardianError):
    """The server ended while it was needed, and all its sandboxes with it."""


class ProtocolError(WardianError):
    """The server said what is not in the protocol. It has been ended, for nothing it says can be relied on."""


class SandboxClosedError(WardianError):
    """The sandbox, or the one it was made from, has been closed."""


class BinaryNotFoundError(WardianError):
    """The program ``wardian`` is nowhere to be found."""


class CommandError(WardianError):
    """A command that was to succeed (``check=True``) did not."""

    def __init__(self, result: RunResult) -> None:
        super().__init__(result.describe())
        #: What came of it, output included.
        self.result = result


class CommandTimeoutError(CommandError):
    """A command that was to succeed did not end in time."""
