"""The vault of many machines, in Redis or Valkey (extra `redis`)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..errors import StoreError
from ..urls import server_address
from .interface import Name, checked, decoded, encoded, ending, name
from .sealing import Sealing, about

if TYPE_CHECKING:
    from redis import Redis

_NEVER = 2**53  # the end of what has none: a number that every part of a server understands
# seconds; who asks for longer gets what has no end in the server, and an end all the same
_CENTURY = 3_155_760_000

# KEYS: the record, the ends of all records of its kind. ARGV: the time now, the record's key, then
# what each step needs.
_LIVE = """
local now = tonumber(ARGV[1])
local function live()
  local till = redis.call('ZSCORE', KEYS[2], ARGV[2])
  return till and tonumber(till) > now and redis.call('GET', KEYS[1])
end
local function drop()
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], ARGV[2])
end
local function put(value, till)
  if tonumber(till) <= now then return drop() end
  local left = math.ceil((tonumber(till) - now) * 1000)
  if left < CENTURY then
    redis.call('SET', KEYS[1], value, 'PX', string.format('%.0f', left))
  else
    redis.call('SET', KEYS[1], value)
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
  redis.call('ZADD', KEYS[2], till, ARGV[2])
  local last = tonumber(redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2])
  left = math.ceil((last - now) * 1000)
  if left < CENTURY then
    redis.call('PEXPIRE', KEYS[2], string.format('%.0f', left))
  else
    redis.call('PERSIST', KEYS[2])
  end
end
""".replace("CENTURY", str(_CENTURY * 1000))

_GET = _LIVE + "return live()"
_PUT = _LIVE + "put(ARGV[3], ARGV[4])"
_ADD = _LIVE + "if live() then return 0 end put(ARGV[3], ARGV[4]) return 1"
_SWAP = _LIVE + "if live() ~= ARGV[5] then return 0 end put(ARGV[3], ARGV[4]) return 1"
_TAKE = _LIVE + "if live() ~= ARGV[3] then return 0 end drop() return 1"
_REMOVE = _LIVE + "local found = live() drop() return found and 1 or 0"


class RedisVault:
    """Keeps records in a Redis (6.2 or newer) or Valkey server at a `redis://`, `rediss://` or
    `unix://` URL.

    `prefix` begins the name of every key; with a hash tag in it (`{interlock}:`) all keys live in
    one slot of a cluster. Values are sealed, names are not, where there is a `key` (32 characters
    or more; INTERLOCK_VAULT_KEY where none is given), and then values that are not sealed with it
    are refused. How much is kept is for the server to bound; it must not evict keys that have no
    end. `clock` gives the seconds by which records end, the same for all who share them. StoreError
    is raised where the server does not answer within `patience` seconds (the step may have
    happened: nothing is ever sent twice), and where the package `redis` is not installed. Raises
    ValueError for a key that is too short.
    """

    shared = True

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "interlock:vault:",
        key: str | None = None,
        clock: Callable[[], float] = time.time,
        patience: float = 5.0,
    ) -> None:
        if find_spec("redis") is None:
            raise StoreError(
                "the vault in Redis needs the package redis: pip install 'interlock[redis]'"
            )
        self._url = url
        self._place = server_address(url)
        self._prefix = prefix.encode()
        self._sealing = Sealing(key, False)
        self._clock = clock
        self._patience = patience
        self._client: Redis | None = None
        self._lock = threading.Lock()

    @property
    def sealed(self) -> bool:
        """Whether there is a key."""
        return self._sealing.possible()

    async def get(self, kind: str, key: str) -> bytes | None:
        """What is kept; None where nothing is, or its end has come."""
        of = name(kind, key)
        return self._opened(of, await self._run(_GET, of))

    async def put(self, kind: str, key: str, value: bytes, *, until: float | None = None) -> None:
        """Keep this, in the place of what was there."""
        of = name(kind, key)
        end = _score(until)
        await self._run(_PUT, of, self._closed(of, checked(value)), end)

    async def add(self, kind: str, key: str, value: bytes, *, until: float | None = None) -> bool:
        """Keep this where nothing is kept; False where something is."""
        of = name(kind, key)
        end = _score(until)
        return bool(await self._run(_ADD, of, self._closed(of, checked(value)), end))

    async def swap(
        self, kind: str, key: str, was: bytes, value: bytes, *, until: float | None = None
    ) -> bool:
        """Keep this if what is kept still is `was`; False where it is not."""
        of = name(kind, key)
        end = _score(until)
        closed = self._closed(of, checked(value))
        while True:
            # The server sees sealed values only, and no value is sealed the same way twice: so it
            # is told which one we have read.
            found = await self._run(_GET, of)
            if found is None or self._opened(of, found) != was:
                return False
            if await self._run(_SWAP, of, closed, end, found):
                return True

    async def pop(self, kind: str, key: str) -> bytes | None:
        """Get and remove; of many who take at once one gets it."""
        of = name(kind, key)
        while True:
            # Read before it is removed: what cannot be opened stays where it is.
            found = await self._run(_GET, of)
            value = self._opened(of, found)
            if value is None or await self._run(_TAKE, of, found):
                return value

    async def remove(self, kind: str, key: str) -> bool:
        """Remove; whether there was something."""
        return bool(await self._run(_REMOVE, name(kind, key)))

    async def keys(self, kind: str) -> list[str]:
        """The keys of what is kept of a kind."""
        ends = self._ends(encoded(kind))
        found = await self._ask("ZRANGEBYSCORE", ends, b"(" + repr(self._clock()).encode(), b"+inf")
        return [decoded(key) for key in sorted(found)]

    async def aclose(self) -> None:
        """Let go of the connections; they are made again where the vault is used again."""
        with self._lock:
            client = self._client
            self._client = None
        if client is not None:
            await asyncio.to_thread(client.close)

    def _closed(self, of: Name, value: bytes) -> bytes:
        key = self._sealing.given()
        return (
            b"p" + value
            if key is None
            else b"e" + bytes.fromhex(key.mark) + key.close(value, about("", of))
        )

    def _opened(self, of: Name, found: bytes | None) -> bytes | None:
        if found is None:
            return None
        key = self._sealing.given()
        if found[:1] == b"p" and key is None:
            return found[1:]
        mark = "the Redis server at " + self._place
        if found[:1] == b"p":
            raise StoreError(
                f"{mark} gave a record of kind {decoded(of[0])!r} that is not sealed, though "
                "there is a key: remove it"
            )
        key = self._sealing.resume(f"on {mark}", "", "key", found[1:9].hex())
        try:
            return key.open(found[9:], about("", of)) if key is not None else None
        except ValueError as bad:
            raise StoreError(
                f"{mark} gave a record of kind {decoded(of[0])!r} that cannot be opened: {bad}"
            ) from None

    def _ends(self, kind: bytes) -> bytes:
        return self._prefix + b"ends:" + kind

    async def _run(self, script: str, of: Name, *values: bytes) -> Any:
        """One step. The length of the kind is in the name,
        so that no two pairs of names make one."""
        record = b"%srecord:%d:%s:%s" % (self._prefix, len(of[0]), *of)
        return await self._ask(
            "EVAL", script, 2, record, self._ends(of[0]), repr(self._clock()), of[1], *values
        )

    async def _ask(self, *command: Any) -> Any:
        return await asyncio.to_thread(self._answer, command)

    def _answer(self, command: tuple[Any, ...]) -> Any:
        """In a thread, for connections that live in a thread outlive every event loop."""
        try:
            client: Any = self._connected()  # redis-py leaves this method without types
            return client.execute_command(*command)
        except Exception as bad:  # no server, a wrong password, no room: redis-py has many kinds
            # A ValueError is about the URL and may quote its password.
            why = (
                "its URL cannot be read"
                if isinstance(bad, ValueError)
                else str(bad) or type(bad).__name__
            )
            raise StoreError(
                f"the Redis server at {self._place} cannot be used for a vault: {why}"
            ) from None

    def _connected(self) -> Redis:
        with self._lock:
            if self._client is None:
                from redis import Redis  # optional extra `redis`, which takes its time to load
                from redis.backoff import NoBackoff
                from redis.retry import Retry

                # Never tried twice: what was taken once, and was lost on its way, is not there a
                # second time.
                once = Retry(NoBackoff(), 0)
                limit = self._patience
                self._client = Redis.from_url(
                    self._url,
                    protocol=2,
                    retry=once,
                    socket_timeout=limit,
                    socket_connect_timeout=limit,
                )
            return self._client


def _score(until: float | None) -> bytes:
    end = ending(until)
    return repr(_NEVER if end is None else min(max(end, 0.0), _NEVER)).encode()
