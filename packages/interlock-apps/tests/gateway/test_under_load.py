"""The gateway under load: killed workers and servers, reloads, and clients that come and go."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from interlock import Client, InterlockError
from interlock.wire.revisions import R4, R5
from tests.gateway.running import RunningGateway, gateway

pytestmark = pytest.mark.slow

SMALL = Path(__file__).with_name("behind_stdio.py")
SOAK = 1800.0  # seconds in the endurance suite
REVISIONS = (R4, R5)


def settings(*more: str, lines: str = "") -> str:
    """The settings of a gateway before a small server, which each user has, and a shared one."""
    command = json.dumps([sys.executable, str(SMALL)])
    return "\n".join(
        (
            f"[servers.shared]\ncommand = {command}",
            f'[servers.own]\ncommand = {command}\nshared = false\nidle = "2s"\nmost = 5',
            '[policy]\nlock = ""',
            f'[audit]\nfile = "audit.jsonl"\n{lines}',
            *more,
        )
    )


class Load:
    """Clients that call without a pause, and what became of their calls."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.over = False

    async def client(self, open_client: Callable[[], Client], number: int) -> None:
        """Connect, call ten times, and come again."""
        count = 0
        while not self.over:
            try:
                async with open_client() as client:
                    for _ in range(10):
                        count += 1
                        await self.call(client, f"{number}-{count}")
            except (InterlockError, OSError) as bad:
                self.outcomes[type(bad).__name__] += 1
                await asyncio.sleep(0.05)  # a gateway without a worker refuses at once

    async def call(self, client: Client, text: str) -> None:
        """Make one call. A wrong answer is worse than none."""
        server = "own" if text.endswith("0") else "shared"
        try:
            result = await client.call_tool(f"{server}__echo", {"text": text})
        except (InterlockError, OSError) as bad:
            self.outcomes[type(bad).__name__] += 1
            return
        if result.is_error:
            self.outcomes["tool error"] += 1
        elif result.text != text:
            self.wrong.append(f"{text} got {result.text}")
        else:
            self.outcomes["ok"] += 1


async def loaded(
    made: RunningGateway, clients: int, meanwhile: Callable[[Load], Awaitable[None]]
) -> Load:
    """Run clients until a function has ended."""
    load = Load()

    def open_client(number: int) -> Callable[[], Client]:
        return lambda: made.client(revision=REVISIONS[number % 2], timeout=30)

    work = [asyncio.create_task(load.client(open_client(n), n)) for n in range(clients)]
    try:
        await meanwhile(load)
    finally:
        load.over = True
        ended = await asyncio.gather(*work, return_exceptions=True)
    for each in ended:
        if isinstance(each, BaseException):
            raise each
    return load


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  # of other processes
            await asyncio.sleep(0.02)


async def processes(made: RunningGateway) -> list[int]:
    """The processes that serve."""
    found = await asyncio.to_thread(made.command, "status", "--json")
    return [state["pid"] for state in json.loads(found.stdout or "[]")]


def children(pid: int) -> list[int]:
    """The children of a process."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(each) for each in path.read_text().split()]
    return found


def descendants(pid: int) -> list[int]:
    """A process, and all that it has started."""
    return [pid, *(each for child in children(pid) for each in descendants(child))]


def usage(pid: int) -> tuple[int, int, int]:
    """The processes of a gateway, the descriptors of its own, and their memory in KiB."""
    every = descendants(pid)
    descriptors = memory = 0
    for each in every:
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{each}/cmdline").read_bytes()
            if str(SMALL).encode() in command:
                continue  # a server: it counts as a process only
            descriptors += len(os.listdir(f"/proc/{each}/fd"))
            lines = Path(f"/proc/{each}/status").read_text().splitlines()
            memory += sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    return len(every), descriptors, memory


# -- reload ----------------------------------------------------------------------------------------


async def reloaded(folder: Path, times: int) -> Load:
    """Reload a gateway again and again while clients call."""
    extra = f"[servers.extra]\ncommand = {json.dumps([sys.executable, str(SMALL)])}"
    async with gateway(folder, settings()) as made:

        async def meanwhile(load: Load) -> None:
            await until(lambda: load.outcomes["ok"] > 20)
            for number in range(times):
                more = [extra] if number % 2 else []
                lines = "arguments = true" if number % 3 else ""
                text = settings(*more, lines=lines)
                (folder / "gateway.toml").write_text(text, encoding="utf-8")
                before = load.outcomes["ok"]
                done = await asyncio.to_thread(made.command, "reload")
                assert done.returncode == 0, done.stderr
                await until(lambda before=before: load.outcomes["ok"] > before + 20)  # type: ignore[misc]  # bound now

        return await loaded(made, 4, meanwhile)


async def test_a_reload_drops_no_call(tmp_path: Path) -> None:
    """Servers come and go, and the others' calls go on."""
    load = await reloaded(tmp_path, 2)
    assert load.wrong == []
    assert set(load.outcomes) == {"ok"}, load.outcomes


@pytest.mark.endurance(seconds=60)
async def test_many_reloads_drop_no_call(tmp_path: Path) -> None:
    load = await reloaded(tmp_path, 60)
    assert load.wrong == []
    assert set(load.outcomes) == {"ok"}, load.outcomes


# -- kills -----------------------------------------------------------------------------------------


async def killed(folder: Path, times: int, seed: int) -> Load:
    """Kill workers and servers of a gateway while clients call."""
    chance = random.Random(seed)
    store = f"sqlite:///{folder / 'store.db'}"
    options = ("--workers", "2", "--store", store)
    async with gateway(folder, settings(), *options) as made:

        async def meanwhile(load: Load) -> None:
            await until(lambda: load.outcomes["ok"] > 20)
            for _ in range(times):
                workers = await processes(made)
                servers = [each for worker in workers for each in children(worker)]
                victim = chance.choice([chance.choice(workers), *servers[:1]])
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)  # started by this test
                before = load.outcomes["ok"]
                await until(lambda before=before: load.outcomes["ok"] > before + 50)  # type: ignore[misc]  # bound now

        load = await loaded(made, 4, meanwhile)
        # All is well again: a call of each server, at each worker.
        for _ in range(6):
            async with made.client(timeout=30) as client:
                for server in ("shared", "own"):
                    result = await client.call_tool(f"{server}__echo", {"text": "x"})
                    assert result.text == "x"
        return load


async def test_killed_workers_and_servers_are_replaced(tmp_path: Path) -> None:
    """Every call ends, with its own answer or an error, and most with the answer."""
    load = await killed(tmp_path, 1, 1)
    assert load.wrong == []
    assert load.outcomes["ok"] > 100


@pytest.mark.endurance(seconds=90)
async def test_a_series_of_kills(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    load = await killed(tmp_path, 40, pytestconfig.option.seed)
    assert load.wrong == []
    failed = load.outcomes.total() - load.outcomes["ok"]
    assert failed < load.outcomes["ok"], load.outcomes


# -- a soak ----------------------------------------------------------------------------------------


async def soak(folder: Path, seconds: float) -> list[tuple[int, int, int]]:
    """Let clients come and go, and look at the gateway's use of the machine now and then."""
    looks: list[tuple[int, int, int]] = []
    async with gateway(folder, settings()) as made:

        async def meanwhile(load: Load) -> None:
            await until(lambda: load.outcomes["ok"] > 200)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                looks.append(await asyncio.to_thread(usage, made.process.pid))
                before = load.outcomes["ok"]
                pause = min(5.0, seconds / 10)
                await asyncio.sleep(pause)
                assert load.outcomes["ok"] > before, "no call has ended"

        load = await loaded(made, 8, meanwhile)
        assert load.wrong == []
        assert set(load.outcomes) == {"ok"}, load.outcomes
    return looks


@pytest.mark.endurance(seconds=SOAK)
async def test_clients_come_and_go_for_half_an_hour(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Processes, descriptors and memory stay flat; for what is left of `--duration`, if less."""
    end = pytestconfig.option.until
    seconds = SOAK if end is None else min(SOAK, max(20.0, end - time.time()))
    looks = await soak(tmp_path, seconds)
    settled = looks[len(looks) // 5 :]
    half = len(settled) // 2
    first = [max(column) for column in zip(*settled[:half], strict=True)]
    last = [max(column) for column in zip(*settled[half:], strict=True)]
    assert last[0] <= first[0] + 1, f"processes: {first[0]}, then {last[0]}"
    assert last[1] <= first[1] + 10, f"descriptors: {first[1]}, then {last[1]}"
    assert last[2] <= first[2] * 1.1 + 4096, f"memory in KiB: {first[2]}, then {last[2]}"
