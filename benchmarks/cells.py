"""The measured cells of the benchmark: one row for each cell."""

from __future__ import annotations

from dataclasses import dataclass

from .messages import AADD, ADD, LENGTH, LIST, RECORD, TEXT, Hold, Request, rows
from .roster import HANDSHAKE, STATELESS

BOTH = (STATELESS, HANDSHAKE)
NEWEST = (STATELESS,)
OLDER = (HANDSHAKE,)


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
P99 = Figure("p99", "p99", "us")
WALL_ALL = Figure("wall", "wall of all", "s", 1_000_000.0)
CPU_MS = Figure("cpu", "CPU", "ms", 1000.0)
WALL_MS = Figure("wall", "wall", "ms", 1000.0)


@dataclass(frozen=True)
class Place:
    """The role of one process of a peer (see `Peer` in `roster.py`), the catalogue that it serves,
    and its form of answers over HTTP."""

    role: str
    catalogue: str = ""
    # `usual`: its default; `events`: always event streams; `json`: no event streams if that can be
    # set; `stored`: sessions in a SQLite file; `workers`: the same, with two worker processes;
    # `roomy`: with room for 100,000 sessions
    mode: str = ""

    def __str__(self) -> str:
        return " ".join(word for word in (self.role, self.catalogue, self.mode) if word)


PLAIN, MODELS, MANY, VERY_MANY, WIDE, IN_PLACE = (
    Place("server", catalogue)
    for catalogue in ("plain", "models", "many", "very-many", "rows", "in-place")
)
CLIENT = Place("client")
MEMORY = Place("memory")
WEB_CLIENT = Place("web-client")
WEB, WEB_EVENTS, WEB_JSON = (Place("web", "plain", mode) for mode in ("usual", "events", "json"))
WEB_STORED, WEB_WORKERS = (Place("web", "plain", mode) for mode in ("stored", "workers"))
WEB_MANY = Place("web", "many", "usual")
WEB_WIDE = Place("web", "rows", "usual")
GUARDED = Place("guarded", "plain", "usual")
LOCKED_CLIENT = Place("locked-client")
HELD = Place("held", "plain", "usual")
ROOMY = Place("held", "plain", "roomy")
CHANGING = Place("held", "changing", "usual")


@dataclass(frozen=True)
class Cell:
    """A measurement: of a server under load, of its start, of its memory, or of a client."""

    name: str
    title: str
    place: Place
    figures: tuple[Figure, ...]
    request: Request | Hold | None = None  # None: the start of the process is what is measured
    in_flight: int = 1
    revisions: tuple[str, ...] = NEWEST
    stretch: int = 1  # factor for longer windows, in which the tail latency shows


START = (Figure("wall", "wall", "ms"), Figure("cpu", "CPU", "ms"))
RESIDENT = (Figure("rss", "resident", "MB"),)
EACH = (Figure("each", "resident", "KB"),)
TAILS = (CPU, P50, P99)

CELLS: tuple[Cell, ...] = (
    Cell("aadd", "async def add, 64 in flight", PLAIN, (CPU, WALL), AADD, 64, BOTH),
    Cell("add", "def add, 64 in flight", PLAIN, (CPU, WALL), ADD, 64, BOTH),
    Cell("latency", "async def add, 1 in flight", PLAIN, (P50, CPU), AADD, 1, BOTH),
    Cell("add-1", "def add, 1 in flight", PLAIN, (P50, CPU), ADD, 1),
    Cell("add-in-place-1", "def add in place, 1 in flight", IN_PLACE, (P50, CPU), ADD, 1),
    Cell("record", "20 records of 6 fields, 64 in flight", MODELS, (CPU, WALL), RECORD, 64, BOTH),
    Cell("cold", "start to the first answer", PLAIN, START, None, 1, BOTH),
    Cell("cold-models", "the same with a pydantic tool", MODELS, START, None, 1, BOTH),
    Cell("cold-1000", "start with 1,000 tools", MANY, START),
    Cell("cold-10000", "start with 10,000 tools", VERY_MANY, START),
    Cell("rss", "memory after the first call", PLAIN, RESIDENT, None, 1, BOTH),
    Cell("list", "list of 1000 tools", MANY, (CPU_MS, WALL_MS), LIST, 1),
    Cell(
        "aadd-of-1000", "async def add among 1000 tools, 64 in flight", MANY, (CPU, WALL), AADD, 64
    ),
    Cell("result-1mb", "1 MB text result, 1 in flight", PLAIN, (CPU, WALL), TEXT),
    Cell("argument-1mb", "1 MB text argument, 1 in flight", PLAIN, (CPU, WALL), LENGTH),
    Cell("rows-550", "result of 550 rows (0.1 MB)", WIDE, (CPU_MS, WALL_MS), rows(550)),
    Cell("rows-5500", "result of 5,500 rows (1 MB)", WIDE, (CPU_MS, WALL_MS), rows(5_500)),
    Cell("rows-55000", "result of 55,000 rows (10 MB)", WIDE, (CPU_MS, WALL_MS), rows(55_000)),
    Cell("client-64", "client, 64 in flight", CLIENT, (CPU, WALL), AADD, 64, BOTH),
    Cell("client-1", "client, 1 in flight", CLIENT, (CPU, WALL), AADD, 1, BOTH),
    Cell(
        "memory-1",
        "client and server in one process, 1 in flight",
        MEMORY,
        (CPU, WALL),
        AADD,
        1,
        BOTH,
    ),
    Cell("http-16", "HTTP, async def add, 16 connections", WEB, TAILS, AADD, 16, stretch=3),
    Cell("http-64", "HTTP, async def add, 64 connections", WEB, TAILS, AADD, 64, stretch=3),
    Cell("http-result-1mb", "HTTP, 1 MB text result, 1 connection", WEB, (CPU, WALL), TEXT),
    Cell(
        "http-rows-5500",
        "HTTP, result of 5,500 rows (1 MB)",
        WEB_WIDE,
        (CPU_MS, WALL_MS),
        rows(5_500),
    ),
    Cell("http-argument-1mb", "HTTP, 1 MB text argument, 1 connection", WEB, (CPU, WALL), LENGTH),
    Cell(
        "http-json-16",
        "HTTP, answers always JSON, 16 connections",
        WEB_JSON,
        TAILS,
        AADD,
        16,
        BOTH,
        3,
    ),
    Cell(
        "http-json-64",
        "HTTP, answers always JSON, 64 connections",
        WEB_JSON,
        TAILS,
        AADD,
        64,
        NEWEST,
        3,
    ),
    Cell(
        "http-session-16",
        "HTTP, sessions, as it comes, 16 connections",
        WEB,
        TAILS,
        AADD,
        16,
        OLDER,
        3,
    ),
    Cell(
        "http-events-16",
        "HTTP, sessions, event streams, 16 connections",
        WEB_EVENTS,
        TAILS,
        AADD,
        16,
        OLDER,
        3,
    ),
    Cell(
        "http-stored-16",
        "HTTP, sessions in SQLite, 16 connections",
        WEB_STORED,
        (*TAILS, WALL),
        AADD,
        16,
        OLDER,
        3,
    ),
    Cell(
        "http-workers-16",
        "HTTP, sessions in SQLite, two workers, 16 connections",
        WEB_WORKERS,
        (*TAILS, WALL),
        AADD,
        16,
        OLDER,
        3,
    ),
    Cell("http-list", "HTTP, list of 1000 tools", WEB_MANY, (CPU_MS, WALL_MS), LIST, 1),
    Cell(
        "http-16-of-1000",
        "HTTP, async def add among 1000 tools, 16 connections",
        WEB_MANY,
        (CPU, P50),
        AADD,
        16,
    ),
    Cell("http-client-64", "HTTP client, 64 in flight", WEB_CLIENT, (CPU, WALL), AADD, 64, BOTH),
    Cell("http-client-1", "HTTP client, 1 in flight", WEB_CLIENT, (CPU, WALL), AADD, 1, BOTH),
    Cell(
        "http-guarded-16",
        "HTTP, guarded by JWT, async def add, 16 connections",
        GUARDED,
        TAILS,
        AADD,
        16,
        stretch=3,
    ),
    Cell(
        "http-locked-client-4",
        "HTTP client that has logged in, 4 calls of one second at once",
        LOCKED_CLIENT,
        (WALL_ALL,),
        AADD,
        4,
    ),
    Cell(
        "http-session-kb",
        "memory of an idle session",
        HELD,
        EACH,
        Hold("session", 5000),
        revisions=OLDER,
    ),
    Cell(
        "http-stream-kb",
        "memory of a session with its GET stream",
        HELD,
        EACH,
        Hold("stream", 1000),
        revisions=OLDER,
    ),
    Cell("http-listen-kb", "memory of a `subscriptions/listen`", HELD, EACH, Hold("listen", 1000)),
    Cell(
        "http-told",
        "1,000 listeners are told of a change",
        CHANGING,
        (CPU_MS, WALL_MS),
        Hold("listen", 1000, tells=25),
    ),
    Cell(
        "http-sessions-mb",
        "memory of a server with 100,000 idle sessions",
        ROOMY,
        RESIDENT,
        Hold("bare session", 100_000),
        revisions=OLDER,
    ),
)


@dataclass(frozen=True)
class Derived:
    """A line computed from two medians of the same peer: of two cells, or of two figures of one."""

    title: str
    above: str
    below: str
    key: str = "cpu"
    below_key: str = ""  # where it is another figure

    def keys(self) -> tuple[str, str]:
        """Return which figures are divided: above, below."""
        return self.key, self.below_key or self.key


DERIVED: tuple[Derived, ...] = (
    Derived("CPU of a call among 1000 tools / among 6 tools", "aadd-of-1000", "aadd"),
    Derived("HTTP, CPU of a call among 1000 tools / among 6 tools", "http-16-of-1000", "http-16"),
    Derived("HTTP, CPU of a call guarded by JWT / unguarded", "http-guarded-16", "http-16"),
    Derived("HTTP, 16 connections, p99 / p50", "http-16", "http-16", "p99", "p50"),
    Derived("HTTP, 64 connections, p99 / p50", "http-64", "http-64", "p99", "p50"),
    Derived(
        "HTTP, sessions, event streams, p99 / p50", "http-events-16", "http-events-16", "p99", "p50"
    ),
    Derived("HTTP, CPU of a session call, SQLite / memory", "http-stored-16", "http-session-16"),
    Derived(
        "HTTP, sessions, calls of two workers / of one, in the same time",
        "http-stored-16",
        "http-workers-16",
        "wall",
    ),
    Derived(
        "HTTP, sessions, CPU of a call with one worker / with two",
        "http-stored-16",
        "http-workers-16",
    ),
)


@dataclass(frozen=True)
class Growth:
    """How a cost grows with the size of the work, from two cells of the same peer: the exponent is
    1 where ten times the work costs ten times as much."""

    title: str
    small: str
    large: str
    factor: float
    key: str = "cpu"


GROWTHS: tuple[Growth, ...] = (
    Growth("rows of a result, 550 to 5,500", "rows-550", "rows-5500", 10),
    Growth("rows of a result, 5,500 to 55,000", "rows-5500", "rows-55000", 10),
    Growth("a call, among 6 tools and among 1,000", "aadd", "aadd-of-1000", 1000 / 6),
    Growth("start, 6 tools and 1,000", "cold", "cold-1000", 1000 / 6),
    Growth("start, 1,000 tools and 10,000", "cold-1000", "cold-10000", 10),
)
