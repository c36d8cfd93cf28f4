"""Ports that programs in a sandbox listen at."""

from __future__ import annotations

import asyncio
import time
import urllib.request

import pytest

from wardian import AsyncSandbox, Sandbox, SandboxError

SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("X-Name", self.headers["X-Name"] or "")
        self.end_headers()
        self.wfile.write(self.path.encode() + b" " + body)
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        while self.path == "/endless":
            self.wfile.write(b"x" * 65536)
        self.wfile.write(b'{"a": 1}')
http.server.HTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""
WAIT = "until ss -ltn | grep -q :%d; do sleep 0.05; done"


def serve(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/server.py", SERVER)
    sandbox.run("python3 /tmp/server.py > /tmp/log 2>&1 &", check=True)
    sandbox.run(WAIT % 8000, check=True)


def test_a_request_reaches_a_server_in_the_sandbox() -> None:
    with Sandbox() as sandbox:
        serve(sandbox)
        port = sandbox.port(8000)
        body = bytes(range(256)) * 4000
        response = port.request("POST", "/a?b=c", headers={"X-Name": "x"}, body=body)
        assert (response.status, response.headers["X-Name"]) == (201, "x")
        assert response.body == b"/a?b=c " + body
        assert port.request("GET").json() == {"a": 1}


def test_what_cannot_be_reached_is_an_exception() -> None:
    with Sandbox() as sandbox:
        for number in (0, 65536, -1, True):
            with pytest.raises(ValueError, match="from 1 to 65535"):
                sandbox.port(number)
        with pytest.raises(SandboxError) as refused:
            sandbox.port(81).request("GET")
        assert refused.value.errno == "ECONNREFUSED"
        with pytest.raises(SandboxError, match="--http") as unknown:
            _ = sandbox.port(81).url
        assert unknown.value.errno == "ENOTSUP"


def test_endless_and_silent_servers_end_at_their_limits() -> None:
    with Sandbox() as sandbox:
        serve(sandbox)
        with pytest.raises(SandboxError) as long:
            sandbox.port(8000).request("GET", "/endless", max_bytes=1 << 20)
        assert long.value.errno == "EFBIG"
        sandbox.run("nc -l -k 9000 > /dev/null 2>&1 < /dev/zero &")
        sandbox.run("sleep 1000 | nc -l 9001 > /dev/null 2>&1 &")
        sandbox.run(WAIT % 9001, check=True)
        with pytest.raises(SandboxError) as silent:
            sandbox.port(9001).request("GET", timeout=0.5)
        assert silent.value.errno == "ETIMEDOUT"
        with pytest.raises(SandboxError) as nonsense:
            sandbox.port(9000).request("GET")
        assert nonsense.value.errno == "EPROTO"
        assert sandbox.run("echo alive").stdout == "alive\n"


def test_the_address_of_a_port() -> None:
    with Sandbox(http=0) as sandbox:
        serve(sandbox)
        with urllib.request.urlopen(sandbox.port(8000).url) as response:
            assert response.read() == b'{"a": 1}'


def test_requests_are_awaited_and_cancelled() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            await sandbox.files.write("/tmp/server.py", SERVER)
            await sandbox.run("python3 /tmp/server.py > /tmp/log 2>&1 &")
            await sandbox.run(WAIT % 8000)
            assert (await sandbox.port(8000).request("GET")).json() == {"a": 1}
            await sandbox.run("sleep 1000 | nc -l 9001 > /dev/null 2>&1 &")
            await sandbox.run(WAIT % 9001)
            began = time.monotonic()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(sandbox.port(9001).request("GET", timeout=600), 0.5)
            assert time.monotonic() - began < 300

    asyncio.run(main())
