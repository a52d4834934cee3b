"""Renders tables, results and plans as text."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from interlock import Context
from interlock.untrusted.invisible import one_line as line

from .engine import Column, PlanStep, ResultColumn, Table, TableName

_MOST_CELL = 200  # characters of a value in a line
_MOST_DEFINITION = 2_000


@asynccontextmanager
async def reporting_progress(
    ctx: Context[Any], seconds: float, every: float
) -> AsyncIterator[None]:
    """Report at intervals for how long a statement has been running, out of its time limit."""
    began = time.monotonic()

    async def tick() -> None:
        while True:
            await asyncio.sleep(every)
            gone = time.monotonic() - began
            ctx.progress(
                gone, max(seconds, gone), f"running for {gone:.1f} of at most {seconds:g} seconds"
            )

    ticking = asyncio.create_task(tick())
    try:
        yield
    finally:
        ticking.cancel()


def rows_in_words(columns: Sequence[ResultColumn], rows: Sequence[Sequence[Any]]) -> str:
    """A result as lines, with the column names first."""
    return "\n".join(
        [
            " | ".join(line(column.name) for column in columns),
            *(" | ".join(map(_cell, row)) for row in rows),
        ]
    )


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return line(value, _MOST_CELL).replace("|", "\\|")
    if isinstance(value, dict) and value.keys() == {"text", "characters"}:
        return f"{_cell(value['text'])} ({value['characters']:,} characters)"
    if isinstance(value, dict) and value.keys() == {"base64", "bytes"}:
        return f"({value['bytes']:,} bytes)"
    return line(msgspec.json.encode(value).decode(), _MOST_CELL)


def tables_in_words(
    tables: Sequence[Table], name: Callable[[str, str], str], most: int, left: int = 0
) -> str:
    """Tables with their columns, in about `most` characters; `left` counts further tables."""
    words: list[str] = []
    for table in tables:
        more = table_in_words(table, name)
        most -= len(more)
        if words and most < 0:
            break
        words.append(more)
    left += len(tables) - len(words)
    return "\n\n".join(
        [
            *words,
            *[f"... and {left} more tables: list_tables names them, describe_tables describes them"]
            * (left > 0),
        ]
    )


def table_in_words(table: Table, name: Callable[[str, str], str]) -> str:
    """A table with its columns, one a line; `name` returns the label of a table."""
    foreign = {
        key.columns[0]: f" -> {line(name(key.schema, key.table))}.{line(key.to[0])}"
        for key in table.foreign_keys
        if _plain(key)
    }
    lines = [_head(name(table.schema, table.name), table)]
    lines += [
        f"  {_column(column)}{foreign.get(column.name, '')}{_comment(column.comment)}"
        for column in table.columns
    ]
    for key in table.foreign_keys:
        if not _plain(key):
            lines.append(
                f"  ({_names(key.columns)}) -> {line(name(key.schema, key.table))} "
                f"({_names(key.to)})"
            )
    for index in table.indexes:
        lines.append(
            f"  {'unique ' * index.unique}index {line(index.name)} "
            f"({_names(index.columns)}){' of some rows' * index.partial}"
        )
    if table.definition:
        lines.append(f"  {line(table.definition, _MOST_DEFINITION)}")
    return "\n".join(lines)


def _plain(key: Any) -> bool:
    return len(key.columns) == len(key.to) == 1


def name_in_words(label: str, table: TableName) -> str:
    """A table in one line."""
    return _head(label, table)


def _head(label: str, table: Table | TableName) -> str:
    about: list[str] = [table.kind] if table.kind != "table" else []
    about += [f"about {table.rows:,} rows"] if table.rows is not None else []
    kind = f" ({', '.join(about)})" if about else ""
    return f"{line(label)}{kind}{_comment(table.comment)}"


def _column(column: Column) -> str:
    parts = [line(column.name), line(column.type)]
    if column.key:
        parts += ["key"]
    elif not column.nullable:
        parts += ["not null"]
    if column.generated:
        parts += ["generated"]
    elif column.default is not None:
        parts += [f"default {line(column.default)}"]
    parts += [f"one of {_names(column.values)}"] if column.values else []
    return " ".join(filter(None, parts))


def _comment(comment: str) -> str:
    return f"  -- {line(comment)}" if comment else ""


def _names(names: Sequence[str]) -> str:
    return ", ".join(map(line, names))


def plan_in_words(steps: Sequence[PlanStep]) -> str:
    """A plan as an indented list, with the estimates and measurements of each step."""
    return "\n".join(
        f"{'  ' * step.depth}{line(step.what, 1_000)}{_measures(step)}" for step in steps
    )


def _measures(step: PlanStep) -> str:
    known = (
        ("rows", step.rows),
        ("cost", step.cost),
        ("actual rows", step.actual_rows),
        ("ms", step.actual_ms),
        ("loops", step.loops),
    )
    parts = [f"{name} {value:,g}" for name, value in known if value is not None]
    return f"  ({', '.join(parts)})" if parts else ""
