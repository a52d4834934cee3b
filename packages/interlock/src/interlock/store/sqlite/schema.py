"""The tables of a SQLite store, version by version."""

from __future__ import annotations

import os
import sqlite3
import time

from .file import SqliteSchema

_TABLES = (
    """CREATE TABLE sessions (id TEXT PRIMARY KEY, until REAL NOT NULL,
           data BLOB NOT NULL) WITHOUT ROWID""",
    "CREATE INDEX sessions_until ON sessions (until)",
    """CREATE TABLE streams (session TEXT, stream TEXT, first INTEGER NOT NULL,
           next INTEGER NOT NULL, size INTEGER NOT NULL, stirred REAL NOT NULL, turn INTEGER,
           PRIMARY KEY (session, stream)) WITHOUT ROWID""",
    "CREATE INDEX streams_stirred ON streams (stirred)",
    "CREATE INDEX streams_turn ON streams (session, turn)",
    # With row ids, because an event may be large.
    "CREATE TABLE events (session TEXT, stream TEXT, number INTEGER, data BLOB NOT NULL, PRIMARY "
    "KEY (session, stream, number))",
    "CREATE TABLE changes (number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, note BLOB "
    "NOT NULL)",
    "CREATE TABLE notes (number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, note BLOB "
    "NOT NULL)",
    "CREATE TABLE rates (key TEXT PRIMARY KEY, full REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE workers (id TEXT PRIMARY KEY, until REAL NOT NULL) WITHOUT ROWID",
)

# The author's state of a session. With row ids, because the state may be large.
_STATE = (
    "ALTER TABLE sessions RENAME TO old",
    "DROP INDEX sessions_until",
    """CREATE TABLE sessions (id TEXT PRIMARY KEY, until REAL NOT NULL, data BLOB NOT NULL,
           state BLOB NOT NULL DEFAULT x'')""",
    "INSERT INTO sessions (id, until, data) SELECT id, until, data FROM old",
    "DROP TABLE old",
    "CREATE INDEX sessions_until ON sessions (until)",
)

_RECORDS_SINCE = 3  # the version that has records

# Records with compare-and-swap. Some files of version 2 have these tables already.
_RECORDS = (
    # With row ids, because a body may be large.
    """CREATE TABLE IF NOT EXISTS records (key TEXT PRIMARY KEY, version INTEGER NOT NULL,
           until REAL NOT NULL, account TEXT NOT NULL, data BLOB NOT NULL, body BLOB NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS records_until ON records (until)",
    """CREATE INDEX IF NOT EXISTS records_bodies ON records (account, until)
           WHERE length(body) > 0""",
    """CREATE TABLE IF NOT EXISTS record_accounts (account TEXT PRIMARY KEY,
           records INTEGER NOT NULL, size INTEGER NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS record_store (identity TEXT NOT NULL,
           version INTEGER NOT NULL)""",
)

# The holders of sessions, with the number of their sessions.
_HOLDERS = (
    "ALTER TABLE sessions ADD COLUMN holder TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX sessions_holder ON sessions (holder, until)",
    """CREATE TABLE session_holders (holder TEXT PRIMARY KEY, count INTEGER NOT NULL)
           WITHOUT ROWID""",
    "CREATE INDEX session_holders_count ON session_holders (count)",
    """INSERT INTO session_holders SELECT holder, COUNT(*) FROM sessions GROUP BY holder""",
    """CREATE TRIGGER session_opened AFTER INSERT ON sessions BEGIN
           INSERT INTO session_holders VALUES (new.holder, 1)
               ON CONFLICT (holder) DO UPDATE SET count = count + 1;
       END""",
    """CREATE TRIGGER session_ended AFTER DELETE ON sessions BEGIN
           UPDATE session_holders SET count = count - 1 WHERE holder = old.holder;
           DELETE FROM session_holders WHERE holder = old.holder AND count <= 0;
       END""",
)


def _make_tables(db: sqlite3.Connection) -> None:
    for statement in _TABLES:
        db.execute(statement)
    _number_notes(db)


def _number_notes(db: sqlite3.Connection) -> None:
    """Number notes from the time of day on, so that a position in a deleted file is not mistaken
    for one in this file.
    """
    begin = time.time_ns() // 1_000_000
    names = ("changes", "notes")
    db.executemany("DELETE FROM sqlite_sequence WHERE name = ?", [(name,) for name in names])
    db.executemany(
        "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", [(name, begin) for name in names]
    )


def _add_state(db: sqlite3.Connection) -> None:
    for statement in _STATE:
        db.execute(statement)


def _add_records(db: sqlite3.Connection) -> None:
    for statement in _RECORDS:
        db.execute(statement)
    if not db.execute("SELECT 1 FROM record_store").fetchall():
        db.execute("INSERT INTO record_store VALUES (?, 0)", (os.urandom(8).hex(),))


def _add_holders(db: sqlite3.Connection) -> None:
    for statement in _HOLDERS:
        db.execute(statement)


def _add_written(db: sqlite3.Connection) -> None:
    """Add the time of the wall clock at which a record was written."""
    db.execute("ALTER TABLE records ADD COLUMN written REAL NOT NULL DEFAULT 0")


def mark_restored(db: sqlite3.Connection) -> None:
    """Make a store that was restored from a backup another store than the one that was backed up.

    It has forgotten what came after the backup, so its records must not vouch for states from
    before. Its workers are gone, and its notes too.
    """
    ((version,),) = db.execute("PRAGMA user_version").fetchall()
    db.execute("BEGIN IMMEDIATE")
    for table in ("changes", "notes", "workers"):
        db.execute(f"DELETE FROM {table}")
    _number_notes(db)
    if version >= _RECORDS_SINCE:
        db.execute("UPDATE record_store SET identity = ?", (os.urandom(8).hex(),))
    db.execute("COMMIT")


SCHEMA = SqliteSchema(
    name="store",
    application=0x494C4B53,
    migrations=(_make_tables, _add_state, _add_records, _add_holders, _add_written),
)
