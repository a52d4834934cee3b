"""The limits of one server: timeouts, sizes, and rates."""

from __future__ import annotations

from msgspec import Struct

from interlock.types import LoggingLevel


class HubLimits(Struct, frozen=True, kw_only=True):
    """The limits of a server. All times are in seconds.

    Attributes:
        start: To reach the server, unless its entry says otherwise.
        call: For one request, unless its entry or the caller says otherwise; None: no limit.
        lists: To fetch one list with all its pages.
        acknowledge: To acknowledge a subscription. The lists are fetched after it, so that no
            change is missed between the two.
        refresh: Between two fetches of one list, however often the server announces a change.
        ping: Between two pings to an idle server of the handshake era (`PNG-03`); None: no pings.
        pong: To answer a ping.
        most_pings_missed: After so many unanswered pings in a row the server is restarted.
        patience: For a process to exit after its input was closed, before it is terminated; and
            again before it is killed.
        most_items: Items in one list; fetching a longer one fails.
        lines_a_second: Log messages and lines of stderr; the excess is counted and dropped.
        log_level: The lowest level of log messages to request.
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
