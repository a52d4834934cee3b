"""What the workers of an endpoint tell each other, and whether they live."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from ..protocol.sessions import Store, StoreError

_BEAT, _BEATS = 2.0, 4.0  # seconds between signs of life of a worker, and how many may be missing


class Note(Struct, array_like=True, frozen=True):
    """What one worker tells the others about a session: a `frame` for its calls, that it has `ended` or `changed`, who listens now, ..."""

    worker: str
    kind: str
    session: str
    payload: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Note).decode


class Notes:
    """The notes of one worker, whose name is `worker`. Where the store is not shared there is nobody to tell."""

    def __init__(self, store: Store) -> None:
        self.worker = os.urandom(6).hex()
        self._store = store
        self._beating_since: float | None = None  # on the clock of the loop

    def open(self, hear: Callable[[Note], None]) -> Callable[[], None]:
        """Call `hear` with every note, those of this worker too, until the returned function is called."""
        return self._store.notes.listen(lambda note, position: hear(_decode(note)))

    def tell(self, kind: str, session: str, payload: str = "") -> None:
        """Tell the workers; all of them hear all notes in one order."""
        if self._store.shared:
            self._store.notes.post(_encode(Note(self.worker, kind, session, payload)))

    async def lives(self, worker: str) -> bool:
        """Whether a worker lives, as far as is known. Where the store was away until just now, its sign may yet have to come."""
        since = self._beating_since
        if since is None or asyncio.get_running_loop().time() - since < _BEAT * 1.5:
            return True
        return await self._store.workers.lives(worker, now=time.time())

    async def beat(self) -> None:
        """Show the others, again and again, that this worker lives."""
        while True:
            try:
                await self._store.workers.beat(self.worker, until=time.time() + _BEAT * _BEATS)
                if self._beating_since is None:
                    self._beating_since = asyncio.get_running_loop().time()
            except StoreError:
                self._beating_since = None
            await asyncio.sleep(_BEAT)
