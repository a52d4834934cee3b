"""Exchanges made by hand, for a server whose handlers are called without a client, a connection or
a frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from interlock import Caller, CallToolResult, Exchange, RawResult, Server
from interlock import types as t
from interlock.server.catalogue.listing import ListPages
from interlock.wire.revisions import NEWEST, REVISIONS

OLDEST = REVISIONS[0]
R4 = REVISIONS[3]  # the newest of the handshake era


class Told:
    """What a call has told on its way: methods with their params."""

    def __init__(self) -> None:
        self.all: list[tuple[str, Any]] = []

    def __call__(self, method: str, params: Any) -> None:
        self.all.append((method, params))

    def progress(self) -> list[float]:
        """The progress that was told, in order."""
        return [
            params.progress for method, params in self.all if method == "notifications/progress"
        ]

    def log(self) -> list[tuple[str, Any]]:
        """The log messages, with their levels."""
        return [
            (params.level, params.data)
            for method, params in self.all
            if method == "notifications/message"
        ]


def exchange(
    method: str, params: Any, *, revision: str = NEWEST, log_level: Any = None, **given: Any
) -> Exchange:
    """An exchange of a caller without capabilities."""
    return Exchange(method, params, Caller(revision, log_level=log_level), **given)


async def call(
    server: Server, tool: str, arguments: Mapping[str, Any] | None = None, **given: Any
) -> CallToolResult:
    """Call a tool of the server."""
    raw = msgspec.Raw(msgspec.json.encode(arguments)) if arguments is not None else t.NOTHING
    result = await server.handle(
        exchange("tools/call", t.CallToolRequestParams(name=tool, arguments=raw), **given)
    )
    assert isinstance(result, CallToolResult)
    return result


async def text(
    server: Server, tool: str, arguments: Mapping[str, Any] | None = None, **given: Any
) -> str:
    """Call a tool that does not fail, for its words."""
    result = await call(server, tool, arguments, **given)
    assert not result.is_error, result.text
    return result.text


async def listed(
    server: Server, method: str, cursor: str | None = None, *, revision: str = NEWEST
) -> dict[str, Any]:
    """One page of a list, as JSON."""
    result = await server.handle(
        exchange(method, t.PaginatedParams(cursor=cursor), revision=revision)
    )
    assert isinstance(result, RawResult)
    page: dict[str, Any] = msgspec.json.decode(result.body)
    return page


async def read(server: Server, uri: str, **given: Any) -> t.ReadResourceResult:
    """Read a resource of the server."""
    result = await server.handle(
        exchange("resources/read", t.ReadResourceRequestParams(uri=uri), **given)
    )
    assert isinstance(result, t.ReadResourceResult)
    return result


async def written(
    server: Server, prompt: str, arguments: dict[str, str] | None = None, **given: Any
) -> list[t.PromptMessage]:
    """The messages of a prompt of the server."""
    result = await server.handle(
        exchange("prompts/get", t.GetPromptRequestParams(name=prompt, arguments=arguments), **given)
    )
    assert isinstance(result, t.GetPromptResult)
    return result.messages


def pages_of(server: Server) -> ListPages:
    """The pages of the server's lists, apart from those that the server keeps."""
    return ListPages(server.visibility, page_size=1000, list_ttl_ms=0, keys=[b"k" * 16])
