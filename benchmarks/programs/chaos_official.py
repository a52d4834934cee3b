"""The tools of the chaos test, served by the official Python SDK: see `chaos_interlock.py`."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import (
    AcceptedElicitation,
    CancelledElicitation,
    Context,
    DeclinedElicitation,
    Elicit,
    MCPServer,
    Resolve,
)
from pydantic import BaseModel
from tools import serve_web

folder = Path(sys.argv[1])
options = json.loads(sys.argv[2])
server = MCPServer("chaos", log_level="WARNING")
MARKS = os.open(folder / "marks", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def mark(what: str) -> None:
    os.write(MARKS, f"{what}\n".encode())


class Confirmation(BaseModel):
    confirm: bool


async def ask() -> Elicit[Confirmation]:
    return Elicit("Sure?", Confirmation)


@server.tool(structured_output=False)
async def add(a: int, b: int) -> str:
    return str(a + b)


@server.tool(structured_output=False)
async def length(text: str) -> str:
    return str(len(text))


@server.tool(structured_output=False)
async def act(
    name: str,
    answer: Annotated[
        AcceptedElicitation[Confirmation] | DeclinedElicitation | CancelledElicitation,
        Resolve(ask),
    ],
    padding: str = "",
) -> str:
    if not (isinstance(answer, AcceptedElicitation) and answer.data.confirm):
        return "no"
    mark(f"acts {name}")
    await asyncio.sleep(0.01)
    return f"did {name}"


@server.tool(structured_output=False)
async def count(to: int, ctx: Context) -> str:
    for n in range(1, to + 1):
        await ctx.report_progress(n, to)
        await asyncio.sleep(0.05)
    return f"counted to {to}"


@server.tool(structured_output=False)
async def wait(name: str) -> str:
    mark(f"waits {name}")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        mark(f"stopped {name}")
        raise
    return "never cancelled"


if __name__ == "__main__":
    serve_web(server.streamable_http_app(), options["port"])
