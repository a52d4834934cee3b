"""`python -m benchmarks.mounts`: what a mount adds to a call, in Interlock and in FastMCP.

Each figure is measured in a fresh process, with the rounds of both makers interleaved. The URL is a
server of Interlock in a process of its own, for both. Only the process of the caller counts.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from .roster import PEERS_BY_NAME, PROGRAMS, Peer
from .tables import grid

TITLES = {
    "direct": "a server in this process",
    "mounted": "the same through a mount",
    "twice": "the same through a mount of a mount",
    "url": "a URL",
    "mounted-url": "the same through a mount",
}
PEERS = (
    Peer("interlock", "Interlock", "mounts_interlock.py"),
    Peer("fastmcp", "FastMCP", "mounts_fastmcp.py", "fastmcp", env=PEERS_BY_NAME["fastmcp"].env),
)
PORT = 18_917
SECONDS = 900  # FastMCP needs 30 ms for each call of a mounted URL


def main() -> None:
    """Measure, and print the lowest figures in microseconds of processor time for a call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--figures", nargs="*", choices=TITLES, default=list(TITLES))
    parser.add_argument("--peers", nargs="*", choices=[p.name for p in PEERS])
    options = parser.parse_args()
    peers = [peer for peer in PEERS if not options.peers or peer.name in options.peers]
    samples: dict[tuple[str, str], list[float]] = defaultdict(list)
    with served() as url:
        for _ in range(options.rounds):
            for figure in options.figures:
                for peer in peers:
                    value = measured(peer, figure, url)
                    samples[figure, peer.name].append(value)
                    print(f"{figure} {peer.name}: {value:.2f}", file=sys.stderr)
    rows = [
        [TITLES[figure], *(f"{min(samples[figure, peer.name]):.1f}" for peer in peers)]
        for figure in options.figures
    ]
    for name, base in (("mounted", "direct"), ("twice", "mounted"), ("mounted-url", "url")):
        if name in options.figures and base in options.figures:
            rows.append([f"added: {name}", *(added(samples, name, base, p.name) for p in peers)])
    print(grid(["CPU of a call, us", *(peer.title for peer in peers)], rows))


def added(samples: dict[tuple[str, str], list[float]], name: str, base: str, peer: str) -> str:
    """Return the median of what a figure adds to another one, round by round."""
    pairs = zip(samples[name, peer], samples[base, peer], strict=True)
    return f"{statistics.median([one - other for one, other in pairs]):.1f}"


@contextmanager
def served() -> Iterator[str]:
    """Serve the server that both makers call over HTTP."""
    command = [sys.executable, str(PROGRAMS / "mounts_interlock.py"), "serve", str(PORT)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + SECONDS
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=1).close()
                break
            except (urllib.error.URLError, OSError):
                if time.monotonic() > until or process.poll() is not None:
                    raise SystemExit("the server does not answer") from None
                time.sleep(0.05)
        yield f"http://127.0.0.1:{PORT}/mcp"
    finally:
        process.terminate()
        process.wait()


def measured(peer: Peer, figure: str, url: str) -> float:
    """Run a program once, and return its figure in microseconds."""
    done = subprocess.run(
        peer.command(figure, url),
        env=peer.environ(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if not done.stdout.strip():
        raise SystemExit(f"{peer.title}, {figure}:\n{done.stderr[-3000:]}")
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    main()
