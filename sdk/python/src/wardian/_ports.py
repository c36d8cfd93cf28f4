"""Ports that programs in a sandbox listen at: one connection over the protocol, and HTTP over that."""

from __future__ import annotations

import collections
import http.client
import io
import json
import threading
import time
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Deque, Mapping, Optional, Tuple, Union

from ._calls import Call, _get
from .errors import SandboxError, WardianError
from .files import Content, encode

if TYPE_CHECKING:
    from ._handle import Handle

#: How much is written at once; the server takes at most 1 MiB.
_PIECE = 256 << 10
#: How long a request takes at most, and how long a body is.
REQUEST_SECONDS = 30.0
BODY_MOST = 64 << 20


class Inbox:
    """What a connection has sent, until it is taken."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pieces: Deque[bytes] = collections.deque()
        self._ended = False
        self._error: Optional[str] = None

    def put(self, data: bytes) -> None:
        with self._changed:
            self._pieces.append(data)
            self._changed.notify()

    def end(self, error: Optional[str]) -> None:
        with self._changed:
            if not self._ended:
                self._ended, self._error = True, error
            self._changed.notify()

    def take(self, deadline: float) -> bytes:
        """Returns the next piece; nothing at the end."""
        with self._changed:
            while not self._pieces and not self._ended:
                rest = deadline - time.monotonic()
                if rest <= 0:
                    raise _timed_out()
                self._changed.wait(rest)
            if self._pieces:
                return self._pieces.popleft()
            if self._error is not None:
                raise SandboxError(f"{self._error}: the connection was lost", self._error)
            return b""


@dataclass(frozen=True)
class PortResponse:
    """What a server in a sandbox responded."""

    status: int
    reason: str
    #: Its fields; of a repeated one, the values joined by commas.
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as UTF-8; what is not becomes U+FFFD."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Exchange:
    """One connection to a port, for one request."""

    def __init__(self, handle: Handle, port: int, timeout: float) -> None:
        self._handle = handle
        self._port = port
        self._deadline = time.monotonic() + timeout
        self._inbox = Inbox()
        self._id: Optional[str] = None
        self._closed = False

    def run(
        self, method: str, path: str, headers: Optional[Mapping[str, str]], body: Optional[Content], most: int
    ) -> PortResponse:
        """Sends the request and returns the whole response."""
        try:
            self._open()
            connection = _Connection(self, self._port)
            content = body.encode("utf-8") if isinstance(body, str) else body
            given = {**({} if headers is None else headers), "Connection": "close"}
            connection.request(method, path, content, given)
            with connection.getresponse() as response:
                data = _read(response, most)
                fields = {name: response.headers[name] for name in response.headers}
                for name in fields:
                    fields[name] = ", ".join(response.headers.get_all(name, []))
                return PortResponse(response.status, response.reason, fields, data)
        except http.client.HTTPException as error:
            raise SandboxError(f"EPROTO: the response is not HTTP: {error!r}", "EPROTO") from error
        finally:
            self.close()

    def _open(self) -> None:
        result = self._wait(self._handle.send(Call("net.connect", {"port": self._port}, _same), claims=self._inbox))
        self._id = _get(result, "streamId", str)

    def _wait(self, request: Any) -> Any:
        try:
            return request.answer.result(timeout=max(self._deadline - time.monotonic(), 0))
        except FutureTimeout:
            raise _timed_out() from None

    def send(self, data: bytes) -> None:
        for start in range(0, len(data), _PIECE):
            piece = encode(bytes(data[start : start + _PIECE]))
            self._wait(self._handle.send(Call("net.write", {"streamId": self._id, "data": piece}, _same)))

    def receive(self) -> bytes:
        data = self._inbox.take(self._deadline)
        if data:
            # Nobody waits for the answer: the connection may have ended meanwhile.
            self._handle.send(Call("net.ack", {"streamId": self._id, "bytes": len(data)}, _same))
        return data

    def close(self) -> None:
        """Ends it, also for callers that wait in other threads."""
        self._inbox.end("ECONNABORTED")
        if self._id is not None and not self._closed:
            self._closed = True
            try:
                self._handle.server.connection.disclaim(self._id)
                self._handle.send(Call("net.close", {"streamId": self._id}, _same))
            except WardianError:
                # Then it is closed.
                pass


class _Connection(http.client.HTTPConnection):
    def __init__(self, exchange: Exchange, port: int) -> None:
        super().__init__("localhost", port)
        self._exchange = exchange

    def connect(self) -> None:
        self.sock = _Socket(self._exchange)


class _Socket:
    """What ``http.client`` needs of a socket."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def sendall(self, data: Union[bytes, bytearray, memoryview]) -> None:
        self._exchange.send(bytes(data))

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Incoming(self._exchange))

    def close(self) -> None:
        """Left to the exchange: the response is read after this."""


class _Incoming(io.RawIOBase):
    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._rest or self._exchange.receive()
        size = min(len(buffer), len(data))
        buffer[:size] = data[:size]
        self._rest = data[size:]
        return size


def _read(response: http.client.HTTPResponse, most: int) -> bytes:
    body = bytearray()
    while True:
        # `read1` returns what has come, so that an endless body is noticed as soon as it is too long.
        part = response.read1(1 << 16)
        if not part:
            return bytes(body)
        body += part
        if len(body) > most:
            raise SandboxError(f"EFBIG: the body has more than {most} bytes", "EFBIG")


def _same(result: Any) -> Any:
    return result


def _timed_out() -> SandboxError:
    return SandboxError("ETIMEDOUT: the server in the sandbox took too long", "ETIMEDOUT")


def check(port: int) -> int:
    """Refuses what is no port."""
    if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= 65535:
        raise ValueError(f"a port is a number from 1 to 65535, not {port!r}")
    return port


def url(port: int) -> Call[str]:
    """Asks where the server serves a port by HTTP."""
    return Call("net.url", {"port": port}, lambda result: _get(result, "url", str))


def limits(timeout: Optional[float], max_bytes: Optional[int]) -> Tuple[float, int]:
    """The limits of a request."""
    return (REQUEST_SECONDS if timeout is None else timeout, BODY_MOST if max_bytes is None else max_bytes)
