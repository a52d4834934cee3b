"""The client of the legacy HTTP+SSE transport: an event stream for messages of the server, and an
endpoint for posts (2024-11-05, "HTTP with SSE").
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Protocol

from interlock import types as t
from interlock.exchange import AnyResult, Exchange, PauseTimeout
from interlock.http11.fetch import Request, Response
from interlock.protocol.opening import Opened
from interlock.redaction.urls import url_without_secrets
from interlock.wire.jsonrpc import Frame, Malformed
from interlock.wire.revisions import R1
from interlock.wire.sse import Event, EventReader

from ...channel import Tap
from ...conversation import Hello, pause_timeout
from ...duplex import Duplex
from ...reconnect import ReconnectingDuplex
from ..client.event_stream import Sleep, is_events
from ..client.refusals import refusal, resolve, shown
from ..client.request_headers import RequestHeaders
from ..client.retries import RetryRules


class Send(Protocol):
    """Sends a request. While `pause_timeout` is entered, a person may be asked."""

    async def __call__(self, request: Request, pause_timeout: PauseTimeout = ...) -> Response: ...


class SseChannel:
    """A channel of frames. Opening it waits for the event that names the endpoint to post to.
    `send` sends HTTP requests.
    """

    def __init__(
        self, url: str, send: Send, letters: RequestHeaders, *, limit: int, seconds: float
    ) -> None:
        self._url = url
        self._send = send
        self._letters = letters
        self._limit = limit
        self._seconds = seconds
        # pauses the timeouts of the calls whose messages are being posted
        self.pause_timeout: PauseTimeout = contextlib.nullcontext
        self._response: Response | None = None
        self._endpoint = ""
        self._pieces: AsyncIterator[bytes] | None = None
        self._waiting: list[Event] = []
        self._reader = EventReader(limit)
        self._outbox: asyncio.Queue[Frame] = asyncio.Queue()
        self._queued = 0
        self._posting: asyncio.Task[None] | None = None
        self._failed: Exception | None = None
        self._room = asyncio.Event()

    async def open(self) -> None:
        """Open the stream, and wait for its first event. Raises Unreachable if this is not a server
        of this transport.
        """
        where = url_without_secrets(self._url)
        try:
            async with asyncio.timeout(self._seconds) as bound:
                self._response = await self._send(
                    Request("GET", self._url, self._letters.get(R1, None, None)),
                    lambda: pause_timeout(bound),
                )
                if not is_events(self._response):
                    raise refusal(
                        f"GET {self._url}", self._response, await self._response.read(1024 * 1024)
                    )
                self._pieces = self._response.chunks()
                first = await self._next()
            if first is None or first.name != "endpoint":
                raise t.Unreachable(
                    f"{where} opened an event stream, but does not say where to post to; it is no "
                    "server of HTTP with SSE."
                )
            said = first.data.decode("utf-8", "replace")
            endpoint = resolve(self._url, said)
            if endpoint is None:  # `HPS-07`
                raise t.Unreachable(
                    f"{where} wants messages posted to "
                    f"{shown(url_without_secrets(said).encode())}, which is another origin."
                )
            self._endpoint = endpoint
        except TimeoutError:
            await self.aclose()
            raise t.TimedOut(
                f"{where} did not say within {self._seconds:g} seconds where to post to."
            ) from None
        except BaseException:
            await self.aclose()
            raise
        self._posting = asyncio.get_running_loop().create_task(self._post())

    async def receive(self) -> list[Frame]:
        """Return the next messages; an empty list once the server has ended the stream. Raises the
        error that broke the stream.
        """
        try:
            while (event := await self._next()) is not None:
                events = [event, *self._waiting]
                self._waiting = []
                if frames := [one.data for one in events if one.data and one.name == "message"]:
                    return frames
        except t.Unreachable:
            if self._failed is None:
                raise
        if self._failed is not None:  # the reason why the stream was closed
            raise self._failed
        return []

    def send(self, frames: list[Frame]) -> None:
        """Queue messages for posting, in order (`HPS-03`)."""
        for frame in frames:
            self._queued += len(frame)
            self._outbox.put_nowait(frame)

    async def drain(self) -> None:
        """Wait until the queue is posted."""
        while self._queued and self._posting is not None and not self._posting.done():
            self._room.clear()
            await self._room.wait()

    async def aclose(self) -> None:
        """Close the stream, and post nothing more."""
        posting = self._posting
        self._posting = None
        if posting is not None:
            posting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await posting
        self._room.set()
        if self._response is not None:
            await self._response.aclose()

    @property
    def queued(self) -> int:
        """The number of bytes that wait to be posted."""
        return self._queued

    @property
    def lost(self) -> str:
        """Always empty: no received frames are dropped."""
        return ""

    async def _next(self) -> Event | None:
        """Return the next event with content."""
        assert self._pieces is not None
        while True:
            while self._waiting:
                event = self._waiting.pop(0)
                if event.data:
                    return event
            chunk = await anext(self._pieces, None)
            if chunk is None:
                return None
            try:
                self._waiting = self._reader.feed(chunk)
            except Malformed as bad:
                raise t.ProtocolError(f"The server's event stream cannot be read: {bad}") from None

    async def _post(self) -> None:
        """Post the queue. A refused message breaks the connection, because its response would never
        arrive.
        """
        while True:
            frame = await self._outbox.get()
            try:
                response = await self._send(
                    Request("POST", self._endpoint, self._letters.message(R1, None), frame),
                    self.pause_timeout,
                )
                try:
                    if response.status >= 300:
                        raise refusal(self._endpoint, response, await response.read(1024 * 1024))
                finally:
                    await response.aclose()
            except Exception as bad:  # including errors of the user's own authorization
                self._failed = bad
                if self._response is not None:
                    await self._response.aclose()
                return
            finally:
                self._queued -= len(frame)
                self._room.set()


class NoLegacySse(Exception):
    """The URL does not lead to a server of HTTP with SSE, or is unreachable; `why` is the exception
    to raise.
    """

    def __init__(self, why: t.InterlockError) -> None:
        super().__init__(str(why))
        self.why = why


class LegacySse:
    """A client's transport over HTTP with SSE (2024-11-05).

    The connection depends on its stream. If the stream breaks, running calls fail, and the next
    call opens a new stream with a handshake. Read-only and idempotent calls are sent again.

    Args:
        url: The URL of the event stream.
        send: Sends HTTP requests.
        letters: The user's headers.
        limit: The maximum size of a message, in bytes.
        tap: Called with every frame.
        repeats: The rules for requests that may be sent again.
        sleep: Waits for a number of seconds.
    """

    def __init__(
        self,
        url: str,
        send: Send,
        letters: RequestHeaders,
        *,
        limit: int,
        tap: Tap | None,
        repeats: RetryRules,
        sleep: Sleep,
    ) -> None:
        self._url = url
        self._send = send
        self._letters = letters
        self._limit = limit
        self._tap = tap
        self._seconds = 0.0
        self._was_opened = False
        self._line = ReconnectingDuplex(self._dial, repeats, sleep=sleep)

    async def open(self, hello: Hello, seconds: float) -> Opened:
        """Open the stream and run the handshake.

        Args:
            hello: The client's information.
            seconds: The maximum wait for the stream to name the endpoint to post to.

        Raises:
            NoLegacySse: There is no such stream.
            Unreachable: The connection is lost.
            UnsupportedRevision, McpError: The server rejects the handshake.
        """
        self._seconds = seconds
        opened = await self._line.open(hello)
        self._seconds = hello.open_seconds
        return opened

    async def __call__(self, exchange: Exchange) -> AnyResult:
        """Send one exchange and return its result."""
        return await self._line(exchange)

    def send_notification(self, method: str, params: Any) -> None:
        """Send a notification that belongs to no request."""
        self._line.send_notification(method, params)

    async def aclose(self) -> None:
        """Close the stream. Waiting calls raise Unreachable."""
        await self._line.aclose()

    async def _dial(self) -> Duplex:
        channel = SseChannel(
            self._url, self._send, self._letters, limit=self._limit, seconds=self._seconds
        )
        try:
            await channel.open()
        except (t.Unreachable, t.ProtocolError) as bad:
            if self._was_opened:
                raise
            raise NoLegacySse(bad) from bad
        self._was_opened = True
        duplex = Duplex(channel, tap=self._tap)
        channel.pause_timeout = duplex.pause_timeout
        return duplex
