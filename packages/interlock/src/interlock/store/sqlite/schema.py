"""The tables of a SQLite store, and the marks that identify its file."""

from __future__ import annotations

import sqlite3
import time

from ..errors import StoreError

_APPLICATION = 0x494C4B53
_VERSION = 2

_TABLES = (
    """CREATE TABLE sessions (id TEXT PRIMARY KEY, until REAL NOT NULL, data BLOB NOT NULL,
           state BLOB NOT NULL DEFAULT x'')""",
    "CREATE INDEX sessions_until ON sessions (until)",
    """CREATE TABLE streams (session TEXT, stream TEXT, first INTEGER NOT NULL,
           next INTEGER NOT NULL, size INTEGER NOT NULL, stirred REAL NOT NULL, turn INTEGER,
           PRIMARY KEY (session, stream)) WITHOUT ROWID""",
    "CREATE INDEX streams_stirred ON streams (stirred)",
    "CREATE INDEX streams_turn ON streams (session, turn)",
    # Not without row ids: an event may be large.
    "CREATE TABLE events (session TEXT, stream TEXT, number INTEGER, data BLOB NOT NULL, PRIMARY "
    "KEY (session, stream, number))",
    "CREATE TABLE changes (number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, note BLOB "
    "NOT NULL)",
    "CREATE TABLE notes (number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, note BLOB "
    "NOT NULL)",
    "CREATE TABLE rates (key TEXT PRIMARY KEY, full REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE workers (id TEXT PRIMARY KEY, until REAL NOT NULL) WITHOUT ROWID",
)


def prepare(db: sqlite3.Connection) -> None:
    """Make the tables where the file is new. Raises StoreError where it is somebody else's."""
    db.execute("BEGIN IMMEDIATE")
    try:
        version = _one(db, "PRAGMA user_version")
        if _one(db, "PRAGMA application_id") == _APPLICATION and version == _VERSION:
            return
        if version or _one(db, "SELECT COUNT(*) FROM sqlite_schema"):
            raise StoreError(
                "it is a database of something else, or of another version of Interlock"
            )
        for table in _TABLES:
            db.execute(table)
        # Notes are counted from the time of day, so that a position in a file that was deleted is
        # not taken for one in this.
        begin = time.time_ns() // 1_000_000
        db.executemany(
            "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)",
            [("changes", begin), ("notes", begin)],
        )
        db.execute(f"PRAGMA application_id = {_APPLICATION}")
        db.execute(f"PRAGMA user_version = {_VERSION}")
    finally:
        db.execute("COMMIT")


def _one(db: sqlite3.Connection, query: str) -> int:
    ((value,),) = db.execute(query).fetchall()
    return int(value)
