"""Measures what finding the revision costs: the time to a list of tools in the default mode, beside
the time under the right revision.

    python -m benchmarks.opening             # old Python servers and supergateway, five times each
    python -m benchmarks.opening --times 3

The rows come from the compatibility farm, so `make peers` has to have run. Every client is new, and
has no verdict of an earlier one.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

from interlock import Client
from scripts import peers
from tests.interop import farm
from tests.interop.driver import on_the_web
from tests.interop.test_farm import Reach, Stage
from tests.ports import free_port

OLD = ("1.2.0", "1.6.0", "1.8.1")
BEHIND = next(one for one in farm.SERVERS if one.name == farm.SDK and one.version == "1.9.4")


def main() -> int:
    """Print one line for each row: medians of both modes, and the difference."""
    parser = argparse.ArgumentParser(
        description=" ".join((__doc__ or "").partition("\n\n")[0].split())
    )
    parser.add_argument("--times", type=int, default=5, help="rounds of each row (default: 5)")
    asked = parser.parse_args()
    asyncio.run(rows(asked.times))
    return 0


async def rows(times: int) -> None:
    """Measure every row, both modes in turn."""
    print(f"{'server':42} {'default':>9} {'right':>9} {'later':>7} {'most':>7}  seconds")
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(lambda name: peers.INSTALLERS[name](), Path(folder), "")
        for peer in farm.SERVERS:
            if peer.name == farm.SDK and peer.version in OLD:
                for road in peer.start:
                    await row(f"{peer.name} {peer.version} {road}", stage, peer, road, times)
        for bridge in farm.BRIDGES:
            if bridge.name == "supergateway" and bridge.behind == "stdio":
                for road in bridge.revisions:
                    words = f"{bridge.name} {bridge.version} {road} {bridge.remark}"
                    await row(words, stage, bridge, road, times)


async def row(words: str, stage: Stage, peer: farm.Peer, road: str, times: int) -> None:
    """Measure one row. A first round, in which the programs come from the disk, does not count."""
    right = peer.revisions[road] if isinstance(peer, farm.ServerPeer) else BEHIND.revisions["stdio"]
    found: dict[str | None, list[float]] = {None: [], right: []}
    for number in range(times + 1):
        for revision, seconds in found.items():
            if number == 1:
                seconds.clear()
            async with reached(stage, peer, road) as reach:
                began = time.monotonic()
                options = {} if revision is None else {"revision": revision}
                async with Client(reach.target, **options) as client:
                    await client.list_tools()
                    seconds.append(time.monotonic() - began)
                    assert client.revision == right
    default, known = found.values()
    later = [one - other for one, other in zip(default, known, strict=True)]
    figures = f"{median(default):9.2f} {median(known):9.2f} {median(later):7.2f} {max(later):7.2f}"
    print(f"{words:42} {figures}", flush=True)


@asynccontextmanager
async def reached(stage: Stage, peer: farm.Peer, road: str) -> AsyncIterator[Reach]:
    """A server of a row, or an old server behind a bridge of a row."""
    if isinstance(peer, farm.ServerPeer):
        async with stage.served(peer, road) as reach:
            yield reach
        return
    assert isinstance(peer, farm.BridgePeer)
    port = str(free_port())
    old = shlex.join(stage.filled(BEHIND, BEHIND.start["stdio"]))
    command = stage.filled(peer, peer.start, command=old, port=port)
    env = stage.environment(peer, port=port)
    async with on_the_web(command, int(port), env=env):
        yield Reach(url=f"http://127.0.0.1:{port}{farm.PATHS[road]}")


if __name__ == "__main__":
    sys.exit(main())
