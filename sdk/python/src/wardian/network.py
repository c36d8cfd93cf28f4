"""What a sandbox may reach outside, and your own say in each of its requests.

::

    def decide(request: NetworkRequest) -> Decision:
        if request.method != "GET":
            return NetworkDenial("only reading is allowed")
        if request.path == "/motd":
            return NetworkAnswer(body="hello\\n")
        return True

    with Sandbox(network=NetworkPolicy(allowed_hosts=["example.com"], on_request=decide)) as sandbox:
        sandbox.run("curl https://example.com/motd")

The function sees each HTTP request that the policy allows, without secrets and without its body. True lets the request
out, False or a :class:`NetworkDenial` refuses it, a :class:`NetworkAnswer` is what the sandbox gets instead. Everything
else refuses: an exception, None, no answer within ``response_timeout_ms``. It may be ``async``; of a
:class:`~wardian.Sandbox` it is called in a thread of its own, several at once.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import logging
from dataclasses import dataclass
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._waiting import wait
from .files import encode

_log = logging.getLogger("wardian")


@dataclass(frozen=True)
class NetworkRequest:
    """A request that the policy allows, as the sandbox sent it."""

    #: ``http`` or ``https``.
    scheme: str
    host: str
    port: int
    method: str
    #: The path and the query.
    path: str
    #: Its headers, in order; a name may come twice. Secrets are placeholders.
    headers: Sequence[Tuple[str, str]]

    @property
    def url(self) -> str:
        """Its URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = {"http": 80, "https": 443}.get(self.scheme) == self.port
        return f"{self.scheme}://{host}{'' if usual else f':{self.port}'}{self.path}"

    def header(self, name: str) -> Optional[str]:
        """Returns the first header of this name, in whatever case."""
        return next((value for one, value in self.headers if one.lower() == name.lower()), None)


@dataclass(frozen=True)
class NetworkDenial:
    """Refuses a request: the sandbox gets a 403 with this reason."""

    reason: str = "denied by onRequest"


@dataclass(frozen=True)
class NetworkAnswer:
    """Answers a request; nothing goes out."""

    #: From 200 to 599.
    status: int = 200
    #: At most ``response_bytes`` of the policy; text is sent as UTF-8.
    body: Union[str, bytes] = b""
    #: Those about the connection and its length are the gateway's own.
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


#: What decides about a request.
Decision = Union[bool, NetworkDenial, NetworkAnswer]
OnRequest = Callable[[NetworkRequest], Union[Decision, Awaitable[Decision]]]


@dataclass(frozen=True)
class NetworkPolicy:
    """What a sandbox may reach outside. docs/network.md describes the fields; None means the default."""

    allowed_hosts: Optional[Sequence[str]] = None
    blocked_hosts: Optional[Sequence[str]] = None
    ports: Optional[Sequence[int]] = None
    http_ports: Optional[Sequence[int]] = None
    http_rules: Optional[Sequence[Mapping[str, Any]]] = None
    raw_hosts: Optional[Sequence[str]] = None
    allow_private: Optional[Sequence[str]] = None
    secrets: Optional[Sequence[Mapping[str, Any]]] = dataclasses.field(default=None, repr=False)
    request_bytes: Optional[int] = None
    response_bytes: Optional[int] = None
    total_bytes: Optional[int] = None
    bytes_per_second: Optional[int] = None
    requests_per_second: Optional[int] = None
    max_connections: Optional[int] = None
    connect_timeout_ms: Optional[int] = None
    response_timeout_ms: Optional[int] = None
    idle_timeout_ms: Optional[int] = None
    allow_unverified_tls: Optional[bool] = None
    roots: Optional[str] = None
    ca_file: Optional[str] = None
    http2: Optional[bool] = None
    proxy: Optional[Mapping[str, Any]] = dataclasses.field(default=None, repr=False)
    record: Optional[str] = None
    replay: Optional[str] = None
    mode: Optional[str] = None
    #: Decides about each HTTP request that the policy allows.
    on_request: Optional[OnRequest] = None

    def params(self) -> Dict[str, Any]:
        """Returns its protocol representation."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        given["on_request"] = True if self.on_request is not None else None
        return {_camel_case(name): value for name, value in given.items() if value is not None}


#: What can be given as a policy.
NetworkLike = Union[NetworkPolicy, Mapping[str, Any]]


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


class Requests:
    """Answers ``network.request``."""

    def __init__(self, network: Optional[NetworkLike]) -> None:
        self._on_request = network.on_request if isinstance(network, NetworkPolicy) else None
        #: The loop of an :class:`~wardian.AsyncSandbox`, where an async function runs.
        self.loop: Optional[asyncio.AbstractEventLoop] = None

    def decide(self, params: Mapping[str, Any]) -> Dict[str, Any]:
        """Returns the decision, whatever the function does."""
        try:
            return _answer(self._call(params))
        except (Exception, SystemExit, asyncio.CancelledError):
            _log.warning("on_request failed: the request is denied", exc_info=True)
            return {"action": "deny", "reason": "onRequest failed"}

    def _call(self, params: Mapping[str, Any]) -> object:
        if self._on_request is None:
            raise TypeError("there is no on_request: give network=NetworkPolicy(…, on_request=…)")
        names = ("scheme", "host", "port", "method", "path")
        headers: List[Tuple[str, str]] = [(str(name), str(value)) for name, value in params["headers"]]
        decided = self._on_request(NetworkRequest(**{name: params[name] for name in names}, headers=headers))
        return wait(decided, self.loop) if inspect.iscoroutine(decided) else decided


def _answer(decision: object) -> Dict[str, Any]:
    if decision is True:
        return {"action": "allow"}
    if decision is False:
        return {"action": "deny"}
    if isinstance(decision, NetworkDenial):
        return {"action": "deny", "reason": decision.reason}
    if isinstance(decision, NetworkAnswer):
        body, headers = encode(decision.body), dict(decision.headers)
        return {"action": "answer", "status": decision.status, "headers": headers, "data": body}
    raise TypeError(f"on_request returned {type(decision).__name__}, not a bool, NetworkDenial or NetworkAnswer")
