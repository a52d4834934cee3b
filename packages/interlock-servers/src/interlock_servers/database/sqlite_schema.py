"""Reads tables, columns, keys and indexes of a SQLite file."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Sequence

from .engine import Column, ForeignKey, Index, Table, TableKind, TableName
from .values import WIDE

_KINDS: dict[str, TableKind] = {"table": "table", "view": "view", "virtual": "virtual table"}
# Characters of a name; tables with longer ones are left out, since nobody could ask for them
_NAME = 500
_SHORT = 200  # characters that every name, type and default of a column may have
_LONG = 16 * 1024  # characters of a view's SQL
_TABLE_LIST = (3, 37, 0)  # the first SQLite that tells the tables behind virtual tables from others


def tables_of(connection: sqlite3.Connection) -> list[TableName]:
    """The tables and views, by name, without those of SQLite itself and those behind virtual
    tables.

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
    """About how many rows tables have, as the last ANALYZE wrote down."""
    found: dict[str, int] = {}
    with contextlib.suppress(sqlite3.OperationalError):  # nobody ever asked it to
        for table, stat in connection.execute("SELECT tbl, stat FROM sqlite_stat1"):
            first = str(stat).partition(" ")[0]
            if isinstance(table, str) and first.isascii() and first.isdigit():
                found[table] = max(found.get(table, 0), int(first[:18]))
    return found


def described(connection: sqlite3.Connection, names: Sequence[TableName]) -> list[Table]:
    """These tables in full, those that there are. Raises sqlite3.Error."""
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
    """Its columns; none of a view that is broken, such as one of a table that is gone."""
    try:
        rows = connection.execute(
            'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)',
            (table,),
        ).fetchall()
    except sqlite3.OperationalError:
        return []
    most = max(_SHORT, WIDE // max(1, len(rows)))  # SQLite itself bounds none of it
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
        if hidden != 1  # those of virtual tables that are none to look at
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
    """The columns that a foreign key points to; where it names none, it is the primary key."""
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
