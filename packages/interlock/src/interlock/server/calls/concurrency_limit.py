"""A concurrency limit with a bounded queue."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from types import TracebackType

from ... import types as t


class Gate:
    """Admits `most` calls at once and queues `waiting` more in order. Further calls fail at
    once.
    """

    def __init__(self, most: int, waiting: int, what: str) -> None:
        if most < 1 or waiting < 0:
            raise ValueError(
                "a limit lets at least one in, and a queue is not shorter than nothing"
            )
        self.most = most
        self.waiting = waiting
        self.what = what
        self.inside = 0
        self._queue: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self.inside < self.most:
            self.inside += 1
            return
        if len(self._queue) >= self.waiting:
            words = (
                f"{self.what} is busy: {self.inside} calls are running and {len(self._queue)} wait."
                " Try again later."
            )
            raise t.McpError(t.INTERNAL_ERROR, words, {"reason": "busy"})
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()
            else:
                with contextlib.suppress(
                    ValueError
                ):  # another call that left in the same turn has removed it already
                    self._queue.remove(turn)
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)  # the slot passes to this call, so `inside` stays as it is
                return
        self.inside -= 1
