"""All vaults behave as the one in memory does, whatever is done with them in whatever order, and
that one as a plain dictionary.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.store import MemoryVault, Vault
from interlock.testing import Clock
from tests.store.vault_makers import SHARED, fresh

KINDS = st.sampled_from(["k", "k:a", ""])
KEYS = st.sampled_from(["a", "a:a", "b", "städte"])
VALUES = st.sampled_from([b"", b"v", b"w", b"w" * 3000])
ENDS = st.none() | st.integers(-2, 6)  # seconds from now
STEPS = st.lists(
    st.tuples(st.just("put"), KINDS, KEYS, VALUES, ENDS)
    | st.tuples(st.just("add"), KINDS, KEYS, VALUES, ENDS)
    | st.tuples(st.just("swap"), KINDS, KEYS, VALUES, VALUES, ENDS)
    | st.tuples(st.sampled_from(["get", "pop", "remove"]), KINDS, KEYS)
    | st.tuples(st.just("keys"), KINDS)
    | st.tuples(st.just("wait"), st.integers(0, 3)),
    max_size=25,
)


async def do(vault: Vault, clock: Clock, step: tuple) -> object:
    """One step; an end is counted from now."""
    name, *arguments = step
    if name in ("put", "add", "swap"):
        end = arguments.pop()
        return await getattr(vault, name)(*arguments, until=None if end is None else clock() + end)
    return await getattr(vault, name)(*arguments)


class Model:
    """What a vault is, in as few words as possible."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.kept = {}

    def lives(self) -> dict:
        self.kept = {
            of: (value, end)
            for of, (value, end) in self.kept.items()
            if end is None or self.clock() < end
        }
        return self.kept

    async def get(self, kind, key):
        return self.lives().get((kind, key), (None,))[0]

    async def put(self, kind, key, value, *, until=None):
        self.lives()[kind, key] = value, until

    async def add(self, kind, key, value, *, until=None):
        free = (kind, key) not in self.lives()
        if free:
            await self.put(kind, key, value, until=until)
        return free

    async def swap(self, kind, key, was, value, *, until=None):
        same = await self.get(kind, key) == was
        if same:
            await self.put(kind, key, value, until=until)
        return same

    async def pop(self, kind, key):
        return self.lives().pop((kind, key), (None,))[0]

    async def remove(self, kind, key):
        return self.lives().pop((kind, key), None) is not None

    async def keys(self, kind):
        return sorted(key for each, key in self.lives() if each == kind)


@given(steps=STEPS)
def test_the_vault_in_memory_is_a_dictionary_with_ends(steps: list[tuple]):
    """Every answer is that of the model."""

    async def run() -> None:
        clock = Clock()
        model = Model(clock)
        vault = MemoryVault(clock=clock)
        for step in steps:
            if step[0] == "wait":
                clock.advance(step[1])
            else:
                assert await do(vault, clock, step) == await do(model, clock, step)

    asyncio.run(run())


@pytest.mark.parametrize("kind", SHARED)
def test_shared_vaults_behave_as_memory_does(kind: str, redis_url: str):
    """Every answer is the same, by whichever of two programs each step is done."""

    @settings(max_examples=15)
    @given(steps=STEPS)
    def check(steps: list[tuple]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(run(Path(folder), steps))

    async def run(folder: Path, steps: list[tuple]) -> None:
        clock = Clock()
        model = MemoryVault(clock=clock)
        vaults = fresh(kind, folder, redis_url, clock)
        for number, step in enumerate(steps):
            if step[0] == "wait":
                clock.advance(step[1])
            else:
                assert await do(vaults[number % 2], clock, step) == await do(model, clock, step)
        for vault in vaults:
            await vault.aclose()

    check()
