"""One request of a client over HTTP: posts it, and reads the response, also from a resumed
stream.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from interlock import types as t
from interlock.exchange import AnyResult, Asker, Exchange
from interlock.http11.fetch import Authorized, ConnectionLost, Fetch, Request, Response
from interlock.protocol.handshake.messages import OPENING, is_opening
from interlock.redaction.urls import url_without_secrets
from interlock.wire.jsonrpc import Frame
from interlock.wire.revisions import Era

from ...channel import Tap
from ...conversation import Conversation
from .event_stream import EventStream, Sleep, is_events
from .refusals import (
    SessionGone,
    error_of,
    may_pass,
    refusal,
    rejects_protocol,
    session_of,
    shown,
)
from .request_headers import RequestHeaders
from .sending import HttpSender

_MOST_RECONNECTS = 5  # consecutive failed attempts
_LONGEST_REFUSAL = 1024 * 1024
_FAREWELL = 0.2  # seconds that the end of a stream may take after its response
_MODERN = frozenset(
    {t.HEADER_MISMATCH, t.MISSING_CLIENT_CAPABILITY, t.UNSUPPORTED_PROTOCOL_VERSION}
)
_OPENING = frozenset(
    {"server/discover", OPENING}
)  # these may arrive twice; a call is repeated only with a new ID (`HTM-18`)


class HttpRequests(HttpSender):
    """The state that requests to one server share while the transport is open: the address, the
    HTTP client, the conversation and the session.
    """

    def __init__(
        self,
        url: str,
        fetch: Fetch,
        letters: RequestHeaders,
        conversation: Conversation,
        *,
        limit: int,
        tap: Tap | None,
        sleep: Sleep,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        authorized: Authorized | None = None,
    ) -> None:
        super().__init__(url, fetch, authorized)
        self.letters = letters
        self.conversation = conversation
        self.limit = limit
        self.tap = tap
        self.session: str | None = None
        self._sleep = sleep
        self._spawn = spawn

    async def make(self, x: Exchange) -> AnyResult:
        """Send a request once and wait for its response, also over a stream that breaks and is
        resumed.
        """
        conversation = self.conversation
        id, future = conversation.start_request(x)
        *others, frame = conversation.connection.outgoing()
        if others:
            conversation.transmit(others)
        opens = is_opening(x.method)
        in_session = x.caller.era is Era.HANDSHAKE and not opens
        response: Response | None = None
        try:
            headers = self.letters.post(x, self.session if in_session else None)
            if self.tap is not None:
                self.tap("client", frame)
            aside = x.method == "subscriptions/listen"
            request = Request(
                "POST", self.url, headers, frame, again=x.method in _OPENING, aside=aside
            )
            response = await self.send(request, x.transport.pause_timeout)
            session = session_of(response) if opens else None
            if response.status == 200 and response.headers.get(
                "content-type", ""
            ).lower().startswith("application/json"):
                body = await response.read(self.limit)
                self.receive(body, x.asker, id)
                if not future.done():
                    raise t.ProtocolError(
                        f"The server's answer to {x.method} is no answer to it: {shown(body)}"
                    )
            elif is_events(response):
                stream = response
                response = None
                await self._follow(stream, x, id, future)
            else:
                raise self._misfit(response, await response.read(_LONGEST_REFUSAL), x)
            result = await conversation.read(x, future.result())
            if opens:
                self.session = session
            return result
        except ConnectionLost as bad:
            words = f"The connection broke before the answer to {x.method} had come: {bad}"
            if x.method == "tools/call":
                words += (
                    " Whether it took effect is not known; call it again only where that does no "
                    "harm."
                )
            raise ConnectionLost(words) from bad
        except asyncio.CancelledError:
            if in_session:  # `HTL-22`; in the stateless era closing the stream cancels the request
                conversation.give_up(id, "the client no longer waits for the answer")
            raise
        finally:
            conversation.forget(id)
            if response is not None:
                await response.aclose()

    def _misfit(self, response: Response, body: bytes, x: Exchange) -> Exception:
        """Return the exception for a response that is neither JSON nor an event stream with status
        200.
        """
        status = response.status
        if status in (200, 202):
            return t.ProtocolError(
                f"The server took {x.method} with status {status}, but gave no answer that can be "
                f"read: {shown(body) or 'nothing'}. "
                f"Is {url_without_secrets(self.url)} the address of an MCP endpoint?"
            )
        error = error_of(body)
        unknown_method = error is not None and error.code == t.METHOD_NOT_FOUND
        if (
            status == 404
            and self.session is not None
            and not is_opening(x.method)
            and not unknown_method
        ):
            return SessionGone(
                "The server has ended the session; open the client anew.", status=404
            )
        if (
            error is None
            or status == 401
            or (x.method in _OPENING and not rejects_protocol(status))
        ):  # `ERA-15`: this status does not decide about the era, whatever the body
            return refusal(self.url, response, body)
        if (
            is_opening(x.method) and error.code not in _MODERN
        ):  # possibly a server of HTTP with SSE, which accepts no POST here (`ERA-12`)
            bad = refusal(self.url, response, body)
            bad.__cause__ = error
            return bad
        return error

    async def _follow(
        self, response: Response, x: Exchange, id: t.RequestId, future: asyncio.Future[Any]
    ) -> None:
        """Read the stream of a call until its response. A broken stream is resumed if possible
        (`HTL-18`, `HTL-19`).
        """
        stream = EventStream(self.limit)
        failed = 0
        answered = False
        while True:
            before = stream.last
            how = "the server ended the stream."
            stream.start()
            chunks = response.chunks()
            try:
                async for chunk in chunks:
                    for message in stream.feed(chunk):
                        self.receive(message, x.asker, id)
                    if answered := future.done():
                        return
            except t.Unreachable as bad:
                how = str(bad)
            finally:
                if answered:
                    self._spawn(_read_out(response, chunks))
                else:
                    await response.aclose()
            if stream.last is None or x.caller.era is Era.STATELESS:  # `HTM-18`
                raise ConnectionLost(how)
            failed = 0 if stream.last != before else failed + 1
            response = await self._come_back(stream, failed)

    async def _come_back(self, stream: EventStream, failed: int) -> Response:
        """Resume a stream. Raises ConnectionLost if that is impossible."""
        while True:
            await self._sleep(stream.wait(failed))
            failed += 1
            try:
                response = await self.listen(stream.last)
            except t.Unreachable as bad:
                if failed > _MOST_RECONNECTS or not may_pass(bad.status):
                    raise ConnectionLost(f"it cannot be made again: {bad}") from bad
                continue
            if is_events(response):
                return response
            await response.aclose()
            if failed > _MOST_RECONNECTS or not may_pass(response.status):
                raise ConnectionLost(
                    f"the server does not give the rest (status {response.status})."
                )

    def receive(self, frame: Frame, asker: Asker | None, call: t.RequestId | None = None) -> None:
        """Process a frame of the server. `asker` answers the questions that belong to a `call`."""
        if self.tap is not None:
            self.tap("server", frame)
        self.conversation.receive(frame, asker, call)

    async def post(self, frame: Frame, *, aside: bool = False) -> None:
        """Post a message that has no response (`HTL-02`); with `aside`, on a connection other than
        those of waiting calls. Raises Unreachable if the server does not accept it.
        """
        if self.tap is not None:
            self.tap("client", frame)
        headers = self.letters.message(self.conversation.connection.revision, self.session)
        response = await self.send(
            Request("POST", self.url, headers, frame, again=True, aside=aside)
        )
        try:
            if response.status >= 300:
                raise refusal(self.url, response, await response.read(_LONGEST_REFUSAL))
        finally:
            await response.aclose()

    async def listen(self, last_event: str | None) -> Response:
        """Open the GET stream of the session, or resume one of its streams."""
        headers = self.letters.get(self.conversation.connection.revision, self.session, last_event)
        return await self.send(Request("GET", self.url, headers, aside=True))

    async def end_session(self) -> None:
        """End the session, if there is one (`HTL-44`)."""
        session = self.session
        self.session = None
        if session is not None:
            headers = self.letters.get(self.conversation.connection.revision, session, None)
            await self.send_signed(Request("DELETE", self.url, headers, aside=True))


async def _read_out(response: Response, chunks: AsyncIterator[bytes]) -> None:
    """Read the end of a stream whose response has arrived, for a short time, so that its connection
    can be reused.
    """
    try:
        with contextlib.suppress(t.InterlockError, TimeoutError):
            async with asyncio.timeout(_FAREWELL):
                async for _ in chunks:
                    pass
    finally:
        await response.aclose()
