"""CORS: responses to preflight requests, and the headers that let web pages read responses (Fetch
standard).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .requests import Message, Send

_ALLOWED_HEADERS = (
    b"accept, authorization, content-type, dpop, last-event-id, mcp-method, mcp-name, "
    b"mcp-protocol-version, mcp-session-id"
)
_EXPOSED = b"mcp-session-id, www-authenticate, dpop-nonce, retry-after"
_PARAM = b"mcp-param-"


class Cors:
    """The permissions of pages from other origins. `origins` are the permitted ones; "*" permits
    all.
    """

    def __init__(self, origins: Sequence[str]) -> None:
        self._all = "*" in origins
        self._origins = frozenset(origin.rstrip("/").lower().encode() for origin in origins)

    def is_preflight(self, scope: dict[str, Any]) -> bool:
        """Whether a request is a CORS preflight."""
        return scope["method"] == "OPTIONS" and any(
            name == b"access-control-request-method" for name, _ in scope["headers"]
        )

    async def answer(self, scope: dict[str, Any], send: Send) -> None:
        """Answer a preflight request: 204 if the page's origin is permitted, otherwise 403."""
        headers = dict(scope["headers"])
        origin = headers.get(b"origin", b"")
        if not self._welcomes(origin):
            await send(
                {
                    "type": "http.response.start",
                    "status": 403,
                    "headers": [(b"content-length", b"0"), (b"vary", b"origin")],
                }
            )
            await send({"type": "http.response.body", "body": b""})
            return
        wanted = [
            name.strip().lower()
            for name in headers.get(b"access-control-request-headers", b"").split(b",")
        ]
        params = [name for name in wanted if name.startswith(_PARAM)]
        grant = [
            (b"access-control-allow-origin", origin),
            (b"access-control-allow-methods", b"GET, POST, DELETE"),
            (b"access-control-allow-headers", b", ".join([_ALLOWED_HEADERS, *params])),
            (b"access-control-max-age", b"600"),
            (b"vary", b"origin, access-control-request-headers"),
        ]
        await send({"type": "http.response.start", "status": 204, "headers": grant})
        await send({"type": "http.response.body", "body": b""})

    def marking(self, scope: dict[str, Any], send: Send) -> Send:
        """Return a `send` that adds the headers with which a permitted page can read the
        response.
        """
        origin = next((value for name, value in scope["headers"] if name == b"origin"), b"")
        marks = [
            (b"vary", b"origin")
        ]  # for every origin: a cache must not serve one page's response to another page
        if self._welcomes(origin):
            marks += [
                (b"access-control-allow-origin", origin),
                (b"access-control-expose-headers", _EXPOSED),
            ]

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                if not any(
                    name == b"access-control-allow-origin" for name, _ in headers
                ):  # otherwise the guard lets all pages read it
                    headers += marks
                message["headers"] = headers
            await send(message)

        return marked

    def _welcomes(self, origin: bytes) -> bool:
        return bool(origin) and (self._all or origin.lower() in self._origins)
