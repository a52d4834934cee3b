"""What every Channel must do, as a check that its author runs: order, wholeness, back-pressure and a clean end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from ..transport.channel import Channel
from ..wire.jsonrpc import Frame

MakePair = Callable[[], Awaitable[tuple[Channel, Channel]]]

_LARGE = 4 * 1024 * 1024
_MUCH = 48 * 1024 * 1024  # more than any pipe, socket or reader holds back by itself


async def check_channel(make_pair: MakePair, *, patience: float = 10.0) -> None:
    """Check that channels do what `interlock.Channel` promises; `make_pair` gives two fresh ones that are each other's peer.

    Each step waits `patience` seconds at the most. Raises AssertionError that says what is wrong.
    """
    for step in (_carries, _keeps_order, _carries_large, _survives_cancelling, _pushes_back, _ends, _outlives_its_peer):
        one, other = await make_pair()
        async with _within(patience, step.__doc__ or step.__name__):
            try:
                await step(one, other)
            finally:
                await one.aclose()
                await other.aclose()


async def _carries(one: Channel, other: Channel) -> None:
    """frames arrive as they were sent, in both directions"""
    for sender, receiver in ((one, other), (other, one)):
        for frame in (b'{"jsonrpc":"2.0"}', '{"städte":"Ürümqi 東京 \\u0000"}'.encode(), b" ", b"[]", bytes(range(32, 256))):
            sender.send([frame])
            got = await _next(receiver)
            _require(got == [frame], f"{frame!r} was sent and {got!r} arrived")
    _require(one.lost == "" and other.lost == "", f"nothing was lost, yet `lost` says {one.lost or other.lost!r}")


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
    _require(got == [large, b"after"], f"frames of {_LARGE + 2} and 5 bytes were sent, frames of {[len(f) for f in got]} arrived")


async def _survives_cancelling(one: Channel, other: Channel) -> None:
    """a `receive` that is cancelled loses nothing"""
    waiting = asyncio.create_task(other.receive())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    one.send([b"1"])
    one.send([b"2"])
    got = await _take(other, 2)
    _require(got == [b"1", b"2"], f"1 and 2 were sent after a `receive` was cancelled, and {got!r} arrived")


async def _pushes_back(one: Channel, other: Channel) -> None:
    """`send` never waits, `queued` counts what is not written, and `drain` waits until the peer has taken most of it"""
    block = b"y" * (1024 * 1024)
    count = _MUCH // len(block)
    for _ in range(count):
        one.send([block])
    _require(one.queued > 0, f"{_MUCH} bytes were sent to a peer that does not read, yet nothing is `queued`")
    draining = asyncio.create_task(_drained(one))
    await asyncio.sleep(0)
    _require(not draining.done(), f"`drain` did not wait although {one.queued} bytes are queued")
    got = await _take(other, count)
    _require(len(got) == count and all(frame == block for frame in got), "what was sent while the peer did not read arrived changed")
    await draining
    _require(one.queued < len(block), f"the peer has taken everything, yet {one.queued} bytes are `queued`")


async def _ends(one: Channel, other: Channel) -> None:
    """what was sent before closing arrives, then the end, again and again; closing twice is no fault"""
    frames = [b"z" * 100_000, b"last"]
    reading = asyncio.create_task(_take(other, 2))
    one.send(frames)
    await one.aclose()
    await one.aclose()
    got = await reading
    _require(got == frames, f"frames of {[len(f) for f in frames]} bytes were sent before closing, of {[len(f) for f in got]} arrived")
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


# -- small things ----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _within(patience: float, what: str) -> AsyncIterator[None]:
    """Turn waiting for too long, and whatever else happens, into words about the promise that was being checked."""
    limit = asyncio.timeout(patience)
    try:
        async with limit:
            yield
    except AssertionError as bad:
        raise AssertionError(f"a channel promises that {what}: {bad}") from None
    except TimeoutError as bad:
        if not limit.expired():
            raise AssertionError(f"a channel promises that {what}: it raised {bad!r}") from bad
        raise AssertionError(f"a channel promises that {what}: it still waits after {patience:g} seconds") from None
    except Exception as bad:
        raise AssertionError(f"a channel promises that {what}: it raised {bad!r}") from bad


async def _next(channel: Channel) -> list[Frame]:
    frames = await channel.receive()
    _require(frames != [], "`receive` gave an empty list, which is the end, although the peer has not closed")
    return frames


async def _take(channel: Channel, count: int) -> list[Frame]:
    """The next `count` frames, or fewer where the end comes before."""
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
