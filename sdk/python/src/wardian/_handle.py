"""Which sandbox of which server: what :class:`Sandbox` and :class:`AsyncSandbox` wrap."""

from __future__ import annotations

import enum
import os
from typing import Any, Callable, Dict, Mapping, Optional, Union

from . import _binary
from ._callbacks import Callbacks
from ._calls import Call, destroy, remove_sandbox
from ._ports import Inbox
from ._process import Mailbox
from ._protocol import OnOutput, Request, Server
from ._watch import WatchBox
from .errors import BinaryNotFoundError, SandboxClosedError, SandboxInUseError
from .options import Options

PathLike = Union[str, "os.PathLike[str]"]


class Origin(enum.Enum):
    """How a sandbox was created, which determines how it is destroyed."""

    ROOT = "the one its server was started for"
    FORK = "a fork"
    SIBLING = "a fresh one beside it"


#: How those are ended that are not their server's first.
ENDINGS: Mapping[Origin, Callable[[], Call[None]]] = {Origin.FORK: destroy, Origin.SIBLING: remove_sandbox}


class Handle:
    """A sandbox of a server."""

    def __init__(self, server: Server, origin: Origin, id: Optional[str] = None) -> None:
        self.server = server
        self.origin = origin
        self.id = id
        #: Set once it was destroyed.
        self.gone = False

    def beside(self, origin: Origin, id: str) -> Handle:
        """Returns another sandbox of the same server, which has just been created."""
        self.server.others.add(id)
        return Handle(self.server, origin, id)

    def note_end(self) -> None:
        """Takes note that it was destroyed."""
        self.gone = True
        self.server.others.discard(self.id or "")

    def check_alone(self) -> None:
        """Raises an exception if destroying the first sandbox would destroy others, too."""
        others = len(self.server.others)
        if others and not self.gone:
            noun = "fork or sibling is" if others == 1 else "forks and siblings are"
            raise SandboxInUseError(
                f"{others} {noun} still alive on this sandbox's server: destroy them first, or end all with close()"
            )

    def send(
        self,
        call: Call[Any],
        on_output: Optional[OnOutput] = None,
        claims: Optional[Inbox] = None,
        mailbox: Optional[Mailbox] = None,
        watch: Optional[WatchBox] = None,
    ) -> Request:
        """Sends a call that is about this sandbox."""
        if self.gone:
            raise SandboxClosedError("the sandbox has been destroyed")
        lane = (self.id or "") if call.method in ("run", "python.run") else None
        params = {**call.params, **self._named()}
        return self.server.connection.request(call.method, params, lane, on_output, claims, mailbox, watch)

    def ask(self, call: Call[Any]) -> Request:
        """Sends a call that is about no sandbox of this server."""
        if self.gone:
            raise SandboxClosedError("the sandbox has been destroyed")
        return self.server.connection.request(call.method, call.params)

    def abandon(self, request: Request) -> None:
        """Cancels a command that no one waits for any more."""
        self.server.connection.abandon(request, self._named())

    def abandon_soon(self, request: Request) -> None:
        """Does the same, for finalizers."""
        self.server.connection.abandon_soon(request, self._named())

    def _named(self) -> Dict[str, str]:
        return {} if self.id is None else {"sandboxId": self.id}


def start(
    options: Options,
    callbacks: Callbacks,
    binary: Optional[PathLike],
    state_dir: Optional[PathLike],
    http: Union[int, str, None] = None,
    store: Optional[PathLike] = None,
) -> Handle:
    """Starts a server and has it create its first sandbox."""
    command = [_binary.find(binary), "serve", "--stdio"]
    if state_dir is not None:
        command += ["--state-dir", os.path.abspath(state_dir)]
    if store is not None:
        is_url = "://" in os.fsdecode(store)
        command += ["--store", os.fsdecode(store) if is_url else os.path.abspath(store)]
    if http is not None:
        command += ["--http", str(http)]
    for mount in options.host_mounts:
        command += mount.flags()
    params = options.params(callbacks.specs())
    try:
        server = Server(command, callbacks.answer)
    except OSError as error:
        raise BinaryNotFoundError(f"cannot start {command[0]}: {error}") from error
    try:
        server.connection.request("create", params).answer.result()
        server.connection.allow_lines_of(params["limits"]["rpcBytes"])
    except BaseException:
        server.close()
        raise
    return Handle(server, Origin.ROOT)
