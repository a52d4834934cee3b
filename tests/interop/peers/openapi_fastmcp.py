"""FastMCP's tools for an OpenAPI document: `openapi_fastmcp.py DOCUMENT BASE`.

Prints one line of JSON: the number of tools, the bytes of their list, and the CPU seconds to make
them.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import httpx2
from fastmcp import Client, FastMCP


async def main() -> None:
    document = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    async with httpx2.AsyncClient(base_url=sys.argv[2]) as http:
        began = time.process_time()
        server = FastMCP.from_openapi(openapi_spec=document, client=http)
        seconds = time.process_time() - began
        async with Client(server) as client:
            tools = await client.list_tools()
            listed = [
                tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools
            ]
            found = {
                "tools": len(tools),
                "bytes": len(json.dumps(listed, separators=(",", ":")).encode()),
                "seconds": seconds,
            }
    print(json.dumps(found))


asyncio.run(main())
