"""Records with compare-and-swap, in Redis: a hash for each, changed by atomic scripts."""

from __future__ import annotations

import os
import re

from .. import bounds
from ..errors import AccountFull, StoreError
from ..interface import Record
from .connection import Link

# The server's own expiry counts from the write, so a record that was written with a clock that was
# ahead ends too.
_TOLERANCE = int(bounds.CLOCK_TOLERANCE * 1000)  # milliseconds
_SPECIAL = re.compile(r"[*?\[\]^\\-]")  # the characters of a pattern that do not match themselves

# An account has three keys: the expiry of its records, the expiry of those with bodies, and the
# sizes of the bodies. `held` is the sum of the sizes.
_FORGET = b"""
local function drop_body(account, id)
  local size = redis.call('HGET', account .. ':sizes', id)
  if size then
    redis.call('HDEL', account .. ':sizes', id)
    redis.call('HINCRBY', account .. ':sizes', '', -tonumber(size))
    redis.call('ZREM', account .. ':bodies', id)
  end
end
local function forget(prefix, id)
  local name = redis.call('HGET', prefix .. id, 'a')
  if name then
    local account = prefix .. ':account:' .. name
    drop_body(account, id)
    redis.call('ZREM', account, id)
  end
  redis.call('DEL', prefix .. id)
end
"""

# KEYS: identity, record. ARGV: prefix, key, data, was, until, now, body, account, identity, most
# bytes, most records, tolerance, oldest end.
_SWAP = (
    _FORGET
    + b"""
if redis.call('GET', KEYS[1]) ~= ARGV[9] then return -2 end
local prefix, id, now = ARGV[1], ARGV[2], tonumber(ARGV[6])
local version, data, till = unpack(redis.call('HMGET', KEYS[2], 'v', 'd', 'u'))
if version and tonumber(till) < tonumber(ARGV[13]) then
  forget(prefix, id)
  version = false
end
if version and data == ARGV[3] then return tonumber(version) end
if tonumber(version or 0) ~= tonumber(ARGV[4]) then return 0 end
local account = prefix .. ':account:' .. ARGV[8]
local function sweep(till)
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', account, '-inf', '(' .. till)) do
    forget(prefix, old)
  end
end
sweep(ARGV[13])
if not version and redis.call('ZCARD', account) >= tonumber(ARGV[11]) then
  sweep(ARGV[6])
  if redis.call('ZCARD', account) >= tonumber(ARGV[11]) then return -1 end
end
forget(prefix, id)
local new = redis.call('INCR', prefix .. ':version')
redis.call('HSET', KEYS[2], 'v', new, 'd', ARGV[3], 'u', ARGV[5], 'a', ARGV[8])
redis.call('ZADD', account, ARGV[5], id)
if #ARGV[7] > 0 then
  redis.call('HSET', KEYS[2], 'b', ARGV[7])
  redis.call('HSET', account .. ':sizes', id, #ARGV[7])
  redis.call('ZADD', account .. ':bodies', ARGV[5], id)
  local size = redis.call('HINCRBY', account .. ':sizes', '', #ARGV[7])
  while size > tonumber(ARGV[10]) do
    local oldest = redis.call('ZRANGE', account .. ':bodies', 0, 0)[1]
    drop_body(account, oldest)
    redis.call('HDEL', prefix .. oldest, 'b')
    size = tonumber(redis.call('HGET', account .. ':sizes', ''))
  end
end
local left = string.format('%.0f', (tonumber(ARGV[5]) - now) * 1000 + ARGV[12])
redis.call('PEXPIRE', KEYS[2], left)
for _, key in ipairs({account, account .. ':bodies', account .. ':sizes'}) do
  if redis.call('PTTL', key) < tonumber(left) then redis.call('PEXPIRE', key, left) end
end
return new
"""
)

# KEYS: record. ARGV: prefix, key, was.
_REMOVE = (
    _FORGET
    + b"""
if redis.call('HGET', KEYS[1], 'v') == ARGV[3] then forget(ARGV[1], ARGV[2]) end
"""
)


class RedisRecords:
    """A RecordStore in Redis.

    Hazard: the server must not evict keys (`maxmemory-policy noeviction`). An action whose record
    is evicted may run twice.
    """

    def __init__(self, link: Link, prefix: str) -> None:
        self._link = link
        self._prefix = f"{prefix}record:"
        self._identity_key = f"{prefix}records"
        self.identity = ""

    async def open(self) -> None:
        """Read the identity of the server's contents."""
        await self._link.ask("SET", self._identity_key, os.urandom(8).hex(), "NX")
        self.identity = (await self._link.ask("GET", self._identity_key)).decode()

    async def load(self, key: str, *, now: float) -> Record | None:
        """Return the record with this key, if it exists."""
        version, data, body, until = await self._link.ask(
            "HMGET", self._prefix + key, "v", "d", "b", "u"
        )
        if version is None or float(until) < now - bounds.CLOCK_TOLERANCE:
            return None
        return Record(int(version), data, body or b"")

    async def swap(
        self,
        key: str,
        data: bytes,
        *,
        was: int,
        until: float,
        now: float,
        body: bytes = b"",
        account: str = "",
        most: int = bounds.ACCOUNT_RECORDS,
    ) -> int:
        """Write a record if it still has the version `was`; otherwise return 0."""
        values = (
            self._prefix,
            key,
            data,
            was,
            repr(until),
            repr(now),
            body if len(body) <= bounds.ACCOUNT_BYTES else b"",
            account,
            self.identity,
            bounds.ACCOUNT_BYTES,
            most,
            _TOLERANCE,
            repr(now - bounds.CLOCK_TOLERANCE),
        )
        version = int(
            await self._link.ask("EVAL", _SWAP, 2, self._identity_key, self._prefix + key, *values)
        )
        if version == -1:
            raise AccountFull("one caller has too many records in the store")
        if version == -2:
            await self.open()
            raise StoreError("the Redis server has forgotten its records")
        return version

    async def remove(self, key: str, *, was: int) -> None:
        """Remove a record, if it still has the version `was`."""
        await self._link.ask("EVAL", _REMOVE, 1, self._prefix + key, self._prefix, key, str(was))

    async def keys(
        self, prefix: str, *, now: float, after: str = "", most: int = 1000
    ) -> list[str]:
        """Return the keys of records in ascending order. This reads the names of all keys of the
        server, a part at a time.
        """
        whole = self._prefix + prefix
        pattern = _SPECIAL.sub(r"\\\g<0>", whole) + "*"
        found: set[str] = set()
        cursor = b"0"
        while True:
            cursor, names = await self._link.ask("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
            found.update(name.decode()[len(self._prefix) :] for name in names)
            if cursor in (b"0", 0):
                break
        return sorted(key for key in found if key > after)[:most]
