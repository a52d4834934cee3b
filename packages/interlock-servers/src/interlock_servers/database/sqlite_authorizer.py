"""Confines a SQLite connection: open flags, limits, and an authorizer that checks every
statement.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Literal

from interlock.store import connect_sqlite

from .limits import DatabaseLimits

Mode = Literal["own", "read", "explain", "write"]
# Of SQLite's machine between two looks at whether a statement should go on: well under a
# millisecond
OPCODES = 20_000
# Seconds that SQLite itself waits for a lock; we try again until we have waited long enough, and
# can be stopped meanwhile
_BUSY = 0.05
# bytes, of what a schema holds; callers' statements are bounded by Limits.statement
_SQL = 16 * 1024 * 1024
# Bytes of a pattern: matching takes pattern times text, and nothing stops it within one value
_LIKE = 1_000

# Reading, as SQLite calls its parts.
_READS = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_ROWS = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
_CHANGES = _ROWS | {
    sqlite3.SQLITE_CREATE_INDEX,
    sqlite3.SQLITE_CREATE_TABLE,
    sqlite3.SQLITE_CREATE_TRIGGER,
    sqlite3.SQLITE_CREATE_VIEW,
    sqlite3.SQLITE_CREATE_VTABLE,
    sqlite3.SQLITE_DROP_INDEX,
    sqlite3.SQLITE_DROP_TABLE,
    sqlite3.SQLITE_DROP_TRIGGER,
    sqlite3.SQLITE_DROP_VIEW,
    sqlite3.SQLITE_DROP_VTABLE,
    sqlite3.SQLITE_ALTER_TABLE,
    sqlite3.SQLITE_REINDEX,
    sqlite3.SQLITE_ANALYZE,
}
_SCHEMAS = ("sqlite_master", "sqlite_temp_master")
# Those that tell of the schema and set nothing, with an argument; and those that are read without
# one, and would set something with one.
_TELLING = frozenset(
    {
        "table_info",
        "table_xinfo",
        "table_list",
        "index_list",
        "index_info",
        "index_xinfo",
        "foreign_key_list",
        "collation_list",
        "function_list",
        "module_list",
        "pragma_list",
        "compile_options",
    }
)
_READ_ONLY_WITHOUT = frozenset(
    {
        "schema_version",
        "user_version",
        "application_id",
        "data_version",
        "encoding",
        "page_count",
        "page_size",
        "freelist_count",
        "journal_mode",
        "foreign_keys",
        "auto_vacuum",
    }
)
# Functions that read or write elsewhere, run code or hand out pointers. Most are the shell's;
# whoever built SQLite may have built them in.
_FUNCTIONS = frozenset(
    {
        "load_extension",
        "readfile",
        "writefile",
        "lsmode",
        "fsdir",
        "edit",
        "fts3_tokenizer",
        "sqlite_log",
        "sqlite_rename_column",
        "sqlite_rename_table",
        "shell_add_schema",
        "shell_module_schema",
        "shell_putsnl",
        "zipfile",
        "zipfile_cds",
        "sqlar_compress",
    }
)
_RAW = frozenset(
    {"sqlite_dbpage"}
)  # the bytes of the file as a table, behind the back of everything else
_MODULES = frozenset(
    {"fts3", "fts4", "fts5", "rtree", "rtree_i32", "geopoly"}
)  # of virtual tables that may be made


class Authorizer:
    """The authorizer of a connection.

    SQLite asks it about each thing that a statement would do, when it reads the statement.

    `mode` says what is allowed at the moment; `refused` is the first thing that was not, in words.
    """

    def __init__(self) -> None:
        self.mode: Mode = "read"
        self.refused: str | None = None
        # whether the statement was found to read something, before anything else
        self._reads = False

    def enter(self, mode: Mode) -> None:
        """From now on a statement of this mode is read."""
        self.mode = mode
        self.refused = None
        self._reads = False

    def __call__(
        self,
        action: int,
        first: str | None,
        second: str | None,
        database: str | None,
        _within: str | None,
    ) -> int:
        """SQLite's question: a kind of action, two words about it, and the database ("main",
        "temp") that it is about.
        """
        if self._allows(action, first, second, database):
            self._reads = self._reads or action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_PRAGMA)
            return sqlite3.SQLITE_OK
        if self.refused is None:
            schema = first in _SCHEMAS and action in _ROWS
            self.refused = (
                "a change of the schema"
                if schema
                else " ".join(filter(None, [_ACTIONS.get(action, "this"), first, second]))
            )
        return sqlite3.SQLITE_DENY

    def _allows(
        self, action: int, first: str | None, second: str | None, database: str | None
    ) -> bool:
        if action == sqlite3.SQLITE_FUNCTION:
            return (second or "").lower() not in _FUNCTIONS
        if action in _READS or self._of_a_virtual_table(action, first):
            return True
        if action in _ROWS and (first or "").lower() in _RAW:
            return False
        if action == sqlite3.SQLITE_PRAGMA:
            name = (first or "").lower()
            return name in _TELLING or (name in _READ_ONLY_WITHOUT and second is None)
        if self.mode == "own":
            return action == sqlite3.SQLITE_TRANSACTION
        if (
            database == "temp"
        ):  # what is temporary would stay for the next caller of this connection
            return False
        if self.mode == "explain":
            return action in _ROWS
        if action in (sqlite3.SQLITE_CREATE_VTABLE, sqlite3.SQLITE_DROP_VTABLE):
            return self.mode == "write" and (second or "").lower() in _MODULES
        return self.mode == "write" and action in _CHANGES

    def _of_a_virtual_table(self, action: int, table: str | None) -> bool:
        """Whether this is what SQLite asks when it first looks at a virtual table (also json_each
        and the like), though nothing is written.

        It reads the table's declaration as a CREATE TABLE, and R*Trees get their statements for
        writing ready, after it has asked about the SELECT or the pragma. Who asks for the first
        outright is refused by the core, which lets nobody change the schema's own table. An INSERT
        or DELETE, be it of a table of somebody's that is called so, is asked about before all that
        it reads; and a connection that is read-only refuses it as well.
        """
        if action == sqlite3.SQLITE_UPDATE:
            return table in _SCHEMAS
        writes = action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_DELETE)
        return writes and self._reads and (table or "").endswith(("_node", "_rowid", "_parent"))


_WORDS = (
    "ATTACH",
    "DETACH",
    "PRAGMA",
    "TRANSACTION",
    "SAVEPOINT",
    "FUNCTION",
    "INSERT",
    "UPDATE",
    "DELETE",
    "ALTER_TABLE",
    "REINDEX",
    "ANALYZE",
    *(
        f"{do}_{what}"
        for do in ("CREATE", "DROP")
        for what in ("TABLE", "INDEX", "TRIGGER", "VIEW", "VTABLE")
    ),
    *(
        f"{do}_TEMP_{what}"
        for do in ("CREATE", "DROP")
        for what in ("TABLE", "INDEX", "TRIGGER", "VIEW")
    ),
)
_ACTIONS: dict[int, str] = {
    getattr(sqlite3, f"SQLITE_{word}"): word.replace("_", " ") for word in _WORDS
}


def opened(
    path: Path, authorizer: Authorizer, limits: DatabaseLimits, *, write: bool
) -> sqlite3.Connection:
    """A connection to a file that is there, with all its fences; to be used by the thread that
    opened it.

    Raises sqlite3.Error.

    No statement is kept for another time: one that was allowed to us once would else be there for a
    caller who sends the same text.
    """
    connection = connect_sqlite(path, write=write, patience=_BUSY, cached_statements=0)
    try:
        connection.text_factory = _text
        _configure(connection, limits, write=write)
        connection.set_authorizer(authorizer)
    except BaseException:
        connection.close()
        raise
    return connection


def _configure(connection: sqlite3.Connection, limits: DatabaseLimits, *, write: bool) -> None:
    with contextlib.suppress(
        AttributeError, sqlite3.NotSupportedError
    ):  # Pythons that can load none at all
        connection.enable_load_extension(False)
    # Python has setconfig from 3.12 on. What is defensive cannot be broken through SQL; views and
    # triggers of a hostile file find no function that is not known to be harmless.
    setconfig = getattr(connection, "setconfig", None)
    if setconfig is not None:
        for name in (
            "DEFENSIVE",
            "TRUSTED_SCHEMA",
            "ENABLE_LOAD_EXTENSION",
            "ENABLE_FTS3_TOKENIZER",
        ):
            setconfig(getattr(sqlite3, f"SQLITE_DBCONFIG_{name}"), name == "DEFENSIVE")
    for pragma in (
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "mmap_size = 0",
        # What is read is written nowhere, and what does not fit ends the statement and not the disk
        "temp_store = MEMORY",
        "recursive_triggers = OFF",
        f"foreign_keys = {'ON' if write else 'OFF'}",
        f"query_only = {'OFF' if write else 'ON'}",
    ):
        connection.execute(f"PRAGMA {pragma}")
    if limits.memory:
        connection.execute(
            f"PRAGMA hard_heap_limit = {limits.memory}"
        )  # of the whole process, which is there for this connection
    for limit, most in (
        (sqlite3.SQLITE_LIMIT_LENGTH, limits.value),
        (sqlite3.SQLITE_LIMIT_SQL_LENGTH, _SQL),
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
        (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _LIKE),
        (sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 32_766),
        (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 100),
        (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
    ):
        connection.setlimit(limit, most)


def _text(data: bytes) -> str:
    return data.decode(
        "utf-8", "backslashreplace"
    )  # nothing keeps a file from holding what is not UTF-8
