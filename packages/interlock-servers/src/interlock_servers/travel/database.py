"""The SQLite file of the travel server: its data set and the bookings."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from interlock import ToolError
from interlock.store import (
    SqliteError,
    SqliteFile,
    SqliteSchema,
    StoreError,
    own_path,
    sqlite_reason,
)

from .airports import CityIndex, TravelCity

VARIABLE = "INTERLOCK_TRAVEL_DB"
PATIENCE = 10.0  # seconds to wait for another process's transaction
_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE cities (code TEXT PRIMARY KEY, name TEXT, country TEXT, region TEXT, place INTEGER);
CREATE TABLE airports (code TEXT PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE airlines (code TEXT PRIMARY KEY, name TEXT);
CREATE TABLE timetable (number TEXT PRIMARY KEY, origin TEXT, destination TEXT, departs INTEGER,
  lasts INTEGER, arrives INTEGER, via TEXT, cents INTEGER, days TEXT);
CREATE INDEX routes ON timetable (origin, destination);
CREATE TABLE hotels (id TEXT PRIMARY KEY, city TEXT, name TEXT, area TEXT, stars INTEGER,
  rating REAL, price INTEGER, sleeps INTEGER, has TEXT);
CREATE TABLE activities (city TEXT, category TEXT, name TEXT, about TEXT);
CREATE TABLE preferences (region TEXT PRIMARY KEY, text TEXT);
CREATE TABLE trips (id TEXT PRIMARY KEY, history TEXT, data TEXT);
CREATE TABLE bookings (id TEXT PRIMARY KEY, reference TEXT UNIQUE NOT NULL, year INTEGER NOT NULL,
  number INTEGER NOT NULL, status TEXT NOT NULL, made TEXT NOT NULL, details TEXT NOT NULL);
"""
_DATA = (
    "cities",
    "airports",
    "airlines",
    "timetable",
    "hotels",
    "activities",
    "preferences",
    "trips",
)


def _make_tables(db: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";"):
        db.execute(statement)


SCHEMA = SqliteSchema(
    name="travel database",
    application=0x494C5456,
    migrations=(_make_tables,),
    instead=f"name another file in {VARIABLE}",
)


class TravelDatabase:
    """The file at `path`, created and filled on first use, and safe for several processes.

    Each operation has its own connection, so any thread may run it. Every failure is a ToolError
    that names the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock = threading.Lock()
        self._ready = False
        self._atlas: CityIndex | None = None

    @property
    def atlas(self) -> CityIndex:
        """The cities and airports."""
        if self._atlas is None:
            rows = self.rows(
                """SELECT c.code, c.name, c.country, a.code, a.name
                  FROM cities c JOIN airports a ON a.city = c.code
                  ORDER BY c.place, a.rowid"""
            )
            places: dict[str, TravelCity] = {}
            for code, name, country, airport, called in rows:
                places.setdefault(code, TravelCity(code, name, country, {})).airports[airport] = (
                    called
                )
            self._atlas = CityIndex(list(places.values()))
        return self._atlas

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a read-only query."""
        self.prepare()
        with self._trouble("read"), self._file.transaction(write=False) as db:
            return db.execute(query, values).fetchall()

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """A connection in one write transaction, committed if the block succeeds.

        No other process writes in the meantime.
        """
        self.prepare()
        with self._trouble("written"), self._file.transaction() as db:
            yield db

    def prepare(self) -> None:
        """Create and fill the file if necessary. Raises ToolError."""
        with self._lock:
            if self._ready and self.path.exists():
                return
            with self._trouble("opened"):
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                data = files(__package__).joinpath("data.json").read_bytes()
                self._fill(data, sha256(data).hexdigest())
            self._ready = True

    @property
    def _file(self) -> SqliteFile:
        return SqliteFile(self.path, SCHEMA, patience=PATIENCE)

    def _fill(self, data: bytes, digest: str) -> None:
        with self._file.transaction(write=False) as db:
            if _filled(db) == digest:
                return
        with self._file.transaction() as db:
            if _filled(db) != digest:  # another process may have been faster
                _replace_data(db, data, digest)

    @contextmanager
    def _trouble(self, what: str) -> Iterator[None]:
        try:
            yield
        except (SqliteError, OSError) as bad:
            reason = bad.reason if isinstance(bad, SqliteError) else sqlite_reason(bad)
            raise ToolError(
                f"The travel database {self.path} cannot be {what}: {reason}."
            ) from None


def _filled(db: sqlite3.Connection) -> str | None:
    """The digest of the data set in the file."""
    found = db.execute("SELECT value FROM facts WHERE name = 'data'").fetchone()
    return str(found[0]) if found else None


def _replace_data(db: sqlite3.Connection, data: bytes, digest: str) -> None:
    """Replace an older data set; bookings stay."""
    tables: dict[str, list[list[Any]]] = msgspec.json.decode(data)
    for table in _DATA:
        db.execute(f"DELETE FROM {table}")
        for row in tables[table]:
            plain = [
                msgspec.json.encode(value).decode() if isinstance(value, list | dict) else value
                for value in row
            ]
            db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", plain)
    db.execute("INSERT OR REPLACE INTO facts VALUES ('data', ?)", (digest,))


def named_path() -> Path:
    """The path from the environment, or the user's default.

    Raises ToolError if the user has no data folder.
    """
    try:
        return own_path(VARIABLE, "travel.sqlite")
    except StoreError as bad:
        raise ToolError(str(bad)) from None
