"""Measures what a sandbox adds to the start of a program: the median time from start to exit of
`/bin/true`, and of a Python without its site packages, under each mechanism and without one.

    python -m benchmarks.sandbox             # 15 rounds, all ways in turn
    python -m benchmarks.sandbox --times 50

The goal is at most 30 ms more. The first start of a process also proves that bubblewrap works,
which is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from statistics import median
from typing import Any, Literal

from interlock.sandbox import Sandbox, mechanism_states

GOAL = 30.0
"""Milliseconds."""

PROGRAMS = {"/bin/true": ["/bin/true"], "python": [sys.executable, "-I", "-S", "-c", ""]}
NETWORKS: dict[str, Any] = {"no network": (), "public hosts": "public"}


def main() -> int:
    """Print one line for each way; return 1 if one of them costs more than the goal."""
    parser = argparse.ArgumentParser(
        description=" ".join((__doc__ or "").partition("\n\n")[0].split())
    )
    parser.add_argument("--times", type=int, default=15, help="rounds (default: 15)")
    times = parser.parse_args().times
    works = [state.name for state in mechanism_states() if not state.problem]
    for state in mechanism_states():
        if state.problem:
            print(f"not measured: {state.name}: {state.problem}")
    ways = [(name, network) for name in works for network in NETWORKS]
    missed = False
    print(f"{'program':12} {'sandbox':28} {'ms':>8} {'more':>8}")
    for program, command in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            took: dict[Any, list[float]] = {None: [], **{way: [] for way in ways}}
            for _ in range(times):
                for way, seen in took.items():
                    seen.append(_start(way, command, folder))
        plain = median(took[None])
        print(f"{program:12} {'none':28} {plain:8.1f}")
        for name, network in ways:
            found = median(took[name, network])
            missed = missed or found - plain > GOAL
            print(f"{program:12} {f'{name}, {network}':28} {found:8.1f} {found - plain:8.1f}")
    return 1 if missed else 0


def _start(way: tuple[Any, str] | None, command: list[str], folder: str) -> float:
    """The milliseconds until a program has ended."""
    began = time.perf_counter()
    if way is None:
        subprocess.run(command, cwd=folder, check=True, env={"PATH": os.defpath})
        return (time.perf_counter() - began) * 1000
    mechanism: Literal["bubblewrap", "landlock"] = way[0]
    confined = Sandbox(mechanism=mechanism, hosts=NETWORKS[way[1]]).confine(
        command, env={"PATH": os.defpath}, cwd=folder, report=print
    )
    process = confined.start(start_new_session=True)
    code = process.wait()
    took = (time.perf_counter() - began) * 1000
    asyncio.run(confined.aclose())
    if code != 0:
        raise SystemExit(f"{command} ended with {code} under {mechanism}")
    return took


if __name__ == "__main__":
    sys.exit(main())
