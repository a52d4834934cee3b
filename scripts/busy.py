"""Runs tests that touch the clock on a machine that is kept busy, so that tests that depend on its
speed fail.

    python scripts/busy.py                         # what `make test-busy` runs: three times
    python scripts/busy.py --list                  # only list the files
    python scripts/busy.py --loops 6 --times 1 -- packages/interlock-apps/tests/host -k log
    python scripts/busy.py --command -- make check # any command beside the busy loops

Options after `--` go to pytest.

A test file touches the clock if it waits with a limit, sleeps, reads a clock or sets a limit of
time. The search is by names in the source text, so it finds a few files too many. Each busy loop is
a process that takes a core.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = (ROOT / "tests", *sorted(ROOT.glob("packages/*/tests")))
LOOPS = 3  # for the two cores that the tests are designed for
TIMES = 3

# Names of functions, of options and of attributes.
_CLOCK = re.compile(
    r"(asyncio_)?(timeout|timeout_at|wait_for|sleep|monotonic|monotonic_ns|perf_counter|process_time|call_later|call_at)"
    r"|.*_(timeout|seconds|deadline|within)|seconds|deadline|within|patience"
)

# A loop exits when the script that started it has ended, even if the script was killed.
_LOOP = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


def main() -> int:
    """Run the tests, or the command, under load.

    Return its exit status, or that of the first round that failed.
    """
    parser = argparse.ArgumentParser(
        description=" ".join((__doc__ or "").partition("\n\n")[0].split())
    )
    parser.add_argument("--loops", type=int, default=LOOPS, help=f"busy loops (default: {LOOPS})")
    parser.add_argument("--times", type=int, default=TIMES, help=f"rounds (default: {TIMES})")
    parser.add_argument("--list", action="store_true", help="only list the files")
    parser.add_argument("--command", action="store_true", help="what follows -- is a command")
    given = sys.argv[1:]
    at = given.index("--") if "--" in given else len(given)
    asked = parser.parse_args(given[:at])
    rest = given[at + 1 :]
    if asked.list:
        print(*clock_files(), sep="\n")
        return 0
    if asked.command:
        if not rest:
            parser.error("--command needs a command after --")
        with busy(asked.loops):
            return subprocess.run(rest, check=False).returncode
    chosen = any(not option.startswith("-") for option in rest[:1])
    command = [sys.executable, "-m", "pytest", "-q", *([] if chosen else clock_files()), *rest]
    failed = 0
    for number in range(1, asked.times + 1):
        print(f"--- round {number} of {asked.times}, beside {asked.loops} busy loops", flush=True)
        began = time.monotonic()
        with busy(asked.loops):
            status = subprocess.run(command, cwd=ROOT, check=False).returncode
        took = time.monotonic() - began
        print(f"--- round {number}: {'FAILED' if status else 'passed'} in {took:.0f} s", flush=True)
        failed = failed or status
    return failed


@contextlib.contextmanager
def busy(loops: int) -> Iterator[None]:
    """Keep this many processes busy until the block ends."""
    running = [subprocess.Popen([sys.executable, "-c", _LOOP]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
        for process in running:
            process.wait()


def clock_files() -> list[str]:
    """Return the test files that touch the clock."""
    return sorted(
        path.relative_to(ROOT).as_posix()
        for folder in TESTS
        for path in folder.rglob("test_*.py")
        if touches_clock(path.read_text(encoding="utf-8"))
    )


def touches_clock(source: str) -> bool:
    """Return whether a source text contains a name that refers to time."""
    nodes = ast.walk(ast.parse(source))
    return any(_CLOCK.fullmatch(name) for node in nodes for name in _names(node))


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node uses: of a variable, an attribute or a keyword argument."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
            yield name


if __name__ == "__main__":
    sys.exit(main())
