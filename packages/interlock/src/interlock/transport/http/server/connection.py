"""One HTTP/1.1 connection of the server: it receives requests and sends responses in their order
(pipelining), with timeouts for slow and stalled clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, TypeVar

from ....addresses import network_of
from ....compact_event import CompactEvent
from ....eager import start_eagerly
from ....logs import limited
from ....quotas import holder_of_address
from ..requests import ResponseOwner
from .connection_table import ConnectionTable
from .cycle import LARGE, HeldResponse, RequestBody, RequestCycle
from .forwarded import TrustedProxies
from .limits import ConnectionLimits
from .pacing import PacedCoroutine
from .parser import RequestParser
from .request import BadRequest, RequestHead
from .response import CONTINUE, LAST_CHUNK, DateHeader, Framing, simple_response
from .scheduler import RequestScheduler, Schedulable

T = TypeVar("T")

log = limited("interlock.server")

LOOKS = 4
"""The number of consecutive checks that must find a client stalled before its connection is
closed.
"""
_MOST_PIPELINED = 16  # queued requests above which receiving and parsing pause
_FEW_PIPELINED = 8  # queued requests below which they continue
_MOST_AT_ONCE = 122_880
"""The number of bytes that one call receives at most. asyncio allocates that much for each call: by
default 256 KiB, which the allocator maps and unmaps each time (30 us), because that is more than
128 KiB.
"""
_MOST_UNPARSED = 65_536  # bytes that wait for their turn to be parsed above which receiving pauses
_LINGER = 2.0  # seconds for which the rest of a refused request is received and dropped


def address_of(request: RequestCycle) -> str:
    """Return the holder that a request of an anonymous client counts for."""
    client = request.client
    return holder_of_address(client[0] if client else None)


@dataclass(slots=True)
class ServerState:
    """The state that the connections of one server share.

    Attributes:
        serve: Serves a request: the endpoint directly, any other app through ASGI.
        limits: The limits.
        loop: The event loop.
        proxies: The trusted proxies.
        table: The open connections.
        holder_of: Returns the holder that a request counts for.
        has_principals: Whether the clients of one address may be several holders.
        is_shared: Whether clients of several holders may be connected.
        on_large: Called whenever a large piece is received or sent.
        lifespan_state: The state that the app has set in its lifespan.
        tasks: The tasks of running requests.
        now: The time of the last tick, in seconds of the event loop's clock.
        is_draining: Whether each connection closes after its current response.
        requests: The number of requests so far.
        received: The number of received bytes.
        sent: The number of sent bytes.
        dates: Makes the Date header.
        heads: The request heads that were validated before, by their bytes.
        scheduler: Decides which connection starts a request next, and which request continues next,
            while there are several holders.
    """

    serve: Callable[[RequestCycle], Awaitable[None]]
    limits: ConnectionLimits
    loop: asyncio.AbstractEventLoop
    proxies: TrustedProxies
    table: ConnectionTable[Connection]
    holder_of: Callable[[RequestCycle], str] = address_of
    has_principals: bool = False
    is_shared: bool = False
    on_large: Callable[[], object] = bool
    lifespan_state: dict[str, Any] = field(default_factory=dict)
    tasks: set[asyncio.Future[None]] = field(default_factory=set)
    now: float = 0.0
    is_draining: bool = False
    requests: int = 0
    received: int = 0
    sent: int = 0
    dates: DateHeader = field(default_factory=DateHeader)
    heads: dict[bytes, RequestHead] = field(default_factory=dict)
    scheduler: RequestScheduler[Schedulable] = field(init=False)

    def __post_init__(self) -> None:
        self.scheduler = RequestScheduler(self.loop.call_soon)


class _Wait(Enum):
    """The events that a connection waits for with a timeout."""

    NOTHING = "nothing"
    REQUEST = "the next request"
    HEAD = "the rest of a head"
    BODY = "the rest of a body"
    LINGER = "the end of a request that was refused"


_BODY = 1  # reasons why reading is paused
_PIPELINE = 2
_UNPARSED = 4


class Connection(asyncio.Protocol):
    """The asyncio protocol of one connection.

    Attributes:
        holder: The address or network that the connection is counted under.
        has_asked: Whether it has received a request.
        is_paused: Whether the write buffer is full.
    """

    # Thousands of connections may be idle, each with a silent stream.
    __slots__ = (
        "_current",
        "_deadline",
        "_held",
        "_is_deaf",
        "_is_lost",
        "_is_queued",
        "_is_starting",
        "_is_trusted",
        "_line",
        "_parser",
        "_pauses",
        "_queue",
        "_reading",
        "_scope",
        "_server",
        "_still",
        "_transport",
        "_unparsed",
        "_unsent",
        "_wait",
        "_writable",
        "has_asked",
        "holder",
        "is_paused",
    )

    def __init__(self, server: ServerState) -> None:
        self._server = server
        self._transport: asyncio.Transport
        self._parser: RequestParser | None = None
        self._reading: RequestBody | None = None  # the body that is arriving
        self._current: RequestCycle | HeldResponse | None = None  # the current response
        self._queue: list[RequestCycle] = []  # the responses behind it, the oldest first
        self._held: HeldResponse | None = None  # the current response, if it is held
        self._scope: dict[str, Any] | None = None  # the common part of all scopes
        self._is_trusted = False  # whether the client is a trusted proxy
        self._writable: CompactEvent | None = None
        self._wait = _Wait.REQUEST
        self._deadline = 0.0  # when the wait times out; 0 for never
        self._unsent = 0
        self._still = 0  # consecutive checks that found the client stalled
        self._pauses = 0
        self._is_starting = False
        self._is_queued = False  # whether the scheduler knows that a request is ready
        self._line = ""  # the holder in whose line it waits for its turn; empty if not known yet
        self._unparsed = b""  # received data that waits for its turn to be parsed
        self._is_deaf = False  # whether received data is dropped
        self._is_lost = False
        self.is_paused = False
        self.has_asked = False
        self.holder = ""

    # -- asyncio -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Handle a new connection."""
        self._transport = transport  # type: ignore[assignment]  # uvloop's are of no such class
        if hasattr(transport, "max_size"):  # asyncio's own
            transport.max_size = _MOST_AT_ONCE
        server = self._server
        peer = transport.get_extra_info("peername")
        address = peer[0] if isinstance(peer, tuple) else ""
        self.holder = network_of(address)
        if not server.has_principals:
            self._line = holder_of_address(address)
        if server.table.admit(self):
            server.is_shared = server.has_principals or server.table.holders > 1
            self._deadline = server.now + server.limits.head_seconds
        else:
            self._refuse(BadRequest(503, "This server has too many connections. Try again later."))

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection."""
        server = self._server
        server.table.discard(self)
        server.is_shared = server.has_principals or server.table.holders > 1
        server.scheduler.forget(self)
        self._unparsed = b""
        self._is_lost = self._is_deaf = True
        self._expect(_Wait.NOTHING, 0.0)
        current = self._current
        cycles = self._queue if current is None else [current, *self._queue]
        self._current = None
        self._queue = []
        self._parser = self._reading = self._scope = None
        for cycle in cycles:
            cycle.close(is_gone=True)
        if self._writable is not None:
            self._writable.set()
        held = self._held
        self._held = None
        if held is not None:
            held.owner.client_gone()

    def data_received(self, data: bytes) -> None:
        """Process received bytes."""
        if self._is_deaf:
            return
        server = self._server
        server.received += len(data)
        if len(data) > LARGE:
            server.on_large()
        if not server.is_shared or not self._line:
            self._parse(data)
            if self._queue:
                self._run_queue()
            self._expect_head()
        elif self._is_queued or not server.scheduler.may_start(self):
            self._wait_with(data)
        else:
            self._parse(data)
            if self._can_start():
                self.start_next()
            self._expect_head()

    def _wait_with(self, data: bytes) -> None:
        """Keep data until it is this holder's turn, because parsing takes time too."""
        self._unparsed += data
        if self._wait is _Wait.REQUEST:
            self._deadline = 0.0  # it is not idle any more
        if len(self._unparsed) > _MOST_UNPARSED:
            self._pause(_UNPARSED)
        if not self._is_queued:
            self._is_queued = True
            self._server.scheduler.queue(self, self._line)

    def _parse(self, data: bytes) -> None:
        """Parse received bytes."""
        server = self._server
        parser = self._parser
        if parser is None:
            parser = self._parser = RequestParser(self, server.limits, server.heads)
        try:
            parser.feed(data)
        except BadRequest as bad:
            self._refuse(bad)

    def _expect_head(self) -> None:
        """Limit the time for the rest of a head that has begun. Called once the requests before it
        have been started: the end of one begins the wait for the next.
        """
        parser = self._parser
        if parser is None or self._is_deaf or self._is_lost:
            return
        if parser.in_head and self._wait is not _Wait.HEAD:
            self._expect(_Wait.HEAD, self._server.limits.head_seconds)

    def eof_received(self) -> None:
        """Let the transport close when the client sends nothing more."""

    def pause_writing(self) -> None:
        """Record that the write buffer is full."""
        self.is_paused = True

    def resume_writing(self) -> None:
        """Continue writing, because the write buffer has room."""
        self.is_paused = False
        self._still = 0
        if self._writable is not None:
            self._writable.set()
        if self._held is not None:
            self._held.owner.continue_writing()
        if self._queue:
            self._run_queue()

    # -- requests, as they are parsed --------------------------------------------------------------

    def request_began(self, head: RequestHead) -> None:
        """Process a complete head."""
        body = RequestBody(self, expects_continue=head.expects_continue)
        self._append(RequestCycle(self, head, body))
        self._reading = body
        if head.length and (seconds := self._server.limits.body_seconds) is not None:
            self._expect(_Wait.BODY, seconds)

    def request_came(self, head: RequestHead, body: bytes) -> None:
        """Process a request that has arrived as a whole."""
        self._append(RequestCycle(self, head, None, body))

    def _append(self, cycle: RequestCycle) -> None:
        """Queue a request."""
        server = self._server
        most = server.limits.body
        if most is not None and cycle.raw.length > most:
            raise _too_large(most)
        template = self._scope
        if template is None:
            template = self._scope = self._make_template()
            if not self._is_trusted:
                server.proxies.warn_of(template["client"], cycle.raw.headers)
        cycle.template = template
        if self._is_trusted:
            client: tuple[str, int] | None = template["client"]
            cycle.origin = server.proxies.origin(client, template["scheme"], cycle.raw.headers)
        self.has_asked = True
        queue = self._queue
        queue.append(cycle)
        if len(queue) > _MOST_PIPELINED:
            assert self._parser is not None
            self._parser.is_paused = True
            self._pause(_PIPELINE)
        self._deadline = 0.0
        self._wait = _Wait.NOTHING

    def body_came(self, piece: bytes) -> None:
        """Process a piece of the current request's body."""
        body = self._reading
        assert body is not None
        body.feed(piece)
        most = self._server.limits.body
        if most is not None and body.size > most:
            raise _too_large(most)

    def request_ended(self) -> None:
        """Process the end of the current request."""
        body = self._reading
        assert body is not None
        self._reading = None
        body.complete()
        if self._wait is _Wait.BODY:
            self._expect(_Wait.NOTHING, 0.0)
        if self._current is None and not self._queue:  # answered before the request ended
            self._expect(_Wait.REQUEST, self._server.limits.idle_seconds)

    def _run_queue(self) -> None:
        """Start the next requests, each after the response to its predecessor."""
        if self._is_starting or self._is_lost or self._is_queued:
            return
        server = self._server
        if server.is_shared:
            if self._can_start():
                if server.scheduler.may_start(self):
                    self.start_next()
                else:
                    self._wait_for_turn()
            return
        self._is_starting = True
        turns = _MOST_PIPELINED
        while self._queue and self._current is None and not self.is_paused:
            if not turns:
                server.loop.call_soon(self._run_queue)
                break
            turns -= 1
            self._current = self._queue.pop(0)
            self._start(self._current)
        self._is_starting = False
        if self._pauses and len(self._queue) <= _FEW_PIPELINED:
            self._resume_pipeline()

    def start_next(self) -> None:
        """Start the next request, if there is one. Others follow when the scheduler says so."""
        self._is_queued = False
        unparsed = self._unparsed
        if unparsed:
            self._unparsed = b""
            if not self._is_deaf:
                self._parse(unparsed)
            self._resume(_UNPARSED)
            if self._is_queued or self._is_of_another_holder():
                return
        if self._can_start():
            self._is_starting = True
            self._current = self._queue.pop(0)
            self._start(self._current)
            self._is_starting = False
            if self._pauses and len(self._queue) <= _FEW_PIPELINED:
                self._resume_pipeline()
            if self._can_start():
                self._wait_for_turn()
        if unparsed:
            self._expect_head()

    def _can_start(self) -> bool:
        return (
            bool(self._queue) and self._current is None and not self.is_paused and not self._is_lost
        )

    def _is_of_another_holder(self) -> bool:
        """Whether the next request counts for another holder than those before it. It then waits
        for the turn of its own holder.
        """
        server = self._server
        if not server.has_principals or not self._can_start():
            return False
        if server.holder_of(self._queue[0]) == self._line:
            return False
        self._wait_for_turn()
        return True

    def _wait_for_turn(self) -> None:
        """Let the scheduler decide when the next request starts."""
        server = self._server
        holder = server.holder_of(self._queue[0])
        if not self._is_trusted:  # a proxy sends the requests of many holders
            self._line = holder
        self._is_queued = True
        server.scheduler.queue(self, holder)

    def _resume_pipeline(self) -> None:
        """Parse further requests, and receive them."""
        parser = self._parser
        if parser is not None and parser.is_paused:
            parser.is_paused = False
            if parser.rest:
                self._server.loop.call_soon(self._parse_rest)
                return
        if parser is None or not parser.rest:
            self._resume(_PIPELINE)

    def _parse_rest(self) -> None:
        """Parse requests that have been received before, and then receive more."""
        parser = self._parser
        if not self._is_deaf:
            self._parse(b"")
            if self._queue:
                self._run_queue()
            self._expect_head()
        if parser is None or not parser.is_paused:
            self._resume(_PIPELINE)

    def _start(self, cycle: RequestCycle) -> None:
        server = self._server
        server.requests += 1
        if server.is_draining:
            cycle.keep_alive = False
        task = start_eagerly(self.paced(self._run(cycle)), server.loop)
        if not task.done():
            server.tasks.add(task)
            task.add_done_callback(server.tasks.discard)

    def paced(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """Return a coroutine of the current request that continues when it is its holder's turn."""
        server = self._server
        request = self._current
        if not server.is_shared or not isinstance(request, RequestCycle):
            return work
        holder = partial(server.holder_of, request)
        return PacedCoroutine(work, server.scheduler, holder, server.loop)

    async def _run(self, cycle: RequestCycle) -> None:
        """Let the app answer a request."""
        try:
            await self._server.serve(cycle)
        except asyncio.CancelledError:
            if not cycle.is_gone and not cycle.is_complete:
                self.break_off()
            raise
        except BaseException:  # a tool may raise anything, which must not stop the server
            log.exception("Exception in ASGI application")
        else:
            if not cycle.is_gone and not cycle.is_complete:
                log.error("The app ended without completing its response.")
        if cycle.is_gone or cycle.is_complete:
            return
        if cycle.has_begun:
            self.break_off()
            return
        cycle.keep_alive = False
        await cycle.respond(500, b"Internal Server Error", b"text/plain")

    def _make_template(self) -> dict[str, Any]:
        """Return the common part of the scopes of all requests."""
        server = self._server
        transport = self._transport
        peer = transport.get_extra_info("peername")
        own = transport.get_extra_info("sockname")
        client = (str(peer[0]), int(peer[1])) if isinstance(peer, tuple) else None
        self._is_trusted = server.proxies.trusts(None if client is None else client[0])
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "server": (str(own[0]), int(own[1])) if isinstance(own, tuple) else (str(own), None),
            "client": client,
            "scheme": "http" if transport.get_extra_info("sslcontext") is None else "https",
            "root_path": "",
        }
        if server.lifespan_state:
            scope["state"] = server.lifespan_state.copy()
        return scope

    # -- responses ---------------------------------------------------------------------------------

    def send_bytes(self, data: bytes) -> None:
        """Write bytes."""
        self._server.sent += len(data)
        if len(data) > LARGE:
            self._server.on_large()
        self._transport.write(data)

    def soon(self, flush: Callable[[], None]) -> None:
        """Call a function at the end of this turn of the event loop."""
        self._server.loop.call_soon(flush)

    def date(self) -> bytes:
        """Return the Date header."""
        return self._server.dates.now()

    def usual_head(self, kind: bytes, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        """Return the head of a 200 response with a body of this type, up to the number of its
        bytes. `headers` are always the same for the type.
        """
        return self._server.dates.usual_head(kind, headers)

    def send_continue(self) -> None:
        """Send `100 Continue`, which tells the client to send the body."""
        if not self._is_deaf and self._current is not None and not self._current.has_begun:
            self._server.sent += len(CONTINUE)
            self._transport.write(CONTINUE)

    async def drain(self) -> None:
        """Wait until the write buffer has room, or the client has disconnected."""
        if self._writable is None:
            self._writable = CompactEvent()
        while self.is_paused and not self._is_lost:
            self._writable.clear()
            await self._writable.wait()

    def response_completed(self, cycle: RequestCycle | HeldResponse) -> None:
        """Process the end of a response, after its last byte."""
        self._current = None
        cycle.close()
        server = self._server
        if not cycle.keep_alive or server.is_draining:
            self._queue.clear()
            self._close_after_response()
        elif self._queue:
            if not self._is_starting:
                server.loop.call_soon(self._run_queue)
        elif self._reading is None:
            self._wait = _Wait.REQUEST
            self._deadline = server.now + server.limits.idle_seconds

    def break_off(self) -> None:
        """Close the connection, because a response cannot be completed."""
        self._is_deaf = True
        self._transport.close()

    # -- held responses (no task waits for them) ---------------------------------------------------

    def hold(self, owner: ResponseOwner) -> bool:
        """Hold an open response on this connection, so that its task may end.

        From then on `write` sends its body and `finish` ends it. This way a silent stream keeps
        neither a task nor a request.

        Args:
            owner: Writes the response.

        Returns:
            False if the response cannot be held.
        """
        cycle = self._current
        if (
            not isinstance(cycle, RequestCycle)
            or self._queue
            or not cycle.is_open
            or cycle.is_complete
            or cycle.is_gone
        ):
            return False
        cycle.is_gone = True  # for its task the response is done
        cycle.shrink()
        self._held = HeldResponse(owner, cycle.framing, keep_alive=cycle.keep_alive)
        self._current = self._held
        self._scope = None
        parser = self._parser
        if parser is not None and not parser.in_head and not parser.in_body and not parser.rest:
            self._parser = None  # further requests get a new parser
        return True

    def write(self, piece: bytes) -> None:
        """Write a piece of the body of the held response."""
        held = self._held
        assert held is not None
        if len(piece) > LARGE:
            self._server.on_large()
        if held.framing is Framing.CHUNKED:
            piece = b"%x\r\n%b\r\n" % (len(piece), piece)
        self._server.sent += len(piece)
        self._transport.write(piece)

    def finish(self) -> None:
        """End the held response."""
        held = self._held
        assert held is not None
        self._held = None
        if held.framing is Framing.CHUNKED:
            self._server.sent += len(LAST_CHUNK)
            self._transport.write(LAST_CHUNK)
        else:
            held.keep_alive = False
        self.response_completed(held)

    # -- refusals and the end ----------------------------------------------------------------------

    def _refuse(self, bad: BadRequest) -> None:
        """Refuse a request, and close the connection.

        If earlier requests are not answered yet, the connection closes after their responses,
        without an error response. Hazard: if the response to this request has begun, the connection
        closes at once, because a second status line would be part of its body (response splitting).
        """
        if bad.status == 400:
            log.warning("%s", bad.words)
        self._is_deaf = True
        self._parser = None
        self._expect(_Wait.NOTHING, 0.0)
        reading = self._reading
        self._reading = None
        current = self._current
        if reading is not None:
            reading.close()
            if self._queue and self._queue[-1].reads(reading):
                self._queue.pop().is_gone = True
            elif current is not None and current.reads(reading) and not current.has_begun:
                current.is_gone = True
                current = self._current = None
            else:  # its response has begun, and may have ended
                self._transport.close()
                return
        if current is not None and current.has_begun:
            self._transport.close()
        elif self._queue:
            self._queue[-1].keep_alive = False
            if self._pauses:
                self._resume(_BODY | _PIPELINE | _UNPARSED)
            self._run_queue()
        elif current is not None:
            current.keep_alive = False
        else:
            refusal = simple_response(bad.status, bad.words)
            self._server.sent += len(refusal)
            self._transport.write(refusal)
            self._linger()

    def _close_after_response(self) -> None:
        if self._reading is None:
            self._is_deaf = True
            self._transport.close()
        else:
            self._reading = None
            self._linger()

    def _linger(self) -> None:
        """Close the sending side, and drop received data for a moment.

        A reset would discard the response before the client reads it.
        """
        self._is_deaf = True
        self._parser = None
        if self._transport.is_closing():
            return
        if self._transport.can_write_eof():
            self._transport.write_eof()
            self._expect(_Wait.LINGER, _LINGER)
        else:
            self._transport.close()

    @property
    def is_idle(self) -> bool:
        """Whether no request is running."""
        return self._current is None and not self._queue and not self._unparsed

    def close_idle(self) -> None:
        """Close the connection, on which no request is running."""
        self._is_deaf = True
        self._transport.close()

    def shut_down(self) -> None:
        """Close the connection after the current response, if there is one."""
        if self.is_idle:
            self.close_idle()
        elif self._current is not None:
            self._current.keep_alive = False

    def abort(self) -> None:
        """Close the connection without waiting for the client to read the rest."""
        self._is_deaf = True
        self._transport.abort()

    # -- time --------------------------------------------------------------------------------------

    def check_deadline(self, now: float) -> None:
        """Close the connection if too little has arrived in time."""
        if not self._deadline or now < self._deadline:
            return
        self._deadline = 0.0
        if self._wait is _Wait.HEAD:
            self._refuse(BadRequest(408, "The headers came too slowly."))
        elif self._wait is _Wait.BODY:
            self._refuse(BadRequest(408, "The body came too slowly."))
        elif self._wait is _Wait.LINGER:
            self.abort()
        else:
            self.close_idle()

    def check_stalled(self) -> None:
        """Check for a stalled client: it reads nothing, or it keeps sending a body after the
        response. Called from time to time.
        """
        unsent = self._transport.get_write_buffer_size()
        lingers = self._reading is not None and self._current is None and not self._queue
        self._still = self._still + 1 if lingers or (unsent and unsent >= self._unsent) else 0
        self._unsent = unsent
        if self._still >= LOOKS:
            self.abort()  # `close` would wait for the client to read the rest

    def _expect(self, wait: _Wait, seconds: float) -> None:
        self._wait = wait
        self._deadline = self._server.now + seconds if seconds else 0.0

    def pause_body(self) -> None:
        """Pause receiving, because the app reads a body more slowly than it arrives."""
        self._pause(_BODY)

    def resume_body(self) -> None:
        """Resume receiving."""
        self._resume(_BODY)

    def _pause(self, reason: int) -> None:
        if not self._pauses and not self._transport.is_closing():
            self._transport.pause_reading()
        self._pauses |= reason

    def _resume(self, reason: int) -> None:
        if self._pauses:
            self._pauses &= ~reason
            if not self._pauses and not self._transport.is_closing():
                self._transport.resume_reading()


def _too_large(most: int) -> BadRequest:
    return BadRequest(413, f"Content too large: a body has at most {most} bytes.")
