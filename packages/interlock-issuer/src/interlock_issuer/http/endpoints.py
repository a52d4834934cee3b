"""ASGI parts of the issuer around Starlette's router: limits on request bodies, CORS, DNS
rebinding, failures.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlock.auth.oauth import is_loopback_host
from interlock.logs import limited
from interlock.store import StoreError

from .error_responses import OAuthError
from .parameters import BadParameters
from .responses import text_response, with_headers

MAX_BODY = 64 * 1024
"""Bytes of a request body."""
BODY_SECONDS = 30.0
"""Seconds that a request body may take to arrive."""
Answer = Callable[[Request], Awaitable[Response]]

# Programs in browsers may call what takes no cookies, as the inspector does. Pages get no CORS
# headers: they are for the person alone.
_CORS = (
    ("access-control-allow-origin", "*"),
    ("access-control-expose-headers", "DPoP-Nonce, WWW-Authenticate, Retry-After"),
)
_PREFLIGHT = (
    *_CORS,
    ("access-control-allow-methods", "GET, POST, OPTIONS"),
    ("access-control-allow-headers", "Authorization, Content-Type, DPoP, MCP-Protocol-Version"),
    ("access-control-max-age", "86400"),
)

_log = limited("interlock.auth")


class Endpoint:
    """One path as an ASGI app, whatever the method; HEAD is answered without a body."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        response = await self._answer(Request(scope, receive))
        if scope["method"] == "HEAD":
            response.body = b""
        await response(scope, receive, send)


class ProgramEndpoint(Endpoint):
    """An endpoint that programs call: one handler for each method, CORS, and errors as JSON."""

    def __init__(self, handlers: Mapping[str, Answer]) -> None:
        super().__init__(self._dispatch)
        self._handlers = handlers

    async def _dispatch(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return with_headers(Response(status_code=204), *_PREFLIGHT)
        handler = self._handlers.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            allowed = ("allow", ", ".join([*self._handlers, "OPTIONS"]))
            return text_response(405, f"{', '.join(self._handlers)}.", [allowed, *_CORS])
        try:
            response = await handler(request)
        except BadParameters as bad:
            response = OAuthError("invalid_request", str(bad)).response()
        except OAuthError as error:
            response = error.response()
        return with_headers(response, *_CORS)


class Boundary:
    """Guards an ASGI app: bodies are read whole and are bounded, and errors reveal no details.

    With `loopback`, a request passes only if its Host is a name of this machine. A foreign name
    that resolves to this machine is refused.
    """

    def __init__(self, app: ASGIApp, *, loopback: bool = False) -> None:
        self._app = app
        self._loopback = loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on. Lifespan messages and WebSockets pass as they are."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = await _read_body(receive)
        if body is None:
            return
        if isinstance(body, Response):
            await body(scope, receive, send)
            return
        if self._loopback and not _is_local(Request(scope).headers.get("host")):
            words = "This server is only for this machine: use localhost or 127.0.0.1."
            await text_response(403, words)(scope, receive, send)
            return
        await self._guarded(scope, body, receive, send)

    async def _guarded(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        pieces = [body]
        started = False

        async def replay() -> Message:
            if pieces:
                return {"type": "http.request", "body": pieces.pop(), "more_body": False}
            return await receive()

        async def note(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, replay, note)
        except Exception as bad:
            if started:
                raise
            await _failure(bad, scope)(scope, receive, send)


async def _read_body(receive: Receive) -> bytes | Response | None:
    """Read a body whole: the answer to one that is too large or too slow,
    None if the client left."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                if len(body) > MAX_BODY:
                    words = f"The request body has more than {MAX_BODY} bytes."
                    return text_response(413, words, [("connection", "close")])
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        words = f"The request did not arrive within {BODY_SECONDS:g} seconds."
        return text_response(408, words, [("connection", "close")])


def _failure(bad: Exception, scope: Scope) -> Response:
    """Return the answer to a request that failed inside. It does not say what failed."""
    if isinstance(bad, StoreError):
        _log.error("the authorization server cannot use its vault: %s", bad)
        error = OAuthError(
            "temporarily_unavailable",
            "The authorization server cannot reach its store.",
            status=503,
            headers=[("retry-after", "10")],
        )
        return error.response()
    _log.error(
        "the authorization server failed on %s %s",
        scope["method"],
        scope["path"],
        exc_info=bad,
    )
    return OAuthError(
        "server_error", "Internal error in the authorization server.", status=500
    ).response()


def _is_local(host: str | None) -> bool:
    """Whether a Host header names this machine. A request without one comes from no browser."""
    if host is None:
        return True
    try:
        return is_loopback_host(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
