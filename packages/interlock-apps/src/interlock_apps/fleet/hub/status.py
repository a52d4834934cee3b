"""The state of one managed server, and waiting for it to change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from .owner import State


class ServerStatus:
    """The state of a server and the reason for it.

    Attributes:
        state: "waiting" for permission to start, "starting", "up", "down" (a retry follows),
            "off", "refused" or "login" (it needs a login before it is tried again).
        words: The reason, for people.
        settled: Set once the server has been up, has failed, or is not to be started.
    """

    def __init__(self) -> None:
        self.state: State = "off"
        self.words = "It was not started yet."
        self.settled = asyncio.Event()
        self._changed = asyncio.Event()  # set, and replaced, at each change

    def set(self, state: State, words: str = "") -> bool:
        """Enter a state.

        Returns:
            Whether the state or its reason is new.
        """
        if state not in ("starting", "waiting"):
            self.settled.set()
        if (state, words) == (self.state, self.words):
            return False
        self.state = state
        self.words = words
        self.notify()
        return True

    def notify(self) -> None:
        """Wake every task that waits for a change."""
        changed = self._changed
        self._changed = asyncio.Event()
        changed.set()

    async def wait_while(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition, which is checked at each change, no longer holds."""
        while condition():
            await self._changed.wait()
