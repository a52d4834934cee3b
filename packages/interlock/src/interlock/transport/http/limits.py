"""The limits of an HTTP endpoint, each with a safe default."""

from __future__ import annotations

from msgspec import Struct


class Rate(Struct, frozen=True):
    """How many requests one principal (or, without authorization, one address) may make:
    `per_second` on the whole, `burst` at once.
    """

    per_second: float
    burst: float

    def __post_init__(self) -> None:
        if self.per_second <= 0 or self.burst < 1:
            raise ValueError("a rate is more than 0 requests a second, with a burst of 1 or more")


class Limits(Struct, frozen=True, kw_only=True):
    """What one endpoint takes at the most. Seconds and bytes.

    Parameters:
        head: bytes of one request's line and headers; over it: 431 (where Interlock serves itself,
            as the next one).
        head_seconds: how long they may take to arrive; over it: 408.
        stall_seconds: how long a client may take nothing in of what waits for it; over it: the
            connection is ended.
        body: bytes of one request's body; over it: 413.
        body_seconds: how long a body may take to arrive; over it: 408.
        bodies: bytes of all bodies that are still arriving in this process; over it: 503.
        calls: requests that run at once in this process; over it: 503.
        streams: event streams that are open at once for listening; over it: 503.
        sessions: sessions that exist at once, over all workers; over it: 503.
        session_seconds: the age at which a session ends.
        idle_seconds: how long a session lives without a request or an open stream.
        keep_alive: seconds between signs of life on a quiet stream.
        rate: requests for each principal or address; over it: 429.
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
    rate: Rate | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            given = getattr(self, name)
            if name != "rate" and (
                isinstance(given, bool) or not isinstance(given, int | float) or not given > 0
            ):
                raise ValueError(f"the limit {name} is a number above 0, and cannot be {given!r}")
