"""What the tests share."""

from __future__ import annotations

import signal
import sys
import textwrap
from pathlib import Path
from typing import Callable, Iterator

import pytest

from wardian import Sandbox

# The process that starts the tests in the background may ignore these, and what is ignored is inherited.
for number in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

#: Takes Python code that deals with each request after `create`, and answers a program that serves so.
FakeServer = Callable[[str], Path]


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A sandbox of the test's own."""
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def fake_server(tmp_path: Path) -> FakeServer:
    """Makes servers that misbehave. Their code has `request` and `say`."""

    def make(code: str) -> Path:
        program = tmp_path / "wardian"
        indented = textwrap.indent(textwrap.dedent(code).strip(), "    ")
        program.write_text(
            f"#!{sys.executable}\n"
            "import json, os, signal, sys, time\n"
            "def say(message):\n"
            "    text = message if isinstance(message, str) else json.dumps(message)\n"
            "    sys.stdout.write(text + '\\n'); sys.stdout.flush()\n"
            "create = json.loads(sys.stdin.readline())\n"
            "say({'jsonrpc': '2.0', 'id': create['id'], 'result': {'ok': True}})\n"
            "for line in sys.stdin:\n"
            "    request = json.loads(line)\n"
            f"{indented}\n"
        )
        program.chmod(0o755)
        return program

    return make
