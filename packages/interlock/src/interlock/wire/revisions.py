"""The history of the protocol in one file: five revisions, two eras, and every difference between
them.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Literal, NamedTuple

from .. import types as t

R1: Final = "2024-11-05"
R2: Final = "2025-03-26"
R3: Final = "2025-06-18"
R4: Final = "2025-11-25"
R5: Final = "2026-07-28"

# All revisions of the protocol, the oldest first.
REVISIONS: Final = (R1, R2, R3, R4, R5)
OLDEST = REVISIONS[0]
NEWEST = REVISIONS[-1]
LAST_HANDSHAKE: Final = R4


class Era(Enum):
    """The two eras of the protocol."""

    HANDSHAKE = "handshake"  # the peers introduce themselves once, for the whole connection
    STATELESS = "stateless"  # every request contains the caller's revision and capabilities


HANDSHAKE_REVISIONS: Final = REVISIONS[: REVISIONS.index(LAST_HANDSHAKE) + 1]
STATELESS_REVISIONS: Final = REVISIONS[REVISIONS.index(LAST_HANDSHAKE) + 1 :]

_ERAS = {r: Era.HANDSHAKE for r in HANDSHAKE_REVISIONS} | {
    r: Era.STATELESS for r in STATELESS_REVISIONS
}


def era(revision: str) -> Era:
    """Return the era of a revision. Raises KeyError for an unknown revision."""
    return _ERAS[revision]


class Side(Enum):
    """The sender of a message."""

    CLIENT = "client"
    SERVER = "server"
    BOTH = "both"


class MethodRow(NamedTuple):
    """One method: the types of its params and result, its sender, and its revisions (`since` to
    `until`, inclusive).
    """

    params: type[Any]
    result: type[Any] | None  # None for a notification
    sender: Side = Side.CLIENT
    since: str = OLDEST
    until: str = NEWEST


METHODS: Final[dict[str, MethodRow]] = {
    # requests of a client
    "initialize": MethodRow(t.InitializeRequestParams, t.InitializeResult, until=R4),
    "ping": MethodRow(t.PingRequestParams, t.EmptyResult, Side.BOTH, until=R4),
    "server/discover": MethodRow(t.DiscoverRequestParams, t.DiscoverResult, since=R5),
    "tools/list": MethodRow(t.ListToolsRequestParams, t.ListToolsResult),
    "tools/call": MethodRow(t.CallToolRequestParams, t.CallToolResult),
    "resources/list": MethodRow(t.ListResourcesRequestParams, t.ListResourcesResult),
    "resources/templates/list": MethodRow(
        t.ListResourceTemplatesRequestParams, t.ListResourceTemplatesResult
    ),
    "resources/read": MethodRow(t.ReadResourceRequestParams, t.ReadResourceResult),
    "resources/subscribe": MethodRow(t.SubscribeRequestParams, t.EmptyResult, until=R4),
    "resources/unsubscribe": MethodRow(t.UnsubscribeRequestParams, t.EmptyResult, until=R4),
    "prompts/list": MethodRow(t.ListPromptsRequestParams, t.ListPromptsResult),
    "prompts/get": MethodRow(t.GetPromptRequestParams, t.GetPromptResult),
    "completion/complete": MethodRow(t.CompleteRequestParams, t.CompleteResult),
    "logging/setLevel": MethodRow(t.SetLevelRequestParams, t.EmptyResult, until=R4),
    "subscriptions/listen": MethodRow(
        t.SubscriptionsListenRequestParams, t.SubscriptionsListenResult, since=R5
    ),
    # requests of a server; in the stateless era they are part of results
    "sampling/createMessage": MethodRow(
        t.CreateMessageRequestParams, t.CreateMessageResult, Side.SERVER
    ),
    "elicitation/create": MethodRow(t.ElicitRequestParams, t.ElicitResult, Side.SERVER, since=R3),
    "roots/list": MethodRow(t.ListRootsRequestParams, t.ListRootsResult, Side.SERVER),
    # notifications
    "notifications/initialized": MethodRow(t.InitializedNotificationParams, None, until=R4),
    "notifications/cancelled": MethodRow(t.CancelledNotificationParams, None, Side.BOTH),
    "notifications/progress": MethodRow(t.ProgressNotificationParams, None, Side.BOTH),
    "notifications/message": MethodRow(t.LoggingMessageNotificationParams, None, Side.SERVER),
    "notifications/tools/list_changed": MethodRow(
        t.ListChangedNotificationParams, None, Side.SERVER
    ),
    "notifications/prompts/list_changed": MethodRow(
        t.ListChangedNotificationParams, None, Side.SERVER
    ),
    "notifications/resources/list_changed": MethodRow(
        t.ListChangedNotificationParams, None, Side.SERVER
    ),
    "notifications/resources/updated": MethodRow(
        t.ResourceUpdatedNotificationParams, None, Side.SERVER
    ),
    "notifications/roots/list_changed": MethodRow(
        t.RootsListChangedNotificationParams, None, until=R4
    ),
    "notifications/elicitation/complete": MethodRow(
        t.ElicitationCompleteNotificationParams, None, Side.SERVER, since=R4, until=R4
    ),
    "notifications/subscriptions/acknowledged": MethodRow(
        t.SubscriptionsAcknowledgedNotificationParams, None, Side.SERVER, since=R5
    ),
}

Span = tuple[str, str]

NEVER: Final[Span] = (NEWEST, OLDEST)
"""For a field that a type inherits, but that no revision has in that type."""

TYPES: Final[dict[type[Any], Span]] = {
    # types that not every revision has, in unions with other types
    t.AudioContent: (R2, NEWEST),
    t.ResourceLink: (R3, NEWEST),
    t.ToolUseContent: (R4, NEWEST),
    t.ToolResultContent: (R4, NEWEST),
    t.InputRequiredResult: (R5, NEWEST),
}

FIELDS: Final[dict[tuple[type[Any], str], Span]] = {
    # shared by many types
    (t.Result, "resultType"): (R5, NEWEST),
    (t.CacheableResult, "ttlMs"): (R5, NEWEST),
    (t.CacheableResult, "cacheScope"): (R5, NEWEST),
    (t.InputResponseParams, "inputResponses"): (R5, NEWEST),
    (t.InputResponseParams, "requestState"): (R5, NEWEST),
    (t.Annotations, "lastModified"): (R3, NEWEST),
    (t.Implementation, "title"): (R3, NEWEST),
    (t.Implementation, "description"): (R4, NEWEST),
    (t.Implementation, "icons"): (R4, NEWEST),
    (t.Implementation, "websiteUrl"): (R4, NEWEST),
    # content
    (t.TextContent, "_meta"): (R3, NEWEST),
    (t.ImageContent, "_meta"): (R3, NEWEST),
    (t.AudioContent, "_meta"): (R3, NEWEST),
    (t.EmbeddedResource, "_meta"): (R3, NEWEST),
    (t.ResourceContents, "_meta"): (R3, NEWEST),
    (t.ResourceLink, "icons"): (R4, NEWEST),
    # tools
    (t.Tool, "annotations"): (R2, NEWEST),
    (t.Tool, "title"): (R3, NEWEST),
    (t.Tool, "outputSchema"): (R3, NEWEST),
    (t.Tool, "_meta"): (R3, NEWEST),
    (t.Tool, "icons"): (R4, NEWEST),
    (t.Tool, "execution"): (R4, R4),
    (t.CallToolRequestParams, "task"): (R4, R4),
    (t.CallToolResult, "structuredContent"): (R3, NEWEST),
    # resources
    (t.Resource, "title"): (R3, NEWEST),
    (t.Resource, "_meta"): (R3, NEWEST),
    (t.Resource, "icons"): (R4, NEWEST),
    (t.ResourceTemplate, "title"): (R3, NEWEST),
    (t.ResourceTemplate, "_meta"): (R3, NEWEST),
    (t.ResourceTemplate, "icons"): (R4, NEWEST),
    # prompts and completion
    (t.Prompt, "title"): (R3, NEWEST),
    (t.Prompt, "_meta"): (R3, NEWEST),
    (t.Prompt, "icons"): (R4, NEWEST),
    (t.PromptArgument, "title"): (R3, NEWEST),
    (t.PromptReference, "title"): (R3, NEWEST),
    (t.CompleteRequestParams, "context"): (R3, NEWEST),
    # questions: since 2026-07-28 they are not requests, and their answers are not results
    (t.ElicitRequestParams, "mode"): (R4, NEWEST),
    (t.ElicitRequestParams, "url"): (R4, NEWEST),
    (t.ElicitRequestParams, "elicitationId"): (R4, R4),
    (t.ElicitRequestParams, "task"): (R4, R4),
    (t.ElicitRequestParams, "_meta"): (R3, R4),
    (t.ElicitResult, "_meta"): (R3, R4),
    (t.ElicitResult, "resultType"): NEVER,
    (t.CreateMessageRequestParams, "tools"): (R4, NEWEST),
    (t.CreateMessageRequestParams, "toolChoice"): (R4, NEWEST),
    (t.CreateMessageRequestParams, "task"): (R4, R4),
    (t.CreateMessageRequestParams, "_meta"): (R1, R4),
    (t.CreateMessageResult, "resultType"): NEVER,
    (t.SamplingMessage, "_meta"): (R4, NEWEST),
    (t.ListRootsResult, "_meta"): (R1, R4),
    (t.ListRootsResult, "resultType"): NEVER,
    (t.Root, "_meta"): (R3, NEWEST),
    # capabilities and `_meta`
    (t.ClientCapabilities, "elicitation"): (R3, NEWEST),
    (t.RootsCapability, "listChanged"): (R1, R4),
    (t.SamplingCapability, "context"): (R4, NEWEST),
    (t.SamplingCapability, "tools"): (R4, NEWEST),
    (t.ElicitationCapability, "form"): (R4, NEWEST),
    (t.ElicitationCapability, "url"): (R4, NEWEST),
    (t.ServerCapabilities, "completions"): (R2, NEWEST),
    (t.RequestMeta, "io.modelcontextprotocol/protocolVersion"): (R5, NEWEST),
    (t.RequestMeta, "io.modelcontextprotocol/clientCapabilities"): (R5, NEWEST),
    (t.RequestMeta, "io.modelcontextprotocol/clientInfo"): (R5, NEWEST),
    (t.RequestMeta, "io.modelcontextprotocol/logLevel"): (R5, NEWEST),
    (t.NotificationMeta, "io.modelcontextprotocol/subscriptionId"): (R5, NEWEST),
    # progress
    (t.ProgressNotificationParams, "message"): (R2, NEWEST),
}

ERRORS: Final[dict[str, dict[str, int]]] = {
    # error codes: name -> {first revision with this code: code}
    "resource_not_found": {R1: t.RESOURCE_NOT_FOUND, R5: t.INVALID_PARAMS},
    "header_mismatch": {R1: t.INVALID_REQUEST, R5: t.HEADER_MISMATCH},
    "missing_client_capability": {R1: t.INVALID_REQUEST, R5: t.MISSING_CLIENT_CAPABILITY},
    "unsupported_protocol_version": {R1: t.INVALID_PARAMS, R5: t.UNSUPPORTED_PROTOCOL_VERSION},
}

Ability = Literal[
    "apps",
    "argument_errors_as_results",
    "audio",
    "batches",
    "core_tasks",
    "elicitation",
    "elicitation_ids",
    "elicitation_urls",
    "http_sessions",
    "mirrored_headers",
    "multiple_choice",
    "ping",
    "primed_streams",
    "questions_in_results",
    "resource_links",
    "sampling_context_declared",
    "sampling_tools",
    "structured_content",
    "version_header",
]

ABILITIES: Final[dict[Ability, Span]] = {
    # named abilities of revisions that are not just a method, a type or a field
    "apps": FIELDS[t.Tool, "_meta"],  # where a tool links its page (MCP Apps)
    "argument_errors_as_results": (R4, NEWEST),  # bad arguments of a tool are a result (`TOL-16`)
    "audio": TYPES[t.AudioContent],
    "batches": (R2, R2),  # several messages in one array (`RPC-13`, `RPC-16`)
    "core_tasks": (R4, R4),  # tasks of the core protocol; later they are an extension
    "elicitation": (R3, NEWEST),
    "elicitation_ids": (R4, R4),  # the visit of a page has an id, and a notification for its end
    "elicitation_urls": (R4, NEWEST),
    "http_sessions": (R2, R4),  # Mcp-Session-Id, GET and DELETE
    "mirrored_headers": (R5, NEWEST),  # Mcp-Method, Mcp-Name and Mcp-Param-*
    "multiple_choice": (R4, NEWEST),  # form fields with several values
    "ping": (R1, R4),
    "primed_streams": (R4, R4),  # an event stream starts with an id, so that it can be resumed
    "questions_in_results": (R5, NEWEST),  # input_required instead of server requests
    "resource_links": TYPES[t.ResourceLink],
    "sampling_context_declared": (R4, NEWEST),  # clients declare whether they accept includeContext
    "sampling_tools": FIELDS[t.CreateMessageRequestParams, "tools"],
    "structured_content": FIELDS[t.CallToolResult, "structuredContent"],
    "version_header": (R3, NEWEST),  # MCP-Protocol-Version after `initialize` (`HTL-47`)
}

INPUT_METHODS: Final = ("elicitation/create", "sampling/createMessage", "roots/list")
TASK_METHODS: Final = frozenset({"tasks/get", "tasks/result", "tasks/cancel", "tasks/list"})
"""The requests about tasks that each side may send to the other (2025-11-25)."""
INPUT_REQUIRED_METHODS: Final = ("tools/call", "prompts/get", "resources/read")
"""The requests that may be answered with questions in the stateless era (`MRT-01`)."""


def speaks(revision: str, method: str) -> bool:
    """Whether a revision has a method."""
    row = METHODS.get(method)
    return row is not None and row.since <= revision <= row.until


def supports(revision: str, ability: Ability) -> bool:
    """Whether a revision has an ability of the ABILITIES table.

    Raises:
        ValueError: There is no ability of this name.
    """
    span = ABILITIES.get(ability)
    if span is None:
        raise ValueError(f"unknown ability {ability!r}; there are {', '.join(ABILITIES)}")
    return has(revision, span)


def has(revision: str, span: Span | None) -> bool:
    """Whether a revision lies within a span; None means every revision."""
    return span is None or span[0] <= revision <= span[1]


def error_code(name: str, revision: str) -> int:
    """Return the code of an error in the ERRORS table under a revision."""
    rows = ERRORS[name]
    return rows[max(first for first in rows if first <= revision)]
