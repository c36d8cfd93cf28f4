"""What pip made of the wheel."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

import wardian
from wardian import Sandbox, _binary

pytestmark = pytest.mark.skipif("WARDIAN_BINARY" in os.environ, reason="another program than the wheel's is named")


def test_the_program_came_with_the_package() -> None:
    program = _binary.find()
    assert Path(program).parent == Path(sysconfig.get_path("scripts"))
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["wardian", wardian.__version__]


def test_it_needs_no_file_of_the_repository() -> None:
    with Sandbox() as sandbox:
        assert sandbox.run("echo hello | wc -c", check=True).stdout.strip() == "6"
        root = Path(f"/proc/{sandbox.pid}/exe").resolve()
        assert root == Path(_binary.find()).resolve()


def test_its_metadata_is_right() -> None:
    about = importlib.metadata.metadata("wardian")
    assert about["Version"] == wardian.__version__ and about["Requires-Python"] == ">=3.9"
    assert importlib.metadata.requires("wardian") is None


def test_its_record_is_right() -> None:
    files = importlib.metadata.files("wardian") or []
    named = {str(file) for file in files}
    assert {"wardian/__init__.py", "wardian/py.typed"} <= named
    hashed = [file for file in files if file.hash is not None]
    assert len(hashed) > 10
    for file in hashed:
        assert file.hash is not None
        digest = hashlib.new(file.hash.mode, Path(str(file.locate())).read_bytes()).digest()
        assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == file.hash.value, file
