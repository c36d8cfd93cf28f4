"""What a sandbox has changed in an overlay over a directory of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional

from ._calls import Call, _get


@dataclass(frozen=True)
class OverlayChange:
    """A difference between an overlay and the directory below it."""

    #: The path below the mount.
    path: str
    #: ``A``, ``M``, ``D`` or ``P``: added, modified, deleted, or with other permissions.
    change: str
    #: ``"file"``, ``"dir"`` or ``"symlink"``; of what is deleted, what it was.
    type: str
    #: Its permission bits, or those it had; None for what is modified.
    mode: Optional[int] = None


def _changes(result: Any) -> List[OverlayChange]:
    def change(one: Any) -> OverlayChange:
        mode = None if one.get("mode") is None else _get(one, "mode", int)
        return OverlayChange(_get(one, "path", str), _get(one, "change", str), _get(one, "type", str), mode)

    return [change(one) for one in _get(result, "changes", list)]


def diff(path: str) -> Call[List[OverlayChange]]:
    """Returns the changes."""
    return Call("mount.diff", {"path": path}, _changes)


def patch(path: str) -> Call[str]:
    """Returns the same as a patch."""
    return Call("mount.diff", {"path": path, "patch": True}, lambda result: _get(result, "patch", str))


def apply(path: str, dry_run: bool) -> Call[List[OverlayChange]]:
    """Applies them."""
    params: Dict[str, Any] = {"path": path}
    if dry_run:
        params["dryRun"] = True
    return Call("mount.apply", params, _changes)
