"""Kills processes of a fleet with SIGKILL while it runs tasks, and says what became of them:

    python -m tests.tasks.killing --seed 7 --results kills.jsonl    # all series, two at a time
    python -m tests.tasks.killing sqlite-docket --points 300 --seed 7
    python -m tests.tasks.killing valkey-inline --writes

With `--points`, random processes die at random iterations of their event loops while ten clients
keep tasks going. With `--writes`, a process dies just before and just after each write of a task.
Without either option both happen, with 300 points. All processes of a fleet are forked from one, so
that a new one is there in milliseconds.

Several series run in processes of their own and end in one table. A series that is in the file of
`--results` is not run again, so a run that was interrupted goes on where it was. The exit status is
1 if anything was lost or repeated.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import mmap
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from interlock import Context, Docket, Server, Tasks
from interlock.store import open_store
from interlock.store.redis.records import RedisRecords
from interlock.store.sqlite.records import SqliteRecords
from interlock.tasks.machine import TaskRecord
from interlock.transport.own_streams import own_streams
from tests.tasks.test_workers import META, YES
from tests.workers.conftest import place

STEPS = 3
CLIENTS = 10
SETTLED = 300.0  # seconds in which a task has to end, once nothing is killed any more
KINDS = ("sqlite-inline", "valkey-inline", "sqlite-docket", "valkey-docket")
_SLOT = 8  # bytes of a counter that a process shares with this one


@dataclass
class Outcome:
    """What became of the tasks.

    Attributes:
        kills: The number of killed processes.
        announced: The number of tasks whose handle a client got.
        unannounced: The number of calls that a kill left without an answer.
        completed: The number of announced tasks that completed.
        doubtful: The number of announced tasks that failed as "may have happened".
        wrong: What must not be, in words.
        delays: The seconds from each kill to the next run of each task that it hit.
        writes: The number of writes of a task, if each was hit.
    """

    kills: int = 0
    announced: int = 0
    unannounced: int = 0
    completed: int = 0
    doubtful: int = 0
    wrong: list[str] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    writes: int = 0

    def __str__(self) -> str:
        delays = sorted(self.delays)
        taken = (
            f"taken up after {statistics.median(delays):.1f} s, at most {delays[-1]:.1f} s"
            f" ({sum(delay > 5 for delay in delays)} of {len(delays)} after more than 5 s)"
            if delays
            else "none taken up"
        )
        return (
            f"{self.kills} kills, {self.announced} tasks: {self.completed} completed,"
            f" {self.doubtful} may have happened, {len(self.wrong)} wrong;"
            f" {self.unannounced} calls without an answer; {taken}"
            + (f"; {self.writes} writes" if self.writes else "")
        )


# -- in a forked process ---------------------------------------------------------------------------


class Counters:
    """Counters that this process shares with the processes that it forks."""

    def __init__(self, number: int) -> None:
        self._memory = mmap.mmap(-1, _SLOT * number)

    def __getitem__(self, slot: int) -> int:
        return int.from_bytes(self._memory[slot * _SLOT : (slot + 1) * _SLOT], "little")

    def __setitem__(self, slot: int, value: int) -> None:
        self._memory[slot * _SLOT : (slot + 1) * _SLOT] = value.to_bytes(_SLOT, "little")


# Slots: the task, its writes so far, the write that kills, and whether it is done before.
_TASK, _WRITES, _TARGET, _AFTER = range(4)
_FIRST = 4  # the first slot of a process


class DeadlyLoop(asyncio.SelectorEventLoop):
    """An event loop that dies in an iteration."""

    counters: Counters
    slot: int

    def _run_once(self) -> None:
        left = self.counters[self.slot]
        if left:
            self.counters[self.slot] = left - 1
            if left == 1:
                time.sleep(random.random() * 0.003)  # a thread may be writing meanwhile
                _die()
        super()._run_once()  # type: ignore[misc]  # of asyncio itself


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def deadly(write: Callable[..., Awaitable[Any]], counters: Counters) -> Callable[..., Any]:
    """Return a write that may kill its process before or after it."""

    async def wrapped(self: Any, key: str, *args: Any, **options: Any) -> Any:
        if not counters[_TARGET] or not key.startswith(("task:", "once:")):
            return await write(self, key, *args, **options)
        kind, _, rest = key.partition(":")
        id = rest.rpartition(":")[2] if kind == "task" else rest.partition(":")[0]
        task = int(id[:15], 16)  # enough to tell it from others
        if not counters[_TASK]:
            counters[_TASK] = task
        if counters[_TASK] != task:
            return await write(self, key, *args, **options)
        counters[_WRITES] += 1
        is_due = counters[_WRITES] == counters[_TARGET]
        if is_due and not counters[_AFTER]:
            _die()
        result = await write(self, key, *args, **options)
        if is_due:
            _die()
        return result

    return wrapped


def build(store: str, queue: str, log: str) -> Server:
    """The server. Each run of its tool and each step is a line in the log."""
    runner = Docket(queue) if queue else None
    server = Server("durable", extensions=[Tasks(store, runner=runner)])
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(token: str, what: str) -> None:
        os.write(file, f"{token} {what} {os.getpid()} {time.time()}\n".encode())

    @server.tool(task="required")
    async def report(ctx: Context, token: str) -> str:
        """Does its steps once, asks, and ends."""
        note(token, "run")

        async def step(name: str) -> str:
            note(token, name)
            await asyncio.sleep(0.01)  # work
            return name

        for n in range(STEPS):
            await ctx.once(f"step {n}", lambda n=n: step(f"step-{n}"))
            ctx.progress(n + 1, STEPS)
        return f"published: {await ctx.confirm('Publish?', key='publish')}"

    return server


async def _serve(server: Server) -> None:
    async with own_streams() as channel:
        await server.serve(channel)


async def _work(server: Server) -> None:
    (tasks,) = server.extensions
    assert isinstance(tasks, Tasks)
    asyncio.get_running_loop().add_reader(0, os._exit, 0)  # its parent has ended
    await tasks.run_worker(server)


# -- in this process -------------------------------------------------------------------------------


class Gone(Exception):
    """The server has died before it answered."""


class Process:
    """A forked process: a server with a raw client, or a worker of a queue."""

    def __init__(self, pid: int, slot: int, parent: socket.socket) -> None:
        self.pid = pid
        self.slot = slot
        self._parent = parent
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._next = 0
        self._reading: asyncio.Task[None] | None = None
        self.is_dead = False

    async def connect(self) -> None:
        """Be the client of a server."""
        self.reader, self.writer = await asyncio.open_connection(sock=self._parent)
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        assert self.reader is not None
        with contextlib.suppress(OSError):
            while line := await self.reader.readline():
                answer = json.loads(line)
                waiting = self._waiting.pop(answer.get("id"), None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(answer)
        self.is_dead = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(Gone())

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request, and return its response."""
        if self.is_dead or self.writer is None:
            raise Gone
        self._next += 1
        body = {"jsonrpc": "2.0", "id": self._next, "method": method}
        waiting = asyncio.get_running_loop().create_future()
        self._waiting[self._next] = waiting
        self.writer.write(
            json.dumps({**body, "params": {**params, "_meta": META}}).encode() + b"\n"
        )
        return await waiting

    def close(self) -> None:
        """Forget the connection."""
        self.is_dead = True
        if self.writer is not None:
            self.writer.close()
        else:
            self._parent.close()


class Fleet:
    """Processes that share a store, and the clients of the servers among them."""

    def __init__(self, kind: str, folder: Path, url: str, seed: int) -> None:
        store, runner = kind.split("-")
        if runner == "docket":
            import docket  # late, and before the first fork: it takes long to load

            assert docket.Worker
        self.folder = folder
        self.chance = random.Random(seed)
        self.store = url if store == "valkey" else f"sqlite://{folder}/tasks.db"
        self.queue = url if runner == "docket" else ""
        self.log = str(folder / "log")
        self.roles = ["serve"] * 3 + ["work"] * 4 if self.queue else ["serve"] * 6
        self.counters = Counters(_FIRST + len(self.roles))
        self.processes: list[Process] = []
        self.killed: dict[int, float] = {}
        self.outcome = Outcome()
        self.announced: dict[str, str] = {}  # tokens by task

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Fork all processes, and kill them at the end."""
        try:
            for slot in range(len(self.roles)):
                self.processes.append(await self.fork(slot))
            yield
        finally:
            for process in self.processes:
                process.close()
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
                    os.waitpid(process.pid, 0)  # noqa: ASYNC222 - it is dead

    async def fork(self, slot: int) -> Process:
        """Start the process of a slot."""
        parent, child = socket.socketpair()
        self.counters[_FIRST + slot] = 0
        pid = os.fork()
        if pid == 0:
            parent.close()
            os.dup2(child.fileno(), 0)
            os.dup2(child.fileno(), 1)
            self._run(slot)
        child.close()
        process = Process(pid, slot, parent)
        if self.roles[slot] == "serve":
            await process.connect()
        return process

    def _run(self, slot: int) -> NoReturn:
        """Be a process of the fleet."""
        try:
            asyncio.events._set_running_loop(None)  # that of the parent
            random.seed()
            DeadlyLoop.counters = self.counters
            DeadlyLoop.slot = _FIRST + slot
            for cls in (RedisRecords, SqliteRecords, Docket):
                for name in ("swap", "put"):
                    if hasattr(cls, name):
                        setattr(cls, name, deadly(getattr(cls, name), self.counters))
            server = build(self.store, self.queue, self.log)
            main = _serve if self.roles[slot] == "serve" else _work
            with asyncio.Runner(loop_factory=DeadlyLoop) as runner:
                runner.run(main(server))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(3)

    @property
    def servers(self) -> list[Process]:
        """The servers that are alive, as far as known."""
        return [one for one in self.processes if one.writer is not None and not one.is_dead]

    # -- kills -------------------------------------------------------------------------------------

    async def replace_dead(self) -> bool:
        """Replace processes that have died. Returns whether there was one."""
        found = False
        for slot, process in enumerate(self.processes):
            pid, status = os.waitpid(process.pid, os.WNOHANG)  # noqa: ASYNC222 - it does not wait
            if pid == 0:
                continue
            if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
                self.outcome.wrong.append(f"a process ended by itself: {status}")
            self.killed[process.pid] = time.time()
            self.outcome.kills += 1
            found = True
            process.close()
            self.processes[slot] = await self.fork(slot)
        return found

    async def kill_at_random(self) -> None:
        """Kill one process in a random iteration of its event loop, and replace it."""
        slot = self.chance.randrange(len(self.roles))
        process = self.processes[slot]
        self.counters[_FIRST + slot] = self.chance.randrange(1, 60)
        until = time.monotonic() + 1.0
        while not await self.replace_dead():
            if time.monotonic() > until:  # it is idle
                os.kill(process.pid, signal.SIGKILL)
            await asyncio.sleep(0.005)

    # -- clients -----------------------------------------------------------------------------------

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request to any server, until one answers."""
        while True:
            servers = self.servers
            if servers:
                with contextlib.suppress(Gone):
                    return await self.chance.choice(servers).request(method, **params)
            await asyncio.sleep(0.02)

    async def create(self, token: str) -> str | None:
        """Create a task. Returns its id; None if the server died before it answered."""
        while not (servers := self.servers):  # noqa: ASYNC110 - a process starts meanwhile
            await asyncio.sleep(0.02)
        try:
            answer = await self.chance.choice(servers).request(
                "tools/call", name="report", arguments={"token": token}
            )
        except Gone:
            self.outcome.unannounced += 1
            return None
        id: str = answer["result"]["taskId"]
        self.announced[token] = id
        self.outcome.announced += 1
        return id

    async def follow(self, token: str, id: str) -> None:
        """Answer the question of a task, and wait for its end."""
        while True:
            answer = await self.ask("tasks/get", taskId=id)
            if "error" in answer:
                self.outcome.wrong.append(f"{token}: {answer['error']}")
                return
            task: dict[str, Any] = answer["result"]
            if task["status"] == "input_required":
                await self.ask("tasks/update", taskId=id, inputResponses={"publish": YES})
            elif task["status"] != "working":
                break
            await asyncio.sleep(0.05)
        if task["status"] == "completed":
            self.outcome.completed += 1
            if task["result"]["content"][0]["text"] != "published: True":
                self.outcome.wrong.append(f"{token}: {task}")
        elif task.get("error", {}).get("data") == {"reason": "may_have_happened"}:
            self.outcome.doubtful += 1
        else:
            self.outcome.wrong.append(f"{token}: {task}")

    async def keep_busy(self, name: int, stop: asyncio.Event) -> None:
        """Create and follow one task after another."""
        n = 0
        while not stop.is_set():
            n += 1
            token = f"client-{name}-{n}"
            id = await self.create(token)
            if id is not None:
                await self.follow(token, id)

    # -- what became of it -------------------------------------------------------------------------

    def judge(self) -> None:
        """Read the log: no step stands there twice, and how long tasks waited for a next run."""
        seen: Counter[tuple[str, str]] = Counter()
        last: dict[str, tuple[int, float]] = {}
        for token, what, pid, at in _lines(self.log):
            if what != "run":
                seen[token, what] += 1
                continue
            before = last.get(token)
            if before is not None and before[0] in self.killed:
                self.outcome.delays.append(at - self.killed[before[0]])
            last[token] = (pid, at)
        self.outcome.wrong += [f"{key}: {count} times" for key, count in seen.items() if count > 1]

    async def check_store(self) -> None:
        """No task is left that works for ever: all have ended, or wait for an answer that no client
        gives, because none knows them.
        """
        store = open_store(self.store)
        await store.open()
        decode = msgspec.json.Decoder(TaskRecord).decode
        working: list[str] = []
        until = time.monotonic() + SETTLED
        while time.monotonic() < until:
            working = []
            for key in await store.records.keys("task:", now=time.time(), most=100_000):
                record = await store.records.load(key, now=time.time())
                if record is not None and decode(record.data).status == "working":
                    working.append(key)
            if not working:
                break
            await asyncio.sleep(0.2)
        await store.aclose()
        self.outcome.wrong += [f"{key} works for ever" for key in working]


def _lines(log: str) -> Iterator[tuple[str, str, int, float]]:
    path = Path(log)
    for line in path.read_text().splitlines() if path.exists() else []:
        token, what, pid, at = line.split()
        yield token, what, int(pid), float(at)


async def kill_at_points(fleet: Fleet, points: int) -> None:
    """Kill random processes at random moments, while clients keep tasks going."""
    async with fleet.running():
        stop = asyncio.Event()
        clients = [asyncio.ensure_future(fleet.keep_busy(n, stop)) for n in range(CLIENTS)]
        for _ in range(points):
            await fleet.kill_at_random()
            await asyncio.sleep(fleet.chance.random() * 0.2)
        stop.set()
        _, late = await asyncio.wait(clients, timeout=SETTLED)
        fleet.outcome.wrong += ["a task does not end, though nothing is killed any more"] * len(
            late
        )
        for client in late:
            client.cancel()
        await fleet.check_store()
    fleet.judge()


async def kill_at_writes(fleet: Fleet, most: int | None = None) -> None:
    """Kill the process that writes, just before and just after each write of a task."""
    async with fleet.running():
        replacing = asyncio.ensure_future(_keep_replacing(fleet))
        try:
            await fleet.ask("tools/list")
            write = 1
            while (most is None or write <= most) and await _kill_at_write(fleet, write):
                fleet.outcome.writes = write
                write += 1
        finally:
            replacing.cancel()
            await asyncio.wait({replacing})
    fleet.judge()


async def _kill_at_write(fleet: Fleet, write: int) -> bool:
    """Kill before and after one write. Returns False if a task has fewer writes."""
    for is_after in (0, 1):
        fleet.counters[_TASK] = 0
        fleet.counters[_WRITES] = 0
        fleet.counters[_AFTER] = is_after
        fleet.counters[_TARGET] = write
        token = f"write-{write}-{is_after}"
        async with asyncio.timeout(SETTLED):
            id = await fleet.create(token)
            if id is not None:
                await fleet.follow(token, id)
        # A task that nobody knows of has to settle too, before the next one counts.
        await fleet.check_store()
        has_killed = fleet.counters[_WRITES] >= write
        fleet.counters[_TARGET] = 0
        if not has_killed:
            return False
    return True


async def _keep_replacing(fleet: Fleet) -> None:
    while True:
        await fleet.replace_dead()
        await asyncio.sleep(0.01)


def run(kind: str, *, points: int | None, seed: int, writes: int | None = None) -> Outcome:
    """Run a series.

    Args:
        kind: One of `KINDS`: the store, and who runs the tasks.
        points: The number of kills at random moments; None to kill at each write.
        seed: Chooses the processes and the moments.
        writes: The number of writes to kill at; None for all.
    """
    with (
        tempfile.TemporaryDirectory(prefix="interlock-kills-") as name,
        contextlib.ExitStack() as on,
    ):
        url = on.enter_context(place("redis", Path(name))) if kind != "sqlite-inline" else ""
        fleet = Fleet(kind, Path(name), url, seed)
        work = kill_at_writes(fleet, writes) if points is None else kill_at_points(fleet, points)
        asyncio.run(work)
        return fleet.outcome


# -- several series --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Series:
    """What a series is: a fleet, a number of kills (None: at each write) and a seed."""

    kind: str
    points: int | None
    seed: int
    most: int | None = None

    def options(self) -> list[str]:
        """The options of the command that runs this series."""
        where = ["--writes"] if self.points is None else ["--points", str(self.points)]
        most = [] if self.most is None else ["--most", str(self.most)]
        return [self.kind, *where, *most, "--seed", str(self.seed)]


@dataclass(frozen=True)
class Result:
    """A series that has ended: its outcome, its length in seconds, the load average before it."""

    series: Series
    outcome: Outcome
    seconds: float
    load: float


def run_series(series: Series) -> Result:
    """Run a series in this process."""
    load = os.getloadavg()[0]
    began = time.monotonic()
    outcome = run(series.kind, points=series.points, seed=series.seed, writes=series.most)
    return Result(series, outcome, time.monotonic() - began, load)


def run_missing(wanted: Sequence[Series], results: Path, parallel: int) -> list[Result]:
    """Run those series whose results are not in a file yet, each in a process of its own.

    Args:
        wanted: The series.
        results: The file of the results; each process appends its own.
        parallel: The number of series that run at the same time.

    Returns:
        The results of the wanted series, in their order; without those whose process failed.
    """
    done = load_results(results)
    missing = [series for series in wanted if series not in done]

    def start(series: Series) -> None:
        command = [sys.executable, "-m", "tests.tasks.killing", *series.options()]
        subprocess.run([*command, "--results", str(results)], check=False)

    with ThreadPoolExecutor(parallel) as pool:
        list(pool.map(start, missing))
    done = load_results(results)
    return [done[series] for series in wanted if series in done]


def load_results(file: Path) -> dict[Series, Result]:
    """Read a file of results, one a line."""
    lines = file.read_bytes().splitlines() if file.exists() else []
    found = (msgspec.json.decode(line, type=Result) for line in lines)
    return {result.series: result for result in found}


def append_result(file: Path, result: Result) -> None:
    """Add a result to a file, with one write: other processes add theirs."""
    with file.open("ab", buffering=0) as opened:
        opened.write(json.dumps(asdict(result)).encode() + b"\n")


def table(results: Sequence[Result]) -> str:
    """The results as a table in Markdown."""
    titles = (
        "store, runner",
        "kills",
        "load",
        "tasks",
        "completed",
        "may have happened",
        "lost, or a step twice",
        "taken up after (median, longest)",
        "later than 5 s",
        "seconds",
    )
    rows = [titles, tuple("---" for _ in titles), *map(_row, results)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _row(result: Result) -> tuple[str, ...]:
    series = result.series
    outcome = result.outcome
    delays = outcome.delays
    taken = f"{statistics.median(delays):.1f} s, {max(delays):.1f} s" if delays else "-"
    writes = f" at {outcome.writes} writes" if series.points is None else ""
    return (
        series.kind.replace("-", ", "),
        f"{outcome.kills}{writes}",
        f"{result.load:.0f}",
        str(outcome.announced),
        str(outcome.completed),
        str(outcome.doubtful),
        str(len(outcome.wrong)),
        taken,
        f"{sum(delay > 5 for delay in delays)} of {len(delays)}",
        f"{result.seconds:.0f}",
    )


def report(result: Result) -> str:
    """One series in words, with everything that went wrong."""
    series = result.series
    first = f"{series.kind}, seed {series.seed}, {result.seconds:.0f} s: {result.outcome}"
    return "\n".join([first, *(f"  wrong: {words}" for words in result.outcome.wrong)])


def main() -> None:
    """Run one series, or several, and print what became of the tasks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("kind", nargs="*", help=f"{', '.join(KINDS)} (default: all)")
    parser.add_argument("--points", type=int, help="kills at random moments")
    parser.add_argument("--writes", action="store_true", help="kill around each write")
    parser.add_argument("--most", type=int, help="the number of writes to kill at")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--parallel", type=int, default=2, help="series at the same time")
    parser.add_argument("--results", type=Path, metavar="FILE", help="what has ended stays here")
    given = parser.parse_args()
    kinds = given.kind or list(KINDS)
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"no such series: {', '.join(sorted(unknown))}")
    wanted = _wanted(given, kinds)
    if len(wanted) == 1:
        result = run_series(wanted[0])
        if given.results is not None:
            append_result(given.results, result)
        print(report(result), flush=True)
        sys.exit(bool(result.outcome.wrong))
    with tempfile.TemporaryDirectory() as folder:
        file = given.results or Path(folder) / "results"
        results = run_missing(wanted, file, given.parallel)
    print(table(results))
    failed = len(wanted) - len(results)
    if failed:
        print(f"{failed} of {len(wanted)} series have no result")
    wrong = [result for result in results if result.outcome.wrong]
    for result in wrong:
        print(report(result))
    sys.exit(bool(failed or wrong))


def _wanted(given: argparse.Namespace, kinds: Sequence[str]) -> list[Series]:
    """The series that the options ask for; both without an option."""
    points: int | None = given.points
    if points is None and not given.writes:
        points = 300
    wanted: list[Series] = []
    if points is not None:
        wanted += [Series(kind, points, given.seed) for kind in kinds]
    if given.writes or given.points is None:
        wanted += [Series(kind, None, given.seed, given.most) for kind in kinds]
    return wanted


if __name__ == "__main__":
    main()
