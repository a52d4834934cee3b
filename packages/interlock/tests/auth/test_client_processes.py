"""Two programs with one vault, over real sockets: no refresh token is spent twice, no call fails,
and the end of one is not that of the other.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.auth.world import World
from tests.auth.worldly import on_loopback

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
VAULTS = ("sqlite:{folder}/vault.db", "file:{folder}/vault")


@asynccontextmanager
async def caller(
    world: World, vault: str, calls: int, at_once: int = 8, lease: float = 30.0
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program that has opened its client, and waits for a line before it calls."""
    words = [
        sys.executable,
        "-m",
        "tests.auth.caller",
        world.server,
        vault,
        str(calls),
        str(at_once),
        str(lease),
    ]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe, cwd=ROOT)
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        process._transport.close()  # type: ignore[attr-defined]  # else its pipes are left to the collector


def begin(process: asyncio.subprocess.Process) -> None:
    """Let it call."""
    assert process.stdin is not None
    process.stdin.write(b"go\n")


async def failed(process: asyncio.subprocess.Process) -> Any:
    """The calls that failed, once all are done."""
    assert process.stdout is not None
    return json.loads(await process.stdout.readline())


@pytest.mark.parametrize("vault", VAULTS)
async def test_no_refresh_token_is_spent_twice(vault: str, tmp_path: Path) -> None:
    """AUS-13: two programs make 300 calls each, while tokens are withdrawn after every 40: one
    log-in, each refresh token spent once.
    """
    async with on_loopback(clock=time.time) as world, AsyncExitStack() as stack:
        real = world._do
        count = 0

        async def do(message: Any, token: Any) -> Any:
            nonlocal count
            answer = await real(message, token)
            count += message["method"] == "tools/call"
            if count % 40 == 39:
                world.revoke()
            return answer

        world._do = do
        at = vault.format(folder=tmp_path)
        programs = [await stack.enter_async_context(caller(world, at, 300)) for _ in range(2)]
        for program in programs:
            begin(program)
        assert [await failed(program) for program in programs] == [[], []]
    assert world.calls["who"] == 600
    assert len(world.visits) == 1
    assert len(world.spent) >= 10
    assert set(world.spent.values()) == {1}
    assert not world.dead


@pytest.mark.parametrize("vault", VAULTS)
async def test_tokens_of_a_second(vault: str, tmp_path: Path) -> None:
    """AUS-13: tokens that end after a second are renewed by one of the two, and used by both."""
    async with on_loopback(clock=time.time, seconds=1) as world, AsyncExitStack() as stack:
        at = vault.format(folder=tmp_path)
        programs = [await stack.enter_async_context(caller(world, at, 100, 2)) for _ in range(2)]
        real = world._do

        async def do(message: Any, token: Any) -> Any:
            if world.calls["who"] % 50 == 49:
                left = max(one.until for one in world.tokens.values()) - time.time()
                await asyncio.sleep(max(left, 0))  # so that it does end while they call
            return await real(message, token)

        world._do = do
        for program in programs:
            begin(program)
        assert [await failed(program) for program in programs] == [[], []]
    assert world.calls["who"] == 200
    assert len(world.visits) == 1
    assert len(world.spent) >= 3
    assert set(world.spent.values()) == {1}
    assert not world.dead


@pytest.mark.parametrize("vault", VAULTS)
@pytest.mark.parametrize("arrived", [False, True])
async def test_one_is_killed_in_the_middle_of_a_refresh(
    vault: str, arrived: bool, tmp_path: Path
) -> None:
    """AUS-13: the other goes on when the lease has ended.

    Where the refresh token was spent already, by one log-in.
    """
    async with on_loopback(clock=time.time) as world, AsyncExitStack() as stack:
        at = vault.format(folder=tmp_path)
        # Only the lease of the one that is killed is short: the other needs time on a busy machine.
        one, other = [
            await stack.enter_async_context(caller(world, at, 20, lease=lease))
            for lease in (1.0, 30.0)
        ]
        world.revoke()
        gate = world.gate("/token")
        begin(one)
        await world.knocked("/token")
        one.kill()
        await one.wait()
        if not arrived:
            world.trouble["/token"] = [(503, None)]  # nobody hears it
        gate.set()
        del world.gates["/token"]
        begin(other)
        assert await failed(other) == []
    assert world.calls["who"] == 20
    assert set(world.spent.values()) == {1}
    assert len(world.visits) == (2 if arrived else 1)
    assert sum(world.dead.values()) == (1 if arrived else 0)
