"""The calls of a model through a Client: which tools it may call, and the result of each call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from .. import types as t
from ..client.app import Client
from ..models.content_pieces import ContentPiece, result_pieces
from ..models.conversation import IdMap
from ..models.interface import AcceptedContent
from ..protocol.pass_through import without_protocol_keys
from ..wire.codec import encode

OnToolProgress = Callable[[str, t.ProgressNotificationParams], Awaitable[object] | None]
"""Called with the name of a tool and the progress of one of its calls; plain or async."""

MOST_NAME = 64
"""The longest name of a function that all providers accept."""


class OfferedTool(Struct, frozen=True):
    """A tool under the name that a model sees, which consists of characters that all providers
    accept.
    """

    shown: str
    tool: t.Tool

    @property
    def description(self) -> str:
        """The description for the model."""
        return self.tool.description or self.tool.title or ""


class ModelCalls:
    """Lists the tools of a client for a model, and runs the model's calls.

    Args:
        client: The client.
        only: The tools to offer, as names or shell patterns; None for all.
        on_progress: Called with the progress of calls.
        longest: The longest name that the model's provider accepts.
    """

    def __init__(
        self,
        client: Client,
        only: str | Iterable[str] | None = None,
        on_progress: OnToolProgress | None = None,
        longest: int = MOST_NAME,
    ) -> None:
        self.client = client
        self._only = None if only is None else _listed(only)
        self._on_progress = on_progress
        self._longest = longest
        self._names: dict[str, str] = {}  # of the tools, by the names that the model sees

    async def tools(self) -> list[OfferedTool]:
        """Return the tools, without those that are for apps only (`_meta.ui.visibility`).

        Raises McpError, ProtocolError, Unreachable.
        """
        listed = [tool for tool in await self.client.list_tools() if self._offers(tool)]
        names = IdMap("a-zA-Z0-9_-", self._longest, first="a-zA-Z_")
        offered = [OfferedTool(names.out(tool.name), tool) for tool in listed]
        self._names = {one.shown: one.tool.name for one in offered}
        return offered

    async def call(
        self, shown: str, arguments: Mapping[str, Any], meta: Mapping[str, Any] | None = None
    ) -> t.CallToolResult:
        """Call a tool by the name that the model sees.

        Failures to which a model can react are results with `is_error`: those of the tool, unknown
        names, rejected arguments, errors of the protocol, a call that takes too long.

        Args:
            shown: The name.
            arguments: The arguments.
            meta: The author's part of the request's `_meta`.

        Raises:
            Unreachable: The server does not respond, or the connection is lost.
        """
        name = self._names.get(shown)
        if name is None:
            return failure(f"There is no tool {shown!r}.")
        on_progress = self._on_progress
        try:
            result = await self.client.call_tool(
                name,
                arguments,
                meta=meta,
                on_progress=None if on_progress is None else partial(on_progress, name),
            )
        except (t.McpError, t.ProtocolError, t.TaskCancelled, t.TimedOut) as bad:
            return failure(bad.message if isinstance(bad, t.McpError) else str(bad))
        return without_protocol_keys(result)

    def _offers(self, tool: t.Tool) -> bool:
        ui = (tool.meta or {}).get("ui")
        audience = ui.get("visibility") if isinstance(ui, dict) else None
        if isinstance(audience, list) and "model" not in audience:
            return False
        return self._only is None or any(fnmatchcase(tool.name, one) for one in self._only)


def failure(words: str) -> t.CallToolResult:
    """Return the result of a call that failed before or without the tool."""
    return t.CallToolResult(content=[t.TextContent(words)], is_error=True)


def pieces_of(result: t.CallToolResult, accepted: AcceptedContent) -> list[ContentPiece]:
    """Return the content of a result as pieces that a model accepts, at least one."""
    return result_pieces(as_block(result, ""), accepted)


def as_block(result: t.CallToolResult, id: str) -> t.ToolResultContent:
    """Return a result as content of a conversation; `id` is that of the call."""
    return t.ToolResultContent(
        tool_use_id=id,
        content=result.content,
        structured_content=result.structured_content,
        is_error=result.is_error,
    )


def wire_form(value: Any) -> Any:
    """Return a protocol type as the data of its JSON."""
    return msgspec.json.decode(encode(value))


def _listed(given: str | Iterable[str]) -> Sequence[str]:
    return (given,) if isinstance(given, str) else tuple(given)
