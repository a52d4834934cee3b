"""Messages between workers that share a store (publish and subscribe), and the heartbeat of each
worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from .errors import StoreError
from .interface import Store
from .process_names import has_ended

_MISSED = 4.0  # heartbeats that may be missing before a worker counts as gone
_JUMP = 1.0  # seconds by which the wall clock differs from the clock of the loop after a jump

Receiver = Callable[[str, str], None]
"""Called with the session and the payload of a message."""


class WorkerMessage(Struct, array_like=True, frozen=True):
    """A message about a session from one worker to the others.

    The kinds are "frame" (a message for the session's calls), "posted" (a message for a stream of
    the HTTP+SSE transport), "ended", "changed", "listening", "following", "released" and "stirred".
    """

    worker: str
    kind: str
    session: str
    payload: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(WorkerMessage).decode


class WorkerMessages:
    """The messages of one worker, whose name is `worker`. If the store is not shared, messages are
    not sent.

    Args:
        store: The store that the workers share.
        heartbeat: The time between two heartbeats, in seconds.
        worker: The name of this worker; by default a random one. A name of `process_names` lets the
            workers of the same machine see at once that the process has ended. Clients must not
            see such a name.
        wall_clock: The wall clock, in seconds.
    """

    def __init__(
        self,
        store: Store,
        *,
        heartbeat: float = 2.0,
        worker: str | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.worker = os.urandom(6).hex() if worker is None else worker
        self._heartbeat = heartbeat
        self._wall_clock = wall_clock
        self._store = store
        self._receivers: dict[str, list[Receiver]] = {}
        self._echoed: dict[str, Receiver] = {}
        self._beating_since: float | None = None  # on the clock of the event loop
        self._offset = 0.0  # between that clock and the wall clock
        self.is_store_away = False  # whether the last heartbeat did not reach the store
        self._stop: Callable[[], object] = bool

    @property
    def is_shared(self) -> bool:
        """Whether there can be other workers."""
        return self._store.shared

    def on(self, kind: str, receiver: Receiver) -> None:
        """Call `receiver` with each message of a kind that another worker sends or this worker
        announces.
        """
        self._receivers.setdefault(kind, []).append(receiver)

    def on_every(self, kind: str, receiver: Receiver) -> None:
        """Call `receiver` with each message of a kind, including this worker's own. All workers
        receive them in the same order.
        """
        self._echoed[kind] = receiver

    def open(self) -> None:
        """Start to receive messages."""
        if self._store.shared:
            self._stop = self._store.notes.subscribe(
                lambda message, position: self._receive(_decode(message))
            )

    def close(self) -> None:
        """Receive no more messages."""
        self._stop()

    def publish(self, kind: str, session: str, payload: str = "") -> None:
        """Send a message to the other workers. All workers receive all messages in the same
        order.
        """
        if self._store.shared:
            self._store.notes.publish(_encode(WorkerMessage(self.worker, kind, session, payload)))

    async def publish_confirmed(self, kind: str, session: str, payload: str = "") -> None:
        """Send a message to the other workers, and return once the store has it.

        Raises StoreError if the store fails.
        """
        if self._store.shared:
            message = WorkerMessage(self.worker, kind, session, payload)
            await self._store.notes.publish_confirmed(_encode(message))

    def deliver(self, kind: str, session: str, payload: str = "") -> None:
        """Call the receivers of this worker."""
        for receiver in self._receivers.get(kind, ()):
            receiver(session, payload)

    def announce(self, kind: str, session: str, payload: str = "") -> None:
        """Call the receivers of this worker and of the others."""
        self.publish(kind, session, payload)
        self.deliver(kind, session, payload)

    def _receive(self, message: WorkerMessage) -> None:
        receiver = self._echoed.get(message.kind)
        if receiver is not None:
            receiver(message.session, message.payload)
        elif message.worker != self.worker:
            self.deliver(message.kind, message.session, message.payload)

    def unsure_seconds(self) -> float:
        """Return the time for which every worker still counts as alive, in seconds, because
        heartbeats may be missing; 0 if this worker knows which ones are alive.
        """
        seconds = self._heartbeat * 1.5
        if self._beating_since is None:
            return seconds
        now = asyncio.get_running_loop().time()
        return max(0.0, self._beating_since + seconds - now)

    async def is_alive(self, worker: str) -> bool:
        """Whether a worker is alive, as far as this worker knows.

        A worker of this machine whose process has ended is dead, though its lease lasts. If the
        store was unavailable until just now, the other worker's heartbeat may still be
        missing. If the wall clock has jumped, its heartbeat still has the old time.
        """
        if has_ended(worker):
            return False
        now = asyncio.get_running_loop().time()
        if abs(self._wall_clock() - now - self._offset) > _JUMP:
            self._offset = self._wall_clock() - now
            if self._beating_since is not None:
                self._beating_since = now
        if self.unsure_seconds():
            return True
        return await self._store.workers.is_alive(worker, now=self._wall_clock())

    async def withdraw(self) -> None:
        """Say in the store that this worker has ended in good order, so that no other worker waits
        for its heartbeats.
        """
        if self._store.shared:
            with contextlib.suppress(StoreError):  # the heartbeat expires by itself
                await self._store.workers.withdraw(self.worker)

    async def beat(self) -> None:
        """Send the heartbeat of this worker, until cancelled."""
        while True:
            await self.beat_once()
            await asyncio.sleep(self._heartbeat)

    async def beat_once(self) -> bool:
        """Send one heartbeat. Returns whether the store has it."""
        try:
            until = self._wall_clock() + self._heartbeat * _MISSED
            await self._store.workers.heartbeat(self.worker, until=until)
        except StoreError:
            self.is_store_away = True
            self._beating_since = None
            return False
        self.is_store_away = False
        if self._beating_since is None:
            self._beating_since = asyncio.get_running_loop().time()
            self._offset = self._wall_clock() - self._beating_since
        return True
