"""Where our types differ from the official schemas on purpose, and why: the only differences that
the proof of history lets pass."""

from __future__ import annotations

from interlock import types as t
from interlock.wire.revisions import R4, R5

CALLED = {
    # Schemas tell a text and a binary by two types, we by the field that is set.
    "TextResourceContents": t.ResourceContents,
    "BlobResourceContents": t.ResourceContents,
    # Likewise the two kinds of elicitation.
    "ElicitRequestFormParams": t.ElicitRequestParams,
    "ElicitRequestURLParams": t.ElicitRequestParams,
    # Three notifications that say nothing but that a list has changed.
    "ToolListChangedNotificationParams": t.ListChangedNotificationParams,
    "PromptListChangedNotificationParams": t.ListChangedNotificationParams,
    "ResourceListChangedNotificationParams": t.ListChangedNotificationParams,
    # Objects without a name in the schemas.
    "ClientCapabilities.roots": t.RootsCapability,
    "ClientCapabilities.sampling": t.SamplingCapability,
    "ClientCapabilities.elicitation": t.ElicitationCapability,
    "ServerCapabilities.prompts": t.ListChangedCapability,
    "ServerCapabilities.resources": t.ResourcesCapability,
    "ServerCapabilities.tools": t.ListChangedCapability,
    "CompleteRequestParams.argument": t.CompletionArgument,
    "CompleteRequestParams.context": t.CompletionContext,
    "CompleteResult.completion": t.Completion,
    # "Object" goes without saying.
    "RequestMetaObject": t.RequestMeta,
    "NotificationMetaObject": t.NotificationMeta,
}
"""A schema's type: ours, where the two have different names."""

KEPT_AS_JSON = {
    "Tool.inputSchema": "JSON Schema, whose words are not the protocol's",
    "Tool.outputSchema": "JSON Schema",
    "ElicitRequestFormParams.requestedSchema": (
        "JSON Schema, made from and read into Python types by interlock.schema"
    ),
    "ResultMetaObject": (
        "open to everyone; the one key that the protocol defines is written and read where it "
        "matters"
    ),
    "SubscriptionsListenResultMetaObject": "the same, with two keys",
}
"""Fields and types that are plain JSON here, where the schemas have types.

What can be reached only through them is no type of ours.
"""

LATER = {
    "tasks/": "messages of the tasks of 2025-11-25, which are an extension here: interlock.tasks",
    "notifications/tasks/": "the same",
    "CreateTaskResult": "the same",
    "ClientCapabilities.tasks": "the same",
    "ServerCapabilities.tasks": "the same",
}
"""Methods (by how they begin), types and fields that another package brings."""

ONLY_OURS = {
    "UnknownContent": "keeps a content block of a kind that no revision knows",
    "RequestMeta.traceparent": (
        "from the prose of 2026-07-28 (`_meta`, trace context), not in the schema"
    ),
    "RequestMeta.tracestate": "from the prose",
    "RequestMeta.baggage": "from the prose",
}
"""Types and fields that no schema has."""

WIDER = {
    "ClientCapabilities.extensions": (
        "extensions are older than the revision that names them: MCP Apps negotiates here in "
        "the handshake"
    ),
    "ServerCapabilities.extensions": "the same",
}
"""Fields that may be said in every revision, though the schemas name them only in the newer
ones."""

FILLED_IN = {
    "resultType": "stamped on results by the connection, for absent means complete",
    "ttlMs": "stamped by the connection where the author gives none",
    "cacheScope": "stamped by the connection where the author gives none",
    "_meta": (
        "written by the connection: who asks on each request, which subscription on the end of "
        "a listen"
    ),
    "CancelledNotificationParams.requestId": (
        "always written; 2025-11-25 lets it be absent, so it must be readable without"
    ),
    "ElicitRequestParams.requestedSchema": (
        "there in every form; only a page to visit, which 2025-06-18 does not have, is without"
    ),
    "io.modelcontextprotocol/protocolVersion": (
        "its absence is answered with an error, so it must be readable without"
    ),
    "io.modelcontextprotocol/clientCapabilities": (
        "its absence is answered with an error, so it must be readable without"
    ),
}
"""Fields that some revision demands and our types let be absent: who sees to it that they are
there."""

SENDERS = {
    (
        "notifications/progress",
        R5,
    ): (
        "only a server still answers requests, so only it has progress to tell; the type is the "
        "same"
    ),
}
"""Methods that fewer sides send in a revision than their row says."""

UNREACHED = {
    "Annotated": "base of the types with annotations",
    "BaseMetadata": "base of the types with name and title",
    "CacheableResult": "base of results",
    "Cursor": "another name of string",
    "EmptyResult": "another name of Result",
    "EnumSchema": "union of some JSON Schemas",
    "Icons": "base of the types with icons",
    "InputResponseRequestParams": "base of params",
    "JSONArray": "any JSON",
    "JSONRPCBatchRequest": "envelope",
    "JSONRPCBatchResponse": "envelope",
    "JSONRPCError": "envelope",
    "JSONRPCErrorResponse": "envelope",
    "JSONRPCMessage": "envelope",
    "JSONRPCNotification": "envelope",
    "JSONRPCRequest": "envelope",
    "JSONRPCResponse": "envelope",
    "JSONRPCResultResponse": "envelope",
    "JSONValue": "any JSON",
    "MultiSelectEnumSchema": "union of some JSON Schemas",
    "Notification": "envelope",
    "PaginatedRequest": "envelope",
    "PaginatedResult": "base of results",
    "RelatedTaskMetadata": "value of a key of `_meta`; comes with interlock.tasks",
    "Request": "envelope",
    "ResourceContents": "base of contents",
    "ResourceRequestParams": "base of params",
    "Result": "base of results",
    "ResultType": "another name of string",
    "SingleSelectEnumSchema": "union of some JSON Schemas",
    "TaskAugmentedRequestParams": "base of params",
}
"""Definitions that no message leads to, in one schema or more: bases, envelopes, and second
names."""

RESHAPED: dict[tuple[str, str], type | str] = {
    ("CallToolResult.structuredContent", R5): t.CallToolResult,
    ("CreateMessageResult.content", R4): t.CreateMessageResult,
    ("SamplingMessage.content", R4): t.CreateMessageRequestParams,
    ("ToolResultContent.structuredContent", R5): t.ToolResultContent,
    ("Tool.outputSchema", R5): t.Tool,
    ("ElicitRequestParams.requestedSchema", R4): t.ElicitRequestParams,
    (
        "ElicitResult.content",
        R4,
    ): "lists answer a choice of several, and 2025-06-18 has no way to ask for that",
    ("Tool.inputSchema", R4): "only names `$schema`, which older schemas let pass",
    ("Tool.outputSchema", R4): "only names `$schema`, which older schemas let pass",
    (
        "Tool.inputSchema",
        R5,
    ): "only opened to more words of JSON Schema, which older schemas let pass",
}
"""Changes of shape that dating fields and types cannot express, with the first revision of the new
shape: the type that is reshaped when an older revision is spoken, or why nothing need be done."""

CODES = {
    "ParseError": (t.PARSE_ERROR, None),
    "InvalidRequestError": (t.INVALID_REQUEST, None),
    "MethodNotFoundError": (t.METHOD_NOT_FOUND, None),
    "InvalidParamsError": (t.INVALID_PARAMS, None),
    "InternalError": (t.INTERNAL_ERROR, None),
    "HeaderMismatchError": (t.HEADER_MISMATCH, "header_mismatch"),
    "MissingRequiredClientCapabilityError": (
        t.MISSING_CLIENT_CAPABILITY,
        "missing_client_capability",
    ),
    "UnsupportedProtocolVersionError": (
        t.UNSUPPORTED_PROTOCOL_VERSION,
        "unsupported_protocol_version",
    ),
    "URLElicitationRequiredError": (t.URL_ELICITATION_REQUIRED, None),
}
"""A schema's error: our constant, and its row of ERRORS where the code differs between revisions.
JSON-RPC's own five hold always, though only the newest schema names them; the data of errors is
plain JSON, made where the error is raised."""

FROM_PROSE = {
    "resource_not_found": "no schema names the code of a resource that is not there",
}
"""Rows of ERRORS that no schema has."""
