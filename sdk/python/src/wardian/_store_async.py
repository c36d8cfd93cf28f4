"""Saved sandboxes and images for asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, overload

from . import _stores
from ._handle import Origin
from ._stores import CommitLike
from .results import Change, Commit, ImageInfo, SavedSandbox

if TYPE_CHECKING:
    from ._async import AsyncSandbox


class AsyncSaved:
    """The sandboxes in the store of a sandbox's server, by name: ``namespace/name``, or a name in ``default``."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._sandbox = sandbox

    async def open(self, name: str, *, idle: Optional[float] = None) -> AsyncSandbox:
        """Opens a sandbox as it was last saved, until it is destroyed here; it stays in the store.

        ``idle``: after how many seconds without a call it leaves memory, until the next one.
        """
        id = await self._sandbox._ask(_stores.open_saved(name, idle))
        return self._sandbox._beside(Origin.SIBLING, id)

    async def list(self) -> List[SavedSandbox]:
        """Returns all of them, sorted by name."""
        return await self._sandbox._ask(_stores.saved())

    async def log(self, name: str, *, before: Optional[int] = None, limit: Optional[int] = None) -> List[Commit]:
        """Returns the commits of a sandbox, newest first: those before ``before``, 100 without a ``limit``."""
        return await self._sandbox._ask(_stores.log(name, before, limit))

    async def diff(self, name: str, first: CommitLike, second: Optional[CommitLike] = None) -> List[Change]:
        """Returns which files differ between two commits; without a second one, from what was last saved."""
        return await self._sandbox._ask(_stores.diff(name, first, second))

    async def branch(self, name: str, new: str, commit: Optional[CommitLike] = None) -> int:
        """Creates another sandbox in the store from a commit, or from what was last saved; returns its first commit."""
        return await self._sandbox._ask(_stores.branch(name, new, commit))

    async def tag(self, name: str, tag: str, commit: int) -> None:
        """Names a commit, which is then kept."""
        await self._sandbox._ask(_stores.tag(name, tag, commit))

    async def delete(self, name: str) -> None:
        """Deletes a sandbox that is not open, with all its commits."""
        await self._sandbox._ask(_stores.delete(name))


class AsyncImages:
    """The images in the store of a sandbox's server: values to create sandboxes from."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._sandbox = sandbox

    async def save(self, name: str, *, script: str = "") -> None:
        """Keeps this sandbox, as it is, as an image. ``script`` is noted as what made it."""
        await self._sandbox._do(_stores.save_image(name, script))

    async def list(self) -> List[ImageInfo]:
        """Returns all of them, sorted by name."""
        return await self._sandbox._ask(_stores.images())

    @overload
    async def export(self, name: str) -> bytes: ...

    @overload
    async def export(self, name: str, *, file: str) -> None: ...

    async def export(self, name: str, *, file: Optional[str] = None) -> Optional[bytes]:
        """Returns an image for another store, or has the server write it to ``file`` in ``state_dir``."""
        if file is None:
            return await self._sandbox._ask(_stores.export_image(name))
        await self._sandbox._ask(_stores.export_image_to(name, file))
        return None

    async def load(self, name: str, data: Optional[bytes] = None, *, file: Optional[str] = None) -> None:
        """Makes an image of an exported one, within the limits of this sandbox."""
        if (data is None) == (file is None):
            raise TypeError("pass either data or file")
        await self._sandbox._ask(_stores.import_image(name, data, file))

    async def delete(self, name: str) -> None:
        """Deletes an image. Sandboxes that were created from it stay as they are."""
        await self._sandbox._ask(_stores.delete_image(name))
