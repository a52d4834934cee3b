"""Eight processes that write into one graph at once, some of them killed in the middle; and who
reads meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

from interlock_servers.memory import Graph
from interlock_servers.memory.jsonl import import_lines
from tests.servers.memory.conftest import QUICK
from tests.servers.memory.graph_helpers import NO_HURRY, check_file, lines_in
from tests.servers.memory.worker import PARTS

WORKER = Path(__file__).with_name("worker.py")
NAMES = "abcdefgh"
COUNT = 12


@pytest.fixture
def shared(graph: Graph) -> Graph:
    """A graph with the entity that everybody adds to."""
    with graph.changing(NO_HURRY, "test") as change:
        change.add_entity("shared", "shared")
    return graph


async def started(path: Path, name: str, start: int, count: int) -> asyncio.subprocess.Process:
    """A worker."""
    command = [sys.executable, str(WORKER), str(path), name, str(start), str(count)]
    return await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)


def look(path: Path) -> int:
    """Read all of the graph, as another process would: no entity has half of what it was made with.

    How many there are.
    """
    graph = Graph(path, QUICK)
    try:
        found = lines_in(graph)
    finally:
        graph.close()
    made = [one for one in found if one["type"] == "entity" and one["entityType"] == "made"]
    assert all(
        one["observations"] == [f"part {part} of {one['name']}" for part in range(PARTS)]
        for one in made
    )
    return len(made)


async def looking(path: Path, over: asyncio.Event) -> int:
    """Look until it is over; how often."""
    looks = seen = 0
    while not over.is_set():
        now = await asyncio.to_thread(look, path)
        assert now >= seen
        seen = now
        looks += 1
    return looks


def said(text: str, answered: dict[str, set[str]]) -> None:
    """Note what a worker said was done; the last line may be cut."""
    for line in text.split("\n")[:-1]:
        assert line.startswith("done "), line
        _, tool, name = line.split()
        answered[tool].add(name)


def check(graph: Graph, answered: dict[str, set[str]], *, all_: bool) -> None:
    """What was answered is there, once and whole; where nobody was killed nothing else is."""
    check_file(graph.path)
    found = lines_in(graph)
    entities = {one["name"]: one for one in found if one["type"] == "entity"}
    assert len(entities) == sum(one["type"] == "entity" for one in found)
    relations = [one["from"] for one in found if one["type"] == "relation"]
    notes = entities["shared"]["observations"]
    made = {name for name, one in entities.items() if one["entityType"] == "made"}
    assert len(set(relations)) == len(relations)
    assert len(set(notes)) == len(notes)
    for there, tool in (
        (made, "create_entities"),
        (set(relations), "create_relations"),
        (set(notes), "add_observations"),
    ):
        assert answered[tool] <= there
        assert there == answered[tool] or not all_
    wrong = {
        name.removeprefix("wrong-")
        for name, one in entities.items()
        if one["entityType"] == "wrong"
    }
    assert not wrong & answered["undo"]
    assert not (wrong and all_)


@pytest.mark.endurance(seconds=6)
async def test_eight_processes_lose_nothing(shared: Graph) -> None:
    """Everything that was answered is there once, nothing else is, and who reads meanwhile never
    sees half of anything.
    """
    over = asyncio.Event()
    reader = asyncio.create_task(looking(shared.path, over))
    workers = [await started(shared.path, name, 0, COUNT) for name in NAMES]
    told = [(await worker.communicate())[0].decode() for worker in workers]
    over.set()
    assert await reader > 2
    assert [worker.returncode for worker in workers] == [0] * len(NAMES), told
    answered: dict[str, set[str]] = defaultdict(set)
    for text in told:
        said(text, answered)
    assert len(answered["add_observations"]) == len(NAMES) * COUNT
    check(shared, answered, all_=True)
    with shared.reading(NO_HURRY) as db:
        ((changes, last),) = db.execute("SELECT count(*), max(id) FROM changes").fetchall()
    assert changes == last == 1 + 5 * len(NAMES) * COUNT


@pytest.mark.endurance(seconds=10)
async def test_killed_processes_tear_nothing(shared: Graph) -> None:
    """`kill -9` in the middle, again and again: what was answered is there, what was not is there
    whole or not at all.
    """
    over = asyncio.Event()
    chance = random.Random(7)
    reader = asyncio.create_task(looking(shared.path, over))
    answered: dict[str, set[str]] = defaultdict(set)

    async def live(name: str) -> None:
        """Be a worker, and be killed after some answers; several lives of each."""
        for life in range(3):
            worker = await started(shared.path, name, 1000 * life, 50)
            assert worker.stdout is not None
            text = "".join(
                [(await worker.stdout.readline()).decode() for _ in range(chance.randrange(1, 40))]
            )
            worker.kill()
            said(text + (await worker.communicate())[0].decode(), answered)

    await asyncio.gather(*map(live, NAMES))
    over.set()
    assert await reader > 2
    assert len(answered["create_entities"]) > len(NAMES)
    check(shared, answered, all_=False)
    with shared.changing(NO_HURRY, "test") as change:  # and whoever comes then writes at once
        change.add_entity("after", "thing")
    check_file(shared.path)


async def test_an_import_that_is_killed(graph: Graph, tmp_path: Path) -> None:
    """`kill -9` when much of it is written already: nothing of it is there, and it may simply be
    begun again.
    """
    with graph.changing(NO_HURRY, "test") as change:
        change.add_entity("before", "t")
    before = lines_in(graph)
    lines = [
        msgspec.json.encode(
            {
                "type": "entity",
                "name": f"e{number}",
                "entityType": "t",
                "observations": [f"{number} " + "x" * 2_000],
            }
        )
        for number in range(3_000)
    ]
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    command = [
        sys.executable,
        "-m",
        "interlock_servers.memory",
        "--graph",
        str(graph.path),
        "import",
        str(fifo),
    ]
    importing = await asyncio.create_subprocess_exec(*command)
    feeding = await asyncio.to_thread(fifo.open, "wb", 0)
    for line in lines:
        await asyncio.to_thread(
            feeding.write, line + b"\n"
        )  # far more than a pipe holds: most of it was taken in
    assert graph.path.with_name(f"{graph.path.name}-wal").stat().st_size > 1_000_000
    importing.kill()
    await importing.wait()
    feeding.close()
    assert lines_in(graph) == before
    check_file(graph.path)
    found, _ = import_lines(graph, lines, "test", NO_HURRY)
    assert (found.entities, found.known) == (3_000, 0)
    check_file(graph.path)


FULL = """
import asyncio, resource, sys
from interlock import Client
from interlock_servers.memory import memory_server

async def main():
    things = [{"name": f"e{n}", "entityType": "t",
        "observations": [f"{n} words " * 100]} for n in range(500)]
    async with Client(memory_server(sys.argv[1])) as client:
        print((await client.call_tool("create_entities",
            {"entities": [{"name": "first", "entityType": "t"}]})).text)
        most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, most[1]))
        failed = await client.call_tool("create_entities", {"entities": things})
        print(failed.is_error, failed.text)
        print((await client.call_tool("read_graph", {})).text)
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
        print((await client.call_tool("create_entities", {"entities": things})).text)

asyncio.run(main())
"""


async def test_a_disk_that_is_full(path: Path) -> None:
    """It is said, nothing is torn, reading goes on; and once there is room, writing does."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FULL, str(path), stdout=asyncio.subprocess.PIPE
    )
    said = (await process.communicate())[0].decode().splitlines()
    assert said[0].startswith("1 entity was created")
    assert said[1].startswith(f"True The memory {path} cannot be written: ")
    assert said[2] == "first (t)"
    assert said[3].startswith("500 entities were created")
    check_file(path)
