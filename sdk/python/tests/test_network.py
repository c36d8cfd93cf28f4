"""What a sandbox reaches outside: unmodified HTTP libraries over the gateway's TLS, and through a proxy of the host.

The servers have names that nobody else knows: the proxy resolves them. What is mounted in the sandbox are the packages
as they are installed here.
"""

from __future__ import annotations

import base64
import datetime
import http.server
import importlib.util
import json
import socket
import ssl
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from wardian import Mount, Sandbox, SandboxError
from wardian.files import read_directory

Key = ec.EllipticCurvePrivateKey


class Authority:
    """An authority of the test's own."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority for tests")])
        self.certificate = self._sign(self.name, self.key, x509.BasicConstraints(ca=True, path_length=None))

    def _sign(self, name: x509.Name, key: Key, extension: x509.ExtensionType) -> x509.Certificate:
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(self.name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).add_extension(extension, critical=True)
        builder = builder.not_valid_before(now - datetime.timedelta(days=1))
        return builder.not_valid_after(now + datetime.timedelta(days=1)).sign(self.key, hashes.SHA256())

    def file(self, directory: Path) -> Path:
        path = directory / "authority.pem"
        path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        return path

    def context(self, directory: Path, name: str) -> ssl.SSLContext:
        """Returns what a server of this name needs."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._sign(subject, key, x509.SubjectAlternativeName([x509.DNSName(name)]))
        plain = serialization.NoEncryption()
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        path = directory / f"{name}.pem"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


class Pages(http.server.BaseHTTPRequestHandler):
    """Repeats what it was asked."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/redirect":
            return self._say(302, b"", {"Location": "/there"})
        if self.path == "/inside":
            return self._say(302, b"", {"Location": "http://169.254.169.254/latest/meta-data/"})
        if self.path == "/chunks":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for number in range(3):
                self.wfile.write(b"6\r\nchunk%d\r\n" % number)
            self.wfile.write(b"0\r\n\r\n")
            return None
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        answer = {"method": self.command, "path": self.path, "body": body.decode(), "key": self.headers.get("X-Key")}
        answer["authorization"] = self.headers.get("Authorization")
        return self._say(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    do_POST = do_PUT = do_DELETE = do_GET

    def _say(self, status: int, body: bytes, headers: Dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@dataclass
class Proxy:
    """A proxy that knows names which nobody else does."""

    places: Dict[Tuple[str, int], int]
    authorization: str
    asked: List[str] = field(default_factory=list)
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connection, args=(client,), daemon=True).start()

    def _connection(self, client: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = client.recv(1)
            if not byte:
                return
            head += byte
        first, *fields = head.decode().split("\r\n")
        self.asked.append(first)
        if f"Proxy-Authorization: Basic {self.authorization}" not in fields:
            client.sendall(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n")
            return client.close()
        host, _, port = first.split(" ")[1].rpartition(":")
        place = self.places.get((host, int(port)))
        if place is None:
            client.sendall(b"HTTP/1.1 502 Not Found\r\n\r\n")
            return client.close()
        server = socket.create_connection(("127.0.0.1", place))
        client.sendall(b"HTTP/1.1 200 Connected\r\nX-Proxy: yes\r\n\r\n")
        threading.Thread(target=_pass_on, args=(server, client), daemon=True).start()
        _pass_on(client, server)


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@dataclass
class World:
    """A server, a proxy that leads to it, and the policy for that."""

    proxy: Proxy
    policy: Dict[str, Any]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    authority = Authority()
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) for _ in range(2)]
    context = authority.context(tmp_path, "server.test")
    servers[0].socket = context.wrap_socket(servers[0].socket, server_side=True)
    ports = [server.server_address[1] for server in servers]
    places = {("server.test", 443): ports[0], ("server.test", 80): ports[1]}
    proxy = Proxy(places, base64.b64encode(b"me:p@ss").decode())
    for work in (servers[0].serve_forever, servers[1].serve_forever, proxy.serve):
        threading.Thread(target=work, daemon=True).start()
    policy = {
        "allowedHosts": ["server.test", "unknown.test"],
        "roots": "caFile",
        "caFile": str(authority.file(tmp_path)),
        "proxy": {"url": f"http://me:p%40ss@127.0.0.1:{proxy.port}", "resolvesNames": True},
    }
    yield World(proxy, policy)
    proxy.listener.close()
    for server in servers:
        server.shutdown()
        server.server_close()


def packages(*names: str) -> List[Mount]:
    """Mounts packages that are installed here, unmodified."""
    files: Dict[str, Any] = {}
    for name in names:
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.origin is not None
        origin = Path(spec.origin)
        if origin.name != "__init__.py":
            files[origin.name] = origin.read_bytes()
            continue
        for path, entry in read_directory(origin.parent).items():
            if path.endswith(".py") or path.endswith(".pem"):
                files[f"{name}/{path}"] = entry
    return [Mount("/opt/packages", files)]


def said(sandbox: Sandbox, code: str) -> str:
    sandbox.files.write("/tmp/code.py", code)
    result = sandbox.run("python3 /tmp/code.py", timeout=120)
    assert result.exit_code == 0, result.stderr
    return result.stdout


HTTPX = """
import anyio, asyncio, httpx, httpcore
with httpx.Client() as client:
    first = client.get("https://server.test/a?b=c")
    sent = client.post("https://server.test/p", json={"x": 1})
    print(first.status_code, first.http_version, first.json()["path"], sent.json()["body"])
    # httpx looks at the socket for this.
    stream = first.extensions["network_stream"]
    print(stream.get_extra_info("ssl_object").version(), stream.get_extra_info("ssl_object").selected_alpn_protocol())
    print(client.get("https://server.test/redirect", follow_redirects=True).json()["path"])
    with client.stream("GET", "https://server.test/chunks") as response:
        print("".join(response.iter_text()))
    print(client.get("http://server.test/plain").json()["path"])
    try: client.get("https://server.test/inside", follow_redirects=True)
    except httpx.ConnectError as error: print(type(error).__name__)
    try: client.get("https://other.test/")
    except httpx.ConnectError as error: print(type(error).__name__)
async def main():
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=4)) as client:
        answers = await asyncio.gather(*(client.get(f"https://server.test/{n}") for n in range(12)))
        print(sorted(int(answer.json()["path"][1:]) for answer in answers) == list(range(12)))
asyncio.run(main())
with httpcore.ConnectionPool() as pool:
    print(pool.request("GET", "https://server.test/core").status)
async def streams():
    stream = await anyio.connect_tcp("server.test", 443, tls=True)
    await stream.send(b"GET /anyio HTTP/1.1\\r\\nHost: server.test\\r\\nConnection: close\\r\\n\\r\\n")
    print((await stream.receive()).split(b"\\r\\n")[0])
    await stream.aclose()
anyio.run(streams)
"""


def test_unmodified_httpx_httpcore_and_anyio(world: World) -> None:
    mounts = packages("httpx", "httpcore", "anyio", "h11", "idna", "certifi", "typing_extensions")
    with Sandbox(network=world.policy, mounts=mounts, python_path=["/opt/packages"]) as sandbox:
        expected = [
            '200 HTTP/1.1 /a?b=c {"x":1}',
            "TLSv1.3 http/1.1",
            "/there",
            "chunk0chunk1chunk2",
            "/plain",
            "ConnectError",
            "ConnectError",
            "True",
            "200",
            "b'HTTP/1.1 200 OK'",
        ]
        assert said(sandbox, HTTPX).splitlines() == expected


REQUESTS = """
import requests, urllib3, urllib.request, http.client, json
session = requests.Session()
put = session.put("https://server.test/p", data="x")
print(session.get("https://server.test/r").json()["path"], put.json()["method"])
print(session.get("https://server.test/redirect").json()["path"], session.get("https://server.test/chunks").text)
print(urllib3.PoolManager().request("GET", "https://server.test/u").json()["path"])
print(json.load(urllib.request.urlopen("https://server.test/l"))["path"])
connection = http.client.HTTPSConnection("server.test")
connection.request("DELETE", "/h"); print(json.load(connection.getresponse())["method"])
try: session.get("https://server.test/inside")
except requests.ConnectionError as error: print(type(error).__name__)
"""


def test_the_ready_libraries_through_a_proxy(world: World) -> None:
    with Sandbox(network=world.policy) as sandbox:
        expected = ["/r PUT", "/there chunk0chunk1chunk2", "/u", "/l", "DELETE", "ConnectionError"]
        assert said(sandbox, REQUESTS).splitlines() == expected
        assert sandbox.run("curl -s https://server.test/c | jq -r .path").stdout == "/c\n"
        assert sandbox.run("wget -qO- https://server.test/w | jq -r .path").stdout == "/w\n"
        result = sandbox.run("curl -sS https://other.test/")
        assert (result.exit_code, result.error_class) == (6, "CAPABILITY_DENIED")
        # A name that the proxy does not know is an error of the connection, and the proxy's own word.
        assert sandbox.run("curl -sS https://unknown.test/").exit_code == 7
    # Nothing that is not granted was asked of the proxy.
    assert {line.split(" ")[1] for line in world.proxy.asked} == {"server.test:443", "unknown.test:443"}


def test_the_proxy_of_the_environment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", world.policy["proxy"]["url"])
    monkeypatch.setenv("NO_PROXY", "direct.invalid, 10.0.0.0/8")
    hosts = ["server.test", "direct.invalid", "x.direct.invalid"]
    policy = {**world.policy, "allowedHosts": hosts, "proxy": {"url": "environment", "resolvesNames": True}}
    with Sandbox(network=policy) as sandbox:
        assert sandbox.run("curl -s https://server.test/a | jq -r .path").stdout == "/a\n"
        assert sandbox.run("curl -s http://server.test/b | jq -r .path").stdout == "/b\n"
        for host in hosts[1:]:
            assert sandbox.run(f"curl -s http://{host}/").exit_code == 7
        # Who owns the machine has the variables, a guest does not.
        assert "PROXY" not in sandbox.run("env").stdout
    assert {line.split(" ")[1] for line in world.proxy.asked} == {"server.test:443", "server.test:80"}
    monkeypatch.delenv("HTTPS_PROXY")
    asked = len(world.proxy.asked)
    with Sandbox(network={**policy, "allowedHosts": ["direct.invalid"]}) as sandbox:
        # Without the variable there is no proxy.
        assert sandbox.run("curl -s http://direct.invalid/").exit_code == 7
    assert len(world.proxy.asked) == asked


def test_a_proxy_that_refuses_and_its_password(world: World) -> None:
    wrong = {**world.policy, "proxy": {"url": f"http://me:wrong@127.0.0.1:{world.proxy.port}", "resolvesNames": True}}
    with Sandbox(network=wrong) as sandbox:
        result = sandbox.run("curl -sSv https://server.test/ 2>&1; env; cat /proc/net/tcp")
        assert result.exit_code == 0 and "wrong" not in result.stdout and "server.test" in result.stdout
    with pytest.raises(Exception, match="proxy: the URL is not") as refused:
        Sandbox(network={"allowedHosts": ["x.com"], "proxy": {"url": "socks5://me:secret@127.0.0.1:1"}})
    assert "secret" not in str(refused.value)


def test_secrets_go_over_verified_tls_alone(world: World) -> None:
    secret = {"name": "KEY", "host": "server.test", "value": "very-secret-value", "as": {"header": "X-Key"}}
    with Sandbox(network={**world.policy, "secrets": [secret]}) as sandbox:
        assert "very-secret" not in sandbox.run("env").stdout
        assert sandbox.run("curl -s https://server.test/ | jq -r .key").stdout == "*****************\n"
        assert sandbox.run("curl -s -H 'X-Key: own' http://server.test/ | jq -r .key").stdout == "null\n"
        echoed = sandbox.run('curl -s -u "me:$KEY" https://server.test/ | jq -r .authorization')
        assert "*" * 20 in echoed.stdout


def test_sockets_do_not_survive_a_fork_or_a_snapshot(world: World) -> None:
    code = """
import socket, time, os
s = socket.create_connection(("server.test", 80))
def ask():
    s.sendall(b"GET /x HTTP/1.1\\r\\nHost: server.test\\r\\n\\r\\n")
    data = b""
    while b"}" not in data:
        data += s.recv(4096)
    return data[:12]
"""
    with Sandbox(network=world.policy) as sandbox:
        sandbox.python(code).check()
        assert "200" in str(sandbox.python("ask()").value)
        snapshot = sandbox.snapshot()
        with sandbox.fork() as fork:
            assert "ConnectionResetError" in str(fork.python("ask()").error)
            # A new one works.
            assert "200" in str(fork.python(code + "ask()").value)
        assert "200" in str(sandbox.python("ask()").value)
        state = sandbox.export_state()
        sandbox.restore(snapshot)
        assert "ConnectionResetError" in str(sandbox.python("ask()").error)
        sandbox.import_state(state)
        assert "ConnectionResetError" in str(sandbox.python("ask()").error)


def test_servers_in_the_background_live_as_long_as_they_may() -> None:
    with Sandbox(background_timeout=0.3) as sandbox:
        sandbox.run("nc -l -k 9000 > /dev/null 2>&1 < /dev/null &")
        sandbox.run("until ! ss -ltn | grep -q :9000; do sleep 0.05; done", check=True)
        with pytest.raises(SandboxError):
            sandbox.port(9000).request("GET")
    with pytest.raises(ValueError):
        Sandbox(background_timeout=-1)
