"""Fetch: the interface to an HTTP client library. One request out, one response whose body may
be read as it comes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

from msgspec import Struct

from .. import types as t


class ConnectionLost(t.Unreachable):
    """The connection broke after a request was sent and before its answer was whole; whether it
    took effect is not known.
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

    def __repr__(self) -> str:  # headers and bodies bear secrets
        return f"Request({self.method} {self.url.partition('?')[0]}, {len(self.body)} bytes)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("method", self.method), ("url", self.url.partition("?")[0])]


class Response(Protocol):
    """The head of an answer has come; the body is read by one of the two ways, once. Must be
    closed, unless it was read to its end.
    """

    status: int
    headers: dict[str, str]
    """Names in lower case; several of one name joined with ", "."""

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises ConnectionLost where the connection breaks, ProtocolError over
        `limit` bytes.
        """
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body in pieces as they arrive. Raises ConnectionLost where the connection breaks
        before the body has ended.
        """
        ...

    async def aclose(self) -> None:
        """Read no more; a body that was not read to its end closes its connection."""
        ...


class Fetch(Protocol):
    """Sends HTTP requests. Follows no redirects, keeps no cookies, repeats nothing by itself.

    The one exception: a request on a kept connection that the server turns out to have closed
    before a byte of the answer came is sent again on a new one, if it may come twice. Nobody can
    know that the server did nothing of it, so that any other is ConnectionLost.
    """

    async def __call__(self, request: Request) -> Response:
        """Send a request; return once the head of the answer is there.

        Raises Unreachable with the cause in words (ConnectionLost where the request may have
        arrived all the same), and ValueError for what cannot be sent. Cancelling it gives the
        request up.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection; what is under way raises Unreachable."""
        ...


class Authorizer(Protocol):
    """Authorizes the requests of clients."""

    def to(self, url: str) -> Authorized:
        """The authorization for the server at a URL."""
        ...


class Authorized(Protocol):
    """Authorizes the requests to one server. Several requests may be under way; none waits for
    another's answer.
    """

    async def sign(self, request: Request) -> Request:
        """The request with what authorizes it; may wait where that has to be renewed first. Raises
        Unreachable where it cannot be had.
        """
        ...

    async def heed(self, request: Request, response: Response, tries: int) -> bool:
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
