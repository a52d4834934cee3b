"""Processor time and resident memory of a local process and its descendants."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct


class ProcessUsage(Struct, frozen=True):
    """What a process and its descendants use.

    Attributes:
        processor: Their processor time until now, in seconds, exact to a clock tick (10 ms).
        resident: Their resident memory, in bytes.
    """

    processor: float
    resident: int


def process_usage(pid: int) -> ProcessUsage | None:
    """Return the usage of a process; None if it is gone, or the system has no /proc."""
    ticks = 0
    pages = 0
    try:
        for each in _family(pid):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            # Its own time and that of the children it has waited for: user and system.
            ticks += sum(map(int, fields[11:15]))
            pages += int(fields[21])
    except (OSError, ValueError, IndexError):
        return None
    return ProcessUsage(ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE"))


def _family(pid: int) -> Iterator[int]:
    """A process and all its running descendants."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from _family(int(child))
