"""`python -m benchmarks.asking`: a call whose tool asks a question, in Interlock and in the
official Python SDK, under both revisions (elicitation).

Client and server are one process, whose processor time is measured. Each figure is measured in a
fresh process, with the rounds of both makers interleaved. The goal of the quotient is 1.3.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import defaultdict

from .roster import HANDSHAKE, STATELESS, Peer
from .tables import grid

REVISIONS = {
    HANDSHAKE: "a question on the connection, 2025-11-25",
    STATELESS: "a question as a result, 2026-07-28",
}
PEERS = (
    Peer("interlock", "Interlock", "asking_interlock.py"),
    Peer("official", "Python SDK", "asking_official.py", "python-2", env={"CALLS": "100"}),
)
SECONDS = 300


def main() -> None:
    """Measure, and print the lowest figures in microseconds of processor time for a call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", nargs="*", choices=[peer.name for peer in PEERS])
    options = parser.parse_args()
    peers = [peer for peer in PEERS if not options.peers or peer.name in options.peers]
    samples: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(options.rounds):
        for revision in REVISIONS:
            for peer in peers:
                samples[revision, peer.name].append(measured(peer, revision))
    lowest = {key: min(values) for key, values in samples.items()}
    rows = [
        [title, *(f"{lowest[revision, peer.name]:.0f}" for peer in peers)]
        for revision, title in REVISIONS.items()
    ]
    quotients = [lowest[STATELESS, peer.name] / lowest[HANDSHAKE, peer.name] for peer in peers]
    rows.append(["the second / the first", *(f"{quotient:.2f}" for quotient in quotients)])
    print(grid(["CPU of a call, us", *(peer.title for peer in peers)], rows))


def measured(peer: Peer, revision: str) -> float:
    """Run a program once, and return its figure in microseconds."""
    done = subprocess.run(
        peer.command(revision),
        env=peer.environ(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if not done.stdout.strip():
        raise SystemExit(f"{peer.title}, {revision}:\n{done.stderr[-3000:]}")
    value = float(done.stdout.split()[-1])
    print(f"{revision} {peer.name}: {value:.0f}", file=sys.stderr)
    return value


if __name__ == "__main__":
    main()
