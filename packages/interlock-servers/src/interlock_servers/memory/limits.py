"""Limits of the memory server. Each can be set by an environment variable."""

from __future__ import annotations

from msgspec import Struct

PREFIX = "INTERLOCK_MEMORY_"


class MemoryLimits(Struct, frozen=True, kw_only=True):
    """Lengths are in characters, sizes in bytes, times in seconds.

    `INTERLOCK_MEMORY_NAME` sets `name`, and so on.
    """

    name: int = 1_000  # characters of a name or type
    observation: int = 100_000  # characters of one observation
    observations: int = 10_000  # of one entity
    items: int = 1_000  # entities, relations or observations in one call
    page: int = 50  # entities or changes in one result by default
    pages: int = 1_000  # the largest page that a call may ask for
    shown: int = 200  # observations of one entity in one result
    relations: int = 2_000  # in one result
    answer: int = 400_000  # characters of observations in one result
    ranked: int = 2_000  # matches that are ranked
    walked: int = 100_000  # relations followed in one call
    depth: int = 12  # steps of a path
    lines: int = 8 * 1024 * 1024  # of lines sent in one call
    file: int = 1024 * 1024 * 1024  # of an imported file
    exported: int = 64 * 1024 * 1024  # of a graph exported as one resource
    changes: int = 10_000  # changes in the history, for undo
    steps: int = 2_000_000  # steps of all changes in the history
    seconds: float = 60.0  # for a call; imports have ten times as long
    waiting: float = 15.0  # for other processes that write
    polling: float = 1.0  # between two checks for changes by other processes
    sync: bool = True  # whether data is on disk before the result is sent
