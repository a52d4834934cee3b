"""Watching by polling: checks for changes periodically, only while a client is subscribed."""

from __future__ import annotations

from interlock import Server
from interlock.watching import Poller


class ChangePoller(Poller):
    """Checks for changes while a client is subscribed, and notifies it.

    Changes without a subscribed client are never reported.
    """

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.server = server

    @property
    def is_wanted(self) -> bool:
        """Whether a client is subscribed to anything."""
        return any(listener.wants_anything for listener in self.server.listeners)
