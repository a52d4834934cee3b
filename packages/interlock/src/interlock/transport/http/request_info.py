"""The HTTP request as handlers see it (`Exchange.transport`): method, path, headers and client
address, from the ASGI scope.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from ...exchange import ExchangeTransport, HttpRequest
from .requests import EndpointRequest

_NAMES = {
    name.encode(): name
    for name in (
        "accept",
        "accept-encoding",
        "accept-language",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "forwarded",
        "host",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
        "origin",
        "traceparent",
        "user-agent",
        "x-forwarded-for",
        "x-forwarded-proto",
    )
}
"""The names of usual headers. All requests share them, because a task keeps its request."""


class HttpTransport(ExchangeTransport):
    """The abilities of HTTP besides carrying an exchange.

    Args:
        request: The request. Its scope is read only if a handler asks for it.
        mirrored: The headers that repeat parts of the body.
        release: Closes the client's stream, if the client could resume it.
        held_bytes: The memory that the request holds while it runs, in bytes.
    """

    __slots__ = ("_mirrored", "_release", "_request", "_seen", "held_bytes")

    held_bytes: int
    is_http = True

    def __init__(
        self,
        request: EndpointRequest | None,
        mirrored: Mapping[str, str] | None = None,
        release: Callable[[int | None], bool] | None = None,
        held_bytes: int = 0,
    ) -> None:
        self._request = request
        self._mirrored = mirrored
        self._release = release
        self._seen: HttpRequest | None = None
        self.held_bytes = held_bytes

    @classmethod
    def of(cls, request: HttpRequest | None, held_bytes: int = 0) -> HttpTransport:
        """Return the transport of a message whose request is known, for example because another
        worker has received it.
        """
        transport = cls(None, held_bytes=held_bytes)
        transport._seen = request
        return transport

    @property
    def request(self) -> HttpRequest | None:
        """The HTTP request."""
        if self._seen is None and self._request is not None:
            self._seen = http_request(self._request.scope)
        return self._seen

    @property
    def address(self) -> str | None:
        """The network address of the client."""
        if self._request is None:
            return None if self._seen is None else self._seen.client
        client = self._request.client
        return client[0] if client else None

    @property
    def mirrored(self) -> Mapping[str, str] | None:
        """The headers that repeat parts of the body."""
        return self._mirrored

    def release(self, retry_ms: int | None = None) -> bool:
        """Close the client's stream, if the client could resume it."""
        return self._release is not None and self._release(retry_ms)


def http_request(scope: Mapping[str, Any]) -> HttpRequest:
    """Return the request of an ASGI scope (ASGI 3, "HTTP Connection Scope")."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope.get("headers", ()):
        name = _NAMES.get(raw_name) or raw_name.decode("latin-1").lower()
        value = raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    client = scope.get("client")
    return HttpRequest(
        method=scope["method"],
        path=scope.get("path") or unquote(scope.get("raw_path", b"").decode("latin-1")),
        query=scope.get("query_string", b"").decode("latin-1"),
        headers=headers,
        client=client[0] if client else None,
    )
