"""`python -m benchmarks.commands`: how long commands take, in Interlock, FastMCP and the official
Python SDK.

`list` and `call` start the server of a file. Each command is run in turn with those of the others;
figures are medians. CPU is the processor time of the command and of the processes that it started.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .roster import installed
from .tables import grid

SERVER = '''"""A server with one tool."""

from {module} import {name}

server = {name}("adding")


@server.tool
async def add(a: int, b: int) -> int:
    return a + b
'''


class Maker(NamedTuple):
    """A library with commands.

    Attributes:
        title: Its name in the table.
        environment: The environment of its program; None is the current one.
        program: The program.
        server: The module and the name of its class of servers.
        words: The words of each command; `{file}` is the file of the server.
    """

    title: str
    environment: str | None
    program: str
    server: tuple[str, str]
    words: dict[str, tuple[str, ...]]


MAKERS = {
    "interlock": Maker(
        "Interlock",
        None,
        "interlock",
        ("interlock", "Server"),
        {
            "help": ("--help",),
            "version": ("--version",),
            "list": ("list", "{file}"),
            "call": ("call", "{file}", "add", "a=1", "b=2"),
        },
    ),
    "fastmcp": Maker(
        "FastMCP",
        "fastmcp",
        "fastmcp",
        ("fastmcp", "FastMCP"),
        {
            "help": ("--help",),
            "version": ("version",),
            "list": ("list", "{file}"),
            "call": ("call", "{file}", "add", "a=1", "b=2"),
        },
    ),
    "official": Maker(
        "Python SDK",
        "python-2",
        "mcp",
        ("mcp.server", "MCPServer"),
        {"help": ("--help",), "version": ("version",)},
    ),
}
TITLES = {
    "help": "the help page",
    "version": "the version",
    "list": "what the server of a file offers",
    "call": "a call of a tool of a file",
}


def main() -> None:
    """Measure, and print the medians in milliseconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", nargs="*", choices=MAKERS, default=list(MAKERS))
    options = parser.parse_args()
    makers = {name: MAKERS[name] for name in options.peers}
    taken: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name, maker in makers.items():
            files[name] = Path(folder, f"{name}_server.py")
            module, kind = maker.server
            files[name].write_text(SERVER.format(module=module, name=kind), encoding="utf-8")
        for round_number in range(options.rounds + 1):
            for title in TITLES:
                for name, maker in makers.items():
                    if title in maker.words:
                        words = [word.format(file=files[name]) for word in maker.words[title]]
                        sample = measured(maker, words)
                        if round_number:  # the first round compiles files and reads them
                            taken[title, name].append(sample)
    rows = []
    for title, words in TITLES.items():
        for number, figure in enumerate(("wall", "CPU")):
            figures = (
                f"{statistics.median(sample[number] for sample in found):.0f}"
                if (found := taken.get((title, name)))
                else "-"
                for name in makers
            )
            rows.append([words, figure, *figures])
    print(grid(["ms", "figure", *(maker.title for maker in makers.values())], rows))


def measured(maker: Maker, words: Sequence[str]) -> tuple[float, float]:
    """Run a command once; return its wall time and processor time in milliseconds."""
    python = installed(maker.environment) if maker.environment else Path(sys.executable)
    # One of them looks for itself on the path.
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    began = time.perf_counter()
    process = subprocess.Popen(
        [str(python.parent / maker.program), *words],
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    with process.stdout:
        said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{maker.title}, {' '.join(words)}:\n{said.decode()[-3000:]}")
    return wall * 1000, (usage.ru_utime + usage.ru_stime) * 1000


if __name__ == "__main__":
    main()
