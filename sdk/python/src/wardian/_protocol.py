"""One server process, and all requests in progress.

Requests from any thread become lines in a queue. A writer thread sends them, so that no one waits on a full pipe; a
reader thread passes each response to its future. Calls from the server (extensions) get a thread each::

    any thread ── request() ──► queue ──► writer ──► wardian serve --stdio
        ▲                                                     │
        └── Future ◄── reader (answers, output) ◄─────────────┘
                          └──► a thread per call of an extension ──► queue

Whatever ends the connection (the server dies, violates the protocol, is closed) fails every pending future and every
later request with an exception that says what happened. So no caller can be left waiting.

Commands of one sandbox are sent one at a time, the next when the last has returned. The server would queue them too,
but ``cancel`` cancels whatever runs, and only this way is that sure to be the intended command.
"""

from __future__ import annotations

import collections
import functools
import io
import itertools
import json
import logging
import os
import signal
import subprocess
import threading
import weakref
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any, Callable, Deque, Dict, List, Mapping, Optional, Sequence, Set, Union, cast

from .errors import (
    InvalidRequestError,
    ProtocolError,
    RequestTooLargeError,
    SandboxClosedError,
    SandboxError,
    ServerDiedError,
    ServerFaultError,
    WardianError,
)
from .files import decode

if TYPE_CHECKING:
    from ._ports import Inbox
    from ._process import Mailbox
    from ._watch import WatchBox

_log = logging.getLogger("wardian")

#: The bounds of what a server can be told to accept as a line; on pipes it accepts the longest until then.
_LINE_LEAST = 1 << 10
_LINE_MOST = 128 << 20
#: No answer is as long as this; a server that goes on without an end of line must not fill our memory.
_ANSWER_MOST = 1 << 30
#: How long a server may take to end after it was asked to.
_GRACE_SECONDS = 5.0
#: How much of the server's log an exception shows.
_LAST_WORDS = 20

#: Takes a stream's name and a piece of it.
OnOutput = Callable[[str, bytes], None]
#: Takes the method and the params of a call from the server and answers its result; LookupError: there is no such call.
OnCall = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]


class Request:
    """A request in progress: its line, and the future of its response."""

    def __init__(self, number: int, line: bytes, lane: Optional[str], on_output: Optional[OnOutput]) -> None:
        self.number = number
        self.line = line
        #: The sandbox whose commands go one after the other; None for what is not a command.
        self.lane = lane
        self.on_output = on_output
        #: Where a connection to a port that it opens puts what arrives.
        self.claims: Optional[Inbox] = None
        #: The same for a process that it starts.
        self.mailbox: Optional[Mailbox] = None
        #: The same for a watcher.
        self.watch: Optional[WatchBox] = None
        self.answer: Future[Any] = Future()
        # From now on nobody can cancel it but the one who answers: `abandon` is the way to give up.
        self.answer.set_running_or_notify_cancel()


class Connection:
    """The process, its threads, and pending requests. Not collected before it is closed: its threads refer to it."""

    def __init__(self, command: Sequence[str], on_call: OnCall) -> None:
        self._on_call = on_call
        # Reentrant, for closing may come out of a garbage collection anywhere.
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._line_most = _LINE_MOST
        self._pending: Dict[int, Request] = {}
        self._lanes: Dict[str, Deque[Request]] = {}
        #: What is heard from ports, by connection.
        self._inboxes: Dict[str, Inbox] = {}
        #: The same from processes beside the shells.
        self._mailboxes: Dict[str, Mailbox] = {}
        #: The same from watchers.
        self._watches: Dict[str, WatchBox] = {}
        #: Why nothing can be asked any more. It makes an exception for each of those who ask.
        self._failure: Optional[Callable[[], WardianError]] = None
        self._killing = False
        #: Lines to send, errands to run, and None for the end.
        self._outgoing: SimpleQueue[Union[bytes, Callable[[], None], None]] = SimpleQueue()
        self._last_words: Deque[str] = collections.deque(maxlen=_LAST_WORDS)
        # A session of its own: Ctrl-C at our terminal is for us to hear, not for the server to die of.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._owner = os.getpid()
        self._threads = [
            threading.Thread(target=work, name=f"wardian-{work.__name__.strip('_')}", daemon=True)
            for work in (self._listen, self._write, self._read)
        ]
        for thread in self._threads:
            thread.start()
        _connections.add(self)

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    # -- requests ------------------------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        params: Mapping[str, Any],
        lane: Optional[str] = None,
        on_output: Optional[OnOutput] = None,
        claims: Optional[Inbox] = None,
        mailbox: Optional[Mailbox] = None,
        watch: Optional[WatchBox] = None,
    ) -> Request:
        """Sends a request. With a ``lane`` it waits for those already in it."""
        if os.getpid() != self._owner:
            raise SandboxClosedError("this sandbox belongs to the process that made it, not to a fork of that")
        number = next(self._numbers)
        line = _encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        if len(line) > self._line_most:
            raise RequestTooLargeError(
                f"{method}: {len(line)} bytes do not fit into one request, which has at most {self._line_most}"
            )
        request = Request(number, line, lane, on_output)
        request.claims, request.mailbox, request.watch = claims, mailbox, watch
        with self._lock:
            if self._failure is not None:
                raise self._failure()
            self._pending[number] = request
            if lane is None:
                self._send(request)
            else:
                self._enter(lane, request)
        return request

    def allow_lines_of(self, size: int) -> None:
        """Sets the longest line that the server was told to accept."""
        self._line_most = min(max(size, _LINE_LEAST), _LINE_MOST)

    def _send(self, request: Request) -> None:
        self._outgoing.put(request.line)
        # It may be large, and the request lives until it is answered.
        request.line = b""

    def _enter(self, lane: str, request: Request) -> None:
        waiting = self._lanes.setdefault(lane, collections.deque())
        waiting.append(request)
        if len(waiting) == 1:
            self._send(request)

    def _leave(self, lane: str) -> None:
        """Sends the next request of a lane, when the first has returned."""
        waiting = self._lanes[lane]
        waiting.popleft()
        if waiting:
            self._send(waiting[0])
        else:
            del self._lanes[lane]

    def abandon(self, request: Request, cancel: Mapping[str, Any]) -> None:
        """Drops a command that no one waits for: does not send it or, if it was sent, cancels it with these params."""
        with self._lock:
            if request.number not in self._pending or request.lane is None:
                return
            waiting = self._lanes[request.lane]
            if waiting[0] is request:
                self.request("cancel", cancel)
                return
            waiting.remove(request)
            del self._pending[request.number]
        request.answer.set_exception(SandboxClosedError("the command was given up before it began"))

    def abandon_soon(self, request: Request, cancel: Mapping[str, Any]) -> None:
        """Does the same during garbage collection, when this thread may hold any lock: so another thread does it."""
        self._outgoing.put(functools.partial(self.abandon, request, cancel))

    # -- the threads ---------------------------------------------------------------------------------------------

    def _write(self) -> None:
        """Sends what is in the queue, and then closes the server's standard input."""
        with _raw(self._process.stdin) as stdin:
            while True:
                item = self._outgoing.get()
                if item is None:
                    return
                if callable(item):
                    item()
                    continue
                rest = memoryview(item)
                try:
                    while rest:
                        rest = rest[stdin.write(rest) or 0 :]
                except OSError:
                    return self._died()

    def _read(self) -> None:
        """Parses the server's messages until there are no more."""
        with io.BufferedReader(_raw(self._process.stdout)) as stdout:
            while True:
                line = stdout.readline(_ANSWER_MOST)
                # One that is killed may leave half a line behind.
                if not line.endswith(b"\n") and len(line) < _ANSWER_MOST:
                    return self._died()
                try:
                    self._take(line)
                except Exception as error:
                    message = str(error) if isinstance(error, ProtocolError) else f"cannot take an answer: {error!r}"
                    return self._fail(functools.partial(ProtocolError, message))

    def _listen(self) -> None:
        """Passes on the server's log, and keeps its last lines in case it dies."""
        with io.TextIOWrapper(io.BufferedReader(_raw(self._process.stderr)), "utf-8", "replace") as stderr:
            for line in stderr:
                self._last_words.append(line.rstrip()[:1000])
                _log.info("%s", line.rstrip())

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            raise _nonsense(line) from None
        if not isinstance(message, dict):
            raise _nonsense(line)
        if "method" not in message:
            return self._take_answer(message, line)
        params = message.get("params")
        if not isinstance(params, dict):
            raise _nonsense(line)
        if "id" in message:
            self._take_call(message, params)
        elif message["method"] == "output":
            self._take_output(params, line)
        elif message["method"] in ("net.data", "net.end"):
            self._take_net(message["method"], params, line)
        elif message["method"] in ("process.output", "process.exit"):
            self._take_process(message["method"], params, line)
        elif message["method"] in ("files.changed", "files.watchEnd"):
            self._take_watch(message["method"], params, line)

    def _take_answer(self, message: Dict[str, Any], line: bytes) -> None:
        number, error = message.get("id"), message.get("error")
        with self._lock:
            if self._failure is not None:
                return
            request = self._pending.get(number) if isinstance(number, int) else None
            # An error without an id is the response to a request that the server could not read.
            if request is None or request.line:
                raise _nonsense(line)
            del self._pending[request.number]
            if request.lane is not None:
                self._leave(request.lane)
        if "result" in message:
            # In this thread: the next line may be the first one for it.
            if request.claims is not None and isinstance(message["result"], dict):
                self._inboxes[str(message["result"].get("streamId"))] = request.claims
            if request.mailbox is not None and isinstance(message["result"], dict):
                self._mailboxes[str(message["result"].get("processId"))] = request.mailbox
            if request.watch is not None and isinstance(message["result"], dict):
                self._watches[str(message["result"].get("watchId"))] = request.watch
            request.answer.set_result(message["result"])
        elif isinstance(error, dict) and isinstance(error.get("code"), int):
            # What a server says while it is killed only means that it is.
            request.answer.set_exception(_closed() if self._killing else _error(error))
        else:
            request.answer.set_exception(_nonsense(line))
            raise _nonsense(line)

    def _take_output(self, params: Dict[str, Any], line: bytes) -> None:
        request = self._pending.get(params.get("request_id", 0))
        try:
            # All our commands ask for base64.
            stream, data = str(params["stream"]), decode(params["data"])
        except (KeyError, TypeError, ValueError):
            raise _nonsense(line) from None
        if stream not in ("stdout", "stderr"):
            raise _nonsense(line)
        if request is not None and request.on_output is not None:
            request.on_output(stream, data)

    def _take_net(self, method: str, params: Dict[str, Any], line: bytes) -> None:
        # One that was closed may have had something on its way.
        inbox = self._inboxes.get(str(params.get("streamId")))
        if inbox is None:
            return
        if method == "net.end":
            error = params.get("error")
            return inbox.end(None if error is None else str(error))
        try:
            inbox.put(decode(params["data"]))
        except (KeyError, TypeError, ValueError):
            raise _nonsense(line) from None

    def _take_process(self, method: str, params: Dict[str, Any], line: bytes) -> None:
        mailbox = self._mailboxes.get(str(params.get("processId")))
        if mailbox is None:
            return
        if method == "process.exit":
            self._mailboxes.pop(str(params["processId"]), None)
            return mailbox.end(params)
        try:
            mailbox.put(str(params["stream"]), decode(params["data"]))
        except (KeyError, TypeError, ValueError):
            raise _nonsense(line) from None

    def _take_watch(self, method: str, params: Dict[str, Any], line: bytes) -> None:
        # One that was closed may have had something on its way.
        box = self._watches.get(str(params.get("watchId")))
        if box is None:
            return
        if method == "files.watchEnd":
            self.unwatch(str(params["watchId"]))
            error = params.get("error")
            return box.end(None if error is None else str(error))
        try:
            box.put(params)
        except (KeyError, TypeError, ValueError):
            raise _nonsense(line) from None

    def unwatch(self, watch: str) -> None:
        """Forgets a watcher."""
        self._watches.pop(watch, None)

    def disclaim(self, stream: str) -> None:
        """Forgets a connection to a port."""
        self._inboxes.pop(stream, None)

    def _take_call(self, message: Dict[str, Any], params: Dict[str, Any]) -> None:
        """Handles a call from the server, in a separate thread: it may take long, and make requests itself."""
        worker = threading.Thread(
            target=self._answer_call, args=(message["id"], message["method"], params), name="wardian-call", daemon=True
        )
        worker.start()

    def _answer_call(self, number: Any, method: Any, params: Dict[str, Any]) -> None:
        answer: Dict[str, Any] = {"jsonrpc": "2.0", "id": number}
        try:
            answer["result"] = self._on_call(str(method), params)
        except LookupError:
            answer["error"] = {"code": -32601, "message": f"this client does not answer {method}"}
        try:
            line = _encode(answer)
        except (TypeError, ValueError) as error:
            line = _encode(_refusal(number, f"the answer cannot be sent: {error}"))
        if len(line) > self._line_most:
            line = _encode(_refusal(number, f"the answer has {len(line)} bytes, at most {self._line_most} can be sent"))
        self._outgoing.put(line)

    # -- the end -------------------------------------------------------------------------------------------------

    def _died(self) -> None:
        """Handles that the server is gone, or as good as gone."""
        try:
            self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            how = "closed its streams"
        else:
            how = _ending(self._process.returncode)
        # What it said last may still be on its way to us.
        self._threads[0].join(timeout=1)
        words = "".join(f"\n  {word}" for word in self._last_words)
        self._fail(_closed if self._killing else lambda: ServerDiedError(f"the server {how}{words}"))

    def _fail(self, failure: Callable[[], WardianError]) -> None:
        """Ends the connection for this reason: the server cannot be used any more, and all pending calls fail."""
        self._process.kill()
        self._give_up(failure)

    def _give_up(self, failure: Callable[[], WardianError]) -> None:
        with self._lock:
            if self._failure is None:
                self._failure = failure
            failure = self._failure
            pending: List[Request] = list(self._pending.values())
            self._pending.clear()
            self._lanes.clear()
        for inbox in list(self._inboxes.values()):
            inbox.end("ECONNRESET")
        for mailbox in list(self._mailboxes.values()):
            mailbox.fail(failure())
        for box in list(self._watches.values()):
            box.fail(failure())
        for request in pending:
            request.answer.set_exception(failure())
        # The writer closes the server's input, and that is how a server is asked to end.
        self._outgoing.put(None)

    def kill(self) -> None:
        """Makes the server stop everything immediately, and itself."""
        self._killing = True
        try:
            self.request("kill", {}).answer.result(timeout=_GRACE_SECONDS)
        except (WardianError, FutureTimeout):
            # It is dead already, or will be: closing does not ask.
            pass
        self.close()

    def close(self) -> None:
        """Stops the server, and waits for it and the threads. May be called again."""
        self.end()
        if os.getpid() == self._owner:
            for thread in self._threads:
                if thread is not threading.current_thread():
                    thread.join()

    def end(self) -> None:
        """Stops the server, and waits until it has exited. All pending calls raise an exception.

        This is also safe during garbage collection. The threads cannot be joined there: one of them may
        need a logging lock that this very thread holds.
        """
        if os.getpid() != self._owner:
            return
        self._give_up(_closed)
        try:
            self._process.wait(timeout=_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def let_go(self) -> None:
        """In a forked child: closes the server's input, or the server would not notice that its owner died."""
        _raw(self._process.stdin).close()


class Server:
    """The handle that sandboxes share. When the last of them is collected, or Python exits, the server is stopped."""

    def __init__(self, command: Sequence[str], on_call: OnCall) -> None:
        self.connection = Connection(command, on_call)
        #: The ids of the sandboxes beside the first.
        self.others: Set[str] = set()
        self._end = weakref.finalize(self, self.connection.end)

    def close(self) -> None:
        """Stops the server."""
        self.connection.close()
        self.others.clear()
        self._end.detach()


#: For what a forked child must let go of.
_connections: weakref.WeakSet[Connection] = weakref.WeakSet()


def _let_go_in_child() -> None:
    for connection in list(_connections):
        connection.let_go()


os.register_at_fork(after_in_child=_let_go_in_child)


def _encode(message: Mapping[str, Any]) -> bytes:
    """One line. Raises ValueError for text that cannot be encoded as UTF-8, which the server could not read."""
    return json.dumps(message, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"


def _refusal(number: Any, message: str) -> Dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": -32603, "message": message}}


def _raw(pipe: Optional[IO[bytes]]) -> io.RawIOBase:
    """Returns a pipe of the process as a raw stream: it exists, and has no buffer."""
    return cast(io.RawIOBase, pipe)


def _closed() -> WardianError:
    return SandboxClosedError("the sandbox has been closed")


def _nonsense(line: bytes) -> ProtocolError:
    shown = line[:200].decode("utf-8", "replace").rstrip()
    return ProtocolError(f"the server violated the protocol: {shown}")


def _error(error: Dict[str, Any]) -> WardianError:
    """Returns the exception for an error object of the protocol."""
    code, message = error["code"], str(error.get("message", ""))
    if code == 1:
        data = error.get("data")
        errno = data.get("errno") if isinstance(data, dict) else None
        return SandboxError(message, errno if isinstance(errno, str) else None)
    if code == -32603:
        return ServerFaultError(message)
    return InvalidRequestError(message, code)


def _ending(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"
