"""Routes: how the request for a mounted feature reaches its source, and the mounted features."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ... import types as t
from ...exchange import AnyResult, Exchange, ExchangeTransport, Handler, HttpRequest
from ...typed.string_arguments import Strings
from ..catalogue.features import (
    Call,
    Feature,
    PromptFeature,
    ResourceFeature,
    TemplateFeature,
    ToolFeature,
)
from .transform import ArgumentChanges
from .uris import MovedUris


class UnmirroredTransport(ExchangeTransport):
    """A transport without the headers that repeat arguments, after the arguments have changed."""

    __slots__ = ("_transport",)

    def __init__(self, transport: ExchangeTransport) -> None:
        self._transport = transport

    @property
    def request(self) -> HttpRequest | None:
        """The HTTP request; None on every other transport."""
        return self._transport.request

    @property
    def address(self) -> str | None:
        """The network address of the client; None on other transports."""
        return self._transport.address

    @property
    def is_http(self) -> bool:
        """Whether it is HTTP."""
        return self._transport.is_http

    @property
    def held_bytes(self) -> int:
        """The memory that the request holds while it lasts, in bytes."""
        return self._transport.held_bytes

    def release(self, retry_ms: int | None = None) -> bool:
        """Close the client's stream; the client resumes after `retry_ms` milliseconds."""
        return self._transport.release(retry_ms)

    def pause_timeout(self) -> AbstractContextManager[object]:
        """A block in which the sender's timeout is paused, because a person is being asked."""
        return self._transport.pause_timeout()


class MountRoute(Struct, frozen=True, eq=False):
    """How the request for one mounted feature reaches its source.

    Attributes:
        source: The name of the source.
        name: The name, URI or URI template that the source gave the feature.
        handler: The source, within the middleware around this feature.
        uris: The URIs of the source that callers see otherwise. Each mount has its own.
        own: The feature as the source describes it.
        arguments: The changes of a tool's arguments.
    """

    source: str
    name: str
    handler: Handler
    uris: MovedUris
    own: Feature
    arguments: ArgumentChanges | None = None

    async def call_tool(self, x: Exchange) -> AnyResult:
        """`tools/call`."""
        params: t.CallToolRequestParams = x.params
        if self.arguments is not None:
            try:
                arguments = self.arguments.apply(params.arguments)
            except ValueError as bad:
                words = f"Invalid arguments for tool {params.name}: {bad}"
                if not x.caller.supports("argument_errors_as_results"):  # `TOL-16`
                    raise t.McpError(t.INVALID_PARAMS, words) from None
                return t.CallToolResult(content=[t.TextContent(words)], is_error=True)
            x = replace(x, params=replace(params, name=self.name, arguments=arguments, task=None))
            if x.transport.mirrored is not None:
                x.transport = UnmirroredTransport(x.transport)
        elif params.name != self.name or params.task is not None:
            x = replace(x, params=replace(params, name=self.name, task=None))
        result = await self.handler(x)
        return self.uris.in_result(result) if self.uris else result

    async def get_prompt(self, x: Exchange) -> AnyResult:
        """`prompts/get`."""
        return await self._send(x, replace(x.params, name=self.name))

    async def send_uri(self, x: Exchange) -> AnyResult:
        """A request that names a URI, such as `resources/read`."""
        result = await self._send(x, replace(x.params, uri=self.uris.own(x.params.uri)))
        if isinstance(result, t.CacheableResult) and result.ttl_ms is None:
            # A source of the handshake era has no cache hints, which 2026-07-28 requires.
            result = replace(result, ttl_ms=0, cache_scope=result.cache_scope or "private")
        return result

    async def complete(self, x: Exchange) -> AnyResult:
        """`completion/complete`."""
        ref = x.params.ref
        if isinstance(ref, t.PromptReference):
            ref = replace(ref, name=self.name)
        else:
            ref = replace(ref, uri=self.name)
        return await self._send(x, replace(x.params, ref=ref))

    async def _send(self, x: Exchange, params: t.Params) -> AnyResult:
        result = await self.handler(replace(x, params=params))
        return self.uris.in_result(result) if self.uris else result


class MountedTool(ToolFeature, frozen=True, kw_only=True):
    """A tool of a source."""

    route: MountRoute


class MountedResource(ResourceFeature, frozen=True, kw_only=True):
    """A resource of a source."""

    route: MountRoute


class MountedTemplate(TemplateFeature, frozen=True, kw_only=True):
    """A resource template of a source."""

    route: MountRoute


class MountedPrompt(PromptFeature, frozen=True, kw_only=True):
    """A prompt of a source."""

    route: MountRoute


def route_of(feature: Any) -> MountRoute | None:
    """Return the route of a feature; None if it belongs to the server itself."""
    route: MountRoute | None = getattr(feature, "route", None)
    return route


def _not_called() -> None:
    """Stands for the function of a mounted feature, which its source runs."""


ASKED_BY_SOURCE = Call(_not_called, context="ctx")  # like a function that takes a Context
ANSWERED_BY_SOURCE = Call(_not_called)
READ_BY_SOURCE: Any = None  # the source decodes the arguments, and encodes the result
NO_STRINGS = Strings(_not_called, Exchange)
