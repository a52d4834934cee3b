"""Every channel of the house passes the contract check, and the check catches channels that break a
promise.
"""

from __future__ import annotations

import asyncio

import pytest

from interlock.tape import Tape, Taped
from interlock.testing import MemoryChannel, channel_pair, check_channel
from interlock.transport.pipes import PipeChannel, ThreadChannel
from tests.contracts.makers import Pair, addresses, meeting, over_pipes, over_socketpair


class Pushy(MemoryChannel):
    """One that pushes, too."""

    def push(self, take, ended, *, patient):
        """Instead of `receive`."""
        self.pushing = asyncio.create_task(self.pump(take, ended, patient))

    async def pump(self, take, ended, patient):
        """Push until the end."""
        while frames := await self.receive():
            take(frames)
            if patient:
                await self.drain()
        ended()


def joined(kind: type[MemoryChannel]) -> Pair:
    """Two channels of a kind that are each other's peer."""
    one = kind()
    other = kind()
    one._peer = other
    other._peer = one
    return one, other


PAIRS = {
    "memory": channel_pair,
    "memory that pushes": lambda: joined(Pushy),
    "pipes": lambda: over_pipes(PipeChannel),
    "pipes with threads": lambda: over_pipes(ThreadChannel),
    "socketpair": lambda: over_socketpair(PipeChannel),
    "taped": lambda: tuple(Taped(channel, Tape().record) for channel in channel_pair()),
}


@pytest.mark.parametrize("kind", PAIRS)
async def test_channels_keep_their_promises(kind: str):
    """In memory, over pipes with and without threads, over sockets, and through a tape."""

    async def make() -> Pair:
        return PAIRS[kind]()  # type: ignore[return-value]  # a table of pairs

    await check_channel(make)


@pytest.mark.parametrize("kind", ["unix", "tcp"])
async def test_line_sockets_keep_their_promises(kind: str, tmp_path):
    """The worked examples of a custom transport: lines over Unix and TCP sockets (`RPC-30`,
    `RPC-33`).
    """
    async with meeting(addresses(tmp_path)[kind]) as place:
        await check_channel(place.pair)


# -- a check that cannot fail shows nothing -------------------------------------------------------


class Dropping(MemoryChannel):
    """Loses every thousandth frame."""

    count = 0

    def send(self, frames):
        """Send most of them."""
        for frame in frames:
            self.count += 1
            if self.count % 1000:
                super().send([frame])


class Swapping(MemoryChannel):
    """Sends the frames of one call in the wrong order."""

    def send(self, frames):
        """Send them backwards."""
        super().send(frames[::-1])


class Doubling(MemoryChannel):
    """Sends a frame twice when it is the only one."""

    def send(self, frames):
        """Send them, perhaps twice."""
        super().send(frames * 2 if len(frames) == 1 and frames[0].startswith(b'{"id"') else frames)


class Cutting(MemoryChannel):
    """Takes long frames for two."""

    def send(self, frames):
        """Cut at a megabyte."""
        limit = 1024 * 1024
        super().send(
            [frame[at : at + limit] for frame in frames for at in range(0, len(frame), limit)]
        )


class Recoding(MemoryChannel):
    """Thinks that frames are text in an old encoding."""

    def send(self, frames):
        """Send what is left of them."""
        super().send([frame.decode("ascii", "replace").encode("utf-8") for frame in frames])


class Unlimited(MemoryChannel):
    """Has no back-pressure: `drain` never waits."""

    async def drain(self):
        """Never waits."""


class Uncounted(MemoryChannel):
    """Does not say how much is queued."""

    def send(self, frames):
        """Send without counting."""
        super().send(frames)
        self.queued = 0


class Forgetful(MemoryChannel):
    """Throws away what was sent when it closes."""

    async def aclose(self):
        """Close at once."""
        self._peer._arrived.clear()
        await super().aclose()


class Endless(MemoryChannel):
    """Never says that the peer has gone."""

    async def receive(self):
        """Waits for ever at the end."""
        return await super().receive() or await asyncio.Event().wait()


class Raising(MemoryChannel):
    """Raises where the peer has gone."""

    def send(self, frames):
        """Send, or raise."""
        if self._closed or self._peer._closed:
            raise BrokenPipeError
        super().send(frames)


class Closing(MemoryChannel):
    """Cannot be closed twice."""

    async def aclose(self):
        """Close once."""
        if self._closed:
            raise RuntimeError("closed already")
        await super().aclose()


class Losing(MemoryChannel):
    """Loses what comes right after a `receive` was cancelled."""

    lose = False

    async def receive(self):
        """Receive, or note that nobody did."""
        try:
            frames = await super().receive()
        except asyncio.CancelledError:
            self.lose = True
            raise
        if self.lose and frames:
            self.lose = False
            frames = frames[1:]
        return frames or await super().receive()


class Eager(Pushy):
    """Has no patience."""

    def push(self, take, ended, *, patient):
        """Push whatever comes."""
        super().push(take, ended, patient=False)


class Late(Pushy):
    """Forgets what came before."""

    def push(self, take, ended, *, patient):
        """Push what comes from now on."""
        self._arrived.clear()
        super().push(take, ended, patient=patient)


class Silent(Pushy):
    """Never tells the end."""

    def push(self, take, ended, *, patient):
        """Push, and say no more."""
        super().push(take, lambda: None, patient=patient)


class Insistent(Pushy):
    """Tells the end twice."""

    def push(self, take, ended, *, patient):
        """Push, and say so, and say so again."""
        super().push(take, lambda: (ended(), ended()), patient=patient)


class Sulking(Pushy):
    """Does not go on once it has paused."""

    async def pump(self, take, ended, patient):
        """Push until much is queued."""
        while frames := await self.receive():
            take(frames)
            if patient and self.queued > 1024 * 1024:
                await asyncio.Event().wait()
        ended()


class Crying(MemoryChannel):
    """Says that something was lost although nothing was."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = "a line of more than 10 bytes was dropped"


BROKEN = {
    Dropping: "in order",
    Swapping: "in order",
    Doubling: "in order",
    Cutting: "four megabytes",
    Recoding: "arrive unchanged",
    Unlimited: "`drain` did not wait",
    Uncounted: "`queued` is 0",
    Forgetful: "frames sent before closing arrive",
    Endless: "then every `receive` returns the end",
    Raising: "drops frames without an error",
    Closing: "can be closed twice",
    Losing: "a cancelled `receive` loses no frame",
    Eager: "more frames were read",
    Late: "all frames in order, including earlier ones",
    Silent: "reports the end once: it still waits",
    Insistent: "the end was reported 2 times",
    Sulking: "then continues",
    Crying: "but `lost` is",
}


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
async def test_broken_channels_are_caught(kind: type[MemoryChannel]):
    """Each promise that is broken is the one that the error names."""

    async def make() -> Pair:
        return joined(kind)

    with pytest.raises(AssertionError, match=BROKEN[kind]):
        await check_channel(make, patience=0.5)
