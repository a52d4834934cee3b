"""uvicorn's protocol with bounds on what a client may do around its requests: heads too large or too slow, and clients that stand still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import chain
from typing import Any

from httptools import HttpRequestParser, parse_url
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ...compact_event import CompactEvent
from ..corked import LARGE, Corked
from .responses import HOLD

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


def _without(port: bytes, host: bytes) -> bytes:
    """A host in lower case, without the port that it has anyway."""
    return host.lower().removesuffix(port)


class _Pipeline(list[Any]):
    """Requests that came before the one ahead of them was answered; seldom any, so that an empty list does better than a deque."""

    def appendleft(self, item: Any) -> None:
        """Put an item at the far end."""
        self.insert(0, item)


class _Nowhere(list[Any]):
    """Takes the trailers of a chunked body, which nobody reads and which may have no end."""

    def append(self, item: Any) -> None:
        """Forget it."""


_NOWHERE = _Nowhere()


def guarded_protocol(
    most_bytes: int, seconds: float, on_large: Callable[[], object] = bool
) -> type[Guarded]:
    """The protocol class with these bounds: `most_bytes` of one head, which may take `seconds` to arrive."""
    return type(
        "Guarded",
        (Guarded,),
        {"most_bytes": most_bytes, "seconds": seconds, "on_large": staticmethod(on_large)},
    )


class Guarded(HttpToolsProtocol):
    """A connection whose heads are bounded, and which can tell when its client stands still."""

    most_bytes: int
    seconds: float
    on_large: Callable[[], object]
    cycle: RequestResponseCycle | None  # type: ignore[assignment]  # None until the first request, whatever the parent declares
    headers: list[tuple[bytes, bytes]] | None  # type: ignore[assignment]  # None until the first request, too
    __slots__ = (
        "_corked",
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
        self.pipeline = _Pipeline()  # type: ignore[assignment]  # does what the parent needs of a deque
        self._head = 0  # bytes since the last whole message
        self._timer: asyncio.TimerHandle | None = None
        self._known = False  # a head has come whole, and its body is on the way
        self._flooded = False
        self._earlier: tuple[
            RequestResponseCycle, ...
        ] = ()  # requests before the newest one that were under way when it came
        self._unsent = 0
        self._still = 0  # looks that found the client standing still
        self._corked: Corked
        self._held: tuple[RequestResponseCycle, Callable[[], None], Callable[[], None]] | None = (
            None
        )

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the parent has it
        super().connection_made(transport)
        self.transport = self._corked = Corked(transport, self.loop, self.on_large)  # type: ignore[assignment]  # it stands for the transport
        self.flow._is_writable_event = CompactEvent(is_set=True)  # type: ignore[assignment]  # does what an Event does
        self._timer = self.loop.call_later(self.seconds, self._slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle()
        super().connection_lost(exc)
        held, self._held = self._held, None
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
        self.cycle.message_event = CompactEvent()  # type: ignore[union-attr]  # as above; the request has not begun yet
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
        if self._held is not None:
            self._held[2]()

    # -- responses that no task waits for ----------------------------------------------------------------

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        scope: Any = cycle.scope  # which may have keys of its own
        scope[HOLD] = self
        super()._start_asgi_task(cycle, app)

    def hold(self, gone: Callable[[], None], room: Callable[[], None]) -> bool:
        """Leave the response that has begun to this connection, so that its task may end; False where that cannot be.

        From then on it is written by `write` and ended by `finish`. `gone` is called once the client has gone, `room` when there is
        room to write again. A stream that says nothing for hours keeps no task, no frames and no request this way.
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
        cycle.disconnected = True  # to its task: there is nothing left to see to
        cycle.scope = self.scope = {}  # type: ignore[typeddict-item]  # nobody reads it again
        self._held = (cycle, gone, room)
        if not self._known:
            self.parser = None  # type: ignore[assignment]  # another one is made should the client send more
        return True

    @property
    def is_paused(self) -> bool:
        """Whether as much waits to be written as may."""
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
        cycle.disconnected, cycle.response_complete = False, True
        if not cycle.keep_alive or not cycle.chunked_encoding:
            self.transport.close()
        self.on_response_complete()

    # -- bounds ----------------------------------------------------------------------------------------------

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
        return all(
            cycle is None or cycle.response_complete or not cycle.response_started
            for cycle in (self.cycle, *self._earlier)
        )
