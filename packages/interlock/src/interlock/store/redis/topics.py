"""Topics in Redis: streams numbered without gaps, and one task that reads all of them."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any

from ...logs import limited
from .. import records
from ..subscribers import Listeners, Receive
from .connection import Link, end

_BLOCK = 5.0  # seconds that the server waits for a note before it returns none
_LONGEST_PAUSE = 1.0  # seconds between two attempts to read from an unavailable server
# in milliseconds
_HOUR = 3_600_000
_DAY = 86_400_000

log = limited("interlock.store")

# KEYS: stream, counter, the number of this worker's last note. ARGV: where numbers start, most, the
# number of the note among the worker's notes, note. The worker numbers its notes, so that a note
# that is sent twice, because the connection failed, is published once. Confirmed notes have numbers
# of their own, because they overtake notes that the server has refused for now.
_POST = f"""
if tonumber(redis.call('GET', KEYS[3]) or 0) >= tonumber(ARGV[3]) then return end
redis.call('SET', KEYS[3], ARGV[3], 'PX', {_HOUR})
redis.call('SET', KEYS[2], ARGV[1], 'NX')
local number = string.format('%.0f-0', redis.call('INCR', KEYS[2]))
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], number, 'n', ARGV[4])
redis.call('PEXPIRE', KEYS[1], {_DAY})
""".encode()

# KEYS: stream, counter. ARGV: after.
_SINCE = b"""
local newest = redis.call('GET', KEYS[2])
if not newest or tonumber(ARGV[1]) > tonumber(newest) then return false end
local notes = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1] .. '-0', '+')
local first = notes[1] and tonumber(string.match(notes[1][1], '^%d+')) or tonumber(newest) + 1
if first ~= tonumber(ARGV[1]) + 1 then return false end
for place, note in ipairs(notes) do notes[place] = note[2][2] end
return notes
"""


class RedisTopic:
    """A Topic in a Redis stream. It keeps the last `most` notes or slightly more."""

    def __init__(self, link: Link, key: str, *, most: int) -> None:
        self._link = link
        self.key = key
        self._counter = f"{key}:count"
        self._most = most
        self._own = ""
        self._posted = 0
        self._confirmed = 0
        self._listeners = Listeners()
        self._last_read = 0

    async def begin(self) -> None:
        """Start at the newest note. Existing listeners continue where they stopped."""
        self._own = f"{self.key}:by:{secrets.token_hex(8)}"
        self._posted = 0
        self._confirmed = 0
        await self._link.ask("SET", self._counter, _beginning(), "NX")
        newest = int(await self._link.ask("GET", self._counter))
        if not self._listeners or not self._last_read:
            self._last_read = newest

    @property
    def position(self) -> str:
        """The position of the newest note that this worker has received."""
        return str(self._last_read)

    def publish(self, note: bytes) -> None:
        """Publish a note, from any thread."""
        self._link.soon(self._post, note)

    async def publish_confirmed(self, note: bytes) -> None:
        """Publish a note, and return once the server has it."""
        self._confirmed += 1
        own = f"{self._own}:confirmed"
        await self._link.ask("EVAL", _POST, 3, *self._arguments(own, self._confirmed, note))

    def subscribe(self, receive: Receive) -> Callable[[], None]:
        """Call `receive` with each note and its position until the returned function is called."""
        return self._listeners.add(receive)

    async def replay(self, position: str) -> list[tuple[bytes, str]] | None:
        """Return the notes after a position, including everything that this worker has published
        before.

        None if some of them are no longer kept.
        """
        after = records.number(position)
        notes = (
            None
            if after is None
            else await self._link.ask("EVAL", _SINCE, 2, self.key, self._counter, after)
        )
        if after is None or notes is None:
            return None
        return [(note, str(number)) for number, note in enumerate(notes, after + 1)]

    def receive(self, number: int, note: bytes) -> None:
        """Pass a received note to the listeners."""
        self._last_read = number
        self._listeners.put(note, number)
        self._listeners.wake()

    def _post(self, note: bytes) -> None:
        self._posted += 1
        arguments = self._arguments(self._own, self._posted, note)
        self._link.send("EVAL", _POST, 3, *arguments, size=len(note))

    def _arguments(self, own: str, number: int, note: bytes) -> tuple[str | bytes | int, ...]:
        return (self.key, self._counter, own, _beginning(), self._most, number, note)


def _beginning() -> int:
    """Return the first number of a new topic: the time of day, so that after a loss of all data an
    old position is not mistaken for a current one.
    """
    return time.time_ns() // 1_000_000


class TopicListener:
    """Reads the notes of all topics over a separate connection."""

    def __init__(self, link: Link, topics: Sequence[RedisTopic]) -> None:
        self._link = link
        self._topics = {topic.key.encode(): topic for topic in topics}
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Start to read."""
        self._task = asyncio.create_task(self._listen())

    async def aclose(self) -> None:
        """Stop reading."""
        task = self._task
        self._task = None
        if task is not None:
            await end(task)

    async def _listen(self) -> None:
        client = self._link.client(2 * _BLOCK)
        pause = 0.0
        try:
            while True:
                positions: dict[Any, Any] = {
                    key: f"{topic.position}-0" for key, topic in self._topics.items()
                }
                try:
                    received: Any = await client.xread(
                        positions, count=1000, block=int(_BLOCK * 1000)
                    )
                except Exception as bad:  # the connection failed: redis-py raises many types
                    if not pause:
                        log.warning(
                            "the Redis server at %s cannot be read (%s); trying again",
                            self._link.place,
                            type(bad).__name__,
                        )
                    pause = min(max(2 * pause, 0.02), _LONGEST_PAUSE)
                    await asyncio.sleep(pause)
                    continue
                pause = 0.0
                self._deliver(received or ())
        finally:
            with contextlib.suppress(Exception):  # the connection is lost either way
                await client.aclose()

    def _deliver(self, received: Sequence[tuple[bytes, Sequence[tuple[bytes, Any]]]]) -> None:
        for key, notes in received:
            for id, fields in notes:
                self._topics[key].receive(int(id.partition(b"-")[0]), fields.get(b"n", b""))
