"""Arguments and results of the memory server's tools, as data and as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from .texts import shown

# Lengths are those of the limits, whose words are better; here only what nobody means.
Text = Annotated[str, Meta(max_length=16 * 1024 * 1024)]


class Entity(Struct, rename="camel", omit_defaults=True):
    """An entity, with its observations; `more` says how many further ones it has that are not
    here.
    """

    name: Text
    entity_type: Text
    observations: list[Text]
    more: int = 0

    def lines(self) -> list[str]:
        """A line of its own, and one for each observation."""
        rest = [f"- ... and {self.more:,} more: open_nodes with skip"] if self.more else []
        return [
            f"{shown(self.name)} ({shown(self.entity_type)})",
            *(f"- {shown(one)}" for one in self.observations),
            *rest,
        ]


class Relation(
    Struct, rename={"source": "from", "target": "to", "kind": "relationType"}, frozen=True
):
    """A relation between two entities, named by a verb: from ... to."""

    source: Text
    target: Text
    kind: Text

    def line(self) -> str:
        """As people read it."""
        return f"{shown(self.source)} -[{shown(self.kind)}]-> {shown(self.target)}"


class NewEntity(Struct, rename="camel"):
    """An entity to be: what it is called, what it is, and what is known of it, one fact in each
    observation.
    """

    name: Text
    entity_type: Text
    observations: list[Text] = field(default_factory=list)


class NewObservations(Struct, rename="camel"):
    """What is to be added to an entity."""

    entity_name: Text
    contents: list[Text]


class Deletion(Struct, rename="camel"):
    """What is to be deleted from an entity: observations, as they stand."""

    entity_name: Text
    observations: list[Text]


class Subgraph(Struct, omit_defaults=True):
    """Entities, and the relations from and to them.

    `cursor` gets the next page; `note` says what is not as one would think.
    """

    entities: list[Entity]
    relations: list[Relation]
    cursor: str | None = None
    note: str | None = None

    def words(self, nothing: str) -> str:
        """The entities and then the relations, a line for each thing that is known."""
        lines = [line for one in self.entities for line in one.lines()] + [
            one.line() for one in self.relations
        ]
        lines = lines or [nothing]
        if self.cursor is not None:
            lines.append(f"... there are more: call again with cursor {self.cursor}")
        return "\n".join([*lines, *([f"({self.note})"] if self.note else [])])


class CreatedEntities(Struct, omit_defaults=True):
    """The entities that are new; `existing` were there and are as they were, and so are `alike`,
    whose names differ from new ones in nothing but case, accents or spaces.

    `change` can be undone.
    """

    entities: list[Entity]
    existing: list[str] = field(default_factory=list)
    alike: list[str] = field(default_factory=list)
    change: int | None = None


class CreatedRelations(Struct, omit_defaults=True):
    """The relations that are new; `missing` names what they lead to and is no entity yet.

    `change` can be undone.
    """

    relations: list[Relation]
    missing: list[str] = field(default_factory=list)
    change: int | None = None


class AddedToEntity(Struct, rename="camel"):
    """The observations of an entity that are new."""

    entity_name: str
    added_observations: list[str]


class AddedObservations(Struct, omit_defaults=True):
    """What was added to each entity. `change` can be undone."""

    results: list[AddedToEntity]
    change: int | None = None


class ChangeResult(Struct, omit_defaults=True):
    """A change that was made, in words; without `change` there was nothing to do.

    `missing` names what was not there.
    """

    success: bool
    message: str
    missing: list[str] = field(default_factory=list)
    change: int | None = None


class ShortestPath(Struct, omit_defaults=True):
    """A shortest way between two entities, if there is one: those on it in their order, and the
    relations between them.
    """

    found: bool
    entities: list[str]
    relations: list[Relation]
    note: str | None = None


class GraphCounts(Struct, rename="camel"):
    """How much there is in the graph; the most frequent types first, 50 at the most.

    `bytes` is the size of the file.
    """

    entities: int
    observations: int
    relations: int
    entity_types: dict[str, int]
    relation_types: dict[str, int]
    dangling: int
    changes: int
    bytes: int
    path: str
    full_text: bool
    limits: dict[str, Any]


class ChangeView(Struct, rename="camel", omit_defaults=True):
    """A change: its number, when it was made, by which client and tool, and what it was.

    `undoes` is what it undid, `undoneBy` what undid it.
    """

    id: int
    at: str
    client: str
    tool: str
    words: str
    steps: int
    undoes: int | None = None
    undone_by: int | None = None

    def line(self) -> str:
        """As people read it."""
        by = f" by {shown(self.client)}" if self.client else ""
        undone = f" (undone by {self.undone_by})" if self.undone_by is not None else ""
        return f"{self.id}  {self.at}  {self.tool}{by}: {self.words}{undone}"


class ChangeList(Struct, omit_defaults=True):
    """Changes, the latest first. `cursor` gets the next page."""

    changes: list[ChangeView]
    cursor: str | None = None


class StepView(Struct, omit_defaults=True):
    """A part of a change: what was there before it, and what is after it."""

    kind: str
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None


class ChangeSteps(Struct, omit_defaults=True):
    """A change with its parts. `cursor` gets the next page."""

    change: ChangeView
    steps: list[StepView]
    cursor: str | None = None


class BadLine(Struct):
    """A line that was not imported, counted from 1, and why."""

    line: int
    reason: str


class ImportResult(Struct, rename="camel", omit_defaults=True):
    """What an import added; `known` counts the lines that added nothing because all of it was
    there.

    `bad` has the first hundred lines that could not be read, `badLines` counts all. Where `dryRun`,
    nothing was kept.
    """

    entities: int
    observations: int
    relations: int
    known: int
    bad_lines: int = 0
    bad: list[BadLine] = field(default_factory=list)
    dry_run: bool = False
    change: int | None = None


class ExportResult(Struct, omit_defaults=True):
    """How many lines there are in this page, which stand beside this.

    `cursor` gets the next page.
    """

    lines: int
    cursor: str | None = None


class PurgeResult(Struct, omit_defaults=True):
    """How many changes are gone from the history, for good; not `clean` where traces are left."""

    changes: int
    clean: bool = True


def counted(number: int, one: str, several: str | None = None) -> str:
    """A number of things in words."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def listed(names: Iterable[str], most: int = 5) -> str:
    """Some names in words."""
    all_ = [shown(name) for name in names]
    return ", ".join(all_[:most]) + (f" and {len(all_) - most:,} more" if len(all_) > most else "")
