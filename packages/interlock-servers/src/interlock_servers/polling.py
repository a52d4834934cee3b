"""Watching by polling: looks for changes again and again, only while a client listens."""

from __future__ import annotations

from interlock import Server
from interlock.watching import Poller


class ChangePoller(Poller):
    """Looks for changes while a client listens to the server, and announces them.

    Changes that happen while nobody listens are never announced.
    """

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.server = server

    @property
    def is_wanted(self) -> bool:
        """Whether a client listens to anything."""
        return any(listener.wants_anything for listener in self.server.listeners)
