"""Names of keys in Redis, and scripts that several parts share."""

from __future__ import annotations

# How a session goes: its record, its place among the ends, its streams, and what was noted about
# them. KEYS[1] is the set of ends.
DROP = b"""
local function drop(prefix, id)
  local about = prefix .. 'streams:' .. id
  for _, stream in ipairs(redis.call('HKEYS', about)) do
    redis.call('DEL', prefix .. 'events:' .. #id .. ':' .. id .. ':' .. stream)
  end
  redis.call('DEL', about, prefix .. 'ended:' .. id)
  redis.call('ZREM', KEYS[1], id)
  return redis.call('DEL', prefix .. 'session:' .. id)
end
"""


class Keys:
    """The names of a session's keys, all of which begin with `prefix`."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.ends = f"{prefix}sessions"  # the ids of all sessions, sorted by their ends

    def session(self, id: str) -> str:
        """The record of a session."""
        return f"{self.prefix}session:{id}"

    def streams(self, id: str) -> str:
        """The names of a session's streams, with their sizes in bytes."""
        return f"{self.prefix}streams:{id}"

    def ended(self, id: str) -> str:
        """The names of those that have ended, the oldest end first."""
        return f"{self.prefix}ended:{id}"

    def events(self, id: str, stream: str) -> str:
        """The events of a stream.

        With the length of the id, so that no two pairs of names make one key.
        """
        return f"{self.prefix}events:{len(id.encode())}:{id}:{stream}"
