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
# SQLite virtual machine instructions between two checks whether a statement should stop: well under
# a millisecond
OPCODES = 20_000
# Seconds that SQLite itself waits for a lock; retries continue up to the limit and can be stopped
_BUSY = 0.05
# bytes of SQL in a schema; callers' statements are limited by DatabaseLimits.statement
_SQL = 16 * 1024 * 1024
# Bytes of a LIKE pattern: matching takes pattern times text, and cannot be interrupted within a
# value
_LIKE = 1_000

# SQLite's actions that only read.
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
# Pragmas that only read the schema, with an argument; then pragmas that read without an argument
# and would set something with one.
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
# Functions that access files, run code or return pointers. Most belong to the SQLite shell, but a
# custom build may include them.
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
)  # the raw pages of the file as a table, which bypasses everything else
_MODULES = frozenset(
    {"fts3", "fts4", "fts5", "rtree", "rtree_i32", "geopoly"}
)  # modules of virtual tables that may be created


class Authorizer:
    """The authorizer of a connection.

    SQLite calls it for each action of a statement, while it compiles the statement. `mode` says
    what is allowed at the moment; `refused` is the first denied action, in words.
    """

    def __init__(self) -> None:
        self.mode: Mode = "read"
        self.refused: str | None = None
        # whether a read was authorized already for this statement
        self._reads = False

    def enter(self, mode: Mode) -> None:
        """Set the mode for the next statement."""
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
        """SQLite's callback: the action, its two arguments, and the database ("main", "temp")."""
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
        ):  # temporary objects would stay for the next caller of this connection
            return False
        if self.mode == "explain":
            return action in _ROWS
        if action in (sqlite3.SQLITE_CREATE_VTABLE, sqlite3.SQLITE_DROP_VTABLE):
            return self.mode == "write" and (second or "").lower() in _MODULES
        return self.mode == "write" and action in _CHANGES

    def _of_a_virtual_table(self, action: int, table: str | None) -> bool:
        """Whether SQLite asks this when it first opens a virtual table (including json_each and the
        like), although nothing is written.

        After it has asked about the SELECT or the pragma, SQLite parses the table's declaration as
        a CREATE TABLE, and R*Trees prepare their own write statements. An explicit statement of the
        first kind is refused by SQLite, which lets nobody change the schema table directly. An
        explicit INSERT or DELETE, even on a table with such a name, is asked about before its
        reads; and a read-only connection refuses it anyway.
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
    """Open an existing file with all restrictions, for the thread that calls this.

    Raises sqlite3.Error.

    Statements are not cached: one that was authorized for internal use would otherwise be available
    to a caller who sends the same text.
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
    ):  # Python builds without extension loading
        connection.enable_load_extension(False)
    # Python has setconfig from 3.12 on. Defensive mode protects the file against SQL; views and
    # triggers of a hostile file can only call functions known to be harmless.
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
        # Temporary data is never written to disk; too much of it ends the statement
        "temp_store = MEMORY",
        "recursive_triggers = OFF",
        f"foreign_keys = {'ON' if write else 'OFF'}",
        f"query_only = {'OFF' if write else 'ON'}",
    ):
        connection.execute(f"PRAGMA {pragma}")
    if limits.memory:
        connection.execute(
            f"PRAGMA hard_heap_limit = {limits.memory}"
        )  # for the whole process, which serves only this connection
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
    return data.decode("utf-8", "backslashreplace")  # a file may contain invalid UTF-8
