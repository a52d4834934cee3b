"""OpenAPI in FastMCP, for `python -m benchmarks.openapi`: `DOCUMENT`. FastMCP's Python runs it. The
figures are those of `openapi_interlock.py`; a list is made and written anew for each request.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import httpx2
from fastmcp import FastMCP

LISTS = 1


async def main(data: bytes) -> None:
    """Measure, and print the figures."""
    async with httpx2.AsyncClient(base_url="http://127.0.0.1:9") as http:
        began = time.process_time()
        server = FastMCP.from_openapi(openapi_spec=json.loads(data), client=http)
        loaded = time.process_time() - began
        size = await listed(server)
        began = time.process_time()
        for _ in range(LISTS):
            await listed(server)
        again = (time.process_time() - began) / LISTS
    print(loaded * 1e3, again * 1e3, size)


async def listed(server: FastMCP) -> int:
    """Return the bytes of the list of tools."""
    tools = [tool.to_mcp_tool() for tool in await server.list_tools()]
    return sum(len(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in tools)


asyncio.run(main(Path(sys.argv[1]).read_bytes()))
