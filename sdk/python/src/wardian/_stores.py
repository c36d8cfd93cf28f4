"""The calls about saved sandboxes and images, as values: see ``_calls``."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Union

from ._calls import Call, _get, _order
from .files import decode, encode
from .results import Change, Commit, ImageInfo, SavedSandbox

#: A commit, by its number or one of its tags.
CommitLike = Union[int, str]


def open_saved(name: str, idle: Optional[float]) -> Call[str]:
    """Opens a saved sandbox; returns its id."""
    params: Dict[str, Any] = {"name": name}
    if idle is not None:
        params["idleSeconds"] = math.ceil(idle)
    return Call("sandbox.open", params, lambda result: _get(result, "sandboxId", str))


def save() -> Call[int]:
    """Saves a sandbox now; returns the commit."""
    return Call("persistence.save", {}, lambda result: _get(result, "commit", int))


def checkout(commit: CommitLike) -> Call[int]:
    """Goes back to a commit; returns the new one."""
    return Call("persistence.checkout", {"commit": str(commit)}, lambda result: _get(result, "commit", int))


def saved() -> Call[List[SavedSandbox]]:
    """Lists the saved sandboxes."""

    def read(result: Any) -> List[SavedSandbox]:
        return [
            SavedSandbox(
                name=_get(one, "name", str),
                commits=_get(one, "commits", int),
                created_ms=_get(one, "createdMs", int),
                changed_ms=_get(one, "changedMs", int),
                holder=one["holder"],
            )
            for one in _get(result, "sandboxes", list)
        ]

    return Call("persistence.sandboxes", {}, read)


def log(name: str, before: Optional[int], limit: Optional[int]) -> Call[List[Commit]]:
    """Lists commits, newest first."""
    params: Dict[str, Any] = {"name": name}
    if before is not None:
        params["before"] = before
    if limit is not None:
        params["limit"] = limit

    def read(result: Any) -> List[Commit]:
        return [
            Commit(
                id=_get(one, "commit", int),
                parent=one["parent"],
                time_ms=_get(one, "timeMs", int),
                command=_get(one, "command", str),
                exit_code=one["exitCode"],
                bytes=_get(one, "bytes", int),
                tags=tuple(_get(one, "tags", list)),
            )
            for one in _get(result, "commits", list)
        ]

    return Call("persistence.log", params, read)


def diff(name: str, first: CommitLike, second: Optional[CommitLike]) -> Call[List[Change]]:
    """Returns which files differ between two commits."""
    params: Dict[str, Any] = {"name": name, "from": str(first)}
    if second is not None:
        params["to"] = str(second)

    def read(result: Any) -> List[Change]:
        return [Change(_get(one, "path", str), _get(one, "change", str)) for one in _get(result, "changes", list)]

    return Call("persistence.diff", params, read)


def branch(name: str, new: str, commit: Optional[CommitLike]) -> Call[int]:
    """Creates another saved sandbox from a commit; returns its first commit."""
    params: Dict[str, Any] = {"name": name, "newName": new}
    if commit is not None:
        params["commit"] = str(commit)
    return Call("persistence.branch", params, lambda result: _get(result, "commit", int))


def tag(name: str, tag: str, commit: int) -> Call[None]:
    """Names a commit, which is then kept."""
    return _order("persistence.tag", name=name, tag=tag, commit=str(commit))


def delete(name: str) -> Call[None]:
    """Deletes a saved sandbox."""
    return _order("persistence.delete", name=name)


def save_image(name: str, script: str) -> Call[None]:
    """Keeps a sandbox as an image."""
    return _order("image.save", name=name, script=script)


def images() -> Call[List[ImageInfo]]:
    """Lists the images."""

    def read(result: Any) -> List[ImageInfo]:
        return [
            ImageInfo(
                name=_get(one, "name", str),
                created_ms=_get(one, "createdMs", int),
                script=_get(one, "script", str),
                base=one["base"],
                version=_get(one, "version", str),
            )
            for one in _get(result, "images", list)
        ]

    return Call("image.list", {}, read)


def export_image(name: str) -> Call[bytes]:
    """Returns an image for another store."""
    return Call("image.export", {"name": name}, lambda result: decode(_get(result, "data", str)))


def export_image_to(name: str, file: str) -> Call[None]:
    """Writes an image to a file in the state directory."""
    return _order("image.export", name=name, file=file)


def import_image(name: str, data: Optional[bytes], file: Optional[str]) -> Call[None]:
    """Makes an image of an exported one."""
    if data is not None:
        return _order("image.import", name=name, data=encode(data))
    return _order("image.import", name=name, file=file)


def delete_image(name: str) -> Call[None]:
    """Deletes an image."""
    return _order("image.delete", name=name)
