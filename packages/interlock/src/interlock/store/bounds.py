"""Limits of the amount of data in stores, the same for all stores."""

from __future__ import annotations

# The last events of a running stream, by number and bytes. The newest event is always kept.
RUNNING_EVENTS = 10_000
RUNNING_BYTES = 16 * 1024 * 1024

# The ended streams of one session, by number and bytes. The newest stream is always kept, because
# its client may be about to resume it.
ENDED_STREAMS = 64
ENDED_BYTES = 1024 * 1024

# The events of all sessions in a store, in bytes. When they exceed it, the events of the holder
# with the most of them are removed, the oldest streams first, down to this part.
EVENT_BYTES = 256 * 1024 * 1024
EVENT_TARGET = 0.9

# Seconds that a stream is kept after its end, or after its last event if it never ends.
ENDED_AGE = 600.0
RUNNING_AGE = 86_400.0

# The number of notes in a topic, and their maximum age in seconds if the store tracks it.
CHANGES = 10_000
CHANGES_AGE = 600.0
NOTES = 2_000
NOTES_AGE = 60.0

# Seconds after which no worker asks for a dead worker any more.
WORKER_AGE = 86_400.0

# The longest lifetime of a heartbeat, in seconds. A heartbeat that ends later was sent with a clock
# that was ahead, and does not count: its worker would count as alive until the clock gets there.
HEARTBEAT_SECONDS = 60.0

# The maximum of queued writes, in commands and in bytes. Further writes are dropped.
WAITING = 10_000
WAITING_BYTES = 64 * 1024 * 1024

# The maximum of one account's records: bytes of bodies, and number of records.
ACCOUNT_BYTES = 16 * 1024 * 1024
ACCOUNT_RECORDS = 250_000

# The seconds by which a wall clock may be wrong for a moment, before it is set right. A record
# exists for that long after its end, unless its account is full: if it were written or removed with
# a wrong clock, an action would run twice.
CLOCK_TOLERANCE = 7200.0


def check_event_bytes(limit: int) -> None:
    """Raise ValueError if a limit of events is not a number above 0."""
    if limit < 1:
        raise ValueError(f"event_bytes is a number above 0, and cannot be {limit!r}")
