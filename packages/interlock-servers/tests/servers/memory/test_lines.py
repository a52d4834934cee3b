"""Taking over the file of another memory server, and giving one back."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Client
from interlock_servers.memory import Graph, memory_server
from interlock_servers.memory.__main__ import main
from interlock_servers.memory.jsonl import import_lines
from tests.servers.calls import done, refusal, words
from tests.servers.memory.conftest import QUICK
from tests.servers.memory.graph_helpers import NO_HURRY, check_file, entity, lines_in, relation

FILE = (
    '{"type":"entity","name":"Ada","entityType":"person","observations":["wrote a program","likes '
    'Zürich"]}\n'
    '{"type":"entity","name":"Engine","entityType":"machine","observations":[]}\n'
    '{"type":"relation","from":"Ada","to":"Engine","relationType":"programs"}\n'
    '{"type":"relation","from":"Ada","to":"Nobody","relationType":"knows"}'
)


def loaded(text: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the reference implementation makes of a file: a line each, blank ones left out, by what
    their `type` says.
    """
    lines = [msgspec.json.decode(line) for line in text.split("\n") if line.strip()]
    entities = [
        {key: line[key] for key in ("name", "entityType", "observations")}
        for line in lines
        if line["type"] == "entity"
    ]
    return entities, [
        {key: line[key] for key in ("from", "to", "relationType")}
        for line in lines
        if line["type"] == "relation"
    ]


async def test_what_comes_in_goes_out(client: Client, path: Path) -> None:
    """The bytes of the file, but for the line feed at its end; as a tool gives them, and as a
    resource.
    """
    given = await done(client, "import_graph", text=FILE)
    assert given == {"entities": 2, "observations": 2, "relations": 2, "known": 0, "change": 1}
    assert await words(client, "export_graph") == FILE + "\n"
    assert (await client.read_resource("memory://export")).contents[0].text == FILE + "\n"
    assert loaded(await words(client, "export_graph")) == loaded(FILE)
    graph = msgspec.json.decode(
        (await client.read_resource("memory://knowledge-graph")).contents[0].text
    )
    assert [one["name"] for one in graph["entities"]] == ["Ada", "Engine"]
    assert [one["to"] for one in graph["relations"]] == ["Engine", "Nobody"]
    check_file(path)


async def test_it_may_be_repeated(client: Client) -> None:
    """The second time nothing is new; what was learnt meanwhile stays; observations of the same
    name come together.
    """
    await done(client, "import_graph", text=FILE)
    again = await done(client, "import_graph", text=FILE)
    assert again == {"entities": 0, "observations": 0, "relations": 0, "known": 4}
    await done(
        client, "add_observations", observations=[{"entityName": "Ada", "contents": ["new"]}]
    )
    more = (
        '{"type":"entity","name":"Ada","entityType":"robot","observations":["new","newer","newer"]}\n'
        * 2
    )
    given = await done(client, "import_graph", text=more)
    assert (given["entities"], given["observations"], given["known"]) == (0, 1, 1)
    (ada,) = (await done(client, "open_nodes", names=["Ada"]))["entities"]
    assert ada == entity("Ada", "person", "wrote a program", "likes Zürich", "new", "newer")


BAD = [
    "{",
    "null",
    "[]",
    "7",
    '"entity"',
    "{}",
    '{"type":"thing"}',
    '{"type":"entity","name":"x"}',
    '{"type":"entity","name":"x","entityType":"t","observations":[null]}',
    '{"type":"entity","name":null,"entityType":"t","observations":[]}',
    '{"type":"entity","name":"","entityType":"t","observations":[]}',
    '{"type":"entity","name":"a\\u0000b","entityType":"t","observations":[]}',
    '{"type":"entity","name":"\\ud800","entityType":"t","observations":[]}',
    '{"type":"relation","from":"a","to":"b"}',
    '{"type":"entity","name":"x","entityType":"t","observations":["a"]',
    '{"type":"entity","name":"' + "x" * 2_000 + '","entityType":"t","observations":[]}',
    "[" * 100_000,
]


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
async def test_bad_lines_are_named(client: Client, bad: str) -> None:
    """With their numbers and why, and the others are imported; a dry run says the same and keeps
    nothing.
    """
    text = (
        f"\ufeff\n{FILE}\r\n\n{bad}\n"
        + '{"type":"entity","name":"Last","entityType":"t","observations":[],"since":1}'
    )
    dry = await done(client, "import_graph", text=text, dry_run=True)
    assert await done(client, "read_graph") == {"entities": [], "relations": []}
    given = await done(client, "import_graph", text=text)
    assert {**dry, "dryRun": False} == {
        **{key: value for key, value in given.items() if key != "change"},
        "dryRun": False,
    }
    assert (given["entities"], given["badLines"]) == (3, 1)
    (named,) = given["bad"]
    assert named["line"] == 7
    assert named["reason"]


async def test_an_import_is_one_change(client: Client, path: Path) -> None:
    """All of it is undone, and done again; not where somebody built on it."""
    await done(client, "import_graph", text=FILE)
    whole = await words(client, "export_graph")
    undone = (await done(client, "undo", change=1))["change"]
    assert await words(client, "export_graph") == ""
    redone = (await done(client, "undo", change=undone))["change"]
    assert await words(client, "export_graph") == whole
    for tool, arguments, reason in (
        (
            "add_observations",
            {"observations": [{"entityName": "Engine", "contents": ["x"]}]},
            "have more observations",
        ),
        (
            "create_relations",
            {"relations": [relation("Engine", "of", "Babbage")]},
            "other relations",
        ),
        (
            "delete_observations",
            {"deletions": [{"entityName": "Ada", "observations": ["likes Zürich"]}]},
            "observations have changed",
        ),
        ("rename_entity", {"name": "Engine", "to": "Machine"}, "have changed"),
    ):
        change = (await done(client, tool, **arguments))["change"]
        assert reason in await refusal(client, "undo", change=1)
        await done(client, "undo", change=change)
    await done(client, "undo", change=1)
    assert await words(client, "export_graph") == ""
    assert redone == 3
    check_file(path)


async def test_an_import_that_is_cancelled_leaves_nothing(path: Path) -> None:
    """It tells how far it is, and once nobody waits any more it ends, and nothing of it is there
    (`PRG-02`, `CAN-02`).
    """
    lines = "".join(
        f'{{"type":"entity","name":"e{n}","entityType":"t","observations":["some words of {n}"]}}\n'
        for n in range(20_000)
    )
    async with Client(memory_server(path, QUICK)) as client:
        told = asyncio.Event()
        call = asyncio.create_task(
            client.call_tool("import_graph", {"text": lines}, on_progress=lambda _: told.set())
        )
        await asyncio.wait_for(told.wait(), 60)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await done(
            client, "create_entities", entities=[entity("after")]
        )  # which waits until the other one has ended
        assert await done(client, "read_graph") == {"entities": [entity("after")], "relations": []}
        assert [one["tool"] for one in (await done(client, "list_changes"))["changes"]] == [
            "create_entities"
        ]
    check_file(path)


async def test_progress_is_told(client: Client) -> None:
    """It grows, and counts lines and then entities (`PRG-02`)."""
    seen: list[float] = []
    lines = "".join(
        f'{{"type":"entity","name":"e{n}","entityType":"t","observations":[]}}\n'
        for n in range(1_000)
    )
    await client.call_tool(
        "import_graph", {"text": lines}, on_progress=lambda told: seen.append(told.progress)
    )
    assert len(seen) > 3
    assert seen == sorted(set(seen))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder for imports, with a file, and what should not be read."""
    made = tmp_path / "imports"
    made.mkdir()
    (made / "good.jsonl").write_text(FILE)
    (tmp_path / "secret.jsonl").write_text(
        '{"type":"entity","name":"secret","entityType":"t","observations":[]}'
    )
    (tmp_path / "other.jsonl").write_text(
        '{"type":"entity","name":"secret","entityType":"t","observations":[]}'
    )
    (made / "link").symlink_to(tmp_path / "other.jsonl")
    os.link(tmp_path / "secret.jsonl", made / "hard")
    os.mkfifo(made / "pipe")
    (made / "below").mkdir()
    return made


ATTACKS = [
    "../secret.jsonl",
    "link",
    "hard",
    "pipe",
    "below",
    "",
    ".",
    "..",
    "/etc/passwd",
    "below/../../secret.jsonl",
    "a\0b",
    "C:secret",
    "..\\secret",
]


@pytest.mark.parametrize("name", ATTACKS)
async def test_nothing_but_files_of_the_folder_is_read(path: Path, folder: Path, name: str) -> None:
    """No path, no link of either kind, nothing that is not a file: it is refused,
    and nothing of it is told.
    """
    async with Client(memory_server(path, QUICK, imports=folder)) as client:
        said = await refusal(client, "import_graph", file=name)
        assert "secret" not in said.replace(name, "").replace("..\\\\secret", "")
        assert await done(client, "read_graph") == {"entities": [], "relations": []}


async def test_files_of_the_folder_are_read(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the owner named one, as an argument or in the environment; else none is."""
    async with Client(memory_server(path, QUICK)) as client:
        assert "no folder for imports" in await refusal(client, "import_graph", file="good.jsonl")
        assert "either" in await refusal(client, "import_graph")
        assert "either" in await refusal(client, "import_graph", file="good.jsonl", text="x")
    monkeypatch.setenv("INTERLOCK_MEMORY_IMPORTS", str(folder))
    async with Client(memory_server(path, msgspec.structs.replace(QUICK, file=10))) as client:
        assert "the limit is 10" in await refusal(client, "import_graph", file="good.jsonl")
    async with Client(memory_server(path, QUICK)) as client:
        assert (await done(client, "import_graph", file="good.jsonl"))["entities"] == 2
        assert "from good.jsonl" in (await done(client, "list_changes"))["changes"][0]["words"]


def test_the_command(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m interlock_servers.memory` imports, counts and exports; what is there is not
    written over.
    """
    source = tmp_path / "memory.jsonl"
    target = tmp_path / "out.jsonl"
    source.write_text(f"{FILE}\nbad\n")
    graph = ["--graph", str(path)]
    assert main([*graph, "import", str(source), "--dry-run"]) == 1
    assert main([*graph, "import", str(source)]) == 1
    assert "line 5: JSON is malformed" in capsys.readouterr().out
    assert main([*graph, "import", str(source)]) == 1
    assert main([*graph, "count"]) == 0
    assert "2 entities, 2 observations, 2 relations" in capsys.readouterr().out
    assert main([*graph, "export", str(target)]) == 0
    assert target.read_text() == FILE + "\n"
    assert main([*graph, "export", str(target)]) == 1
    assert main([*graph, "import", str(tmp_path / "missing")]) == 1
    assert "No such file" in capsys.readouterr().err


TEXT = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8
).filter(lambda text: bool(text.strip()))


@given(
    st.dictionaries(TEXT, st.tuples(TEXT, st.lists(TEXT, unique=True, max_size=3)), max_size=4),
    st.sets(st.tuples(TEXT, TEXT, TEXT), max_size=3),
)
def test_there_and_back(
    tmp_path_factory: pytest.TempPathFactory,
    entities: dict[str, tuple[str, list[str]]],
    relations: set[tuple[str, str, str]],
) -> None:
    """Whatever is exported is imported as the same, and exported as the same bytes."""
    folder = tmp_path_factory.mktemp("graphs")
    sent = [
        {"type": "entity", **entity(name, kind, *texts)} for name, (kind, texts) in entities.items()
    ]
    sent += [{"type": "relation", **relation(*one)} for one in sorted(relations)]
    before: list[dict[str, Any]] = sent
    for name in ("one", "two"):
        graph = Graph(folder / name, QUICK)
        found, _ = import_lines(graph, [msgspec.json.encode(line) for line in before], "", NO_HURRY)
        assert found.bad_lines == 0
        after = lines_in(graph)
        graph.close()
        assert name == "one" or after == before
        before = after
