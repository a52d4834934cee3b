"""Queries of the log's file; each runs in the writer's thread."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec
from msgspec import Struct

from . import records, tables
from .erasing import DELETED, DeletionCheck
from .interface import SessionRow, Tampered
from .large_bodies import BodyStore
from .query import LogQuery
from .session_titles import BEGAN, CHANGED, SAID, SessionTitles
from .tables import DATA, READABLE, SOURCE

_SCANNED = 500  # entries scanned at a time without a word index


class EntryPage(Struct, frozen=True):
    """Found entries, and the place where the next page ends; None after the last page."""

    found: list[bytes]
    next: int | None


def place_of(db: sqlite3.Connection, seq: int) -> int:
    """The place of the last entry whose number is at most `seq`; 0 if there is none."""
    rows = db.execute(
        "SELECT place FROM entries WHERE seq <= ? ORDER BY seq DESC LIMIT 1", (seq,)
    ).fetchall()
    return int(rows[0][0]) if rows else 0


def page(
    db: sqlite3.Connection, bodies: BodyStore, session: str | None, after: int, limit: int
) -> list[tuple[int, bytes]]:
    """Entries after a place, oldest first, with their places."""
    where, values = ("AND session = ?", [session]) if session is not None else ("", [])
    query = (
        f"SELECT entries.place, {DATA} FROM {SOURCE} WHERE entries.place > ? {where} AND "
        f"{READABLE} ORDER BY entries.place LIMIT ?"
    )
    rows = db.execute(query, (after, *values, limit)).fetchall()
    return [(place, bodies.whole(db, data)) for place, data in rows]


def find(
    db: sqlite3.Connection,
    bodies: BodyStore,
    wanted: LogQuery,
    before: int | None,
    limit: int,
    worded: bool,
) -> EntryPage:
    """Entries that match a search, newest first, before a place."""
    terms, values = _filed(wanted)
    if before is not None:
        terms.append("entries.place < ?")
        values.append(before)
    if wanted.words and worded:
        source = (
            "words CROSS JOIN entries ON entries.place = words.rowid LEFT JOIN contents ON "
            "contents.place = entries.place"
        )
        terms.insert(0, "words MATCH ?")
        values.insert(0, " AND ".join(f'"{word[: tables.MOST_WORD]}"*' for word in wanted.words))
        order = "words.rowid"
        if before is not None:
            terms.append("words.rowid < ?")
            values.append(before)
    else:
        source = SOURCE
        order = "entries.place"
    most = _SCANNED if wanted.words and not worded else limit
    where = " AND ".join([*terms, READABLE])
    rows = db.execute(
        f"SELECT entries.place, {DATA} FROM {source} WHERE {where} ORDER BY {order} DESC LIMIT ?",
        (*values, most),
    ).fetchall()
    found = [
        data
        for data in (bodies.whole(db, data) for _, data in rows)
        if not wanted.words or worded or wanted.has_words(records.row(data, None).text)
    ]
    return EntryPage(found, rows[-1][0] if len(rows) == most and rows else None)


def _filed(wanted: LogQuery) -> tuple[list[str], list[Any]]:
    terms: list[str] = []
    values: list[Any] = []
    for term, value in (
        ("session = ?", wanted.session),
        ("server = ?", wanted.server),
        ("at >= ?", wanted.since),
        ("at < ?", wanted.until),
    ):
        if value is not None:
            terms.append(f"entries.{term}")
            values.append(value)
    if wanted.kinds:
        terms.append(f"entries.kind IN ({', '.join('?' * len(wanted.kinds))})")
        values.extend(wanted.kinds)
    return terms, values


def sessions(db: sqlite3.Connection) -> list[SessionRow]:
    """All conversations, newest first."""
    titles = SessionTitles()
    of_a_kind = f"SELECT {DATA} FROM {SOURCE} WHERE kind = ? AND {READABLE}"
    for (data,) in db.execute(f"{of_a_kind} ORDER BY entries.place", (BEGAN,)):
        titles.begin(records.show(data))
    first = "SELECT MIN(place) FROM entries WHERE kind = ? GROUP BY session"
    for (data,) in db.execute(f"{of_a_kind} AND entries.place IN ({first})", (SAID, SAID)):
        titles.name(records.show(data))
    for session, turns, spoke in db.execute(
        "SELECT session, COUNT(*), MAX(at) FROM entries WHERE kind = ? GROUP BY session", (SAID,)
    ):
        titles.spoken(session, turns, spoke)
    for (data,) in db.execute(f"{of_a_kind} ORDER BY entries.place", (CHANGED,)):
        titles.see(records.show(data))
    return titles.rows()


def erased(db: sqlite3.Connection) -> int:
    """The number of entries whose content was erased."""
    ((count,),) = db.execute(f"SELECT COUNT(*) FROM {SOURCE} WHERE NOT {READABLE}").fetchall()
    return int(count)


def dropped(db: sqlite3.Connection) -> dict[str, int]:
    """The number of dropped bodies, by reason."""
    return dict(db.execute("SELECT why, COUNT(*) FROM dropped GROUP BY why").fetchall())


class ChainCheck:
    """Verifies the hash chain of the file in batches.

    `fault` describes the first altered entry.
    """

    def __init__(self, bodies: BodyStore) -> None:
        self._bodies = bodies
        self.count = 0
        self.fault: Tampered | None = None
        self._last = tables.FIRST
        self._deletions = DeletionCheck()
        self._covered = False  # whether an entry with its content apart was seen

    def some(self, db: sqlite3.Connection, most: int) -> bool:
        """Verify the next entries; False at the end, or at a fault."""
        query = (
            "SELECT entries.place, seq, at, session, kind, server, entries.data, digest, "
            f"contents.place, salt, contents.data FROM {SOURCE} WHERE entries.place > ? "
            "ORDER BY entries.place LIMIT ?"
        )
        rows = db.execute(query, (self.count, most)).fetchall()
        for place, *filed, data, digest, covered, salt, content in rows:
            words = self._examine(
                db,
                place,
                tuple(filed),
                data,
                digest,
                (salt, content) if covered is not None else None,
            )
            if words:
                self.fault = Tampered(words, place=place, seq=filed[0])
                return False
            self.count = place
            self._last = digest
        return len(rows) == most

    def end(self, db: sqlite3.Connection) -> None:
        """Check that the last entries and the triggers are present."""
        ((last,),) = db.execute(
            "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'entries'"
        ).fetchall()
        if self.fault is None and last > self.count:
            self.fault = Tampered(
                f"Entries are missing at the end: there were {last:,}, and {self.count:,} "
                "are left.",
                place=self.count + 1,
            )
        if self.fault is None and (lost := self._deletions.unexplained()) is not None:
            place, seq = lost
            self.fault = Tampered(
                f"Entry {place:,} (number {seq}) has lost its content, and no entry says that its "
                "conversation was deleted.",
                place=place,
                seq=seq,
            )
        gone = tables.TRIGGERS - {
            name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        }
        if self.fault is None and gone:
            self.fault = Tampered(
                "The file no longer rejects changes, although no entry was changed.",
                place=self.count,
            )

    def _examine(
        self,
        db: sqlite3.Connection,
        place: int,
        filed: tuple[Any, ...],
        data: Any,
        digest: Any,
        content: tuple[Any, Any] | None,
    ) -> str:
        """What is wrong with an entry; "" if nothing. `content`: its salt and its content, if it
        has them apart.
        """
        name = f"Entry {place:,} (number {filed[0]})"
        if place != self.count + 1:
            missing = (
                f"entry {self.count + 1:,} is"
                if place == self.count + 2
                else f"entries {self.count + 1:,} to {place - 1:,} are"
            )
            return f"Before {name[0].lower()}{name[1:]}, {missing} missing."
        session = filed[2]
        if content is not None:
            self._covered = True
        elif session and self._covered:
            return f"{name} was changed."  # no version writes such an entry after another one
        if data == b"" and session and content is None:
            self._deletions.see_erased(session, place, filed[0], self._last + digest)
            return ""
        if not isinstance(data, bytes) or tables.digest(self._last, data) != digest:
            return f"{name} was changed."
        if content is not None:
            try:
                cover = msgspec.json.decode(data, type=tables.EntryCover)
            except msgspec.DecodeError:
                return f"{name} is not an entry."
            if (cover.seq, cover.at, cover.session, cover.kind, cover.server) != filed:
                return f"The search index of {name} was changed."
            salt, data = content
            if data is None:
                self._deletions.see_erased(session, place, filed[0])
                return ""
            if not (isinstance(salt, bytes) and isinstance(data, bytes)):
                return f"{name} was changed."
            if tables.salted_digest(salt, data) != cover.content:
                return f"{name} was changed."
        try:
            row = records.row(data, None)
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
            return f"{name} is not an entry."
        if (row.seq, row.at, row.session, row.kind, row.server) != filed:
            return f"The search index of {name} was changed."
        if content is None and row.kind == DELETED and not self._deletions.explain(data):
            return f"{name} does not fit the entries that it says were erased."
        fault = self._bodies.fault(db, data)
        return f"{name} {fault}." if fault else ""
