"""Tracing of a client: the attributes of its connection, and the duration of its sessions."""

from __future__ import annotations

from time import monotonic
from urllib.parse import urlsplit

from ..exchange import Handler
from ..observe.spans import Attribute, Tracing

_PORTS = {"http": 80, "https": 443}


class SessionTracing:
    """The tracing of one client.

    Args:
        tracing: The tracing system.
        transport: The transport of the client.
    """

    def __init__(self, tracing: Tracing, transport: object) -> None:
        self._tracing = tracing
        self._attributes = connection_attributes(transport)
        self._began: float | None = None
        self._revision = ""

    def middleware(self, handler: Handler) -> Handler:
        """Return the handler with a span around each request."""
        return self._tracing.client(handler, self._attributes)

    def start(self, revision: str) -> None:
        """Note that a session has begun, under a revision."""
        self._began = monotonic()
        self._revision = revision

    def end(self) -> None:
        """Record the duration of the session, if one has begun."""
        began = self._began
        self._began = None
        if began is not None:
            attributes = {**self._attributes, "mcp.protocol.version": self._revision}
            self._tracing.session_ended(monotonic() - began, attributes, "client")


def connection_attributes(transport: object) -> dict[str, Attribute]:
    """Return what the semantic conventions say of a connection: its transport, and the address of
    the server, without path and secrets.
    """
    url = getattr(transport, "url", None)
    if isinstance(url, str) and (host := urlsplit(url).hostname):
        parts = urlsplit(url)
        return {
            "network.transport": "tcp",
            "server.address": host,
            "server.port": parts.port or _PORTS.get(parts.scheme, 0),
        }
    address = getattr(transport, "address", None)
    if isinstance(address, tuple):
        return {
            "network.transport": "tcp",
            "server.address": str(address[0]),
            "server.port": int(address[1]),
        }
    if address is not None:
        return {"network.transport": "unix", "server.address": str(address)}
    return {"network.transport": "pipe"}
