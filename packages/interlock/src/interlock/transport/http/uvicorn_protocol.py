"""uvicorn's HTTP protocol with limits against slow and stalled clients (slowloris), and with one
write per turn of the event loop.

It overrides private parts of uvicorn, and is imported only where uvicorn is installed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import chain
from typing import Any

from httptools import HttpRequestParser, parse_url
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ...compact_event import CompactEvent
from .responses import HOLD

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain\r\ncontent-length: "
    b"29\r\nconnection: close\r\n\r\n"
    b"The headers are too large.   "
)
_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain\r\ncontent-length: "
    b"29\r\nconnection: close\r\n\r\n"
    b"The headers came too slowly. "
)
LARGE = 64 * 1024
"""Bytes in one piece that are better written apart than copied together."""
LOOKS = 4
"""How many checks in a row must find a client stalled before its connection is closed."""


def _without(port: bytes, host: bytes) -> bytes:
    """A host in lower case, without the port that it has anyway."""
    return host.lower().removesuffix(port)


class _Pipeline(list[Any]):
    """Pipelined requests that wait; there are seldom any, so that an empty list is smaller than a
    deque.
    """

    def appendleft(self, item: Any) -> None:
        """Add an item."""
        self.insert(0, item)


class _Nowhere(list[Any]):
    """Drops the trailers of a chunked body: nothing reads them, and they may have no end."""

    def append(self, item: Any) -> None:
        """Drop it."""


_NOWHERE = _Nowhere()


class BufferedTransport:
    """A transport that joins what is written in one turn of the loop: head and body of a response
    leave in one packet.
    """

    __slots__ = (
        "_due",
        "_held",
        "_loop",
        "_on_large",
        "_transport",
        "is_closing",
        "pause_reading",
        "resume_reading",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        on_large: Callable[[], object],
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._on_large = on_large
        self._held: list[bytes] = []
        self._due = False
        self.is_closing = transport.is_closing
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Keep data until the end of this turn, or until `flush`."""
        if len(data) > LARGE:
            self._on_large()
            self.flush()
            self._transport.write(data)
            return
        self._held.append(data)
        if not self._due:
            self._due = True
            self._loop.call_soon(self._turn_ends)

    def flush(self) -> None:
        """Write what is kept."""
        held = self._held
        if held:
            self._held = []
            self._transport.write(held[0] if len(held) == 1 else b"".join(held))

    def close(self) -> None:
        """Write what is kept, then close."""
        self.flush()
        self._transport.close()

    def get_write_buffer_size(self) -> int:
        """Bytes that are not yet written to the socket."""
        return self._transport.get_write_buffer_size() + sum(map(len, self._held))

    def _turn_ends(self) -> None:
        self._due = False
        self.flush()


def limited_protocol(
    most_bytes: int, seconds: float, on_large: Callable[[], object] = bool
) -> type[LimitedProtocol]:
    """The protocol class with these limits: `most_bytes` of one head, which may take `seconds` to
    arrive.
    """
    return type(
        "LimitedProtocol",
        (LimitedProtocol,),
        {"most_bytes": most_bytes, "seconds": seconds, "on_large": staticmethod(on_large)},
    )


class LimitedProtocol(HttpToolsProtocol):
    """A connection whose request heads are limited in size and time, and which notices a stalled
    client.
    """

    most_bytes: int
    seconds: float
    on_large: Callable[[], object]
    # Until the first request both are None, which the parent class does not declare.
    cycle: RequestResponseCycle | None  # type: ignore[assignment]  # None at first
    headers: list[tuple[bytes, bytes]] | None  # type: ignore[assignment]  # None at first
    __slots__ = (
        "_buffered",
        "_earlier",
        "_flooded",
        "_head",
        "_held",
        "_known",
        "_still",
        "_timer",
        "_unsent",
    )  # thousands may be idle

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pipeline = _Pipeline()  # type: ignore[assignment]  # has the deque's methods in use
        self._head = 0  # bytes since the last whole message
        self._timer: asyncio.TimerHandle | None = None
        self._known = False  # a head has come whole, and its body is on the way
        self._flooded = False
        self._earlier: tuple[
            RequestResponseCycle, ...
        ] = ()  # requests before the newest one that were under way when it came
        self._unsent = 0
        self._still = 0  # looks that found the client standing still
        self._buffered: BufferedTransport
        self._held: tuple[RequestResponseCycle, Callable[[], None], Callable[[], None]] | None = (
            None
        )

    def connection_made(  # type: ignore[override]  # narrowed as in the parent class
        self, transport: asyncio.Transport
    ) -> None:
        super().connection_made(transport)
        self._buffered = BufferedTransport(transport, self.loop, self.on_large)
        self.transport = self._buffered  # type: ignore[assignment]  # has the same methods
        event = CompactEvent(is_set=True)
        self.flow._is_writable_event = event  # type: ignore[assignment]  # an Event's interface
        self._timer = self.loop.call_later(self.seconds, self._slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle()
        super().connection_lost(exc)
        held = self._held
        self._held = None
        if held is not None:
            held[1]()
        for cycle in self._earlier:  # the parent tells the newest only
            cycle.disconnected = cycle.disconnected or not cycle.response_complete
            cycle.message_event.set()
        self._earlier = ()

    def data_received(self, data: bytes) -> None:
        if len(data) > LARGE:
            self.on_large()
        if self.parser is None:
            self.parser = HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(
                lenient_data_after_close=True
            )  # as the parent does
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
        if (
            self._head > self.most_bytes
            and sum(map(len, chain(*(self.headers or ())))) + len(self.url) > self.most_bytes
        ):
            self._flooded = True
            raise ValueError("the head is too large")
        if not self.url.startswith(b"/"):
            self._judge_authority()
        self._known = True
        self._settle()
        before = self.cycle
        super().on_headers_complete()
        self.cycle.message_event = CompactEvent()  # type: ignore[union-attr]  # set by the parent
        self.headers = _NOWHERE
        if before is not None and not before.response_complete:
            self._earlier = (
                *(cycle for cycle in self._earlier if not cycle.response_complete),
                before,
            )

    def _judge_authority(self) -> None:
        """Refuse an absolute target that names another host than the Host header.

        The target would count (RFC 9112, 3.2.2), and the rules about hosts see the header.
        """
        target = parse_url(self.url)
        if not target.host:
            return  # `*`
        usual = b":443" if target.schema == b"https" else b":80"
        port = b":%d" % target.port if target.port else b""
        host = b"[%b]" % target.host if b":" in target.host else target.host
        named = [value for name, value in self.headers or () if name == b"host"]
        if [_without(usual, value.strip()) for value in named] != [_without(usual, host + port)]:
            raise ValueError("the target and the Host header name different hosts")

    def on_message_complete(self) -> None:
        self._known = False
        self._head = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._buffered.flush()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP; only where no response is under way, which the answer would
        break.
        """
        if self._flooded:
            self._end(_TOO_LARGE)
        elif self._is_free():
            super().send_400_response(msg)
        else:
            self.transport.close()

    def resume_writing(self) -> None:
        self._still = 0
        super().resume_writing()
        if self._held is not None:
            self._held[2]()

    # -- responses that no task waits for
    # ----------------------------------------------------------------

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        scope: Any = cycle.scope  # which may have keys of its own
        scope[HOLD] = self
        super()._start_asgi_task(cycle, app)

    def hold(self, gone: Callable[[], None], room: Callable[[], None]) -> bool:
        """Leave a response that has begun to this connection, so that its task may end.

        From then on it is written by `write` and ended by `finish`. A quiet stream keeps no task
        and no request this way.

        Args:
            gone: Called once the client has disconnected.
            room: Called when the client has read enough to write again.

        Returns:
            False where it cannot be left.
        """
        cycle = self.cycle
        if (
            cycle is None
            or self._earlier
            or self.pipeline
            or not cycle.response_started
            or cycle.response_complete
            or cycle.disconnected
        ):
            return False
        cycle.disconnected = True  # so that its task does nothing more
        cycle.scope = self.scope = {}  # type: ignore[typeddict-item]  # nobody reads it again
        self._held = (cycle, gone, room)
        if not self._known:
            self.parser = None  # type: ignore[assignment]  # made again if more data arrives
        return True

    @property
    def is_paused(self) -> bool:
        """Whether the write buffer is full."""
        return bool(self.flow.write_paused)

    def write(self, piece: bytes) -> None:
        """Write a piece of the body of the held response."""
        assert self._held is not None
        self.transport.write(
            b"%x\r\n%b\r\n" % (len(piece), piece) if self._held[0].chunked_encoding else piece
        )

    def finish(self) -> None:
        """End the held response."""
        assert self._held is not None
        cycle = self._held[0]
        self._held = None
        if cycle.chunked_encoding:
            self.transport.write(b"0\r\n\r\n")
        cycle.disconnected = False
        cycle.response_complete = True
        if not cycle.keep_alive or not cycle.chunked_encoding:
            self.transport.close()
        self.on_response_complete()

    # -- bounds
    # ----------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Check for a stalled client: one that reads nothing, or whose body goes on after it was
        answered. Called from time to time.
        """
        unsent = self.transport.get_write_buffer_size()
        lingers = self._known and self.cycle is not None and self.cycle.response_complete
        self._still = self._still + 1 if lingers or (unsent and unsent >= self._unsent) else 0
        self._unsent = unsent
        if self._still >= LOOKS:
            self.transport.abort()  # `close` would wait until the client has read what is left

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
        return all(
            cycle is None or cycle.response_complete or not cycle.response_started
            for cycle in (self.cycle, *self._earlier)
        )
