"""The features of the public conformance suite, served by FastMCP 4 over HTTP (`streamable-http
PORT`). Run by FastMCP's own Python."""

import sys

from conformance_features import add_prompts, add_resources, add_tools, complete
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.prompts import Message

server = FastMCP("conformance", version="1.0.0")


def is_stateless(ctx: Context) -> bool:
    return ctx.request_context is not None and ctx.request_context.protocol_version == "2026-07-28"


add_tools(server.tool(output_schema=None), Context, is_stateless, ToolError)
add_resources(server.resource)
add_prompts(server.prompt, Message, Context, is_stateless)


@server.completion
def completion(ref: object, argument: object, context: object) -> list[str]:
    return complete(argument.value).values


if __name__ == "__main__":
    server.run(
        sys.argv[1],
        port=int(sys.argv[2]),
        host="127.0.0.1",
        show_banner=False,
        log_level="error",
    )
