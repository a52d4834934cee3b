"""What the server offers: the catalogue, annotations that are true, every revision over every road,
resources, watching, its file.
"""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import REVISIONS, Client, Server
from interlock_servers.memory import Graph, MemoryLimits, memory_server, server_of
from tests.servers.calls import done, refusal, words
from tests.servers.memory.conftest import QUICK
from tests.servers.memory.graph_helpers import NO_HURRY, check_file, entity, relation
from tests.servers.roads import over, serving

TOP = Path(__file__).parents[5]
PAGE = (TOP / "docs" / "servers" / "memory.md").read_text(encoding="utf-8")


async def test_nobody_who_uses_it_is_broken(server: Server, interlock_catalogue: Any) -> None:
    """Tools, resources and templates are those of the snapshot (`TOL-02`, `RES-02`)."""
    assert not (await interlock_catalogue(server, "memory_catalogue.json")).breaking


# tool -> arguments of a call that works; and whether it may be repeated to no further effect
CALLS: dict[str, dict[str, Any]] = {
    "read_graph": {},
    "search_nodes": {"query": "one"},
    "open_nodes": {"names": ["a"]},
    "list_neighbours": {"name": "a"},
    "find_path": {"start": "a", "end": "b"},
    "graph_statistics": {},
    "list_changes": {},
    "show_change": {"change": 1},
    "export_graph": {},
    "create_entities": {"entities": [entity("new", "t", "x")]},
    "create_relations": {"relations": [relation("b", "knows", "a")]},
    "add_observations": {"observations": [{"entityName": "a", "contents": ["new"]}]},
    "delete_entities": {"entityNames": ["a"]},
    "delete_observations": {"deletions": [{"entityName": "a", "observations": ["one"]}]},
    "delete_relations": {"relations": [relation("a", "knows", "b")]},
    "rename_entity": {"name": "a", "to": "z"},
    "merge_entities": {"names": ["b"], "into": "a"},
    "set_entity_type": {"name": "a", "type": "u"},
    "replace_observation": {"name": "a", "old": "one", "new": "two"},
    "undo": {"change": 3},
    "forget_changes": {"changes": [1]},
    "import_graph": {"text": '{"type":"entity","name":"in","entityType":"t","observations":["x"]}'},
}


def rows(path: Path) -> dict[str, list[Any]]:
    """All that the file has, but for when and by whom."""
    with closing(sqlite3.connect(path)) as db:
        tables = [
            name
            for (name,) in db.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            )
        ]
        return {table: db.execute(f"SELECT * FROM {table}").fetchall() for table in tables}


@pytest.mark.parametrize("name", CALLS)
async def test_annotations_are_true(client: Client, path: Path, name: str) -> None:
    """A tool that only reads changes nothing at all, one that is idempotent may be repeated, one
    that is not destructive loses nothing.
    """
    await done(client, "create_entities", entities=[entity("a", "t", "one"), entity("b", "t")])
    await done(client, "create_relations", relations=[relation("a", "knows", "b")])
    await done(
        client, "add_observations", observations=[{"entityName": "b", "contents": ["to be undone"]}]
    )
    tools = {tool.name: tool for tool in await client.list_tools()}
    assert set(tools) == set(CALLS)
    hints = tools[name].annotations
    assert hints is not None
    before = rows(path)
    await done(client, name, **CALLS[name])
    after = rows(path)
    assert (after == before) == hints.read_only_hint
    if not hints.destructive_hint:
        assert all(
            set(before[table]) <= set(after[table])
            for table in ("entities", "observations", "relations", "changes")
        )
    again = await client.call_tool(name, CALLS[name])
    assert (rows(path) == after and not again.is_error) == hints.idempotent_hint


@pytest.mark.matrix(seconds=0.2)
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("road", ["memory", "http", "stdio"])
async def test_every_revision(path: Path, revision: str, road: str) -> None:
    """Writing, finding, undoing, refusing and asking, in memory, over HTTP and over stdio, in all
    revisions.
    """
    async with (
        over(road, memory_server(path, QUICK), serving("memory", path)) as target,
        Client(target, revision=revision, elicit=lambda question: {"confirm": True}) as client,
    ):
        await client.list_tools()
        assert "[change 1]" in await words(
            client, "create_entities", entities=[entity("Ada", "person", "likes maths")]
        )
        assert await words(client, "search_nodes", query="maths") == "Ada (person)\n- likes maths"
        assert "Change 1 is undone" in await words(client, "undo", change=1)
        assert "no entity Ada" in await refusal(client, "set_entity_type", name="Ada", type="x")
        forgotten = await client.call_tool("forget_changes")
        assert bool(forgotten.is_error) == (
            revision < "2025-06-18"
        )  # before it nobody could be asked
        assert "entities" in (await client.read_resource("memory://statistics")).contents[0].text


# -- resources -------------------------------------------------------------------------------------


async def test_resources(client: Client) -> None:
    """An entity with what is known since when; what there is; what was changed; names complete by
    their beginnings and words.
    """
    await done(
        client,
        "create_entities",
        entities=[entity("Ada Lovelace", "person", "x"), entity("Adam"), entity("100%")],
    )
    await done(client, "create_relations", relations=[relation("Adam", "knows", "Ada Lovelace")])
    ada = msgspec.json.decode(
        (await client.read_resource("memory://entity/Ada%20Lovelace")).contents[0].text
    )
    assert (ada["name"], ada["entityType"], ada["relations"]) == (
        "Ada Lovelace",
        "person",
        [relation("Adam", "knows", "Ada Lovelace")],
    )
    assert ada["observations"] == [{"text": "x", "since": ada["since"]}]
    counts = msgspec.json.decode(
        (await client.read_resource("memory://statistics")).contents[0].text
    )
    assert (counts["entities"], counts["entityTypes"]) == (3, {"thing": 2, "person": 1})
    assert (
        len(
            msgspec.json.decode((await client.read_resource("memory://changes")).contents[0].text)[
                "changes"
            ]
        )
        == 2
    )
    for typed, wanted in (
        ("Ad", ["Ada Lovelace", "Adam"]),
        ("love", ["Ada Lovelace"]),
        ("1", ["100%"]),
        ("%", []),
        ("x", []),
    ):
        assert (await client.complete("memory://entity/{+name}", "name", typed)).values == wanted


async def test_what_is_too_large_is_read_in_pages(path: Path) -> None:
    """A resource says so; the tool has it."""
    async with Client(
        memory_server(path, msgspec.structs.replace(QUICK, exported=100, answer=100))
    ) as client:
        await done(
            client, "create_entities", entities=[entity(str(n), "t", "x" * 50) for n in range(4)]
        )
        for uri in ("memory://export", "memory://knowledge-graph"):
            with pytest.raises(Exception, match="export_graph returns it in pages"):
                await client.read_resource(uri)
        page = await done(client, "export_graph")
        count = page["lines"]
        while "cursor" in page:
            page = await done(client, "export_graph", cursor=page["cursor"])
            count += page["lines"]
        assert count == 4


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_changes_of_others_are_told(path: Path, revision: str) -> None:
    """Who watches an entity or the graph hears of what another process writes, and of what this one
    writes once (`SUB-02`).
    """
    served = memory_server(path, QUICK)
    others = Graph(path, QUICK)
    watched = ["memory://entity/A%2Fb", "memory://knowledge-graph"]
    async with (
        Client(served, revision=revision) as client,
        client.watch(resources=watched) as changes,
    ):
        watcher = served.lifespan_state.watcher
        async with asyncio.timeout(30):
            async with watcher.looks:
                await watcher.looks.wait_for(lambda: watcher.watching)

            def write() -> None:
                with others.changing(NO_HURRY, "test") as change:
                    change.add_entity("A/b", "t")

            await asyncio.to_thread(write)
            assert {(await anext(changes)).uri, (await anext(changes)).uri} == set(watched)
            await done(client, "set_entity_type", name="A/b", type="u")
            assert {(await anext(changes)).uri, (await anext(changes)).uri} == set(watched)
            await done(client, "delete_entities", entityNames=["A/b"])
            assert {(await anext(changes)).uri, (await anext(changes)).uri} == set(watched)
    others.close()


async def test_own_changes_are_told_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look that comes after finds nothing more to tell."""
    served = memory_server(path, QUICK)
    async with Client(served) as client, client.watch(resources=["memory://knowledge-graph"]):
        watcher = served.lifespan_state.watcher
        async with asyncio.timeout(30):
            async with watcher.looks:
                await watcher.looks.wait_for(lambda: watcher.watching)
            told: list[str] = []
            monkeypatch.setattr(served, "updated", told.append)
            await done(client, "create_entities", entities=[entity("a")])
            for _ in range(3):
                async with watcher.looks:
                    await watcher.looks.wait()
            assert told.count("memory://knowledge-graph") == 1


# -- the file --------------------------------------------------------------------------------------


def test_importing_opens_nothing(tmp_path: Path) -> None:
    """The module's server makes no file and no folder before it is called."""
    program = "import interlock_servers.memory as m; m.server; m.server_of()"
    environment = {
        **os.environ,
        "XDG_DATA_HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    assert list(tmp_path.iterdir()) == []


async def test_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the user's own folder for data, where nobody else may look; or where the environment or an
    argument says.
    """
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    own = tmp_path / "interlock" / "memory" / "graph.db"
    async with Client(server_of()) as client:
        assert (await done(client, "graph_statistics"))["path"] == str(own)
        for file in own.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
        assert stat.S_IMODE(own.parent.stat().st_mode) == 0o700
    monkeypatch.setenv("INTERLOCK_MEMORY_DB", str(tmp_path / "named.db"))
    async with Client(server_of()) as client:
        assert (await done(client, "graph_statistics"))["path"] == str(tmp_path / "named.db")
    async with Client(server_of(str(tmp_path / "typed.db"))) as client:
        assert (await done(client, "graph_statistics"))["path"] == str(tmp_path / "typed.db")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        server_of(str(tmp_path))
    with pytest.raises(ValueError, match="one file, or none"):
        server_of("a", "b")


async def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    """Another program's database, another version's, or no database at all: it is said, and not a
    byte is changed.
    """
    other = tmp_path / "other.db"
    newer = tmp_path / "newer.db"
    text = tmp_path / "text"
    for path, script in (
        (other, "CREATE TABLE t (a)"),
        (newer, "PRAGMA application_id = 1229737287; PRAGMA user_version = 9; CREATE TABLE t (a)"),
    ):
        with closing(sqlite3.connect(path)) as db:
            db.executescript(script)
    text.write_text("no database " * 100)
    for path, reason in (
        (other, "another program"),
        (newer, "a newer version"),
        (text, "not a SQLite database"),
        (tmp_path, "cannot be"),
    ):
        before = path.read_bytes() if path.is_file() else b""
        async with Client(memory_server(path, QUICK)) as client:
            assert reason in await refusal(client, "read_graph")
        assert (path.read_bytes() if path.is_file() else b"") == before


async def test_a_file_that_is_removed_is_made_again(client: Client, path: Path) -> None:
    """Also while the server runs: nothing goes to a file that nobody finds any more."""
    await done(client, "create_entities", entities=[entity("a")])
    for file in path.parent.iterdir():
        file.unlink()
    assert await done(client, "read_graph") == {"entities": [], "relations": []}
    await done(client, "create_entities", entities=[entity("b")])
    check_file(path)


async def test_who_waits_too_long_is_told(path: Path) -> None:
    """While another process holds the file for longer than the limit; reading goes on."""
    async with Client(memory_server(path, msgspec.structs.replace(QUICK, waiting=0.05))) as client:
        await done(client, "create_entities", entities=[entity("a")])
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            assert "another process has locked it" in await refusal(
                client, "create_entities", entities=[entity("b")]
            )
            assert await done(client, "read_graph") == {"entities": [entity("a")], "relations": []}
        await done(client, "create_entities", entities=[entity("b")])


async def test_what_takes_too_long_is_given_up(path: Path) -> None:
    """In words, and nothing is changed."""
    async with Client(memory_server(path, msgspec.structs.replace(QUICK, seconds=1e-6))) as client:
        lines = "".join(
            f'{{"type":"entity","name":"e{n}","entityType":"t","observations":[]}}\n'
            for n in range(1_000)
        )
        assert "so it was stopped" in await refusal(client, "import_graph", text=lines)
    async with Client(memory_server(path, QUICK)) as client:
        assert await done(client, "read_graph") == {"entities": [], "relations": []}


# -- limits ----------------------------------------------------------------------------------------


async def test_a_wrong_limit_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start where it is started by its command, else to whoever calls."""
    monkeypatch.setenv("INTERLOCK_MEMORY_PAGE", "many")
    with pytest.raises(ValueError, match="INTERLOCK_MEMORY_PAGE=many"):
        server_of()
    async with Client(memory_server(path)) as client:
        assert "INTERLOCK_MEMORY_PAGE=many" in await refusal(client, "read_graph")


@pytest.mark.parametrize("limit", [known.name for known in msgspec.structs.fields(MemoryLimits)])
def test_limits_are_as_stated(limit: str) -> None:
    """The page has each of them with what it is unless told otherwise."""
    value = f"{int(getattr(MemoryLimits(), limit)):,}"
    (row,) = [
        line
        for line in PAGE.splitlines()
        if line.startswith("|") and f"`{limit.upper()}`" in line.split("|")[1]
    ]
    names = re.findall(r"`(\w+)`", row.split("|")[1])
    assert row.split("|")[2].strip().split(", ")[names.index(limit.upper())] == value
