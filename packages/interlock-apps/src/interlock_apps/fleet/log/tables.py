"""The tables of the log's file: append-only rows in a hash chain.

The content of a conversation's entry is in a table of its own. The chain has its salted SHA-256, so
the content can be erased without breaking the chain. Without the salt, which is erased too, the
digest cannot be compared with a guess. Entries of the host itself have their content in the chain.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from interlock.redaction import Redact
from interlock.store import SqliteFile, SqliteSchema

from ..text_index import words_of
from . import records
from .large_bodies import BodyStore
from .records import MOST_TEXT, LogRow

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
# Since version 3: contents of conversations. An erased content is NULL, with its salt. An entry of
# an earlier version has its content in `entries`, where an erased one is empty.
_CONTENTS = (
    "CREATE TABLE contents (place INTEGER PRIMARY KEY, salt BLOB, data BLOB)",
    "CREATE TRIGGER contents_stay BEFORE DELETE ON contents BEGIN SELECT RAISE(ABORT, 'the "
    "log only grows'); END",
    """CREATE TRIGGER contents_are BEFORE UPDATE ON contents WHEN NOT (new.place = old.place
           AND new.salt IS NULL AND new.data IS NULL)
           BEGIN SELECT RAISE(ABORT, 'the log only grows'); END""",
    "DROP TRIGGER entries_are",
    """CREATE TRIGGER entries_are BEFORE UPDATE ON entries WHEN NOT (new.data = x''
           AND old.session != '' AND new.place = old.place AND new.seq = old.seq
           AND new.at = old.at AND new.session = old.session AND new.kind = old.kind
           AND new.server = old.server AND new.digest = old.digest)
           BEGIN SELECT RAISE(ABORT, 'the log only grows'); END""",
)
TRIGGERS = frozenset(
    {
        "entries_stay",
        "entries_are",
        "dropped_stay",
        "dropped_are",
        "contents_stay",
        "contents_are",
    }
)

SOURCE = "entries LEFT JOIN contents ON contents.place = entries.place"
"""The entries with their contents, for a query."""
DATA = "CASE WHEN contents.place IS NULL THEN entries.data ELSE contents.data END"
"""The content of an entry."""
READABLE = "(contents.data IS NOT NULL OR (contents.place IS NULL AND entries.data != x''))"
"""The condition that the content was not erased."""

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


def _make_contents(db: sqlite3.Connection) -> None:
    for statement in _CONTENTS:
        db.execute(statement)


SCHEMA = SqliteSchema(
    name="log",
    application=0x494C4C47,
    migrations=(_make_entries, _make_dropped, _make_contents),
)


class EntryCover(Struct, frozen=True, kw_only=True):
    """What the hash chain has of a conversation's entry: its keys, and a digest of its content.

    `content` is the SHA-256 of the salt and the content, in hex.
    """

    seq: int
    at: float
    session: str
    kind: str
    server: str
    content: str


def cover_of(row: LogRow, content: bytes, salt: bytes) -> bytes:
    """The cover of an entry, as JSON."""
    return msgspec.json.encode(
        EntryCover(
            seq=row.seq,
            at=row.at,
            session=row.session,
            kind=row.kind,
            server=row.server,
            content=salted_digest(salt, content),
        )
    )


def salted_digest(salt: bytes, content: bytes) -> str:
    """The digest of a content, in hex."""
    return hashlib.sha256(salt + content).hexdigest()


def log_file(path: Path) -> SqliteFile:
    """The SQLite file of a log, with the settings of its connections."""
    # INSERT OR REPLACE deletes a row. Delete triggers fire for it only with recursive triggers.
    return SqliteFile(
        path,
        SCHEMA,
        journal="wal",
        # What is erased or indexed anew is overwritten in the file, not only marked as free.
        pragmas=("synchronous = NORMAL", "recursive_triggers = ON", "secure_delete = ON"),
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
        f"SELECT entries.place, {DATA} FROM {SOURCE} WHERE entries.place > ? AND {READABLE} "
        "ORDER BY entries.place LIMIT ?",
        (last, most),
    ).fetchall()
    for place, data in rows:
        file_words(db, place, text_of_entry(bodies.whole(db, data)))
    return len(rows) == most


def text_of_entry(data: bytes) -> str:
    """The searchable text of an entry; "" if it was altered, which `verify` reports."""
    try:
        return records.row(data, None).text
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        return ""


def file_words(db: sqlite3.Connection, place: int, text: str) -> None:
    """Add an entry to the word index."""
    db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (place, _indexed(text)))


def unfile_words(db: sqlite3.Connection, place: int, text: str) -> None:
    """Remove an entry from the word index; `text` must be what was indexed."""
    db.execute(
        "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", (place, _indexed(text))
    )


def _indexed(text: str) -> str:
    return " ".join({word[:MOST_WORD] for word in words_of(text, MOST_TEXT)})


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
        content = bodies.move_out(row.data)
        salt = os.urandom(16)
        data = cover_of(row, content, salt) if row.session else content
        last = digest(last, data)
        values = (row.seq, row.at, row.session, row.kind, row.server, data, last)
        place = db.execute(_INSERT, values).lastrowid or 0
        if row.session:
            db.execute("INSERT INTO contents VALUES (?, ?, ?)", (place, salt, content))
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
