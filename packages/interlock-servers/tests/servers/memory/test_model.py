"""The graph does what a graph of plain dictionaries does, whatever is done in whatever order; and
undo brings back what was.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from interlock import ToolError
from interlock_servers.memory import Graph, history, operations
from interlock_servers.memory.jsonl import import_lines
from interlock_servers.memory.results import Deletion, NewEntity, NewObservations, Relation
from tests.servers.memory.conftest import QUICK
from tests.servers.memory.graph_helpers import NO_HURRY, check_file, lines_in

NAMES = st.sampled_from(["a", "b", "c", "d", "Ä %_\\'"])
KINDS = st.sampled_from(["k", "l"])
TEXTS = st.lists(st.sampled_from(["x", "y y", "z\nz", "東京"]), max_size=3)
SOME = st.lists(NAMES, min_size=1, max_size=2)


class Model:
    """Entities by name with type and observations, and relations, each in the order in which they
    came.
    """

    def __init__(self) -> None:
        self.entities: dict[str, tuple[str, list[str]]] = {}
        self.relations: list[tuple[str, str, str]] = []

    def lines(self) -> list[dict[str, Any]]:
        """As an export has it, but for the order: what is renamed or comes back keeps its place,
        which a dictionary does not.
        """
        return [
            *(
                {"type": "entity", "name": name, "entityType": kind, "observations": texts}
                for name, (kind, texts) in self.entities.items()
            ),
            *(
                {"type": "relation", "from": one, "to": other, "relationType": kind}
                for one, other, kind in self.relations
            ),
        ]

    def lead(self, old: str, new: str) -> None:
        """Relations from and to one name lead from and to another."""
        made: list[tuple[str, str, str]] = []
        for one, other, kind in self.relations:
            moved = (new if one == old else one, new if other == old else other, kind)
            touched = old in (one, other)
            if touched and (
                (moved[0] == moved[1] and one != other) or moved in self.relations or moved in made
            ):
                continue
            made.append(moved)
        self.relations = made


def sorted_lines(lines: list[dict[str, Any]]) -> list[str]:
    """Lines in an order of their own; observations keep theirs."""
    return sorted(repr(sorted(line.items(), key=lambda item: item[0])) for line in lines)


class Machine(RuleBasedStateMachine):
    """Does the same to a graph and to a model."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.graph = Graph(Path(self.folder.name) / "g.db", QUICK)
        self.model = Model()
        self.before: dict[int, list[dict[str, Any]]] = {}  # what an export had before each change
        self.last: int | None = None
        for name in ("a", "b", "c"):  # so that few steps lead to much
            self.create(name, "k", ["x", "y y"])
        for one, other in (("a", "b"), ("b", "a"), ("b", "c"), ("c", "c"), ("c", "d")):
            self.relate(one, other, "k")

    def do(self, deed: Any, *arguments: Any) -> Any:
        """Do something; the change it was."""
        before = lines_in(self.graph)
        try:
            with self.graph.changing(NO_HURRY, deed.__name__) as change:
                deed(change, *arguments)
        except ToolError:
            assert lines_in(self.graph) == before
            return None
        if change.id is None:
            assert lines_in(self.graph) == before
        else:
            assert lines_in(self.graph) != before
            self.last = change.id
            self.before[change.id] = before
        return change

    @rule(name=NAMES, kind=KINDS, texts=TEXTS)
    def create(self, name: str, kind: str, texts: list[str]) -> None:
        self.do(operations.create_entities, [NewEntity(name, kind, texts)])
        self.model.entities.setdefault(name, (kind, list(dict.fromkeys(texts))))

    @rule(one=NAMES, other=NAMES, kind=KINDS)
    def relate(self, one: str, other: str, kind: str) -> None:
        self.do(operations.create_relations, [Relation(one, other, kind)])
        if (one, other, kind) not in self.model.relations:
            self.model.relations.append((one, other, kind))

    @rule(name=NAMES, texts=TEXTS)
    def add(self, name: str, texts: list[str]) -> None:
        change = self.do(operations.add_observations, [NewObservations(name, texts)])
        assert (change is None) == (name not in self.model.entities)
        if change is not None:
            there = self.model.entities[name][1]
            there += [text for text in dict.fromkeys(texts) if text not in there]

    @rule(names=SOME)
    def delete(self, names: list[str]) -> None:
        self.do(operations.delete_entities, names)
        for name in names:
            self.model.entities.pop(name, None)
            self.model.relations = [one for one in self.model.relations if name not in one[:2]]

    @rule(name=NAMES, texts=TEXTS)
    def delete_some(self, name: str, texts: list[str]) -> None:
        self.do(operations.delete_observations, [Deletion(name, texts)])
        if name in self.model.entities:
            there = self.model.entities[name][1]
            there[:] = [text for text in there if text not in texts]

    @rule(one=NAMES, other=NAMES, kind=KINDS)
    def part(self, one: str, other: str, kind: str) -> None:
        self.do(operations.delete_relations, [Relation(one, other, kind)])
        self.model.relations = [
            relation for relation in self.model.relations if relation != (one, other, kind)
        ]

    @rule(old=NAMES, new=NAMES)
    def rename(self, old: str, new: str) -> None:
        change = self.do(operations.rename_entity, old, new)
        if old == new:
            return
        assert (change is not None) == (
            old in self.model.entities and new not in self.model.entities
        )
        if change is not None:
            self.model.entities[new] = self.model.entities.pop(old)
            self.model.lead(old, new)

    @rule(names=SOME, into=NAMES)
    def merge(self, names: list[str], into: str) -> None:
        change = self.do(operations.merge_entities, names, into)
        assert (change is not None) == (into in self.model.entities)
        for name in dict.fromkeys(names) if change is not None else ():
            if name != into and name in self.model.entities:
                there = self.model.entities[into][1]
                there += [text for text in self.model.entities.pop(name)[1] if text not in there]
                self.model.lead(name, into)

    @rule(name=NAMES, old=st.sampled_from(["x", "y y"]), new=st.sampled_from(["x", "z\nz", "new"]))
    def replace(self, name: str, old: str, new: str) -> None:
        self.do(operations.replace_observation, name, old, new)
        there = self.model.entities.get(name, ("", []))[1]
        if old in there and old != new:
            there[:] = (
                [new if text == old else text for text in there]
                if new not in there
                else [text for text in there if text != old]
            )

    @rule(name=NAMES, kind=KINDS)
    def retype(self, name: str, kind: str) -> None:
        self.do(operations.set_entity_type, name, kind)
        if name in self.model.entities:
            self.model.entities[name] = (kind, self.model.entities[name][1])

    @rule(name=NAMES, kind=KINDS, texts=TEXTS, other=NAMES)
    def take_in(self, name: str, kind: str, texts: list[str], other: str) -> None:
        before = lines_in(self.graph)
        lines = Model()
        lines.entities[name] = (kind, texts)
        lines.relations = [(name, other, kind)]
        found, change = import_lines(
            self.graph, [msgspec.json.encode(line) for line in lines.lines()], "", NO_HURRY
        )
        assert found.bad_lines == 0
        self.model.entities.setdefault(name, (kind, []))
        there = self.model.entities[name][1]
        there += [text for text in dict.fromkeys(texts) if text not in there]
        if (name, other, kind) not in self.model.relations:
            self.model.relations.append((name, other, kind))
        if change is not None and change.id is not None:
            self.last = change.id
            self.before[change.id] = before

    @precondition(lambda self: self.last is not None)
    @rule()
    def undo_the_last(self) -> None:
        """Nothing came later: it is as it was, to the order; and undone once more it is as it had
        been.
        """
        wanted = self.before[self.last or 0]
        now = lines_in(self.graph)
        first, change = history.undo(self.graph, self.last or 0, "", NO_HURRY)
        assert first.success
        assert lines_in(self.graph) == wanted
        again, none = history.undo(self.graph, self.last or 0, "", NO_HURRY)
        assert (again.change, none) == (None, None)
        assert change is not None
        assert change.id is not None
        history.undo(self.graph, change.id, "", NO_HURRY)
        assert lines_in(self.graph) == now

    @precondition(lambda self: self.before)
    @rule(data=st.data())
    def undo_some(self, data: Any) -> None:
        """Of an earlier change: all of it, or nothing with a reason; what it says is that somebody
        has to undo the later ones first.
        """
        id_ = data.draw(st.sampled_from(sorted(self.before)))
        before = lines_in(self.graph)
        try:
            _, change = history.undo(self.graph, id_, "", NO_HURRY)
        except ToolError as bad:
            assert "cannot be undone" in str(bad)
            assert lines_in(self.graph) == before
            return
        if change is None:
            assert lines_in(self.graph) == before
            return
        assert change.id is not None
        check_file(self.graph.path)
        history.undo(self.graph, change.id, "", NO_HURRY)

    @invariant()
    def they_are_the_same(self) -> None:
        if hasattr(self, "graph"):
            assert sorted_lines(lines_in(self.graph)) == sorted_lines(self.model.lines())

    def teardown(self) -> None:
        if hasattr(self, "graph"):
            check_file(self.graph.path)
            self.graph.close()
            self.folder.cleanup()


Machine.TestCase.settings = settings(stateful_step_count=20)
TestGraphAndModel = Machine.TestCase
