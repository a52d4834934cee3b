"""Notifications of extensions that arrive over HTTP: handled before they are acknowledged."""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol.events import NotificationReceived, ServerEvent
from ..serve import carry_out_notification
from .request_info import HttpTransport
from .requests import EndpointRequest
from .running_calls import quota_holder
from .services import Services


class NotificationRunner:
    """Runs the handlers of notifications, within the concurrency limit."""

    __slots__ = ("_services",)

    def __init__(self, services: Services) -> None:
        self._services = services

    async def run(self, events: Iterable[ServerEvent], request: EndpointRequest) -> bool:
        """Run the handlers of the notifications among some events.

        Returns:
            False if the server is busy; then no handler has run.
        """
        slots = self._services.calls.slots
        holder = quota_holder(request)
        received = [event for event in events if isinstance(event, NotificationReceived)]
        if received and not slots.acquire(holder):
            return False
        try:
            for event in received:
                if event.caller is not None:
                    transport = HttpTransport(request)
                    handler = self._services.handler
                    await carry_out_notification(handler, event, event.caller, transport)
        finally:
            if received:
                slots.release(holder)
        return True
