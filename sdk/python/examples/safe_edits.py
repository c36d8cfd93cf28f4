"""Safe edits: let a script loose on a copy of a directory, look at what it changed, and only then change the directory.

    python safe_edits.py [DIRECTORY SCRIPT]

The directory's files are laid over the sandbox at /work. Whatever the script does to them stays in there; its changes
come back as a list, are shown as a patch, and are made on the host if you say so, unless that has changed meanwhile.
"""

import difflib
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, List, Mapping, Optional

from wardian import File, Mount, Sandbox, read_directory

WORK = "/work"


@dataclass(frozen=True)
class Change:
    """What became of a file. None: it was, or is, not there."""

    path: str
    before: Optional[bytes]
    after: Optional[bytes]

    def patch(self) -> str:
        """As a patch shows it."""
        old, new = (
            (data or b"").decode("utf-8", "replace").splitlines(keepends=True) for data in (self.before, self.after)
        )
        names = ("/dev/null" if self.before is None else self.path, "/dev/null" if self.after is None else self.path)
        return "".join(difflib.unified_diff(old, new, *names))


def changes(sandbox: Sandbox, before: Mapping[str, bytes]) -> List[Change]:
    """What the sandbox made of the files it was given."""
    entries = sandbox.files.list(WORK, recursive=True)
    after = {entry.name: sandbox.files.read(f"{WORK}/{entry.name}") for entry in entries if entry.type == "file"}
    paths = sorted(before.keys() | after.keys())
    return [Change(p, before.get(p), after.get(p)) for p in paths if before.get(p) != after.get(p)]


def check(root: Path, change: Change) -> None:
    """Refuses a change that would overwrite what is not what it was, or would leave the directory by a link."""
    target = root / change.path
    if root.resolve() not in [target.parent.resolve(), *target.parent.resolve().parents]:
        raise RuntimeError(f"{target} is behind a link that leads out of {root}")
    now = target.read_bytes() if target.is_file() and not target.is_symlink() else None
    if now != change.before or (now is None and os.path.lexists(target)):
        raise RuntimeError(f"{target} has changed meanwhile")


def apply(root: Path, wanted: List[Change]) -> None:
    """Makes the changes on the host, after all of them have been checked."""
    for change in wanted:
        check(root, change)
    for change in wanted:
        target = root / change.path
        if change.after is None:
            target.unlink()
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(change.after)


def edit(root: Path, script: str, approve: Callable[[], bool]) -> None:
    """Runs the script on a copy, shows what it did, and does it to the directory if that is approved."""
    given = read_directory(root, keep=lambda path: path != ".git")
    with Sandbox(mounts=[Mount(WORK, given, writable=True)]) as sandbox:
        result = sandbox.run(f"cd {WORK}\n{script}")
        wanted = changes(sandbox, {path: entry for path, entry in given.items() if isinstance(entry, File)})
    print(result.stdout, end="")
    for change in wanted:
        print(change.patch(), end="")
    if wanted and result.ok and approve():
        apply(root, wanted)
        print(f"changed: {' '.join(change.path for change in wanted)}")
    else:
        print(f"nothing is changed (exit code {result.exit_code})")


def main() -> None:
    if len(sys.argv) == 3:
        return edit(Path(sys.argv[1]), sys.argv[2], lambda: input("make these changes? [y/N] ").strip() == "y")
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "greeting.txt").write_text("hello\nworld\n")
        (root / "old.txt").write_text("old\n")
        script = "rm -rf /bin; sed -i s/world/Wardian/ greeting.txt; rm old.txt; mkdir new; echo new > new/file"
        edit(root, script, approve=lambda: True)
        print((root / "greeting.txt").read_text(), end="")


if __name__ == "__main__":
    main()
