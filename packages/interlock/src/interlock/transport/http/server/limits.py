"""The limits of the HTTP server: sizes, timeouts against slow clients (slowloris), connections."""

from __future__ import annotations

from msgspec import Struct


class ConnectionLimits(Struct, frozen=True, kw_only=True):
    """The limits of one HTTP server.

    Attributes:
        head: The maximum size of a request line and headers in bytes; more is answered with 431.
        headers: The maximum number of header fields of a request; more are answered with 431.
        target: The maximum size of a request target in bytes; more is answered with 414.
        head_seconds: The maximum time in which a head must arrive, in seconds; longer is answered
            with 408.
        idle_seconds: The time that a connection stays open without a request, in seconds.
        stall_seconds: The maximum time for which a client may read nothing of its queued data, in
            seconds.
        body: The maximum size of a request body in bytes; more is answered with 413. None if the
            app has its own limit.
        body_seconds: The maximum time in which a body must arrive, in seconds; longer is answered
            with 408. None if the app has its own limit.
        connections: The maximum number of TCP connections. A further one replaces an idle
            connection of the address with the most connections; if none is idle, it is answered
            with 503.
        connections_per_address: The maximum number of TCP connections of one address (for IPv6: of
            one /64 network); more are answered with 503.
    """

    head: int = 64 * 1024
    headers: int = 256
    target: int = 32 * 1024
    head_seconds: float = 10.0
    idle_seconds: float = 60.0
    stall_seconds: float = 60.0
    body: int | None = None
    body_seconds: float | None = None
    connections: int = 20_000
    connections_per_address: int = 20_000
