"""The one small protocol that a custom transport of frames fulfils, for servers and for clients alike."""

from __future__ import annotations

from typing import Protocol

from ..wire.jsonrpc import Frame


class Channel(Protocol):
    """A two-way stream of frames: a pipe, a socket, two queues. One task receives; any task of the same loop may send.

    Whoever implements it runs `interlock.testing.check_channel` over it. Frames hold no newline and no framing.
    """

    async def receive(self) -> list[Frame]:
        """The next frames, at least one, in order; an empty list once the peer has closed and all was received."""
        ...

    def send(self, frames: list[Frame]) -> None:
        """Queue frames to be written, in order. Never waits; what is sent after the peer has gone is dropped."""
        ...

    async def drain(self) -> None:
        """Wait until little enough is queued that more may be sent; at once where the peer has gone."""
        ...

    async def aclose(self) -> None:
        """Write what is queued, as far as the peer takes it, then close. May be called twice."""
        ...

    @property
    def queued(self) -> int:
        """Bytes sent and not yet written."""
        ...

    @property
    def lost(self) -> str:
        """Why frames were dropped on the way in (such as lines that were too long) since the last look; '' where none were."""
        ...
