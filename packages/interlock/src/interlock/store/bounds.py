"""Limits of what the stores keep, the same for all of them."""

from __future__ import annotations

# A stream that is still written: its last so many events, of so many bytes; the newest stays
# whatever its size.
RUNNING_EVENTS = 10_000
RUNNING_BYTES = 16 * 1024 * 1024

# The streams of one session that have ended: so many of them, of so many bytes; the newest stays
# whatever its size, for its answer may be what a client is coming back for.
ENDED_STREAMS = 64
ENDED_BYTES = 1024 * 1024

# Seconds that a stream is kept after its end, and after its last event where no end comes.
ENDED_AGE = 600.0
RUNNING_AGE = 86_400.0

# Notes that a board keeps, and for how many seconds where that is counted.
CHANGES = 10_000
CHANGES_AGE = 600.0
NOTES = 2_000
NOTES_AGE = 60.0

# Seconds after which nobody asks for a dead worker any more.
WORKER_AGE = 86_400.0

# What may wait to be written, in commands and in bytes, before more is dropped.
WAITING = 10_000
WAITING_BYTES = 64 * 1024 * 1024

# What one account may hold in records: bytes of bodies, and records.
ACCOUNT_BYTES = 16 * 1024 * 1024
ACCOUNT_RECORDS = 250_000
