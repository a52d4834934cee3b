"""Operations on a graph within one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from interlock import ToolError
from interlock.untrusted.invisible import visible_line as shown

from . import search
from .limits import MemoryLimits
from .results import (
    AddedObservations,
    AddedToEntity,
    ChangeResult,
    CreatedEntities,
    CreatedRelations,
    Deletion,
    Entity,
    NewEntity,
    NewObservations,
    Relation,
    counted,
    listed,
)
from .texts import kept, name_of
from .transaction import EntityRow as Row
from .transaction import Transaction

_MOST_COMPARED = 20  # new names compared with existing ones in one call
NAME = "The name of an entity"
TYPE = "The type of an entity"
RELATION = "The type of a relation"
OBSERVATION = "An observation"


def check_count(limits: MemoryLimits, *counts: int) -> None:
    """Raise ToolError if a call contains too many items."""
    if sum(counts) > limits.items:
        raise ToolError(
            f"At most {limits.items:,} can be sent in one call; you sent {sum(counts):,}. "
            "Send them in several calls."
        )


def create_entities(change: Transaction, entities: Sequence[NewEntity]) -> CreatedEntities:
    """Add entities that do not exist. Raises ToolError."""
    limits = change.limits
    check_count(limits, len(entities))
    made: list[Entity] = []
    existing: list[str] = []
    for one in entities:
        name = name_of(one.name, NAME, limits.name)
        kind = name_of(one.entity_type, TYPE, limits.name)
        if change.entity(name) is not None:
            existing.append(name)
            continue
        texts = list(
            dict.fromkeys(
                name_of(text, OBSERVATION, limits.observation) for text in one.observations
            )
        )
        _check_room(limits, name, len(texts))
        row = change.add_entity(name, kind)
        for text in texts:
            change.add_observation(row, name, text)
        made.append(Entity(name, kind, texts))
    alike = [
        other
        for one in made[:_MOST_COMPARED]
        if change.indexed
        for other in search.names_alike(change.db, one.name)
    ]
    change.words = (
        f"{counted(len(made), 'entity', 'entities')} created: {listed(one.name for one in made)}"
    )
    return CreatedEntities(made, existing, list(dict.fromkeys(alike)))


def create_relations(change: Transaction, relations: Sequence[Relation]) -> CreatedRelations:
    """Add relations that do not exist. Raises ToolError."""
    check_count(change.limits, len(relations))
    made = [
        one
        for one in map(lambda given: _relation(given, change.limits), relations)
        if change.add_relation(*_of(one))
    ]
    ends = dict.fromkeys(name for one in made for name in (one.source, one.target))
    change.words = f"{counted(len(made), 'relation')} created: {listed(one.line() for one in made)}"
    return CreatedRelations(made, [name for name in ends if change.entity(name) is None])


def add_observations(
    change: Transaction, observations: Sequence[NewObservations]
) -> AddedObservations:
    """Add observations that an entity lacks. Raises ToolError, also for an unknown entity."""
    limits = change.limits
    check_count(limits, *(len(one.contents) for one in observations))
    results: list[AddedToEntity] = []
    for one in observations:
        row = change.known(name_of(one.entity_name, NAME, limits.name))
        texts = [name_of(text, OBSERVATION, limits.observation) for text in one.contents]
        ((there,),) = change.db.execute(
            "SELECT count(*) FROM observations WHERE entity = ?", (row.id,)
        ).fetchall()
        added = [text for text in texts if change.add_observation(row.id, row.name, text)]
        _check_room(limits, row.name, there + len(added))
        results.append(AddedToEntity(row.name, added))
    count = sum(len(one.added_observations) for one in results)
    change.words = (
        f"{counted(count, 'observation')} added to "
        f"{listed(one.entity_name for one in results if one.added_observations)}"
    )
    return AddedObservations(results)


def delete_entities(change: Transaction, names: Sequence[str]) -> ChangeResult:
    """Remove entities, with their observations and the relations from and to them.

    Raises ToolError.
    """
    check_count(change.limits, len(names))
    deleted: list[str] = []
    missing: list[str] = []
    relations = 0
    for name in dict.fromkeys(kept(name, NAME, change.limits.name) for name in names):
        row = change.entity(name)
        for relation in change.relations(name):
            change.remove_relation(relation)
            relations += 1
        if row is None:
            missing.append(name)
            continue
        for observation in change.observations(row.id):
            change.remove_observation(observation, name)
        change.remove_entity(row)
        deleted.append(name)
    words = (
        f"{counted(len(deleted), 'entity', 'entities')} deleted{_colon(deleted)}, with "
        f"{counted(relations, 'relation')}"
    )
    return _done(change, words, missing)


def delete_observations(change: Transaction, deletions: Sequence[Deletion]) -> ChangeResult:
    """Remove existing observations. Raises ToolError."""
    check_count(change.limits, *(len(one.observations) for one in deletions))
    missing: list[str] = []
    names: list[str] = []
    count = 0
    for one in deletions:
        row = change.entity(kept(one.entity_name, NAME, change.limits.name))
        if row is None:
            missing.append(one.entity_name)
            continue
        there = {observation.text: observation for observation in change.observations(row.id)}
        for text in dict.fromkeys(
            kept(text, OBSERVATION, change.limits.observation) for text in one.observations
        ):
            if text in there:
                change.remove_observation(there[text], row.name)
                names.append(row.name)
                count += 1
            else:
                missing.append(f"{row.name}: {text}")
    return _done(
        change, f"{counted(count, 'observation')} deleted{_colon(dict.fromkeys(names))}", missing
    )


def delete_relations(change: Transaction, relations: Sequence[Relation]) -> ChangeResult:
    """Remove existing relations. Raises ToolError."""
    check_count(change.limits, len(relations))
    missing: list[str] = []
    deleted: list[str] = []
    for one in dict.fromkeys(_relation(given, change.limits) for given in relations):
        found = change.relation(*_of(one))
        if found is not None:
            change.remove_relation(found)
            deleted.append(one.line())
        else:
            missing.append(one.line())
    return _done(change, f"{counted(len(deleted), 'relation')} deleted{_colon(deleted)}", missing)


def rename_entity(change: Transaction, name: str, new: str) -> ChangeResult:
    """Rename an entity, also in its relations.

    Raises ToolError if it does not exist, or the new name is taken.
    """
    name = kept(name, NAME, change.limits.name)
    new = name_of(new, NAME, change.limits.name)
    if name == new:
        return _done(change, f"{shown(name)} already has this name", [])
    row = change.entity(name)
    other = change.entity(new)
    if row is None and other is not None:
        raise ToolError(
            f"There is no entity {shown(name)}, but one called {shown(new)}: perhaps it "
            "was already renamed."
        )
    row = row or change.known(name)
    if other is not None:
        raise ToolError(
            f"The entity {shown(new)} already exists; merge_entities merges the two. "
            "Nothing was changed."
        )
    change.alter_entity(row, new, row.kind)
    _lead(change, name, new)
    return _done(change, f"{shown(name)} is now {shown(new)}", [])


def set_entity_type(change: Transaction, name: str, kind: str) -> ChangeResult:
    """Change the type of an entity. Raises ToolError if it does not exist."""
    row = change.known(kept(name, NAME, change.limits.name))
    kind = name_of(kind, TYPE, change.limits.name)
    if row.kind != kind:
        change.alter_entity(row, row.name, kind)
    return _done(change, f"{shown(row.name)} is a {shown(kind)}", [])


def replace_observation(change: Transaction, name: str, old: str, new: str) -> ChangeResult:
    """Replace an observation. Raises ToolError if it does not exist."""
    row = change.known(kept(name, NAME, change.limits.name))
    old = kept(old, OBSERVATION, change.limits.observation)
    new = name_of(new, OBSERVATION, change.limits.observation)
    there = {one.text: one for one in change.observations(row.id)}
    if old not in there:
        if new in there:
            return _done(
                change,
                f"{shown(row.name)} already has this observation, and no longer the old one",
                [],
            )
        raise ToolError(
            f"{shown(row.name)} has no such observation. Send it exactly as open_nodes "
            "shows it. Nothing was changed."
        )
    if old != new:
        before = there[old]
        change.remove_observation(before, row.name)
        if new not in there:
            change.add_observation(row.id, row.name, new, id=before.id, at=change.at)
    return _done(change, f"An observation of {shown(row.name)} was replaced", [])


def merge_entities(change: Transaction, names: Sequence[str], into: str) -> ChangeResult:
    """Merge entities into one, with their observations and relations.

    Raises ToolError if it does not exist.
    """
    check_count(change.limits, len(names))
    target = change.known(kept(into, NAME, change.limits.name))
    missing: list[str] = []
    merged: list[str] = []
    for name in dict.fromkeys(kept(name, NAME, change.limits.name) for name in names):
        row = change.entity(name)
        if name == target.name:
            continue
        if row is None:
            missing.append(name)
            continue
        _merge(change, row, target)
        merged.append(name)
    ((count,),) = change.db.execute(
        "SELECT count(*) FROM observations WHERE entity = ?", (target.id,)
    ).fetchall()
    _check_room(change.limits, target.name, count)
    return _done(
        change,
        f"{counted(len(merged), 'entity', 'entities')} merged into "
        f"{shown(target.name)}{_colon(merged)}",
        missing,
    )


# -- shared helpers --------------------------------------------------------------------------------


def _merge(change: Transaction, row: Row, target: Row) -> None:
    for observation in change.observations(row.id):
        change.remove_observation(observation, row.name)
        change.add_observation(target.id, target.name, observation.text, at=observation.at)
    _lead(change, row.name, target.name)
    change.remove_entity(row)


def _lead(change: Transaction, old: str, new: str) -> None:
    """Move the relations of one name to another; a relation that would become a self-loop is
    dropped.
    """
    for one in change.relations(old):
        change.remove_relation(one)
        source, target = (new if name == old else name for name in (one.source, one.target))
        if source != target or one.source == one.target:
            change.add_relation(source, target, one.kind, id=one.id, at=one.at)


def _done(change: Transaction, words: str, missing: list[str]) -> ChangeResult:
    if change.steps:
        change.words = words
    words += "."
    if not change.steps and not missing:
        words += " There was nothing to change."
    if missing:
        words += f" Not there: {listed(missing)}."
    return ChangeResult(True, words, missing)


def _colon(names: Sequence[str] | dict[str, None]) -> str:
    return f": {listed(names)}" if names else ""


def _relation(given: Relation, limits: MemoryLimits) -> Relation:
    return Relation(
        name_of(given.source, NAME, limits.name),
        name_of(given.target, NAME, limits.name),
        name_of(given.kind, RELATION, limits.name),
    )


def _of(one: Relation) -> tuple[str, str, str]:
    return one.source, one.target, one.kind


def _check_room(limits: MemoryLimits, name: str, count: int) -> None:
    if count > limits.observations:
        raise ToolError(
            f"{shown(name)} would have {count:,} observations, and "
            f"{limits.observations:,} are the limit. Put some of them on entities of "
            "their own. Nothing was changed."
        )
