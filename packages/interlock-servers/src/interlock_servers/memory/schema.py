"""SQL schema of a graph's file, with its full-text index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing

from interlock.store import SqliteSchema

from .texts import folded, sign_of, signs_of, words_of

VARIABLE = "INTERLOCK_MEMORY_DB"
"""The environment variable that names the file if there is no argument."""
_INDEX = "2"  # the format of the index; an index in another format is rebuilt

_MANY = 2_000  # entities
_BETWEEN = " ¶ "  # separates observations: phrases do not match across it, and no word contains it

_TABLES = (
    # Numbers are never reused: a restored row gets its old number back, and a change can tell which
    # rows are newer.
    """CREATE TABLE entities (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
           kind TEXT NOT NULL, at TEXT NOT NULL)""",
    "CREATE INDEX entities_kind ON entities (kind, id)",
    """CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, entity INTEGER NOT NULL,
           text TEXT NOT NULL, at TEXT NOT NULL,
           UNIQUE (entity, text))""",
    "CREATE INDEX observations_entity ON observations (entity, id)",
    # By names and not by numbers: a relation may exist before its target entity.
    """CREATE TABLE relations (id INTEGER PRIMARY KEY AUTOINCREMENT,
           source TEXT NOT NULL, target TEXT NOT NULL, kind TEXT NOT NULL, at TEXT NOT NULL,
           UNIQUE (source, target, kind))""",
    "CREATE INDEX relations_target ON relations (target, id)",
    "CREATE INDEX relations_source ON relations (source, id)",
    """CREATE TABLE changes (id INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL,
           client TEXT NOT NULL, tool TEXT NOT NULL, words TEXT NOT NULL, size INTEGER NOT NULL,
           undoes INTEGER, undone_by INTEGER)""",
    """CREATE TABLE steps (change INTEGER NOT NULL, place INTEGER NOT NULL, kind TEXT NOT NULL,
           name TEXT NOT NULL, other TEXT, data TEXT NOT NULL,
           PRIMARY KEY (change, place)) WITHOUT ROWID""",
    "CREATE INDEX steps_name ON steps (name, change)",
    "CREATE INDEX steps_other ON steps (other, change) WHERE other IS NOT NULL",
    # Entities with an outdated index: they were changed by a process whose SQLite has no full-text
    # search.
    "CREATE TABLE stale (id INTEGER PRIMARY KEY)",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)
_INDEXES = (
    # Words are inserted in normalized form, so the tokenizer only splits them.
    "CREATE VIRTUAL TABLE words USING fts5(name, kind, texts, tokenize = 'ascii', prefix = '1 2')",
    "CREATE VIRTUAL TABLE pieces USING fts5(text, tokenize = 'trigram case_sensitive 1', detail = "
    "none)",
    # Signs that are too short for trigrams and not words, such as the ends of c# and c++, each
    # encoded as a word.
    "CREATE VIRTUAL TABLE signs USING fts5(text, tokenize = 'ascii', detail = none, columnsize = "
    "0)",
)
INDEXES = ("words", "pieces", "signs")


def make_tables(db: sqlite3.Connection) -> None:
    """Create the tables, within a transaction."""
    for statement in _TABLES:
        db.execute(statement)


SCHEMA = SqliteSchema(
    name="memory",
    application=0x494C4D47,
    migrations=(make_tables,),
    instead=f"name another file in {VARIABLE}",
)


def can_index() -> bool:
    """Whether this SQLite has full-text search with trigrams."""
    with closing(sqlite3.connect(":memory:")) as db:
        try:
            for statement in _INDEXES:
                db.execute(statement)
        except sqlite3.OperationalError:
            return False
    return True


def index_waits(db: sqlite3.Connection) -> bool:
    """Whether the index must be updated before a search."""
    made = db.execute("SELECT value FROM facts WHERE name = 'index'").fetchone()
    return (
        made is None
        or made[0] != _INDEX
        or db.execute("SELECT 1 FROM stale LIMIT 1").fetchone() is not None
    )


def catch_up(db: sqlite3.Connection) -> None:
    """Create or update the index, within a transaction."""
    made = db.execute("SELECT value FROM facts WHERE name = 'index'").fetchone()
    if made is None or made[0] != _INDEX:
        for table in INDEXES:
            db.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _INDEXES:
            db.execute(statement)
        db.execute("INSERT OR REPLACE INTO facts VALUES ('index', ?)", (_INDEX,))
        ids = [id_ for (id_,) in db.execute("SELECT id FROM entities ORDER BY id")]
    else:
        ids = [id_ for (id_,) in db.execute("SELECT id FROM stale")]
    db.execute("DELETE FROM stale")
    index(db, ids)


def thinned_out(db: sqlite3.Connection, gone: int) -> bool:
    """Rebuild the index if that is faster than removing so many entities from it; return whether it
    was rebuilt.
    """
    ((left,),) = db.execute("SELECT count(*) FROM entities").fetchall()
    if gone < _MANY or 2 * left > gone:
        return False
    db.execute("DELETE FROM facts WHERE name = 'index'")
    catch_up(db)
    return True


def index(db: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Index these entities in their current form, and remove deleted ones."""
    for id_ in ids:
        for table in INDEXES:
            db.execute(f"DELETE FROM {table} WHERE rowid = ?", (id_,))
        found = db.execute("SELECT name, kind FROM entities WHERE id = ?", (id_,)).fetchone()
        if found is None:
            continue
        texts = db.execute(
            "SELECT text FROM observations WHERE entity = ? ORDER BY id", (id_,)
        ).fetchall()
        name, kind, *several = (folded(text) for text in (*found, *(text for (text,) in texts)))
        columns = (id_, _worded(name), _worded(kind), _BETWEEN.join(map(_worded, several)))
        db.execute("INSERT INTO words (rowid, name, kind, texts) VALUES (?, ?, ?, ?)", columns)
        db.execute(
            "INSERT INTO pieces (rowid, text) VALUES (?, ?)",
            (id_, whole := "\n".join((name, kind, *several))),
        )
        db.execute(
            "INSERT INTO signs (rowid, text) VALUES (?, ?)",
            (id_, " ".join(map(sign_of, sorted(signs_of(whole))))),
        )


def _worded(text: str) -> str:
    return " ".join(words_of(text))


def mark_stale(db: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Mark these entities for a process that can index them."""
    db.executemany("INSERT OR IGNORE INTO stale VALUES (?)", [(id_,) for id_ in ids])


def sweep_index(db: sqlite3.Connection) -> None:
    """Remove the remains of deleted texts from the index."""
    for table in INDEXES:
        db.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
