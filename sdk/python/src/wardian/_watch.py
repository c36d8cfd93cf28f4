"""Being told of what changes in a directory: what both kinds of sandbox have in common, and the two iterators."""

from __future__ import annotations

import asyncio
import collections
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Deque, Iterator, Mapping, Optional, Type

from ._calls import Call, _get, _order
from .errors import SandboxError, WardianError

if TYPE_CHECKING:
    from ._handle import Handle

#: How many events are kept that nobody has taken.
_MOST = 10_000


@dataclass(frozen=True)
class WatchEvent:
    """Something that happened to a file."""

    #: Its path in the directory that is watched.
    path: str
    #: ``"create"``, ``"write"``, ``"remove"``, ``"rename"`` (the old name) or ``"chmod"``; ``"overflow"``, with an
    #: empty path, if there were more events than are kept: look at everything again.
    change: str
    #: ``"file"``, ``"dir"`` or ``"symlink"``.
    type: str


def watch(path: str, recursive: bool) -> Call[str]:
    """Begins to watch; returns the watcher's id."""
    params = {"path": path, "recursive": True} if recursive else {"path": path}
    return Call("files.watch", params, lambda result: _get(result, "watchId", str))


def unwatch(id: str) -> Call[None]:
    """Ends that."""
    return _order("files.unwatch", watchId=id)


class WatchBox:
    """The events of a watcher, until they are taken."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._events: Deque[WatchEvent] = collections.deque()
        self._ended = False
        self._failure: Optional[WardianError] = None
        #: Called, in whatever thread, whenever something has changed.
        self.listener: Optional[Callable[[], None]] = None

    def put(self, params: Mapping[str, Any]) -> None:
        events = [
            WatchEvent(_get(one, "path", str), _get(one, "change", str), _get(one, "type", str))
            for one in _get(params, "events", list)
        ]
        with self._changed:
            for event in events:
                if len(self._events) < _MOST:
                    self._events.append(event)
                elif self._events[-1].change != "overflow":
                    self._events[-1] = WatchEvent("", "overflow", "dir")
            self._wake()

    def end(self, error: Optional[str]) -> None:
        """Nothing more comes. That the directory is gone is no error."""
        gone = error is None or error == "ENOENT"
        self.fail(None if gone else SandboxError(f"{error}: the directory cannot be watched any more", error))

    def fail(self, failure: Optional[WardianError]) -> None:
        with self._changed:
            if not self._ended:
                self._ended, self._failure = True, failure
            self._wake()

    def _wake(self) -> None:
        self._changed.notify_all()
        if self.listener is not None:
            self.listener()

    def poll(self) -> Optional[WatchEvent]:
        """The next event, or None if there is none yet. Raises StopIteration after the last."""
        with self._changed:
            if self._events:
                return self._events.popleft()
            if self._failure is not None:
                raise self._failure
            if self._ended:
                raise StopIteration
            return None

    def take(self) -> WatchEvent:
        """The same, when there is one."""
        with self._changed:
            while True:
                found = self.poll()
                if found is not None:
                    return found
                self._changed.wait()


class _Watched:
    """A watcher of a sandbox."""

    def __init__(self, handle: Handle, id: str, box: WatchBox) -> None:
        self._handle = handle
        #: Its id in the protocol.
        self.id = id
        self._box = box

    def close(self) -> None:
        """Ends it, at once."""
        self._box.end(None)
        self._handle.server.connection.unwatch(self.id)
        try:
            # Nobody waits for the answer: it may have ended by itself.
            self._handle.send(unwatch(self.id))
        except WardianError:
            # Its sandbox is gone, and it with that.
            pass


class Watch(_Watched, Iterator[WatchEvent]):
    """What happens in a directory, until :meth:`close`, or until the directory or its sandbox is gone::

    with sandbox.files.watch("/work", recursive=True) as events:
        for event in events:
            print(event.change, event.path)
    """

    def __iter__(self) -> Watch:
        return self

    def __next__(self) -> WatchEvent:
        return self._box.take()

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


class AsyncWatch(_Watched, AsyncIterator[WatchEvent]):
    """The same for asyncio: ``async with``, ``async for``."""

    def __init__(self, handle: Handle, id: str, box: WatchBox) -> None:
        super().__init__(handle, id, box)
        self._changed = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(self._changed.set)
            except RuntimeError:
                # The loop is closed: nobody waits.
                pass

        box.listener = wake

    def __aiter__(self) -> AsyncWatch:
        return self

    async def __anext__(self) -> WatchEvent:
        while True:
            self._changed.clear()
            try:
                found = self._box.poll()
            except StopIteration:
                raise StopAsyncIteration from None
            if found is not None:
                return found
            await self._changed.wait()

    async def __aenter__(self) -> AsyncWatch:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()
