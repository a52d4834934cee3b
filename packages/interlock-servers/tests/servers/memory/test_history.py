"""Changes as they are remembered: who made them, what they were, how they are taken back, and how
they are forgotten.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import Client, McpError
from interlock_servers.memory import Graph, memory_server
from interlock_servers.memory.__main__ import main
from tests.servers.calls import done, refusal, words
from tests.servers.memory.conftest import QUICK
from tests.servers.memory.graph_helpers import NO_HURRY, check_file, entity, relation

# what is done after two entities and a relation were made (changes 1 and 2) -> whether these can be
# undone then
LATER: list[tuple[str, dict[str, Any], bool, bool]] = [
    ("create_entities", {"entities": [entity("c")]}, False, True),
    (
        "add_observations",
        {"observations": [{"entityName": "a", "contents": ["more"]}]},
        False,
        True,
    ),
    ("create_relations", {"relations": [relation("a", "likes", "b")]}, False, True),
    ("delete_relations", {"relations": [relation("a", "knows", "b")]}, True, False),
    ("rename_entity", {"name": "a", "to": "z"}, False, False),
    ("set_entity_type", {"name": "a", "type": "robot"}, False, True),
    ("delete_entities", {"entityNames": ["a"]}, False, False),
    ("replace_observation", {"name": "a", "old": "one", "new": "two"}, False, True),
    (
        "delete_observations",
        {"deletions": [{"entityName": "a", "observations": ["one"]}]},
        False,
        True,
    ),
    ("merge_entities", {"names": ["b"], "into": "a"}, False, False),
    (
        "import_graph",
        {"text": '{"type":"entity","name":"a","entityType":"t","observations":["more"]}'},
        False,
        True,
    ),
]


@pytest.fixture
async def pair(client: Client) -> Client:
    """With two entities and a relation between them."""
    await done(client, "create_entities", entities=[entity("a", "t", "one"), entity("b", "t")])
    await done(client, "create_relations", relations=[relation("a", "knows", "b")])
    return client


@pytest.mark.parametrize("tool, arguments, entities, relations", LATER)
async def test_what_stands_in_the_way(
    pair: Client, path: Path, tool: str, arguments: dict[str, Any], entities: bool, relations: bool
) -> None:
    """A change is taken back where what it made is as it was; else nothing is, and it is said which
    later ones to undo first.
    """
    before = await words(pair, "export_graph")
    assert (await done(pair, tool, **arguments))["change"] == 3
    after = await words(pair, "export_graph")
    for number, possible in ((1, entities), (2, relations)):
        if possible:
            taken = (await done(pair, "undo", change=number))["change"]
            assert await words(pair, "export_graph") != after
            await done(pair, "undo", change=taken)
        else:
            said = await refusal(pair, "undo", change=number)
            assert f"Change {number} cannot be undone" in said
            assert re.search("Undo these later changes first: (3|2|3, 2)[.]", said), said
        assert await words(pair, "export_graph") == after
    await done(pair, "undo", change=3)
    assert await words(pair, "export_graph") == before
    for number in (2, 1):
        await done(pair, "undo", change=number)
    assert await words(pair, "export_graph") == ""
    check_file(path)


async def test_undoing_can_be_undone(pair: Client) -> None:
    """And that again; what is undone already is said to be, and nothing is changed."""
    whole = await words(pair, "export_graph")
    first = (await done(pair, "undo", change=2))["change"]
    again = await done(pair, "undo", change=2)
    assert again == {
        "success": True,
        "message": f"Change 2 was already undone by change {first}. There was nothing to change.",
    }
    second = (await done(pair, "undo", change=first))["change"]
    assert await words(pair, "export_graph") == whole
    listed = (await done(pair, "list_changes"))["changes"]
    assert [(one["id"], one.get("undoes"), one.get("undoneBy")) for one in listed] == [
        (second, first, None), (first, 2, second), (2, None, None), (1, None, None),
    ]  # fmt: skip
    assert (await done(pair, "undo", change=2))["change"] == second + 1
    assert "no change 99" in await refusal(pair, "undo", change=99)


async def test_changes_are_listed_and_shown(pair: Client) -> None:
    """With the client, the tool and the time, the latest first, in pages, of one entity; each with
    what was before and after.
    """
    await done(pair, "rename_entity", name="b", to="c")
    await done(pair, "set_entity_type", name="a", type="u")
    listed = await done(pair, "list_changes", limit=3)
    assert [one["tool"] for one in listed["changes"]] == [
        "set_entity_type",
        "rename_entity",
        "create_relations",
    ]
    assert {one["client"] for one in listed["changes"]} == {"interlock"}
    assert all(one["at"].endswith("Z") for one in listed["changes"])
    rest = await done(pair, "list_changes", cursor=listed["cursor"])
    assert ([one["id"] for one in rest["changes"]], "cursor" in rest) == ([1], False)
    assert [one["id"] for one in (await done(pair, "list_changes", name="c"))["changes"]] == [3]
    assert [one["id"] for one in (await done(pair, "list_changes", name="b"))["changes"]] == [
        3,
        2,
        1,
    ]
    shown = await done(pair, "show_change", change=3)
    assert shown["steps"][0] == {
        "kind": "entity",
        "before": {"name": "b", "type": "t"},
        "after": {"name": "c", "type": "t"},
    }
    first = await done(pair, "show_change", change=1, limit=2)
    second = await done(pair, "show_change", change=1, cursor=first["cursor"])
    assert [step["after"] for step in first["steps"] + second["steps"]] == [
        {"name": "a", "type": "t"}, {"entityName": "a", "text": "one"}, {"name": "b", "type": "t"},
    ]  # fmt: skip


async def test_what_is_forgotten_is_gone(pair: Client, path: Path) -> None:
    """Once the person has agreed: not a byte of it is left in the file, and the graph is as
    it was.
    """
    await done(
        pair,
        "add_observations",
        observations=[{"entityName": "a", "contents": ["the password is xyzzyplugh", "stays"]}],
    )
    await done(
        pair,
        "delete_observations",
        deletions=[{"entityName": "a", "observations": ["the password is xyzzyplugh"]}],
    )
    await done(pair, "rename_entity", name="b", to="c")
    whole = await words(pair, "export_graph")

    def held() -> bytes:
        return b"".join(file.read_bytes() for file in path.parent.iterdir())

    assert b"xyzzyplugh" in held()
    assert (await done(pair, "forget_changes", changes=[3, 4, 99])) == {"changes": 2}
    assert b"xyzzyplugh" not in held()
    assert await words(pair, "export_graph") == whole
    assert [one["id"] for one in (await done(pair, "list_changes"))["changes"]] == [5, 2, 1]
    assert "no change 4" in await refusal(pair, "undo", change=4)
    await done(pair, "undo", change=5)
    assert (await done(pair, "forget_changes")) == {"changes": 4}
    assert (await done(pair, "forget_changes")) == {"changes": 0}
    check_file(path)


async def test_an_entity_is_forgotten_with_all_that_it_ever_was(pair: Client, path: Path) -> None:
    """By its name, under which it may not be there any more; the changes of others stay."""
    await done(pair, "create_entities", entities=[entity("Secret", "t", "plughxyzzy")])
    await done(pair, "create_relations", relations=[relation("a", "knows", "Secret")])
    await done(pair, "rename_entity", name="Secret", to="Hidden")
    await done(pair, "delete_entities", entityNames=["Hidden"])
    assert (await done(pair, "forget_changes", name="Hidden")) == {"changes": 4}
    held = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert not [word for word in (b"plughxyzzy", b"Secret", b"Hidden") if word in held]
    assert [one["id"] for one in (await done(pair, "list_changes"))["changes"]] == [2, 1]
    assert (await done(pair, "forget_changes", name="a", changes=[1])) == {"changes": 2}


async def test_what_a_reader_holds_is_not_called_gone(path: Path) -> None:
    """While another program reads, traces stay beside the file: that is said, and asked for again
    they go.
    """
    limits = msgspec.structs.replace(QUICK, waiting=0.05)
    async with Client(
        memory_server(path, limits), elicit=lambda question: {"confirm": True}
    ) as client:
        await done(client, "create_entities", entities=[entity("a", "t", "xyzzyplugh")])
        with contextlib.closing(sqlite3.connect(path)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM entities").fetchall()
            await done(client, "delete_entities", entityNames=["a"])
            result = await client.call_tool("forget_changes", {})
            assert result.structured_content == {"changes": 2, "clean": False}
            assert "Traces of it remain" in result.text
        assert (await done(client, "forget_changes")) == {"changes": 0}
        assert not [
            file.name for file in path.parent.iterdir() if b"xyzzyplugh" in file.read_bytes()
        ]


@pytest.mark.parametrize(
    "which, gone, left",
    [(["--all"], 5, []), (["--name", "b"], 3, [4, 3]), (["3", "99"], 1, [5, 4, 2, 1])],
)
async def test_forgetting_by_the_command(
    pair: Client,
    path: Path,
    capsys: pytest.CaptureFixture[str],
    which: list[str],
    gone: int,
    left: list[int],
) -> None:
    """Whoever owns the file needs nobody's leave, and no client that can ask."""
    await done(pair, "create_entities", entities=[entity("c")])
    await done(pair, "create_entities", entities=[entity("d")])
    await done(pair, "rename_entity", name="b", to="e")
    assert await asyncio.to_thread(main, ["--graph", str(path), "forget", *which]) == 0
    assert f"{gone} change" in capsys.readouterr().out
    assert [one["id"] for one in (await done(pair, "list_changes"))["changes"]] == left


async def test_to_and_fro_is_told_in_few_words(pair: Client) -> None:
    """Who undoes an undoing reads what that was, and not all that went before."""
    number = 2
    for _ in range(6):
        number = (await done(pair, "undo", change=number))["change"]
    assert (await done(pair, "list_changes", limit=1))["changes"][0][
        "words"
    ] == "change 7 undone (which undid change 6)"


async def test_nothing_is_forgotten_unasked(server: Any) -> None:
    """Neither where the person says no, nor where there is nobody to ask."""
    for person in (
        {"elicit": lambda question: {"confirm": False}},
        {"elicit": lambda question: {}},
        {},
    ):
        async with Client(server, **person) as client:
            await done(client, "create_entities", entities=[entity(str(person))])
            before = await done(client, "list_changes")
            if person:
                assert "did not agree" in await refusal(client, "forget_changes")
            else:
                with pytest.raises(McpError, match="capability"):
                    await client.call_tool("forget_changes")
            assert await done(client, "list_changes") == before


async def test_the_history_has_an_end(path: Path) -> None:
    """So many changes are kept, and so many parts; the last one always is."""
    async with Client(memory_server(path, msgspec.structs.replace(QUICK, changes=10))) as client:
        for number in range(64):
            await done(client, "create_entities", entities=[entity(str(number))])
        assert [one["id"] for one in (await done(client, "list_changes"))["changes"]] == list(
            range(64, 54, -1)
        )
    async with Client(memory_server(path, msgspec.structs.replace(QUICK, steps=4))) as client:
        for number in range(64, 96):
            await done(client, "create_entities", entities=[entity(str(number), "t", "one", "two")])
        assert [one["id"] for one in (await done(client, "list_changes"))["changes"]] == [96]
    check_file(path)


def test_who_reads_can_change_nothing(graph: Graph) -> None:
    """SQLite itself sees to it, whatever a tool that only looks would ask for; and the connection
    is one that writes again.
    """
    with graph.reading(NO_HURRY) as db, pytest.raises(sqlite3.OperationalError, match="readonly"):
        db.execute("INSERT INTO entities VALUES (1, 'a', 't', '')")
    with graph.changing(NO_HURRY, "test") as change:
        change.add_entity("a", "t")
    with graph.reading(NO_HURRY) as db:
        assert db.execute("SELECT name FROM entities").fetchall() == [("a",)]


def test_a_change_that_fails_leaves_nothing(graph: Graph, path: Path) -> None:
    """Whatever it did before it failed."""
    with contextlib.suppress(ZeroDivisionError), graph.changing(NO_HURRY, "test") as change:
        change.add_entity("a", "t")
        raise ZeroDivisionError
    with graph.reading(NO_HURRY) as db:
        assert db.execute(
            "SELECT (SELECT count(*) FROM entities), (SELECT count(*) FROM changes)"
        ).fetchall() == [(0, 0)]
    check_file(path)
