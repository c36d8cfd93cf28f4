"""What the tests share."""

from __future__ import annotations

import functools
import json
import signal
import sys
import textwrap
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Mapping

import pytest

from wardian import Sandbox, _protocol

#: What is made of the types that the server reads requests into.
CONTRACT = Path(__file__).parents[3] / "docs" / "protocol.schema.json"

# The process that starts the tests in the background may ignore these, and what is ignored is inherited.
for number in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

#: Takes Python code that deals with each request after `create`, and answers a program that serves so.
FakeServer = Callable[[str], Path]


def _resolved(contract: Dict[str, Any], schema: Dict[str, Any]) -> Dict[str, Any]:
    """A type, also where it may be left out."""
    for option in schema.get("anyOf", [schema]):
        if "$ref" in option:
            found: Dict[str, Any] = contract["$defs"][option["$ref"].rsplit("/", 1)[1]]
            return found
    return schema


def check_params(contract: Dict[str, Any], method: str, params: Mapping[str, Any]) -> None:
    """Checks that a request has what its method requires, and nothing that it does not know."""
    schema = _resolved(contract, contract["methods"][method]["params"])
    _check_object(contract, method, schema, params)


def _check_object(contract: Dict[str, Any], place: str, schema: Dict[str, Any], given: Mapping[str, Any]) -> None:
    properties = schema.get("properties")
    if properties is None:
        return
    unknown = set(given) - set(properties)
    assert not unknown, f"{place}: the contract does not have {sorted(unknown)}"
    missing = {name for name in schema.get("required", []) if given.get(name) is None}
    assert not missing, f"{place}: the contract requires {sorted(missing)}"
    for name, value in given.items():
        if isinstance(value, dict):
            _check_object(contract, f"{place}.{name}", _resolved(contract, properties[name]), value)


@pytest.fixture(autouse=True)
def requests_agree_with_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test makes the package send is in the contract."""
    if not CONTRACT.exists():  # The wheel is also tested where the repository is not.
        return
    contract = json.loads(CONTRACT.read_text())
    original = _protocol.Connection.request

    @functools.wraps(original)
    def request(self: Any, method: str, params: Mapping[str, Any], *rest: Any, **named: Any) -> Any:
        check_params(contract, method, params)
        return original(self, method, params, *rest, **named)

    monkeypatch.setattr(_protocol.Connection, "request", request)


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
