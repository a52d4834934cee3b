"""Queries for display: pages of entities and relations, neighbours and shortest paths."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Literal

from interlock import ToolError
from interlock.untrusted.invisible import visible_line as shown

from .graph import CallProgress
from .limits import MemoryLimits
from .results import Entity, Relation, ShortestPath, Subgraph

Direction = Literal["out", "in", "both"]
_CHUNK = 400  # values in one query
_CUT = "some relations are left out: open fewer entities at once"
_BUSY = "there are too many relations to check all of them"


def entity_of(
    db: sqlite3.Connection, id: int, limits: MemoryLimits, skip: int = 0
) -> Entity | None:
    """An entity, with as many observations as a result shows."""
    found = db.execute("SELECT name, kind FROM entities WHERE id = ?", (id,)).fetchone()
    if found is None:
        return None
    query = "SELECT text FROM observations WHERE entity = ? ORDER BY id LIMIT ? OFFSET ?"
    texts = [text for (text,) in db.execute(query, (id, limits.shown + 1, skip))]
    more = 0
    if len(texts) > limits.shown:
        ((count,),) = db.execute(
            "SELECT count(*) FROM observations WHERE entity = ?", (id,)
        ).fetchall()
        more = count - skip - limits.shown
    return Entity(found[0], found[1], texts[: limits.shown], more)


def subgraph(
    db: sqlite3.Connection,
    ids: Sequence[int],
    limits: MemoryLimits,
    skip: int = 0,
    direction: Direction = "both",
) -> tuple[Subgraph, int]:
    """As many of these entities as fit in a result, with the relations from and to them, and their
    number.
    """
    entities: list[Entity] = []
    room = limits.answer
    taken = 0
    for id_ in ids:
        one = entity_of(db, id_, limits, skip)
        taken += 1
        if one is None:
            continue
        room -= sum(map(len, one.observations)) + len(one.name)
        if room < 0 and entities:
            taken -= 1
            break
        entities.append(one)
    relations = relations_of(db, [one.name for one in entities], limits.relations + 1, direction)
    note = _CUT if len(relations) > limits.relations else None
    return Subgraph(entities, relations[: limits.relations], note=note), taken


def relations_of(
    db: sqlite3.Connection, names: Sequence[str], most: int, direction: Direction = "both"
) -> list[Relation]:
    """The relations from or to some names, without duplicates, in the order of their creation."""
    found: dict[int, Relation] = {}
    columns = {"out": ("source",), "in": ("target",), "both": ("source", "target")}[direction]
    for chunk in _chunks(names):
        for column in columns:
            query = (
                f"SELECT id, source, target, kind FROM relations WHERE {column} IN "
                f"({_marks(chunk)}) LIMIT ?"
            )
            for id_, *values in db.execute(query, (*chunk, most)):
                found[id_] = Relation(*values)
    return [found[id_] for id_ in sorted(found)][:most]


def dangling_relations(db: sqlite3.Connection, most: int) -> list[Relation]:
    """The relations whose source is not an entity."""
    query = (
        "SELECT source, target, kind FROM relations WHERE source NOT IN (SELECT name FROM "
        "entities) ORDER BY id LIMIT ?"
    )
    return [Relation(*row) for row in db.execute(query, (most,))]


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(names), _CHUNK):
        yield names[first : first + _CHUNK]


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def ids_of(db: sqlite3.Connection, names: Sequence[str]) -> dict[str, int]:
    """The numbers of the entities with these names, if they exist."""
    found: dict[str, int] = {}
    for chunk in _chunks(names):
        found.update(
            db.execute(
                f"SELECT name, id FROM entities WHERE name IN ({_marks(chunk)})", chunk
            ).fetchall()
        )
    return {name: found[name] for name in dict.fromkeys(names) if name in found}


# -- paths -----------------------------------------------------------------------------------------


class _Walk:
    """Follows relations from some entities, step by step, within limits."""

    def __init__(
        self,
        db: sqlite3.Connection,
        direction: Direction,
        kinds: Sequence[str] | None,
        limits: MemoryLimits,
        progress: CallProgress,
    ) -> None:
        self._db = db
        self._direction = direction
        self._limits = limits
        self._progress = progress
        self._kinds = frozenset(kinds) if kinds is not None else None
        self._left = limits.walked
        self.cut = False

    def step(self, names: Sequence[str], seen: dict[str, tuple[str, Relation] | None]) -> list[str]:
        """The names one step further; `seen` records the name and relation by which each was
        reached.
        """
        self._progress.check()
        reached: list[str] = []
        near = frozenset(names)
        relations = relations_of(self._db, names, self._left + 1, self._direction)
        self._left -= len(relations)
        if self._left < 0:
            self.cut = True
            relations = relations[: self._left]
        for one in relations:
            if self._kinds is not None and one.kind not in self._kinds:
                continue
            for here, there in ((one.source, one.target), (one.target, one.source)):
                if (
                    self._direction == ("in" if here == one.source else "out")
                    or here not in near
                    or there in seen
                ):
                    continue
                seen[there] = (here, one)
                reached.append(there)
        return reached


def neighbours(
    db: sqlite3.Connection,
    name: str,
    depth: int,
    direction: Direction,
    kinds: Sequence[str] | None,
    limits: MemoryLimits,
    progress: CallProgress,
) -> tuple[list[str], bool]:
    """The names within some steps, nearest first, and whether there may be more.

    The start comes first.
    """
    walk = _Walk(db, direction, kinds, limits, progress)
    seen: dict[str, tuple[str, Relation] | None] = {name: None}
    front = [name]
    for _ in range(depth):
        if walk.cut or not front:
            break
        front = walk.step(front, seen)
    return list(seen), walk.cut


def way(
    db: sqlite3.Connection,
    start: str,
    end: str,
    depth: int,
    *,
    directed: bool,
    kinds: Sequence[str] | None,
    limits: MemoryLimits,
    progress: CallProgress,
) -> ShortestPath:
    """A shortest path. Raises ToolError if one of the ends is unknown."""
    for name in (start, end):
        if not ids_of(db, [name]) and not relations_of(db, [name], 1):
            raise ToolError(f"There is no entity {shown(name)}; search_nodes finds names.")
    walk = _Walk(db, "out" if directed else "both", kinds, limits, progress)
    seen: dict[str, tuple[str, Relation] | None] = {start: None}
    front = [start]
    for _ in range(depth):
        if end in seen or walk.cut or not front:
            break
        front = walk.step(front, seen)
    if end not in seen:
        return ShortestPath(False, [], [], _BUSY if walk.cut else None)
    names = [end]
    relations = []
    while (before := seen[names[-1]]) is not None:
        names.append(before[0])
        relations.append(before[1])
    return ShortestPath(True, names[::-1], relations[::-1])
