"""An event for places where thousands wait: what asyncio's own keeps for its queue of waiters is 600 bytes, this one is 60."""

from __future__ import annotations

import asyncio


class Bell:
    """Stands for `asyncio.Event`; any number may wait, though mostly it is one."""

    __slots__ = ("_others", "_rung", "_waiting")

    def __init__(self, *, rung: bool = False) -> None:
        self._rung = rung
        self._waiting: asyncio.Future[None] | None = None
        self._others: list[asyncio.Future[None]] | None = None

    def is_set(self) -> bool:
        """Whether it was rung and not silenced since."""
        return self._rung

    def set(self) -> None:
        """Ring: whoever waits goes on."""
        self._rung = True
        waiting, self._waiting = self._waiting, None
        others, self._others = self._others, None
        for future in (waiting, *(others or ())):
            if future is not None and not future.done():
                future.set_result(None)

    def clear(self) -> None:
        """Silence it."""
        self._rung = False

    async def wait(self) -> bool:
        """Wait until it rings; at once where it has rung."""
        if self._rung:
            return True
        future = asyncio.get_running_loop().create_future()
        if self._waiting is None:
            self._waiting = future
        else:
            self._others = [*(self._others or ()), future]
        try:
            await future
        finally:
            if self._waiting is future:
                self._waiting = None
            elif self._others and future in self._others:
                self._others.remove(future)
        return True
