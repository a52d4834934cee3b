"""Read-only tools of the database server: databases, tables, queries and their plans."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from interlock import Context, ToolError, ToolResult
from interlock.untrusted.invisible import one_line as line

from .databases import Databases
from .engine import Engine, Parameters, RowRange, Statement
from .rendering import (
    name_in_words,
    plan_in_words,
    reporting_progress,
    rows_in_words,
    tables_in_words,
)
from .results import Database, DatabaseList, QueryPlan, QueryResult, TableDescriptions, TableList
from .sql_text import PageCursor, cursor_of, digest, place_of

Sql = Annotated[str, Meta(min_length=1, examples=["SELECT name FROM customers WHERE city = ?"])]
Given = Annotated[
    list[Any] | dict[str, Any] | None,
    Meta(description="values for the parameters of the SQL, in their order or by name"),
]
Cursor = Annotated[str, Meta(min_length=1, max_length=2_000)]
Names = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=500)]], Meta(min_length=1, max_length=50)
]
_MOST_NAMES = 500  # tables on a page


async def list_databases(ctx: Context[Databases]) -> ToolResult[DatabaseList]:
    """The databases that there are, which of them writable, and how much a call may ask
    for.
    """
    found = DatabaseList(
        [await _about(engine) for engine in ctx.lifespan_state.engines.values()],
        msgspec.to_builtins(ctx.lifespan_state.limits),
    )
    lines = [
        f"{one.name}: "
        f"{one.version or one.kind}{f', {one.size:,} bytes' if one.size is not None else ''}, "
        f"{'writable' if one.writable else 'read only'}, {one.place}{one.problem}"
        for one in found.databases
    ]
    return ToolResult(found, "\n".join(lines) or "There is no database.")


async def _about(engine: Engine) -> Database:
    try:
        about = await engine.about()
    except ToolError as bad:
        return Database(engine.name, engine.kind, engine.writable, problem=str(bad))
    return Database(
        engine.name,
        engine.kind,
        engine.writable,
        about.version,
        about.place,
        about.schema,
        about.size,
    )


async def list_tables(
    ctx: Context[Databases],
    database: str | None = None,
    like: str = "",
    cursor: Cursor | None = None,
) -> ToolResult[TableList]:
    """The tables and views of a database, by name.

    Args:
        database: its name, if there are several.
        like: only those whose name holds this text, whatever its case.
        cursor: the `next` of the page before.
    """
    engine = ctx.lifespan_state.find(database)
    call = digest(engine.name, like)
    start = place_of(cursor, call).skip if cursor else 0
    known = {
        name: table
        for name, table in (await ctx.lifespan_state.labels(engine)).items()
        if like.lower() in name.lower()
    }
    page = list(known)[start : start + _MOST_NAMES]
    end = start + len(page)
    found = TableList(
        engine.name,
        [known[name] for name in page],
        cursor_of(PageCursor(call, end, "")) if end < len(known) else None,
    )
    lines = [name_in_words(name, known[name]) for name in page] or [
        "There is no such table." if like else "There is no table."
    ]
    return ToolResult(found, "\n".join([*lines, *_more(found.next)]))


async def describe_tables(
    tables: Names, ctx: Context[Databases], database: str | None = None
) -> ToolResult[TableDescriptions]:
    """Tables and views in full: columns with their types, keys, foreign keys, indexes.

    Args:
        tables: their names, as list_tables has them.
        database: its name, if there are several.
    """
    engine = ctx.lifespan_state.find(database)
    found = TableDescriptions(engine.name, await ctx.lifespan_state.described(engine, tables))
    return ToolResult(
        found,
        tables_in_words(
            found.tables, ctx.lifespan_state.names(engine), ctx.lifespan_state.limits.bytes
        ),
    )


async def query(
    sql: Sql,
    ctx: Context[Databases],
    parameters: Given = None,
    database: str | None = None,
    limit: Annotated[int, Meta(ge=1)] | None = None,
    cursor: Cursor | None = None,
) -> ToolResult[QueryResult]:
    """Run one statement of SQL that reads, and get its rows. Nothing can be changed by it.

    Pass values as `parameters` instead of writing them into the SQL. A next page runs the statement
    again and steps over what was seen: order it by something unique, and for long ways through a
    large table go on by a key (WHERE id > ?) instead.

    Args:
        sql: one statement, in the dialect of the database.
        database: its name, if there are several.
        limit: the most rows of one page.
        cursor: the `next` of the page before, with the same arguments otherwise.
    """
    engine = ctx.lifespan_state.find(database)
    limits = ctx.lifespan_state.limits
    statement = statement_of(sql, parameters, limits.statement)
    call = digest(engine.name, sql, parameters)
    place = place_of(cursor, call) if cursor else None
    before = place.skip if place else 0
    # The previous page's last row is read again, to check that it is still at its place.
    seen = 1 if place else 0
    most = min(limit or limits.page, limits.rows)
    page = RowRange(before - seen, most + seen, limits.bytes, limits.cell, free=1 + seen)
    async with reporting_progress(ctx, limits.seconds, limits.telling):
        found = await engine.rows(statement, page)
    if place and digest(*found.rows[:1]) != place.last:
        raise ToolError(
            "The rows before this page have changed, or their order has. Start again "
            "without a cursor."
        )
    result = QueryResult(
        engine.name, found.columns, found.rows[seen:], before, found.ended, found.seconds
    )
    if found.ended != "all":
        result.next = cursor_of(PageCursor(call, before + len(result.rows), digest(found.rows[-1])))
    return ToolResult(result, _in_words(result))


def statement_of(sql: str, parameters: Parameters | None, most: int) -> Statement:
    """A caller's statement. Raises ToolError if it is too long."""
    if len(sql.encode("utf-8", "replace")) > most:
        raise ToolError(f"The statement has more than {most:,} bytes. Pass values as parameters.")
    return Statement(sql, parameters if parameters is not None else ())


def _in_words(result: QueryResult) -> str:
    if not result.columns:
        return "The statement returns no rows."
    last = (
        f"{len(result.rows)} "
        f"row{'s' * (len(result.rows) != 1)}{f' from row {result.first}' * (result.first > 0)}"
    )
    return "\n".join([rows_in_words(result.columns, result.rows), f"({last})", *_more(result.next)])


def _more(cursor: str | None) -> list[str]:
    return [f"More rows: call again with cursor={cursor}"] if cursor else []


async def explain(
    sql: Sql,
    ctx: Context[Databases],
    parameters: Given = None,
    database: str | None = None,
    analyze: bool = False,
) -> ToolResult[QueryPlan]:
    """How the database would carry a statement out: which indexes it uses, and what it reads as a
    whole.

    Args:
        sql: one statement, in the dialect of the database.
        database: its name, if there are several.
        analyze: run it as well, and say what each step took, where the database can tell. Nothing
            can be changed by it.
    """
    engine = ctx.lifespan_state.find(database)
    limits = ctx.lifespan_state.limits
    statement = statement_of(sql, parameters, limits.statement)
    async with reporting_progress(ctx, limits.seconds, limits.telling):
        plan = await engine.explain(statement, analyze=analyze)
    words = plan_in_words(plan.steps) or "The statement needs no steps that a plan would show."
    ran = f"\nIt ran for {plan.seconds:.3f} seconds." if plan.seconds is not None else ""
    return ToolResult(QueryPlan(engine.name, plan.steps, plan.seconds), line_by_line(words) + ran)


def line_by_line(words: str) -> str:
    """Split into lines of readable length."""
    return "\n".join(line(one, 1_000) for one in words.split("\n"))
