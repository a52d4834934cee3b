"""What the migrator knows: spellings of the official SDK and of FastMCP, and what replaces them.

The migration pages of the guide are made from these tables.
"""

from __future__ import annotations

from typing import Final, NamedTuple

MARK: Final = "# interlock: "
"""The beginning of each comment that the migrator leaves for a person."""

PEERS: Final = ("mcp", "mcp_types", "fastmcp")
"""The packages that are migrated from: the official SDK 1.x and 2.x, and FastMCP 2 to 4."""


class Respelling(NamedTuple):
    """What happens to a name, an option, or an attribute.

    Attributes:
        new: What replaces it: a name, or a qualified name. Empty: it is left out.
        mark: What a person must know or do; empty if nothing.
    """

    new: str = ""
    mark: str = ""


_AUTH = (
    "authorization works in another way: give run() or http_app() a guard, such as "
    "guard=Guard(Jwt(...)) of interlock.auth"
)
_MIDDLEWARE = "middleware is a function from a handler to a handler here: Server(middleware=[...])"
_OPENAPI = "give the document to OpenApi(...) and mount it: server.mount(OpenApi(doc, base=URL))"
_ANSWERS = (
    "ctx.elicit returns the value, and raises Declined or Cancelled instead of returning an action"
)

NAMES: Final[dict[str, Respelling]] = {
    # servers
    "FastMCP": Respelling("interlock.Server"),
    "MCPServer": Respelling("interlock.Server"),
    "Server": Respelling("interlock.Server"),
    "Context": Respelling("interlock.Context"),
    "Image": Respelling("interlock.Image"),
    "Audio": Respelling("interlock.Audio"),
    "File": Respelling("interlock.File"),
    "ToolResult": Respelling("interlock.ToolResult"),
    "Depends": Respelling("interlock.Depends"),
    "get_context": Respelling("interlock.get_context"),
    "UserMessage": Respelling("interlock.user"),
    "AssistantMessage": Respelling("interlock.assistant"),
    "Icon": Respelling("interlock.Icon"),
    # errors
    "ToolError": Respelling("interlock.ToolError"),
    "McpError": Respelling("interlock.McpError"),
    "MCPError": Respelling("interlock.McpError"),
    "ResourceError": Respelling("interlock.ToolError"),
    # clients
    "Client": Respelling("interlock.Client"),
    "ClientSession": Respelling("interlock.Client"),
    "StdioServerParameters": Respelling("interlock.Stdio"),
    "StdioTransport": Respelling("interlock.Stdio"),
    "StreamableHttpTransport": Respelling("interlock.Http"),
    "SSETransport": Respelling("interlock.Http"),
    "create_connected_server_and_client_session": Respelling("interlock.Client"),
    # types whose name differs
    "TextResourceContents": Respelling("interlock.types.ResourceContents"),
    "BlobResourceContents": Respelling("interlock.types.ResourceContents"),
    "ResourceTemplateReference": Respelling("interlock.types.ResourceTemplateReference"),
    "ResourceReference": Respelling("interlock.types.ResourceTemplateReference"),
    "Content": Respelling("interlock.types.ContentBlock"),
    "ServerSession": Respelling(),
    "NotificationOptions": Respelling(),
    "InitializationOptions": Respelling(),
    "stdio_server": Respelling(),
    "CurrentContext": Respelling(),
    # what a person moves
    "ErrorData": Respelling(mark="McpError takes the code, the message and the data themselves"),
    "RequestContext": Respelling(mark="callbacks of clients get no context: see Answers(...)"),
    "AuthSettings": Respelling(mark=_AUTH),
    "TokenVerifier": Respelling(mark=_AUTH),
    "AccessToken": Respelling(mark=_AUTH),
    "OAuthProvider": Respelling(mark=_AUTH),
    "BearerAuthProvider": Respelling(mark=_AUTH),
    "JWTVerifier": Respelling(mark=_AUTH),
    "StaticTokenVerifier": Respelling(mark=_AUTH),
    "get_access_token": Respelling(mark="use ctx.principal, which the guard has verified"),
    "get_http_headers": Respelling(mark="use ctx.request.headers; ctx.request is None on stdio"),
    "get_http_request": Respelling(mark="use ctx.request, which is None on stdio"),
    "Middleware": Respelling(mark=_MIDDLEWARE),
    "MiddlewareContext": Respelling(mark=_MIDDLEWARE),
    "ServerMiddleware": Respelling(mark=_MIDDLEWARE),
    "CallNext": Respelling(mark=_MIDDLEWARE),
    "HandlerResult": Respelling(mark=_MIDDLEWARE),
    "RouteMap": Respelling(mark=_OPENAPI),
    "MCPType": Respelling(mark=_OPENAPI),
    "AcceptedElicitation": Respelling(mark=_ANSWERS),
    "DeclinedElicitation": Respelling(mark=_ANSWERS),
    "CancelledElicitation": Respelling(mark=_ANSWERS),
    "ElicitationResult": Respelling(mark=_ANSWERS),
    "Elicit": Respelling(mark="ask inside the function: await ctx.elicit(message, Type)"),
    "Resolve": Respelling(
        mark="use Depends(function), or ask with await ctx.elicit(message, Type)"
    ),
    "Progress": Respelling(mark="use ctx.progress(done, total, message)"),
    "SseServerTransport": Respelling(mark='use server.run("http", legacy_sse=True)'),
    "StreamableHTTPSessionManager": Respelling(
        mark="use server.http_app(): the app needs no session manager and no lifespan"
    ),
    "TransportSecuritySettings": Respelling(mark="use the options hosts= and origins="),
    "ResourceNotFoundError": Respelling(mark="return None from the resource: it does not exist"),
    "NotFoundError": Respelling(
        mark="clients get McpError; a resource that does not exist is None"
    ),
    "ClientSessionGroup": Respelling(mark="a Client of a configuration with several servers"),
    "create_proxy": Respelling(mark="server.mount(TARGET), or interlock bridge"),
    "FastMCPProxy": Respelling(mark="server.mount(TARGET), or interlock bridge"),
}
"""Classes and functions by their last name, whichever module of a peer they are imported from."""

SERVER_OPTIONS: Final[dict[str, Respelling]] = {
    "name": Respelling("name"),
    "version": Respelling("version"),
    "instructions": Respelling("instructions"),
    "lifespan": Respelling("lifespan"),
    "title": Respelling("info.title"),
    "description": Respelling("info.description"),
    "website_url": Respelling("info.website_url"),
    "icons": Respelling("info.icons"),
    "host": Respelling("run.host"),
    "port": Respelling("run.port"),
    "streamable_http_path": Respelling("run.path"),
    "stateless_http": Respelling("run.sessions"),
    "json_response": Respelling(),
    "debug": Respelling(),
    "log_level": Respelling(),
    "dependencies": Respelling(),
    "sse_path": Respelling(mark="the legacy endpoints are at /sse and /messages"),
    "message_path": Respelling(mark="the legacy endpoints are at /sse and /messages"),
    "mount_path": Respelling(mark="mount http_app() at the path instead"),
    "warn_on_duplicate_tools": Respelling(),
    "warn_on_duplicate_resources": Respelling(),
    "warn_on_duplicate_prompts": Respelling(),
    "warn_on_duplicates": Respelling(),
    "on_duplicate_tools": Respelling(mark="a second feature of one name is an error"),
    "on_duplicate_resources": Respelling(mark="a second feature of one name is an error"),
    "on_duplicate_prompts": Respelling(mark="a second feature of one name is an error"),
    "on_duplicate": Respelling(mark="a second feature of one name is an error"),
    "mask_error_details": Respelling(),
    "strict_input_validation": Respelling("lenient.not"),
    "include_fastmcp_meta": Respelling(),
    "tool_serializer": Respelling(
        mark="return ToolResult(data, text): each tool writes its own text"
    ),
    "tools": Respelling(mark="add each with server.add_tool(function)"),
    "prompts": Respelling(mark="add each with server.add_prompt(function)"),
    "resources": Respelling(mark="add each with server.add_resource(uri, content)"),
    "middleware": Respelling(mark=_MIDDLEWARE),
    "auth": Respelling(mark=_AUTH),
    "token_verifier": Respelling(mark=_AUTH),
    "auth_server_provider": Respelling(mark=_AUTH),
    "transport_security": Respelling("run.security"),
    "event_store": Respelling(mark="give run() a store: store='sqlite:///FILE'"),
    "retry_interval": Respelling(mark="give run() retry_ms="),
    "subscriptions": Respelling(mark="leave it out: a list that never changes is quiet"),
    "include_tags": Respelling(mark="use server.disable(tags=...)"),
    "exclude_tags": Respelling(mark="use server.disable(tags=...)"),
    "tasks": Respelling(mark="give the server extensions=[Tasks()] and the tools task='optional'"),
}
"""Options of the constructors: `run.X` moves to `run()`, `info.X` to `info=ServerInfo(...)`."""

RUN_OPTIONS: Final[dict[str, Respelling]] = {
    "transport": Respelling("transport"),
    "host": Respelling("host"),
    "port": Respelling("port"),
    "path": Respelling("path"),
    "streamable_http_path": Respelling("path"),
    "stateless_http": Respelling("sessions"),
    "stateless": Respelling("sessions"),
    "json_response": Respelling(),
    "log_level": Respelling(),
    "show_banner": Respelling(),
    "transport_security": Respelling("security"),
    "middleware": Respelling(mark="wrap http_app() in the ASGI middleware"),
    "uvicorn_config": Respelling(
        mark="Interlock has a server of its own: see the options of run()"
    ),
    "mount_path": Respelling(mark="mount http_app() at the path instead"),
    "sse_path": Respelling(mark="the legacy endpoints are at /sse and /messages"),
    "message_path": Respelling(mark="the legacy endpoints are at /sse and /messages"),
    "event_store": Respelling(mark="give a store: store='sqlite:///FILE'"),
    "retry_interval": Respelling("retry_ms"),
    "host_origin_protection": Respelling(),
    "allowed_hosts": Respelling("hosts"),
    "allowed_origins": Respelling("origins"),
}
"""Options of `run`, `run_async`, `http_app` and `streamable_http_app`."""

TOOL_OPTIONS: Final[dict[str, Respelling]] = {
    "name": Respelling("name"),
    "title": Respelling("title"),
    "description": Respelling("description"),
    "annotations": Respelling("annotations"),
    "icons": Respelling("icons"),
    "meta": Respelling("meta"),
    "tags": Respelling("tags"),
    "timeout": Respelling("timeout"),
    "input_schema": Respelling("input_schema"),
    "output_schema": Respelling("output_schema"),
    "run_in_thread": Respelling("thread"),
    "name_or_fn": Respelling("name"),
    "uri": Respelling("uri"),
    "mime_type": Respelling("mime_type"),
    "structured_output": Respelling(),
    "enabled": Respelling(mark="call server.disable(NAME) after the definition"),
    "exclude_args": Respelling(mark="take these values from Depends(...) or the context instead"),
    "serializer": Respelling(mark="return ToolResult(data, text) instead"),
    "task": Respelling("task"),
    "version": Respelling(
        "version", "a server has one feature of a name: mount another server for the other version"
    ),
    "auth": Respelling(mark="use scopes=, which callers without them do not see"),
    "app": Respelling(mark="use server.app(FILE, tool=function)"),
    "ui": Respelling(mark="use server.app(FILE, tool=function)"),
    "security": Respelling(),
}
"""Options of the decorators of tools, prompts and resources."""

CONTEXT: Final[dict[str, Respelling]] = {
    "request_context.lifespan_context": Respelling("lifespan_state"),
    "lifespan_context": Respelling("lifespan_state"),
    "meta": Respelling("meta"),
    "request_context.request": Respelling(
        "request", "this HttpRequest has headers, client, method and path"
    ),
    "request_context.meta": Respelling("meta"),
    "request_context.session": Respelling(
        mark="questions are methods of ctx: elicit, sample, roots"
    ),
    "request_context": Respelling(mark="see ctx.caller, ctx.request and ctx.lifespan_state"),
    "session.create_message": Respelling("sample"),
    "session.list_roots": Respelling("roots", "this returns the list of roots itself"),
    "session.elicit": Respelling("elicit", _ANSWERS),
    "session.send_resource_list_changed": Respelling(
        mark="adding and removing announces it already"
    ),
    "session.send_tool_list_changed": Respelling(mark="adding and removing announces it already"),
    "session.send_prompt_list_changed": Respelling(mark="adding and removing announces it already"),
    "session.send_resource_updated": Respelling(mark="ctx.updated(uri), without await"),
    "session.send_log_message": Respelling(
        mark="ctx.log.write(level, data, logger), without await"
    ),
    "session.send_progress_notification": Respelling(
        mark="ctx.progress(done, total), without await"
    ),
    "session": Respelling(
        mark="its questions are methods of ctx, and its state is ctx.session_state"
    ),
    "notify_prompts_changed": Respelling(
        mark="adding and removing announces it already: leave it out"
    ),
    "notify_tools_changed": Respelling(
        mark="adding and removing announces it already: leave it out"
    ),
    "notify_resources_changed": Respelling(
        mark="adding and removing announces it already: leave it out"
    ),
    "notify_resource_updated": Respelling(mark="ctx.updated(uri), without await"),
    "send_tool_list_changed": Respelling(
        mark="adding and removing announces it already: leave it out"
    ),
    "list_roots": Respelling("roots"),
    "fastmcp": Respelling("server"),
    "mcp_server": Respelling("server"),
    "elicit": Respelling("elicit", _ANSWERS),
    "elicit_url": Respelling("elicit_url", "it raises Declined or Cancelled; there is no action"),
    "sample": Respelling("sample"),
    "read_resource": Respelling(
        "read_resource", "this returns a list of ResourceContents, with text or blob"
    ),
    "log": Respelling("log.write", "the level comes first: ctx.log.write(level, data, logger)"),
    "client_id": Respelling(mark="use ctx.principal, which the guard has verified"),
    "request_id": Respelling(mark="a request has no id for tools; make one if you log it"),
    "session_id": Respelling(mark="use ctx.caller.session; calls of 2026-07-28 have no session"),
    "get_state": Respelling(mark="use await ctx.session_state.get(key)"),
    "set_state": Respelling(mark="use await ctx.session_state.set(key, value)"),
    "get_http_request": Respelling(mark="use ctx.request, which is None on stdio"),
    "list_tools": Respelling(mark="use ctx.server"),
    "get_prompt": Respelling(mark="call the function of the prompt"),
    "close_sse_stream": Respelling(mark="await ctx.disconnect()"),
    "headers": Respelling(mark="use ctx.request.headers; ctx.request is None on stdio"),
}
"""Attributes and methods of the context. The longest path counts."""

CONTEXT_KEPT: Final = frozenset(
    {"info", "debug", "warning", "error", "report_progress", "progress", "server"}
)
"""Methods of the context that Interlock also has under the same name."""

SAMPLE_OPTIONS: Final[dict[str, Respelling]] = {
    "messages": Respelling("messages"),
    "system_prompt": Respelling("system"),
    "max_tokens": Respelling("max_tokens"),
    "temperature": Respelling("temperature"),
    "stop_sequences": Respelling("stop"),
    "model_preferences": Respelling("preferences"),
    "include_context": Respelling("include_context"),
    "metadata": Respelling("metadata"),
    "result_type": Respelling("result_type"),
    "tools": Respelling("tools", "the tools are not run: the answer has tool uses, which you run"),
    "tool_choice": Respelling("tool_choice"),
    "related_request_id": Respelling(),
}
"""Options of `ctx.sample` and `session.create_message`."""

SERVER_METHODS: Final[dict[str, Respelling]] = {
    "sse_app": Respelling(mark="http_app(legacy_sse=True) serves /sse beside the endpoint"),
    "session_manager": Respelling(mark="leave it out: the app starts and ends by itself"),
    "get_tools": Respelling(mark="open a Client(server) and await client.list_tools()"),
    "get_resources": Respelling(mark="open a Client(server) and await client.list_resources()"),
    "get_prompts": Respelling(mark="open a Client(server) and await client.list_prompts()"),
    "get_tool": Respelling(mark="open a Client(server) and await client.list_tools()"),
    "list_tools": Respelling(mark="open a Client(server) and await client.list_tools()"),
    "list_resources": Respelling(mark="open a Client(server) and await client.list_resources()"),
    "list_resource_templates": Respelling(
        mark="open a Client(server) and await client.list_resource_templates()"
    ),
    "list_prompts": Respelling(mark="open a Client(server) and await client.list_prompts()"),
    "get_prompt": Respelling(mark="open a Client(server) and await client.get_prompt(...)"),
    "call_tool": Respelling(mark="open a Client(server) and await client.call_tool(...)"),
    "read_resource": Respelling(mark="open a Client(server) and await client.read_resource(...)"),
    "add_middleware": Respelling(mark=_MIDDLEWARE),
    "import_server": Respelling(
        mark="use mount(server, prefix=...): a tool is then named PREFIX__NAME, not PREFIX_NAME"
    ),
    "from_openapi": Respelling(mark=_OPENAPI),
    "from_fastapi": Respelling(mark=_OPENAPI),
    "as_proxy": Respelling(mark="mount the target: Server(NAME).mount(TARGET)"),
    "add_provider": Respelling(mark="mount a Source: server.mount(SOURCE)"),
    "add_transform": Respelling(mark="mount(..., change={NAME: Transform(...)})"),
    "add_template": Respelling(mark="use add_resource(uri_template, function)"),
    "settings": Respelling(mark="give these settings to run() as options"),
    "get_context": Respelling(mark="use get_context() of interlock"),
    "request_context": Respelling("get_context()"),
    "_mcp_server": Respelling(mark="there is no inner server: use the public methods of Server"),
    "_tool_manager": Respelling(mark="there is no tool manager: use the public methods of Server"),
    "_call_tool_mcp": Respelling(mark="open a Client(server) and await client.call_tool(...)"),
    "_read_resource_mcp": Respelling(
        mark="open a Client(server) and await client.read_resource(...)"
    ),
    "set_logging_level": Respelling(mark="leave it out: each client sets its own level"),
    "progress_notification": Respelling(mark="use ctx.progress(done, total)"),
    "subscribe_resource": Respelling(mark="leave it out: clients can subscribe to every resource"),
    "unsubscribe_resource": Respelling(
        mark="leave it out: clients can subscribe to every resource"
    ),
    "get_capabilities": Respelling(mark="leave it out: capabilities follow from the features"),
    "create_initialization_options": Respelling(mark="leave it out"),
}
"""Attributes of servers that do not exist here under the same name and meaning."""

SERVER_METHODS_KEPT: Final = frozenset(
    {
        "add_prompt",
        "add_resource",
        "add_tool",
        "completion",
        "custom_route",
        "disable",
        "enable",
        "http_app",
        "instructions",
        "mount",
        "name",
        "prompt",
        "remove_prompt",
        "remove_resource",
        "remove_tool",
        "resource",
        "run",
        "run_async",
        "run_http_async",
        "run_sse_async",
        "run_stdio_async",
        "run_streamable_http_async",
        "streamable_http_app",
        "tool",
    }
)
"""Methods of servers that the migrator rewrites or that are the same here."""

FIELDS: Final[dict[str, str]] = {
    old: new
    for old, new in (
        ("inputSchema", "input_schema"),
        ("outputSchema", "output_schema"),
        ("structuredContent", "structured_content"),
        ("isError", "is_error"),
        ("mimeType", "mime_type"),
        ("nextCursor", "next_cursor"),
        ("uriTemplate", "uri_template"),
        ("readOnlyHint", "read_only_hint"),
        ("destructiveHint", "destructive_hint"),
        ("idempotentHint", "idempotent_hint"),
        ("openWorldHint", "open_world_hint"),
        ("stopReason", "stop_reason"),
        ("systemPrompt", "system_prompt"),
        ("maxTokens", "max_tokens"),
        ("stopSequences", "stop_sequences"),
        ("modelPreferences", "model_preferences"),
        ("includeContext", "include_context"),
        ("requestedSchema", "requested_schema"),
        ("progressToken", "progress_token"),
        ("protocolVersion", "protocol_version"),
        ("serverInfo", "server_info"),
        ("clientInfo", "client_info"),
        ("websiteUrl", "website_url"),
        ("hasMore", "has_more"),
        ("toolUseId", "tool_use_id"),
        ("costPriority", "cost_priority"),
        ("speedPriority", "speed_priority"),
        ("intelligencePriority", "intelligence_priority"),
        ("lastModified", "last_modified"),
        ("resourceTemplates", "resource_templates"),
        ("requestId", "request_id"),
        ("elicitationId", "elicitation_id"),
        ("taskId", "task_id"),
        ("_meta", "meta"),
    )
}
"""Fields of protocol types in camelCase, and their Python names."""

OPENING: Final = "initialize"
"""The method with which a session of the official SDK begins; here the block does it."""

CLIENT_METHODS: Final[dict[str, Respelling]] = {
    "initialize": Respelling(),
    "send_notification": Respelling(mark="use await client.notify(method, params)"),
    "send_request": Respelling(mark="use await client.request(method, params)"),
    "send_roots_list_changed": Respelling(mark="use client.roots_changed(), without await"),
    "send_ping": Respelling("ping"),
    "set_logging_level": Respelling("set_log_level"),
    "send_progress_notification": Respelling(mark="clients send no progress here"),
    "subscribe_resource": Respelling(mark="use async with client.watch(...)"),
    "unsubscribe_resource": Respelling(mark="leave the block of client.watch(...)"),
    "call_tool_mcp": Respelling("call_tool"),
    "list_tools_mcp": Respelling(mark="list_tools() returns the whole list"),
    "get_server_capabilities": Respelling(mark="use client.server_capabilities"),
    "initialize_result": Respelling(
        mark="use client.server_info, client.server_capabilities and client.instructions"
    ),
    "is_connected": Respelling(mark="use client.connected"),
    "transport": Respelling(mark="the transport of a client is not public"),
}
"""Methods of client sessions."""

CLIENT_LISTS: Final[dict[str, str]] = {
    "list_tools": "tools",
    "list_prompts": "prompts",
    "list_resources": "resources",
    "list_resource_templates": "resource_templates",
}
"""Methods of clients that return the list itself here, and the attribute that has it elsewhere."""

CLIENT_OPTIONS: Final[dict[str, Respelling]] = {
    "timeout": Respelling("timeout"),
    "read_timeout_seconds": Respelling("timeout", "the timeout is a number of seconds"),
    "transport": Respelling("target"),
    "auth": Respelling("auth", "auth is an object of interlock.auth, or token= for a bearer token"),
    "sampling_callback": Respelling(
        mark="use answers=Answers(sample=function); it gets the params"
    ),
    "elicitation_callback": Respelling(
        mark="use answers=Answers(elicit=function); it gets the params"
    ),
    "list_roots_callback": Respelling(mark="use answers=Answers(roots=[...])"),
    "sampling_handler": Respelling(mark="use answers=Answers(sample=function); it gets the params"),
    "elicitation_handler": Respelling(
        mark="use answers=Answers(elicit=function); it gets the params"
    ),
    "roots": Respelling(mark="use answers=Answers(roots=[...])"),
    "logging_callback": Respelling("on_log"),
    "log_handler": Respelling("on_log"),
    "message_handler": Respelling(
        "on_notification", "it is called with notifications only, as (method, params)"
    ),
    "progress_handler": Respelling(mark="use on_progress= of call_tool"),
    "client_info": Respelling("info"),
    "name": Respelling(),
    "mode": Respelling(),
    "raise_exceptions": Respelling(),
    "init_timeout": Respelling(),
    "auto_initialize": Respelling(),
}
"""Options of clients and client sessions."""

CALL_OPTIONS: Final[dict[str, Respelling]] = {
    "name": Respelling("name"),
    "arguments": Respelling("arguments"),
    "timeout": Respelling("timeout"),
    "meta": Respelling("meta"),
    "read_timeout_seconds": Respelling("timeout", "the timeout is a number of seconds"),
    "progress_callback": Respelling("on_progress"),
    "progress_handler": Respelling("on_progress"),
    "raise_on_error": Respelling(),
}
"""Options of `call_tool`."""

ONLY_OFFICIAL: Final = frozenset(
    {
        "AssistantMessage",
        "AuthSettings",
        "ClientSessionGroup",
        "Elicit",
        "ElicitationResult",
        "ResourceReference",
        "UserMessage",
        "auth_server_provider",
        "create_connected_server_and_client_session",
        "elicit_url",
        "get_server_capabilities",
        "mount_path",
        "notify_prompts_changed",
        "notify_resource_updated",
        "notify_resources_changed",
        "notify_tools_changed",
        "progress_notification",
        "session.send_resource_updated",
        "sse_app",
        "warn_on_duplicate_prompts",
        "warn_on_duplicate_resources",
        "warn_on_duplicate_tools",
    }
)
"""What FastMCP does not have."""

ONLY_FASTMCP: Final = frozenset(
    {
        "BearerAuthProvider",
        "CurrentContext",
        "Depends",
        "FastMCPProxy",
        "JWTVerifier",
        "MCPType",
        "MiddlewareContext",
        "NotFoundError",
        "OAuthProvider",
        "RouteMap",
        "SSETransport",
        "StaticTokenVerifier",
        "StdioTransport",
        "StreamableHttpTransport",
        "ToolResult",
        "_call_tool_mcp",
        "_read_resource_mcp",
        "add_middleware",
        "add_provider",
        "add_transform",
        "as_proxy",
        "auto_initialize",
        "call_tool_mcp",
        "create_proxy",
        "elicitation_handler",
        "exclude_args",
        "exclude_tags",
        "from_fastapi",
        "from_openapi",
        "get_http_headers",
        "get_http_request",
        "get_prompts",
        "get_resources",
        "get_state",
        "get_tools",
        "host_origin_protection",
        "import_server",
        "include_fastmcp_meta",
        "include_tags",
        "init_timeout",
        "is_connected",
        "list_tools_mcp",
        "log_handler",
        "mask_error_details",
        "name_or_fn",
        "on_duplicate",
        "on_duplicate_prompts",
        "on_duplicate_resources",
        "on_duplicate_tools",
        "progress_handler",
        "raise_on_error",
        "run_in_thread",
        "sampling_handler",
        "set_state",
        "show_banner",
        "strict_input_validation",
        "tool_serializer",
        "uvicorn_config",
        "warn_on_duplicates",
    }
)
"""What the official SDK does not have."""
