"""The issuer asked from within its own process: what it would answer over the network, without one, and whether its tokens still hold."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from ... import types as t
from ...fetch import Request
from ...protocol.sessions import StoreError
from ..tokens.jwt import Jwt
from ..tokens.seam import BadToken, Unverifiable, Verified
from .refusals import Refusal
from .web import Asked, Reply

_BELIEVED = 30.0  # seconds for which a guard need not ask again, so that what was revoked is of no use soon after


class Own(Jwt):
    """Verifies an issuer's tokens in its own process, and that what is behind them has not ended (AU2-10).

    `answer` is the issuer's; `holds` gives the claims of a token that still holds, else None.
    """

    def __init__(
        self,
        url: str,
        answer: Callable[[Asked], Awaitable[Reply]],
        holds: Callable[[str], Awaitable[Mapping[str, Any] | None]],
    ) -> None:
        super().__init__(url, fetch=InHouse(url, answer), seconds=_BELIEVED)
        self._holds = holds

    async def verify(self, token: str, *, resource: str, now: float) -> Verified:
        """See `Verifier.verify`."""
        verified = await super().verify(token, resource=resource, now=now)
        try:
            holds = await self._holds(token) is not None
        except (Refusal, StoreError):
            raise Unverifiable(
                "It cannot be found out now whether this token still holds."
            ) from None
        if not holds:
            raise BadToken("it was withdrawn, or what was granted has ended")
        return verified


class InHouse:
    """A `Fetch` that leads to one issuer and to nobody else; `url` is its address."""

    def __init__(self, url: str, answer: Callable[[Asked], Awaitable[Reply]]) -> None:
        self._origin, self._answer = urlsplit(url)[:2], answer

    async def __call__(self, request: Request) -> Whole:
        """Ask. Raises Unreachable for any other address."""
        parts = urlsplit(request.url)
        if parts[:2] != self._origin:
            raise t.Unreachable(f"{request.url} is not of this issuer.")
        headers = {name.lower(): value for name, value in request.headers}
        asked = Asked(
            request.method, parts.path, parts.query, {**headers, "host": parts.netloc}, request.body
        )
        return Whole(await self._answer(asked))

    async def aclose(self) -> None:
        """Nothing is open."""


class Whole:
    """An answer that is there at once; it fulfils the seam `Response`."""

    def __init__(self, reply: Reply) -> None:
        self.status = reply.status
        self.headers = {name.lower(): value for name, value in reply.headers}
        self._body = reply.body

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises ProtocolError over `limit` bytes."""
        if len(self._body) > limit:
            raise t.ProtocolError(f"the answer has more than {limit} bytes")
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body in one piece."""
        yield self._body

    async def aclose(self) -> None:
        """Nothing is open."""
