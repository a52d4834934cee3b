"""Limits of the memory server. Each can be set by an environment variable."""

from __future__ import annotations

from msgspec import Struct

PREFIX = "INTERLOCK_MEMORY_"


class MemoryLimits(Struct, frozen=True, kw_only=True):
    """Lengths are in characters, sizes in bytes, times in seconds.

    `INTERLOCK_MEMORY_NAME` sets `name`, and so on.
    """

    name: int = 1_000  # characters of a name or type
    observation: int = 100_000  # characters of one
    observations: int = 10_000  # of one entity
    items: int = 1_000  # entities, relations or observations in one call
    page: int = 50  # entities or changes in one answer, unless the call says otherwise
    pages: int = 1_000  # the most that it may say
    shown: int = 200  # observations of one entity in one answer
    relations: int = 2_000  # in one answer
    answer: int = 400_000  # characters of observations in one answer
    ranked: int = 2_000  # finds that are put in order
    walked: int = 100_000  # relations that one call follows
    depth: int = 12  # steps of a path
    lines: int = 8 * 1024 * 1024  # of lines that are sent in one call
    file: int = 1024 * 1024 * 1024  # of a file that is imported
    exported: int = 64 * 1024 * 1024  # of a graph that is read as one resource
    changes: int = 10_000  # that are remembered, so that they can be undone
    steps: int = 2_000_000  # of which they consist
    seconds: float = 60.0  # that a call may take; imports have ten times as long
    waiting: float = 15.0  # for other processes that write
    polling: float = 1.0  # between two looks for what others wrote
    sync: bool = True  # whether what was written is on the disk before the answer
