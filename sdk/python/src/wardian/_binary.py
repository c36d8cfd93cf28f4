"""Where the program is."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Iterator, Union

from .errors import BinaryNotFoundError

_NAME = "wardian"
_VARIABLE = "WARDIAN_BINARY"


def find(named: Union[str, "os.PathLike[str]", None] = None) -> str:
    """Returns the program to start: the one named, the one in ``WARDIAN_BINARY``, the one bundled with this package,
    or the first in ``PATH``."""
    for chosen in (named, os.environ.get(_VARIABLE)):
        if chosen:
            if not _is_program(Path(chosen)):
                raise BinaryNotFoundError(f"not an executable: {os.fspath(chosen)}")
            return os.path.abspath(chosen)
    for place in _installed():
        if _is_program(place / _NAME):
            return str(place / _NAME)
    found = shutil.which(_NAME)
    if found is None:
        raise BinaryNotFoundError(
            f"cannot find the program '{_NAME}': install the wheel that contains it, put it into PATH, "
            f"or name it in {_VARIABLE}"
        )
    return found


def _installed() -> Iterator[Path]:
    """Where installers put a package's programs."""
    yield Path(sysconfig.get_path("scripts"))
    yield Path(sys.executable).parent
    yield Path(sysconfig.get_path("scripts", f"{os.name}_user"))
    # `pip install --target`: the programs are beside the package.
    yield Path(__file__).parent.parent / "bin"


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
