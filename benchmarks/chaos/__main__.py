"""Command line: `python -m benchmarks.chaos` runs the chaos test and prints Markdown.

It exits with 1 when a promise is broken.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .faults import Faults
from .ledger import Ledger, Marks
from .load import Load
from .processes import (
    PROGRAMS,
    Clock,
    Disk,
    Sampler,
    ServerProcess,
    SqliteFile,
    StoreUnderTest,
    Valkey,
)
from .proxy import CuttingProxy
from .report import broken_promises, tables

LACKS = {server: frozenset({"key"}) for server in ("official", "fastmcp", "typescript")}
"""Kinds of load that a server has no feature for."""


def main() -> int:
    """Run the test, print its report, and return the exit status."""
    options = read_options()
    with tempfile.TemporaryDirectory(prefix="interlock-chaos-") as folder:
        found = asyncio.run(run(options, Path(folder)))
    print(found["report"])
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if found["broken"] else 0


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.chaos",
        description="Load a server while its processes, store, clock and connections fail.",
    )
    parser.add_argument("--server", choices=sorted(PROGRAMS), default="interlock")
    parser.add_argument("--store", choices=["sqlite", "redis"], default="sqlite", help="(sqlite)")
    parser.add_argument("--workers", type=int, default=3, help="processes of Interlock (3)")
    parser.add_argument("--duration", type=float, default=1800.0, help="seconds of load (1800)")
    parser.add_argument("--seed", type=int, default=int(f"{datetime.now(UTC):%Y%m%d}"))
    parser.add_argument("--faults", default="all", help="names with commas between them (all)")
    parser.add_argument("--without", default="", help="kinds of load with commas between them")
    parser.add_argument("--pause", type=float, default=8.0, help="seconds between faults (8)")
    parser.add_argument("--hold", type=float, default=5.0, help="seconds that a fault lasts (5)")
    parser.add_argument(
        "--stop-seconds",
        type=float,
        default=45.0,
        help="how long a stopped process stays so, unless the server replaces it (45)",
    )
    parser.add_argument(
        "--aftermath",
        type=float,
        default=3.0,
        help="seconds after a fault in which its effects count as its own (3)",
    )
    parser.add_argument(
        "--deadline", type=float, default=30.0, help="seconds until a request counts as lost (30)"
    )
    parser.add_argument(
        "--clock",
        choices=["libfaketime", "injected"],
        default="injected",
        help="how the clock jumps (injected); libfaketime blocks threads now and then",
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all figures here")
    return parser.parse_args()


async def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Start everything, load the server while it is attacked, and return the findings."""
    ours = options.server == "interlock"
    clock = Clock(folder, options.clock)
    disk = Disk(folder / "disk") if ours else None
    store: StoreUnderTest | None = None
    if disk is not None:
        store = (Valkey if options.store == "redis" else SqliteFile)(disk.folder)
    workers = options.workers if ours else 1
    server = ServerProcess(options.server, folder, workers, store, clock)
    try:
        await server.start()
        return await attack(options, server, clock, disk)
    finally:
        server.close()
        if store is not None:
            store.close()
        if disk is not None:
            disk.remove()


async def attack(
    options: argparse.Namespace, server: ServerProcess, clock: Clock, disk: Disk | None
) -> dict[str, Any]:
    """Load the server while faults are injected."""
    ledger = Ledger()
    proxy = CuttingProxy(server.port)
    await proxy.start()
    rng = random.Random(options.seed)
    faults = Faults(
        server,
        proxy,
        clock,
        disk,
        ledger,
        rng,
        options.hold,
        options.stop_seconds,
        options.aftermath,
    )
    names = sorted(faults.possible) if options.faults == "all" else options.faults.split(",")
    if server.name == "typescript" and clock.kind == "injected" and "clock" in names:
        names.remove("clock")
    urls = [f"http://127.0.0.1:{port}/mcp" for port in (server.port, proxy.port)]
    without = LACKS.get(server.name, frozenset()) | frozenset(options.without.split(","))
    load = Load(urls, ledger, options.deadline, options.seed, without)
    sampler = Sampler(server)
    background = [asyncio.create_task(sampler.run()), asyncio.create_task(server.watch())]
    load.start()
    await faults.run(names, options.pause, options.duration)
    await load.stop()
    sampler.sample()
    for task in background:
        task.cancel()
    await asyncio.gather(*background, return_exceptions=True)
    exit_code = await server.stop()
    await proxy.aclose()
    marks = Marks(server.folder)
    broken = broken_promises(ledger, marks, sampler, faults, exit_code)
    report = "\n\n".join(
        [
            f"# Chaos test of {server.name}",
            circumstances(options, server, disk),
            tables(ledger, marks, sampler, faults),
            "## Broken promises",
            "\n".join(f"- {one}" for one in broken) or "None.",
        ]
    )
    if faults.replaced:
        times = ", ".join(f"{seconds:.1f}" for seconds in faults.replaced)
        report += f"\n\nStopped workers were replaced after {times} s."
    requests = [[*key, many] for key, many in ledger.requests.items()]
    reasons = [[*key, many] for key, many in ledger.reasons.items()]
    histories = {
        pid: [one.role, one.seconds, one.memory, one.descriptors]
        for pid, one in sampler.histories.items()
    }
    return {
        "report": report,
        "broken": broken,
        "requests": requests,
        "reasons": reasons,
        "histories": histories,
        "errors": server.errors()[-100_000:],
    }


def circumstances(options: argparse.Namespace, server: ServerProcess, disk: Disk | None) -> str:
    """The conditions of the run, which a reader needs to repeat it."""
    parts = [
        f"{datetime.now(UTC):%Y-%m-%d}",
        f"seed {options.seed}",
        f"{options.duration:g} s",
        f"Python {platform.python_version()}",
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}",
        f"{server.workers} serving {'process' if server.workers == 1 else 'processes'}",
        f"clock: {server.clock.kind}",
    ]
    if disk is not None:
        parts.append(f"store: {options.store}, disk: {disk.kind}")
    return ", ".join(parts) + "."


if __name__ == "__main__":
    sys.exit(main())
