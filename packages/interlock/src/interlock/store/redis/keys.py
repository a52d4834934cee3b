"""Names of keys in Redis, and scripts that several modules share."""

from __future__ import annotations

# Deletes a session: its record, its entry among the ends, its streams and their events. KEYS[1] is
# the set of ends. A session counts for its holder: `holders` has the number of sessions of each,
# `holder:H` the sessions of one, sorted by expiry, and `held` the holder of each session.
DROP = b"""
local function drop(prefix, id)
  local about = prefix .. 'streams:' .. id
  for _, stream in ipairs(redis.call('HKEYS', about)) do
    redis.call('DEL', prefix .. 'events:' .. #id .. ':' .. id .. ':' .. stream)
  end
  redis.call('DEL', about, prefix .. 'ended:' .. id)
  local size = redis.call('HGET', prefix .. 'event-sizes', id)
  if size then
    redis.call('HDEL', prefix .. 'event-sizes', id)
    redis.call('ZREM', prefix .. 'event-ages', id)
    redis.call('DECRBY', prefix .. 'event-bytes', size)
    if redis.call('EXISTS', prefix .. 'event-ages') == 0 then
      redis.call('DEL', prefix .. 'event-bytes')
    end
  end
  redis.call('ZREM', KEYS[1], id)
  local holder = redis.call('HGET', prefix .. 'held', id)
  if holder then
    redis.call('HDEL', prefix .. 'held', id)
    redis.call('ZREM', prefix .. 'holder:' .. holder, id)
    if tonumber(redis.call('ZINCRBY', prefix .. 'holders', -1, holder)) <= 0 then
      redis.call('ZREM', prefix .. 'holders', holder)
    end
  end
  return redis.call('DEL', prefix .. 'session:' .. id)
end
"""


class Keys:
    """The names of a session's keys. All of them begin with `prefix`."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.ends = f"{prefix}sessions"  # the ids of all sessions, sorted by expiry

    def session(self, id: str) -> str:
        """The key of a session's record."""
        return f"{self.prefix}session:{id}"

    def streams(self, id: str) -> str:
        """The key of the names and sizes (in bytes) of a session's streams."""
        return f"{self.prefix}streams:{id}"

    def ended(self, id: str) -> str:
        """The key of the names of the ended streams, the oldest end first."""
        return f"{self.prefix}ended:{id}"

    def events(self, id: str, stream: str) -> str:
        """The key of a stream's events.

        It contains the length of the id, so that no two pairs of names have the same key.
        """
        return f"{self.prefix}events:{len(id.encode())}:{id}:{stream}"
