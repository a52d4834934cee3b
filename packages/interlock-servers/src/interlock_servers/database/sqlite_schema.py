"""Reads tables, columns, keys and indexes of a SQLite file."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Sequence

from .engine import Column, ForeignKey, Index, Table, TableKind, TableName
from .values import WIDE

_KINDS: dict[str, TableKind] = {"table": "table", "view": "view", "virtual": "virtual table"}
# Characters of a name; tables with longer names are left out, because callers could not name them
_NAME = 500
_SHORT = 200  # characters that are always shown of a column's name, type and default
_LONG = 16 * 1024  # characters of a view's SQL
_TABLE_LIST = (3, 37, 0)  # the first SQLite version that marks the shadow tables of virtual tables


def tables_of(connection: sqlite3.Connection) -> list[TableName]:
    """The tables and views by name, without system tables and shadow tables of virtual tables.

    Raises sqlite3.Error.
    """
    if sqlite3.sqlite_version_info >= _TABLE_LIST:
        listed = connection.execute(
            "SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND type <> 'shadow'"
        )
    else:
        listed = connection.execute(
            "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')"
        )
    counted = _counted(connection)
    return [
        TableName(name, _KINDS.get(kind, "table"), rows=counted.get(name))
        for name, kind in sorted(listed)
        if not name.lower().startswith("sqlite_") and len(name) <= _NAME
    ]


def _counted(connection: sqlite3.Connection) -> dict[str, int]:
    """Estimated row counts of tables, as stored by the last ANALYZE."""
    found: dict[str, int] = {}
    with contextlib.suppress(sqlite3.OperationalError):  # ANALYZE was never run
        for table, stat in connection.execute("SELECT tbl, stat FROM sqlite_stat1"):
            first = str(stat).partition(" ")[0]
            if isinstance(table, str) and first.isascii() and first.isdigit():
                found[table] = max(found.get(table, 0), int(first[:18]))
    return found


def described(connection: sqlite3.Connection, names: Sequence[TableName]) -> list[Table]:
    """The details of those tables that exist. Raises sqlite3.Error."""
    known = {found.name: found for found in tables_of(connection)}
    return [_table(connection, known[name.name]) for name in names if name.name in known]


def _table(connection: sqlite3.Connection, found: TableName) -> Table:
    table = Table(found.name, _columns(connection, found.name), found.kind, rows=found.rows)
    if found.kind == "view":
        for (sql,) in connection.execute(
            "SELECT sql FROM sqlite_master WHERE type = 'view' AND name = ?", (found.name,)
        ):
            table.definition = _cut(sql, _LONG)
    elif found.kind == "table":
        table.foreign_keys = _foreign_keys(connection, found.name)
        table.indexes = list(_indexes(connection, found.name))
    return table


def _columns(connection: sqlite3.Connection, table: str) -> list[Column]:
    """The columns of a table; none for a broken view, such as one whose table is gone."""
    try:
        rows = connection.execute(
            'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)',
            (table,),
        ).fetchall()
    except sqlite3.OperationalError:
        return []
    most = max(_SHORT, WIDE // max(1, len(rows)))  # SQLite itself has no limit here
    return [
        Column(
            _cut(name, most),
            _cut(kind, most),
            nullable=not (required or key),
            default=default and _cut(default, most),
            key=key,
            generated=hidden in (2, 3),
        )
        for name, kind, required, default, key, hidden in rows
        if hidden != 1  # hidden columns of virtual tables
    ]


def _foreign_keys(connection: sqlite3.Connection, table: str) -> list[ForeignKey]:
    found: dict[int, tuple[str, list[str], list[str | None]]] = {}
    for number, other, column, to in connection.execute(
        'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?) ORDER BY id, seq',
        (table,),
    ):
        _, columns, targets = found.setdefault(number, (other, [], []))
        columns.append(_cut(column, _NAME))
        targets.append(to if to is None else _cut(to, _NAME))
    return [
        ForeignKey(columns, _cut(other, _NAME), _targets(connection, other, targets))
        for other, columns, targets in found.values()
    ]


def _targets(connection: sqlite3.Connection, table: str, named: Iterable[str | None]) -> list[str]:
    """The columns that a foreign key references; without names it is the primary key."""
    named = list(named)
    if None not in named:
        return [one for one in named if one is not None]
    return [
        column.name
        for column in sorted(_columns(connection, table), key=lambda one: one.key)
        if column.key
    ]


def _indexes(connection: sqlite3.Connection, table: str) -> Iterable[Index]:
    for name, unique, partial in connection.execute(
        'SELECT name, "unique", partial FROM pragma_index_list(?) ORDER BY name', (table,)
    ):
        columns = connection.execute(
            "SELECT name FROM pragma_index_xinfo(?) WHERE key = 1 ORDER BY seqno", (name,)
        )
        named = [
            _cut(column, _NAME) if column is not None else "(expression)" for (column,) in columns
        ]
        yield Index(_cut(name, _NAME), named, bool(unique), bool(partial))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} ..."
