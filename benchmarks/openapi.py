"""`python -m benchmarks.openapi`: a document of 1,000 operations, in Interlock and in FastMCP.

Each round is a fresh process, with the rounds of both makers interleaved.
"""

from __future__ import annotations

import argparse
import json
import runpy
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from .roster import PEERS_BY_NAME, Peer
from .tables import grid

DOCUMENTS = Path(__file__).parents[1] / "packages/interlock/tests/server/openapi/documents.py"
PEERS = (
    Peer("interlock", "Interlock", "openapi_interlock.py"),
    Peer("fastmcp", "FastMCP", "openapi_fastmcp.py", "fastmcp", env=PEERS_BY_NAME["fastmcp"].env),
)
TITLES = ("to load it, ms", "to list its tools once more, ms", "the list, kB")
SECONDS = 300


def main() -> None:
    """Measure, and print the lowest figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--document", default="forge")
    parser.add_argument("--peers", nargs="*", choices=[p.name for p in PEERS])
    options = parser.parse_args()
    peers = [peer for peer in PEERS if not options.peers or peer.name in options.peers]
    samples: dict[str, list[list[float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "document.json"
        document = runpy.run_path(str(DOCUMENTS))["DOCUMENTS"][options.document]()
        path.write_text(json.dumps(document), encoding="utf-8")
        for _ in range(options.rounds):
            for peer in peers:
                samples[peer.name].append(measured(peer, path))
                print(f"{peer.name}: {samples[peer.name][-1]}", file=sys.stderr)
    rows = []
    for place, title in enumerate(TITLES):
        divisor = 1000 if title.endswith("kB") else 1
        lowest = [min(sample[place] for sample in samples[peer.name]) for peer in peers]
        rows.append([title, *(f"{value / divisor:.2f}" for value in lowest)])
    print(grid(["CPU", *(peer.title for peer in peers)], rows))


def measured(peer: Peer, document: Path) -> list[float]:
    """Run a program once, and return its figures."""
    done = subprocess.run(
        peer.command(str(document)),
        env=peer.environ(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if not done.stdout.strip():
        raise SystemExit(f"{peer.title}:\n{done.stderr[-3000:]}")
    return [float(word) for word in done.stdout.split()[-3:]]


if __name__ == "__main__":
    main()
