"""Client and server information, capabilities, progress and logging."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import field

from .base import (
    CacheableResult,
    Implementation,
    JSONObject,
    Params,
    ProgressToken,
    RequestId,
    Result,
    WireType,
)

# The levels of log messages, those of RFC 5424, the least urgent first.
LoggingLevel = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
LOGGING_LEVELS: tuple[LoggingLevel, ...] = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)


class RootsCapability(WireType, frozen=True, kw_only=True):
    """The client has roots; `list_changed` only in the handshake era."""

    list_changed: bool | None = None


class SamplingCapability(WireType, frozen=True, kw_only=True):
    """The client offers a model; `tools` is set if it accepts tools, `context` if it accepts
    includeContext.
    """

    context: JSONObject | None = None
    tools: JSONObject | None = None


class ElicitationCapability(WireType, frozen=True, kw_only=True):
    """The client can ask a person; if neither field is set, by forms only."""

    form: JSONObject | None = None
    url: JSONObject | None = None


class ClientCapabilities(WireType, frozen=True, kw_only=True):
    """The features that a client offers to servers (2026-07-28, "ClientCapabilities")."""

    experimental: JSONObject | None = None
    roots: RootsCapability | None = None
    sampling: SamplingCapability | None = None
    elicitation: ElicitationCapability | None = None
    extensions: JSONObject | None = None


class ListChangedCapability(WireType, frozen=True, kw_only=True):
    """A list; `list_changed` is set if its changes are announced."""

    list_changed: bool | None = None


class ResourcesCapability(WireType, frozen=True, kw_only=True):
    """Resources; `subscribe` is set if single resources can be watched, `list_changed` if the list
    can.
    """

    subscribe: bool | None = None
    list_changed: bool | None = None


class ServerCapabilities(WireType, frozen=True, kw_only=True):
    """The features that a server offers (2026-07-28, "ServerCapabilities")."""

    experimental: JSONObject | None = None
    logging: JSONObject | None = None
    completions: JSONObject | None = None
    prompts: ListChangedCapability | None = None
    resources: ResourcesCapability | None = None
    tools: ListChangedCapability | None = None
    extensions: JSONObject | None = None


class RequestMeta(WireType, frozen=True, kw_only=True):
    """The keys of a request's `_meta` that the protocol defines (2026-07-28, "_meta"; W3C trace
    context).
    """

    protocol_version: str | None = field(
        default=None, name="io.modelcontextprotocol/protocolVersion"
    )
    client_capabilities: ClientCapabilities | None = field(
        default=None, name="io.modelcontextprotocol/clientCapabilities"
    )
    client_info: Implementation | None = field(
        default=None, name="io.modelcontextprotocol/clientInfo"
    )
    log_level: LoggingLevel | None = field(default=None, name="io.modelcontextprotocol/logLevel")
    progress_token: ProgressToken | None = field(default=None, name="progressToken")
    traceparent: str | None = field(default=None, name="traceparent")
    tracestate: str | None = field(default=None, name="tracestate")
    baggage: str | None = field(default=None, name="baggage")


class NotificationMeta(WireType, frozen=True, kw_only=True):
    """The key of a notification's `_meta` that the protocol defines: which subscription it belongs
    to.
    """

    subscription_id: RequestId | None = field(
        default=None, name="io.modelcontextprotocol/subscriptionId"
    )


class InitializeRequestParams(Params, frozen=True, kw_only=True):
    """The first message of the handshake era."""

    protocol_version: str
    capabilities: ClientCapabilities
    client_info: Implementation


class InitializeResult(Result, frozen=True, kw_only=True):
    """The server's answer in the handshake era: the negotiated revision and the server's
    capabilities.
    """

    protocol_version: str
    capabilities: ServerCapabilities
    server_info: Implementation
    instructions: str | None = None


class DiscoverRequestParams(Params, frozen=True, kw_only=True):
    """Params of `server/discover`."""


class DiscoverResult(CacheableResult, frozen=True, kw_only=True):
    """The server's information and capabilities, in the stateless era."""

    supported_versions: list[str]
    capabilities: ServerCapabilities
    instructions: str | None = None


class InitializedNotificationParams(Params, frozen=True, kw_only=True):
    """Params of `notifications/initialized`."""


class PingRequestParams(Params, frozen=True, kw_only=True):
    """Params of `ping`, which only the handshake era has."""


class SetLevelRequestParams(Params, frozen=True, kw_only=True):
    """Params of `logging/setLevel`, which only the handshake era has."""

    level: LoggingLevel


class LoggingMessageNotificationParams(Params, frozen=True, kw_only=True):
    """One log message of the server."""

    level: LoggingLevel
    data: Any
    logger: str | None = None


class ProgressNotificationParams(Params, frozen=True, kw_only=True):
    """The progress of a request; `progress` grows each time, `total` is in the same unit."""

    progress_token: ProgressToken
    progress: float
    total: float | None = None
    message: str | None = None
