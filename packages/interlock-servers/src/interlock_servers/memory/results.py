"""Arguments and results of the memory server's tools, as data and as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from interlock.untrusted.invisible import visible_line as shown

# The limits of the server have better error messages; this only excludes absurd lengths.
Text = Annotated[str, Meta(max_length=16 * 1024 * 1024)]


class Entity(Struct, rename="camel", omit_defaults=True):
    """An entity with its observations. `more` counts further observations."""

    name: Text
    entity_type: Text
    observations: list[Text]
    more: int = 0

    def lines(self) -> list[str]:
        """A line for the entity, and one for each observation."""
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
        """The relation in readable form."""
        return f"{shown(self.source)} -[{shown(self.kind)}]-> {shown(self.target)}"


class NewEntity(Struct, rename="camel"):
    """An entity to create: name, type, and observations with one fact each."""

    name: Text
    entity_type: Text
    observations: list[Text] = field(default_factory=list)


class NewObservations(Struct, rename="camel"):
    """Observations to add to an entity."""

    entity_name: Text
    contents: list[Text]


class Deletion(Struct, rename="camel"):
    """Observations to delete from an entity, given as they are."""

    entity_name: Text
    observations: list[Text]


class Subgraph(Struct, omit_defaults=True):
    """Entities and the relations between them.

    `cursor` gets the next page; `note` warns of anything unusual.
    """

    entities: list[Entity]
    relations: list[Relation]
    cursor: str | None = None
    note: str | None = None

    def words(self, nothing: str) -> str:
        """The entities and then the relations, one fact a line."""
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
    """The new relations. `missing` names entities that do not exist yet. `change` can be undone."""

    relations: list[Relation]
    missing: list[str] = field(default_factory=list)
    change: int | None = None


class AddedToEntity(Struct, rename="camel"):
    """The observations that were added to an entity."""

    entity_name: str
    added_observations: list[str]


class AddedObservations(Struct, omit_defaults=True):
    """The observations that were added. `change` can be undone."""

    results: list[AddedToEntity]
    change: int | None = None


class ChangeResult(Struct, omit_defaults=True):
    """A change in words.

    Without `change` nothing had to be done. `missing` names what was not found.
    """

    success: bool
    message: str
    missing: list[str] = field(default_factory=list)
    change: int | None = None


class ShortestPath(Struct, omit_defaults=True):
    """A shortest path between two entities, with the relations along it."""

    found: bool
    entities: list[str]
    relations: list[Relation]
    note: str | None = None


class GraphCounts(Struct, rename="camel"):
    """Size of the graph, with the 50 most frequent types. `bytes` is the size of the file."""

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
    """A change: number, time, client, tool and description.

    `undoes` and `undoneBy` link an undo.
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
        """The change in readable form."""
        by = f" by {shown(self.client)}" if self.client else ""
        undone = f" (undone by {self.undone_by})" if self.undone_by is not None else ""
        return f"{self.id}  {self.at}  {self.tool}{by}: {self.words}{undone}"


class ChangeList(Struct, omit_defaults=True):
    """Changes, newest first. `cursor` gets the next page."""

    changes: list[ChangeView]
    cursor: str | None = None


class StepView(Struct, omit_defaults=True):
    """A step of a change: the state before and after it."""

    kind: str
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None


class ChangeSteps(Struct, omit_defaults=True):
    """A change with its steps. `cursor` gets the next page."""

    change: ChangeView
    steps: list[StepView]
    cursor: str | None = None


class BadLine(Struct):
    """A line that was not imported, counted from 1, and the reason."""

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
    """Number of lines in this page, which are the text of the result.

    `cursor` gets the next page.
    """

    lines: int
    cursor: str | None = None


class PurgeResult(Struct, omit_defaults=True):
    """Number of changes that were purged. `clean` is false if traces remain in the file."""

    changes: int
    clean: bool = True


def counted(number: int, one: str, several: str | None = None) -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def listed(names: Iterable[str], most: int = 5) -> str:
    """Some names, as text."""
    all_ = [shown(name) for name in names]
    return ", ".join(all_[:most]) + (f" and {len(all_) - most:,} more" if len(all_) > most else "")
