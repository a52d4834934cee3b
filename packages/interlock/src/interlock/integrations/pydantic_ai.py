"""The tools of a client as a toolset of Pydantic AI."""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import Iterable
from typing import Any, Self

from msgspec import UNSET

from .. import types as t
from ..client.app import Client
from ..models.content_pieces import pieces
from ..models.interface import AcceptedContent
from .model_calls import ModelCalls, OnToolProgress, wire_form

try:
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.messages import BinaryContent
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
    from pydantic_core import SchemaValidator, core_schema
except ImportError as missing:
    raise ImportError("Pydantic AI is missing: pip install pydantic-ai-slim") from missing


def pydantic_ai_toolset(
    client: Client,
    *,
    only: str | Iterable[str] | None = None,
    on_progress: OnToolProgress | None = None,
    instructions: bool = False,
    id: str | None = None,
) -> AbstractToolset[Any]:
    """Return the tools of a client as a toolset for `Agent(toolsets=[...])`.

    The toolset opens the client for each run of an agent, and closes it afterwards. A client that
    is open already stays open. A failure is a failed tool result (`ToolFailed`), which the model
    reads.

    Args:
        client: The client.
        only: The tools to offer, as names or shell patterns; None for all.
        on_progress: Called with the name of a tool and the progress of its call.
        instructions: Whether the instructions of the server become instructions of the agent. Its
            author then writes a part of your prompt: trust the server.
        id: The ID of the toolset among those of an agent.
    """
    return _ClientToolset(ModelCalls(client, only, on_progress), instructions, id)


class _ClientToolset(AbstractToolset[Any]):  # type: ignore[misc]  # not installed here: it is Any
    """The tools of a client."""

    def __init__(self, calls: ModelCalls, instructions: bool, id: str | None) -> None:
        self._calls = calls
        self._gives_instructions = instructions
        self._id = id
        self._entering = asyncio.Lock()
        self._entered = 0
        self._opened_here = False

    @property
    def id(self) -> str | None:
        """The ID of the toolset."""
        return self._id

    async def __aenter__(self) -> Self:
        async with self._entering:
            client = self._calls.client
            if self._entered == 0 and not client.connected:
                await client.open()
                self._opened_here = True
            self._entered += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        async with self._entering:
            self._entered -= 1
            if self._entered == 0 and self._opened_here:
                self._opened_here = False
                await self._calls.client.aclose()

    async def get_instructions(self, ctx: Any) -> str | None:
        """Return the instructions of the server, if they are wanted."""
        return self._calls.client.instructions if self._gives_instructions else None

    async def get_tools(self, ctx: Any) -> dict[str, Any]:
        """Return the tools."""
        return {
            one.shown: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=one.shown,
                    description=one.description,
                    parameters_json_schema=one.tool.input_schema,
                    return_schema=one.tool.output_schema,
                    metadata={
                        "meta": one.tool.meta,
                        "annotations": one.tool.annotations and wire_form(one.tool.annotations),
                    },
                ),
                max_retries=ctx.max_retries,
                args_validator=SchemaValidator(core_schema.any_schema()),  # the server validates
            )
            for one in await self._calls.tools()
        }

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        """Call a tool. Raises ToolFailed, Unreachable."""
        result = await self._calls.call(name, tool_args)
        if result.is_error:
            raise ToolFailed(result.text or "The tool failed without a message.")
        return _returned(result)


def _returned(result: t.CallToolResult) -> Any:
    """The value of a call: structured data if all content is text, else the content."""
    if result.structured_content is not UNSET and all(
        isinstance(block, t.TextContent) for block in result.content
    ):
        return result.value()
    parts = [part for block in result.content for part in _parts(block)]
    return parts[0] if len(parts) == 1 else parts


def _parts(block: t.ContentBlock) -> list[Any]:
    data: str | None = None
    mime: str | None = None
    if isinstance(block, t.ImageContent | t.AudioContent):
        data = block.data
        mime = block.mime_type
    elif isinstance(block, t.EmbeddedResource):
        data = block.resource.blob
        mime = block.resource.mime_type
    if data is not None:
        try:
            content = binascii.a2b_base64(data)
        except binascii.Error:
            pass  # it is described in words
        else:
            media_type = mime or "application/octet-stream"
            return [BinaryContent(content, media_type=media_type)]
    return [piece.text for piece in pieces(block, AcceptedContent())]
