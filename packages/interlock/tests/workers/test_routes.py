"""Routes beside the endpoint, on each of several workers."""

from __future__ import annotations

import asyncio
import urllib.request
from pathlib import Path

from tests.workers.clusters import Program


def read(url: str) -> str:
    """A page."""
    with urllib.request.urlopen(url) as page:
        return str(page.read().decode())


async def test_each_worker_has_the_routes(tmp_path: Path) -> None:
    """Whichever of two answers."""
    program = Program(tmp_path, workers=2)
    try:
        url = program.ready().url.removesuffix("/mcp")
        pages = await asyncio.gather(*(asyncio.to_thread(read, f"{url}/pid") for _ in range(20)))
        assert all(page.isdigit() for page in pages)
        assert program.end() == 0
    finally:
        program.close()
