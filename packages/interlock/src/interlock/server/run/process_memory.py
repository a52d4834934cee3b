"""Memory settings of a process that does nothing but serve: the garbage collector and malloc."""

from __future__ import annotations

import contextlib
import gc

_M_TRIM_THRESHOLD = -1  # as malloc.h of glibc numbers them
_M_MMAP_THRESHOLD = -3


def keep_freed_memory() -> None:
    """Tell the C library to keep what large messages leave behind: giving it back to the system and
    fetching it again costs five times what the message itself does. At most 64 MiB; nothing happens
    where the library has no such setting.
    """
    import ctypes  # late: only for servers that move large messages

    with contextlib.suppress(OSError, AttributeError):
        tune = ctypes.CDLL(None).mallopt
        tune(_M_TRIM_THRESHOLD, 64 * 1024 * 1024)
        tune(_M_MMAP_THRESHOLD, 32 * 1024 * 1024)


def settle_memory() -> None:
    """What exists now stays for good, so the collector need never look at it again: most of the
    tail latency of a server.
    """
    gc.collect()
    gc.freeze()
