"""What is measured: one row for each cell."""

from __future__ import annotations

from dataclasses import dataclass

from .messages import AADD, ADD, LENGTH, LIST, RECORD, TEXT, Request
from .roster import HANDSHAKE, STATELESS

BOTH = (STATELESS, HANDSHAKE)
NEWEST = (STATELESS,)


@dataclass(frozen=True)
class Figure:
    """One line of the table: which number of a cell's samples, what to call it, and its unit."""

    key: str
    words: str
    unit: str
    divisor: float = 1.0


CPU = Figure("cpu", "CPU", "us")
WALL = Figure("wall", "wall", "us")
P50 = Figure("p50", "p50", "us")
CPU_MS = Figure("cpu", "CPU", "ms", 1000.0)
WALL_MS = Figure("wall", "wall", "ms", 1000.0)


@dataclass(frozen=True)
class Cell:
    """A measurement: of a server under load, of its start, or of a client."""

    name: str
    title: str
    place: str  # a catalogue of a server program, or `client`, or `memory`
    figures: tuple[Figure, ...]
    request: Request | None = None  # None: the start of the process is what is measured
    in_flight: int = 1
    revisions: tuple[str, ...] = NEWEST


START = (Figure("wall", "wall", "ms"), Figure("cpu", "CPU", "ms"))
RESIDENT = (Figure("rss", "resident", "MB"),)

CELLS: tuple[Cell, ...] = (
    Cell("aadd", "async def add, 64 in flight", "plain", (CPU, WALL), AADD, 64, BOTH),
    Cell("add", "def add, 64 in flight", "plain", (CPU, WALL), ADD, 64, BOTH),
    Cell("latency", "async def add, 1 in flight", "plain", (P50, CPU), AADD, 1, BOTH),
    Cell("record", "20 records of 6 fields, 64 in flight", "models", (CPU, WALL), RECORD, 64, BOTH),
    Cell("cold", "start to the first answer", "plain", START, None, 1, BOTH),
    Cell("cold-models", "the same with a pydantic tool", "models", START, None, 1, BOTH),
    Cell("rss", "memory after the first call", "plain", RESIDENT, None, 1, BOTH),
    Cell("list", "list of 1000 tools", "many", (CPU_MS, WALL_MS), LIST, 1),
    Cell("aadd-of-1000", "async def add among 1000 tools, 64 in flight", "many", (CPU, WALL), AADD, 64),
    Cell("result-1mb", "1 MB text result, 1 in flight", "plain", (CPU, WALL), TEXT),
    Cell("argument-1mb", "1 MB text argument, 1 in flight", "plain", (CPU, WALL), LENGTH),
    Cell("client-64", "client, 64 in flight", "client", (CPU, WALL), AADD, 64, BOTH),
    Cell("client-1", "client, 1 in flight", "client", (CPU, WALL), AADD, 1, BOTH),
    Cell("memory-1", "client and server in one process, 1 in flight", "memory", (CPU, WALL), AADD, 1, BOTH),
)


@dataclass(frozen=True)
class Derived:
    """A line computed from the medians of two cells of the same peer."""

    title: str
    above: str
    below: str
    key: str = "cpu"


DERIVED: tuple[Derived, ...] = (Derived("a call among 1000 tools / among 6 tools", "aadd-of-1000", "aadd"),)
