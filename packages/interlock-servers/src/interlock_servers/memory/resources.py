"""Resources of the memory server: an overview, each entity, and the graph as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from interlock import Context, McpError, Server, ToolError, types

from . import history, search, views
from .graph import Graph
from .jsonl import export_lines
from .read_tools import counts
from .results import GraphCounts
from .texts import kept
from .write_tools import CHANGES, EXPORT, GRAPH, STATISTICS

ENTITY = "memory://entity/{+name}"  # a name may contain slashes
_RELATION = b'{"type":"relation"'
_MOST_COMPLETED = 100
_NAME = "The name of an entity"


def add_resources(made: Server) -> None:
    """Add the resources, the template of all entities, and its completion."""

    def graph(ctx: Context[Graph]) -> str:
        """All entities and relations, of one moment. Watch it to hear of every change."""
        lines = _exported(ctx)
        at = next(
            (number for number, line in enumerate(lines) if line.startswith(_RELATION)), len(lines)
        )
        entities, relations = (
            b",".join(line.rstrip(b"\n") for line in part) for part in (lines[:at], lines[at:])
        )
        return (b'{"entities":[' + entities + b'],"relations":[' + relations + b"]}").decode()

    def export(ctx: Context[Graph]) -> str:
        """All of the graph as JSON lines, of one moment."""
        return b"".join(_exported(ctx)).decode()

    def statistics(ctx: Context[Graph]) -> GraphCounts:
        """How much there is in the graph."""
        with _words(), ctx.lifespan_state.reading(ctx.lifespan_state.progress(ctx)) as db:
            return counts(ctx.lifespan_state, db)

    def changes(ctx: Context[Graph]) -> Any:
        """The latest changes."""
        with _words(), ctx.lifespan_state.reading(ctx.lifespan_state.progress(ctx)) as db:
            return history.changes(db, None, None, ctx.lifespan_state.limits.page)

    @made.resource(
        ENTITY,
        name="entity",
        title="An entity",
        mime_type="application/json",
        cache_scope="private",
    )
    def entity(name: str, ctx: Context[Graph]) -> dict[str, Any] | None:
        """An entity: its observations, their dates, and its relations."""
        with _words(), ctx.lifespan_state.reading(ctx.lifespan_state.progress(ctx)) as db:
            limits = ctx.lifespan_state.limits
            name = kept(name, _NAME, limits.name)
            found = db.execute(
                "SELECT id, kind, at FROM entities WHERE name = ?", (name,)
            ).fetchone()
            if found is None:
                return None
            query = "SELECT text, at FROM observations WHERE entity = ? ORDER BY id LIMIT ?"
            observations = [
                {"text": text, "since": at}
                for text, at in db.execute(query, (found[0], limits.observations))
            ]
            relations = views.relations_of(db, [name], limits.relations)
        return {
            "name": name,
            "entityType": found[1],
            "since": found[2],
            "observations": observations,
            "relations": relations,
        }

    @made.completion(ENTITY, "name")
    def complete_name(value: str, ctx: Context[Graph]) -> list[str]:
        try:
            with ctx.lifespan_state.reading(ctx.lifespan_state.progress(ctx)) as db:
                return search.names_like(
                    db, value, _MOST_COMPLETED, indexed=ctx.lifespan_state.indexed
                )
        except ToolError:
            return []  # completion has no room for an error; reading the resource reports it

    json = "application/json"
    made.add_resource(
        STATISTICS,
        statistics,
        name="statistics",
        title="Size of the graph",
        mime_type=json,
        cache_scope="private",
    )
    made.add_resource(
        GRAPH,
        graph,
        name="knowledge-graph",
        title="The graph",
        mime_type=json,
        cache_scope="private",
    )
    made.add_resource(
        EXPORT,
        export,
        name="export",
        title="The graph as JSON lines",
        mime_type="application/jsonl",
        cache_scope="private",
    )
    made.add_resource(
        CHANGES,
        changes,
        name="changes",
        title="The latest changes",
        mime_type=json,
        cache_scope="private",
    )


def _exported(ctx: Context[Graph]) -> list[bytes]:
    """The lines of the whole graph. Raises McpError if it is too large for one result."""
    lines: list[bytes] = []
    room = ctx.lifespan_state.limits.exported
    with _words(), ctx.lifespan_state.reading(ctx.lifespan_state.progress(ctx)) as db:
        for _, line in export_lines(db):
            room -= len(line)
            if room < 0:
                raise ToolError(
                    "The graph is too large to read at once: export_graph returns it in pages."
                )
            lines.append(line)
    return lines


@contextmanager
def _words() -> Iterator[None]:
    """Report errors to readers in the same words as to callers of tools."""
    try:
        yield
    except ToolError as bad:
        raise McpError(types.INTERNAL_ERROR, str(bad)) from None
