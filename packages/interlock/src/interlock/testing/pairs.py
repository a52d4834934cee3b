"""Paired in-memory channels, for tests without pipes or sockets."""

from __future__ import annotations

import asyncio
from collections import deque

from ..wire.jsonrpc import Frame

HIGH_WATER = 1024 * 1024


class MemoryChannel:
    """One end of a pair. Sent frames are queued until the other end receives them."""

    def __init__(self) -> None:
        self.queued = 0
        self.lost = ""
        self._peer: MemoryChannel = self
        self._arrived: deque[Frame] = deque()
        self._stirred = asyncio.Event()
        self._room = asyncio.Event()
        self._closed = False

    async def receive(self) -> list[Frame]:
        """The next frames; an empty list at the end."""
        while not self._arrived:
            if self._closed or self._peer._closed:
                return []
            self._stirred.clear()
            await self._stirred.wait()
        frames = list(self._arrived)
        self._arrived.clear()
        self._peer.queued = 0
        self._peer._room.set()
        return frames

    def send(self, frames: list[Frame]) -> None:
        """Send frames to the other end."""
        if self._closed or self._peer._closed:
            return
        self._peer._arrived.extend(frames)
        self._peer._stirred.set()
        self.queued += sum(map(len, frames))

    async def drain(self) -> None:
        """Wait until the other end has received the queued frames, if they are more than the
        high-water mark.
        """
        while self.queued > HIGH_WATER and not (self._closed or self._peer._closed):
            self._room.clear()
            await self._room.wait()

    async def aclose(self) -> None:
        """Close this end. The other end can still receive the frames that were sent."""
        self._closed = True
        for end in (self, self._peer):
            end._stirred.set()
            end._room.set()
            end.queued = 0


def channel_pair() -> tuple[MemoryChannel, MemoryChannel]:
    """Two connected channels: frames sent into one are received from the other."""
    one = MemoryChannel()
    other = MemoryChannel()
    one._peer = other
    other._peer = one
    return one, other
