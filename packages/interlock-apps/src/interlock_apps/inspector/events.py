"""Events of the inspector: what its pages are told, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct


class InspectorEvent(Struct, frozen=True):
    """One event.

    Attributes:
        kind: What happened: "rows", "connection", or a name that a feature panel listens to.
        connection: The name of the connection that it is about; "" for none.
        data: JSON values about it.
        changes_state: Whether the state must be sent to the pages again.
    """

    kind: str
    connection: str = ""
    data: dict[str, Any] = {}
    changes_state: bool = False


Publish = Callable[[InspectorEvent], None]
"""Publishes an event to the pages."""


class InspectorEvents:
    """Passes events on to the streams of the open pages."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[InspectorEvent], None]] = []

    def publish(self, event: InspectorEvent) -> None:
        """Pass an event to every listener."""
        for listener in list(self._listeners):
            listener(event)

    def listen(self, receive: Callable[[InspectorEvent], None]) -> Callable[[], None]:
        """Call a function with every event; call the returned function to stop."""
        self._listeners.append(receive)

        def stop() -> None:
            self._listeners.remove(receive)

        return stop
