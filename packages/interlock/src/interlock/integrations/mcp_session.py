"""A client with the methods of `mcp.ClientSession`, for frameworks that accept nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Self

from msgspec import UNSET

from .. import types as t
from ..client.app import Client
from ..version import VERSION
from .mcp_types import as_mcp, raise_as_mcp
from .model_calls import wire_form

try:
    from mcp import ClientSession
except ImportError as missing:
    raise ImportError("The package mcp is missing: pip install mcp") from missing


def client_session(client: Client) -> ClientSession:
    """Return a client as a `mcp.ClientSession`, version 1 or 2, for frameworks that insist on one.

    Its lists have one page. Its results and errors are those of the `mcp` package. Questions,
    logs and changes go to the client: `subscribe_resource` does not exist, use `Client.watch`.

    Args:
        client: An open client. `async with` and `initialize` open one that is not, and `async with`
            closes it again.
    """
    return _ClientSession(client)


class _ClientSession(ClientSession):  # type: ignore[misc]  # mcp is not installed here: it is Any
    """A client with the methods of a session."""

    def __init__(self, client: Client) -> None:
        # The constructor of the base class wants streams, and all that uses them is replaced here.
        self._client = client
        self._opened_here = False

    async def __aenter__(self) -> Self:
        if not self._client.connected:
            with _mcp_errors():
                await self._client.open()
            self._opened_here = True
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._opened_here:
            self._opened_here = False
            await self._client.aclose()

    async def initialize(self) -> Any:
        """Open the client, if it is not open, and return what the server says of itself."""
        with _mcp_errors():
            await self._client.open()
        return self.initialize_result

    @property
    def initialize_result(self) -> Any:
        """What the server says of itself; None if the client is not open."""
        client = self._client
        if not client.connected:
            return None
        info = client.server_info or t.Implementation(name=client.label, version=VERSION)
        known = t.InitializeResult(
            protocol_version=client.revision,
            capabilities=client.server_capabilities,
            server_info=info,
            instructions=client.instructions,
        )
        return as_mcp("InitializeResult", known)

    @property
    def protocol_version(self) -> str | None:
        """The negotiated revision; None if the client is not open."""
        return self._client.revision if self._client.connected else None

    @property
    def server_info(self) -> Any:
        """The name and version of the server; None if the client is not open."""
        info = self._client.server_info
        return None if info is None else as_mcp("Implementation", info)

    @property
    def server_capabilities(self) -> Any:
        """The capabilities of the server; None if the client is not open."""
        if not self._client.connected:
            return None
        return as_mcp("ServerCapabilities", self._client.server_capabilities)

    def get_server_capabilities(self) -> Any:
        """The capabilities of the server; None if the client is not open."""
        return self.server_capabilities

    @property
    def instructions(self) -> str | None:
        """The instructions of the server."""
        return self._client.instructions

    async def send_ping(self, *, meta: Mapping[str, Any] | None = None) -> Any:
        """Check that the server responds."""
        with _mcp_errors():
            await self._client.ping()
        return as_mcp("EmptyResult", {})

    async def set_logging_level(self, level: t.LoggingLevel) -> Any:
        """Set the lowest level of log messages that the server sends."""
        with _mcp_errors():
            await self._client.set_log_level(level)
        return as_mcp("EmptyResult", {})

    async def send_roots_list_changed(self) -> None:
        """Notify the server that the roots have changed."""
        self._client.roots_changed()

    async def list_tools(self, cursor: str | None = None, *, params: Any = None) -> Any:
        """Return all tools; there is one page."""
        with _mcp_errors():
            found = await self._client.list_tools()
        return as_mcp("ListToolsResult", {"tools": [wire_form(one) for one in found]})

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: timedelta | float | None = None,
        progress_callback: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        allow_input_required: bool = False,
        allow_claimed: bool = False,
    ) -> Any:
        """Call a tool. The client answers its questions, so no result requires input."""
        seconds = read_timeout_seconds
        if isinstance(seconds, timedelta):
            seconds = seconds.total_seconds()
        with _mcp_errors():
            result = await self._client.call_tool(
                name,
                arguments,
                timeout=UNSET if seconds is None else seconds,
                on_progress=progress_callback and partial(_report, progress_callback),
                meta=meta,
            )
        return as_mcp("CallToolResult", result)

    async def list_resources(self, cursor: str | None = None, *, params: Any = None) -> Any:
        """Return all resources; there is one page."""
        with _mcp_errors():
            found = await self._client.list_resources()
        return as_mcp("ListResourcesResult", {"resources": [wire_form(one) for one in found]})

    async def list_resource_templates(
        self, cursor: str | None = None, *, params: Any = None
    ) -> Any:
        """Return all resource templates; there is one page."""
        with _mcp_errors():
            found = await self._client.list_resource_templates()
        listed = {"resourceTemplates": [wire_form(one) for one in found]}
        return as_mcp("ListResourceTemplatesResult", listed)

    async def read_resource(
        self,
        uri: Any,
        *,
        meta: Mapping[str, Any] | None = None,
        allow_input_required: bool = False,
    ) -> Any:
        """Read a resource."""
        with _mcp_errors():
            contents = await self._client.read_resource(str(uri), meta=meta)
        return as_mcp("ReadResourceResult", contents)

    async def list_prompts(self, cursor: str | None = None, *, params: Any = None) -> Any:
        """Return all prompts; there is one page."""
        with _mcp_errors():
            found = await self._client.list_prompts()
        return as_mcp("ListPromptsResult", {"prompts": [wire_form(one) for one in found]})

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        allow_input_required: bool = False,
    ) -> Any:
        """Get a prompt."""
        with _mcp_errors():
            prompt = await self._client.get_prompt(name, arguments, meta=meta)
        return as_mcp("GetPromptResult", prompt)

    async def complete(
        self,
        ref: Any,
        argument: Mapping[str, str],
        context_arguments: Mapping[str, str] | None = None,
    ) -> Any:
        """Suggest values for an argument of a prompt or a resource template."""
        given = str(ref.uri) if hasattr(ref, "uri") else ref.name
        kind: t.PromptReference | t.ResourceTemplateReference = (
            t.ResourceTemplateReference(uri=given)
            if hasattr(ref, "uri")
            else t.PromptReference(name=given)
        )
        with _mcp_errors():
            found = await self._client.complete(
                kind, argument["name"], argument["value"], arguments=context_arguments
            )
        return as_mcp("CompleteResult", {"completion": wire_form(found)})

    async def subscribe_resource(self, uri: Any, **_: Any) -> Any:
        """Raise NotImplementedError: a subscription lasts as long as the block of Client.watch."""
        raise NotImplementedError("use Client.watch(resources=[uri]) of the client itself")

    async def unsubscribe_resource(self, uri: Any, **_: Any) -> Any:
        """Raise NotImplementedError: a subscription lasts as long as the block of Client.watch."""
        raise NotImplementedError("leave the block of Client.watch of the client itself")

    async def send_request(self, *_: Any, **__: Any) -> Any:
        """Raise NotImplementedError: other requests go through the client itself."""
        raise NotImplementedError("use Client.request of the client itself")

    async def send_notification(self, *_: Any, **__: Any) -> None:
        """Raise NotImplementedError: notifications go through the client itself."""
        raise NotImplementedError("use Client.notify of the client itself")


def _report(callback: Any, params: t.ProgressNotificationParams) -> Any:
    """Pass progress on in the form of the mcp package."""
    return callback(params.progress, params.total, params.message)


@contextlib.contextmanager
def _mcp_errors() -> Iterator[None]:
    try:
        yield
    except t.InterlockError as bad:
        raise_as_mcp(bad)
