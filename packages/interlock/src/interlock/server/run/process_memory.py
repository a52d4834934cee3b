"""Memory settings of a process that does nothing but serve: the garbage collector and malloc."""

from __future__ import annotations

import contextlib
import gc
import os
import sys

_M_TRIM_THRESHOLD = -1  # the number in glibc's malloc.h
_M_MMAP_THRESHOLD = -3


def keep_freed_memory() -> None:
    """Let the C library keep up to 64 MiB of freed memory, because returning it to the system and
    fetching it again costs five times as much as a large message itself. Does nothing if the
    library has no such setting.
    """
    import ctypes  # late: only for servers that move large messages

    with contextlib.suppress(OSError, AttributeError):
        tune = ctypes.CDLL(None).mallopt
        tune(_M_TRIM_THRESHOLD, 64 * 1024 * 1024)
        tune(_M_MMAP_THRESHOLD, 32 * 1024 * 1024)


def settle_memory(*, collect: bool = True) -> None:
    """Exclude all existing objects from garbage collection: they live as long as the server, and
    scanning them causes most of its tail latency.

    Args:
        collect: Whether to free the unreachable ones before, which takes 12 ms or more. Otherwise
            those that cycles hold live as long as the server, too.
    """
    if collect:
        gc.collect()
    gc.freeze()


def resident_bytes() -> int:
    """Return the resident memory of this process; its peak where the system tells no more, and 0
    if nothing is known.
    """
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        pass
    try:
        import resource  # late: not on Windows
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
