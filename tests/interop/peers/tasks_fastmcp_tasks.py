"""Tools that run as tasks (2026-07-28), served by FastMCP 4 over stdio, or over HTTP (PORT).

Run by FastMCP's own Python.
"""

import asyncio
import sys
from datetime import timedelta

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult

TASK = TaskConfig(poll_interval=timedelta(milliseconds=100))
ALWAYS = TaskConfig(mode="required", poll_interval=timedelta(milliseconds=100))
FORM = {"type": "object", "properties": {"size": {"type": "string"}}, "required": ["size"]}

server = FastMCP("tasks")
server.add_extension(TasksExtension(minimum_check_interval=timedelta(milliseconds=20)))


@server.tool(task=TASK)
async def add(a: int, b: int) -> int:
    """A task that ends soon."""
    await asyncio.sleep(0.05)
    return a + b


@server.tool(task=TASK, output_schema=None)
async def order(ctx: Context) -> str | InputRequiredResult:
    """A task that asks."""
    answer = (ctx.input_responses or {}).get("size")
    if answer is None:
        question = ElicitRequestFormParams(message="Which size?", requested_schema=FORM)
        return InputRequiredResult(input_requests={"size": ElicitRequest(params=question)})
    answer = ElicitResult.model_validate(answer, from_attributes=True)
    return f"{answer.action} {answer.content}"


@server.tool(task=ALWAYS)
async def fail() -> str:
    """A task that fails."""
    raise ToolError("no luck")


@server.tool(task=TASK)
async def forever() -> str:
    """A task that does not end."""
    await asyncio.Event().wait()
    return ""


@server.tool
async def plain() -> str:
    """Never a task."""
    return "no task"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("http", host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
    else:
        server.run(show_banner=False)
