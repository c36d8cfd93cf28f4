"""What the documentation shows is what happens: each Python block is run, a page's blocks one after the other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, List

import pytest

ROOT = Path(__file__).parents[3]
PAGES = ["README.md", "docs/python.md", "sdk/python/README.md"]


def blocks(page: str) -> List[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs(page: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    shared: Dict[str, Any] = {}
    found = blocks(page)
    assert found, "the page has no blocks of Python"
    for number, block in enumerate(found):
        exec(compile(block, f"{page}, block {number + 1}", "exec"), shared)
