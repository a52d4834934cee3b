"""Tools that change the graph. Each call is one transaction, and can be undone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from interlock import Context, Server, ToolAnnotations, ToolError, ToolResult
from interlock.untrusted.invisible import visible_line as shown

from . import history, jsonl, operations
from .graph import Graph
from .read_tools import Count, Ctx, Name
from .results import (
    AddedObservations,
    ChangeResult,
    CreatedEntities,
    CreatedRelations,
    Deletion,
    ImportResult,
    NewEntity,
    NewObservations,
    PurgeResult,
    Relation,
    Text,
    counted,
    listed,
)
from .texts import kept, uri_of
from .transaction import Transaction

GRAPH = "memory://knowledge-graph"
EXPORT = "memory://export"
CHANGES = "memory://changes"
STATISTICS = "memory://statistics"
_MOST_NOTIFIED = 1_000  # entities named in notifications
_LONG = 10  # factor of the time limit of an import


def create_entities(entities: list[NewEntity], ctx: Ctx) -> ToolResult[CreatedEntities]:
    """Add entities to the graph. One whose name is there already is left as it is.

    Args:
        entities: each with a name that nothing else has, a type such as person or project, and one
            fact in each observation.
    """
    with ctx.lifespan_state.changing(
        ctx.lifespan_state.progress(ctx), "create_entities", client_of(ctx)
    ) as change:
        found = operations.create_entities(change, entities)
    found.change = notify_clients(ctx, change)
    words = (
        f"{counted(len(found.entities), 'entity was', 'entities were')} "
        f"created{_of(one.name for one in found.entities)}."
    )
    if found.existing:
        words += (
            f" These already exist and were not changed: {listed(found.existing, 20)}. "
            "add_observations adds to them."
        )
    if found.alike:
        words += (
            f" Similar entities already exist: {listed(found.alike, 20)}. merge_entities "
            "merges them if they are the same."
        )
    return ToolResult(found, words + _number(found.change))


def create_relations(relations: list[Relation], ctx: Ctx) -> ToolResult[CreatedRelations]:
    """Add relations between entities. One that is there already is left as it is.

    Args:
        relations: each from one entity to another, with a verb in the active voice as its type,
            such as works_at.
    """
    with ctx.lifespan_state.changing(
        ctx.lifespan_state.progress(ctx), "create_relations", client_of(ctx)
    ) as change:
        found = operations.create_relations(change, relations)
    found.change = notify_clients(ctx, change)
    there = len(relations) - len(found.relations)
    words = (
        f"{counted(len(found.relations), 'relation was', 'relations were')} "
        f"created{_of(one.line() for one in found.relations)}."
    )
    words += f" {there:,} {'was' if there == 1 else 'were'} there already." if there else ""
    if found.missing:
        words += f" Missing entities: {listed(found.missing, 20)}. create_entities creates them."
    return ToolResult(found, words + _number(found.change))


def add_observations(
    observations: list[NewObservations], ctx: Ctx
) -> ToolResult[AddedObservations]:
    """Add facts to entities that are there. What an entity has already is not added again.

    Args:
        observations: for each entity what to add, one fact in each.
    """
    with ctx.lifespan_state.changing(
        ctx.lifespan_state.progress(ctx), "add_observations", client_of(ctx)
    ) as change:
        found = operations.add_observations(change, observations)
    found.change = notify_clients(ctx, change)
    lines_ = [
        f"{shown(one.entity_name)}: {counted(len(one.added_observations), 'observation')} added"
        for one in found.results
    ]
    return ToolResult(
        found, "\n".join(lines_ or ["There was nothing to add."]) + _number(found.change)
    )


def delete_entities(entityNames: list[Text], ctx: Ctx) -> ToolResult[ChangeResult]:  # noqa: N803 - prompts for other servers call it so
    """Delete entities, with what is known of them and the relations from and to them. undo brings
    them back.

    Args:
        entityNames: the names of the entities; what is not there stays so.
    """
    with ctx.lifespan_state.changing(
        ctx.lifespan_state.progress(ctx), "delete_entities", client_of(ctx)
    ) as change:
        found = operations.delete_entities(change, entityNames)
    return _done(ctx, change, found)


def delete_observations(deletions: list[Deletion], ctx: Ctx) -> ToolResult[ChangeResult]:
    """Delete observations of entities. undo brings them back.

    Args:
        deletions: for each entity the observations, as they stand; what is not there stays so.
    """
    with ctx.lifespan_state.changing(
        ctx.lifespan_state.progress(ctx), "delete_observations", client_of(ctx)
    ) as change:
        found = operations.delete_observations(change, deletions)
    return _done(ctx, change, found)


def delete_relations(relations: list[Relation], ctx: Ctx) -> ToolResult[ChangeResult]:
    """Delete relations. undo brings them back.

    Args:
        relations: as they stand; what is not there stays so.
    """
    with ctx.lifespan_state.changing(
        ctx.lifespan_state.progress(ctx), "delete_relations", client_of(ctx)
    ) as change:
        found = operations.delete_relations(change, relations)
    return _done(ctx, change, found)


def rename_entity(name: Name, to: Text, ctx: Ctx) -> ToolResult[ChangeResult]:
    """Give an entity another name; its relations go along.

    Args:
        name: as it is now.
        to: the new name, which nothing else has.
    """
    with ctx.lifespan_state.changing(
        ctx.lifespan_state.progress(ctx), "rename_entity", client_of(ctx)
    ) as change:
        found = operations.rename_entity(change, name, to)
    return _done(ctx, change, found)


def merge_entities(names: list[Text], into: Name, ctx: Ctx) -> ToolResult[ChangeResult]:
    """Make one entity of several that are the same: it gets their observations and relations, and
    they are gone.

    Args:
        names: of the entities that go.
        into: the entity that stays, with its name and type.
    """
    with ctx.lifespan_state.changing(
        ctx.lifespan_state.progress(ctx), "merge_entities", client_of(ctx)
    ) as change:
        found = operations.merge_entities(change, names, into)
    return _done(ctx, change, found)


def set_entity_type(name: Name, type: Text, ctx: Ctx) -> ToolResult[ChangeResult]:
    """Give an entity another type.

    Args:
        name: of the entity.
        type: what it is.
    """
    with ctx.lifespan_state.changing(
        ctx.lifespan_state.progress(ctx), "set_entity_type", client_of(ctx)
    ) as change:
        found = operations.set_entity_type(change, name, type)
    return _done(ctx, change, found)


def replace_observation(name: Name, old: Text, new: Text, ctx: Ctx) -> ToolResult[ChangeResult]:
    """Put a fact in the place of one that is true no more.

    Args:
        name: of the entity.
        old: the observation, as it stands.
        new: what stands there then.
    """
    with ctx.lifespan_state.changing(
        ctx.lifespan_state.progress(ctx), "replace_observation", client_of(ctx)
    ) as change:
        found = operations.replace_observation(change, name, old, new)
    return _done(ctx, change, found)


def undo(change: Count, ctx: Ctx) -> ToolResult[ChangeResult]:
    """Take a change back, where nothing that came later stands in the way.

    That is a change too, and can be undone itself.

    Args:
        change: its number, as list_changes and the answers of other tools have it.
    """
    found, made = history.undo(
        ctx.lifespan_state, change, client_of(ctx), ctx.lifespan_state.progress(ctx, _LONG)
    )
    if made is not None:
        found.change = notify_clients(ctx, made)
    return ToolResult(found, found.message + _number(found.change))


def forget_changes(
    ctx: Ctx, changes: list[Count] | None = None, name: Name | None = None
) -> ToolResult[PurgeResult]:
    """Take changes out of the history for good, once the user has agreed: what was deleted is
    gone then.

    The graph stays as it is.

    Args:
        changes: their numbers; without these and a name all of them.
        name: all changes that had to do with the entity of this name.
    """
    graph = ctx.lifespan_state
    if changes is not None and len(changes) > graph.limits.items:
        raise ToolError(
            f"At most {graph.limits.items:,} can be sent in one call; you sent {len(changes):,}."
        )
    name = kept(name, operations.NAME, graph.limits.name) if name is not None else None
    with graph.reading(graph.progress(ctx)) as db:
        there = set(history.changes_of(db, None))
        of_name = set(history.changes_of(db, name))
    ids = sorted(
        of_name if changes is None else there & {*changes, *(of_name if name is not None else ())}
    )
    if ids:
        which = (
            "all of the history"
            if len(ids) == len(there)
            else f"the changes {listed(map(str, ids))}"
        )
        words = (
            f"Forget {which} ({counted(len(ids), 'change')})? They cannot be undone or "
            "restored afterwards."
        )
        if not ctx.wait(ctx.confirm(words)):
            raise ToolError("The user did not agree, and nothing was forgotten.")
    gone, clean = history.forget(graph, ids, graph.progress(ctx, _LONG))
    words = (
        f"{counted(gone, 'change is', 'changes are')} forgotten permanently."
        if ids
        else "The history is empty."
    )
    return ToolResult(PurgeResult(gone, clean), words if clean else f"{words} {history.TRACES}")


def import_graph(
    ctx: Ctx,
    text: Annotated[
        str,
        Meta(examples=['{"type":"entity","name":"Ada","entityType":"person","observations":[]}']),
    ]
    | None = None,
    file: Annotated[str, Meta(max_length=255)] | None = None,
    dry_run: bool = False,
) -> ToolResult[ImportResult]:
    """Add a graph that is JSON lines, as other memory servers keep it.

    What is there already is left as it is.

    Args:
        text: the lines themselves.
        file: in their place, the name of a file in the folder that the owner of this server set up
            for that.
        dry_run: whether only to say what would come of it.
    """
    graph = ctx.lifespan_state
    if (text is None) == (file is None):
        raise ToolError("Send either the lines as text or the name of a file.")
    progress = graph.progress(ctx, _LONG)
    who = client_of(ctx)
    if text is not None:
        if len(text) > graph.limits.lines:
            raise ToolError(
                f"That is {len(text):,} bytes, and the limit is {graph.limits.lines:,}: "
                "import it as a file."
            )
        found, change = jsonl.import_lines(
            graph, text.encode().split(b"\n"), who, progress, dry_run=dry_run
        )
    else:
        folder = graph.imports
        if folder is None:
            raise ToolError(
                "This server has no folder for imports (INTERLOCK_MEMORY_IMPORTS). Send "
                "the lines as text."
            )
        with jsonl.opened(Path(folder), file or "", graph.limits) as opened:
            found, change = jsonl.import_lines(
                graph, jsonl.lines_of(opened), who, progress, dry_run=dry_run, whence=file or ""
            )
    if change is not None:
        notify_clients(ctx, change)
    return ToolResult(found, jsonl.words_of(found) + _number(found.change))


def add_changing(made: Server) -> None:
    """Add the tools that write."""

    def hints(*, destructive: bool) -> ToolAnnotations:
        return ToolAnnotations(
            read_only_hint=False,
            destructive_hint=destructive,
            idempotent_hint=True,
            open_world_hint=False,
        )

    adds = hints(destructive=False)
    alters = hints(destructive=True)
    made.add_tool(create_entities, title="Create entities", annotations=adds)
    made.add_tool(create_relations, title="Create relations", annotations=adds)
    made.add_tool(add_observations, title="Add observations", annotations=adds)
    made.add_tool(delete_entities, title="Delete entities", annotations=alters)
    made.add_tool(delete_observations, title="Delete observations", annotations=alters)
    made.add_tool(delete_relations, title="Delete relations", annotations=alters)
    made.add_tool(rename_entity, title="Rename an entity", annotations=_once())
    made.add_tool(merge_entities, title="Merge entities", annotations=alters)
    made.add_tool(set_entity_type, title="Change the type of an entity", annotations=alters)
    made.add_tool(replace_observation, title="Replace an observation", annotations=alters)
    made.add_tool(undo, title="Undo a change", annotations=alters)
    made.add_tool(forget_changes, title="Forget changes permanently", annotations=alters)
    made.add_tool(import_graph, title="Import a graph", annotations=adds)


# -- shared helpers --------------------------------------------------------------------------------


def _once() -> ToolAnnotations:
    """The annotations of a tool that fails when it is repeated."""
    return ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False
    )


def client_of(ctx: Context[Graph]) -> str:
    """The author of a change: the calling program, and its principal if known."""
    info = ctx.caller.info
    principal = ctx.caller.principal
    name = info.name if info is not None else ""
    return f"{name} ({principal.subject})"[:200] if principal is not None else name[:200]


def notify_clients(ctx: Context[Graph], change: Transaction) -> int | None:
    """Notify clients of a change; return its number."""
    if change.id is None:
        return None
    for uri in uris_of(change.names()):
        ctx.updated(uri)
    return change.id


def uris_of(names: Iterable[str]) -> list[str]:
    """The URIs of the resources that show these entities."""
    return [GRAPH, EXPORT, CHANGES, STATISTICS, *map(uri_of, sorted(names)[:_MOST_NOTIFIED])]


def _done(
    ctx: Context[Graph], change: Transaction, found: ChangeResult
) -> ToolResult[ChangeResult]:
    found.change = notify_clients(ctx, change)
    return ToolResult(found, found.message + _number(found.change))


def _number(change: int | None) -> str:
    return f" [change {change}]" if change is not None else ""


def _of(names: Iterable[str]) -> str:
    words = listed(names, 20)
    return f": {words}" if words else ""
