"""A client made with FastMCP 4 and its tasks that does what the test says.

Run by FastMCP's own Python.
"""

from __future__ import annotations

from typing import Any

import anyio
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp_tasks import call_tool_task
from steps import Steps, plain

steps = Steps()


def road(first: dict[str, Any]) -> Any:
    """The way to the server: a command, or a URL."""
    if "command" in first:
        command, *arguments = first["command"]
        return StdioTransport(command, arguments, keep_alive=False)
    return StreamableHttpTransport(first["url"])


async def answer(message: str, kind: Any, params: Any, context: Any) -> Any:
    """Answer a form."""
    given = steps.answer("elicitation/create", {"message": message})
    if given["action"] != "accept":
        return ElicitResult(action=given["action"])
    return kind(**given["content"]) if kind is not None else given["content"]


async def main() -> None:
    """Play the steps."""
    first = await steps.first()
    async with Client(road(first), mode=first["mode"], elicitation_handler=answer) as client:

        async def do(what: str, given: dict[str, Any]) -> Any:
            if what == "list_tools":
                return {"tools": await client.list_tools()}
            if what == "call":
                result = await client.call_tool(**given, raise_on_error=False)
                return {"content": plain(result.content), "isError": result.is_error}
            task = await call_tool_task(client, **given)
            if what == "cancel":
                await task.cancel()
                return plain(await task.wait(state=None))
            status = plain(await task.status())
            result = await task.result()
            return {"id": task.task_id, "status": status, "content": plain(result.content)}

        await steps.play(do)


anyio.run(main)
