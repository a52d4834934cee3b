"""Example questions with their SQL for few-shot prompting, made from the schema alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from interlock.untrusted.invisible import one_line as line

from .engine import Column, ForeignKey, Table
from .sql_text import quoted

Names = Callable[[str, str], str]
_LONGEST = 63  # characters of a name in an example
_FEW = 20  # rows that an example returns
# Names of columns that usually have few values. Enumerated types and booleans always have few.
_GROUPS = frozenset(
    {
        "status",
        "state",
        "type",
        "kind",
        "category",
        "country",
        "city",
        "region",
        "role",
        "level",
        "currency",
        "language",
        "gender",
        "brand",
        "department",
        "priority",
        "severity",
        "source",
        "channel",
        "tier",
        "plan",
        "class",
        "genre",
        "color",
        "colour",
        "unit",
    }
)
_WHEN_ENDS = ("_at", "_on", "_date", "_time", "date", "time", "day", "created", "updated")


class Example(NamedTuple):
    """A question in plain words, with SQL that answers it."""

    question: str
    sql: str


def examples_of(tables: Sequence[Table], names: Names) -> Iterator[Example]:
    """Examples of several kinds, from the tables with the most foreign keys to or from them."""
    ranked = sorted(
        (table for table in tables if table.columns and _can_be_shown(table)),
        key=lambda table: -_weight(table, tables),
    )
    for make in (_count, _join, _group, _range):
        for table in ranked:
            made = make(table, tables, names)
            if made is not None:
                yield made
                break


def _can_be_shown(table: Table) -> bool:
    """Whether the names of a table fit in a line unchanged, so that the example is the SQL that the
    engine checked.
    """
    names = (table.schema, table.name, *(column.name for column in table.columns))
    return all(len(name) <= _LONGEST and line(name) == name for name in names)


def _weight(table: Table, tables: Sequence[Table]) -> int:
    pointed = sum(
        key.table == table.name and key.schema == table.schema
        for other in tables
        for key in other.foreign_keys
    )
    return pointed + 2 * len(table.foreign_keys) + (table.kind == "table")


def _count(table: Table, tables: Sequence[Table], names: Names) -> Example | None:
    return Example(
        f"How many rows does {names(table.schema, table.name)} have?",
        f"SELECT count(*) FROM {_from(table, names)}",
    )


def _join(table: Table, tables: Sequence[Table], names: Names) -> Example | None:
    """A join along a foreign key."""
    for key in table.foreign_keys:
        other = _target(key, tables)
        if other is None or not key.to or len(key.to) != len(key.columns):
            continue
        shown = [
            f"a.{quoted(_descriptive_column(table).name)} AS first",
            f"b.{quoted(_descriptive_column(other).name)} AS second",
        ]
        on = " AND ".join(
            f"a.{quoted(one)} = b.{quoted(to)}" for one, to in zip(key.columns, key.to, strict=True)
        )
        return Example(
            f"Which row of {names(other.schema, other.name)} does each row of "
            f"{names(table.schema, table.name)} belong to?",
            f"SELECT {', '.join(shown)} FROM {_from(table, names)} AS a JOIN "
            f"{_from(other, names)} AS b ON {on} LIMIT {_FEW}",
        )
    return None


def _group(table: Table, tables: Sequence[Table], names: Names) -> Example | None:
    """A group by a column that probably has few values, or by a foreign key."""
    keys = {key.columns[0] for key in table.foreign_keys if len(key.columns) == 1}
    likely = [
        one
        for one in table.columns
        if one.values or one.type.lower() in ("boolean", "bool") or one.name.lower() in _GROUPS
    ]
    by = next(iter([*likely, *(one for one in table.columns if one.name in keys)]), None)
    if by is None:
        return None
    column = quoted(by.name)
    return Example(
        f"How many rows of {names(table.schema, table.name)} are there for each {by.name}, the "
        "most first?",
        f"SELECT {column}, count(*) AS n FROM {_from(table, names)} GROUP BY {column} ORDER BY n "
        f"DESC LIMIT {_FEW}",
    )


def _range(table: Table, tables: Sequence[Table], names: Names) -> Example | None:
    """A range of one month, if there is a date or a time."""
    when = next((one for one in table.columns if _is_moment(one)), None)
    if when is None:
        return None
    column = quoted(when.name)
    return Example(
        f"How many rows of {names(table.schema, table.name)} have a {when.name} in January 2026?",
        f"SELECT count(*) FROM {_from(table, names)} WHERE {column} >= '2026-01-01' AND {column} "
        "< '2026-02-01'",
    )


def _is_moment(column: Column) -> bool:
    kind = column.type.lower()
    if kind.startswith(("date", "timestamp")):
        return True
    return kind in ("text", "varchar") and column.name.lower().endswith(_WHEN_ENDS)


def _target(key: ForeignKey, tables: Sequence[Table]) -> Table | None:
    found = next(
        (other for other in tables if other.name == key.table and other.schema == key.schema), None
    )
    return found if found is not None and _can_be_shown(found) else None


def _descriptive_column(table: Table) -> Column:
    """The most descriptive column: a name or title, else the key, else the first."""
    for wanted in ("name", "title", "label", "email", "code", "number"):
        for column in table.columns:
            if column.name.lower() == wanted:
                return column
    return next((column for column in table.columns if column.key), table.columns[0])


def _from(table: Table, names: Names) -> str:
    whole = names(table.schema, table.name) != table.name
    return f"{quoted(table.schema)}.{quoted(table.name)}" if whole else quoted(table.name)
