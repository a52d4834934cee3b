"""Contract check of a Channel: order, completeness, back-pressure and a clean end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from ...transport.channel import Barriers, Channel, Pushing
from ...wire.jsonrpc import Frame
from .promises import promise_of

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
        async with _within(patience, promise_of(step)):
            try:
                await step(one, other)
            finally:
                await one.aclose()
                await other.aclose()


async def _carries(one: Channel, other: Channel) -> None:
    """frames arrive as they were sent, in both directions"""
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
            _require(got == [frame], f"{frame!r} was sent and {got!r} arrived")
    _require(
        one.lost == "" and other.lost == "",
        f"nothing was lost, yet `lost` says {one.lost or other.lost!r}",
    )


async def _keeps_order(one: Channel, other: Channel) -> None:
    """many frames arrive in order, none twice and none missing"""
    frames = [b'{"id":%d}' % n for n in range(5000)]
    one.send(frames[:1000])
    for frame in frames[1000:2000]:
        one.send([frame])
    one.send(frames[2000:])
    got = await _take(other, len(frames))
    _require(got == frames, _first_difference(frames, got))


async def _carries_large(one: Channel, other: Channel) -> None:
    """a frame of four megabytes arrives whole, and what follows it comes after it"""
    large = b'"' + b"x" * _LARGE + b'"'
    one.send([large, b"after"])
    got = await _take(other, 2)
    _require(
        got == [large, b"after"],
        f"frames of {_LARGE + 2} and 5 bytes were sent, frames of {[len(f) for f in got]} arrived",
    )


async def _survives_cancelling(one: Channel, other: Channel) -> None:
    """a `receive` that is cancelled loses nothing"""
    waiting = asyncio.create_task(other.receive())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    one.send([b"1"])
    one.send([b"2"])
    got = await _take(other, 2)
    _require(
        got == [b"1", b"2"],
        f"1 and 2 were sent after a `receive` was cancelled, and {got!r} arrived",
    )


async def _pushes_back(one: Channel, other: Channel) -> None:
    """`send` never waits, `queued` counts what is not written, and `drain` waits until the peer has
    taken most of it
    """
    block = b"y" * _BLOCK
    count = _MUCH // _BLOCK
    for _ in range(count):
        one.send([block])
    _require(
        one.queued > 0,
        f"{_MUCH} bytes were sent to a peer that does not read, yet nothing is `queued`",
    )
    draining = asyncio.create_task(_drained(one))
    await asyncio.sleep(0)
    _require(not draining.done(), f"`drain` did not wait although {one.queued} bytes are queued")
    got = await _take(other, count)
    _require(
        len(got) == count and all(frame == block for frame in got),
        "what was sent while the peer did not read arrived changed",
    )
    await draining
    _require(
        one.queued < len(block),
        f"the peer has taken everything, yet {one.queued} bytes are `queued`",
    )


async def _ends(one: Channel, other: Channel) -> None:
    """what was sent before closing arrives, then the end, again and again; closing twice is no
    fault
    """
    frames = [b"z" * 100_000, b"last"]
    reading = asyncio.create_task(_take(other, 2))
    one.send(frames)
    await one.aclose()
    await one.aclose()
    got = await reading
    _require(
        got == frames,
        f"frames of {[len(f) for f in frames]} bytes were sent before closing, of"
        f" {[len(f) for f in got]} arrived",
    )
    for _ in range(2):
        end = await other.receive()
        _require(end == [], f"the peer has closed, yet `receive` gave {end!r}")


async def _outlives_its_peer(one: Channel, other: Channel) -> None:
    """once the peer has gone `send` drops what it is given without a fault, and `drain` returns"""
    await other.aclose()
    _require(await one.receive() == [], "the peer has closed, yet `receive` gave frames")
    for _ in range(3):
        one.send([b"x" * 100_000])
        await one.drain()
        await asyncio.sleep(0)
    await one.aclose()
    one.send([b"into the void"])
    await one.drain()


async def _holds_back(one: Channel, other: Channel) -> None:
    """one that has barriers sends everything in order, before and behind them"""
    if not isinstance(one, Barriers):
        return
    frames = [b"%d" % n for n in range(20)]
    for frame in frames:
        one.send([frame])
        one.barrier()
    await _turns()
    got = await _take(other, len(frames))
    _require(got == frames, _first_difference(frames, got))


async def _pushes(one: Channel, other: Channel) -> None:
    """one that pushes gives all frames in order, those too that came before, and tells the
    end once
    """
    if not isinstance(other, Pushing):
        return
    early = [b"%d" % n + b"y" * _BLOCK for n in range(12)]
    late = [b"%d" % n for n in range(100)]
    one.send(early)
    await _turns()
    heard = _Heard(other, patient=False)
    one.send(late)
    got = await heard.frames(len(early) + len(late))
    _require(
        got == early + late,
        f"{len(early) + len(late)} frames were sent and {len(got)} were pushed, or in another"
        " order",
    )
    await one.aclose()
    await heard.end()
    await _turns()
    _require(heard.ends == 1, f"the end was told {heard.ends} times")


async def _pushes_patiently(one: Channel, other: Channel) -> None:
    """one that pushes patiently takes in no more while much is queued, then goes on, and hears that
    the peer has gone all the same
    """
    if not isinstance(other, Pushing):
        return
    count = _MUCH // _BLOCK
    heard = _Heard(
        other,
        patient=True,
        on_frame=lambda frame: other.send([b"y" * _BLOCK] * count if frame == b"much" else []),
    )
    one.send([b"much"])
    await heard.frames(1)
    one.send([b"more"])
    await _turns()
    _require(len(heard.got) == 1, f"{other.queued} bytes are queued, yet more was taken in")
    await _take(one, count)
    got = await heard.frames(2)
    _require(
        got == [b"much", b"more"],
        "what was left lying while much was queued was not taken in after",
    )
    one.send([b"much"])
    await heard.frames(3)
    await one.aclose()
    await heard.end()


# -- helpers --------------------------------------------------------------------------------------


@asynccontextmanager
async def _within(patience: float, what: str) -> AsyncIterator[None]:
    """Convert a timeout, or any other error, to a message about the promise that is being
    checked.
    """
    limit = asyncio.timeout(patience)
    try:
        async with limit:
            yield
    except AssertionError as bad:
        raise AssertionError(f"a channel promises that {what}: {bad}") from None
    except TimeoutError as bad:
        if not limit.expired():
            raise AssertionError(f"a channel promises that {what}: it raised {bad!r}") from bad
        raise AssertionError(
            f"a channel promises that {what}: it still waits after {patience:g} seconds"
        ) from None
    except Exception as bad:
        raise AssertionError(f"a channel promises that {what}: it raised {bad!r}") from bad


class _Heard:
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
        self._stirred = asyncio.Event()
        channel.push(self._take, self._end, patient=patient)

    async def frames(self, count: int) -> list[Frame]:
        while len(self.got) < count and not self.ends:
            self._stirred.clear()
            await self._stirred.wait()
        return self.got

    async def end(self) -> None:
        while not self.ends:
            self._stirred.clear()
            await self._stirred.wait()

    def _take(self, frames: list[Frame]) -> None:
        self.got += frames
        for frame in frames:
            self._on_frame(frame)
        self._stirred.set()

    def _end(self) -> None:
        self.ends += 1
        self._stirred.set()


async def _turns() -> None:
    """Run the event loop a few times, which is enough for ready callbacks."""
    for _ in range(50):
        await asyncio.sleep(0)


async def _next(channel: Channel) -> list[Frame]:
    frames = await channel.receive()
    _require(
        frames != [],
        "`receive` gave an empty list, which is the end, although the peer has not closed",
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


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


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
