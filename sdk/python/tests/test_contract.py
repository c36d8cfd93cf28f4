"""The contract is a check: what it does not have is found."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple

import pytest
from conftest import CONTRACT, check_params

from wardian import Limits, Sandbox


@pytest.mark.skipif(not CONTRACT.exists(), reason="only in the repository")
def test_the_contract_finds_what_is_unknown_or_missing() -> None:
    """A name that the server does not know, at any level, and one that it needs."""
    contract = json.loads(CONTRACT.read_text())
    check_params(contract, "run", {"command": "echo", "sandboxId": None})
    check_params(contract, "create", {"limits": {"memoryBytes": 1}, "network": {"anything": 1}})
    wrong: List[Tuple[str, Dict[str, Any]]] = [
        ("run", {}),
        ("run", {"command": "echo", "timeout": 1}),
        ("create", {"limits": {"memory": 1}}),
        ("process.start", {"command": "sh", "pty": {"rows": 1, "cols": 1}}),
    ]
    for method, params in wrong:
        with pytest.raises(AssertionError):
            check_params(contract, method, params)


def test_every_request_of_a_sandbox_is_checked(sandbox: Sandbox) -> None:
    """The check sits where all requests pass."""
    with pytest.raises(AssertionError):
        sandbox._handle.server.connection.request("run", {"comand": "echo"})
    with Sandbox(limits=Limits(memory_bytes=1 << 29)) as limited:
        assert limited.run("echo hi").stdout == "hi\n"
