"""File contents: how they are encoded, and how to read a host directory into files for a sandbox."""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path
from typing import Callable, Dict, Mapping, Union

#: What a file can be written with. Text is written as UTF-8.
Content = Union[str, bytes]


def encode(content: Content) -> str:
    """Encodes it for the protocol."""
    data = content.encode("utf-8") if isinstance(content, str) else bytes(content)
    return base64.b64encode(data).decode("ascii")


def encode_all(files: Mapping[str, Content]) -> Dict[str, str]:
    """Encodes each of them for the protocol."""
    return {name: encode(content) for name, content in files.items()}


def decode(data: str) -> bytes:
    """Decodes it. Raises ValueError for what is not base64."""
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def read_directory(
    directory: Union[str, "os.PathLike[str]"], keep: Callable[[str], bool] = lambda name: True
) -> Dict[str, bytes]:
    """Returns the regular files below a host directory, by their paths in it, for a :class:`~wardian.Mount`.

    ``keep`` is called for each path (``"src/main.py"``), including directories, so that ``.git`` need not be
    read. Symbolic links are neither read nor followed: they could lead anywhere.
    """
    root = Path(directory)
    if not root.is_dir():
        raise NotADirectoryError(f"not a directory: {root}")
    files: Dict[str, bytes] = {}
    for place, directories, names in os.walk(root):
        relative = Path(place).relative_to(root)
        directories[:] = [name for name in sorted(directories) if keep((relative / name).as_posix())]
        for name in sorted(names):
            path = Path(place, name)
            if path.is_file() and not path.is_symlink() and keep((relative / name).as_posix()):
                files[(relative / name).as_posix()] = path.read_bytes()
    return files
