"""Running your coroutines from the threads that answer the server."""

from __future__ import annotations

import asyncio
from typing import Any, Coroutine, Optional


def wait(coroutine: Coroutine[Any, Any, object], loop: Optional[asyncio.AbstractEventLoop]) -> object:
    """Runs a coroutine to its end: in this loop, or in one of its own."""
    contained = _contained(coroutine)
    if loop is None:
        outcome = asyncio.run(contained)
    else:
        try:
            outcome = asyncio.run_coroutine_threadsafe(contained, loop).result()
        except RuntimeError:
            # The loop is closed, and they were never begun.
            contained.close()
            coroutine.close()
            raise
    if isinstance(outcome, SystemExit):
        raise outcome
    return outcome


async def _contained(coroutine: Coroutine[Any, Any, object]) -> object:
    """``sys.exit`` as a value: as an exception it would end the whole loop."""
    try:
        return await coroutine
    except SystemExit as leaving:
        return leaving
