"""File contents: how they are encoded and cut into parts, and how to read a host directory into files for a sandbox."""

from __future__ import annotations

import base64
import binascii
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Callable, Dict, Iterable, Iterator, Mapping, Union

#: What a file can be written with. Text is written as UTF-8.
Content = Union[str, bytes]
#: The same, or something to read it from: an open binary file, or pieces. It need not fit into memory.
Source = Union[str, bytes, IO[bytes], Iterable[bytes]]

#: How much of a file is sent in one request.
PART = 4 << 20


class File(bytes):
    """The content of a file to mount, with its permission bits: ``File(b"echo hi", mode=0o755)``."""

    mode: int

    def __new__(cls, content: Content, mode: int = 0o644) -> File:
        """Encodes text as UTF-8."""
        self = super().__new__(cls, content.encode("utf-8") if isinstance(content, str) else content)
        self.mode = mode
        return self

    def __repr__(self) -> str:
        return f"File({bytes(self)!r}, mode={self.mode:#o})"


@dataclass(frozen=True)
class Directory:
    """A directory to mount, which may be empty."""

    mode: int = 0o755


@dataclass(frozen=True)
class Symlink:
    """A symbolic link to mount. It is followed in the sandbox, never on the host."""

    target: str


#: What can be mounted.
MountEntry = Union[str, bytes, File, Directory, Symlink]


def encode(content: Content) -> str:
    """Encodes it for the protocol."""
    data = content.encode("utf-8") if isinstance(content, str) else bytes(content)
    return base64.b64encode(data).decode("ascii")


def encode_all(files: Mapping[str, MountEntry]) -> Dict[str, Any]:
    """Encodes each of them for the protocol."""
    return {name: _encode_entry(entry) for name, entry in files.items()}


def _encode_entry(entry: MountEntry) -> Any:
    if isinstance(entry, Directory):
        return {"dir": True, "mode": entry.mode}
    if isinstance(entry, Symlink):
        return {"link": entry.target}
    if isinstance(entry, File):
        return {"data": encode(entry), "mode": entry.mode}
    return encode(entry)


def decode(data: str) -> bytes:
    """Decodes it. Raises ValueError for what is not base64."""
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def parts(source: Source) -> Iterator[bytes]:
    """Cuts it into parts of at most :data:`PART` bytes; one empty part if there is nothing."""
    some = False
    for piece in _pieces(source):
        for start in range(0, len(piece), PART):
            some = True
            yield piece[start : start + PART]
    if not some:
        yield b""


def _pieces(source: Source) -> Iterator[bytes]:
    if isinstance(source, str):
        yield source.encode("utf-8")
    elif isinstance(source, (bytes, bytearray, memoryview)):
        yield bytes(source)
    elif hasattr(source, "read"):
        while True:
            piece = source.read(PART)
            if not isinstance(piece, bytes):
                raise TypeError("the file must be open in binary mode ('rb')")
            if not piece:
                return
            yield piece
    else:
        # Small pieces are gathered: each request takes its time.
        gathered = bytearray()
        for piece in source:
            gathered += piece
            if len(gathered) >= PART:
                yield bytes(gathered)
                gathered.clear()
        yield bytes(gathered)


def read_directory(
    directory: Union[str, "os.PathLike[str]"], keep: Callable[[str], bool] = lambda name: True
) -> Dict[str, Union[File, Directory, Symlink]]:
    """Returns what is below a host directory, by its path in it, for a :class:`~wardian.Mount`.

    Files and directories keep their permission bits; symbolic links stay links, neither read nor followed on the host.

    ``keep`` is called for each path (``"src/main.py"``), including directories, so that ``.git`` need not be
    read. Sockets, pipes and devices are left out.
    """
    root = Path(directory)
    if not root.is_dir():
        raise NotADirectoryError(f"not a directory: {root}")
    files: Dict[str, Union[File, Directory, Symlink]] = {}
    for place, directories, names in os.walk(root):
        relative = Path(place).relative_to(root)
        entered = []
        for name in sorted(directories) + sorted(names):
            path, below = Path(place, name), (relative / name).as_posix()
            if not keep(below):
                continue
            status = path.lstat()
            mode = stat.S_IMODE(status.st_mode) & 0o777
            if stat.S_ISLNK(status.st_mode):
                files[below] = Symlink(os.readlink(path))
            elif stat.S_ISDIR(status.st_mode):
                files[below] = Directory(mode)
                entered.append(name)
            elif stat.S_ISREG(status.st_mode):
                files[below] = File(path.read_bytes(), mode)
        directories[:] = entered
    return files
