"""The other end of a channel under test, held by hand: raw descriptors, and a count of what the
process has open.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from interlock.transport.pipes import PipeChannel, ThreadChannel

KINDS: dict[str, Any] = {"pipe": PipeChannel, "thread": ThreadChannel}
both_kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def open_descriptors() -> int:
    """How many descriptors this process has open."""
    return len(os.listdir("/proc/self/fd"))


async def turns(number: int = 5) -> None:
    """Let everything that is ready to run do so, a few times over."""
    for _ in range(number):
        await asyncio.sleep(0)


class Ends:
    """A channel, and the raw ends of its two pipes, or with `sockets` of two pairs of sockets."""

    def __init__(self, kind: Any, *, sockets: bool = False, **options: Any) -> None:
        make = _socket_pair if sockets else os.pipe
        read, self.write_to = make()
        self.read_from, write = make()
        self.channel: Any = kind(read, write, **options)
        self._open = {self.write_to, self.read_from}

    def write(self, data: bytes) -> None:
        """Write to the channel, all of it, as a peer that can wait would."""
        while data:
            data = data[os.write(self.write_to, data) :]

    def hang_up(self) -> None:
        """The peer closes its end of what the channel reads."""
        self._close(self.write_to)

    def stop_reading(self) -> None:
        """The peer closes its end of what the channel writes."""
        self._close(self.read_from)

    async def read(self, number: int, *, piece: int = 65536) -> bytes:
        """The next bytes that the channel has written, at most `piece` at a time."""
        parts = []
        while number:
            part = await asyncio.to_thread(os.read, self.read_from, min(number, piece))
            assert part, f"the end, with {number} bytes missing"
            parts.append(part)
            number -= len(part)
        return b"".join(parts)

    async def rest(self) -> bytes:
        """All that is still to come until the channel closes its end."""
        parts = []
        while part := await asyncio.to_thread(os.read, self.read_from, 1 << 20):
            parts.append(part)
        return b"".join(parts)

    def close(self) -> None:
        """The peer is gone altogether."""
        for fd in list(self._open):
            self._close(fd)

    def _close(self, fd: int) -> None:
        if fd in self._open:
            self._open.discard(fd)
            os.close(fd)


def _socket_pair() -> tuple[int, int]:
    one, other = socket.socketpair()
    return one.detach(), other.detach()


@contextlib.asynccontextmanager
async def ends(kind: Any, **options: Any) -> AsyncIterator[Ends]:
    """A channel and its raw ends, for as long as the block lasts."""
    both = Ends(kind, **options)
    try:
        async with asyncio.timeout(60):
            yield both
    finally:
        both.close()
        await both.channel.aclose()


async def received(channel: Any, number: int) -> list[bytes]:
    """So many frames from a channel, or all there are until its end."""
    frames: list[bytes] = []
    while len(frames) < number and (more := await channel.receive()):
        frames += more
    return frames
