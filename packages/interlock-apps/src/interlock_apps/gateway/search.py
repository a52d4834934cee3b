"""Tool search in a view: in place of a long list of tools, one tool that finds tools and one that
calls them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from interlock import (
    AnyResult,
    CallToolResult,
    Exchange,
    Handler,
    McpError,
    RawResult,
    TextContent,
    ToolAnnotations,
)
from interlock import types as t
from interlock.caches import BoundedCache

from ..fleet.text_index import TextIndex, fields_of
from .settings import Search

MOST_LISTED: Final = 60
"""The largest number of tools that a view with `search = "auto"` lists."""

SEARCH: Final = "search_tools"
CALL: Final = "call_tool"
_MOST_FOUND = 50
_FOUND = 8
_INDEXES = 32  # of different lists: callers who see the same tools share one

_SEARCH_TOOL = t.Tool(
    name=SEARCH,
    title="Search tools",
    description=(
        "Find tools by what they do. Most tools are not listed here: search before you say that"
        " something cannot be done. Returns names, descriptions and argument schemas. Call a tool"
        f" that you found with {CALL}."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "words": {"type": "string", "description": "What the tool should do, in a few words"},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": _MOST_FOUND,
                "default": _FOUND,
            },
        },
        "required": ["words"],
        "additionalProperties": False,
    },
    annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
)
_CALL_TOOL = t.Tool(
    name=CALL,
    title="Call a tool",
    description=f"Call a tool that {SEARCH} has found.",
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The tool's name, exactly as it was found"},
            "arguments": {"type": "object", "description": "Its arguments, as its schema says"},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
)
SEARCHED: Final = t.ListToolsResult(tools=[_SEARCH_TOOL, _CALL_TOOL])
"""The list of a view with tool search."""


class _SearchArguments(Struct, forbid_unknown_fields=True):
    words: str
    limit: int = _FOUND


class _CallArguments(Struct, forbid_unknown_fields=True):
    name: str
    arguments: Raw = Raw(b"{}")


_read_search = msgspec.json.Decoder(_SearchArguments).decode
_read_call = msgspec.json.Decoder(_CallArguments).decode
_encode = msgspec.json.encode


class ToolSearch:
    """Middleware of a view that offers tool search if the view has many tools.

    Args:
        count: Returns the number of tools of the view, for the sender of an exchange.
    """

    def __init__(self, count: Callable[[Exchange], int]) -> None:
        self.mode: Search = "auto"
        self._count = count
        self._indexes: BoundedCache[bytes, _Index] = BoundedCache(_INDEXES)

    def __call__(self, handler: Handler) -> Handler:
        """Return the handler with tool search."""

        def handle(x: Exchange) -> Awaitable[AnyResult]:
            if x.method not in ("tools/list", "tools/call") or not self._is_active(x):
                return handler(x)
            if x.method == "tools/list":
                return _listed()
            if x.params.name == SEARCH:
                return self._search(x, handler)
            if x.params.name == CALL:
                return _call(x, handler)
            return handler(x)

        return handle

    def _is_active(self, x: Exchange) -> bool:
        if self.mode == "auto":
            return self._count(x) > MOST_LISTED
        return self.mode == "always"

    async def _search(self, x: Exchange, handler: Handler) -> AnyResult:
        """Answer with the tools that fit best, among those that the caller sees."""
        try:
            wanted = _read_search(x.params.arguments)
        except msgspec.MsgspecError as bad:
            return _bad_arguments(x, bad)
        index = await self._index(x, handler)
        limit = max(1, min(wanted.limit, _MOST_FOUND))
        found = [
            {
                "name": tool.name,
                "description": tool.description or "",
                "inputSchema": tool.input_schema,
            }
            for tool in index.find(wanted.words, limit)
        ]
        text = _encode(found).decode() if found else "No tool fits these words."
        return CallToolResult(content=[TextContent(text)])

    async def _index(self, x: Exchange, handler: Handler) -> _Index:
        tools: list[t.Tool] = []
        key = b""
        cursor: str | None = None
        while True:
            params = t.ListToolsRequestParams(cursor=cursor)
            listed = replace(x, method="tools/list", params=params, received=None)
            result: Any = await handler(listed)
            if isinstance(result, RawResult):
                if not key and (known := self._indexes.get(result.body)) is not None:
                    return known
                key = key or result.body
                result = result.decode()
            tools += result.tools
            cursor = result.next_cursor
            if cursor is None:
                break
        index = _Index(tools)
        if key:
            self._indexes.put(key, index)
        return index


class _Index:
    """The tools of one list, found by words."""

    def __init__(self, tools: list[t.Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._index: TextIndex[str] = TextIndex()
        for tool in tools:
            server, _, _ = tool.name.partition("__")
            self._index.put(tool.name, fields_of(server, tool))

    def find(self, words: str, limit: int) -> list[t.Tool]:
        """Return the tools that fit best, best first."""
        exact = self._tools.get(words.strip())
        found = [self._tools[name] for name, _ in self._index.search(words)]
        if exact is not None:
            found = [exact, *(tool for tool in found if tool is not exact)]
        return found[:limit]


async def _listed() -> AnyResult:
    return SEARCHED


async def _call(x: Exchange, handler: Handler) -> AnyResult:
    """Call the tool that the arguments name, as if the caller had called it itself."""
    try:
        wanted = _read_call(x.params.arguments)
    except msgspec.MsgspecError as bad:
        return _bad_arguments(x, bad)
    params = replace(x.params, name=wanted.name, arguments=wanted.arguments)
    return await handler(replace(x, params=params))


def _bad_arguments(x: Exchange, bad: Exception) -> AnyResult:
    words = f"Invalid arguments for tool {x.params.name}: {bad}"
    if not x.caller.supports("argument_errors_as_results"):
        raise McpError(t.INVALID_PARAMS, words) from None
    return CallToolResult(content=[TextContent(words)], is_error=True)
