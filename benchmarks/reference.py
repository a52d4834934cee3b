"""`python -m benchmarks.reference [SERVER...]`: the reference servers beside those of others, one
call of each kind with the same data."""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from scripts.existing_servers import command, environment

from .child import Child
from .load import Load
from .messages import Params, Request, call
from .roster import HANDSHAKE
from .tables import grid

ROUNDS = 3
SECONDS = 0.5  # of each window
CALLS = 5  # of a window in which each call is different
SIZES = (5_000, 50_000)  # entities of the graphs; each has two observations and one relation
# the number of files in each folder, and the number of folders
FILES = 20
FOLDERS = 200
COMMITS = 2_000
ROWS = 10_000
OURS = {"sequentialthinking": "thinking", "sqlite": "database"}

Asked = Request | Callable[[int], Request]
"""A request that is repeated, or a function that builds the request with a given number."""


@dataclass(frozen=True)
class Pair:
    """The same request to an existing server and to ours, over the data in a folder."""

    server: str
    what: str
    theirs: Asked
    ours: Asked
    folder: Path


@dataclass
class Figures:
    """The cost of one side, one figure per round: milliseconds, megabytes."""

    wait: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    start: list[float] = field(default_factory=list)
    resident: list[float] = field(default_factory=list)


def said(*words: str) -> Callable[[Params], bool]:
    """A check that an answer contains some words, as text or as structured content."""
    return lambda result: all(word in json.dumps(result, ensure_ascii=False) for word in words)


def files(folder: Path) -> Iterator[Pair]:
    """Read, list and find files."""
    note = str(folder / "f100" / "note7.txt")
    middle = str(folder / "f100")
    for what, word, theirs, ours, arguments in (
        (
            "read a file of 200 lines",
            "line 199 of the note",
            "read_text_file",
            "read_file",
            {"path": note},
        ),
        (
            "list a folder of 20 files",
            "note7.txt",
            "list_directory",
            "list_folder",
            {"path": middle},
        ),
        (
            "list it with sizes",
            "note7.txt",
            "list_directory_with_sizes",
            "list_folder",
            {"path": middle},
        ),
        (
            "find a name among 4,000 files",
            "only-one.txt",
            "search_files",
            "find_files",
            {"path": str(folder), "pattern": "**/only-*"},
        ),
    ):
        yield Pair(
            "filesystem",
            what,
            call(theirs, arguments, said(word)),
            call(ours, arguments, said(word)),
            folder,
        )


def repositories(folder: Path) -> Iterator[Pair]:
    """Read the status of a repository and its commits."""
    there = {"repo_path": str(folder)}
    yield Pair(
        "git",
        "status",
        call("git_status", there, said("main")),
        call("git_status", {}, said("main")),
        folder,
    )
    log = call("git_log", {**there, "max_count": 50}, said("Change 1951"))
    yield Pair(
        "git",
        "the last 50 commits",
        log,
        call("git_log", {"limit": 50}, said("Change 1951")),
        folder,
    )
    show = call("git_show", {**there, "revision": "HEAD"}, said("+Change 2000"))
    yield Pair(
        "git",
        "a commit",
        show,
        call("git_show", {"revision": "HEAD"}, said("+Change 2000")),
        folder,
    )


def graphs(folder: Path, size: int) -> Iterator[Pair]:
    """Search, read and extend a graph.

    Our server syncs a change to disk before it answers; theirs has written its file.
    """
    among = f"among {size:,} entities"
    search = call("search_nodes", {"query": f"number{size - 7}x"}, said(f"Person {size - 7}"))
    yield Pair("memory", f"search {among}", search, search, folder)
    look = call("open_nodes", {"names": ["Person 77"]}, said("Person 77"))
    yield Pair("memory", f"open one {among}", look, look, folder)

    def one(side: str) -> Callable[[int], Request]:
        def create(number: int) -> Request:
            name = f"New {side} {number} {os.urandom(6).hex()}"
            return call(
                "create_entities",
                {"entities": [{"name": name, "entityType": "plan", "observations": ["is new"]}]},
                said(name),
            )

        return create

    yield Pair("memory", f"create one {among}", one("there"), one("here"), folder)


def others(folder: Path, site: str) -> Iterator[Pair]:
    """Calls that need little data or none.

    `everything` is left out: theirs sends notifications that the load generator does not support.
    """
    for path, what in (("kept", "a page of 200 KB"), ("fresh", "one that may not be kept")):
        end = said("The last paragraph")
        theirs = call("fetch", {"url": f"{site}/{path}", "max_length": 999_999}, end)
        yield Pair(
            "fetch",
            what,
            theirs,
            call("fetch", {"url": f"{site}/{path}", "length": 200_000}, end),
            folder,
        )
    now = call("get_current_time", {"timezone": "Asia/Kathmandu"}, said("+05:45"))
    yield Pair("time", "the time somewhere", now, now, folder)

    def thought(number: int) -> Request:
        given = {
            "thought": f"Step {number}.",
            "thoughtNumber": number,
            "totalThoughts": 500,
            "nextThoughtNeeded": True,
        }
        return call("sequentialthinking", given, said(f'"thoughtNumber": {number}'))

    yield Pair("sequentialthinking", "a thought", thought, thought, folder)
    sql = "SELECT * FROM people ORDER BY id LIMIT 100"
    rows = call("read_query", {"query": sql}, said("Person 100"))
    yield Pair(
        "sqlite",
        "100 rows of 5 columns",
        rows,
        call("query", {"sql": sql}, said("Person 100")),
        folder,
    )


def write_files(folder: Path) -> None:
    """4,000 files of 200 lines, and one."""
    text = "".join(f"line {number} of the note\n" for number in range(200))
    for number in range(FOLDERS):
        (folder / f"f{number}").mkdir(parents=True)
        for each in range(FILES):
            (folder / f"f{number}" / f"note{each}.txt").write_text(text)
    (folder / "f77" / "only-one.txt").write_text("here\n")


def write_repository(folder: Path) -> None:
    """A history of 2,000 commits."""
    stream = ["blob\nmark :1\ndata 2\na\n"]
    for number in range(1, COMMITS + 1):
        words = f"Change {number}"
        stream.append(
            f"commit refs/heads/main\ncommitter A <a@example.com> {1_700_000_000 + number} "
            f"+0000\ndata {len(words)}\n{words}\n"
        )
        stream.append(f"M 100644 inline note.txt\ndata {len(words)}\n{words}\n")
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", folder], check=True)
    subprocess.run(
        ["git", "-C", folder, "fast-import", "--quiet"], input="".join(stream).encode(), check=True
    )
    subprocess.run(["git", "-C", folder, "reset", "--quiet", "--hard"], check=True)


def write_graph(folder: Path, size: int) -> None:
    """The same graph for both servers: their file, and ours imported from it."""
    folder.mkdir()
    with (folder / "memory.jsonl").open("w", encoding="utf-8") as file:
        for number in range(size):
            facts = [f"lives in town {number % 997}", f"likes tea number{number}x"]
            print(
                json.dumps(
                    {
                        "type": "entity",
                        "name": f"Person {number}",
                        "entityType": "person",
                        "observations": facts,
                    }
                ),
                file=file,
            )
        for number in range(size):
            ends = {"from": f"Person {number}", "to": f"Person {number * 7 % size}"}
            print(json.dumps({"type": "relation", **ends, "relationType": "knows"}), file=file)
    words = ["--graph", str(folder / "graph.db"), "import", str(folder / "memory.jsonl")]
    subprocess.run(
        [sys.executable, "-m", "interlock_servers.memory", *words],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def write_database(folder: Path) -> None:
    """A table of 10,000 rows."""
    folder.mkdir()
    rows = [
        (n, f"Person {n}", f"person.{n}@example.org", n * 1.25, n % 2) for n in range(1, ROWS + 1)
    ]
    connection = sqlite3.connect(folder / "existing.db")
    connection.execute(
        "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, email TEXT, score REAL, "
        "active INTEGER)"
    )
    connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()


class Page(BaseHTTPRequestHandler):
    """A page of 200 KB, cacheable or not, and robots.txt."""

    protocol_version = "HTTP/1.1"
    part = (
        "<p>Paragraph {0} of a long page, with <a href='/{0}'>a link</a>, <b>bold</b> words and "
        "<i>others</i>, to read by all.</p>\n"
    )
    body = (
        "<html><head><title>Long</title></head><body><h1>Long</h1>"
        + "".join(map(part.format, range(1_580)))
    ).encode()
    body += b"<p>The last paragraph</p></body></html>"

    def do_GET(self) -> None:
        """Answer."""
        body = b"User-agent: *\nDisallow: /secret\n" if self.path == "/robots.txt" else self.body
        self.send_response(200)
        self.send_header(
            "Content-Type",
            "text/plain" if self.path == "/robots.txt" else "text/html; charset=utf-8",
        )
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store" if self.path == "/fresh" else "max-age=3600")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@contextmanager
def site() -> Iterator[str]:
    """Serve a site on loopback until the block ends, and yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as served:
        served.daemon_threads = True
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()


def theirs(pair: Pair) -> list[str]:
    """The command of their server. Like ours, it needs permission to contact this machine."""
    return [
        *command(pair.server, pair.folder),
        *(["--allow-private-ips"] if pair.server == "fetch" else []),
    ]


def ours(pair: Pair) -> list[str]:
    """The command of our server over the same data."""
    data = {
        "filesystem": [str(pair.folder)],
        "git": [str(pair.folder)],
        "sqlite": [str(pair.folder / "existing.db")],
    }
    return [
        sys.executable,
        "-m",
        "interlock",
        "serve",
        OURS.get(pair.server, pair.server),
        *data.get(pair.server, ()),
    ]


def settings(folder: Path) -> dict[str, str]:
    """The environment of our server."""
    own = {"INTERLOCK_MEMORY_DB": str(folder / "graph.db"), "INTERLOCK_FETCH_LOOPBACK": "1"}
    return {"PATH": os.environ["PATH"], "HOME": str(folder), **own}


def measured(start: Sequence[str], env: dict[str, str], asked: Asked, figures: Figures) -> None:
    """Start a server, make its first call and then others, one at a time."""
    with Child(list(start), env) as child:
        load = Load(child, HANDSHAKE)
        figures.start.append(load.first(asked if isinstance(asked, Request) else asked(1))["wall"])
        figures.resident.append(child.resident() / 1e6)
        if isinstance(asked, Request):
            load.press(asked, 1, SECONDS / 4)
            found = [load.press(asked, 1, SECONDS)]
        else:
            found = [load.press(asked(number), 1, 0.0, fewest=1) for number in range(2, 2 + CALLS)]
        figures.wait.append(statistics.median(one["p50"] for one in found) / 1000)
        figures.processor.append(statistics.mean(one["cpu"] for one in found) / 1000)


def main(servers: Sequence[str]) -> None:
    """Print the medians of both sides, and their ratio to ours."""
    with tempfile.TemporaryDirectory() as place, site() as address:
        folder = Path(place).resolve()
        write_files(folder / "files")
        write_repository(folder / "repository")
        write_database(folder / "database")
        for size in SIZES if not servers or "memory" in servers else ():
            write_graph(folder / f"graph{size}", size)
        pairs = [*files(folder / "files"), *repositories(folder / "repository")]
        pairs += [pair for size in SIZES for pair in graphs(folder / f"graph{size}", size)]
        pairs = [
            pair
            for pair in [*pairs, *others(folder / "database", address)]
            if not servers or pair.server in servers
        ]
        figures = {
            (number, side): Figures() for number in range(len(pairs)) for side in ("theirs", "ours")
        }
        for _ in range(ROUNDS):
            for number, pair in enumerate(pairs):
                print(f"{pair.server}: {pair.what}", file=sys.stderr, flush=True)
                measured(
                    theirs(pair),
                    environment(pair.server, pair.folder),
                    pair.theirs,
                    figures[number, "theirs"],
                )
                measured(ours(pair), settings(pair.folder), pair.ours, figures[number, "ours"])
    print(table(pairs, figures))


def table(pairs: Sequence[Pair], figures: dict[tuple[int, str], Figures]) -> str:
    """The medians as Markdown: the latency of a call, its processor time, the first answer, memory;
    theirs, ours, and the quotient."""
    body = []
    for number, pair in enumerate(pairs):
        there = figures[number, "theirs"]
        here = figures[number, "ours"]
        cells: list[Any] = [pair.server, pair.what]
        for name in ("wait", "processor", "start", "resident"):
            before = statistics.median(getattr(there, name))
            after = statistics.median(getattr(here, name))
            cells.append(f"{before:.3g} / {after:.3g} = {before / after:.1f}x")
        body.append(cells)
    return grid(
        ["server", "call", "wait, ms", "processor, ms", "first answer, ms", "memory, MB"], body
    )


if __name__ == "__main__":
    main(sys.argv[1:])
