"""The issuer in the same process as a server: verification without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message

from interlock import Request
from interlock import types as t
from interlock.auth.tokens import BadToken, Jwt, Unverifiable, Verified
from interlock.store import StoreError

from .http.error_responses import OAuthError

# seconds for which a guard need not ask again, so that what was revoked is of no use soon after
_BELIEVED = 30.0


class InProcessVerifier(Jwt):
    """Verifies an issuer's tokens in its own process, and that what is behind them has not ended
    (AU2-10).

    `app` is the issuer; `holds` gives the claims of a token that still holds, else None.
    """

    def __init__(
        self,
        url: str,
        app: ASGIApp,
        holds: Callable[[str], Awaitable[Mapping[str, Any] | None]],
    ) -> None:
        super().__init__(url, fetch=InProcessFetch(url, app), seconds=_BELIEVED)
        self._holds = holds

    async def verify(self, token: str, *, resource: str, now: float) -> Verified:
        """See `Verifier.verify`."""
        verified = await super().verify(token, resource=resource, now=now)
        try:
            holds = await self._holds(token) is not None
        except (OAuthError, StoreError):
            raise Unverifiable(
                "The server cannot check now whether this token is still valid."
            ) from None
        if not holds:
            raise BadToken("it was revoked, or its grant has ended")
        return verified


class InProcessFetch:
    """A `Fetch` that leads to one ASGI app and to nothing else; `url` is its address."""

    def __init__(self, url: str, app: ASGIApp) -> None:
        self._origin = urlsplit(url)[:2]
        self._app = app

    async def __call__(self, request: Request) -> InProcessResponse:
        """Send a request. Raises Unreachable for any other address."""
        parts = urlsplit(request.url)
        if parts[:2] != self._origin:
            raise t.Unreachable(f"{request.url} is not an address of this issuer.")
        headers = [(name.lower().encode(), value.encode()) for name, value in request.headers]
        scope = {
            "type": "http",
            "method": request.method,
            "scheme": parts.scheme,
            "path": parts.path,
            "query_string": parts.query.encode(),
            "headers": [(b"host", parts.netloc.encode()), *headers],
        }
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": request.body, "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        start, *rest = sent
        named = {name.decode(): value.decode() for name, value in start["headers"]}
        body = b"".join(message.get("body", b"") for message in rest)
        return InProcessResponse(start["status"], named, body)

    async def aclose(self) -> None:
        """Nothing is open."""


class InProcessResponse:
    """A whole response; it fulfils the interface `Response` of `Fetch`."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self._body = body

    async def read(self, limit: int) -> bytes:
        """Return the whole body. Raises ProtocolError over `limit` bytes."""
        if len(self._body) > limit:
            raise t.ProtocolError(f"the answer has more than {limit} bytes")
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body in one piece."""
        yield self._body

    async def aclose(self) -> None:
        """Nothing is open."""
