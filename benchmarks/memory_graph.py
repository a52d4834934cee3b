"""`python -m benchmarks.memory_graph`: importing a graph of 50,000 entities into the memory server,
and searching it."""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from interlock import Client
from interlock_servers.memory import memory_server
from interlock_servers.memory.graph import CallProgress, Graph
from interlock_servers.memory.jsonl import import_lines

ENTITIES = 50_000
ROUNDS = 20
KINDS = ("person", "project", "organization", "event", "place")
SYLLABLES = (
    "ka",
    "ro",
    "mi",
    "ten",
    "sol",
    "ver",
    "an",
    "del",
    "ist",
    "pro",
    "gra",
    "lum",
    "nor",
    "bes",
    "tri",
    "quo",
    "ash",
    "ell",
    "on",
)


def graph_lines(entities: int = ENTITIES) -> Iterator[bytes]:
    """A graph in the file format of the existing server: three observations and one relation for
    each entity, always the same."""
    chance = random.Random(5)
    words = [
        "".join(chance.choices(SYLLABLES, k=chance.choice((2, 3, 3, 4)))) for _ in range(30_000)
    ]
    encode = msgspec.json.Encoder().encode

    def sentence() -> str:
        return " ".join(
            words[chance.randrange(300 if chance.random() < 0.5 else len(words))] for _ in range(8)
        )

    for number in range(entities):
        name = f"{words[number % len(words)]}_{number}"
        observations = [
            f"{sentence()} number{number}",
            sentence(),
            f"{sentence()} 東京都の記録{number % 100}",
        ]
        yield (
            encode(
                {
                    "type": "entity",
                    "name": name,
                    "entityType": KINDS[number % len(KINDS)],
                    "observations": observations,
                }
            )
            + b"\n"
        )
    for number in range(entities):
        source, target = (
            f"{words[place % len(words)]}_{place}" for place in (number, chance.randrange(entities))
        )
        yield (
            encode({"type": "relation", "from": source, "to": target, "relationType": "knows"})
            + b"\n"
        )


def main() -> None:
    """Print the figures, in milliseconds: of whole calls from a client in this process, reading and
    encoding included.

    The second pair is what the processor did, also while others have it.
    """
    asyncio.run(_measured())


async def _measured() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.db"
        lines = list(graph_lines())
        graph = Graph(path)
        began = time.perf_counter()
        import_lines(graph, lines, "", CallProgress(None, 600.0))
        print(
            f"import of {ENTITIES:,} entities     {time.perf_counter() - began:.1f} s, "
            f"{path.stat().st_size / 1e6:.0f} MB"
        )
        graph.close()
        async with Client(memory_server(path)) as client:
            await client.list_tools()
            for what, words in (
                ("a name", "karo_1"),
                ("one word of many", "number49000"),
                ("a frequent word", "person"),
                ("every entity", "number"),
                ("two words", "kami number12"),
                ("the middle of words", "umber4900"),
                ("a beginning", "ka"),
                ("no spaces", "記録42"),
                ("nothing", "xyzzy"),
                ("some of three", "xyzzy number7 plugh"),
                ("one letter", "k"),
                ("two frequent", "person number"),
                ("the middle of all", "umber"),
                ("a sign", "_"),
                ("a sign at a word", "n-"),
                ("eight letters", "k n p r s t a e"),
            ):
                for limit in (10, 50):
                    times = []
                    work = []
                    for _ in range(ROUNDS):
                        began = time.perf_counter()
                        working = time.process_time()
                        result = await client.call_tool(
                            "search_nodes", {"query": words, "limit": limit}
                        )
                        times.append((time.perf_counter() - began) * 1000)
                        work.append((time.process_time() - working) * 1000)
                        assert not result.is_error, result.text
                    found = len(result.structured_content["entities"])
                    print(
                        f"{what:20} {words:22} {found:3} found   {_figures(times)}   "
                        f"processor {_figures(work)}"
                    )


def _figures(times: Sequence[float]) -> str:
    return f"median {statistics.median(times):8.2f} ms   most {max(times):8.2f} ms"


if __name__ == "__main__":
    main()
