"""OpenAPI in Interlock, for `python -m benchmarks.openapi`: `DOCUMENT`. Prints the processor time
to load it and to list its tools once more, in milliseconds, and the bytes of the list.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from interlock import Caller, Exchange, OpenApi, RawResult, Server
from interlock.types import ListToolsRequestParams

LISTS = 20


async def main(data: bytes) -> None:
    """Measure, and print the figures."""
    began = time.process_time()
    server = Server("api")
    server.page_size = 10_000
    server.mount(OpenApi(data, base="http://127.0.0.1:9", search=False))
    await server.enter()
    loaded = time.process_time() - began
    exchange = Exchange("tools/list", ListToolsRequestParams(), Caller("2026-07-28"))
    result = await server.handle(exchange)
    assert isinstance(result, RawResult)
    began = time.process_time()
    for _ in range(LISTS):
        await server.handle(exchange)
    listed = (time.process_time() - began) / LISTS
    await server.leave()
    print(loaded * 1e3, listed * 1e3, len(result.body))


asyncio.run(main(Path(sys.argv[1]).read_bytes()))
