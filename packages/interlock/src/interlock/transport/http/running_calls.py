"""The calls of one endpoint that run in this process: counted against a limit, and ended when the
server shuts down.
"""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.events import CallId
from ..serve import Serving
from .ticker import Ticker


class RunningCalls:
    """Counts what runs, and can answer stateless calls in place of their handlers.

    Attributes:
        servings: Stateless calls that have sent more than an answer, or run for long.
        subscriptions: Stateless subscriptions; the limit on streams counts them.
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
        """Whether as many calls run as may."""
        return len(self._ticker.light) + len(self.servings) + self.others >= self._most

    def all(self) -> list[Serving]:
        """Every stateless call that runs; from now on each can be answered from outside."""
        for call in list(self._ticker.light):
            call.grow()
        return list(self.servings)

    def answer(self, serving: Serving, answer: Callable[[Serving, CallId], None]) -> None:
        """Answer calls in place of their handlers, and cancel the handlers of stateless ones.

        The handlers of other calls are cancelled by the owner of the serving.
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
        """A stateless call or subscription is over."""
        self.servings.discard(serving)
        self.subscriptions.discard(serving)
        self._ended.discard(serving)
