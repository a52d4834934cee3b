"""A transaction on the graph, which records each step so that it can be undone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from interlock import ToolError
from interlock.untrusted.invisible import visible_line as shown

from . import schema
from .limits import MemoryLimits

_SWEEPS = 32  # changes between two checks of the history's length
# entities indexed between two checks for cancellation
_LOOKS = 256
_MOST_WORDS = 300  # characters of a change's description


class EntityRow(NamedTuple):
    """A row of entities."""

    id: int
    name: str
    kind: str
    at: str


class ObservationRow(NamedTuple):
    """A row of observations."""

    id: int
    entity: int
    text: str
    at: str


class RelationRow(NamedTuple):
    """A row of relations."""

    id: int
    source: str
    target: str
    kind: str
    at: str

    def words(self) -> str:
        """The relation in readable form."""
        return f"{shown(self.source)} -[{shown(self.kind)}]-> {shown(self.target)}"


class ChangeStep(NamedTuple):
    """A row of `steps`: the operation (`entity+` created, `entity-` deleted, `entity~` changed) and
    its object.
    """

    kind: str
    name: str
    other: str | None
    data: Any


class Transaction:
    """A change within a database transaction.

    `steps` records it; `id` is its number after `finish`.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        tool: str,
        client: str,
        limits: MemoryLimits,
        *,
        indexed: bool,
        undoes: int | None = None,
    ) -> None:
        self.db = db
        self.limits = limits
        self.indexed = indexed
        self.tool = tool
        self.client = client
        self.undoes = undoes
        self.at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.steps: list[ChangeStep] = []
        self.words = ""
        self.id: int | None = None
        # steps are not recorded one by one; the caller records them as a whole
        self.silent = False
        self._dirty: dict[int, None] = {}

    # -- reading
    # ---------------------------------------------------------------------------------------

    def entity(self, name: str) -> EntityRow | None:
        """The entity with a name, or None."""
        found = self.db.execute(
            "SELECT id, name, kind, at FROM entities WHERE name = ?", (name,)
        ).fetchone()
        return EntityRow(*found) if found else None

    def known(self, name: str) -> EntityRow:
        """The entity with a name. Raises ToolError if there is none."""
        found = self.entity(name)
        if found is None:
            raise ToolError(
                f"There is no entity {shown(name)}. Nothing was changed; search_nodes "
                "finds names, create_entities creates an entity."
            )
        return found

    def observations(self, entity: int) -> list[ObservationRow]:
        """The observations of an entity, in order."""
        rows = self.db.execute(
            "SELECT id, entity, text, at FROM observations WHERE entity = ? ORDER BY id", (entity,)
        )
        return [ObservationRow(*row) for row in rows.fetchall()]

    def relations(self, name: str) -> list[RelationRow]:
        """The relations from and to a name."""
        query = (
            "SELECT id, source, target, kind, at FROM relations WHERE source = ?"
            " UNION SELECT id, source, target, kind, at FROM relations"
        )
        return [
            RelationRow(*row)
            for row in self.db.execute(
                f"{query} WHERE target = ? ORDER BY 1", (name, name)
            ).fetchall()
        ]

    def relation(self, source: str, target: str, kind: str) -> RelationRow | None:
        """A relation, or None."""
        query = (
            "SELECT id, source, target, kind, at FROM relations WHERE source = ? AND target = ? "
            "AND kind = ?"
        )
        found = self.db.execute(query, (source, target, kind)).fetchone()
        return RelationRow(*found) if found else None

    def next(self, table: str) -> int:
        """The number of the next new row."""
        found = self.db.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)
        ).fetchone()
        return int(found[0]) + 1 if found else 1

    # -- steps -------------------------------------------------------------------------------------

    def add_entity(
        self, name: str, kind: str, *, id: int | None = None, at: str | None = None
    ) -> int:
        """Add an entity, which must not exist; `id` and `at` restore its old number and time.

        Returns its number.
        """
        at = at or self.at
        made = self.db.execute(
            "INSERT INTO entities VALUES (?, ?, ?, ?)", (id, name, kind, at)
        ).lastrowid
        assert made is not None
        self._dirty[made] = None
        if not self.silent:
            # Later relations would dangle if this were undone.
            dangling = [one.id for one in self.relations(name)]
            self._note(
                "entity+",
                name,
                None,
                {"id": made, "name": name, "type": kind, "at": at, "relations": dangling},
            )
        return made

    def remove_entity(self, row: EntityRow) -> None:
        """Remove an entity that has no more observations."""
        self.db.execute("DELETE FROM entities WHERE id = ?", (row.id,))
        self._dirty[row.id] = None
        self._note(
            "entity-",
            row.name,
            None,
            {"id": row.id, "name": row.name, "type": row.kind, "at": row.at},
        )

    def alter_entity(self, row: EntityRow, name: str, kind: str) -> None:
        """Change the name or type of an entity; its relations are not changed."""
        self.db.execute("UPDATE entities SET name = ?, kind = ? WHERE id = ?", (name, kind, row.id))
        self._dirty[row.id] = None
        before = {"name": row.name, "type": row.kind}
        after = {"name": name, "type": kind}
        self._note(
            "entity~",
            row.name,
            name if name != row.name else None,
            {"id": row.id, "before": before, "after": after},
        )

    def add_observation(
        self, entity: int, name: str, text: str, *, id: int | None = None, at: str | None = None
    ) -> bool:
        """Add an observation to the entity; False if it has it already."""
        at = at or self.at
        done = self.db.execute(
            "INSERT OR IGNORE INTO observations VALUES (?, ?, ?, ?)", (id, entity, text, at)
        )
        if not done.rowcount:
            return False
        self._dirty[entity] = None
        if not self.silent:
            self._note(
                "observation+",
                name,
                None,
                {"id": done.lastrowid, "entity": entity, "text": text, "at": at},
            )
        return True

    def remove_observation(self, row: ObservationRow, name: str) -> None:
        """Remove an observation of the entity."""
        self.db.execute("DELETE FROM observations WHERE id = ?", (row.id,))
        self._dirty[row.entity] = None
        self._note(
            "observation-",
            name,
            None,
            {"id": row.id, "entity": row.entity, "text": row.text, "at": row.at},
        )

    def add_relation(
        self, source: str, target: str, kind: str, *, id: int | None = None, at: str | None = None
    ) -> bool:
        """Add a relation; False if it exists already."""
        at = at or self.at
        done = self.db.execute(
            "INSERT OR IGNORE INTO relations VALUES (?, ?, ?, ?, ?)", (id, source, target, kind, at)
        )
        if not done.rowcount:
            return False
        if not self.silent:
            data = {
                "id": done.lastrowid,
                "from": source,
                "to": target,
                "relationType": kind,
                "at": at,
            }
            self._note("relation+", source, target, data)
        return True

    def remove_relation(self, row: RelationRow) -> None:
        """Remove a relation."""
        self.db.execute("DELETE FROM relations WHERE id = ?", (row.id,))
        data = {
            "id": row.id,
            "from": row.source,
            "to": row.target,
            "relationType": row.kind,
            "at": row.at,
        }
        self._note("relation-", row.source, row.target, data)

    def note_import(self, data: dict[str, Any]) -> None:
        """Record as one step what was added silently."""
        self.silent = False
        self._note("import", "", None, data)

    def _note(self, kind: str, name: str, other: str | None, data: Any) -> None:
        self.steps.append(ChangeStep(kind, name, other, data))

    # -- finishing
    # -------------------------------------------------------------------------------------

    def names(self) -> set[str]:
        """The entities that the change affects."""
        return {name for step in self.steps for name in (step.name, step.other) if name}

    def finish(self, on_progress: Callable[[int, int], None]) -> None:
        """Update the index and record the change; without steps do nothing.

        `on_progress` receives how many of how many entities are indexed; it raises to stop.
        """
        if not self.steps:
            return
        ids = list(self._dirty)
        if self.indexed and schema.thinned_out(self.db, len(ids)):
            ids.clear()
        for first in range(0, len(ids), _LOOKS):
            on_progress(first, len(ids))
            (schema.index if self.indexed else schema.mark_stale)(
                self.db, ids[first : first + _LOOKS]
            )
        values = (
            self.at,
            self.client,
            self.tool,
            self.words[:_MOST_WORDS],
            len(self.steps),
            self.undoes,
        )
        self.id = self.db.execute(
            "INSERT INTO changes (at, client, tool, words, size, undoes) VALUES (?, ?, ?, ?, ?, ?)",
            values,
        ).lastrowid
        self.db.executemany("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?)", self._rows())
        if self.undoes is not None:
            self.db.execute("UPDATE changes SET undone_by = ? WHERE id = ?", (self.id, self.undoes))
            # Undoing an undo restores the original change.
            self.db.execute(
                "UPDATE changes SET undone_by = NULL WHERE undone_by = ?", (self.undoes,)
            )
        if self.id is not None and self.id % _SWEEPS == 0:
            sweep(self.db, self.limits)

    def _rows(self) -> Iterable[tuple[Any, ...]]:
        encode = msgspec.json.Encoder().encode
        for place, step in enumerate(self.steps):
            yield (self.id, place, step.kind, step.name, step.other, encode(step.data).decode())


def sweep(db: sqlite3.Connection, limits: MemoryLimits) -> None:
    """Delete the oldest changes if there are too many or they are too large; the last one stays."""
    rows = db.execute("SELECT id, size FROM changes ORDER BY id DESC").fetchall()
    room = limits.steps
    for count, (id_, size) in enumerate(rows):
        room -= size
        if count and (count >= limits.changes or room < 0):
            db.execute("DELETE FROM steps WHERE change <= ?", (id_,))
            db.execute("DELETE FROM changes WHERE id <= ?", (id_,))
            return
