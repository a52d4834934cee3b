"""The limits of one server: timeouts, sizes, and rates."""

from __future__ import annotations

from msgspec import Struct

from interlock.types import LoggingLevel


class HubLimits(Struct, frozen=True, kw_only=True):
    """What a server may take, and how often it is looked at. All times are in seconds.

    Attributes: start: To be reached, where its entry says nothing else. call: For one request,
        where neither its entry nor the caller says anything else; None: no bound. lists: To give
        one list, all its pages together. acknowledge: In which a subscription is acknowledged
        before the lists are fetched, so that no change falls between the two. refresh: Between two
        fetches of one list, whatever the number of notices that it has changed. ping: Between two
        pings to a server of the handshake era that is idle (`PNG-03`); None: none. pong: In which a
        ping is answered. most_pings_missed: After so many unanswered pings in a row it is started
        again. patience: In which a process whose input was closed ends, before it is told to, and
        again before it is made to. most_items: Of one list; one that is longer counts as failed.
        lines_a_second: Log messages and lines of stderr; what is more is counted and left out.
        log_level: From which level on log messages are asked for.
    """

    start: float = 30.0
    call: float | None = 300.0
    lists: float = 30.0
    acknowledge: float = 1.0
    refresh: float = 0.5
    ping: float | None = 30.0
    pong: float = 10.0
    most_pings_missed: int = 2
    patience: float = 2.0
    most_items: int = 10_000
    lines_a_second: int = 100
    log_level: LoggingLevel = "info"
