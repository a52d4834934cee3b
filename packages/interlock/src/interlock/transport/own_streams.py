"""The server's side of the stdio transport: the standard streams of this process (2026-07-28,
"stdio").
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import AsyncIterator

from ..wire.lines import DEFAULT_LIMIT
from .pipes import PipeChannel, ThreadChannel, open_pipe_channel


@contextlib.asynccontextmanager
async def own_streams(limit: int = DEFAULT_LIMIT) -> AsyncIterator[PipeChannel | ThreadChannel]:
    """Return this process's stdin and stdout as a channel.

    While the channel is open, nothing else can write to the connection: descriptor 1 leads to
    stderr, so `print` in a server, or a program that a tool starts, writes to stderr. Descriptor 0
    is empty. Both are restored at the end.
    """
    sys.stdout.flush()
    read_fd = os.dup(0)
    write_fd = os.dup(1)
    saved_in = os.dup(0)
    saved_out = os.dup(1)
    was_blocking = [(fd, os.get_blocking(fd)) for fd in (saved_in, saved_out)]
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    saved_stdout = sys.stdout
    sys.stdout = _stderr_writer()
    channel = open_pipe_channel(read_fd, write_fd, limit=limit)
    try:
        yield channel
    finally:
        await channel.aclose()
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        sys.stdout = saved_stdout
        for fd, blocking in was_blocking:
            os.set_blocking(fd, blocking)
        os.dup2(saved_in, 0)
        os.dup2(saved_out, 1)
        os.close(saved_in)
        os.close(saved_out)


def _stderr_writer() -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.FileIO(2, "w", closefd=False),
        encoding="utf-8",
        errors="backslashreplace",
        line_buffering=True,
        write_through=True,
    )
