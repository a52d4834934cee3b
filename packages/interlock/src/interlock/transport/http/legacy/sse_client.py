"""The client of the legacy HTTP+SSE transport: an event stream to listen to, and an endpoint to
post to (2024-11-05, "HTTP with SSE").
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
from ...conversation import Hello, unhurried
from ...duplex import Duplex
from ...reconnect import ReconnectingDuplex
from ..client.event_stream import Sleep, is_events
from ..client.refusals import refusal, resolve, shown
from ..client.request_headers import RequestHeaders
from ..client.retries import RetryRules


class Send(Protocol):
    """Sends a request; in the time of `unhurried` a person may be asked."""

    async def __call__(self, request: Request, unhurried: PauseTimeout = ...) -> Response: ...


class SseChannel:
    """A channel of frames; opened by waiting for the event that names where to post. `send` carries
    requests.
    """

    def __init__(
        self, url: str, send: Send, letters: RequestHeaders, *, limit: int, seconds: float
    ) -> None:
        self._url = url
        self._send = send
        self._letters = letters
        self._limit = limit
        self._seconds = seconds
        # stops the time of those whose messages are posted
        self.unhurried: PauseTimeout = contextlib.nullcontext
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
        """Open the stream, and wait for its first event. Raises Unreachable where it is no such
        server.
        """
        where = url_without_secrets(self._url)
        try:
            async with asyncio.timeout(self._seconds) as bound:
                self._response = await self._send(
                    Request("GET", self._url, self._letters.get(R1, None, None)),
                    lambda: unhurried(bound),
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
        """The next messages; an empty list once the server has ended the stream. Raises what broke
        it.
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
        if self._failed is not None:  # which is why the stream was closed
            raise self._failed
        return []

    def send(self, frames: list[Frame]) -> None:
        """Queue messages to be posted, in order (`HPS-03`)."""
        for frame in frames:
            self._queued += len(frame)
            self._outbox.put_nowait(frame)

    async def drain(self) -> None:
        """Wait until what is queued is posted."""
        while self._queued and self._posting is not None and not self._posting.done():
            self._room.clear()
            await self._room.wait()

    async def aclose(self) -> None:
        """End the stream, and post no more."""
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
        """Bytes that wait to be posted."""
        return self._queued

    @property
    def lost(self) -> str:
        """Nothing is lost on the way in."""
        return ""

    async def _next(self) -> Event | None:
        """The next event that says anything."""
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
        """Post what is queued. A message that is refused breaks the conversation: its answer would
        never come.
        """
        while True:
            frame = await self._outbox.get()
            try:
                response = await self._send(
                    Request("POST", self._endpoint, self._letters.message(R1, None), frame),
                    self.unhurried,
                )
                try:
                    if response.status >= 300:
                        raise refusal(self._endpoint, response, await response.read(1024 * 1024))
                finally:
                    await response.aclose()
            except Exception as bad:  # also of what authorizes, where that is the user's own
                self._failed = bad
                if self._response is not None:
                    await self._response.aclose()
                return
            finally:
                self._queued -= len(frame)
                self._room.set()


class NoLegacySse(Exception):
    """A URL is no server of HTTP with SSE, or cannot be reached; `why` is what to raise."""

    def __init__(self, why: t.InterlockError) -> None:
        super().__init__(str(why))
        self.why = why


class LegacySse:
    """A client's transport over HTTP with SSE (2024-11-05).

    The stream is the conversation: one that broke is opened again by the next call, with a
    handshake. Calls that were under way fail; those that only read, or may be repeated, are sent
    again.

    Args:
        url: Where the stream is opened.
        send: Carries HTTP requests.
        letters: The headers of the client's own.
        limit: The most bytes one message may have.
        tap: Sees every frame.
        repeats: Which requests may be sent again.
        sleep: Waits so many seconds.
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
        """Open the stream and shake hands.

        Args:
            hello: What the client says of itself.
            seconds: The longest wait for the stream to name the place to post to.

        Raises:
            NoLegacySse: There is no such stream.
            Unreachable: The server has gone.
            UnsupportedRevision, McpError: The server does not agree.
        """
        self._seconds = seconds
        opened = await self._line.open(hello)
        self._seconds = hello.open_seconds
        return opened

    async def __call__(self, exchange: Exchange) -> AnyResult:
        """Carry one exchange to the server and back."""
        return await self._line(exchange)

    def send_notification(self, method: str, params: Any) -> None:
        """Send a notification that belongs to no request."""
        self._line.send_notification(method, params)

    async def aclose(self) -> None:
        """Close the stream; what waits is told."""
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
        channel.unhurried = duplex.unhurried
        return duplex
