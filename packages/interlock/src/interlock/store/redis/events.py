"""Events of streams in Redis, bounded per session, per stream, and in age."""

from __future__ import annotations

from .. import bounds, records
from ..interface import Replay
from .connection import Link
from .keys import Keys

# Event n has the id n+1, because no id may be 0. KEYS: events, streams, ended. ARGV: stream,
# number, data, last (1 or 0), prefix of the session's events, and the bounds: events, bytes, ended
# streams, bytes in them, age of ended and of running ones in milliseconds.
_APPEND = b"""
local function size(stream) return tonumber(redis.call('HGET', KEYS[2], stream) or 0) end
local function forget(stream)
  redis.call('DEL', ARGV[5] .. stream)
  redis.call('HDEL', KEYS[2], stream)
end
local number, total = tonumber(ARGV[2]), size(ARGV[1])
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
while kept > tonumber(ARGV[6]) or (total > tonumber(ARGV[7]) and kept > 1) do
  local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  redis.call('XDEL', KEYS[1], oldest[1])
  total, kept = total - #oldest[2][2], kept - 1
end
redis.call('HSET', KEYS[2], ARGV[1], total)
redis.call('PEXPIRE', KEYS[1], ARGV[4] == '1' and ARGV[10] or ARGV[11])
redis.call('PEXPIRE', KEYS[2], ARGV[11])
if ARGV[4] ~= '1' then return end
redis.call('RPUSH', KEYS[3], ARGV[1])
redis.call('PEXPIRE', KEYS[3], ARGV[11])
local ended, bytes = {}, 0
for _, stream in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
  ended[#ended + 1] = stream
  bytes = bytes + size(stream)
end
for place, stream in ipairs(ended) do
  local left = #ended - place + 1
  local many = left > tonumber(ARGV[8]) or (bytes > tonumber(ARGV[9]) and left > 1)
  if not many and redis.call('EXISTS', ARGV[5] .. stream) == 1 then return end
  bytes = bytes - size(stream)
  redis.call('LPOP', KEYS[3])
  forget(stream)
end
"""

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

    def __init__(self, link: Link, prefix: str) -> None:
        self._link = link
        self._keys = Keys(prefix)

    def append(self, session: str, stream: str, number: int, data: bytes, *, last: bool) -> None:
        """Store an event."""
        keys = (
            self._keys.events(session, stream),
            self._keys.streams(session),
            self._keys.ended(session),
        )
        values = (stream, number, data, int(last), self._keys.events(session, ""))
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

    def _send(self, arguments: tuple[str | bytes | int, ...], size: int) -> None:
        self._link.send("EVAL", _APPEND, 3, *arguments, *_BOUNDS, size=size)
