"""``on_request``: your own say in each request. Nothing is connected: what is allowed comes from a cassette."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from pathlib import Path
from typing import Any, List

import pytest

from wardian import AsyncSandbox, NetworkAnswer, NetworkDenial, NetworkPolicy, NetworkRequest, Sandbox

GET = "curl -s -w ' %{http_code}' "


def policy(directory: Path, on_request: Any, **more: Any) -> NetworkPolicy:
    """Grants api.test, where only http://api.test/there exists, and that a few times."""
    head = {"method": "GET", "url": "http://api.test/there", "status": 200, "reason": "OK", "headers": []}
    end = {"request": hashlib.sha256(b"").hexdigest(), "trailers": []}
    lines = [{"id": 1, **head}, {"id": 1, "body": "cmVjb3JkZWQ="}, {"id": 1, "end": end}]
    file = directory / "cassette"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) * 20)
    return NetworkPolicy(allowed_hosts=["api.test"], replay=str(file), on_request=on_request, **more)


def test_requests_are_allowed_denied_or_answered(tmp_path: Path) -> None:
    seen: List[NetworkRequest] = []

    def decide(request: NetworkRequest) -> Any:
        seen.append(request)
        return {
            "/there": True,
            "/no": False,
            "/why?a=b": NetworkDenial("not today"),
            "/mine": NetworkAnswer(201, "made up\n", {"X-From": "me"}),
            "/bytes": NetworkAnswer(body=b"\xff\x00"),
        }[request.path]

    with Sandbox(network=policy(tmp_path, decide)) as sandbox:
        assert sandbox.run(GET + "http://api.test/there").stdout == "recorded 200"
        denied = sandbox.run(GET + "-H 'X-Name: v' -d x 'http://api.test/why?a=b'")
        assert denied.stdout == "wardian: api.test: not today\n 403"
        assert denied.error_class == "CAPABILITY_DENIED"
        assert "wardian: not allowed: api.test:80: not today" in denied.stderr
        assert sandbox.run(GET + "http://api.test/no").stdout.endswith(" 403")
        answered = sandbox.run("curl -si http://api.test/mine").stdout
        assert answered == "HTTP/1.1 201 Created\r\nX-From: me\r\nContent-Length: 8\r\n\r\nmade up\n"
        assert sandbox.run("curl -s http://api.test/bytes | od -An -tx1").stdout.split() == ["ff", "00"]
        with sandbox.fork() as fork:
            assert fork.run(GET + "http://api.test/there").stdout == "recorded 200"
        # What the policy does not allow is not asked about.
        assert sandbox.run("curl -s http://other.test/").exit_code == 6
    assert [request.path for request in seen] == ["/there", "/why?a=b", "/no", "/mine", "/bytes", "/there"]
    why = seen[1]
    assert (why.method, why.url, why.header("x-name")) == ("POST", "http://api.test/why?a=b", "v")
    assert why.header("x-other") is None


def test_whatever_is_no_decision_denies(tmp_path: Path) -> None:
    def decide(request: NetworkRequest) -> Any:
        if request.path == "/raise":
            raise RuntimeError("private details")
        if request.path == "/exit":
            sys.exit(0)
        return {"/none": None, "/text": "allow", "/one": 1, "/long": NetworkAnswer(body="x" * 101)}[request.path]

    with Sandbox(network=policy(tmp_path, decide, response_bytes=100)) as sandbox:
        for path in ("raise", "exit", "none", "text", "one", "long", "missing"):
            said = sandbox.run(GET + f"http://api.test/{path}").stdout
            assert said.endswith(" 403") and "private" not in said, (path, said)


def test_nobody_who_decides_denies(tmp_path: Path) -> None:
    params = {**policy(tmp_path, None).params(), "onRequest": True}
    with Sandbox(network=params) as sandbox:
        assert sandbox.run(GET + "http://api.test/there").stdout.endswith(" 403")
    with Sandbox(network=policy(tmp_path, None)) as sandbox:
        assert sandbox.run(GET + "http://api.test/there").stdout == "recorded 200"


def test_an_async_function_decides_in_the_loop(tmp_path: Path) -> None:
    loops: List[asyncio.AbstractEventLoop] = []

    async def decide(request: NetworkRequest) -> Any:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return request.path == "/there" or NetworkDenial("not today")

    async def main() -> None:
        async with AsyncSandbox(network=policy(tmp_path, decide)) as sandbox:
            runs = [sandbox.run(GET + f"http://api.test/{path}") for path in ("there", "no")]
            there, no = await asyncio.gather(*runs)
            assert there.stdout == "recorded 200" and "not today" in no.stdout
        assert loops == [asyncio.get_running_loop()] * 2

    asyncio.run(main())
    # Without a loop of its own, it gets one for each call.
    with Sandbox(network=policy(tmp_path, decide)) as sandbox:
        assert sandbox.run(GET + "http://api.test/there").stdout == "recorded 200"


def test_a_policy_has_the_fields_of_the_protocol() -> None:
    rules = [{"host": "a.test"}]
    given = NetworkPolicy(allowed_hosts=["a.test"], http_rules=rules, http2=True, allow_unverified_tls=True)
    expected = {"allowedHosts": ["a.test"], "httpRules": rules, "http2": True, "allowUnverifiedTls": True}
    assert given.params() == expected
    assert "value" not in repr(NetworkPolicy(secrets=[{"name": "K", "host": "a.test", "value": "value"}]))
    assert NetworkRequest("https", "::1", 8443, "GET", "/x", []).url == "https://[::1]:8443/x"
    with pytest.raises(Exception, match="allowedHosts"):
        Sandbox(network=NetworkPolicy(allowed_hosts=["http://x/"]))
