"""A shop in a SQLite file, and calls of the tools, for the tests of the database server."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from interlock import Client
from tests.servers.calls import done

SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT UNIQUE,
    country TEXT DEFAULT 'de');
CREATE TABLE orders (
    id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers, status TEXT NOT NULL,
        total REAL, created TEXT,
    year GENERATED ALWAYS AS (substr(created, 1, 4))
);
CREATE INDEX orders_by_day ON orders (created, lower(status)) WHERE total > 0;
CREATE TABLE "odd ""names"" / here" ("a b" TEXT, "select" INTEGER, "?" BLOB,
    PRIMARY KEY ("a b", "select")) WITHOUT ROWID;
CREATE TABLE refers (x TEXT, y INTEGER, FOREIGN KEY (x, y) REFERENCES "odd ""names"" / here");
CREATE VIEW open_orders AS SELECT * FROM orders WHERE status = 'open';
CREATE VIEW broken AS SELECT * FROM gone;
CREATE VIRTUAL TABLE notes USING fts5(body);
CREATE VIRTUAL TABLE places USING rtree(id, west, east);
INSERT INTO customers (name, email) VALUES ('Ada', 'ada@example.com'), ('Ben', 'ben@example.com'),
    ('Cleo', NULL);
INSERT INTO orders (customer_id, status, total, created) VALUES
    (1, 'open', 10.5, '2026-01-05'), (1, 'paid', 20, '2026-01-31'), (2, 'open', 30, '2026-02-01'),
        (3, 'sent', NULL, NULL);
INSERT INTO notes VALUES ('roses are red'), ('beans are green');
INSERT INTO places VALUES (1, 0, 10);
"""


def shop(path: Path, schema: str = SCHEMA) -> Path:
    """Make the file."""
    connection = sqlite3.connect(path)
    connection.executescript(f"BEGIN;{schema};COMMIT")
    connection.close()
    return path


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a folder with what is in it."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


async def rows(client: Client, sql: str, *parameters: Any, **arguments: Any) -> list[list[Any]]:
    """The rows of a query."""
    found: list[list[Any]] = (
        await done(client, "query", sql=sql, parameters=list(parameters), **arguments)
    )["rows"]
    return found
