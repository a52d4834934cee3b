"""Command line: `python -m benchmarks` measures all peers and prints Markdown."""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

from scripts.peers import ROOT, node

from .cells import CELLS
from .roster import HANDSHAKE, PEERS_BY_NAME, STATELESS, Peer, installed
from .rounds import Plan, Results, measure, warm
from .tables import tables


def main() -> int:
    """Measure the requested cells; return 1 if a peer could not be measured."""
    options = read_options()
    if options.list:
        print("\n".join(f"{cell.name:14} {cell.title}" for cell in CELLS))
        print("\n".join(f"{peer.name:14} {peer.title}" for peer in PEERS_BY_NAME.values()))
        return 0
    peers = chosen(options.peers)
    for peer in peers:
        if peer.environment:
            installed(peer.environment)
    # Some cells keep a thousand connections open, here and in the server.
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    plan = Plan(
        peers,
        [cell for cell in CELLS if named(cell.name, options.only)],
        [STATELESS] if options.quick else options.revision,
        options.rounds or (2 if options.quick else 3),
        options.seconds or (0.15 if options.quick else 0.2),
    )
    began = time.monotonic()
    warm(peers)
    results = measure(plan)
    print(
        f"# Benchmarks\n\n{circumstances(plan, time.monotonic() - began)}\n\n"
        f"{tables(results, peers)}"
    )
    if options.json:
        options.json.write_text(json.dumps(record(results, plan), indent=1) + "\n")
    return 1 if results.faults else 0


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure Interlock beside its peers."
    )
    parser.add_argument("--rounds", type=int, help="interleaved rounds (3; 2 with --quick)")
    parser.add_argument(
        "--seconds", type=float, help="length of one window (0.2; 0.15 with --quick)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="about a minute: two rounds, the newest revision only"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="CELL",
        help="a name, or a pattern as 'http-*'; may be given more than once",
    )
    parser.add_argument("--peers", default="all", help="names with commas between them (all)")
    parser.add_argument(
        "--revision",
        action="append",
        default=[],
        choices=[STATELESS, HANDSHAKE],
        help="measure only this revision",
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every sample here")
    parser.add_argument("--list", action="store_true", help="name the cells and peers")
    options = parser.parse_args()
    if unknown := [
        pattern
        for pattern in options.only
        if not any(named(cell.name, [pattern]) for cell in CELLS)
    ]:
        parser.error(f"no cell is called {', '.join(unknown)}; --list names them")
    return options


def named(name: str, patterns: list[str]) -> bool:
    """Whether a cell was requested; without a request, all cells are measured."""
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def chosen(names: str) -> list[Peer]:
    """Return the peers to measure; skip Interlock, with a message, if it cannot be imported."""
    wanted = list(PEERS_BY_NAME) if names == "all" else names.split(",")
    unknown = [name for name in wanted if name not in PEERS_BY_NAME]
    if unknown:
        raise SystemExit(
            f"no peer is called {', '.join(unknown)}; there are {', '.join(PEERS_BY_NAME)}"
        )
    if "interlock" in wanted and importlib.util.find_spec("interlock") is None:
        print(
            "Interlock is not installed beside this interpreter: only its peers are measured",
            file=sys.stderr,
        )
        wanted.remove("interlock")
    return [PEERS_BY_NAME[name] for name in wanted]


def circumstances(plan: Plan, seconds: float) -> str:
    """Return the conditions of the run, which a reader needs to repeat it."""
    version = "unused"
    if any(peer.program.endswith(".mjs") for peer in plan.peers):
        version = subprocess.run(
            [str(node()), "--version"], capture_output=True, text=True
        ).stdout.strip()
    pins = [
        line.split()[0]
        for environment, package in PINS.items()
        for line in (ROOT / "requirements" / f"peers-{environment}.txt").read_text().splitlines()
        if line.startswith(f"{package}==")
    ]
    uvloop = "with" if importlib.util.find_spec("uvloop") else "without"
    return (
        f"Python {platform.python_version()} ({uvloop} uvloop beside Interlock), Node "
        f"{version}, {', '.join(pins)}, "
        f"{os.cpu_count()} cores, {plan.rounds} interleaved rounds, {seconds:.0f} s. "
        "CPU is the processor time of the measured process for each call; all figures are medians."
    )


PINS = {"python-2": "mcp", "fastmcp": "fastmcp"}


def record(results: Results, plan: Plan) -> dict[str, object]:
    """Return every sample, for machines."""
    rows = [
        {"cell": cell, "revision": revision, "peer": peer, "samples": samples}
        for (cell, revision, peer), samples in results.samples.items()
    ]
    return {
        "python": platform.python_version(),
        "rounds": plan.rounds,
        "seconds": plan.seconds,
        "results": rows,
        "faults": results.faults,
    }


if __name__ == "__main__":
    raise SystemExit(main())
