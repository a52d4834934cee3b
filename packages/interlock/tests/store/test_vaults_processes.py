"""Vaults that several processes use at once: nothing is lost, nothing is had twice, and who dies
harms nobody.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import time
from collections import Counter
from pathlib import Path

import pytest

from interlock.store import FileVault, SqliteVault, Vault, hold_lease
from tests.store.vault_makers import KEY
from tests.store.vault_scripts import BUSY, FORK, FORK_BUSY, HOLDER, VISITOR, WRITER, end, start

PLACES = ("file, sealed", "sqlite")


@pytest.fixture(params=PLACES)
def place(request, tmp_path) -> tuple[str, Path, dict[str, str]]:
    """A URL, the path in it, and the variables of who uses it."""
    kind, _, sealed = request.param.partition(", ")
    path = tmp_path / "vault" / "it"
    path.parent.mkdir(mode=0o700)
    return f"{kind}://{path}", path, {"INTERLOCK_VAULT_KEY": KEY} if sealed else {}


@pytest.fixture
async def run():
    """Starts programs, and ends those that a test which has failed leaves behind."""
    started = []

    async def begin(program: str, *arguments: str, **variables: str):
        started.append(await start(program, *arguments, **variables))
        return started[-1]

    yield begin
    for process in started:
        await end(process)


def opened(place: tuple[str, Path, dict[str, str]], clock=time.time) -> Vault:
    """The vault at that place, here."""
    url, path, variables = place
    kind = FileVault if url.startswith("file") else SqliteVault
    return kind(path, key=variables.get("INTERLOCK_VAULT_KEY"), keyring=False, clock=clock)


@pytest.mark.endurance(seconds=2)
async def test_eight_processes_lose_nothing(place, run):
    """Eight add, swap and take at once: all that was added is there, no count is lost, and each
    ticket was had by one.
    """
    url, _, variables = place
    vault = opened(place)
    rounds = 12
    await vault.put("count", "", b"0")
    for n in range(rounds):
        await vault.put("ticket", str(n), b"%d" % n)
    async with asyncio.timeout(90):
        programs = [await run(BUSY, url, str(me), str(rounds), **variables) for me in range(8)]
        for program in programs:
            assert await program.stdout.readline() == b"ready\n"
        for program in programs:
            program.stdin.write(b"go\n")
        said = [json.loads(await program.stdout.readline()) for program in programs]
        assert [await program.wait() for program in programs] == [0] * 8
    assert len(await vault.keys("own")) == 8 * rounds
    assert await vault.get("count", "") == b"%d" % (8 * rounds)
    assert await vault.keys("ticket") == []
    assert Counter(ticket for _, taken in said for ticket in taken) == Counter(
        str(n) for n in range(rounds)
    )
    for n in range(rounds):
        assert [me for me, (added, _) in enumerate(said) if n in added] == [
            int(await vault.get("wanted", str(n)))
        ]
    await vault.aclose()


@pytest.mark.endurance(seconds=1)
async def test_a_killed_writer_leaves_a_whole_vault(place, run):
    """kill -9 in the middle of writing, again and again: what was said to be kept is there, nothing
    is torn, and writing goes on.
    """
    url, path, variables = place
    vault = opened(place)
    said = 0
    async with asyncio.timeout(60):
        for turn in range(4):
            program = await run(WRITER, url, **variables)
            for _ in range(2 + turn):
                said = int(await program.stdout.readline())
                long = await vault.get("n", "long")  # while it writes
                assert len(set(long.split())) == 1
                assert int(long.split()[0]) >= said
            program.kill()
            await program.wait()
            number = int(await vault.get("n", "number"))
            long = await vault.get("n", "long")
            assert number >= said
            assert long in (b"%d " % number * 5000, b"%d " % (number - 1) * 5000)
    await vault.put("n", "after", b"x")
    await vault.aclose()
    if url.startswith("sqlite"):
        with sqlite3.connect(path) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        db.close()
    else:
        assert {each.name for each in path.parent.iterdir()} == {"it", "it.lock"}


async def test_two_processes_are_never_inside_together(place, run, tmp_path):
    """Three processes and this one go in and out of one lease."""
    url, _, variables = place
    vault = opened(place)
    mark = tmp_path / "inside"
    async with asyncio.timeout(90):
        programs = [await run(VISITOR, url, str(mark), "8", **variables) for _ in range(3)]
        for program in programs:
            assert await program.stdout.readline() == b"ready\n"
            program.stdin.write(b"go\n")
        for _ in range(8):
            async with hold_lease(vault, "https://server.example"):
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
                await vault.get("k", "a")
                mark.unlink()
        for program in programs:
            assert await program.stdout.readline() == b"done\n"
            assert await program.wait() == 0
    assert await vault.keys("lease") == []
    await vault.aclose()


async def test_the_lease_of_a_killed_holder_ends(place, run):
    """Nobody comes in while the holder lives, nor right after it was killed.

    Once the lease is over, anyone does.
    """
    url, _, variables = place
    ahead = 0.0

    def clock() -> float:
        return time.time() + ahead

    vault = opened(place, clock)
    tried = 0

    async def wait(seconds: float) -> None:
        nonlocal ahead, tried
        tried += 1
        if tried == 2:
            program.kill()
            await program.wait()
        if tried == 4:
            ahead = 31.0

    async with asyncio.timeout(30):
        program = await run(HOLDER, url, **variables)
        assert await program.stdout.readline() == b"inside\n"
        async with hold_lease(vault, "https://server.example", clock=clock, sleep=wait):
            assert tried == 4
    await vault.aclose()


@pytest.mark.parametrize("program", [FORK, FORK_BUSY], ids=["idle", "busy"])
async def test_a_vault_goes_on_after_a_fork(place, run, program: str):
    """Parent and child use a vault that was in use before the fork, and one that another thread is
    using at that moment.
    """
    url, path, variables = place
    async with asyncio.timeout(60):
        assert await (await run(program, url, **variables)).wait() == 0
    if url.startswith("sqlite"):
        with sqlite3.connect(path) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        db.close()
