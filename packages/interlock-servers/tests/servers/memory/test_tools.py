"""What the tools do: those that other memory servers have, as these do it, and those that they
lack.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import Client
from interlock_servers.memory import MemoryLimits, memory_server
from tests.servers.calls import done, refusal, words
from tests.servers.memory.conftest import QUICK
from tests.servers.memory.graph_helpers import check_file, entity, names, relation

ADA = entity("Ada", "person", "wrote a program", "likes Zürich")
ENGINE = entity("Engine", "machine")


@pytest.fixture
async def small(client: Client) -> Client:
    """With two entities and a relation."""
    await done(client, "create_entities", entities=[ADA, ENGINE])
    await done(client, "create_relations", relations=[relation("Ada", "programs", "Engine")])
    return client


# -- as other servers have it ----------------------------------------------------------------------


async def test_entities_are_created_once(small: Client) -> None:
    """One that is there is left as it is, whatever else is sent; what is given back is what
    is new.
    """
    given = await done(
        small,
        "create_entities",
        entities=[entity("Ada", "robot", "lies"), entity("New", "thing", "one", "one")],
    )
    assert given == {"entities": [entity("New", "thing", "one")], "existing": ["Ada"], "change": 3}
    assert (await done(small, "open_nodes", names=["Ada"]))["entities"] == [ADA]
    assert (await done(small, "create_entities", entities=[ADA]))["entities"] == []


async def test_relations_are_created_once(small: Client) -> None:
    """Also before the entities that they lead to, which are named then."""
    given = await done(
        small,
        "create_relations",
        relations=[relation("Ada", "programs", "Engine"), relation("Ada", "knows", "Babbage")],
    )
    assert given == {
        "relations": [relation("Ada", "knows", "Babbage")],
        "missing": ["Babbage"],
        "change": 3,
    }
    assert "Missing entities: Babbage" in await words(
        small, "create_relations", relations=[relation("Babbage", "knows", "Ada")]
    )


async def test_observations_are_added_once(small: Client) -> None:
    """What is there is not added again; for an entity that is not there nothing is added to any."""
    given = await done(
        small,
        "add_observations",
        observations=[{"entityName": "Ada", "contents": ["new", "likes Zürich", "new"]}],
    )
    assert given == {"results": [{"entityName": "Ada", "addedObservations": ["new"]}], "change": 3}
    both = [
        {"entityName": "Ada", "contents": ["more"]},
        {"entityName": "Nobody", "contents": ["x"]},
    ]
    assert "no entity Nobody" in await refusal(small, "add_observations", observations=both)
    assert (await done(small, "open_nodes", names=["Ada"]))["entities"][0]["observations"][
        -1
    ] == "new"


async def test_deleting(small: Client) -> None:
    """Entities go with their relations, observations and relations by themselves; what is not there
    stays so, and is named.
    """
    given = await done(
        small,
        "delete_observations",
        deletions=[{"entityName": "Ada", "observations": ["wrote a program", "no"]}],
    )
    assert (given["success"], given["missing"]) == (True, ["Ada: no"])
    given = await done(
        small,
        "delete_relations",
        relations=[relation("Ada", "programs", "Engine"), relation("Ada", "programs", "Nothing")],
    )
    assert given["missing"] == ["Ada -[programs]-> Nothing"]
    await done(small, "create_relations", relations=[relation("Engine", "made_by", "Ada")])
    given = await done(small, "delete_entities", entityNames=["Ada", "Nobody"])
    assert given["missing"] == ["Nobody"]
    assert await done(small, "read_graph") == {"entities": [ENGINE], "relations": []}
    given = await done(small, "delete_entities", entityNames=["Ada"])
    assert "change" not in given


async def test_reading(small: Client) -> None:
    """The shapes are those of other servers: entities and relations."""
    whole = {"entities": [ADA, ENGINE], "relations": [relation("Ada", "programs", "Engine")]}
    assert await done(small, "read_graph") == whole
    assert await done(small, "open_nodes", names=["Engine", "Ada"]) == {
        **whole,
        "entities": [ENGINE, ADA],
    }
    found = await done(small, "search_nodes", query="program")
    assert found == {
        "entities": [ADA],
        "relations": [relation("Ada", "programs", "Engine")],
    }  # also to what was not found
    text = await words(small, "read_graph")
    assert text == (
        "Ada (person)\n- wrote a program\n- likes Zürich\nEngine (machine)\nAda -[programs]-> "
        "Engine"
    )


# -- what these lack -------------------------------------------------------------------------------


async def test_pages_are_the_whole(client: Client) -> None:
    """Page by page everything comes once: entities, relations, also those between what is no
    entity; and the lines of an export.
    """
    many = [entity(f"e{n}", "even" if n % 2 == 0 else "odd", f"x{n}") for n in range(25)]
    await done(client, "create_entities", entities=many)
    sent = [relation(f"e{n}", "next", f"e{n + 1}") for n in range(25)] + [
        relation("nobody", "knows", "nothing"),
        relation("z", "to", "e3"),
    ]
    await done(client, "create_relations", relations=sent)
    found: list[Any] = []
    related: list[Any] = []
    cursor: dict[str, str] = {}
    for _ in range(4):
        page = await done(client, "read_graph", limit=7, **cursor)
        found += page["entities"]
        related += page["relations"]
        cursor = {"cursor": page.get("cursor", "")}
    assert (found, cursor) == (many, {"cursor": ""})
    assert sorted(sorted(one.items()) for one in related) == sorted(
        sorted(one.items()) for one in sent
    )
    assert [
        one["name"] for one in (await done(client, "read_graph", type="odd", limit=3))["entities"]
    ] == ["e1", "e3", "e5"]
    first = await done(client, "search_nodes", query="even", limit=10)
    second = await done(client, "search_nodes", query="even", limit=10, cursor=first["cursor"])
    assert {one["name"] for page in (first, second) for one in page["entities"]} == {
        f"e{n}" for n in range(0, 25, 2)
    }
    assert "cursor" not in second
    for tool in ("read_graph", "export_graph", "list_changes"):
        assert "not a cursor" in await refusal(client, tool, cursor="x")
    assert "not a cursor" in await refusal(client, "search_nodes", query="x", cursor="-1")


async def test_ways(client: Client) -> None:
    """A shortest way, along relations or either way; what is near; and what is not connected."""
    await done(client, "create_entities", entities=[entity(name) for name in "abcdef"])
    await done(
        client,
        "create_relations",
        relations=[relation(*one) for one in ("akb", "bkc", "ckd", "alc", "eld")],
    )
    assert (await done(client, "find_path", start="a", end="d"))["entities"] == ["a", "c", "d"]
    assert (await done(client, "find_path", start="a", end="d", relations=["k"]))["entities"] == [
        "a",
        "b",
        "c",
        "d",
    ]
    assert (await done(client, "find_path", start="a", end="e"))["entities"] == ["a", "c", "d", "e"]
    assert not (await done(client, "find_path", start="a", end="e", directed=True))["found"]
    assert not (await done(client, "find_path", start="a", end="e", depth=2))["found"]
    assert not (await done(client, "find_path", start="a", end="f"))["found"]
    assert (await done(client, "find_path", start="a", end="a")) == {
        "found": True,
        "entities": ["a"],
        "relations": [],
    }
    assert "no entity g" in await refusal(client, "find_path", start="a", end="g")

    async def near(**arguments: Any) -> list[str]:
        return [
            one["name"] for one in (await done(client, "list_neighbours", **arguments))["entities"]
        ]

    assert await near(name="d") == ["d", "c", "e"]
    assert await near(name="d", direction="out") == ["d"]
    assert await near(name="d", direction="in", depth=2) == ["d", "c", "e", "b", "a"]
    assert await near(name="a", relations=["l"], depth=5) == ["a", "c"]
    assert "no entity g" in await refusal(client, "list_neighbours", name="g")


async def test_renaming_and_merging(small: Client, path: Path) -> None:
    """Relations go along; what both knew is known once; a name that is taken is not taken again."""
    await done(
        small,
        "create_entities",
        entities=[entity("Lovelace", "countess", "likes Zürich", "a daughter")],
    )
    await done(
        small,
        "create_relations",
        relations=[relation("Lovelace", "is", "Ada"), relation("Engine", "made_for", "Lovelace")],
    )
    assert "merge_entities" in await refusal(small, "rename_entity", name="Lovelace", to="Ada")
    await done(small, "merge_entities", names=["Lovelace"], into="Ada")
    await done(small, "rename_entity", name="Ada", to="Ada Lovelace")
    assert "already renamed" in await refusal(small, "rename_entity", name="Ada", to="Ada Lovelace")
    await done(small, "set_entity_type", name="Ada Lovelace", type="mathematician")
    await done(
        small, "replace_observation", name="Ada Lovelace", old="likes Zürich", new="likes Geneva"
    )
    assert "no such observation" in await refusal(
        small, "replace_observation", name="Ada Lovelace", old="likes Rome", new="x"
    )
    assert await done(small, "read_graph") == {
        "entities": [
            entity(
                "Ada Lovelace", "mathematician", "wrote a program", "likes Geneva", "a daughter"
            ),
            ENGINE,
        ],
        "relations": [
            relation("Ada Lovelace", "programs", "Engine"),
            relation("Engine", "made_for", "Ada Lovelace"),
        ],
    }
    assert await names(small, "geneva lovelace") == ["Ada Lovelace"]
    assert await names(small, "zurich") == []
    check_file(path)


async def test_long_entities_are_shown_in_parts(path: Path) -> None:
    """So many observations of each, with how many more there are; and no more in one answer than it
    may hold.
    """
    async with Client(
        memory_server(path, msgspec.structs.replace(QUICK, shown=3, answer=110))
    ) as client:
        await client.list_tools()
        await done(
            client,
            "create_entities",
            entities=[
                entity("long", "t", *"abcdefg"),
                entity("wide", "t", "x" * 90),
                entity("last", "t", "y" * 90),
            ],
        )
        (one,) = (await done(client, "open_nodes", names=["long"]))["entities"]
        assert one == {**entity("long", "t", "a", "b", "c"), "more": 4}
        (one,) = (await done(client, "open_nodes", names=["long"], skip=6))["entities"]
        assert one == entity("long", "t", "g")
        page = await done(client, "read_graph")
        assert [one["name"] for one in page["entities"]] == ["long", "wide"]
        page = await done(client, "read_graph", cursor=page["cursor"])
        assert [one["name"] for one in page["entities"]] == ["last"]


@pytest.mark.parametrize(
    "tool, arguments, reason",
    [
        ("create_entities", {"entities": [entity("n" * 51)]}, "51 characters, and the limit is 50"),
        ("create_entities", {"entities": [entity("n", "t" * 51)]}, "The type of an entity has 51"),
        ("create_entities", {"entities": [entity("n", "t", "o" * 201)]}, "An observation has 201"),
        (
            "create_entities",
            {"entities": [entity("n", "t", *map(str, range(6)))]},
            "6 observations, and 5 are the limit",
        ),
        ("create_entities", {"entities": [entity(str(n)) for n in range(9)]}, "At most 8"),
        (
            "add_observations",
            {"observations": [{"entityName": "there", "contents": list("abcdef")}]},
            "would have 6",
        ),
        ("open_nodes", {"names": list("abcdefghi")}, "At most 8"),
        ("import_graph", {"text": "x" * 301}, "301 bytes, and the limit is 300"),
    ],
)
async def test_limits(path: Path, tool: str, arguments: dict[str, Any], reason: str) -> None:
    """What is more than may be is refused in words, and nothing of it is kept."""
    limits = MemoryLimits(name=50, observation=200, observations=5, items=8, lines=300, sync=False)
    async with Client(memory_server(path, limits)) as client:
        await done(client, "create_entities", entities=[entity("there")])
        before = await done(client, "read_graph")
        assert reason in await refusal(client, tool, **arguments)
        assert await done(client, "read_graph") == before


async def test_many_calls_at_once(client: Client, path: Path) -> None:
    """Searching goes on while others write, and nobody waits in vain."""
    await asyncio.gather(
        *(
            done(client, "create_entities", entities=[entity(f"e{n}", "t", "needle")])
            for n in range(30)
        ),
        *(done(client, "search_nodes", query="needle") for _ in range(30)),
    )
    assert len(await names(client, "needle")) == 30
    check_file(path)
