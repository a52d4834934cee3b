"""What a search finds, and in which order; what is hostile in names and queries; and what happens
where SQLite cannot search.
"""

from __future__ import annotations

import asyncio
import sqlite3
import unicodedata
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Client, McpError
from interlock_servers.memory import Graph, memory_server, schema, search
from interlock_servers.memory.__main__ import main
from interlock_servers.memory.texts import folded, words_of
from tests.servers.calls import done, refusal, words
from tests.servers.memory.conftest import QUICK
from tests.servers.memory.graph_helpers import NO_HURRY, check_file, entity, names

THINGS = [
    entity("John_Smith", "person", "speaks fluent Spanish", "lives in São Paulo"),
    entity("Ada Lovelace", "person", "wrote the first program", "knows C++ and Go"),
    entity("Spanish Steps", "place", "in Rome"),
    entity("東京タワー", "場所", "日本の首都にある"),
    entity("Ελλάδα", "place", "STRASSE und Straße", "１２３ full width"),
    entity("🦊 fox", "animal", 'says "ring"; DROP TABLE entities; --'),
    entity("تجربة", "كلمة", "مُحَمَّد"),
    entity("हिन्दी", "language", "देवनागरी लिपि"),
    entity("Go", "language", "100% sure, under_scored", 'sizes of 5"x7"'),
]
FOUND = [
    ("john smith", ["John_Smith"]),
    ("John_Smith", ["John_Smith"]),
    ("SMITH", ["John_Smith"]),
    ("smi", ["John_Smith"]),
    ("mith", ["John_Smith"]),
    ("hn_Sm", ["John_Smith"]),
    ("spanish", ["Spanish Steps", "John_Smith"]),
    ("spanish rome", ["Spanish Steps"]),
    ("sao paulo", ["John_Smith"]),
    ("são", ["John_Smith"]),
    ('"first program"', ["Ada Lovelace"]),
    ('"program first"', []),
    ("c++", ["Ada Lovelace"]),
    ("go", ["Go", "Ada Lovelace"]),
    ("東京", ["東京タワー"]),
    ("京", ["東京タワー"]),
    ("首都", ["東京タワー"]),
    ("都首", []),
    ("ελλαδα", ["Ελλάδα"]),
    ("strasse", ["Ελλάδα"]),
    ("straße", ["Ελλάδα"]),
    ("123", ["Ελλάδα"]),
    ("🦊", ["🦊 fox"]),
    ("drop table", ["🦊 fox"]),
    ("محمد", ["تجربة"]),
    ("हिन्दी", ["हिन्दी"]),
    ("लिपि", ["हिन्दी"]),
    ("100%", ["Go"]),
    ("_sc", ["Go"]),
    ("%", ["Go"]),
    ('5"x7', ["Go"]),
    ("xyzzy", []),
    ("person", ["John_Smith", "Ada Lovelace"]),
    ("c+", ["Ada Lovelace"]),
    ("+", ["Ada Lovelace"]),
    ("_", ["Go", "John_Smith"]),
    ("0% g", ["Go"]),
    ("go c+", ["Ada Lovelace"]),
    ("-", ["🦊 fox"]),
    ("~", []),
    ("c#", []),
    ("ith sp", ["John_Smith"]),
    ("lac r", ["Spanish Steps"]),
]


@pytest.fixture
async def stocked(client: Client) -> Client:
    """With things of many scripts."""
    await done(client, "create_entities", entities=THINGS)
    return client


@pytest.mark.parametrize("query, wanted", FOUND)
async def test_what_is_found(stocked: Client, query: str, wanted: list[str]) -> None:
    """Words, beginnings, middles, phrases, signs, scripts without spaces; without regard to case,
    accents and width; names first.
    """
    assert await names(stocked, query) == wanted


async def test_where_nothing_has_all_words_some_are_enough(stocked: Client) -> None:
    """And it is said; a type narrows."""
    found = await done(stocked, "search_nodes", query="spanish xyzzy")
    assert {one["name"] for one in found["entities"]} == {"Spanish Steps", "John_Smith"}
    assert "some of them" in found["note"]
    assert await names(stocked, "spanish", type="place") == ["Spanish Steps"]
    assert await names(stocked, "spanish", type="robot") == []
    assert len(await names(stocked, "")) == len(THINGS)


@pytest.mark.parametrize(
    "query",
    ['"', '""', "'", "*", "a*", "^a", "NEAR(a b)", "name : x", "a AND", "OR", "NOT a", "a + b", "(",
        "{name}: a", "-a", "\\", ";--", "a\0b", "\u202e",
     "¶", "x' OR 1=1 --", "\ufeff", "a" * 2_000, '" OR words MATCH "a', "🦊" * 30, "\n\t"],
)  # fmt: skip
async def test_queries_are_never_syntax(stocked: Client, query: str) -> None:
    """Whatever stands in them is looked for, and is neither an error nor a command."""
    await done(stocked, "search_nodes", query=query)
    assert len((await done(stocked, "read_graph"))["entities"]) == len(THINGS)


async def test_a_query_that_is_too_long_is_refused(stocked: Client) -> None:
    """In words."""
    assert "too long" in await refusal(stocked, "search_nodes", query="a" * 2_001)


@given(st.text(max_size=40), st.text(max_size=12))
def test_searching_never_fails(text: str, query: str) -> None:
    """Any text can be looked for in any text; what is a piece of it, from three characters on, is
    found.
    """
    with sqlite3.connect(":memory:", isolation_level=None) as db:
        schema.make_tables(db)
        schema.catch_up(db)
        db.execute("INSERT INTO entities VALUES (1, 'n', 'k', '')")
        db.execute("INSERT INTO observations VALUES (1, 1, ?, '')", (text.replace("\0", ""),))
        schema.index(db, [1])
        search.search(db, query, None, 10, 10, NO_HURRY, indexed=True)
        search.names_like(db, query, 10, indexed=True)
        piece = folded(text.replace("\0", ""))[1:8].strip()
        if len(piece) >= 3 and not any(char.isspace() or char == '"' for char in piece):
            assert search.search(db, piece, None, 10, 10, NO_HURRY, indexed=True).ids == [1]
    db.close()


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    """What is stored and what is asked for meet; the two forms of a letter are one; words are parts
    of what they come from.
    """
    once = folded(text)
    assert folded(unicodedata.normalize("NFD", text)) == folded(unicodedata.normalize("NFC", text))
    assert all(word in once for word in words_of(once))


@pytest.mark.parametrize(
    "name",
    [
        "'; DROP TABLE entities; --",
        '"',
        "%",
        "a\nb",
        "\u202egnp.exe",
        "e\u0301",
        "../../etc/passwd",
        "{name}",
        "a/b?c#d",
        "x" * 1000,
    ],
)
async def test_names_are_only_names(client: Client, path: Path, name: str) -> None:
    """Whatever they are, they are found, opened, read as resources, renamed and deleted; in words
    nothing of them acts.
    """
    kept = unicodedata.normalize("NFC", name)
    await done(client, "create_entities", entities=[entity(name, "t", name)])
    assert (await done(client, "open_nodes", names=[name]))["entities"] == [entity(kept, "t", kept)]
    text = await words(client, "open_nodes", names=[name])
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.count("\n") == 1
    uri = f"memory://entity/{quote(kept, safe='')}"
    if name in ("a\nb", "../../etc/passwd"):  # no template takes these; tools do
        with pytest.raises(McpError, match="not found"):
            await client.read_resource(uri)
    else:
        assert (
            msgspec.json.decode((await client.read_resource(uri)).contents[0].text or "")["name"]
            == kept
        )
    assert (await client.complete("memory://entity/{+name}", "name", kept[:50])).values == [kept]
    await done(client, "rename_entity", name=name, to="plain")
    assert "change" in await done(client, "delete_entities", entityNames=["plain"])
    check_file(path)


@pytest.mark.parametrize(
    "name, reason",
    [
        ("", "is empty"),
        (" \u3000", "is empty"),
        ("a\0b", "NUL"),
        ("x" * 1_000_000, "1,000,000 characters"),
    ],
)
async def test_what_cannot_be_a_name(client: Client, name: str, reason: str) -> None:
    """In words, and short ones."""
    said = await refusal(client, "create_entities", entities=[entity(name)])
    assert reason in said
    assert len(said) < 400
    assert await done(client, "read_graph") == {"entities": [], "relations": []}


async def test_two_spellings_are_one_name(client: Client) -> None:
    """Composed and decomposed letters look the same, and are."""
    await done(client, "create_entities", entities=[entity("Zürich")])
    assert (await done(client, "create_entities", entities=[entity("Zu\u0308rich")]))[
        "existing"
    ] == ["Zürich"]
    assert (await done(client, "create_entities", entities=[entity("ZÜRICH")]))["entities"] == [
        entity("ZÜRICH")
    ]  # case is not looked past


async def test_names_that_look_alike_are_told(client: Client) -> None:
    """They are others all the same: whoever made a second one by mistake is shown the first, and
    merges them.

    Signs make a difference.
    """
    await done(
        client,
        "create_entities",
        entities=[entity("John Smith"), entity("C"), entity("!!"), entity("Ada")],
    )
    for name, alike in (
        ("john_smith", ["John Smith"]),
        ("Jöhn-Smith ", ["John Smith", "john_smith"]),
        ("C++", []),
        ("C", None),
        ("Smith John", []),
        ("?!", []),
        ("John Smith Jr", []),
        ("A\u200bda", ["Ada"]),
    ):
        found = await done(client, "create_entities", entities=[entity(name)])
        assert found.get("existing", []) == ([name] if alike is None else [])
        assert found.get("alike", []) == (alike or []), name
    said = await words(client, "create_entities", entities=[entity("JOHN SMITH")])
    assert "already exist: John Smith, john_smith, Jöhn-Smith . merge_entities" in said


# -- without full-text search ----------------------------------------------------------------------


async def test_without_full_text_search(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where SQLite has none it is slower, and says so; who has it catches up with what others
    wrote.
    """
    async with Client(memory_server(path, QUICK)) as client:
        await done(client, "create_entities", entities=THINGS)
    with monkeypatch.context() as patched:
        patched.setattr(schema, "can_index", lambda: False)
        async with Client(memory_server(path, QUICK)) as client:
            found = await done(client, "search_nodes", query="sao paulo")
            assert [one["name"] for one in found["entities"]] == ["John_Smith"]
            assert "no full-text search" in found["note"]
            assert "note" not in await done(client, "search_nodes", query="xyzzy")
            assert not (await done(client, "graph_statistics"))["fullText"]
            await done(
                client,
                "add_observations",
                observations=[{"entityName": "Go", "contents": ["has gophers"]}],
            )
            await done(client, "delete_entities", entityNames=["John_Smith"])
            assert await names(client, "gophers") == ["Go"]
            assert (
                await asyncio.to_thread(main, ["--graph", str(path), "forget", "--all"]) == 1
            )  # for the index has it still
            assert (await client.complete("memory://entity/{+name}", "name", "G")).values == ["Go"]
    async with Client(memory_server(path, QUICK)) as client:
        assert await names(client, "gophers") == ["Go"]
        assert await names(client, "smith") == []
        assert b"fluent" in path.read_bytes()
        assert await asyncio.to_thread(main, ["--graph", str(path), "forget", "--all"]) == 0
    assert b"fluent" not in path.read_bytes()
    check_file(path)


def test_an_old_index_is_made_anew(graph: Graph, path: Path) -> None:
    """A file that was made without one, or with one of another form, gets it when it is next
    used.
    """
    with graph.changing(NO_HURRY, "test") as change:
        change.add_entity("Ada", "person")
    for change_ in (
        "UPDATE facts SET value = 'older'",
        "DELETE FROM facts",
        "DROP TABLE words; DELETE FROM facts",
    ):
        with sqlite3.connect(path) as db:
            db.executescript(change_)
        db.close()
        with graph.reading(NO_HURRY) as found:
            assert search.search(found, "ada", None, 1, 1, NO_HURRY, indexed=True).ids == [1]
        check_file(path)


class Seen:
    """A connection that notes what it is asked."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.asked: list[tuple[str, Any]] = []

    def execute(self, query: str, values: Any = ()) -> Any:
        """As the connection's own."""
        self.asked.append((query, values))
        return self._db.execute(query, values)


def test_words_that_very_many_have(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not weighed, which costs as much as there are; the others put in order, and names
    come first as always.
    """
    monkeypatch.setattr(search, "_COMMON", 4)
    with graph.changing(NO_HURRY, "test") as change:
        for number in range(1, 9):
            row = change.add_entity(f"e{number}", "t")
            change.add_observation(
                row,
                f"e{number}",
                "common"
                + {2: " rare", 3: " rare rare rare", 5: " seldom"}.get(number, " words of no use"),
            )
        change.add_observation(change.add_entity("common", "t"), "common", "x")
    with graph.reading(NO_HURRY) as db:
        for query, wanted in (
            ("common", [9, 8, 7, 6, 5, 4, 3, 2, 1]),
            ("common rare", [3, 2]),
            ("comm common", [9, 8, 7, 6, 5, 4, 3, 2, 1]),
            ("common xyzzy seldom", [5, 9, 8, 7, 6, 4, 3, 2, 1]),
            ("common seldom rare", [5, 3, 2, 9, 8, 7, 6, 4, 1]),
        ):
            seen: Any = Seen(db)
            found = search.search(seen, query, None, 5, 100, NO_HURRY, indexed=True).ids
            assert found[: len(wanted)] == wanted, query
            assert not [
                values
                for asked, values in seen.asked
                if "bm25" in asked and "common" in str(values)
            ]
            assert ('"comm" *',) not in [
                values for _, values in seen.asked
            ]  # which common has as well
        assert search.search(db, "common xyzzy seldom", None, 5, 4, NO_HURRY, indexed=True).ids == [
            5,
            9,
            8,
            7,
        ]


def test_the_index_is_used(graph: Graph) -> None:
    """Each query of a search goes by an index: none looks at every entity."""
    with graph.changing(NO_HURRY, "test") as change:
        change.add_entity("Ada_Lovelace", "person")
    with graph.reading(NO_HURRY) as db:
        seen: Any = Seen(db)
        asked = seen.asked
        for query in ("ada", "ada lovelace", "lace", "a_l", "ada xyzzy", "東京"):
            search.search(seen, query, "person", 5, 100, NO_HURRY, indexed=True)
        assert len({query for query, _ in asked}) >= 4
        for query, values in asked:
            plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {query}", values)]
            # FTS5 says by what it looks: M for words that match; 0 with nothing after the colon
            # would be every row.
            assert all(
                "VIRTUAL TABLE INDEX" in step and "M" in step.rsplit(":")[-1]
                for step in plan
                if "VIRTUAL" in step
            ), (query, plan)
            whole = [step for step in plan if step.startswith("SCAN") and "(subquery" not in step]
            assert all("USING" in step or "VIRTUAL" in step for step in whole), (query, plan)
