"""How the tests of the memory server call its tools, look at its file, and say what a graph is."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from interlock import Client
from interlock_servers.memory import Graph, schema
from interlock_servers.memory.graph import CallProgress
from interlock_servers.memory.jsonl import export_lines
from interlock_servers.memory.texts import folded, signs_of, words_of
from tests.servers.calls import done

NO_HURRY = CallProgress(None, math.inf)


def entity(name: str, kind: str = "thing", *observations: str) -> dict[str, Any]:
    """An entity as it is sent."""
    return {"name": name, "entityType": kind, "observations": list(observations)}


def relation(source: str, kind: str, target: str) -> dict[str, str]:
    """A relation as it is sent."""
    return {"from": source, "relationType": kind, "to": target}


async def names(client: Client, query: str, **arguments: Any) -> list[str]:
    """The names of the entities that a search finds."""
    return [
        one["name"]
        for one in (await done(client, "search_nodes", query=query, **arguments))["entities"]
    ]


def lines_in(graph: Graph) -> list[dict[str, Any]]:
    """All that is in a graph, in its order."""
    with graph.reading(NO_HURRY) as db:
        return [msgspec.json.decode(line) for _, line in export_lines(db)]


def check_file(path: Path) -> None:
    """The file is whole: SQLite's own check, that of its index, and the index has what the tables
    have, to the word.
    """
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        for table in schema.INDEXES:
            db.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
        assert db.execute("SELECT count(*) FROM stale").fetchall() == [(0,)]
        assert db.execute(
            "SELECT count(*) FROM observations WHERE entity NOT IN (SELECT id FROM entities)"
        ).fetchall() == [(0,)]
        wanted = {}
        for id_, name, kind in db.execute("SELECT id, name, kind FROM entities").fetchall():
            texts = [
                text
                for (text,) in db.execute(
                    "SELECT text FROM observations WHERE entity = ? ORDER BY id", (id_,)
                )
            ]
            wanted[id_] = "\n".join(map(folded, (name, kind, *texts)))
        assert dict(db.execute("SELECT rowid, text FROM pieces").fetchall()) == wanted
        signs = {
            id_: {bytes.fromhex(one).decode() for one in text.split()}
            for id_, text in db.execute("SELECT rowid, text FROM signs")
        }
        assert signs == {id_: signs_of(text) for id_, text in wanted.items()}
        found = {
            id_: " ".join(parts).replace(" ¶ ", " ")
            for id_, *parts in db.execute("SELECT rowid, name, kind, texts FROM words")
        }
        assert {id_: text.split() for id_, text in found.items()} == {
            id_: words_of(text) for id_, text in wanted.items()
        }
        steps = db.execute("SELECT change, count(*) FROM steps GROUP BY change").fetchall()
        assert dict(steps) == dict(db.execute("SELECT id, size FROM changes").fetchall())
