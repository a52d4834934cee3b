"""uvicorn's protocol with bounds on what a client may do around its requests: heads too large or too slow, and clients that stand still."""

from __future__ import annotations

import asyncio
from itertools import chain
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from .corked import Corked

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain\r\ncontent-length: 29\r\nconnection: close\r\n\r\n"
    b"The headers are too large.   "
)
_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain\r\ncontent-length: 29\r\nconnection: close\r\n\r\n"
    b"The headers came too slowly. "
)
LOOKS = 4
"""How many looks at a connection, one after another, must find its client standing still before it is given up."""


class _Nowhere(list[Any]):
    """Takes the trailers of a chunked body, which nobody reads and which may have no end."""

    def append(self, item: Any) -> None:
        """Forget it."""


_NOWHERE = _Nowhere()


def guarded_protocol(most_bytes: int, seconds: float) -> type[Guarded]:
    """The protocol class with these bounds: `most_bytes` of one head, which may take `seconds` to arrive."""
    return type("Guarded", (Guarded,), {"most_bytes": most_bytes, "seconds": seconds})


class Guarded(HttpToolsProtocol):
    """A connection whose heads are bounded, and which can tell when its client stands still."""

    most_bytes: int
    seconds: float
    cycle: RequestResponseCycle | None  # type: ignore[assignment]  # None until the first request, whatever the parent declares
    headers: list[tuple[bytes, bytes]] | None  # type: ignore[assignment]  # as above
    _head = 0  # bytes since the last whole message
    _timer: asyncio.TimerHandle | None = None
    _known = False  # a head has come whole, and its body is on the way
    _flooded = False
    _earlier: tuple[RequestResponseCycle, ...] = ()  # requests before the newest one that were under way when it came
    _unsent = 0
    _corked: Corked
    _still = 0  # looks that found the client standing still

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the parent has it
        super().connection_made(transport)
        self.transport = self._corked = Corked(transport, self.loop)  # type: ignore[assignment]  # it stands for the transport
        self._timer = self.loop.call_later(self.seconds, self._slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle()
        super().connection_lost(exc)
        for cycle in self._earlier:  # the parent tells the newest only
            cycle.disconnected = cycle.disconnected or not cycle.response_complete
            cycle.message_event.set()
        self._earlier = ()

    def data_received(self, data: bytes) -> None:
        if not self._known:
            self._head += len(data)
        super().data_received(data)
        if self.headers is None or self.headers is _NOWHERE or self.transport.is_closing():
            return
        if self._head > self.most_bytes:  # and it has not ended yet
            self._end(_TOO_LARGE)
        elif self._timer is None:
            self._timer = self.loop.call_later(self.seconds, self._slow)

    def on_headers_complete(self) -> None:
        if self._head > self.most_bytes and sum(map(len, chain(*(self.headers or ())))) + len(self.url) > self.most_bytes:
            self._flooded = True
            raise ValueError("the head is too large")
        self._known = True
        self._settle()
        before = self.cycle
        super().on_headers_complete()
        self.headers = _NOWHERE
        if before is not None and not before.response_complete:
            self._earlier = (*(cycle for cycle in self._earlier if not cycle.response_complete), before)

    def on_message_complete(self) -> None:
        self._known, self._head = False, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._corked.flush()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """What was sent is no HTTP; said only where no response is under way, in the middle of which it would stand."""
        if self._flooded:
            self._end(_TOO_LARGE)
        elif self._is_free():
            super().send_400_response(msg)
        else:
            self.transport.close()

    def resume_writing(self) -> None:
        self._still = 0
        super().resume_writing()

    def look(self) -> None:
        """Be called from time to time: a client that takes nothing in, or whose body goes on after it was answered, is given up."""
        unsent = self.transport.get_write_buffer_size()
        lingers = self._known and self.cycle is not None and self.cycle.response_complete
        self._still = self._still + 1 if lingers or (unsent and unsent >= self._unsent) else 0
        self._unsent = unsent
        if self._still >= LOOKS:
            self.transport.abort()  # to close would be to wait until it has taken in what is left

    def _settle(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _slow(self) -> None:
        self._timer = None
        if self.headers is None:
            self.transport.close()  # nothing came at all
        elif not self.transport.is_closing():
            self._end(_TOO_SLOW)

    def _end(self, answer: bytes) -> None:
        self._settle()
        if self._is_free():
            self.transport.write(answer)
        self.transport.close()

    def _is_free(self) -> bool:
        """Whether no response is being written."""
        return all(cycle is None or cycle.response_complete or not cycle.response_started for cycle in (self.cycle, *self._earlier))
