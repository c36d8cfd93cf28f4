"""Pieces of output that wait to be taken, in as little room as they need.

A guest may write a million single bytes, to both streams by turns. As a million objects they would take a hundred times
the room of the output itself; here a piece takes its bytes and eight more.
"""

from __future__ import annotations

import collections
from array import array
from typing import Deque, Optional

from .results import Output

_STREAMS = ("stdout", "stderr")
#: How many bytes of pieces are kept together, and let go of together.
_BLOCK = 1 << 16


class _Block:
    """Some pieces: their bytes in a row, and for each its length and stream in one number."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.pieces = array("q")
        self.taken = 0
        self.at = 0


class Pieces:
    """A queue of pieces. Callers must make sure that only one uses it at a time."""

    def __init__(self) -> None:
        self._blocks: Deque[_Block] = collections.deque()

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def put(self, stream: str, data: bytes) -> None:
        """Adds a piece."""
        if not self._blocks or len(self._blocks[-1].data) >= _BLOCK:
            self._blocks.append(_Block())
        block = self._blocks[-1]
        block.data += data
        block.pieces.append(len(data) << 1 | _STREAMS.index(stream))

    def take(self) -> Optional[Output]:
        """Takes the first; None if there is none."""
        if not self._blocks:
            return None
        block = self._blocks[0]
        number = block.pieces[block.taken]
        end = block.at + (number >> 1)
        piece = Output(_STREAMS[number & 1], bytes(block.data[block.at : end]))
        block.taken, block.at = block.taken + 1, end
        if block.taken == len(block.pieces):
            self._blocks.popleft()
        return piece
