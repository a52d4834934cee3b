"""The limits of an HTTP endpoint, each with a safe default."""

from __future__ import annotations

from msgspec import Struct

from ...quotas import DEFAULT_SHARE


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
        calls: Concurrent requests in this process; more wait in the queue.
        queue: Requests that wait until others have ended, the callers in turn; more are answered
            with 503. 0 for no queue.
        queue_seconds: How long a request waits in the queue; then it is answered with 503.
        streams: Open event streams in this process; more are answered with 503.
        sessions: Sessions over all workers. A further one replaces the least recently used session
            of the caller with the most sessions. It is answered with 503 if all are in use and
            nobody has more than the others.
        share: The part of `calls`, `queue`, `streams` and `bodies` that one caller may hold while
            nobody else does, from 0.5 to 1. Several callers share the rest of what is free.
        session_rest_seconds: A session that is unused for this long makes room for a new one, even
            if its owner has no more sessions than others.
        opening: The maximum size of the request that opens a session, which is stored as long as
            the session; more is answered with 413.
        session_seconds: The maximum age of a session.
        idle_seconds: The time after which a session without a request or an open stream ends.
        keep_alive: The interval of keep-alive comments on a silent stream.
        connections: Open TCP connections of Interlock's own HTTP server. A further one replaces an
            idle connection of the address with the most connections; if none is idle, it is
            answered with 503.
        connections_per_address: Open TCP connections of one address, or of one /64 network of IPv6;
            more are answered with 503.
        rate: Requests for each principal or address, over all workers; more are answered with 429.
        busy_rate: The same for each worker, and only while more than half of `calls` run.
    """

    head: int = 64 * 1024
    head_seconds: float = 10.0
    stall_seconds: float = 60.0
    body: int = 16 * 1024 * 1024
    body_seconds: float = 30.0
    bodies: int = 256 * 1024 * 1024
    calls: int = 4096
    queue: int = 1000
    queue_seconds: float = 5.0
    streams: int = 10_000
    share: float = DEFAULT_SHARE
    sessions: int = 10_000
    session_rest_seconds: float = 300.0
    opening: int = 64 * 1024
    session_seconds: float = 24 * 3600.0
    idle_seconds: float = 3600.0
    keep_alive: float = 15.0
    connections: int = 20_000
    connections_per_address: int = 20_000
    rate: Rate | None = None
    busy_rate: Rate | None = Rate(per_second=100, burst=500)

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            given = getattr(self, name)
            if name in ("rate", "busy_rate") or (
                name == "queue" and given == 0 and given is not False
            ):
                continue
            if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
                raise ValueError(f"the limit {name} is a number above 0, and cannot be {given!r}")
        if not 0.5 <= self.share <= 1:
            raise ValueError(f"the share of one caller is from 0.5 to 1, and not {self.share!r}")
