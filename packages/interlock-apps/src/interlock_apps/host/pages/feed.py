"""The content of a host's page: its state and its events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...fleet.events import (
    FeaturesChanged,
    LogEntry,
    ModelChosen,
    PolicyEdited,
    ProjectsChanged,
    RootsChanged,
    RuleRemembered,
    ServerState,
    SessionBegan,
    SessionChanged,
    SessionDeleted,
    SessionResumed,
    SettingsChanged,
    TurnEnded,
)
from ...fleet.log.session_titles import SessionTitles
from ..conversations.conversations import in_order
from .state import plain, state

if TYPE_CHECKING:
    from ..app import Host
    from ..setup.host_setup import HostSetup

MOST_LISTED = 500
"""Conversations in the page's list."""
# Events that change the state.
STATEFUL = (
    FeaturesChanged,
    ModelChosen,
    ServerState,
    ProjectsChanged,
    RootsChanged,
    RuleRemembered,
    PolicyEdited,
    SessionBegan,
    SessionChanged,
    SessionDeleted,
    SessionResumed,
    SettingsChanged,
    TurnEnded,
)


class HostFeed:
    """The state of a host and its events; see `Feed`.

    Args:
        host: The host.
        title: The title at the top of the page.
        demo: The note about the demonstration; "" if it is none.
        apps_origin: The origin of MCP Apps; "" for no apps.
        setup: Changes the servers and the models of the host; None if they are not in files.
    """

    def __init__(
        self,
        host: Host,
        *,
        title: str,
        demo: str,
        apps_origin: str,
        setup: HostSetup | None = None,
    ) -> None:
        self._host = host
        self._title = title
        self._demo = demo
        self._apps_origin = apps_origin
        self._setup = setup
        self._listed = SessionTitles()
        host.listen(self._listed.see)

    async def refresh(self) -> None:
        """Read the list of earlier conversations again."""
        self._listed.replace(await self._host.conversations.rows())

    def listen(self, receive: Callable[[LogEntry], None]) -> Callable[[], None]:
        """See Feed."""
        return self._host.listen(receive)

    def state(self) -> dict[str, Any]:
        """See Feed."""
        return state(
            self._host,
            title=self._title,
            demo=self._demo,
            apps_origin=self._apps_origin,
            listed=in_order(self._listed.rows())[:MOST_LISTED],
            setup=self._setup,
        )

    def encoded(self, entry: LogEntry) -> Any:
        """See Feed."""
        return plain(entry)

    def changes_state(self, entry: LogEntry) -> bool:
        """See Feed."""
        return isinstance(entry.event, STATEFUL)
