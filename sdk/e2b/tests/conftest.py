"""A server, and clients that are pointed at it."""

from __future__ import annotations

import os
import re
import subprocess
from typing import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def server() -> Iterator[str]:
    """A server of its own for all tests; returns its address."""
    binary = os.environ["WARDIAN_BIN"]
    process = subprocess.Popen(
        [binary, "serve", "--http", "127.0.0.1:0", "--network", "off"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    address = None
    for line in process.stderr:
        found = re.search(r"listening on (http://\S+)", line)
        if found:
            address = found.group(1)
            break
    assert address is not None, "the server does not listen"
    os.environ.update(E2B_API_URL=address, E2B_SANDBOX_URL=address, E2B_API_KEY="e2b_" + "0" * 40)
    yield address
    process.terminate()
    assert process.wait(timeout=30) == 0
