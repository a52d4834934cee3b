"""`hold_lease`: leases that are prolonged, lost, given back, and not taken for one's own.

And the vault in memory, within its bounds.
"""

from __future__ import annotations

import asyncio

import pytest

from interlock.store import MemoryVault, StoreError, hold_lease
from interlock.testing import Clock


class Watched(MemoryVault):
    """Counts the swaps, and fails where it is told to."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock=clock)
        self.swaps: asyncio.Queue[float | None] = asyncio.Queue()
        self.away = False

    async def swap(self, kind, key, was, value, *, until=None):
        self.swaps.put_nowait(until)
        if self.away:
            raise StoreError("away")
        return await super().swap(kind, key, was, value, until=until)


async def test_a_lease_is_prolonged_while_the_block_lasts():
    """Its end moves with the clock, so that nobody else comes in long after the first end.

    Afterwards nothing is left.
    """
    clock = Clock()
    vault = Watched(clock)
    async with asyncio.timeout(30):
        async with hold_lease(vault, "n", seconds=0.3, clock=clock):
            for _ in range(4):
                clock.advance(0.2)
                assert await vault.swaps.get() == pytest.approx(clock() + 0.3)
            assert not await vault.add("lease", "n", b"")
        assert await vault.keys("lease") == []


async def test_a_block_that_has_lost_its_lease_is_cancelled():
    """The vault is away, so the lease could not be prolonged: two are never inside."""
    vault = Watched(Clock())

    async def stay() -> None:
        async with hold_lease(vault, "n", seconds=0.1, clock=Clock()):
            vault.away = True
            await asyncio.Event().wait()

    async with asyncio.timeout(30) as limit:
        with pytest.raises(TimeoutError):
            await stay()
    assert not limit.expired()


async def test_only_ones_own_lease_is_given_back():
    """Who was inside for too long, and lets go late, lets go of nobody else's."""
    clock = Clock()
    vault = MemoryVault(clock=clock)
    async with hold_lease(vault, "n", clock=clock):
        clock.advance(31.0)
        assert await vault.add("lease", "n", b"another's")
    assert await vault.get("lease", "n") == b"another's"


async def test_an_error_in_the_block_gives_the_lease_back():
    """And comes out as it is."""
    vault = MemoryVault()
    with pytest.raises(KeyError):
        async with hold_lease(vault, "n"):
            raise KeyError
    assert await vault.keys("lease") == []


async def test_who_is_cancelled_while_waiting_leaves_nothing_behind():
    """Also in the moment in which the lease has been had and nobody knows yet."""

    class Slow(MemoryVault):
        async def add(self, kind, key, value, *, until=None):
            had = await super().add(kind, key, value, until=until)
            asked.set()
            await answer.wait()
            return had

    asked = asyncio.Event()
    answer = asyncio.Event()
    vault = Slow()

    async def enter() -> None:
        async with hold_lease(vault, "n"):
            raise AssertionError("nobody was to come in")

    async with asyncio.timeout(30):
        task = asyncio.create_task(enter())
        await asked.wait()
        task.cancel()
        await asyncio.sleep(0)
        answer.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await vault.keys("lease") == []


async def test_names_are_leases_of_their_own():
    """Two who want different things do not wait for each other; the pauses of who waits grow."""
    vault = MemoryVault()
    pauses = []

    async def wait(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 12:
            await inside.aclose()

    async def hold():
        async with hold_lease(vault, "n"), hold_lease(vault, "m"):
            yield

    inside = hold()
    await anext(inside)
    async with hold_lease(vault, "n", sleep=wait):
        assert len(pauses) == 12
    assert 0 < pauses[0] <= 0.01
    assert 0.125 <= pauses[-1] <= 0.25


async def test_a_vault_in_memory_is_bounded():
    """In records and in bytes; what ends makes room, and nothing is thrown out to make any."""
    clock = Clock()
    vault = MemoryVault(clock=clock, most=3, most_bytes=100)
    await vault.put("k", "a", b"v", until=clock() + 10.0)
    await vault.put("k", "b", b"v")
    await vault.put("k", "c", b"v")
    with pytest.raises(StoreError, match="3 records in 9 bytes, and at most 3 in 100"):
        await vault.add("k", "d", b"v")
    with pytest.raises(StoreError, match="the vault is full"):
        await vault.put("k", "c", b"v" * 100)
    await vault.put("k", "c", b"w" * 90)
    assert await vault.keys("k") == ["a", "b", "c"]
    clock.advance(10.0)
    assert await vault.add("k", "d", b"v")
    assert await vault.keys("k") == ["b", "c", "d"]


async def test_ends_that_no_longer_count_take_no_room():
    """A record whose end is moved ten thousand times leaves no trace of the ends it had."""
    clock = Clock()
    vault = MemoryVault(clock=clock)
    for n in range(10_000):
        await vault.put("k", "a", b"v", until=clock() + 100.0 + n)
    assert len(vault._table._ends) < 2000
    clock.advance(100.0 + 9_998.0)
    assert await vault.get("k", "a") == b"v"
    clock.advance(1.0)
    assert await vault.get("k", "a") is None
