"""A tool of the official Python SDK that asks, for `python -m benchmarks.asking`: `REVISION`. That
SDK's Python runs it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Annotated, Any

from call_figures import Opened, measure
from mcp import Client
from mcp.server.mcpserver import (
    AcceptedElicitation,
    CancelledElicitation,
    Context,
    DeclinedElicitation,
    Elicit,
    MCPServer,
    Resolve,
)
from mcp_types import ElicitResult
from pydantic import BaseModel


class Guest(BaseModel):
    """The answer of the person."""

    name: str


async def ask() -> Elicit[Guest]:
    """The question of a tool under the newest revision."""
    return Elicit("Who are you?", Guest)


@asynccontextmanager
async def front(revision: str) -> Opened:
    """Open a client whose person answers at once."""
    server = MCPServer("asking", log_level="WARNING")

    if revision >= "2026":

        @server.tool(structured_output=False)
        async def greet(
            answer: Annotated[
                AcceptedElicitation[Guest] | DeclinedElicitation | CancelledElicitation,
                Resolve(ask),
            ],
        ) -> str:
            assert isinstance(answer, AcceptedElicitation)
            return f"Hello, {answer.data.name}!"

    else:

        @server.tool(name="greet", structured_output=False)
        async def greet_at_once(ctx: Context) -> str:
            answer = await ctx.elicit("Who are you?", Guest)
            assert answer.action == "accept"
            return f"Hello, {answer.data.name}!"

    async def answer(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": "Ann"})

    mode = revision if revision >= "2026" else "legacy"
    async with Client(server, mode=mode, elicitation_callback=answer) as client:
        result = await client.call_tool("greet", {})
        assert result.content[0].text == "Hello, Ann!"
        yield lambda: client.call_tool("greet", {})


if __name__ == "__main__":
    measure(front)
