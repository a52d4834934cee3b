"""HTTP with an ASGI app in the same process: one request out, one whole response back."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from msgspec import Struct
from starlette.responses import Response

Message = MutableMapping[str, Any]


class Sent(Struct, frozen=True):
    """One request, whole."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = {}
    body: bytes = b""
    address: str = ""
    secure: bool = False


class Reply(Struct, frozen=True):
    """One response, whole. The status 0 says that nothing was sent."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    @classmethod
    def of(cls, response: Response) -> Reply:
        """What Starlette would send."""
        headers = tuple((name.decode(), value.decode()) for name, value in response.raw_headers)
        return cls(response.status_code, headers, bytes(response.body))

    def header(self, name: str) -> str | None:
        """The first header of a name, in any case."""
        return next((value for known, value in self.headers if known.lower() == name.lower()), None)


async def ask(app: Any, sent: Sent) -> Reply:
    """Send one request, and return what comes back."""
    return await call(
        app,
        sent.body,
        method=sent.method,
        headers=tuple((name.encode(), value.encode()) for name, value in sent.headers.items()),
        path=sent.path,
        query_string=sent.query.encode("latin-1"),
        scheme="https" if sent.secure else "http",
        client=(sent.address, 4242) if sent.address else None,
    )


async def call(
    app: Any,
    *bodies: bytes | None,
    method: str = "POST",
    headers: tuple[tuple[bytes, bytes], ...] = (),
    **scope: Any,
) -> Reply:
    """One request, its body in pieces; a piece that is None is the client going away."""
    told: Message = {
        "type": "http",
        "method": method,
        "path": "/",
        "query_string": b"",
        # ASGI servers give header names in lower case.
        "headers": tuple((name.lower(), value) for name, value in headers),
    } | scope
    pieces = list(bodies) or [b""]
    sent: list[Message] = []

    async def receive() -> Message:
        piece = pieces.pop(0)
        if piece is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(told, receive, send)
    if not sent:
        return Reply(0)
    start, *rest = sent
    headers_sent = tuple((name.decode(), value.decode()) for name, value in start["headers"])
    body = b"".join(message.get("body", b"") for message in rest)
    return Reply(start["status"], headers_sent, body)
