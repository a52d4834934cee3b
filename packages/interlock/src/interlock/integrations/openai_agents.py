"""A client as an MCP server of the OpenAI Agents SDK."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from ..client.app import Client
from .mcp_session import client_session
from .mcp_types import as_mcp
from .model_calls import ModelCalls, OnToolProgress, wire_form

try:
    from agents.mcp import MCPServer
except ImportError as missing:
    raise ImportError("The OpenAI Agents SDK is missing: pip install openai-agents") from missing


def openai_agents_server(
    client: Client,
    *,
    only: str | Iterable[str] | None = None,
    on_progress: OnToolProgress | None = None,
    require_approval: Any = None,
    use_structured_content: bool = False,
) -> MCPServer:
    """Return a client as a server for `Agent(mcp_servers=[...])`.

    Use it as an async context manager, or with its `connect` and `cleanup`: they open and close the
    client. A client that is open already stays open. A failure is a tool result that the model
    reads.

    Args:
        client: The client.
        only: The tools to offer, as names or shell patterns; None for all.
        on_progress: Called with the name of a tool and the progress of its call.
        require_approval: Which calls need an approval, as for the servers of the SDK.
        use_structured_content: Whether models get structured results instead of the content.
    """
    return _ClientServer(
        ModelCalls(client, only, on_progress),
        require_approval=require_approval,
        use_structured_content=use_structured_content,
    )


class _ClientServer(MCPServer):  # type: ignore[misc]  # the SDK is not installed here: it is Any
    """A client with the methods of a server of the SDK."""

    def __init__(self, calls: ModelCalls, **options: Any) -> None:
        super().__init__(**options)
        self._calls = calls
        self._session = client_session(calls.client)
        self._opened_here = False

    @property
    def name(self) -> str:
        """The name of the server, or the target of the client."""
        info = self._calls.client.server_info
        return self._calls.client.label if info is None else info.name

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cleanup()

    async def connect(self) -> None:
        """Open the client."""
        client = self._calls.client
        if not client.connected:
            await client.open()
            self._opened_here = True

    async def cleanup(self) -> None:
        """Close the client, if `connect` has opened it."""
        if self._opened_here:
            self._opened_here = False
            await self._calls.client.aclose()

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[Any]:
        """Return the tools."""
        tools = []
        for one in await self._calls.tools():
            listing = {**wire_form(one.tool), "name": one.shown}
            listing.pop("_meta", None)  # the SDK would send it back with each call
            tools.append(as_mcp("Tool", listing))
        return tools

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> Any:
        """Call a tool. Raises Unreachable."""
        result = await self._calls.call(tool_name, arguments or {}, meta)
        return as_mcp("CallToolResult", result)

    async def list_prompts(self) -> Any:
        """Return the prompts."""
        return await self._session.list_prompts()

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """Return a prompt."""
        return await self._session.get_prompt(name, arguments)

    async def list_resources(self, cursor: str | None = None) -> Any:
        """Return all resources; there is one page."""
        return await self._session.list_resources()

    async def list_resource_templates(self, cursor: str | None = None) -> Any:
        """Return all resource templates; there is one page."""
        return await self._session.list_resource_templates()

    async def read_resource(self, uri: str) -> Any:
        """Read a resource."""
        return await self._session.read_resource(uri)
