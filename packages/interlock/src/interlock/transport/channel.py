"""The channel: the small interface of a custom transport of frames, for servers and for clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from ..wire.jsonrpc import Frame

Tap = Callable[[str, Frame], None]
"""Called with every frame that passes, and with "client" or "server" as its sender. It must not
raise.
"""


@runtime_checkable
class Tapped(Protocol):
    """A transport whose messages can be recorded. Set the tap before the transport is opened."""

    tap: Tap | None


class MessageRecorder(Protocol):
    """Records connections, such as `interlock.tape.Recorder`."""

    def connection(self) -> Tap:
        """Start to record a connection of a client. Return its tap."""
        ...

    def channel(self, channel: Channel) -> Channel:
        """Return a channel of a server whose messages are recorded."""
        ...

    def endpoint(self, app: Any) -> Any:
        """Return an HTTP endpoint, an ASGI app, whose exchanges are recorded."""
        ...


@runtime_checkable
class Pushing(Protocol):
    """An optional part of a channel: it delivers frames in the turn of the event loop in which they
    arrive, which saves a wake-up.
    """

    def push(
        self, take: Callable[[list[Frame]], None], ended: Callable[[], None], *, patient: bool
    ) -> None:
        """Deliver frames by callback instead of `receive`.

        `take` is called with frames as they arrive, and with [] if some were lost. `ended` is
        called once at the end. With `patient`, reading pauses while the write queue is long.
        """
        ...


@runtime_checkable
class Barriers(Protocol):
    """An optional part of a channel: a write barrier, for channels that know what the peer has
    read.
    """

    def barrier(self) -> None:
        """Hold back all later frames until the peer has read the earlier ones.

        It costs nothing if the peer has read them already, or if nothing is sent afterwards.
        """
        ...


class Channel(Protocol):
    """A two-way stream of frames: a pipe, a socket, two queues. One task receives; any task of the
    same event loop may send.

    Test your implementation with `interlock.testing.check_channel`. Frames contain neither newlines
    nor framing.
    """

    async def receive(self) -> list[Frame]:
        """Return the next frames in order, at least one; an empty list at the end, when the peer
        has closed.
        """
        ...

    def send(self, frames: list[Frame]) -> None:
        """Queue frames for writing, in order. It never waits. If the peer is gone, frames are
        dropped.
        """
        ...

    async def drain(self) -> None:
        """Wait until the queue is short enough to send more. Return at once if the peer is gone."""
        ...

    async def aclose(self) -> None:
        """Write queued frames as far as the peer reads them, then close. You can call it twice."""
        ...

    @property
    def queued(self) -> int:
        """The number of bytes that are queued for writing."""
        ...

    @property
    def lost(self) -> str:
        """Why received frames were dropped since the last access, such as lines that were too long;
        "" if none were.
        """
        ...


async def pump(channel: Channel, take: Callable[[list[Frame]], None], *, patient: bool) -> None:
    """Pass all frames of a channel to `take` until the channel ends. With `patient`, pause reading
    while the write queue is long.

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
