"""A confirmed action is started once, over all workers: however often its retry is sent, and
whichever worker is killed meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from interlock import Client, InputRequiredResult, McpError, Unreachable
from interlock import types as t
from interlock.exchange import Caller, Exchange, RawResult
from interlock.wire.revisions import R5
from tests.workers.clusters import Cluster, Program, marks

ASKED = Caller(R5, t.ClientCapabilities(elicitation=t.ElicitationCapability(form={})))
YES = Raw(b'{"action":"accept","content":{"confirm":true}}')
IN_DOUBT = "may have happened"


def call(name: str, asked: InputRequiredResult | None = None) -> Exchange:
    """A call of `act`, or its retry with a yes."""
    answers = None
    if asked is not None:
        answers = dict.fromkeys(asked.input_requests or {}, YES)
    params = t.CallToolRequestParams(
        name="act",
        arguments=Raw(b'{"name":"%b"}' % name.encode()),
        input_responses=answers,
        request_state=None if asked is None else asked.request_state,
    )
    return Exchange("tools/call", params, ASKED)


class Workers:
    """The workers of a series, and a transport to each; one that has died is started again."""

    def __init__(self, folder: Path, count: int, rng: random.Random, **options: Any) -> None:
        self.folder = folder
        self.rng = rng
        self.options = options
        self.programs = [self.start(die=self.point()) for _ in range(count)]
        self.restarts = 0
        self.over = asyncio.Event()

    def point(self) -> list[Any]:
        """Where a worker is to kill itself: before or after one of its next writes."""
        return [self.rng.randint(1, 60), self.rng.choice(["before", "after"])]

    def start(self, **more: Any) -> Program:
        """One more worker."""
        return Program(self.folder, **self.options, **more).ready()

    async def send(self, exchange: Exchange) -> Any:
        """Send a request to any worker until one of them answers."""
        while True:
            program = self.rng.choice(self.programs)
            with contextlib.suppress(Unreachable):
                async with Client(program.url, revision=R5, elicit=print) as client:
                    try:
                        return await client._transport(exchange)
                    except McpError as bad:
                        if (bad.data or {}).get("reason") not in ("store", "shutdown"):
                            raise
            await asyncio.sleep(0.05)  # the worker has gone; another one may take its place

    async def revive(self, kills: int) -> None:
        """Kill a worker now and then, and start those again that have died, until the end."""
        while not self.over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.over.wait(), self.rng.uniform(0.1, 0.6))
            if kills and self.rng.random() < 0.5:
                kills -= 1
                self.rng.choice(self.programs).process.kill()
            for place, program in enumerate(self.programs):
                if program.process.poll() is not None:
                    self.restarts += 1
                    program.close()
                    more = {"die": self.point()} if kills else {}
                    self.programs[place] = await asyncio.to_thread(self.start, **more)

    def close(self) -> None:
        """See to it that nothing is left of them."""
        for program in self.programs:
            program.close()


async def confirm(workers: Workers, name: str, times: int) -> set[str]:
    """Confirm one action, with a retry that is sent so many times; how the retries ended."""
    asked = await workers.send(call(name))
    assert isinstance(asked, InputRequiredResult)

    async def retry() -> str:
        await asyncio.sleep(workers.rng.random() * 0.2)
        try:
            result = await workers.send(call(name, asked))
        except McpError as bad:
            assert (bad.data or {}).get("reason") == "may_have_happened", bad
            return IN_DOUBT
        if isinstance(result, RawResult):
            result = result.decode()
        return str(result.text)

    return set(await asyncio.gather(*(retry() for _ in range(times))))


@asynccontextmanager
async def series(
    folder: Path, count: int, store: str, seed: int, kills: int
) -> AsyncIterator[Workers]:
    """Workers that are killed and started again."""
    workers = Workers(folder, count, random.Random(seed), store=store)
    reviving = asyncio.create_task(workers.revive(kills))
    try:
        yield workers
    finally:
        workers.over.set()
        await reviving
        workers.close()


async def run_series(
    folder: Path, count: int, store: str, *, seed: int, confirmations: int, kills: int
) -> Counter[str]:
    """Confirm so many actions, and check that none started twice and that each has ended."""
    ended: Counter[str] = Counter()
    async with series(folder, count, store, seed, kills) as workers:
        free = asyncio.Semaphore(40)

        async def one(n: int) -> None:
            async with free:
                name = f"a{n}"
                outcomes = await confirm(workers, name, workers.rng.randint(1, 5))
                assert outcomes <= {f"did {name}", IN_DOUBT}
                ended["in doubt" if outcomes == {IN_DOUBT} else "did"] += 1

        async with asyncio.TaskGroup() as group:
            for n in range(confirmations):
                group.create_task(one(n))
        ended["restarts"] = workers.restarts
    acts = Counter(line.split()[2] for line in marks(folder) if line.split()[1] == "acts")
    assert [name for name, times in acts.items() if times > 1] == []
    assert ended["did"] + ended["in doubt"] == confirmations
    assert len(acts) >= ended["did"]
    return ended


@pytest.mark.parametrize("count", [1, 2])
async def test_a_few_confirmations_while_workers_are_killed(
    count: int, store: str, tmp_path: Path
) -> None:
    """Over SQLite and a real server."""
    ended = await run_series(tmp_path, count, store, seed=count, confirmations=30, kills=2)
    print(ended)
    assert ended["restarts"]


@pytest.mark.endurance(seconds=200)
@pytest.mark.parametrize("count", [1, 2, 4])
async def test_a_thousand_confirmations_while_workers_are_killed(
    count: int, store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """As above, a thousand times."""
    seed = request.config.option.seed + count
    began = time.monotonic()
    ended = await run_series(tmp_path, count, store, seed=seed, confirmations=1000, kills=30)
    figures = ", ".join(f"{number} {what}" for what, number in sorted(ended.items()))
    print(f"{count} workers, {store[:6]}: {figures} in {time.monotonic() - began:.0f} s")
    assert ended["restarts"]


async def test_a_retry_that_is_sent_to_all_workers_acts_once(workers: Cluster) -> None:
    """Five copies at once, and one later, at three workers: one action, one outcome."""
    async with contextlib.AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(Client(workers.at(n), revision=R5, elicit=print))
            for n in range(3)
        ]
        transports = [client._transport for client in clients]
        for n in range(20):
            name = f"copies{n}-{id(transports)}"
            asked = await transports[n % 3](call(name))
            copies = [transports[place % 3](call(name, asked)) for place in range(5)]
            results = [*await asyncio.gather(*copies), await transports[1](call(name, asked))]
            texts = {text(result) for result in results}
            assert texts == {f"did {name}"}
            assert sum(line.endswith(f"acts {name}") for line in marks(workers.folder)) == 1


async def test_a_worker_that_ends_in_good_order_gives_up_its_lease(tmp_path: Path) -> None:
    """The other worker continues its suspended calls at once, and does not wait until the last
    heartbeat has expired.
    """
    file = tmp_path / "store.db"
    options: dict[str, Any] = {"store": f"sqlite://{file}", "grace": 0.5}
    ending = Program(tmp_path, **options).ready()
    staying = Program(tmp_path, **options).ready()
    try:
        async with Client(ending.url, revision=R5, elicit=print) as client:
            asked = await client._transport(call("left"))
        with contextlib.closing(sqlite3.connect(file)) as db:
            leases = "SELECT count(*) FROM workers"
            assert db.execute(leases).fetchone() == (2,)
            assert await asyncio.to_thread(ending.end) == 0
            assert db.execute(leases).fetchone() == (1,)
        async with Client(staying.url, revision=R5, elicit=print) as client:
            assert text(await client._transport(call("left", asked))) == "did left"
    finally:
        ending.close()
        staying.close()


def text(result: Any) -> str:
    """The text of a result, decoded or not."""
    return str(result.decode().text if isinstance(result, RawResult) else result.text)
