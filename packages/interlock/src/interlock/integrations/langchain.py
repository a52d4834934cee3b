"""The tools of a client as tools of LangChain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from .. import types as t
from ..client.app import Client
from ..models.content_pieces import text_of_pieces
from ..models.interface import AcceptedContent
from .model_calls import ModelCalls, OfferedTool, OnToolProgress, pieces_of, wire_form

try:
    from langchain_core.tools import BaseTool, ToolException
    from pydantic import Field
except ImportError as missing:
    raise ImportError("LangChain is missing: pip install langchain-core") from missing

_ACCEPTED = AcceptedContent(
    images=frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"}),
    documents=frozenset({"application/pdf"}),
)


async def langchain_tools(
    client: Client,
    *,
    only: str | Iterable[str] | None = None,
    on_progress: OnToolProgress | None = None,
) -> list[BaseTool]:
    """Return the tools of a client as tools of LangChain and LangGraph, for `ainvoke`.

    A failure is a `ToolMessage` with the status "error". Structured results are in its `artifact`,
    under `structured_content`.

    Args:
        client: An open client. It stays open as long as the tools are used.
        only: The tools to return, as names or shell patterns; None for all.
        on_progress: Called with the name of a tool and the progress of its call.

    Raises:
        McpError: The server answers with an error.
        Unreachable: The server does not respond, or the connection is lost. Calls raise it too.
    """
    calls = ModelCalls(client, only, on_progress)
    return [_tool(calls, one) for one in await calls.tools()]


def _tool(calls: ModelCalls, offered: OfferedTool) -> BaseTool:
    tool = offered.tool
    return _ClientTool(
        name=offered.shown,
        description=offered.description,
        args_schema=tool.input_schema,
        response_format="content_and_artifact",
        handle_tool_error=True,
        metadata={"mcp": {name: value for name, value in _facts(tool).items() if value}},
        calls=calls,
        shown=offered.shown,
    )


class _ClientTool(BaseTool):  # type: ignore[misc]  # LangChain is not installed here: it is Any
    """One tool."""

    calls: Any = Field(exclude=True)
    shown: str

    # LangChain passes its own parameters, such as `config`, to every function that has one of that
    # name. This one has none, so arguments of any name reach the tool.
    async def _arun(self, /, **arguments: Any) -> tuple[Any, Any]:
        result: t.CallToolResult = await self.calls.call(self.shown, arguments)
        content = _content(result)
        if result.is_error:
            raise ToolException(content)
        return content, _artifact(result)

    def _run(self, /, **arguments: Any) -> Any:
        # LangChain demands this method of every tool, and raises this error itself for others.
        raise NotImplementedError(f"The tool {self.name} is asynchronous: use ainvoke.")


def _facts(tool: t.Tool) -> t.JSONObject:
    return {
        "name": tool.name,
        "title": tool.title,
        "annotations": None if tool.annotations is None else wire_form(tool.annotations),
        "_meta": tool.meta,
    }


def _content(result: t.CallToolResult) -> str | list[t.JSONObject]:
    """The content of a message: a text, or content blocks."""
    pieces = pieces_of(result, _ACCEPTED)
    if all(piece.kind == "text" for piece in pieces):
        return text_of_pieces(pieces)
    blocks: list[t.JSONObject] = []
    for piece in pieces:
        if piece.kind == "text":
            blocks.append({"type": "text", "text": piece.text})
        else:
            kind = "image" if piece.kind == "image" else "file"
            blocks.append({"type": kind, "base64": piece.data, "mime_type": piece.mime})
    return blocks


def _artifact(result: t.CallToolResult) -> t.JSONObject | None:
    """What is for the program, not for the model."""
    found: t.JSONObject = {}
    if result.structured_content is not UNSET:
        found["structured_content"] = result.structured_content
    if result.meta:
        found["_meta"] = result.meta
    return found or None
