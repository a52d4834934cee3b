"""Sending requests to an HTTP API: authorization, redirects within its host, and time limits."""

from __future__ import annotations

import asyncio
from urllib.parse import urljoin, urlsplit

from msgspec.structs import replace

from ....http11.fetch import Authorized, Fetch, Request
from ....types import ProtocolError, TimedOut, ToolError
from .responses import ApiResponse

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 5
_PORTS = {"http": 80, "https": 443}


def redirected(request: Request, status: int, location: str) -> Request:
    """Return the request that a redirect leads to.

    A redirect stays on its host. It may change from http to https, but not back. Any other one is
    an error, because the request has the credentials of the API.

    Args:
        request: The request.
        status: The status of the redirect.
        location: Its Location header.

    Raises:
        ToolError: The redirect leads elsewhere, or would repeat a request that writes.
    """
    reads = request.method in ("GET", "HEAD")
    if not reads and status in (301, 302):
        raise ToolError(f"The API answered with a redirect ({status}) to a request that writes.")
    url = _within_host(request.url, location)
    if url is None:
        raise ToolError(
            f"The API answered with a redirect ({status}) to another host, which is not followed."
        )
    if status != 303 or reads:
        return replace(request, url=url)
    headers = tuple(
        (name, value) for name, value in request.headers if name.lower() != "content-type"
    )
    return replace(request, method="GET", url=url, headers=headers, body=b"", again=True)


def _within_host(before: str, location: str) -> str | None:
    """Return the URL of a redirect; None if it leaves the host."""
    try:
        after = urljoin(before, location).partition("#")[0]
        return after if _stays(before, after) else None
    except ValueError:
        return None


def _stays(before: str, after: str) -> bool:
    old = urlsplit(before)
    new = urlsplit(after)
    if new.username is not None or new.hostname != old.hostname:
        return False
    old_port = old.port or _PORTS.get(old.scheme)
    new_port = new.port or _PORTS.get(new.scheme)
    if new.scheme == old.scheme:
        return old_port == new_port
    return (old.scheme, new.scheme, old_port, new_port) == ("http", "https", 80, 443)


class ApiSender:
    """Sends the requests of one API.

    Args:
        fetch: The HTTP client.
        authorized: Signs the requests; None if the configuration has no such authorization.
        limit: The largest body of a response, in bytes.
        timeout: The maximum duration of a request with its redirects, in seconds; None for no
            limit.
    """

    def __init__(
        self, fetch: Fetch, authorized: Authorized | None, *, limit: int, timeout: float | None
    ) -> None:
        self._fetch = fetch
        self._authorized = authorized
        self._limit = limit
        self._timeout = timeout

    async def send(self, request: Request) -> ApiResponse:
        """Send a request, and return its response with the body.

        Raises:
            ToolError: The response is too large, or a redirect leads elsewhere.
            TimedOut: It took too long.
            Unreachable: The API is unreachable.
        """
        deadline = asyncio.timeout(self._timeout)
        try:
            async with deadline:
                return await self._follow(request)
        except TimeoutError:
            if deadline.expired():
                raise TimedOut(
                    f"The API did not answer within {self._timeout:g} seconds."
                ) from None
            raise

    async def _follow(self, request: Request) -> ApiResponse:
        for _ in range(_MOST_REDIRECTS + 1):
            response = await self._send(request)
            location = response.headers.get("location")
            if response.status not in _REDIRECTS or location is None:
                return response
            request = redirected(request, response.status, location)
        raise ToolError(f"The API answered with more than {_MOST_REDIRECTS} redirects.")

    async def _send(self, request: Request) -> ApiResponse:
        tries = 0
        while True:
            signed = request
            if self._authorized is not None:
                signed = await self._authorized.sign(request)
            response = await self._fetch(signed)
            tries += 1
            try:
                again = self._authorized is not None and await self._authorized.handle_response(
                    signed, response, tries
                )
                if not again:
                    body = await response.read(self._limit)
                    return ApiResponse(response.status, response.headers, body)
            except ProtocolError as bad:
                raise ToolError(
                    f"The answer of the API cannot be used: {bad} Ask for less, such as a shorter"
                    " page."
                ) from None
            finally:
                await response.aclose()
