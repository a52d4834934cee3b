"""The channel: the small interface of a custom transport of frames, for servers and for clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from ..wire.jsonrpc import Frame

Tap = Callable[[str, Frame], None]
"""Sees every frame as it goes by, with "client" or "server" as its sender; it must not raise."""


@runtime_checkable
class Pushing(Protocol):
    """What a channel may offer besides: frames handed over in the turn of the loop in which they
    came, which spares a wake-up.
    """

    def push(
        self, take: Callable[[list[Frame]], None], ended: Callable[[], None], *, patient: bool
    ) -> None:
        """Instead of `receive`: call `take` with frames as they come ([] where some were lost), and
        `ended` once at the end.

        With `patient`, no more is taken in while much is queued for writing.
        """
        ...


@runtime_checkable
class Barriers(Protocol):
    """A write barrier, which a channel may offer that can tell what its peer has read."""

    def barrier(self) -> None:
        """Hold back what is sent from now on until the peer has read what was sent before.

        Costs nothing where the peer has read it already, or where nothing is sent afterwards.
        """
        ...


class Channel(Protocol):
    """A two-way stream of frames: a pipe, a socket, two queues. One task receives; any task of the
    same loop may send.

    Whoever implements it runs `interlock.testing.check_channel` over it. Frames hold no newline and
    no framing.
    """

    async def receive(self) -> list[Frame]:
        """The next frames, at least one, in order; an empty list once the peer has closed and all
        was received.
        """
        ...

    def send(self, frames: list[Frame]) -> None:
        """Queue frames to be written, in order. Never waits; what is sent after the peer has gone
        is dropped.
        """
        ...

    async def drain(self) -> None:
        """Wait until little enough is queued that more may be sent; at once where the peer has
        gone.
        """
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
        """Why frames were dropped on the way in (such as lines that were too long) since the last
        look; '' where none were.
        """
        ...


async def pump(channel: Channel, take: Callable[[list[Frame]], None], *, patient: bool) -> None:
    """Give `take` all that a channel receives until its end; with `patient` no more while much is
    queued for writing.

    `take` is called with an empty list where frames were lost without others coming.
    """
    if isinstance(channel, Pushing):
        over = asyncio.get_running_loop().create_future()
        channel.push(take, lambda: None if over.done() else over.set_result(None), patient=patient)
        await over
        return
    while frames := await channel.receive():
        take(frames)
        if patient:
            await channel.drain()
