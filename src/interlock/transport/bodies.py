"""The bodies of requests: each read within its bounds of size and time, all of them together within theirs, or else refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from msgspec import UNSET

from .. import types as t
from ..protocol.http import HttpRefusal, error
from ..wire import jsonrpc
from ..wire.jsonrpc import Malformed
from .limits import Limits
from .pulse import Pulse
from .replies import Receive, Send

CLOSE = ((b"connection", b"close"),)
_LINGER = 2.0  # seconds for which a body that was refused may go on


def busy(id: t.RequestId | None, headers: Sequence[tuple[bytes, bytes]] = ()) -> HttpRefusal:
    """The refusal of one request too many."""
    words = "The server is busy. Try again later."
    return error(
        503,
        t.INTERNAL_ERROR,
        words,
        {"reason": "busy"},
        id=id,
        headers=[(b"retry-after", b"1"), *headers],
    )


def asked(body: bytes) -> t.RequestId | None:
    """The id of the request that a body holds, for its refusal (`RPC-09`)."""
    try:
        envelope = jsonrpc.open_envelope(body)
    except Malformed:
        return None
    return None if envelope.method is UNSET or envelope.id is UNSET else envelope.id


class Bodies:
    """Reads the bodies of one endpoint; `refuse` sends a refusal, `note` only notes it."""

    def __init__(
        self,
        limits: Limits,
        pulse: Pulse,
        refuse: Callable[[Send, HttpRefusal], Awaitable[None]],
        note: Callable[[HttpRefusal], None],
    ) -> None:
        self._limits, self._pulse, self._refuse, self._note = limits, pulse, refuse, note
        self._arriving = 0  # bytes of bodies that have not come whole

    async def read(self, headers: dict[bytes, bytes], receive: Receive, send: Send) -> bytes | None:
        """The body of a request; None where it was refused, as too large or too slow, or where the client has gone."""
        length = headers.get(b"content-length")
        if length is not None and (
            not length.isdigit() or len(length) > 18 or int(length) > self._limits.body
        ):
            await self._turn_away(self._too_large(), receive, send)
            return None
        me = asyncio.current_task()
        assert me is not None
        ticket = self._pulse.guard(me, self._limits.body_seconds)
        body: bytes | HttpRefusal | None
        try:
            message = await receive()
            if message.get("more_body", False):
                body = await self._read_rest(message.get("body", b""), receive)
            elif message["type"] == "http.disconnect":
                return None
            else:
                whole: bytes = message.get("body", b"")
                body = whole if len(whole) <= self._limits.body else self._too_large()
        except asyncio.CancelledError:
            if not self._pulse.is_late(ticket):
                raise
            me.uncancel()
            words = f"Request timeout: the body did not arrive within {self._limits.body_seconds:g} seconds"
            await self._refuse(send, error(408, t.INVALID_REQUEST, words, headers=CLOSE))
            return None
        finally:
            self._pulse.release(ticket)
        if isinstance(body, HttpRefusal):
            await self._turn_away(body, receive, send)
            return None
        return body

    async def _read_rest(self, first: bytes, receive: Receive) -> bytes | HttpRefusal | None:
        """A body that comes in several pieces, the first of which is there."""
        pieces, size = [first], len(first)
        self._arriving += size
        try:
            while True:
                if size > self._limits.body:
                    return self._too_large()
                if self._arriving > self._limits.bodies:
                    return busy(None, headers=CLOSE)
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                piece = message.get("body", b"")
                size += len(piece)
                self._arriving += len(piece)
                pieces.append(piece)
                if not message.get("more_body", False):
                    return b"".join(pieces) if size <= self._limits.body else self._too_large()
        finally:
            self._arriving -= size

    async def _turn_away(self, refused: HttpRefusal, receive: Receive, send: Send) -> None:
        """Refuse a body that is still coming. It is read for a moment: a reset would take the answer from a client that is sending."""
        self._note(refused)
        head = [(b"content-length", b"%d" % len(refused.body)), *refused.headers]
        await send({"type": "http.response.start", "status": refused.status, "headers": head})
        await send({"type": "http.response.body", "body": refused.body, "more_body": True})
        me = asyncio.current_task()
        assert me is not None
        ticket = self._pulse.guard(me, _LINGER)
        try:
            while (await receive()).get("more_body", False):
                pass
        except asyncio.CancelledError:
            if not self._pulse.is_late(ticket):
                raise
            me.uncancel()
        finally:
            self._pulse.release(ticket)
        await send({"type": "http.response.body", "body": b""})

    def _too_large(self) -> HttpRefusal:
        words = f"Content too large: a body has at most {self._limits.body} bytes"
        return error(413, t.INVALID_REQUEST, words, headers=CLOSE)
