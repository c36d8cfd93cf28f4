"""Each example runs, without a network, and does what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

SAYS = {
    "best_of_n.py": ["  2  sort fruit | head -n 1\n", "  0  sort /tmp/fruits", "best: fig\n"],
    "safe_edits.py": ["-world\n+Wardian\n", "changed: greeting.txt new/file old.txt\n", "hello\nWardian\n"],
    "anthropic_tool.py": ["It is 2.\n"],
    "openai_tool.py": ["It is 2.\n"],
}


def example(name: str, *arguments: str, input: str = "") -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    command: List[str] = [sys.executable, "-B", str(EXAMPLES / name), *arguments]
    return subprocess.run(command, env=environment, input=input, capture_output=True, text=True, timeout=120)


def test_all_of_them_are_run() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_an_example(name: str) -> None:
    done = example(name)
    assert done.returncode == 0, done.stderr
    for said in SAYS[name]:
        assert said in done.stdout


def test_edits_do_not_leave_the_directory_by_a_link(tmp_path: Path) -> None:
    outside, project = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    project.mkdir()
    (outside / "file").write_text("untouched")
    (project / "link").symlink_to(outside)
    (project / "file").symlink_to(outside / "file")
    for script in ("rm link; mkdir link; echo x > link/file", "rm file; echo x > file"):
        done = example("safe_edits.py", str(project), script, input="y\n")
        assert done.returncode != 0, done.stdout
    assert (outside / "file").read_text() == "untouched"


def test_a_script_that_fails_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("before\n")
    done = example("safe_edits.py", str(tmp_path), "echo after > file; false", input="y\n")
    assert "nothing is changed (exit code 1)" in done.stdout
    assert (tmp_path / "file").read_text() == "before\n"


@pytest.mark.parametrize("answer, content", [("n\n", "before\n"), ("y\n", "after\n")])
def test_edits_are_made_only_when_they_are_wanted(tmp_path: Path, answer: str, content: str) -> None:
    (tmp_path / "file").write_text("before\n")
    assert "+after\n" in example("safe_edits.py", str(tmp_path), "echo after > file", input=answer).stdout
    assert (tmp_path / "file").read_text() == content
