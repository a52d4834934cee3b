"""The features of the public conformance suite, served by the official Python SDK 2.x over HTTP
(`streamable-http PORT`). Run by its own Python."""

import sys

from conformance_features import add_prompts, add_resources, add_tools, complete
from mcp.server.mcpserver import Context, MCPServer, UserMessage
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    Completion,
    EmptyResult,
    SetLevelRequestParams,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)

server = MCPServer("conformance", version="1.0.0", log_level="ERROR")


def is_stateless(ctx: Context) -> bool:
    return ctx.protocol_version == "2026-07-28"


add_tools(server.tool(structured_output=False), Context, is_stateless, ToolError)
add_resources(server.resource)
add_prompts(server.prompt(), UserMessage, Context, is_stateless)


@server.completion()
async def completion(ref: object, argument: object, context: object) -> Completion:
    return complete(argument.value)


async def acknowledge(ctx: object, params: object) -> EmptyResult:
    """The SDK leaves subscriptions and levels to the author; nothing here changes."""
    return EmptyResult()


low = server._lowlevel_server  # the high face has no words for what 2026-07-28 has no more
low.add_request_handler("resources/subscribe", SubscribeRequestParams, acknowledge)
low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, acknowledge)
low.add_request_handler("logging/setLevel", SetLevelRequestParams, acknowledge)

if __name__ == "__main__":
    server.run(sys.argv[1], port=int(sys.argv[2]))
