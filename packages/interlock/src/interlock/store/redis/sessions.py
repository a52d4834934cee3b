"""Sessions in Redis: a hash for each, and a sorted set of their expiry times."""

from __future__ import annotations

import asyncio

from .. import records
from ..interface import Session
from .connection import Link
from .keys import DROP, Keys

# The server's own expiry only cleans up, with slack for clocks that differ. The workers decide
# whether a session has expired.
_KEEP = b"""
local function keep(key, ends, id, data, till)
  if data then redis.call('HSET', key, 'd', data) end
  redis.call('HSET', key, 'u', till)
  redis.call('PEXPIREAT', key, string.format('%.0f', tonumber(till) * 1000 + 60000))
  redis.call('ZADD', ends, till, id)
end
"""

_COUNT = (
    DROP
    + b"""
local function count(prefix, now)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. now)) do
    drop(prefix, id)
  end
  return redis.call('ZCARD', KEYS[1])
end
"""
)

_MOST_TIED = 64  # holders with equally many sessions among whom the least recently used is found

# Prolongs a session among those of its holder.
_USE = b"""
local function use(prefix, id, till)
  local holder = redis.call('HGET', prefix .. 'held', id)
  if holder then redis.call('ZADD', prefix .. 'holder:' .. holder, till, id) end
end
"""

# The session that makes room for a new one of a holder, or nil.
_VICTIM = (
    b"""
local function victim(prefix, holder, rested)
  local holders = prefix .. 'holders'
  local own = tonumber(redis.call('ZSCORE', holders, holder) or '0')
  local top = redis.call('ZREVRANGE', holders, 0, 0, 'WITHSCORES')
  if not top[1] then return nil end
  local most = tonumber(top[2])
  local found, till
  local tied = redis.call('ZRANGEBYSCORE', holders, most, most, 'LIMIT', 0, %d)
  for _, each in ipairs(tied) do
    local first = redis.call('ZRANGE', prefix .. 'holder:' .. each, 0, 0, 'WITHSCORES')
    if first[1] and (not found or tonumber(first[2]) < till) then
      found, till = first[1], tonumber(first[2])
    end
  end
  if found and (most > own + 1 or till < rested) then return found end
  return nil
end
"""
    % _MOST_TIED
)

# KEYS: ends, session. ARGV: prefix, id, data, until, now, most, holder, rested. A repeated command
# changes nothing.
_CREATE = (
    _COUNT
    + _KEEP
    + _VICTIM
    + b"""
local is_full = count(ARGV[1], ARGV[5]) >= tonumber(ARGV[6])
if is_full and redis.call('EXISTS', KEYS[2]) == 0 then
  local gone = victim(ARGV[1], ARGV[7], tonumber(ARGV[8]))
  if not gone then return 0 end
  drop(ARGV[1], gone)
end
local known = redis.call('HGET', ARGV[1] .. 'held', ARGV[2])
if not known then
  redis.call('HSET', ARGV[1] .. 'held', ARGV[2], ARGV[7])
  redis.call('ZINCRBY', ARGV[1] .. 'holders', 1, ARGV[7])
  known = ARGV[7]
end
redis.call('ZADD', ARGV[1] .. 'holder:' .. known, ARGV[4], ARGV[2])
redis.call('HDEL', KEYS[2], 's')
keep(KEYS[2], KEYS[1], ARGV[2], ARGV[3], ARGV[4])
return 1
"""
)

# KEYS: ends, session. ARGV: id, data, until, the data to replace.
_SAVE = (
    _KEEP
    + b"""
if redis.call('HGET', KEYS[2], 'd') ~= ARGV[4] then return 0 end
local known = redis.call('HGET', KEYS[2], 'u')
local till = ARGV[3]
if tonumber(known) > tonumber(till) then till = known end
keep(KEYS[2], KEYS[1], ARGV[1], ARGV[2], till)
return 1
"""
)

# KEYS: ends, session. ARGV: id, until, prefix.
_PROLONG = (
    _KEEP
    + _USE
    + b"""
if redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
keep(KEYS[2], KEYS[1], ARGV[1], false, ARGV[2])
use(ARGV[3], ARGV[1], ARGV[2])
return 1
"""
)

# KEYS: session. ARGV: state, the state to replace.
_SAVE_STATE = b"""
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if (redis.call('HGET', KEYS[1], 's') or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 's', ARGV[1])
return 1
"""

_END = DROP + b"return drop(ARGV[1], ARGV[2])"
_HOW_MANY = _COUNT + b"return count(ARGV[1], ARGV[2])"


class RedisSessions:
    """A SessionStore in Redis."""

    def __init__(self, link: Link, prefix: str) -> None:
        self._link = link
        self._keys = Keys(prefix)

    async def create(self, session: Session, *, most: int, now: float, rested: float = 0.0) -> bool:
        """Store a new session. Returns False, and stores nothing, if there is no room."""
        keys = (self._keys.ends, self._keys.session(session.id))
        values = (
            self._keys.prefix,
            session.id,
            records.encode(session),
            repr(session.until),
            repr(now),
            most,
            session.holder,
            repr(rested),
        )
        return bool(await self._link.ask("EVAL", _CREATE, 2, *keys, *values))

    async def load(self, id: str, *, now: float) -> Session | None:
        """Return the session with this id, if it exists."""
        data, end = await self._link.ask("HMGET", self._keys.session(id), "d", "u")
        if data is None or end is None:
            return None
        until = float(end)
        if until < now:
            await self.count(now=now)
            return None
        return records.decode(data, until)

    async def save(self, session: Session, *, was: Session) -> bool:
        """Replace a session if the stored one still equals `was`, with the later of the two ends.
        Otherwise return False.
        """
        key = self._keys.session(session.id)
        # Decoded before the comparison: another version of Interlock may encode the same session
        # differently.
        data = await self._link.ask("HGET", key, "d")
        known = None if data is None else records.decode(data, was.until)
        if known is None or not records.follows(was, known):
            return False
        values = (session.id, records.encode(session), repr(session.until), data)
        return bool(await self._link.ask("EVAL", _SAVE, 2, self._keys.ends, key, *values))

    async def prolong(self, id: str, until: float) -> None:
        """Move the end of a session."""
        await self._link.ask(
            "EVAL",
            _PROLONG,
            2,
            self._keys.ends,
            self._keys.session(id),
            id,
            repr(until),
            self._keys.prefix,
        )

    async def load_state(self, id: str) -> bytes | None:
        """Return the author's state of a session."""
        data, state = await self._link.ask("HMGET", self._keys.session(id), "d", "s")
        if data is None:
            return None
        return b"" if state is None else bytes(state)

    async def save_state(self, id: str, state: bytes, *, was: bytes) -> bool:
        """Replace the author's state of a session, if the stored one still equals `was`."""
        key = self._keys.session(id)
        return bool(await self._link.ask("EVAL", _SAVE_STATE, 1, key, state, was))

    async def end(self, id: str) -> bool:
        """Remove a session, its state and its events. Returns False if it did not exist."""
        return bool(await self._link.ask("EVAL", _END, 1, self._keys.ends, self._keys.prefix, id))

    async def count(self, *, now: float) -> int:
        """Return the number of sessions."""
        return int(
            await self._link.ask(
                "EVAL", _HOW_MANY, 1, self._keys.ends, self._keys.prefix, repr(now)
            )
        )

    async def recent(self, *, most: int, now: float) -> list[Session]:
        """Return at most `most` sessions, those that end last first."""
        ids = await self._link.ask(
            "ZRANGE", self._keys.ends, "+inf", repr(now), "BYSCORE", "REV", "LIMIT", 0, most
        )
        found = await asyncio.gather(*(self.load(id.decode(), now=now) for id in ids))
        return [session for session in found if session is not None]
