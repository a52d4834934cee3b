"""The calls of one endpoint that run in this process: counted against a limit, and ended when the
server shuts down.
"""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.events import CallId
from ..serve import Serving
from .ticker import Ticker


class RunningCalls:
    """Counts running calls, and can answer stateless calls in place of their handlers.

    Attributes:
        servings: Stateless calls that have sent a notification, or have run for some time.
        subscriptions: Stateless subscriptions, which count against the limit on streams.
        others: The number of calls in sessions and of notifications being handled.
    """

    __slots__ = ("_ended", "_most", "_ticker", "others", "servings", "subscriptions")

    def __init__(self, most: int, ticker: Ticker) -> None:
        self._most = most
        self._ticker = ticker
        self._ended: set[Serving] = set()
        self.servings: set[Serving] = set()
        self.subscriptions: set[Serving] = set()
        self.others = 0

    @property
    def is_full(self) -> bool:
        """Whether the limit on running calls is reached."""
        return len(self._ticker.light) + len(self.servings) + self.others >= self._most

    def all(self) -> list[Serving]:
        """Return every running stateless call. From now on each can be answered from outside."""
        for call in list(self._ticker.light):
            call.grow()
        return list(self.servings)

    def answer(self, serving: Serving, answer: Callable[[Serving, CallId], None]) -> None:
        """Answer calls in place of their handlers, and cancel the handlers of stateless calls.

        The owner of the serving cancels the handlers of other calls.
        """
        running = dict(serving.running)
        for id in running:
            answer(serving, id)
        serving.flush()
        if serving in self.servings or serving in self.subscriptions:
            self._ended.add(serving)
            for task in running.values():
                task.cancel()

    def was_answered(self, serving: Serving) -> bool:
        """Whether the calls of a serving were answered in place of their handlers."""
        return serving in self._ended

    def discard(self, serving: Serving) -> None:
        """Remove a stateless call or subscription that has ended."""
        self.servings.discard(serving)
        self.subscriptions.discard(serving)
        self._ended.discard(serving)
