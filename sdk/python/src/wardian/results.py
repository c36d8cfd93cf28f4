"""The results of calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from .errors import CommandError, CommandTimeoutError

#: How much of standard error an exception shows.
_SHOWN = 2000


@dataclass(frozen=True)
class Truncated:
    """Which output was longer than its limit."""

    stdout: bool = False
    stderr: bool = False

    def __bool__(self) -> bool:
        return self.stdout or self.stderr


@dataclass(frozen=True)
class OutputFile:
    """A file of the sandbox with the output of a run."""

    #: Its absolute path.
    path: str
    #: How many bytes of the output it has.
    bytes: int
    #: Why the rest is not in it, such as ``"ENOSPC"``; None if it has everything.
    error: Optional[str] = None


@dataclass(frozen=True)
class RunResult:
    """The result of a command."""

    #: The script's exit code; 124 after a timeout, 125 when it was cancelled.
    exit_code: int
    #: Standard output, up to ``Limits.stdout_bytes``, as it was written.
    stdout_bytes: bytes
    #: Standard error, up to ``Limits.stderr_bytes``.
    stderr_bytes: bytes
    #: How long it ran.
    execution_time_ms: float
    #: Which output was cut.
    truncated: Truncated = Truncated()
    #: ``TIMEOUT``, ``CANCELLED``, ``LIMIT_EXCEEDED`` or ``CAPABILITY_DENIED``, where one applies.
    error_class: Optional[str] = None
    #: The limit that ended a process, or else the first it ran into, such as ``"stdoutBytes"``: where this is None, no
    #: limit changed the result.
    limit: Optional[str] = None
    #: How long of that it waited for programs that ship with Wardian to be compiled, once per machine. It does not
    #: count against the timeout.
    waited_ms: float = 0.0
    #: Both streams, in the order in which they were written, each up to its limit. Where one was cut, a line says so.
    output_bytes: bytes = b""
    #: Where all of its output is, if ``output_file`` was given.
    output_file: Optional[OutputFile] = None

    @property
    def output(self) -> str:
        """Both streams in order, as text; bytes that are not UTF-8 become U+FFFD."""
        return self.output_bytes.decode("utf-8", "replace")

    @property
    def stdout(self) -> str:
        """Standard output as text; bytes that are not UTF-8 become U+FFFD."""
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """Standard error as text; bytes that are not UTF-8 become U+FFFD."""
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def ok(self) -> bool:
        """Whether it exited with 0, in time and with nothing refused."""
        return self.exit_code == 0 and self.error_class is None

    @property
    def timed_out(self) -> bool:
        """Whether it timed out."""
        return self.error_class == "TIMEOUT"

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled by ``cancel()``."""
        return self.error_class == "CANCELLED"

    def check(self) -> RunResult:
        """Returns itself if it is :attr:`ok`; else raises :class:`CommandError` (:class:`CommandTimeoutError`)."""
        if self.ok:
            return self
        raise CommandTimeoutError(self) if self.timed_out else CommandError(self)

    def describe(self) -> str:
        """Returns what happened, in one line, and the end of standard error."""
        why = f", {self.error_class}" if self.error_class else ""
        what = f"the command exited with {self.exit_code}{why}"
        said = self.stderr.strip()
        if len(said) > _SHOWN:
            said = "…" + said[-_SHOWN:]
        return f"{what}: {said}" if said else what


@dataclass(frozen=True)
class Output:
    """A piece of output."""

    #: ``"stdout"`` or ``"stderr"``; ``"pty"`` for what a process writes to its terminal.
    stream: str
    #: Never split inside a character, if it is a command's.
    data_bytes: bytes

    @property
    def data(self) -> str:
        """The piece as text; bytes that are not UTF-8 become U+FFFD."""
        return self.data_bytes.decode("utf-8", "replace")


@dataclass(frozen=True)
class FileEntry:
    """An entry of a directory."""

    name: str
    #: ``"file"``, ``"dir"`` or ``"symlink"``.
    type: str
    size: int


@dataclass(frozen=True)
class FileStat:
    """A file's metadata."""

    name: str
    #: ``"file"``, ``"dir"`` or ``"symlink"``.
    type: str
    size: int
    #: The permission bits.
    mode: int
    #: When it was last written, in milliseconds since 1970.
    mtime_ms: float


@dataclass(frozen=True)
class HistoryEntry:
    """A command that was run."""

    index: int
    command: str
    #: When it was run, as the server tells it.
    timestamp: float


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox of the server, as listed by ``siblings()``."""

    id: str
    label: str
    #: When it was made, in ISO 8601, as the server tells it.
    created_at: str


@dataclass(frozen=True)
class SavedSandbox:
    """A sandbox in the server's store."""

    name: str
    #: How many commits of it are kept.
    commits: int
    #: When it was created, in milliseconds since 1970.
    created_ms: int
    #: When it was last saved.
    changed_ms: int
    #: Who has it open.
    holder: Optional[str]


@dataclass(frozen=True)
class Commit:
    """A saved state of a sandbox, and what led to it."""

    id: int
    parent: Optional[int]
    #: When it was made, in milliseconds since 1970.
    time_ms: int
    #: The command, or what else was done.
    command: str
    #: Its exit code, if it was a command.
    exit_code: Optional[int]
    #: How many bytes were written to the store.
    bytes: int
    tags: Tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """A file that differs between two commits."""

    path: str
    #: ``"A"`` for added, ``"M"`` for modified, ``"D"`` for deleted.
    change: str


@dataclass(frozen=True)
class ImageInfo:
    """An image in the server's store: see ``Sandbox(image=…)``."""

    name: str
    #: When it was made, in milliseconds since 1970.
    created_ms: int
    #: The script that made it.
    script: str
    #: The image that it was made from.
    base: Optional[str]
    #: The version of Wardian that made it.
    version: str
