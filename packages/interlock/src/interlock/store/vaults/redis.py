"""The vault of many machines, in Redis or Valkey (extra `redis`)."""

from __future__ import annotations

import asyncio
import re
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

_NEVER = 2**53  # the expiry of a record without one: a number that all parts of the server support
# seconds; a record that lasts longer has no expiry in the server, but is still treated as expired
# in time
_CENTURY = 3_155_760_000

# KEYS: the record, and the expiry times of all records of its kind. ARGV: the current time, the
# record's key, and the arguments of the operation.
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
    """Stores records in a Redis (6.2 or newer) or Valkey server at a `redis://`, `rediss://` or
    `unix://` URL.

    With a key, values are encrypted and names are not; values that are not encrypted with it are
    refused. The server limits the size. It must not evict keys without expiry.

    Args:
        url: The URL of the server.
        prefix: The prefix of all keys. With a hash tag (`{interlock}:`) all keys are in one slot of
            a cluster.
        key: The key, of at least 32 characters; by default the variable INTERLOCK_VAULT_KEY.
            Several with commas between them: the first one encrypts, all of them decrypt.
        clock: Returns the time in seconds of the wall clock; all processes that share the records
            need the same time.
        patience: How long to wait for the server, in seconds.

    Raises:
        ValueError: The key is too short.
        StoreError: The package `redis` is not installed; or, by the methods, the server does not
            respond in time. Then the operation may have taken effect, because nothing is sent
            twice.
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
        """The value; None if there is no record, or it has expired."""
        of = name(kind, key)
        return self._opened(of, await self._run(_GET, of))

    async def put(self, kind: str, key: str, value: bytes, *, until: float | None = None) -> None:
        """Store a value, and replace the old one."""
        of = name(kind, key)
        end = _score(until)
        await self._run(_PUT, of, self._closed(of, checked(value)), end)

    async def add(self, kind: str, key: str, value: bytes, *, until: float | None = None) -> bool:
        """Store a value if the record does not exist. False if it does."""
        of = name(kind, key)
        end = _score(until)
        return bool(await self._run(_ADD, of, self._closed(of, checked(value)), end))

    async def swap(
        self, kind: str, key: str, was: bytes, value: bytes, *, until: float | None = None
    ) -> bool:
        """Replace the value if it is still `was`. False if it is not."""
        of = name(kind, key)
        end = _score(until)
        closed = self._closed(of, checked(value))
        while True:
            # The server sees only encrypted values, and each encryption of a value differs. So the
            # server compares with the encrypted value that was read.
            found = await self._run(_GET, of)
            if found is None or self._opened(of, found) != was:
                return False
            if await self._run(_SWAP, of, closed, end, found):
                return True

    async def pop(self, kind: str, key: str) -> bytes | None:
        """Return the value and remove the record. Only one of several concurrent callers gets
        it.
        """
        of = name(kind, key)
        while True:
            # Decrypt before the removal: a value that cannot be decrypted stays.
            found = await self._run(_GET, of)
            value = self._opened(of, found)
            if value is None or await self._run(_TAKE, of, found):
                return value

    async def remove(self, kind: str, key: str) -> bool:
        """Remove a record. False if there was none."""
        return bool(await self._run(_REMOVE, name(kind, key)))

    async def keys(self, kind: str) -> list[str]:
        """The keys of the records of a kind."""
        ends = self._ends(encoded(kind))
        found = await self._ask("ZRANGEBYSCORE", ends, b"(" + repr(self._clock()).encode(), b"+inf")
        return [decoded(key) for key in sorted(found)]

    async def rotate_key(self) -> None:
        """Encrypt every record anew, with the first given key.

        Raises:
            StoreError: The vault cannot be used, or there is no key. Some records may have been
                encrypted anew; call it again.
        """
        self._sealing.rotate(f"on the Redis server at {self._place}", "")
        pattern = _escaped(self._prefix) + b"record:*"
        cursor = 0
        while True:
            cursor, found = await self._ask("SCAN", cursor, "MATCH", pattern, "COUNT", 100)
            for record in found:
                await self._encrypt_anew(self._name(record))
            if not cursor:
                return

    async def _encrypt_anew(self, of: Name) -> None:
        """Encrypt a record with the first key, unless it is written meanwhile."""
        found = await self._run(_GET, of)
        if found is None:
            return
        until = await self._ask("ZSCORE", self._ends(of[0]), of[1])
        value = self._opened(of, found)
        if value is not None and until is not None:
            await self._run(_SWAP, of, self._closed(of, value), repr(until).encode(), found)

    def _name(self, record: bytes) -> Name:
        """Return the name of a record from its key in the server; see `_run`."""
        length, _, names = record.removeprefix(self._prefix + b"record:").partition(b":")
        size = int(length)
        return names[:size], names[size + 1 :]

    async def aclose(self) -> None:
        """Close the connections. They are opened again if the vault is used again."""
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
        """Run one operation. The name of the record contains the length of the kind, so that two
        different pairs of names never result in the same name.
        """
        record = b"%srecord:%d:%s:%s" % (self._prefix, len(of[0]), *of)
        return await self._ask(
            "EVAL", script, 2, record, self._ends(of[0]), repr(self._clock()), of[1], *values
        )

    async def _ask(self, *command: Any) -> Any:
        return await asyncio.to_thread(self._answer, command)

    def _answer(self, command: tuple[Any, ...]) -> Any:
        """Run a command in a thread, because connections of a thread outlive every event loop."""
        try:
            client: Any = self._connected()  # redis-py has no types for this method
            return client.execute_command(*command)
        # no server, a wrong password, no memory: redis-py has many error types
        except Exception as bad:
            # A ValueError is about the URL, and may quote its password.
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

                # Never retry: if the response to a `pop` is lost, the record is no longer there.
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


def _escaped(text: bytes) -> bytes:
    """Escape what a pattern of Redis treats specially."""
    return re.sub(rb"[][*?^\\]", rb"\\\g<0>", text)


def _score(until: float | None) -> bytes:
    end = ending(until)
    return repr(_NEVER if end is None else min(max(end, 0.0), _NEVER)).encode()
