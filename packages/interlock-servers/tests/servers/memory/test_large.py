"""A graph of 50,000 entities, as somebody brings it along: it is imported once, searched, walked,
exported, and taken back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from benchmarks.memory_graph import ENTITIES, KINDS, graph_lines
from interlock import Client
from interlock_servers.cursors import read_number
from interlock_servers.memory import Graph, history, memory_server
from interlock_servers.memory.jsonl import export_lines, import_lines
from tests.servers.calls import done
from tests.servers.memory.conftest import QUICK
from tests.servers.memory.graph_helpers import NO_HURRY, check_file, names

pytestmark = pytest.mark.endurance(seconds=10)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the graph."""
    path = tmp_path_factory.mktemp("large") / "graph.db"
    graph = Graph(path, QUICK)
    found, _ = import_lines(graph, graph_lines(), "test", NO_HURRY)
    assert (found.entities, found.observations, found.bad_lines) == (ENTITIES, 3 * ENTITIES, 0)
    graph.close()
    return path


@pytest.fixture
async def client(large: Path) -> AsyncIterator[Client]:
    """A client of a server over it."""
    async with Client(memory_server(large, msgspec.structs.replace(QUICK, page=10))) as opened:
        await opened.list_tools()
        yield opened


async def test_one_among_many_is_found(client: Client) -> None:
    """By a name, a word, a part of one, in a script without spaces, of a type; of very many the
    first ones.
    """
    for number in (1, 777, 49_999):
        (found,) = [one for one in await names(client, f"number{number}", limit=1)]
        assert found.endswith(f"_{number}")
        assert (await names(client, found, limit=1)) == [found]
        assert number < 10_000 or found in await names(client, f"umber{number}")
        assert found in await names(client, f"記録{number % 100} number{number}")
        assert await names(client, f"number{number}", type=KINDS[number % len(KINDS)], limit=1) == [
            found
        ]
        assert found not in await names(
            client, f"number{number}", type=KINDS[(number + 1) % len(KINDS)], limit=50
        )
    assert len(await names(client, "person")) == 10
    assert await names(client, "xyzzy") == []


async def test_it_is_read_a_page_at_a_time(client: Client) -> None:
    """No answer is longer than a page, and ways are found among 50,000 relations."""
    page = await done(client, "read_graph")
    assert (len(page["entities"]), read_number(page["cursor"], "read_graph")) == (10, 10)
    first = page["relations"][0]
    assert (await done(client, "find_path", start=first["from"], end=first["to"]))["relations"] == [
        first
    ]
    assert (await done(client, "graph_statistics"))["entities"] == ENTITIES
    assert len((await client.complete("memory://entity/{+name}", "name", "ka")).values) == 100


def test_it_goes_out_as_it_came_and_can_be_taken_back(large: Path) -> None:
    """The same lines in the same order, but for relations that came twice; the import is one
    change, and undone as one.
    """
    graph = Graph(large, QUICK)
    with graph.reading(NO_HURRY) as db:
        out = [line for _, line in export_lines(db)]
    assert out == list(dict.fromkeys(graph_lines()))
    history.undo(graph, 1, "test", NO_HURRY)
    with graph.reading(NO_HURRY) as db:
        assert list(export_lines(db)) == []
    graph.close()
    check_file(large)
