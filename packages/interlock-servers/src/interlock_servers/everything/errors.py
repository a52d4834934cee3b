"""Each way in which a call can fail: a tool error, a protocol error, a limit, an exception."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from msgspec import Meta

from interlock import CallToolResult, McpError, Server, TextContent, ToolError, types

from .state import PURE, Ctx

SCOPE = "everything:more"
CODES = {
    "invalid request": types.INVALID_REQUEST,
    "method not found": types.METHOD_NOT_FOUND,
    "invalid params": types.INVALID_PARAMS,
    "internal error": types.INTERNAL_ERROR,
    "of its own": -31999,  # outside of what JSON-RPC keeps for itself
}
Kind = Literal[
    "invalid request", "method not found", "invalid params", "internal error", "of its own"
]


async def broken() -> str:
    """Fail in a way that nobody foresaw: the client gets a plain sentence and a reference, the log
    all the rest.
    """
    raise RuntimeError("this text is for the server's log only")


async def fail(
    words: Annotated[str, Meta(max_length=200)] = "This was meant to fail. Do not call it again.",
) -> str:
    """Fail in words for the model, so that it can do better.

    Args:
        words: what is said.
    """
    raise ToolError(words)


async def fail_with_content() -> CallToolResult:
    """Fail with more than words: a result by hand, which says that it is an error."""
    words = TextContent(
        "This failed in two ways.",
        annotations=types.Annotations(audience=["assistant"], priority=1.0),
    )
    return CallToolResult(content=[words, TextContent("The second one failed too.")], is_error=True)


async def refuse(kind: Kind = "of its own") -> str:
    """Answer with an error of the protocol, which has a code and data, and which a model is seldom
    shown.

    Args:
        kind: which error; one `of its own` has a code that the protocol does not use.
    """
    raise McpError(CODES[kind], f"This was meant to be an error: {kind}.", {"kind": kind})


async def too_slow() -> str:
    """Take longer than this tool is allowed to."""
    await asyncio.sleep(60)
    return "This is never seen."


async def one_at_a_time(
    seconds: Annotated[float, Meta(ge=0, le=5, description="How long one takes.")] = 0.05,
) -> str:
    """Let one call run and one wait; a third is refused at once."""
    await asyncio.sleep(seconds)
    return "My turn is over."


async def with_scope(ctx: Ctx) -> str:
    """Require a scope: over HTTP, callers without it are told which one. Over stdio, all scopes are
    granted.
    """
    ctx.require(SCOPE)
    return f"You have {SCOPE}, or need none."


async def contradict() -> CallToolResult:
    """Give what the output schema of this tool does not allow: the server notices, and sends an
    error in its place.
    """
    return CallToolResult(
        content=[TextContent("Not a number.")], structured_content={"number": "none"}
    )


NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}


def add_failing(server: Server) -> None:
    """Give a server the tools of this file."""
    server.tool(title="Broken", annotations=PURE)(broken)
    server.tool(title="Fail in words", annotations=PURE)(fail)
    server.tool(title="Fail with content", annotations=PURE)(fail_with_content)
    server.tool(title="Refuse with a code", annotations=PURE)(refuse)
    server.tool(title="Too slow", annotations=PURE, timeout=0.1)(too_slow)
    server.tool(title="One at a time", annotations=PURE, concurrency=1, queue=1)(one_at_a_time)
    server.tool(title="Needs a scope", annotations=PURE)(with_scope)
    server.tool(title="Break a promise", annotations=PURE, output_schema=NUMBER)(contradict)
