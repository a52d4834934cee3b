"""The event bus: writes each event to the log, and passes it to listeners without secrets."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from interlock.redaction import Redactor

from .event_redaction import redacted_event
from .events import Event, LogEntry
from .log import Log, LogError

log = logging.getLogger("interlock_apps.host")

EventListener = Callable[[LogEntry], None]


class EventBus:
    """Publishes what happens in a host.

    Args:
        journal: The log that events are written to.
        secrets: Takes secrets out of what listeners receive.
        log_required: Whether calls are refused while the log cannot be written.
    """

    def __init__(self, journal: Log, secrets: Redactor, *, log_required: bool) -> None:
        self.log_required = log_required
        self._journal = journal
        self._secrets = secrets
        self._listeners: list[EventListener] = []

    def publish(self, event: Event) -> None:
        """Write an event to the log, and pass it to all listeners without secrets."""
        self.pass_on(self._journal.note(event))  # type: ignore[arg-type]  # each Event is an AnyEvent

    def pass_on(self, entry: LogEntry) -> None:
        """Pass an entry that is in the log to all listeners, without secrets."""
        shown = redacted_event(entry.event, self._secrets)
        if shown is not entry.event:
            entry = msgspec.structs.replace(entry, event=shown)
        for listener in list(self._listeners):
            try:
                listener(entry)
            except Exception:  # a listener that fails does not stop the others
                log.exception("a listener failed at %s", type(entry.event).__name__)

    def listen(self, listener: EventListener) -> Callable[[], None]:
        """Pass every event to a listener as it happens; call the returned function to stop."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    async def why_not_logged(self) -> str:
        """Return why calls are refused: the log is required and cannot be written. Otherwise ""."""
        if not self.log_required:
            return ""
        try:
            await self._journal.flush()
        except LogError as bad:
            return f"No tool is called while the log cannot be written. {bad}"
        return ""
