"""Recording of a client over HTTP: the heads of its requests and responses, and the messages in
them, each with the number of its HTTP exchange.
"""

from __future__ import annotations

from contextvars import ContextVar

from msgspec import Struct

from ..http11.client import HttpFetch
from ..http11.fetch import Fetch, Request, Response
from ..transport.channel import Tap
from ..wire.jsonrpc import Frame
from .writer import RecordedConnection


class _HttpExchange(Struct):
    """The exchange of the running task. `is_sent`: its request has been sent."""

    number: int
    is_sent: bool = False


_current: ContextVar[_HttpExchange | None] = ContextVar("http exchange", default=None)


class RecordedFetch:
    """An HTTP client whose exchanges are recorded. Give it to a transport together with the tap
    that `record` returns.

    Args:
        fetch: Sends the requests. By default an `HttpFetch`.
    """

    def __init__(self, fetch: Fetch | None = None) -> None:
        self._fetch = HttpFetch() if fetch is None else fetch
        self._connection: RecordedConnection | None = None

    def record(self, connection: RecordedConnection) -> Tap:
        """Record the exchanges from now on in a connection. Returns the tap for its messages."""
        self._connection = connection

        def tap(sender: str, frame: Frame) -> None:
            if sender == "client":
                # The transport sends the message next, in the same task.
                _current.set(_HttpExchange(connection.next_exchange()))
            exchange = _current.get()
            connection.frames(
                "client" if sender == "client" else "server",
                # JSON over HTTP may have line ends, which a line of the tape cannot have.
                [frame.replace(b"\r", b" ").replace(b"\n", b" ")],
                exchange.number if exchange is not None else 0,
            )

        return tap

    async def __call__(self, request: Request) -> Response:
        """Send a request. See Fetch."""
        connection = self._connection
        if connection is None:
            return await self._fetch(request)
        exchange = _current.get()
        if exchange is None or exchange.is_sent or not request.body:
            exchange = _HttpExchange(connection.next_exchange())
            _current.set(exchange)
        exchange.is_sent = True
        connection.http_request(exchange.number, request.method, request.url, request.headers)
        response = await self._fetch(request)
        connection.http_response(exchange.number, response.status, response.headers.items())
        return response

    async def aclose(self) -> None:
        """Close every connection. See Fetch."""
        await self._fetch.aclose()
