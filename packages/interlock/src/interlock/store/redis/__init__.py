"""The store of many machines: a Redis or Valkey server, through redis-py (extra `redis`)."""

from __future__ import annotations

from importlib.util import find_spec

from .. import bounds
from ..errors import StoreError
from .connection import Link
from .events import RedisEvents
from .rates import RedisRates
from .records import RedisRecords
from .sessions import RedisSessions
from .topics import RedisTopic, TopicListener
from .workers import RedisWorkers

__all__ = [
    "RedisTopic",
    "RedisEvents",
    "RedisRates",
    "RedisRecords",
    "RedisSessions",
    "RedisStore",
    "RedisWorkers",
]


class RedisStore:
    """Keeps everything in a Redis (6.2 or newer) or Valkey server at a `redis://`, `rediss://` or
    `unix://` URL.

    `prefix` is the prefix of every key. With a hash tag in it (`{interlock}:`) all keys are in one
    slot of a cluster. The store survives an outage of the server: writes are queued up to a bound,
    requests raise StoreError after `patience` seconds, and listeners continue where they stopped.
    `event_bytes` is the maximum size of all events of all sessions, in bytes. Above it, the oldest
    events of the caller with the most of them are removed. Raises StoreError if the package `redis`
    is not installed.
    """

    shared = True

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "interlock:",
        patience: float = 5.0,
        event_bytes: int = bounds.EVENT_BYTES,
    ) -> None:
        if find_spec("redis") is None:
            raise StoreError(
                "the Redis store needs the package redis: pip install 'interlock[redis]'"
            )
        self._link = Link(url, patience)
        self.sessions = RedisSessions(self._link, prefix)
        self.events = RedisEvents(self._link, prefix, event_bytes)
        self.changes = RedisTopic(self._link, f"{prefix}changes", most=bounds.CHANGES)
        self.notes = RedisTopic(self._link, f"{prefix}notes", most=bounds.NOTES)
        self.rates = RedisRates(self._link, prefix)
        self.records = RedisRecords(self._link, prefix)
        self.workers = RedisWorkers(self._link, prefix)
        self._topic_listener = TopicListener(self._link, (self.changes, self.notes))
        self._open = False

    async def open(self) -> None:
        """Connect, and start to receive notes.

        Raises StoreError if the server cannot be reached or rejects the connection.
        """
        if self._open:
            return
        await self._link.open()
        try:
            for topic in (self.changes, self.notes):
                await topic.begin()
            await self.records.open()
            self._topic_listener.open()
        except BaseException:
            await self._link.aclose()
            raise
        self._open = True

    async def aclose(self) -> None:
        """Write everything that is queued, within `patience` seconds, and disconnect."""
        if self._open:
            self._open = False
            await self._topic_listener.aclose()
            await self._link.aclose()
