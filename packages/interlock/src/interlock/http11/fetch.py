"""Fetch: the interface to an HTTP client. A request is sent, and a response is returned whose body
can be read as it arrives.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

from msgspec import Struct

from .. import types as t


class ConnectionLost(t.Unreachable):
    """The connection broke after a request was sent and before its response was complete. It is
    unknown whether the request took effect.
    """


class Request(Struct, frozen=True):
    """One HTTP request.

    Attributes:
        method: The method, in capitals.
        url: The absolute URL.
        headers: The headers, in the order in which they are sent.
        body: The whole body.
        again: Whether it is harmless if the request reaches the server twice. GET, HEAD and DELETE
            requests always are.
        aside: Whether requests that hold connections may depend on this one. The connection limit
            does not apply to it then; otherwise it could wait forever.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    again: bool = False
    aside: bool = False

    def __repr__(self) -> str:  # headers and bodies contain secrets
        return f"Request({self.method} {self.url.partition('?')[0]}, {len(self.body)} bytes)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("method", self.method), ("url", self.url.partition("?")[0])]


class Response(Protocol):
    """A response whose head has arrived. The body is read once, by `read` or by `chunks`. Close the
    response unless the body was read to its end.
    """

    status: int
    headers: dict[str, str]
    """Names in lower case; several headers of one name are joined with ", "."""

    async def read(self, limit: int) -> bytes:
        """Return the whole body.

        Raises:
            ConnectionLost: The connection broke.
            ProtocolError: The body has more than `limit` bytes.
        """
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Iterate over the body in pieces as they arrive. Raises ConnectionLost if the connection
        breaks before the end of the body.
        """
        ...

    async def aclose(self) -> None:
        """Stop reading. If the body was not read to its end, the connection is closed."""
        ...


class Fetch(Protocol):
    """Sends HTTP requests. It follows no redirects, stores no cookies, and does not retry.

    There is one exception: the server may close a reused connection before a byte of the response
    arrives. Then the request is sent again on a new connection, if it may be sent twice. Any other
    request raises ConnectionLost, because the server may have processed it.
    """

    async def __call__(self, request: Request) -> Response:
        """Send a request; return as soon as the head of the response has arrived.

        Cancelling the call cancels the request.

        Raises:
            ConnectionLost: The connection broke, and the request may have arrived.
            Unreachable: Nothing was sent; the message says why.
            ValueError: The URL or a header cannot be sent.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection. Running requests raise Unreachable."""
        ...


class Authorizer(Protocol):
    """Authorizes the requests of clients."""

    def to(self, url: str) -> Authorized:
        """The authorization for the server at a URL."""
        ...


class Authorized(Protocol):
    """Authorizes the requests to one server. Several requests may run at once; none waits for the
    response to another.
    """

    async def sign(self, request: Request) -> Request:
        """Return the request with its authorization; wait if that has to be refreshed first. Raises
        Unreachable if there is no access.
        """
        ...

    async def handle_response(self, request: Request, response: Response, tries: int) -> bool:
        """Handle the head of the response to a signed request. It may wait for a person to log in.

        Args:
            request: The request.
            response: The head of the response.
            tries: How often the request has been sent.

        Returns:
            Whether the request should be signed and sent again.

        Raises:
            Unreachable: Access cannot be obtained.
        """
        ...
