"""The limits of an HTTP endpoint, each with a safe default."""

from __future__ import annotations

from msgspec import Struct


class Rate(Struct, frozen=True):
    """The request rate of one principal, or of one address without authorization.

    Attributes:
        per_second: The average number of requests in a second.
        burst: The maximum number of requests at once.
    """

    per_second: float
    burst: float

    def __post_init__(self) -> None:
        if self.per_second <= 0 or self.burst < 1:
            raise ValueError("a rate is more than 0 requests a second, with a burst of 1 or more")


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of one endpoint, in seconds and bytes.

    Attributes:
        head: The maximum size of the request line and headers of one request; more is answered with
            431. This limit and the next one apply only to Interlock's own HTTP server.
        head_seconds: The maximum time in which the head must arrive; longer is answered with 408.
        stall_seconds: The maximum time for which a client may read nothing of its queued data; then
            its connection is closed.
        body: The maximum size of one request's body; more is answered with 413.
        body_seconds: The maximum time in which a body must arrive; longer is answered with 408.
        bodies: The maximum size of all incomplete bodies in this process; more is answered with
            503.
        calls: Concurrent requests in this process; more are answered with 503.
        streams: Open event streams in this process; more are answered with 503.
        sessions: Sessions over all workers; more are answered with 503.
        session_seconds: The maximum age of a session.
        idle_seconds: The time after which a session without a request or an open stream ends.
        keep_alive: The interval of keep-alive comments on a silent stream.
        connections: Open TCP connections of Interlock's own HTTP server. A further one replaces an
            idle connection of the address with the most connections; if none is idle, it is
            answered with 503.
        connections_per_address: Open TCP connections of one address, or of one /64 network of IPv6;
            more are answered with 503.
        rate: Requests for each principal or address; more are answered with 429.
    """

    head: int = 64 * 1024
    head_seconds: float = 10.0
    stall_seconds: float = 60.0
    body: int = 16 * 1024 * 1024
    body_seconds: float = 30.0
    bodies: int = 256 * 1024 * 1024
    calls: int = 4096
    streams: int = 10_000
    sessions: int = 10_000
    session_seconds: float = 24 * 3600.0
    idle_seconds: float = 3600.0
    keep_alive: float = 15.0
    connections: int = 20_000
    connections_per_address: int = 20_000
    rate: Rate | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            given = getattr(self, name)
            if name != "rate" and (
                isinstance(given, bool) or not isinstance(given, int | float) or not given > 0
            ):
                raise ValueError(f"the limit {name} is a number above 0, and cannot be {given!r}")
