"""Events of streams in Redis, bounded in total, per session, per stream, and in age."""

from __future__ import annotations

from ...caches import BoundedCache
from ...quotas import QuotaUsage
from .. import bounds, records
from ..interface import Replay
from .connection import Link
from .keys import Keys

# The size of all events is `event-bytes`, the size of a session's events is in `event-sizes`, and
# the time of the latest one is in `event-ages`. Streams that the server expires are subtracted only
# when their session is examined, so the sizes may be too large for a while, but never too small.
# Events that come after the end of their session are not counted; they soon expire.
_MAKE_ROOM = b"""
local function shrink(prefix, id)
  local about, left = prefix .. 'streams:' .. id, 0
  for _, stream in ipairs(redis.call('HKEYS', about)) do
    local key = prefix .. 'events:' .. #id .. ':' .. id .. ':' .. stream
    local newest = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
    if newest and newest[2][1] ~= 'l' then
      redis.call('XTRIM', key, 'MAXLEN', 1)
      redis.call('HSET', about, stream, #newest[2][2])
      left = left + #newest[2][2]
    else
      redis.call('DEL', key)
      redis.call('HDEL', about, stream)
    end
  end
  redis.call('DEL', prefix .. 'ended:' .. id)
  if left > 0 then
    redis.call('HSET', prefix .. 'event-sizes', id, left)
  else
    redis.call('HDEL', prefix .. 'event-sizes', id)
    redis.call('ZREM', prefix .. 'event-ages', id)
  end
  return left
end
local function held(prefix)
  local sizes, sessions, total = {}, {}, 0
  for _, id in ipairs(redis.call('ZRANGE', prefix .. 'event-ages', 0, -1)) do
    local size = tonumber(redis.call('HGET', prefix .. 'event-sizes', id) or 0)
    local holder = redis.call('HGET', prefix .. 'held', id) or ''
    sizes[holder] = (sizes[holder] or 0) + size
    sessions[holder] = sessions[holder] or {}
    table.insert(sessions[holder], {id, size})
    total = total + size
  end
  return sizes, sessions, total
end
local function make_room(prefix, target)
  local sizes, sessions, total = held(prefix)
  local places = {}
  while total > target do
    local largest
    for holder, size in pairs(sizes) do
      if not largest or size > sizes[largest] then largest = holder end
    end
    if not largest then break end
    local place = (places[largest] or 0) + 1
    local oldest = sessions[largest][place]
    if oldest then
      local freed = oldest[2] - shrink(prefix, oldest[1])
      places[largest] = place
      sizes[largest] = sizes[largest] - freed
      total = total - freed
      if freed > 0 then redis.call('INCR', prefix .. 'event-evictions') end
    else
      sizes[largest] = nil
    end
  end
  redis.call('SET', prefix .. 'event-bytes', string.format('%.0f', total))
end
"""

# Event n has the id n+1, because no id may be 0. KEYS: events, streams, ended. ARGV: stream,
# number, data, last (1 or 0), prefix of the session's events, prefix of all keys, session, and the
# bounds: events, bytes, ended streams, bytes in them, age of ended and of running ones in
# milliseconds, bytes of all events, and bytes that are left when there are too many.
_APPEND = (
    _MAKE_ROOM
    + b"""
local change = 0
local function size(stream) return tonumber(redis.call('HGET', KEYS[2], stream) or 0) end
local function forget(stream)
  change = change - size(stream)
  redis.call('DEL', ARGV[5] .. stream)
  redis.call('HDEL', KEYS[2], stream)
end
local function append()
  local number, before = tonumber(ARGV[2]), size(ARGV[1])
  local total = before
  local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
  if newest then
    local awaited = tonumber(string.match(newest[1], '^%d+'))
    if newest[2][1] == 'l' or number < awaited then return end
    if number > awaited then redis.call('DEL', KEYS[1]); total = 0 end
  else
    total = 0
  end
  local kind = ARGV[4] == '1' and 'l' or 'd'
  redis.call('XADD', KEYS[1], string.format('%.0f-0', number + 1), kind, ARGV[3])
  total = total + #ARGV[3]
  local kept = redis.call('XLEN', KEYS[1])
  while kept > tonumber(ARGV[8]) or (total > tonumber(ARGV[9]) and kept > 1) do
    local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
    redis.call('XDEL', KEYS[1], oldest[1])
    total, kept = total - #oldest[2][2], kept - 1
  end
  change = total - before
  redis.call('HSET', KEYS[2], ARGV[1], total)
  redis.call('PEXPIRE', KEYS[1], ARGV[4] == '1' and ARGV[12] or ARGV[13])
  redis.call('PEXPIRE', KEYS[2], ARGV[13])
  if ARGV[4] ~= '1' then return end
  redis.call('RPUSH', KEYS[3], ARGV[1])
  redis.call('PEXPIRE', KEYS[3], ARGV[13])
  local ended, bytes = {}, 0
  for _, stream in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
    ended[#ended + 1] = stream
    bytes = bytes + size(stream)
  end
  for place, stream in ipairs(ended) do
    local left = #ended - place + 1
    local many = left > tonumber(ARGV[10]) or (bytes > tonumber(ARGV[11]) and left > 1)
    if not many and redis.call('EXISTS', ARGV[5] .. stream) == 1 then return end
    bytes = bytes - size(stream)
    redis.call('LPOP', KEYS[3])
    forget(stream)
  end
end
append()
if change == 0 or redis.call('HEXISTS', ARGV[6] .. 'held', ARGV[7]) == 0 then return end
local time = redis.call('TIME')
local age = string.format('%.0f', time[1] * 1000000 + time[2])
redis.call('HINCRBY', ARGV[6] .. 'event-sizes', ARGV[7], change)
redis.call('ZADD', ARGV[6] .. 'event-ages', age, ARGV[7])
local all = redis.call('INCRBY', ARGV[6] .. 'event-bytes', change)
if all > tonumber(ARGV[14]) then make_room(ARGV[6], tonumber(ARGV[15])) end
"""
)

# ARGV: prefix. Returns how often a session has lost events, and the size of each holder's.
_MEASURE = (
    _MAKE_ROOM
    + b"""
local found = {tonumber(redis.call('GET', ARGV[1] .. 'event-evictions') or 0)}
for _, size in pairs((held(ARGV[1]))) do
  if size > 0 then found[#found + 1] = size end
end
return found
"""
)

# KEYS: events. ARGV: after. Returns whether the stream has ended, and the data of the later events.
_READ = b"""
local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if not newest then return false end
local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
local after = tonumber(ARGV[1])
if tonumber(string.match(oldest[1], '^%d+')) - 1 > after + 1 then return false end
local data = {}
for _, event in ipairs(redis.call('XRANGE', KEYS[1], string.format('(%.0f-0', after + 1), '+')) do
  data[#data + 1] = event[2][2]
end
return {newest[2][1] == 'l' and 1 or 0, data}
"""

_MOST_LOST = 10_000  # streams that lost an event, and are not removed twice

_BOUNDS = (
    bounds.RUNNING_EVENTS,
    bounds.RUNNING_BYTES,
    bounds.ENDED_STREAMS,
    bounds.ENDED_BYTES,
    int(bounds.ENDED_AGE * 1000),
    int(bounds.RUNNING_AGE * 1000),
)


class RedisEvents:
    """An EventLog in Redis."""

    def __init__(self, link: Link, prefix: str, limit: int = bounds.EVENT_BYTES) -> None:
        bounds.check_event_bytes(limit)
        self._link = link
        self._keys = Keys(prefix)
        self._limit = limit
        self._bounds = (*_BOUNDS, limit, int(limit * bounds.EVENT_TARGET))
        # The keys of streams that were removed last because an event was dropped.
        self._losing: BoundedCache[str, bool] = BoundedCache(_MOST_LOST)

    def append(self, session: str, stream: str, number: int, data: bytes, *, last: bool) -> None:
        """Store an event."""
        keys = (
            self._keys.events(session, stream),
            self._keys.streams(session),
            self._keys.ended(session),
        )
        values = (
            stream,
            number,
            data,
            int(last),
            self._keys.events(session, ""),
            self._keys.prefix,
            session,
        )
        self._link.soon(self._send, keys + values, len(data))

    async def read(self, session: str, stream: str, after: int) -> Replay | None:
        """Return the events after event `after`, including everything that this worker has appended
        before.
        """
        after = records.known(after)
        found = await self._link.ask("EVAL", _READ, 1, self._keys.events(session, stream), after)
        if found is None:
            return None
        ended, data = found
        return Replay(tuple(enumerate(data, after + 1)), bool(ended))

    async def measure(self) -> QuotaUsage:
        """Return the counters. `evicted` counts the sessions that have lost events, for all
        workers.
        """
        evicted, *sizes = await self._link.ask("EVAL", _MEASURE, 0, self._keys.prefix)
        largest = max(sizes, default=0)
        return QuotaUsage(sum(sizes), self._limit, len(sizes), largest, 0, evicted)

    def _send(self, arguments: tuple[str | bytes | int, ...], size: int) -> None:
        """Send an event. If it is dropped, remove its stream: without its newest event it would
        look as if it were still running, and its reader would wait for ever.
        """
        key = str(arguments[0])
        if self._link.send("EVAL", _APPEND, 3, *arguments, *self._bounds, size=size):
            if self._losing:
                self._losing.pop(key)
        elif key not in self._losing:
            self._losing.put(key, True)
            self._link.send("DEL", key, always=True)
