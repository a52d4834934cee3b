"""Contract check of a Channel: order, completeness, back-pressure and a clean end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ...transport.channel import Barriers, Channel, Pushing
from ...wire.jsonrpc import Frame
from .promises import promise_of, require, within

MakePair = Callable[[], Awaitable[tuple[Channel, Channel]]]

_BLOCK = 1024 * 1024
_LARGE = 4 * 1024 * 1024
_MUCH = 48 * 1024 * 1024  # more than the buffers of any pipe, socket or reader


async def check_channel(make_pair: MakePair, *, patience: float = 10.0) -> None:
    """Check that channels keep the contract of `interlock.Channel`.

    Args:
        make_pair: Makes two new channels that are connected to each other.
        patience: Seconds that each step waits.

    Raises:
        AssertionError: A promise is broken; the message names it.
    """
    for step in _STEPS:
        one, other = await make_pair()
        async with within(patience, "a channel", promise_of(step)):
            try:
                await step(one, other)
            finally:
                await one.aclose()
                await other.aclose()


async def _carries(one: Channel, other: Channel) -> None:
    """frames arrive unchanged in both directions"""
    for sender, receiver in ((one, other), (other, one)):
        for frame in (
            b'{"jsonrpc":"2.0"}',
            '{"städte":"Ürümqi 東京 \\u0000"}'.encode(),
            b" ",
            b"[]",
            bytes(range(32, 256)),
        ):
            sender.send([frame])
            got = await _next(receiver)
            require(got == [frame], f"{frame!r} was sent and {got!r} arrived")
    require(
        one.lost == "" and other.lost == "",
        f"nothing was lost, but `lost` is {one.lost or other.lost!r}",
    )


async def _keeps_order(one: Channel, other: Channel) -> None:
    """many frames arrive in order, without duplicates or gaps"""
    frames = [b'{"id":%d}' % n for n in range(5000)]
    one.send(frames[:1000])
    for frame in frames[1000:2000]:
        one.send([frame])
    one.send(frames[2000:])
    got = await _take(other, len(frames))
    require(got == frames, _first_difference(frames, got))


async def _carries_large(one: Channel, other: Channel) -> None:
    """a frame of four megabytes arrives whole, and before later frames"""
    large = b'"' + b"x" * _LARGE + b'"'
    one.send([large, b"after"])
    got = await _take(other, 2)
    require(
        got == [large, b"after"],
        f"frames of {_LARGE + 2} and 5 bytes were sent, frames of {[len(f) for f in got]} arrived",
    )


async def _survives_cancelling(one: Channel, other: Channel) -> None:
    """a cancelled `receive` loses no frame"""
    waiting = asyncio.create_task(other.receive())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    one.send([b"1"])
    one.send([b"2"])
    got = await _take(other, 2)
    require(
        got == [b"1", b"2"],
        f"1 and 2 were sent after a `receive` was cancelled, and {got!r} arrived",
    )


async def _pushes_back(one: Channel, other: Channel) -> None:
    """`send` never waits, `queued` counts the bytes that are not written, and `drain` waits until
    the peer has read most of them
    """
    block = b"y" * _BLOCK
    count = _MUCH // _BLOCK
    for _ in range(count):
        one.send([block])
    require(
        one.queued > 0,
        f"{_MUCH} bytes were sent to a peer that does not read, but `queued` is 0",
    )
    draining = asyncio.create_task(_drained(one))
    await asyncio.sleep(0)
    require(not draining.done(), f"`drain` did not wait although {one.queued} bytes are queued")
    got = await _take(other, count)
    require(
        len(got) == count and all(frame == block for frame in got),
        "frames that were sent while the peer did not read arrived changed",
    )
    await draining
    require(
        one.queued < len(block),
        f"the peer has read everything, but `queued` is {one.queued}",
    )


async def _ends(one: Channel, other: Channel) -> None:
    """frames sent before closing arrive, then every `receive` returns the end, and a channel can be
    closed twice
    """
    frames = [b"z" * 100_000, b"last"]
    reading = asyncio.create_task(_take(other, 2))
    one.send(frames)
    await one.aclose()
    await one.aclose()
    got = await reading
    require(
        got == frames,
        f"frames of {[len(f) for f in frames]} bytes were sent before closing, of"
        f" {[len(f) for f in got]} arrived",
    )
    for _ in range(2):
        end = await other.receive()
        require(end == [], f"the peer has closed, but `receive` returned {end!r}")


async def _outlives_its_peer(one: Channel, other: Channel) -> None:
    """after the peer has gone, `send` drops frames without an error, and `drain` returns"""
    await other.aclose()
    require(await one.receive() == [], "the peer has closed, but `receive` returned frames")
    for _ in range(3):
        one.send([b"x" * 100_000])
        await one.drain()
        await asyncio.sleep(0)
    await one.aclose()
    one.send([b"into the void"])
    await one.drain()


async def _holds_back(one: Channel, other: Channel) -> None:
    """a channel with barriers sends the frames before and after a barrier in order"""
    if not isinstance(one, Barriers):
        return
    frames = [b"%d" % n for n in range(20)]
    for frame in frames:
        one.send([frame])
        one.barrier()
    await _turns()
    got = await _take(other, len(frames))
    require(got == frames, _first_difference(frames, got))


async def _pushes(one: Channel, other: Channel) -> None:
    """a channel that pushes passes on all frames in order, including earlier ones, and reports the
    end once
    """
    if not isinstance(other, Pushing):
        return
    early = [b"%d" % n + b"y" * _BLOCK for n in range(12)]
    late = [b"%d" % n for n in range(100)]
    one.send(early)
    await _turns()
    pushed = _PushedFrames(other, patient=False)
    one.send(late)
    got = await pushed.frames(len(early) + len(late))
    require(
        got == early + late,
        f"{len(early) + len(late)} frames were sent, and {len(got)} were pushed, or in another"
        " order",
    )
    await one.aclose()
    await pushed.end()
    await _turns()
    require(pushed.ends == 1, f"the end was reported {pushed.ends} times")


async def _pushes_patiently(one: Channel, other: Channel) -> None:
    """a channel that pushes patiently stops reading while much is queued, then continues, and still
    reports that the peer has gone
    """
    if not isinstance(other, Pushing):
        return
    count = _MUCH // _BLOCK
    pushed = _PushedFrames(
        other,
        patient=True,
        on_frame=lambda frame: other.send([b"y" * _BLOCK] * count if frame == b"much" else []),
    )
    one.send([b"much"])
    await pushed.frames(1)
    one.send([b"more"])
    await _turns()
    require(len(pushed.got) == 1, f"{other.queued} bytes are queued, but more frames were read")
    await _take(one, count)
    got = await pushed.frames(2)
    require(
        got == [b"much", b"more"],
        "frames that waited while much was queued were not read afterwards",
    )
    one.send([b"much"])
    await pushed.frames(3)
    await one.aclose()
    await pushed.end()


# -- helpers --------------------------------------------------------------------------------------


class _PushedFrames:
    """Collects the frames that a channel pushes."""

    def __init__(
        self,
        channel: Pushing,
        *,
        patient: bool,
        on_frame: Callable[[Frame], None] = lambda frame: None,
    ) -> None:
        self.got: list[Frame] = []
        self.ends = 0
        self._on_frame = on_frame
        self._woken = asyncio.Event()
        channel.push(self._take, self._end, patient=patient)

    async def frames(self, count: int) -> list[Frame]:
        while len(self.got) < count and not self.ends:
            self._woken.clear()
            await self._woken.wait()
        return self.got

    async def end(self) -> None:
        while not self.ends:
            self._woken.clear()
            await self._woken.wait()

    def _take(self, frames: list[Frame]) -> None:
        self.got += frames
        for frame in frames:
            self._on_frame(frame)
        self._woken.set()

    def _end(self) -> None:
        self.ends += 1
        self._woken.set()


async def _turns() -> None:
    """Run the event loop a few times, which is enough for ready callbacks."""
    for _ in range(50):
        await asyncio.sleep(0)


async def _next(channel: Channel) -> list[Frame]:
    frames = await channel.receive()
    require(
        frames != [],
        "`receive` returned the end (an empty list) although the peer has not closed",
    )
    return frames


async def _take(channel: Channel, count: int) -> list[Frame]:
    """The next `count` frames, or fewer at the end."""
    taken: list[Frame] = []
    while len(taken) < count and (frames := await channel.receive()):
        taken += frames
    return taken


async def _drained(channel: Channel) -> None:
    await channel.drain()


def _first_difference(sent: list[Frame], got: list[Frame]) -> str:
    for index, (one, other) in enumerate(zip(sent, got, strict=False)):
        if one != other:
            return f"frame {index} was sent as {one!r} and arrived as {other!r}"
    return f"{len(sent)} frames were sent and {len(got)} arrived"


_STEPS = (
    _carries,
    _keeps_order,
    _carries_large,
    _survives_cancelling,
    _pushes_back,
    _ends,
    _outlives_its_peer,
    _holds_back,
    _pushes,
    _pushes_patiently,
)
