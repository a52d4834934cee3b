"""Imports and exports JSON lines in the format of the official memory server."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct

from interlock import ToolError
from interlock.cursors import encode_cursor
from interlock.untrusted.invisible import visible_line as shown

from ..cursors import read_cursor
from .graph import CallProgress, Graph
from .history import digest
from .limits import MemoryLimits
from .operations import NAME, OBSERVATION, RELATION, TYPE
from .results import BadLine, ImportResult, counted
from .texts import kept, name_of
from .transaction import Transaction

_MOST_BAD = 100  # invalid lines that are listed
_LONGEST = 64 * 1024 * 1024  # bytes of a line
_LOOKS = 256  # lines between two checks for cancellation
_MOST_WHY = 300
_TABLES = ("entities", "observations", "relations")


class _EntityLine(Struct, rename="camel", tag_field="type", tag="entity"):
    name: str
    entity_type: str
    observations: list[str]


class _RelationLine(
    Struct,
    rename={"source": "from", "target": "to", "kind": "relationType"},
    tag_field="type",
    tag="relation",
):
    source: str
    target: str
    kind: str


class _DryRun(Exception):
    """Rolls a dry run back."""


_decode = msgspec.json.Decoder(_EntityLine | _RelationLine).decode
_encode = msgspec.json.Encoder().encode


def import_lines(
    graph: Graph,
    lines: Iterable[bytes],
    client: str,
    progress: CallProgress,
    *,
    dry_run: bool = False,
    whence: str = "",
) -> tuple[ImportResult, Transaction | None]:
    """Import lines into a graph, in one change.

    Existing items stay unchanged, so an import can be repeated. Invalid lines are counted, listed,
    and left out. `whence` is the source for the history. Raises ToolError.
    """
    found = ImportResult(0, 0, 0, 0)
    try:
        with graph.changing(progress, "import_graph", client) as change:
            reader = _Reader(change, found)
            starts = {table: change.next(table) for table in _TABLES}
            change.silent = True
            for number, line in enumerate(lines, 1):
                if number % _LOOKS == 0:
                    progress.report(number, None, f"{number:,} lines are read")
                reader.add(number, line)
            if dry_run:
                raise _DryRun
            if found.entities or found.observations or found.relations:
                ranges = {table: [first, change.next(table) - 1] for table, first in starts.items()}
                digests = {
                    table: digest(change.db, table, *numbers) for table, numbers in ranges.items()
                }
                change.note_import({**ranges, "digests": digests})
                change.words = f"{_sum(found)} imported{f' from {shown(whence)}' if whence else ''}"
    except _DryRun:
        found.dry_run = True
        return found, None
    found.change = change.id
    return found, change


def words_of(found: ImportResult) -> str:
    """The result of an import, for people."""
    words = f"{_sum(found)} {'would be' if found.dry_run else 'were'} added."
    if found.known:
        words += f" {counted(found.known, 'line')} contained nothing new."
    if found.bad_lines:
        words += f" Unreadable lines were left out, {counted(found.bad_lines, 'line')}:"
        words += "".join(f"\nline {bad.line}: {shown(bad.reason)}" for bad in found.bad)
        words += (
            f"\n... and {found.bad_lines - len(found.bad):,} more"
            if found.bad_lines > len(found.bad)
            else ""
        )
    return words


def _sum(found: ImportResult) -> str:
    entities = counted(found.entities, "entity", "entities")
    return (
        f"{entities}, {counted(found.observations, 'observation')} and "
        f"{counted(found.relations, 'relation')}"
    )


class _Reader:
    """Parses lines and adds them to a transaction."""

    def __init__(self, change: Transaction, found: ImportResult) -> None:
        self.change = change
        self.limits = change.limits
        self.found = found

    def add(self, number: int, line: bytes) -> None:
        """Add a line; an invalid one changes nothing."""
        line = line.removeprefix(b"\xef\xbb\xbf").strip()
        if not line:
            return
        try:
            if len(line) >= _LONGEST:
                raise ToolError(f"it is longer than {_LONGEST:,} bytes")
            read = _decode(line)
            new = self._entity(read) if isinstance(read, _EntityLine) else self._relation(read)
            self.found.known += not new
        except (msgspec.DecodeError, UnicodeDecodeError, ToolError) as bad:
            self.found.bad_lines += 1
            if len(self.found.bad) < _MOST_BAD:
                self.found.bad.append(BadLine(number, str(bad)[:_MOST_WHY]))

    def _entity(self, read: _EntityLine) -> bool:
        limits = self.limits
        change = self.change
        name = name_of(read.name, NAME, limits.name)
        kind = name_of(read.entity_type, TYPE, limits.name)
        texts = dict.fromkeys(
            kept(text, OBSERVATION, limits.observation) for text in read.observations
        )
        row = change.entity(name)
        there = change.observations(row.id) if row is not None else []
        new = list(texts.keys() - {one.text for one in there}) if there else texts
        if len(there) + len(new) > limits.observations:
            raise ToolError(
                f"{shown(name)} would have {len(there) + len(new):,} observations, and "
                f"{limits.observations:,} are the limit"
            )
        id_ = row.id if row is not None else change.add_entity(name, kind)
        for text in texts:
            self.found.observations += change.add_observation(id_, name, text)
        self.found.entities += row is None
        return row is None or bool(new)

    def _relation(self, read: _RelationLine) -> bool:
        most = self.limits.name
        values = (
            name_of(read.source, NAME, most),
            name_of(read.target, NAME, most),
            name_of(read.kind, RELATION, most),
        )
        new = self.change.add_relation(*values)
        self.found.relations += new
        return new


# -- files -----------------------------------------------------------------------------------------


def lines_of(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a file, each cut at a maximum length to limit memory."""
    while line := file.readline(_LONGEST):
        yield line
        while len(line) == _LONGEST and not line.endswith(b"\n"):
            line = file.readline(_LONGEST)


def opened(folder: Path, name: str, limits: MemoryLimits) -> IO[bytes]:
    """Open a file in a folder by its plain name: no path, no link, only a regular file.

    Raises ToolError.
    """
    if not name or name in (".", "..") or any(char in name for char in "/\\\0:"):
        raise ToolError(f"{shown(name)} is not a file name. Send the name without a path.")
    flags = os.O_RDONLY | sum(
        getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
    )
    try:
        file = os.fdopen(os.open(folder / name, flags), "rb")
    except OSError as bad:
        raise ToolError(
            f"{shown(name)} cannot be read from the folder for imports: {bad.strerror}."
        ) from None
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        file.close()
        raise ToolError(f"{shown(name)} is not a regular file.")
    if found.st_size > limits.file:
        file.close()
        raise ToolError(
            f"{shown(name)} has {found.st_size:,} bytes, and the limit is {limits.file:,}."
        )
    return file


# -- export ----------------------------------------------------------------------------------------


class ExportPlace(NamedTuple):
    """A position in the export: the last entity and the last relation before it."""

    entities: Annotated[int, Meta(ge=-1)] = 0
    relations: Annotated[int, Meta(ge=0)] = 0


def export_lines(
    db: sqlite3.Connection, entities: int = 0, relations: int = 0
) -> Iterator[tuple[ExportPlace, bytes]]:
    """The lines of a graph, each with the position after it: entities and then relations, in the
    order of their creation.

    The same graph gives the same bytes. They start after these numbers; -1 leaves a kind out.
    """
    if entities >= 0:
        rows = db.execute(
            "SELECT id, name, kind FROM entities WHERE id > ? ORDER BY id", (entities,)
        )
        for id_, name, kind in rows:
            texts = db.execute(
                "SELECT text FROM observations WHERE entity = ? ORDER BY id", (id_,)
            ).fetchall()
            yield (
                ExportPlace(id_),
                _encode(_EntityLine(name, kind, [text for (text,) in texts])) + b"\n",
            )
    rows = db.execute(
        "SELECT id, source, target, kind FROM relations WHERE id > ? ORDER BY id", (relations,)
    )
    for id_, *values in rows:
        yield ExportPlace(-1, id_), _encode(_RelationLine(*values)) + b"\n"


def cursor_of(place: ExportPlace) -> str:
    """The cursor of a position in the export."""
    return encode_cursor(place, "export_graph")


def place_of(cursor: str | None) -> ExportPlace:
    """Decode a cursor of `export_graph`. Raises ToolError for an invalid one."""
    return ExportPlace() if cursor is None else read_cursor(cursor, ExportPlace, "export_graph")
