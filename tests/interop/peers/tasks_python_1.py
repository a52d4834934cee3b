"""Tools that run as tasks (2025-11-25), served by the official Python SDK 1.x over stdio, or over
HTTP (PORT). Run by its own Python."""

import contextlib
import sys

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import McpError
from mcp.types import CallToolResult, ErrorData, TextContent, Tool, ToolExecution

server = Server("tasks")
server.experimental.enable_tasks()
SUPPORT = {
    "order": "required",
    "sample": "optional",
    "forever": "required",
    "refuse": "required",
    "plain": None,
}
FORM = {"type": "object", "properties": {"size": {"type": "string"}}, "required": ["size"]}


def text(words):
    """The result of a tool."""
    return CallToolResult(content=[TextContent(type="text", text=words)])


@server.list_tools()
async def tools():
    """All tools."""
    return [
        Tool(
            name=name,
            inputSchema={"type": "object"},
            execution=ToolExecution(taskSupport=support) if support else None,
        )
        for name, support in SUPPORT.items()
    ]


@server.call_tool()
async def call(name, arguments):
    """Run a tool, as a task if the client asks for it."""
    experimental = server.request_context.experimental
    experimental.validate_task_mode(SUPPORT[name])
    if not experimental.is_task:
        return text("no task")

    async def work(task):
        if name == "order":
            await task.update_status("asking")
            answer = await task.elicit("Which size?", FORM)
            return text(f"{answer.action} {answer.content}")
        if name == "sample":
            message = types.SamplingMessage(
                role="user", content=TextContent(type="text", text="Capital of France?")
            )
            answer = await task.create_message([message], max_tokens=9)
            return text(answer.content.text)
        if name == "refuse":
            raise McpError(ErrorData(code=-32000, message="no quota"))
        await anyio.sleep_forever()

    return await experimental.run_task(work, model_immediate_response="Begun.")


async def over_stdio():
    """Serve the standard streams."""
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def over_http(port):
    """Serve Streamable HTTP."""
    import uvicorn
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.routing import Mount

    manager = StreamableHTTPSessionManager(server)

    @contextlib.asynccontextmanager
    async def lifespan(app):
        async with manager.run():
            yield

    app = Starlette(routes=[Mount("/mcp", manager.handle_request)], lifespan=lifespan)
    uvicorn.run(app, port=port, log_level="error")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        over_http(int(sys.argv[1]))
    else:
        anyio.run(over_stdio)
