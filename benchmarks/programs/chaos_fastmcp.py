"""The tools of the chaos test, served by FastMCP: see `chaos_interlock.py`."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from fastmcp import Context, FastMCP
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from tools import serve_web

folder = Path(sys.argv[1])
options = json.loads(sys.argv[2])
server = FastMCP("chaos")
MARKS = os.open(folder / "marks", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
SURE = {"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]}


def mark(what: str) -> None:
    os.write(MARKS, f"{what}\n".encode())


@server.tool(output_schema=None)
async def add(a: int, b: int) -> str:
    return str(a + b)


@server.tool(output_schema=None)
async def length(text: str) -> str:
    return str(len(text))


@server.tool(output_schema=None)
async def act(name: str, ctx: Context, padding: str = "") -> str | InputRequiredResult:
    request = ctx.request_context
    if request is not None and request.protocol_version == "2026-07-28":
        answer: Any = (ctx.input_responses or {}).get("sure")
        if answer is None:
            question = ElicitRequestFormParams(message="Sure?", requested_schema=SURE)
            return InputRequiredResult(input_requests={"sure": ElicitRequest(params=question)})
        answer = ElicitResult.model_validate(answer, from_attributes=True)
    else:
        answer = await ctx.session.elicit("Sure?", SURE, related_request_id=ctx.request_id)
    if answer.action != "accept" or not answer.content["confirm"]:
        return "no"
    mark(f"acts {name}")
    await asyncio.sleep(0.01)
    return f"did {name}"


@server.tool(output_schema=None)
async def count(to: int, ctx: Context) -> str:
    for n in range(1, to + 1):
        await ctx.report_progress(n, to)
        await asyncio.sleep(0.05)
    return f"counted to {to}"


@server.tool(output_schema=None)
async def wait(name: str) -> str:
    mark(f"waits {name}")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        mark(f"stopped {name}")
        raise
    return "never cancelled"


if __name__ == "__main__":
    serve_web(server.http_app(), options["port"])
