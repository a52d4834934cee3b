"""History of changes: what, when and by whom, and undo."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import msgspec

from interlock import ToolError
from interlock.cursors import encode_cursor
from interlock.untrusted.invisible import visible_line as shown

from .graph import CallProgress, Graph
from .results import ChangeList, ChangeResult, ChangeSteps, ChangeView, StepView, listed
from .schema import sweep_index
from .transaction import EntityRow, ObservationRow, RelationRow, Transaction

_LOOKS = 1024  # steps between two checks for cancellation
_MOST_NAMED = 5
TRACES = (
    "Traces of it remain in the file: another program is reading the memory now, or has "
    "created an index that this SQLite cannot access. Forget again later, or with that "
    "program, to remove them too."
)
"""Shown if traces of forgotten content remain in the file."""
_COLUMNS = "id, at, client, tool, words, size, undoes, undone_by"
# The tables that an import fills, with the columns for the digest of their rows.
_FILLED = {
    "entities": "id, name, kind",
    "observations": "id, entity, text",
    "relations": "id, source, target, kind",
}


def changes(db: sqlite3.Connection, name: str | None, before: int | None, limit: int) -> ChangeList:
    """The latest changes before number `before`; of one entity if a name is given."""
    where = ["id < ?"]
    values = [before if before is not None else 1 << 62]
    if name is not None:
        where.append(
            "id IN (SELECT change FROM steps WHERE name = ? UNION SELECT change FROM steps WHERE "
            "other = ?)"
        )
        values += [name, name]  # type: ignore[list-item]  # numbers and texts
    query = f"SELECT {_COLUMNS} FROM changes WHERE {' AND '.join(where)} ORDER BY id DESC LIMIT ?"
    found = [ChangeView(*row) for row in db.execute(query, (*values, limit + 1)).fetchall()]
    return ChangeList(
        found[:limit],
        encode_cursor(found[limit - 1].id, "list_changes") if len(found) > limit else None,
    )


def change_of(db: sqlite3.Connection, id: int) -> ChangeView:
    """A change. Raises ToolError if it is not in the history."""
    found = db.execute(f"SELECT {_COLUMNS} FROM changes WHERE id = ?", (id,)).fetchone()
    if found is None:
        raise ToolError(f"There is no change {id} in the history; list_changes shows the numbers.")
    return ChangeView(*found)


def steps(db: sqlite3.Connection, id: int, after: int, limit: int) -> ChangeSteps:
    """A change with its steps from a position. Raises ToolError if it is not in the history."""
    change = change_of(db, id)
    query = (
        "SELECT place, kind, name, data FROM steps WHERE change = ? AND place >= ? ORDER BY place "
        "LIMIT ?"
    )
    rows = db.execute(query, (id, after, limit + 1)).fetchall()
    return ChangeSteps(
        change,
        [_step(kind, name, data) for _, kind, name, data in rows[:limit]],
        encode_cursor(rows[limit][0], "show_change") if len(rows) > limit else None,
    )


def _step(kind: str, name: str, data: str) -> StepView:
    what = kind[:-1]
    how = kind[-1]
    about: dict[str, Any] = msgspec.json.decode(data)
    if kind == "import":
        return StepView(
            "import",
            None,
            {table: max(0, about[table][1] - about[table][0] + 1) for table in _FILLED},
        )
    if how == "~":
        return StepView(what, about["before"], about["after"])
    if what == "entity":
        value = {"name": about["name"], "type": about["type"]}
    elif what == "observation":
        value = {"entityName": name, "text": about["text"]}
    else:
        value = {key: about[key] for key in ("from", "to", "relationType")}
    return StepView(what, value if how == "-" else None, value if how == "+" else None)


# -- undo ------------------------------------------------------------------------------------------


class UndoConflict(Exception):
    """The graph has changed since; the message says what conflicts and why."""

    def __init__(self, why: str, *names: str) -> None:
        super().__init__(why)
        self.why = why
        self.names = names


def undo(
    graph: Graph, id: int, client: str, progress: CallProgress
) -> tuple[ChangeResult, Transaction | None]:
    """Undo a change by a new change.

    Raises ToolError if later changes conflict; then nothing is changed.
    """
    with graph.changing(progress, "undo", client, undoes=id) as change:
        view = change_of(change.db, id)
        if view.undone_by is not None:
            return ChangeResult(
                True,
                f"Change {id} was already undone by change {view.undone_by}. There was "
                "nothing to change.",
            ), None
        # only the undone change, not the whole chain of undos before it
        of = view.words if view.undoes is None else f"which undid change {view.undoes}"
        change.words = f"change {id} undone ({of})"
        rows = change.db.execute(
            "SELECT kind, name, data FROM steps WHERE change = ? ORDER BY place DESC", (id,)
        )
        try:
            for done, (kind, name, data) in enumerate(rows):
                if done % _LOOKS == 0:
                    progress.report(
                        done, view.steps, f"{done:,} of {view.steps:,} steps are undone"
                    )
                _INVERSES[kind](change, name, msgspec.json.decode(data), progress)
        except UndoConflict as bad:
            raise ToolError(_refusal(change.db, id, bad)) from None
    return ChangeResult(True, f"Change {id} is undone: {view.words}.", change=change.id), change


def _refusal(db: sqlite3.Connection, id: int, bad: UndoConflict) -> str:
    later: set[int] = set()
    query = """SELECT DISTINCT s.change FROM steps s JOIN changes c ON c.id = s.change
        WHERE s.change > ? AND c.undone_by IS NULL AND (c.undoes IS NULL OR c.undoes < ?)
        AND {} = ? ORDER BY 1 DESC LIMIT 100"""
    for name in bad.names:
        for column in ("s.name", "s.other"):
            later.update(change for (change,) in db.execute(query.format(column), (id, id, name)))
    words = f"Change {id} cannot be undone: {bad.why}. Nothing was changed."
    if later:
        words += (
            " Undo these later changes first: "
            f"{listed(map(str, sorted(later, reverse=True)), _MOST_NAMED)}."
        )
    return words


def _entity_came(
    change: Transaction, name: str, data: dict[str, Any], progress: CallProgress
) -> None:
    row = change.entity(name)
    if row is None or row.id != data["id"] or row.kind != data["type"]:
        raise UndoConflict(f"{shown(name)} has changed since it was created", name)
    if change.observations(row.id):
        raise UndoConflict(f"{shown(name)} has more observations now", name)
    if any(one.id not in data["relations"] for one in change.relations(name)):
        raise UndoConflict(f"{shown(name)} has other relations now", name)
    change.remove_entity(row)


def _entity_went(
    change: Transaction, name: str, data: dict[str, Any], progress: CallProgress
) -> None:
    if change.entity(name) is not None:
        raise UndoConflict(f"there is a new {shown(name)} now", name)
    change.add_entity(name, data["type"], id=data["id"], at=data["at"])


def _entity_altered(
    change: Transaction, name: str, data: dict[str, Any], progress: CallProgress
) -> None:
    before = data["before"]
    after = data["after"]
    row = change.entity(after["name"])
    if row is None or row.id != data["id"] or row.kind != after["type"]:
        raise UndoConflict(
            f"{shown(after['name'])} has changed since", before["name"], after["name"]
        )
    if before["name"] != after["name"] and change.entity(before["name"]) is not None:
        raise UndoConflict(
            f"there is another {shown(before['name'])} now", before["name"], after["name"]
        )
    change.alter_entity(row, before["name"], before["type"])


def _observation_came(
    change: Transaction, name: str, data: dict[str, Any], progress: CallProgress
) -> None:
    found = change.db.execute(
        "SELECT id, entity, text, at FROM observations WHERE id = ?", (data["id"],)
    ).fetchone()
    row = ObservationRow(*found) if found else None
    if row is None or (row.entity, row.text) != (data["entity"], data["text"]):
        raise UndoConflict(f"an observation of {shown(name)} no longer exists", name)
    change.remove_observation(row, name)


def _observation_went(
    change: Transaction, name: str, data: dict[str, Any], progress: CallProgress
) -> None:
    found = change.db.execute(
        "SELECT name FROM entities WHERE id = ?", (data["entity"],)
    ).fetchone()
    if found is None:
        raise UndoConflict(f"{shown(name)} no longer exists", name)
    if not change.add_observation(
        data["entity"], found[0], data["text"], id=data["id"], at=data["at"]
    ):
        raise UndoConflict(f"{shown(name)} has the observation again", name, found[0])


def _relation_came(
    change: Transaction, name: str, data: dict[str, Any], progress: CallProgress
) -> None:
    found = change.db.execute(
        "SELECT id, source, target, kind, at FROM relations WHERE id = ?", (data["id"],)
    ).fetchone()
    row = RelationRow(*found) if found else None
    if row is None or (row.source, row.target, row.kind) != (
        data["from"],
        data["to"],
        data["relationType"],
    ):
        raise UndoConflict(
            f"a relation from {shown(name)} to {shown(data['to'])} no longer exists",
            name,
            data["to"],
        )
    change.remove_relation(row)


def _relation_went(
    change: Transaction, name: str, data: dict[str, Any], progress: CallProgress
) -> None:
    if not change.add_relation(
        name, data["to"], data["relationType"], id=data["id"], at=data["at"]
    ):
        raise UndoConflict(
            f"there is a relation from {shown(name)} to {shown(data['to'])} again", name, data["to"]
        )


def _imported(change: Transaction, name: str, data: dict[str, Any], progress: CallProgress) -> None:
    """Remove what an import added, if all of it is unchanged, and nothing was added to it."""
    db = change.db
    for table in _FILLED:
        if digest(db, table, *data[table]) != data["digests"][table]:
            raise UndoConflict(f"some of the imported {table} have changed")
    first, last = data["entities"]
    one, other = data["observations"]
    _, newest = data["relations"]
    more = (
        "SELECT 1 FROM observations WHERE entity BETWEEN ? AND ? AND id NOT BETWEEN ? AND ? LIMIT 1"
    )
    if db.execute(more, (first, last, one, other)).fetchone():
        raise UndoConflict("the imported entities have more observations now")
    more = (
        "SELECT 1 FROM relations r JOIN entities e ON e.name IN (r.source, r.target) WHERE r.id > "
        "? AND e.id BETWEEN ? AND ? LIMIT 1"
    )
    if db.execute(more, (newest, first, last)).fetchone():
        raise UndoConflict("the imported entities have other relations now")
    for done, row in enumerate(_rows(db, "relations", "id, source, target, kind, at", data)):
        _look(done, progress)
        change.remove_relation(RelationRow(*row))
    names = dict(db.execute("SELECT id, name FROM entities").fetchall())
    for done, row in enumerate(_rows(db, "observations", "id, entity, text, at", data)):
        _look(done, progress)
        change.remove_observation(ObservationRow(*row), names[row[1]])
    for done, row in enumerate(_rows(db, "entities", "id, name, kind, at", data)):
        _look(done, progress)
        change.remove_entity(EntityRow(*row))


def _rows(
    db: sqlite3.Connection, table: str, columns: str, data: dict[str, Any]
) -> Iterator[tuple[Any, ...]]:
    """The imported rows, last one first, because the steps to restore them are read backwards."""
    yield from db.execute(
        f"SELECT {columns} FROM {table} WHERE id BETWEEN ? AND ? ORDER BY id DESC", data[table]
    ).fetchall()


def _look(done: int, progress: CallProgress) -> None:
    if done % _LOOKS == 0:
        progress.check()


_INVERSES = {
    "entity+": _entity_came,
    "entity-": _entity_went,
    "entity~": _entity_altered,
    "observation+": _observation_came,
    "observation-": _observation_went,
    "relation+": _relation_came,
    "relation-": _relation_went,
    "import": _imported,
}


def digest(db: sqlite3.Connection, table: str, first: int, last: int) -> str:
    """A digest that changes with any row between two numbers."""
    made = hashlib.sha256()
    for row in db.execute(
        f"SELECT {_FILLED[table]} FROM {table} WHERE id BETWEEN ? AND ? ORDER BY id", (first, last)
    ):
        made.update(repr(row).encode())
    return made.hexdigest()


def changes_of(db: sqlite3.Connection, name: str | None) -> list[int]:
    """The numbers of all changes that affected an entity under any of its names; without a name all
    changes.
    """
    if name is None:
        return [id_ for (id_,) in db.execute("SELECT id FROM changes ORDER BY id")]
    names = [name]
    found = set[int]()
    for one in names:  # grows by the names before and after a renaming
        for column in ("name", "other"):
            for change, kind, *pair in db.execute(
                f"SELECT change, kind, name, other FROM steps WHERE {column} = ?", (one,)
            ):
                found.add(change)
                names += [
                    other for other in pair if kind == "entity~" and other and other not in names
                ]
    return sorted(found)


def forget(graph: Graph, ids: list[int], progress: CallProgress) -> tuple[int, bool]:
    """Delete changes from the history; return how many, and whether no trace of deleted content is
    left.

    Traces remain if another program is reading, which keeps the WAL file as it is, or if this
    SQLite cannot update an index that others created. The graph stays unchanged.
    """
    with graph.changing(progress, "forget_changes") as change:
        change.db.executemany("DELETE FROM steps WHERE change = ?", [(id,) for id in ids])
        gone = sum(
            change.db.execute("DELETE FROM changes WHERE id = ?", (id,)).rowcount for id in ids
        )
        if graph.indexed:
            sweep_index(change.db)
    with graph.raw() as db:
        unreached = (
            not graph.indexed
            and db.execute("SELECT 1 FROM facts WHERE name = 'index'").fetchone() is not None
        )
        ((busy, _, _),) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return gone, not busy and not unreached
