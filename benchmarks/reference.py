"""`python -m benchmarks.reference`: the reference servers beside those of others, one call of each kind with the same data."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.existing_servers import command

from .child import Child
from .load import Load
from .messages import Params, Request, call
from .roster import HANDSHAKE
from .tables import grid

ROUNDS = 3
SECONDS = 1.0  # of each window
ENTITIES = 5_000
FILES, FOLDERS = 20, 200  # so many files in each of so many folders
COMMITS = 2_000
GRAPH = "memory.jsonl"


@dataclass(frozen=True)
class Pair:
    """The same thing, asked of a server of others and of ours."""

    server: str
    what: str
    theirs: Request
    ours: Request


@dataclass
class Figures:
    """What one side costs, one figure a round: milliseconds, megabytes."""

    wait: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    start: list[float] = field(default_factory=list)
    resident: list[float] = field(default_factory=list)


def said(words: str) -> Callable[[Params], bool]:
    """A check for an answer that has some words in it, as text or as structured content."""
    return lambda result: words in json.dumps(result, ensure_ascii=False)


def pairs(folder: Path) -> Iterator[Pair]:
    """What is asked. Names and answers are each server's own; the data are the same."""
    note, middle = str(folder / "f100" / "note7.txt"), str(folder / "f100")
    line = "line 199 of the note"
    yield Pair(
        "filesystem",
        "read a file of 200 lines",
        call("read_text_file", {"path": note}, said(line)),
        call("read_file", {"path": note}, said(line)),
    )
    yield Pair(
        "filesystem", "list a folder of 20 files", call("list_directory", {"path": middle}, said("note7.txt")),
        call("list_folder", {"path": middle}, said("note7.txt")),
    )  # fmt: skip
    yield Pair(
        "filesystem", "find one name among 4,000 files",
        call("search_files", {"path": str(folder), "pattern": "**/only-one.txt"}, said("only-one.txt")),
        call("find_files", {"path": str(folder), "pattern": "**/only-one.txt"}, said("only-one.txt")),
    )  # fmt: skip
    repository = str(folder / "repository")
    yield Pair("git", "status", call("git_status", {"repo_path": repository}, said("main")), call("git_status", {}, said("main")))
    yield Pair(
        "git", "the last 50 commits", call("git_log", {"repo_path": repository, "max_count": 50}, said("Change 1951")),
        call("git_log", {"limit": 50}, said("Change 1951")),
    )  # fmt: skip


def data(folder: Path) -> None:
    """Write files, a repository and a graph into a folder."""
    text = "".join(f"line {number} of the note\n" for number in range(200))
    for number in range(FOLDERS):
        (folder / f"f{number}").mkdir()
        for each in range(FILES):
            (folder / f"f{number}" / f"note{each}.txt").write_text(text)
    (folder / "f77" / "only-one.txt").write_text("here\n")
    repository = folder / "repository"
    stream = ["blob\nmark :1\ndata 2\na\n"]
    for number in range(1, COMMITS + 1):
        words = f"Change {number}"
        stream.append(f"commit refs/heads/main\ncommitter A <a@example.com> {1_700_000_000 + number} +0000\ndata {len(words)}\n{words}\n")
        stream.append(f"M 100644 inline note.txt\ndata {len(words)}\n{words}\n")
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", repository], check=True)
    subprocess.run(["git", "-C", repository, "fast-import", "--quiet"], input="".join(stream).encode(), check=True)
    subprocess.run(["git", "-C", repository, "reset", "--quiet", "--hard"], check=True)


def ours(server: str, folder: Path) -> list[str]:
    """What starts our server over the same data."""
    arguments = {"filesystem": [str(folder)], "git": [str(folder / "repository")]}
    return [sys.executable, "-m", "interlock", "serve", server, *arguments.get(server, ())]


def measured(start: Sequence[str], request: Request, figures: Figures, folder: Path) -> None:
    """Start a server, make its first call and then others, one at a time."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "MEMORY_FILE_PATH": str(folder / GRAPH),
        "INTERLOCK_MEMORY_DB": str(folder / "graph.db"),
    }
    with Child(list(start), env) as child:
        load = Load(child, HANDSHAKE)
        figures.start.append(load.first(request)["wall"])
        figures.resident.append(child.resident() / 1e6)
        load.press(request, 1, SECONDS / 4)
        found = load.press(request, 1, SECONDS)
        figures.wait.append(found["p50"] / 1000)
        figures.processor.append(found["cpu"] / 1000)


def main() -> None:
    """Print medians of both sides, and how many times less ours are."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        data(folder)
        asked = list(pairs(folder))
        figures: dict[tuple[int, str], Figures] = {(number, side): Figures() for number in range(len(asked)) for side in ("theirs", "ours")}
        for _ in range(ROUNDS):
            for number, pair in enumerate(asked):
                there = folder / "repository" if pair.server == "git" else folder
                measured(command(pair.server, there), pair.theirs, figures[number, "theirs"], folder)
                measured(ours(pair.server, folder), pair.ours, figures[number, "ours"], folder)
    print(table(asked, figures))


def table(asked: Sequence[Pair], figures: dict[tuple[int, str], Figures]) -> str:
    """The medians as Markdown: the wait for a call, its processor time, the first answer, memory; theirs, ours, and the quotient."""
    body = []
    for number, pair in enumerate(asked):
        theirs, mine = figures[number, "theirs"], figures[number, "ours"]
        cells: list[Any] = [pair.server, pair.what]
        for name in ("wait", "processor", "start", "resident"):
            before, after = statistics.median(getattr(theirs, name)), statistics.median(getattr(mine, name))
            cells.append(f"{before:.3g} / {after:.3g} = {before / after:.1f}x")
        body.append(cells)
    return grid(["server", "call", "wait, ms", "processor, ms", "first answer, ms", "memory, MB"], body)


if __name__ == "__main__":
    main()
