"""What a page of the host shows, as its event stream sends it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...fleet.events import (
    FeaturesChanged,
    LogEntry,
    RootsChanged,
    RuleRemembered,
    ServerState,
    SessionBegan,
    SessionResumed,
    TurnEnded,
)
from ...fleet.log import SessionRow
from .state import plain, state

if TYPE_CHECKING:
    from ..app import Host

MOST_PAST = 200
"""Conversations of the log in the page's list."""
# The state changes with these.
STATEFUL = (
    FeaturesChanged,
    ServerState,
    RootsChanged,
    RuleRemembered,
    SessionBegan,
    SessionResumed,
    TurnEnded,
)


class HostFeed:
    """The state of a host and its events; see `Feed`.

    Args:
        host: The host.
        title: What stands at the top of the page.
        demo: What the page says about a demonstration; "" if it is none.
        apps_origin: The origin under which apps of servers are shown; "" for no apps.
    """

    def __init__(self, host: Host, *, title: str, demo: str, apps_origin: str) -> None:
        self._host = host
        self._title = title
        self._demo = demo
        self._apps_origin = apps_origin
        self._past: Sequence[SessionRow] = ()  # as of the time when a page last connected

    async def refresh(self) -> None:
        """Read the list of earlier conversations again."""
        await self._host.log.flush()
        self._past = (await self._host.log.sessions())[:MOST_PAST]

    def listen(self, hear: Callable[[LogEntry], None]) -> Callable[[], None]:
        """See Feed."""
        return self._host.listen(hear)

    def state(self) -> dict[str, Any]:
        """See Feed."""
        return state(
            self._host,
            title=self._title,
            demo=self._demo,
            apps_origin=self._apps_origin,
            past=self._past,
        )

    def encoded(self, entry: LogEntry) -> Any:
        """See Feed."""
        return plain(entry)

    def changes_state(self, entry: LogEntry) -> bool:
        """See Feed."""
        return isinstance(entry.event, STATEFUL)
