"""The tables of the log's file: append-only rows in a hash chain."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from interlock.redaction import Redact
from interlock.store import SqliteFile, SqliteSchema

from ..text_index import words_of
from . import records
from .large_bodies import BodyStore
from .records import MOST_TEXT

FIRST = b"\0" * 32  # the digest before the first entry

_TABLES = (
    """CREATE TABLE entries (place INTEGER PRIMARY KEY AUTOINCREMENT,
           seq INTEGER NOT NULL UNIQUE, at REAL NOT NULL, session TEXT NOT NULL, kind TEXT NOT NULL,
           server TEXT NOT NULL, data BLOB NOT NULL, digest BLOB NOT NULL)""",
    "CREATE INDEX entries_session ON entries (session)",
    "CREATE INDEX entries_kind ON entries (kind, session)",
    "CREATE INDEX entries_server ON entries (server)",
    "CREATE INDEX entries_at ON entries (at)",
    "CREATE TRIGGER entries_stay BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'the "
    "log only grows'); END",
    "CREATE TRIGGER entries_are BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'the "
    "log only grows'); END",
    # Counts openings for writing: each one starts its numbers at another billion.
    "CREATE TABLE runs (run INTEGER PRIMARY KEY AUTOINCREMENT)",
)
# Since version 2: dropped bodies (see large_bodies.py) by their SHA-256 in hex, when they were
# dropped, and why.
_DROPPED = (
    "CREATE TABLE dropped (digest TEXT PRIMARY KEY, at REAL NOT NULL, why TEXT NOT NULL)",
    "CREATE TRIGGER dropped_stay BEFORE DELETE ON dropped BEGIN SELECT RAISE(ABORT, 'the "
    "log only grows'); END",
    "CREATE TRIGGER dropped_are BEFORE UPDATE ON dropped BEGIN SELECT RAISE(ABORT, 'the "
    "log only grows'); END",
)
TRIGGERS = frozenset({"entries_stay", "entries_are", "dropped_stay", "dropped_are"})

MOST_WORD = 64  # indexed characters of a word

_INSERT = (
    "INSERT INTO entries (seq, at, session, kind, server, data, digest) VALUES (?, ?, ?, ?, ?, "
    "?, ?)"
)


def _make_entries(db: sqlite3.Connection) -> None:
    for statement in _TABLES:
        db.execute(statement)


def _make_dropped(db: sqlite3.Connection) -> None:
    for statement in _DROPPED:
        db.execute(statement)


SCHEMA = SqliteSchema(
    name="log",
    application=0x494C4C47,
    migrations=(_make_entries, _make_dropped),
)


def log_file(path: Path) -> SqliteFile:
    """The SQLite file of a log, with the settings of its connections."""
    # INSERT OR REPLACE deletes a row. Delete triggers fire for it only with recursive triggers.
    return SqliteFile(
        path,
        SCHEMA,
        journal="wal",
        pragmas=("synchronous = NORMAL", "recursive_triggers = ON"),
    )


def make_words(db: sqlite3.Connection) -> bool:
    """Create the word index; False if this SQLite does not support it."""
    try:
        # The words are normalized before they are inserted, so the tokenizer only splits them.
        db.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, content = '', "
            "detail = none, tokenize = 'ascii')"
        )
        db.execute("SELECT max(rowid) FROM words").fetchall()
    except sqlite3.OperationalError:
        return False
    return True


def catch_up(db: sqlite3.Connection, bodies: BodyStore, most: int) -> bool:
    """Index some entries that were added without the index; True if more may follow."""
    ((last,),) = db.execute("SELECT coalesce(max(rowid), 0) FROM words").fetchall()
    rows = db.execute(
        "SELECT place, data FROM entries WHERE place > ? ORDER BY place LIMIT ?", (last, most)
    ).fetchall()
    for place, data in rows:
        file_words(db, place, records.row(bodies.whole(db, data), None).text)
    return len(rows) == most


def file_words(db: sqlite3.Connection, place: int, text: str) -> None:
    """Add an entry to the word index."""
    db.execute(
        "INSERT INTO words (rowid, text) VALUES (?, ?)",
        (place, " ".join({word[:MOST_WORD] for word in words_of(text, MOST_TEXT)})),
    )


def next_run(db: sqlite3.Connection) -> int:
    """Count an opening of the file; return its number, from 0."""
    return (db.execute("INSERT INTO runs DEFAULT VALUES").lastrowid or 1) - 1


def add(
    db: sqlite3.Connection,
    entries: Iterable[bytes],
    redact: Redact | None,
    bodies: BodyStore,
    worded: bool,
) -> int:
    """Append entries; return the new number of entries."""
    last = head(db)
    for data in entries:
        row = records.row(data, redact)
        if db.execute("SELECT 1 FROM entries WHERE seq = ?", (row.seq,)).fetchall():
            continue  # already written by a task that was cancelled
        data = bodies.move_out(row.data)
        last = digest(last, data)
        values = (row.seq, row.at, row.session, row.kind, row.server, data, last)
        place = db.execute(_INSERT, values).lastrowid or 0
        if worded:
            file_words(db, place, row.text)
    return count(db)


def count(db: sqlite3.Connection) -> int:
    """The number of entries."""
    return _one(db, "SELECT coalesce(max(place), 0) FROM entries")


def digest_at(db: sqlite3.Connection, place: int) -> bytes | None:
    """The digest of the first `place` entries; None if there are fewer."""
    if place == 0:
        return FIRST
    rows = db.execute("SELECT digest FROM entries WHERE place = ?", (place,)).fetchall()
    return bytes(rows[0][0]) if rows else None


def head(db: sqlite3.Connection) -> bytes:
    """The digest of all entries."""
    rows = db.execute("SELECT digest FROM entries ORDER BY place DESC LIMIT 1").fetchall()
    return bytes(rows[0][0]) if rows else FIRST


def digest(before: bytes, data: bytes) -> bytes:
    """The digest of an entry and all entries before it."""
    return hashlib.sha256(before + data).digest()


def _one(db: sqlite3.Connection, query: str) -> int:
    ((value,),) = db.execute(query).fetchall()
    return int(value)
