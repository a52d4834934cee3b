"""A client made with the official Python SDK 2.x that does what the test says.

Run by that SDK's own Python.
"""

import warnings
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged
from mcp_types import (
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitResult,
    ErrorData,
    ListRootsResult,
    PromptReference,
    ResourceTemplateReference,
    SamplingCapability,
    SamplingToolsCapability,
)
from steps import Steps, plain

warnings.simplefilter("ignore")  # what 2026-07-28 deprecates is still part of the older revisions

METHODS = {
    ResourceUpdated: "notifications/resources/updated",
    ToolsListChanged: "notifications/tools/list_changed",
}

steps = Steps()
REFUSED = ErrorData(code=-1, message="User rejected the request")


async def elicit(context: Any, params: Any) -> Any:
    answer = steps.answer("elicitation/create", params)
    return ElicitResult.model_validate(answer) if answer else REFUSED


async def sample(context: Any, params: Any) -> Any:
    answer = steps.answer("sampling/createMessage", params)
    if not answer:
        return REFUSED
    return (
        CreateMessageResultWithTools if isinstance(answer["content"], list) else CreateMessageResult
    ).model_validate(answer)


async def roots(context: Any) -> Any:
    return ListRootsResult.model_validate(steps.answer("roots/list", None))


async def log(params: Any) -> None:
    steps.hear("notifications/message", params)


async def hear(message: Any) -> None:
    if isinstance(message, Exception):
        steps.hear("exception", {"words": repr(message)})
    elif message.method != "notifications/message":
        steps.hear(message.method, message.params)


async def call(
    client: Client, name: str, arguments: dict[str, Any] | None = None, progress: bool = False
) -> Any:
    """Call a tool; with `progress`, return what it reported too."""
    reported: list[Any] = []

    async def report(done: float, total: float | None, message: str | None) -> None:
        reported.append([done, total, message])

    result = await client.call_tool(name, arguments, progress_callback=report if progress else None)
    return {**plain(result), "reported": reported} if progress else result


async def call_and_cancel(client: Client, name: str) -> str:
    """Call a tool and give it up as soon as it reports progress."""
    with anyio.CancelScope() as scope:

        async def report(*_: Any) -> None:
            scope.cancel()

        await client.call_tool(name, progress_callback=report)
    return "given up" if scope.cancelled_caught else "answered"


async def listen(client: Client, wanted: dict[str, Any], tools: list[str]) -> Any:
    """Listen, call tools, and return what came, one event for each tool."""
    async with client.listen(**wanted) as subscription:
        events = []
        for tool in tools:
            await client.call_tool(tool)
            event = await anext(aiter(subscription))
            events.append([METHODS[type(event)], getattr(event, "uri", None)])
        return {"honored": plain(subscription.honored), "events": events}


async def complete(
    client: Client, argument: str, value: str, prompt: str = "", template: str = ""
) -> Any:
    ref = PromptReference(name=prompt) if prompt else ResourceTemplateReference(uri=template)
    return await client.complete(ref, {"name": argument, "value": value})


DO: dict[str, Any] = {
    "call": call,
    "call_and_cancel": call_and_cancel,
    "listen": listen,
    "complete": complete,
    "list_tools": Client.list_tools,
    "list_resources": Client.list_resources,
    "list_resource_templates": Client.list_resource_templates,
    "list_prompts": Client.list_prompts,
    "read": Client.read_resource,
    "prompt": Client.get_prompt,
    "ping": Client.send_ping,
    "set_level": Client.set_logging_level,
    "subscribe": Client.subscribe_resource,
    "unsubscribe": Client.unsubscribe_resource,
}


def road(first: dict[str, Any]) -> Any:
    """The way to the server: a command, or a URL."""
    if "command" in first:
        command, *arguments = first["command"]
        return StdioServerParameters(command=command, args=arguments)
    return sse_client(first["url"]) if first["road"] == "sse" else first["url"]


async def main() -> None:
    first = await steps.first()
    client = Client(
        road(first),
        mode=first["mode"],
        log_level=first.get("log_level"),
        elicitation_callback=elicit,
        sampling_callback=sample,
        sampling_capabilities=SamplingCapability(tools=SamplingToolsCapability()),
        list_roots_callback=roots,
        logging_callback=log,
        message_handler=hear,
    )
    async with client:

        async def do(what: str, given: dict[str, Any]) -> Any:
            if what == "who":
                capabilities = plain(client.server_capabilities)
                who = {
                    "revision": client.protocol_version,
                    "server": plain(client.server_info),
                    "instructions": client.instructions,
                }
                return {**who, "capabilities": capabilities}
            return await DO[what](client, **given)

        await steps.play(do)


anyio.run(main)
