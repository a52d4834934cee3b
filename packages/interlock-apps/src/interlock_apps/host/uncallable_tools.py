"""Calls of tools that cannot be called: unknown names, and tools of stopped servers."""

from __future__ import annotations

from typing import Any

from ..fleet import threat_scan
from ..fleet.event_bus import EventBus
from ..fleet.events import CallDecided, CallEnded, CallProposed
from ..fleet.hub import Hub
from ..fleet.naming import server_part, tool_name


class UncallableTools:
    """Publishes calls that a model wanted and that cannot be made."""

    def __init__(self, hub: Hub, events: EventBus) -> None:
        self._hub = hub
        self._events = events

    def stopped_server(self, name: str) -> str:
        """Return the id of the stopped server whose tool has this name, or ""."""
        prefix = server_part(name)
        for server in self._hub.servers.values():
            is_stopped = server.state in ("off", "refused")
            if is_stopped and server_part(tool_name(server.id, "x")) == prefix:
                return server.id
        return ""

    def publish_stopped(
        self, session: str, call: str, name: str, arguments: dict[str, Any], server: str
    ) -> None:
        """Publish that a model called a tool of a stopped server."""
        tool = name.removeprefix(server_part(name)).lstrip("_")
        words = f"The server {server} is stopped."
        proposed = CallProposed(
            session=session,
            call=call,
            name=name,
            server=server,
            tool=tool,
            title=threat_scan.visible(tool),
            arguments=arguments,
        )
        self._publish(proposed, "stopped", words)

    def publish_unknown(
        self, session: str, call: str, name: str, arguments: dict[str, Any], words: str
    ) -> None:
        """Publish that a model called an unknown tool."""
        proposed = CallProposed(session=session, call=call, name=name, arguments=arguments)
        self._publish(proposed, "host", words)

    def _publish(self, proposed: CallProposed, by: str, words: str) -> None:
        session = proposed.session
        call = proposed.call
        self._events.publish(proposed)
        self._events.publish(CallDecided(session=session, call=call, allow=False, by=by, why=words))
        self._events.publish(
            CallEnded(
                session=session, call=call, server=proposed.server, tool=proposed.tool, error=words
            )
        )
