"""An ASGI app as an HTTP client's peer: requests to an app in this process, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from ....http11.fetch import ConnectionLost, Request
from ....logs import limited
from ....transport.http.authorization import ASGIApp
from ....transport.http.server.lifespan import LifespanApp
from ....types import ProtocolError

log = limited("interlock.server")


class AsgiFetch:
    """Sends requests to an ASGI app in the same process.

    A response is complete before it is returned.

    Args:
        app: The app, such as a FastAPI or Starlette app.
        limit: The largest body of a response, in bytes.
    """

    def __init__(self, app: ASGIApp, *, limit: int) -> None:
        self._app = app
        self._limit = limit
        self._lifespan: LifespanApp | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """Start the app through its lifespan, if it has one. You can call it twice.

        Raises:
            RuntimeError: The app reports that it cannot start.
        """
        async with self._opening:
            if self._lifespan is None:
                lifespan = LifespanApp(self._app)
                await lifespan.open()
                self._lifespan = lifespan

    async def __call__(self, request: Request) -> AsgiResponse:
        """Send a request, and return the complete response.

        Raises:
            ConnectionLost: The app failed before it answered.
            ProtocolError: The response is larger than the limit.
        """
        await self.open()
        assert self._lifespan is not None
        exchange = _AsgiExchange(request, self._limit)
        try:
            await self._lifespan(
                _scope(request, self._lifespan.state), exchange.receive, exchange.send
            )
        except Exception as bad:
            if isinstance(bad, ProtocolError):
                raise
            log.error("the app failed on %s", request.method, exc_info=bad)
        if exchange.status is None:
            raise ConnectionLost("The app failed before it answered.")
        return AsgiResponse(exchange.status, exchange.headers, bytes(exchange.body))

    async def aclose(self) -> None:
        """End the app through its lifespan. You can call it twice."""
        lifespan = self._lifespan
        self._lifespan = None
        if lifespan is not None:
            await lifespan.aclose()


class AsgiResponse:
    """A complete response of an app."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self._body = body

    async def read(self, limit: int) -> bytes:
        """Return the body. Raises ProtocolError if it has more than `limit` bytes."""
        if len(self._body) > limit:
            raise ProtocolError(f"The response has more than {limit} bytes.")
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        """Iterate over the body, which is one piece."""
        yield self._body

    async def aclose(self) -> None:
        """Do nothing: the app has finished."""


class _AsgiExchange:
    """One request to an app, and the parts of the response."""

    def __init__(self, request: Request, limit: int) -> None:
        self._request = request
        self._limit = limit
        self._is_sent = False
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.body = bytearray()

    async def receive(self) -> dict[str, Any]:
        """Return the request's body. After that wait: this client never disconnects."""
        if self._is_sent:
            await asyncio.get_running_loop().create_future()
        self._is_sent = True
        return {"type": "http.request", "body": self._request.body, "more_body": False}

    async def send(self, message: Any) -> None:
        """Take a part of the response."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            for name, value in message.get("headers", ()):
                key = bytes(name).decode("latin-1").lower()
                text = bytes(value).decode("latin-1")
                before = self.headers.get(key)
                self.headers[key] = text if before is None else f"{before}, {text}"
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")
            if len(self.body) > self._limit:
                raise ProtocolError(f"The response has more than {self._limit} bytes.")


def _scope(request: Request, state: dict[str, Any]) -> dict[str, Any]:
    parts = urlsplit(request.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in request.headers
    ]
    headers.insert(0, (b"host", parts.netloc.encode()))
    if request.body:
        headers.append((b"content-length", str(len(request.body)).encode()))
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": parts.scheme,
        "path": unquote_to_bytes(parts.path).decode("utf-8", "replace"),
        "raw_path": parts.path.encode(),
        "query_string": parts.query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 0),
        "server": (parts.hostname, port),
        "state": dict(state),
    }
