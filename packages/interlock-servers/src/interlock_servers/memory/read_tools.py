"""Tools that read and search the graph. They change nothing."""

from __future__ import annotations

import sqlite3
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from interlock import Context, Server, ToolAnnotations, ToolError, ToolResult
from interlock.cursors import encode_cursor
from interlock.untrusted.invisible import visible_line as shown

from ..cursors import read_number
from . import history, search, views
from .graph import Graph
from .jsonl import cursor_of, export_lines, place_of
from .results import (
    ChangeList,
    ChangeSteps,
    ExportResult,
    GraphCounts,
    ShortestPath,
    Subgraph,
    Text,
)
from .texts import kept
from .views import Direction

Ctx = Context[Graph]
Name = Annotated[Text, Meta(examples=["Ada_Lovelace"])]
Cursor = Annotated[str, Meta(max_length=100)]
Count = Annotated[int, Meta(ge=1)]

READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_NAME = "The name of an entity"
_MOST_TYPES = 50


def read_graph(
    ctx: Ctx, type: Text | None = None, limit: Count | None = None, cursor: Cursor | None = None
) -> ToolResult[Subgraph]:
    """Read the graph in pages: entities with their observations, in the order in which they came,
    and the relations from them.

    Args:
        type: only entities of this type.
        limit: how many entities a page has.
        cursor: what the page before gave.
    """
    graph = ctx.lifespan_state
    size = _size(graph, limit)
    after = read_number(cursor, "read_graph")
    with graph.reading(graph.progress(ctx)) as db:
        where, values = ("kind = ? AND ", [type]) if type is not None else ("", [])
        query = f"SELECT id FROM entities WHERE {where}id > ? ORDER BY id LIMIT ?"
        ids = [id_ for (id_,) in db.execute(query, (*values, after, size + 1))]
        found, taken = views.subgraph(db, ids[:size], graph.limits, direction="out")
        found.cursor = encode_cursor(ids[taken - 1], "read_graph") if len(ids) > taken else None
        if type is None and found.cursor is None:
            found.relations += views.dangling_relations(db, graph.limits.relations)
    return ToolResult(found, found.words("The graph is empty."))


def search_nodes(
    query: Annotated[str, Meta(examples=["climbing shoes"])],
    ctx: Ctx,
    type: Text | None = None,
    limit: Count | None = None,
    cursor: Cursor | None = None,
) -> ToolResult[Subgraph]:
    """Find entities by words in their names, types and observations; those that fit best come
    first, with their relations.

    Case and accents make no difference. All words have to be there, or their beginnings, or where
    that is too little parts of words.

    Args:
        query: words, or phrases in quotation marks.
        type: only entities of this type.
        limit: how many entities a page has.
        cursor: what the page before gave.
    """
    graph = ctx.lifespan_state
    size = _size(graph, limit)
    skip = read_number(cursor, "search_nodes")
    progress = graph.progress(ctx)
    with graph.reading(progress) as db:
        ids, note = search.search(
            db, query, type, skip + size + 1, graph.limits.ranked, progress, indexed=graph.indexed
        )
        found, taken = views.subgraph(db, ids[skip : skip + size], graph.limits)
    found.cursor = encode_cursor(skip + taken, "search_nodes") if len(ids) > skip + taken else None
    found.note = "; ".join(filter(None, (note if ids else None, found.note))) or None
    return ToolResult(found, found.words(f"Nothing was found for {shown(query)}."))


def open_nodes(
    names: list[Name],
    ctx: Ctx,
    skip: Annotated[int, Meta(ge=0)] = 0,
    limit: Count | None = None,
    cursor: Cursor | None = None,
) -> ToolResult[Subgraph]:
    """Read some entities by their names, with the relations from and to them.

    Those that are not there are left out.

    Args:
        names: of the entities.
        skip: so many observations of each are left out at the beginning, to get the further ones of
            an entity that has many.
        limit: how many entities a page has.
        cursor: what the page before gave.
    """
    graph = ctx.lifespan_state
    if len(names) > graph.limits.items:
        raise ToolError(
            f"At most {graph.limits.items:,} names can be sent in one call; you sent "
            f"{len(names):,}."
        )
    size = min(_size(graph, limit) if limit else graph.limits.pages, graph.limits.pages)
    first = read_number(cursor, "open_nodes")
    with graph.reading(graph.progress(ctx)) as db:
        ids = views.ids_of(db, [kept(name, _NAME, graph.limits.name) for name in names])
        found, taken = views.subgraph(
            db, list(ids.values())[first : first + size], graph.limits, skip
        )
    found.cursor = encode_cursor(first + taken, "open_nodes") if len(ids) > first + taken else None
    missing = [shown(name) for name in names if kept(name, _NAME, graph.limits.name) not in ids]
    if missing:
        found.note = "; ".join(filter(None, (f"not there: {', '.join(missing[:20])}", found.note)))
    return ToolResult(found, found.words("None of these entities exists."))


def list_neighbours(
    name: Name,
    ctx: Ctx,
    depth: Annotated[int, Meta(ge=1, le=5)] = 1,
    direction: Direction = "both",
    relations: list[Text] | None = None,
    limit: Count | None = None,
) -> ToolResult[Subgraph]:
    """Relations of an entity: the entities that its relations lead to, the nearest first.

    Args:
        name: of the entity.
        depth: how many steps to go.
        direction: along the relations (out), against them (in), or both.
        relations: only relations of these types.
        limit: how many entities to show.
    """
    graph = ctx.lifespan_state
    size = _size(graph, limit)
    progress = graph.progress(ctx)
    with graph.reading(progress) as db:
        name = kept(name, _NAME, graph.limits.name)
        names, cut = views.neighbours(db, name, depth, direction, relations, graph.limits, progress)
        if len(names) == 1 and not views.ids_of(db, [name]):
            raise ToolError(f"There is no entity {shown(name)}; search_nodes finds names.")
        ids = list(views.ids_of(db, names[: graph.limits.pages + 1]).values())
        found, taken = views.subgraph(db, ids[:size], graph.limits)
    if relations is not None:
        found.relations = [one for one in found.relations if one.kind in relations]
    if cut or len(ids) > taken or len(names) > graph.limits.pages:
        reached = (
            f"{len(names):,} names were reached{' and more' if cut else ''}, and not all are shown"
        )
        found.note = "; ".join(filter(None, (reached, found.note)))
    return ToolResult(found, found.words("There is nothing."))


def find_path(
    start: Name,
    end: Name,
    ctx: Ctx,
    directed: bool = False,
    relations: list[Text] | None = None,
    depth: Annotated[int, Meta(ge=1, le=100)] | None = None,
) -> ToolResult[ShortestPath]:
    """How two entities have to do with each other: a shortest way between them.

    Args:
        start: the entity to begin at.
        end: the entity to arrive at.
        directed: whether relations are followed only in their own direction.
        relations: only relations of these types.
        depth: how many steps it may have at the most.
    """
    graph = ctx.lifespan_state
    limits = graph.limits
    progress = graph.progress(ctx)
    start = kept(start, _NAME, limits.name)
    end = kept(end, _NAME, limits.name)
    steps = min(depth or limits.depth, limits.depth)
    with graph.reading(progress) as db:
        found = views.way(
            db,
            start,
            end,
            steps,
            directed=directed,
            kinds=relations,
            limits=limits,
            progress=progress,
        )
    if not found.found:
        return ToolResult(
            found,
            f"No path was found from {shown(start)} to {shown(end)} in {steps} "
            f"steps{f': {found.note}' if found.note else ''}.",
        )
    return ToolResult(
        found, "\n".join(one.line() for one in found.relations) or "They are the same."
    )


def graph_statistics(ctx: Ctx) -> ToolResult[GraphCounts]:
    """How much there is in the graph, by types; where its file is, and the limits of this
    server.
    """
    graph = ctx.lifespan_state
    with graph.reading(graph.progress(ctx)) as db:
        found = counts(graph, db)
    types = ", ".join(f"{shown(name)} {count:,}" for name, count in found.entity_types.items())
    relations = ", ".join(
        f"{shown(name)} {count:,}" for name, count in found.relation_types.items()
    )
    lines = [
        f"{found.entities:,} entities{f' ({types})' if types else ''}, {found.observations:,} "
        "observations",
        f"{found.relations:,} relations{f' ({relations})' if relations else ''}, "
        f"{found.dangling:,} of them to missing entities",
        f"{found.changes:,} changes in the history, {found.bytes:,} bytes in {shown(found.path)}",
        *(
            []
            if found.full_text
            else ["This SQLite has no full-text search: searches scan every entity."]
        ),
    ]
    return ToolResult(found, "\n".join(lines))


def counts(graph: Graph, db: sqlite3.Connection) -> GraphCounts:
    """The size of a graph."""

    def number(query: str) -> int:
        return int(db.execute(query).fetchone()[0])

    def types(table: str) -> dict[str, int]:
        query = (
            f"SELECT kind, count(*) FROM {table} GROUP BY kind ORDER BY 2 DESC, 1 LIMIT "
            f"{_MOST_TYPES}"
        )
        return dict(db.execute(query).fetchall())

    there = "IN (SELECT name FROM entities)"
    return GraphCounts(
        number("SELECT count(*) FROM entities"),
        number("SELECT count(*) FROM observations"),
        number("SELECT count(*) FROM relations"),
        types("entities"),
        types("relations"),
        number(f"SELECT count(*) FROM relations WHERE NOT (source {there} AND target {there})"),
        number("SELECT count(*) FROM changes"),
        graph.path.stat().st_size,
        str(graph.path),
        graph.indexed,
        msgspec.to_builtins(graph.limits),
    )


def list_changes(
    ctx: Ctx, name: Name | None = None, limit: Count | None = None, cursor: Cursor | None = None
) -> ToolResult[ChangeList]:
    """What was changed, when, by which client and tool, the latest first. show_change has the
    parts, undo takes one back.

    Args:
        name: only changes of this entity; an import as a whole is of none.
        limit: how many changes a page has.
        cursor: what the page before gave.
    """
    graph = ctx.lifespan_state
    size = _size(graph, limit)
    name = kept(name, _NAME, graph.limits.name) if name is not None else None
    with graph.reading(graph.progress(ctx)) as db:
        found = history.changes(db, name, read_number(cursor, "list_changes") or None, size)
    lines = [one.line() for one in found.changes] or ["There are no changes in the history."]
    return ToolResult(
        found,
        "\n".join(
            [
                *lines,
                *(
                    [f"... there are more: call again with cursor {found.cursor}"]
                    if found.cursor
                    else []
                ),
            ]
        ),
    )


def show_change(
    change: Count, ctx: Ctx, limit: Count | None = None, cursor: Cursor | None = None
) -> ToolResult[ChangeSteps]:
    """What a change did: each part of it, as it was before and as it was after.

    Args:
        change: its number, as list_changes has it.
        limit: how many parts a page has.
        cursor: what the page before gave.
    """
    graph = ctx.lifespan_state
    with graph.reading(graph.progress(ctx)) as db:
        found = history.steps(db, change, read_number(cursor, "show_change"), _size(graph, limit))
    lines = [found.change.line()]
    for one in found.steps:
        before = _side(one.before)
        after = _side(one.after)
        if before and after:
            sign = "~"
        elif before:
            sign = "-"
        else:
            sign = "+"
        lines.append(f"{sign} {one.kind} {' -> '.join(filter(None, (before, after)))}")
    return ToolResult(
        found,
        "\n".join(
            [
                *lines,
                *(
                    [f"... there are more: call again with cursor {found.cursor}"]
                    if found.cursor
                    else []
                ),
            ]
        ),
    )


def export_graph(ctx: Ctx, cursor: Cursor | None = None) -> ToolResult[ExportResult]:
    """The graph as JSON lines, which other memory servers read: entities first, then relations, a
    page at a time.

    Args:
        cursor: what the page before gave.
    """
    graph = ctx.lifespan_state
    lines: list[bytes] = []
    room = graph.limits.answer
    last = cursor
    more = False
    with graph.reading(graph.progress(ctx)) as db:
        for at, line in export_lines(db, *place_of(cursor)):
            room -= len(line)
            if lines and room < 0:
                more = True
                break
            lines.append(line)
            last = cursor_of(at)
    return ToolResult(ExportResult(len(lines), last if more else None), b"".join(lines).decode())


def add_looking(made: Server) -> None:
    """Add the read-only tools."""
    made.add_tool(read_graph, title="Read the graph", annotations=READS)
    made.add_tool(search_nodes, title="Search for entities", annotations=READS)
    made.add_tool(open_nodes, title="Open entities", annotations=READS)
    made.add_tool(list_neighbours, title="Relations of an entity", annotations=READS)
    made.add_tool(find_path, title="Find a path between two entities", annotations=READS)
    made.add_tool(graph_statistics, title="Size of the graph", annotations=READS)
    made.add_tool(list_changes, title="List changes", annotations=READS)
    made.add_tool(show_change, title="Show a change", annotations=READS)
    made.add_tool(export_graph, title="Export the graph", annotations=READS)


def _size(graph: Graph, limit: int | None) -> int:
    return min(limit or graph.limits.page, graph.limits.pages)


def _side(about: dict[str, Any] | None) -> str:
    return ", ".join(f"{key}: {shown(str(value))}" for key, value in (about or {}).items())
