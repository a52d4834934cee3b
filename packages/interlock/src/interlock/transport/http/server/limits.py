"""The limits of the HTTP server: sizes, timeouts against slow clients (slowloris), connections."""

from __future__ import annotations

from msgspec import Struct


class ConnectionLimits(Struct, frozen=True, kw_only=True):
    """What one HTTP server accepts at most.

    Attributes:
        head: Bytes of one request line with its headers; over it: 431.
        headers: Header fields of one request; over it: 431.
        target: Bytes of one request target; over it: 414.
        head_seconds: Seconds that they may take to arrive; over it: 408.
        idle_seconds: Seconds that a connection stays open without a request.
        stall_seconds: Seconds that a client may read nothing of what waits for it.
        body: Bytes of one request body; over it: 413. None where the app has a limit of its own.
        body_seconds: Seconds that a body may take to arrive; over it: 408. None as above.
        connections: TCP connections at once. One more takes the place of an idle connection of the
            address that holds the most; where none is idle, it is answered with 503.
        connections_per_address: TCP connections of one address at once (IPv6: of one /64); over
            it: 503.
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
