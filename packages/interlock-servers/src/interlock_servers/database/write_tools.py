"""The tool that changes a database, for databases that the owner of the server opened for
writing.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from interlock import Context, ToolError, ToolResult

from .databases import Databases
from .engine import RowRange, Rows
from .read_tools import Sql, statement_of
from .rendering import reporting_progress, rows_in_words
from .results import StatementResult, TransactionResult


class SqlStatement(Struct):
    """One SQL statement with its parameters, by position or by name."""

    sql: Sql
    parameters: list[Any] | dict[str, Any] = field(default_factory=list)


Changes = Annotated[list[SqlStatement], Meta(min_length=1)]


async def execute(
    statements: Changes, ctx: Context[Databases], database: str | None = None, dry_run: bool = False
) -> ToolResult[TransactionResult]:
    """Run statements of SQL that may change data or tables, in one transaction: all of them happen,
    or none.

    Args:
        statements: each is one statement; what it returns (RETURNING) comes back.
        database: its name, if there are several.
        dry_run: try them, say what they would do, and keep nothing of it.
    """
    engine = ctx.lifespan_state.find(database)
    limits = ctx.lifespan_state.limits
    if len(statements) > limits.statements:
        raise ToolError(
            f"There are more than {limits.statements} statements. Send them in several calls."
        )
    given = [statement_of(one.sql, one.parameters, limits.statement) for one in statements]
    page = RowRange(0, limits.rows, max(1, limits.bytes // len(given)), limits.cell)
    async with reporting_progress(ctx, limits.seconds, limits.telling):
        results = await engine.execute(given, page, keep=not dry_run)
    done = TransactionResult(
        engine.name,
        not dry_run,
        [
            StatementResult(one.changed, one.columns, one.rows, one.ended == "all")
            for one in results
        ],
    )
    if not dry_run:
        await ctx.lifespan_state.announce_changes()
    words = "Done." if done.kept else "Dry run: the changes were rolled back."
    return ToolResult(done, "\n".join(filter(None, [words, *map(_in_words, results)])))


def _in_words(rows: Rows) -> str:
    changed = (
        "" if rows.changed is None else f"{rows.changed} row{'s' * (rows.changed != 1)} changed."
    )
    return "\n".join(
        filter(None, [changed, rows_in_words(rows.columns, rows.rows) if rows.columns else ""])
    )
