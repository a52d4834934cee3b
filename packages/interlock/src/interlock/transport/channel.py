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
    """An optional part of a channel: it delivers frames in the loop iteration in which they arrive,
    which saves a wake-up.
    """

    def push(
        self, take: Callable[[list[Frame]], None], ended: Callable[[], None], *, patient: bool
    ) -> None:
        """Deliver frames by callback instead of `receive`.

        `take` is called with frames as they arrive, and with [] if some were lost; `ended` is
        called once at the end. With `patient`, nothing more is read while much is queued for
        writing.
        """
        ...


@runtime_checkable
class Barriers(Protocol):
    """An optional part of a channel: a write barrier, for channels that can find out what the peer
    has read.
    """

    def barrier(self) -> None:
        """Hold back all later frames until the peer has read the earlier ones.

        It costs nothing if the peer has read them already, or if nothing is sent afterwards.
        """
        ...


class Channel(Protocol):
    """A two-way stream of frames: a pipe, a socket, two queues. One task receives; any task of the
    same loop may send.

    Test an implementation with `interlock.testing.check_channel`. Frames contain neither newlines
    nor framing.
    """

    async def receive(self) -> list[Frame]:
        """Return the next frames in order, at least one; an empty list after the last frame of a
        peer that has closed.
        """
        ...

    def send(self, frames: list[Frame]) -> None:
        """Queue frames for writing, in order. It never waits. Frames for a peer that has gone are
        dropped.
        """
        ...

    async def drain(self) -> None:
        """Wait until the queue is short enough to send more; return at once if the peer has
        gone.
        """
        ...

    async def aclose(self) -> None:
        """Write queued frames as far as the peer reads them, then close. It can be called twice."""
        ...

    @property
    def queued(self) -> int:
        """Bytes that are queued for writing."""
        ...

    @property
    def lost(self) -> str:
        """Why received frames were dropped (such as lines that were too long) since the last
        access; "" if none were.
        """
        ...


async def pump(channel: Channel, take: Callable[[list[Frame]], None], *, patient: bool) -> None:
    """Pass all frames of a channel to `take` until the channel ends; with `patient`, read nothing
    more while much is queued for writing.

    `take` gets an empty list if frames were lost and no others arrived.
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
