"""What the migrator knows: spellings of the official SDK and of FastMCP, and what replaces them.

The migration pages of the guide are made from these tables.
"""

from __future__ import annotations

from typing import Final, NamedTuple

MARK: Final = "# interlock: "
"""The beginning of each comment that the migrator leaves for a person."""

PEERS: Final = ("mcp", "mcp_types", "fastmcp")
"""The packages that are migrated from: the official SDK 1.x and 2.x, and FastMCP 2 to 4."""


class Change(NamedTuple):
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

NAMES: Final[dict[str, Change]] = {
    # servers
    "FastMCP": Change("interlock.Server"),
    "MCPServer": Change("interlock.Server"),
    "Server": Change("interlock.Server"),
    "Context": Change("interlock.Context"),
    "Image": Change("interlock.Image"),
    "Audio": Change("interlock.Audio"),
    "File": Change("interlock.File"),
    "ToolResult": Change("interlock.ToolResult"),
    "Depends": Change("interlock.Depends"),
    "get_context": Change("interlock.get_context"),
    "UserMessage": Change("interlock.user"),
    "AssistantMessage": Change("interlock.assistant"),
    "Icon": Change("interlock.Icon"),
    # errors
    "ToolError": Change("interlock.ToolError"),
    "McpError": Change("interlock.McpError"),
    "MCPError": Change("interlock.McpError"),
    "ResourceError": Change("interlock.ToolError"),
    # clients
    "Client": Change("interlock.Client"),
    "ClientSession": Change("interlock.Client"),
    "StdioServerParameters": Change("interlock.Stdio"),
    "StdioTransport": Change("interlock.Stdio"),
    "StreamableHttpTransport": Change("interlock.Http"),
    "SSETransport": Change("interlock.Http"),
    "create_connected_server_and_client_session": Change("interlock.Client"),
    # types whose name differs
    "TextResourceContents": Change("interlock.types.ResourceContents"),
    "BlobResourceContents": Change("interlock.types.ResourceContents"),
    "ResourceTemplateReference": Change("interlock.types.ResourceTemplateReference"),
    "ResourceReference": Change("interlock.types.ResourceTemplateReference"),
    "Content": Change("interlock.types.ContentBlock"),
    "ServerSession": Change(),
    "NotificationOptions": Change(),
    "InitializationOptions": Change(),
    "stdio_server": Change(),
    "CurrentContext": Change(),
    # what a person moves
    "ErrorData": Change(mark="McpError takes the code, the message and the data themselves"),
    "RequestContext": Change(mark="callbacks of clients get no context: see Answers(...)"),
    "AuthSettings": Change(mark=_AUTH),
    "TokenVerifier": Change(mark=_AUTH),
    "AccessToken": Change(mark=_AUTH),
    "OAuthProvider": Change(mark=_AUTH),
    "BearerAuthProvider": Change(mark=_AUTH),
    "JWTVerifier": Change(mark=_AUTH),
    "StaticTokenVerifier": Change(mark=_AUTH),
    "get_access_token": Change(mark="use ctx.principal, which the guard has verified"),
    "get_http_headers": Change(mark="use ctx.request.headers; ctx.request is None on stdio"),
    "get_http_request": Change(mark="use ctx.request, which is None on stdio"),
    "Middleware": Change(mark=_MIDDLEWARE),
    "MiddlewareContext": Change(mark=_MIDDLEWARE),
    "ServerMiddleware": Change(mark=_MIDDLEWARE),
    "CallNext": Change(mark=_MIDDLEWARE),
    "HandlerResult": Change(mark=_MIDDLEWARE),
    "RouteMap": Change(mark=_OPENAPI),
    "MCPType": Change(mark=_OPENAPI),
    "AcceptedElicitation": Change(mark=_ANSWERS),
    "DeclinedElicitation": Change(mark=_ANSWERS),
    "CancelledElicitation": Change(mark=_ANSWERS),
    "ElicitationResult": Change(mark=_ANSWERS),
    "Elicit": Change(mark="ask inside the function: await ctx.elicit(message, Type)"),
    "Resolve": Change(mark="use Depends(function), or ask with await ctx.elicit(message, Type)"),
    "Progress": Change(mark="use ctx.progress(done, total, message)"),
    "SseServerTransport": Change(mark='use server.run("http", legacy_sse=True)'),
    "StreamableHTTPSessionManager": Change(
        mark="use server.http_app(): the app needs no session manager and no lifespan"
    ),
    "TransportSecuritySettings": Change(mark="use the options hosts= and origins="),
    "ResourceNotFoundError": Change(mark="return None from the resource: it does not exist"),
    "NotFoundError": Change(mark="clients get McpError; a resource that does not exist is None"),
    "ClientSessionGroup": Change(mark="a Client of a configuration with several servers"),
    "create_proxy": Change(mark="server.mount(TARGET), or interlock bridge"),
    "FastMCPProxy": Change(mark="server.mount(TARGET), or interlock bridge"),
}
"""Classes and functions by their last name, whichever module of a peer they are imported from."""

SERVER_OPTIONS: Final[dict[str, Change]] = {
    "name": Change("name"),
    "version": Change("version"),
    "instructions": Change("instructions"),
    "lifespan": Change("lifespan"),
    "title": Change("info.title"),
    "description": Change("info.description"),
    "website_url": Change("info.website_url"),
    "icons": Change("info.icons"),
    "host": Change("run.host"),
    "port": Change("run.port"),
    "streamable_http_path": Change("run.path"),
    "stateless_http": Change("run.sessions"),
    "json_response": Change(),
    "debug": Change(),
    "log_level": Change(),
    "dependencies": Change(),
    "sse_path": Change(mark="the legacy endpoints are at /sse and /messages"),
    "message_path": Change(mark="the legacy endpoints are at /sse and /messages"),
    "mount_path": Change(mark="mount http_app() at the path instead"),
    "warn_on_duplicate_tools": Change(),
    "warn_on_duplicate_resources": Change(),
    "warn_on_duplicate_prompts": Change(),
    "warn_on_duplicates": Change(),
    "on_duplicate_tools": Change(mark="a second feature of one name is an error"),
    "on_duplicate_resources": Change(mark="a second feature of one name is an error"),
    "on_duplicate_prompts": Change(mark="a second feature of one name is an error"),
    "on_duplicate": Change(mark="a second feature of one name is an error"),
    "mask_error_details": Change(),
    "strict_input_validation": Change("lenient.not"),
    "include_fastmcp_meta": Change(),
    "tool_serializer": Change(mark="return ToolResult(data, text): each tool writes its own text"),
    "tools": Change(mark="add each with server.add_tool(function)"),
    "prompts": Change(mark="add each with server.add_prompt(function)"),
    "resources": Change(mark="add each with server.add_resource(uri, content)"),
    "middleware": Change(mark=_MIDDLEWARE),
    "auth": Change(mark=_AUTH),
    "token_verifier": Change(mark=_AUTH),
    "auth_server_provider": Change(mark=_AUTH),
    "transport_security": Change("run.security"),
    "event_store": Change(mark="give run() a store: store='sqlite:///FILE'"),
    "retry_interval": Change(mark="give run() retry_ms="),
    "subscriptions": Change(mark="leave it out: a list that never changes is quiet"),
    "include_tags": Change(mark="use server.disable(tags=...)"),
    "exclude_tags": Change(mark="use server.disable(tags=...)"),
    "tasks": Change(mark="give the server extensions=[Tasks()] and the tools task='optional'"),
}
"""Options of the constructors: `run.X` moves to `run()`, `info.X` to `info=ServerInfo(...)`."""

RUN_OPTIONS: Final[dict[str, Change]] = {
    "transport": Change("transport"),
    "host": Change("host"),
    "port": Change("port"),
    "path": Change("path"),
    "streamable_http_path": Change("path"),
    "stateless_http": Change("sessions"),
    "stateless": Change("sessions"),
    "json_response": Change(),
    "log_level": Change(),
    "show_banner": Change(),
    "transport_security": Change("security"),
    "middleware": Change(mark="wrap http_app() in the ASGI middleware"),
    "uvicorn_config": Change(mark="Interlock has a server of its own: see the options of run()"),
    "mount_path": Change(mark="mount http_app() at the path instead"),
    "sse_path": Change(mark="the legacy endpoints are at /sse and /messages"),
    "message_path": Change(mark="the legacy endpoints are at /sse and /messages"),
    "event_store": Change(mark="give a store: store='sqlite:///FILE'"),
    "retry_interval": Change("retry_ms"),
    "host_origin_protection": Change(),
    "allowed_hosts": Change("hosts"),
    "allowed_origins": Change("origins"),
}
"""Options of `run`, `run_async`, `http_app` and `streamable_http_app`."""

TOOL_OPTIONS: Final[dict[str, Change]] = {
    "name": Change("name"),
    "title": Change("title"),
    "description": Change("description"),
    "annotations": Change("annotations"),
    "icons": Change("icons"),
    "meta": Change("meta"),
    "tags": Change("tags"),
    "timeout": Change("timeout"),
    "input_schema": Change("input_schema"),
    "output_schema": Change("output_schema"),
    "run_in_thread": Change("thread"),
    "name_or_fn": Change("name"),
    "uri": Change("uri"),
    "mime_type": Change("mime_type"),
    "structured_output": Change(),
    "enabled": Change(mark="call server.disable(NAME) after the definition"),
    "exclude_args": Change(mark="take these values from Depends(...) or the context instead"),
    "serializer": Change(mark="return ToolResult(data, text) instead"),
    "task": Change("task"),
    "version": Change(mark="a name stands for one version here: put the version into the name"),
    "auth": Change(mark="use scopes=, which callers without them do not see"),
    "app": Change(mark="use server.app(FILE, tool=function)"),
    "ui": Change(mark="use server.app(FILE, tool=function)"),
    "security": Change(),
}
"""Options of the decorators of tools, prompts and resources."""

CONTEXT: Final[dict[str, Change]] = {
    "request_context.lifespan_context": Change("lifespan_state"),
    "lifespan_context": Change("lifespan_state"),
    "meta": Change("meta"),
    "request_context.request": Change(
        "request", "this HttpRequest has headers, client, method and path"
    ),
    "request_context.meta": Change("meta"),
    "request_context.session": Change(mark="questions are methods of ctx: elicit, sample, roots"),
    "request_context": Change(mark="see ctx.caller, ctx.request and ctx.lifespan_state"),
    "session.create_message": Change("sample"),
    "session.list_roots": Change("roots", "this returns the list of roots itself"),
    "session.elicit": Change("elicit", _ANSWERS),
    "session.send_resource_list_changed": Change(mark="adding and removing announces it already"),
    "session.send_tool_list_changed": Change(mark="adding and removing announces it already"),
    "session.send_prompt_list_changed": Change(mark="adding and removing announces it already"),
    "session.send_resource_updated": Change(mark="ctx.updated(uri), without await"),
    "session.send_log_message": Change(mark="ctx.log.write(level, data, logger), without await"),
    "session.send_progress_notification": Change(mark="ctx.progress(done, total), without await"),
    "session": Change(mark="its questions are methods of ctx, and its state is ctx.session_state"),
    "notify_prompts_changed": Change(mark="adding and removing announces it already: leave it out"),
    "notify_tools_changed": Change(mark="adding and removing announces it already: leave it out"),
    "notify_resources_changed": Change(
        mark="adding and removing announces it already: leave it out"
    ),
    "notify_resource_updated": Change(mark="ctx.updated(uri), without await"),
    "send_tool_list_changed": Change(mark="adding and removing announces it already: leave it out"),
    "list_roots": Change("roots"),
    "fastmcp": Change("server"),
    "mcp_server": Change("server"),
    "elicit": Change("elicit", _ANSWERS),
    "elicit_url": Change("elicit_url", "it raises Declined or Cancelled; there is no action"),
    "sample": Change("sample"),
    "read_resource": Change(
        "read_resource", "this returns a list of ResourceContents, with text or blob"
    ),
    "log": Change("log.write", "the level comes first: ctx.log.write(level, data, logger)"),
    "client_id": Change(mark="use ctx.principal, which the guard has verified"),
    "request_id": Change(mark="a request has no id for tools; make one if you log it"),
    "session_id": Change(mark="use ctx.caller.session; calls of 2026-07-28 have no session"),
    "get_state": Change(mark="use await ctx.session_state.get(key)"),
    "set_state": Change(mark="use await ctx.session_state.set(key, value)"),
    "get_http_request": Change(mark="use ctx.request, which is None on stdio"),
    "list_tools": Change(mark="use ctx.server"),
    "get_prompt": Change(mark="call the function of the prompt"),
    "close_sse_stream": Change(mark="await ctx.disconnect()"),
    "headers": Change(mark="use ctx.request.headers; ctx.request is None on stdio"),
}
"""Attributes and methods of the context. The longest path counts."""

CONTEXT_KEPT: Final = frozenset(
    {"info", "debug", "warning", "error", "report_progress", "progress", "server"}
)
"""Methods of the context that Interlock also has under the same name."""

SAMPLE_OPTIONS: Final[dict[str, Change]] = {
    "messages": Change("messages"),
    "system_prompt": Change("system"),
    "max_tokens": Change("max_tokens"),
    "temperature": Change("temperature"),
    "stop_sequences": Change("stop"),
    "model_preferences": Change("preferences"),
    "include_context": Change("include_context"),
    "metadata": Change("metadata"),
    "result_type": Change("result_type"),
    "tools": Change("tools", "the tools are not run: the answer has tool uses, which you run"),
    "tool_choice": Change("tool_choice"),
    "related_request_id": Change(),
}
"""Options of `ctx.sample` and `session.create_message`."""

SERVER_METHODS: Final[dict[str, Change]] = {
    "sse_app": Change(mark="http_app(legacy_sse=True) serves /sse beside the endpoint"),
    "session_manager": Change(mark="leave it out: the app starts and ends by itself"),
    "get_tools": Change(mark="open a Client(server) and await client.list_tools()"),
    "get_resources": Change(mark="open a Client(server) and await client.list_resources()"),
    "get_prompts": Change(mark="open a Client(server) and await client.list_prompts()"),
    "get_tool": Change(mark="open a Client(server) and await client.list_tools()"),
    "list_tools": Change(mark="open a Client(server) and await client.list_tools()"),
    "list_resources": Change(mark="open a Client(server) and await client.list_resources()"),
    "list_resource_templates": Change(
        mark="open a Client(server) and await client.list_resource_templates()"
    ),
    "list_prompts": Change(mark="open a Client(server) and await client.list_prompts()"),
    "get_prompt": Change(mark="open a Client(server) and await client.get_prompt(...)"),
    "call_tool": Change(mark="open a Client(server) and await client.call_tool(...)"),
    "read_resource": Change(mark="open a Client(server) and await client.read_resource(...)"),
    "add_middleware": Change(mark=_MIDDLEWARE),
    "import_server": Change(
        mark="use mount(server, prefix=...): a tool is then named PREFIX__NAME, not PREFIX_NAME"
    ),
    "from_openapi": Change(mark=_OPENAPI),
    "from_fastapi": Change(mark=_OPENAPI),
    "as_proxy": Change(mark="mount the target: Server(NAME).mount(TARGET)"),
    "add_provider": Change(mark="mount a Source: server.mount(SOURCE)"),
    "add_transform": Change(mark="mount(..., change={NAME: Transform(...)})"),
    "add_template": Change(mark="use add_resource(uri_template, function)"),
    "settings": Change(mark="give these settings to run() as options"),
    "get_context": Change(mark="use get_context() of interlock"),
    "request_context": Change("get_context()"),
    "_mcp_server": Change(mark="there is no inner server: use the public methods of Server"),
    "_tool_manager": Change(mark="there is no tool manager: use the public methods of Server"),
    "_call_tool_mcp": Change(mark="open a Client(server) and await client.call_tool(...)"),
    "_read_resource_mcp": Change(mark="open a Client(server) and await client.read_resource(...)"),
    "set_logging_level": Change(mark="leave it out: each client sets its own level"),
    "progress_notification": Change(mark="use ctx.progress(done, total)"),
    "subscribe_resource": Change(mark="leave it out: clients can subscribe to every resource"),
    "unsubscribe_resource": Change(mark="leave it out: clients can subscribe to every resource"),
    "get_capabilities": Change(mark="leave it out: capabilities follow from the features"),
    "create_initialization_options": Change(mark="leave it out"),
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

CLIENT_METHODS: Final[dict[str, Change]] = {
    "initialize": Change(),
    "send_notification": Change(mark="use await client.notify(method, params)"),
    "send_request": Change(mark="use await client.request(method, params)"),
    "send_roots_list_changed": Change(mark="use client.roots_changed(), without await"),
    "send_ping": Change("ping"),
    "set_logging_level": Change("set_log_level"),
    "send_progress_notification": Change(mark="clients send no progress here"),
    "subscribe_resource": Change(mark="use async with client.watch(...)"),
    "unsubscribe_resource": Change(mark="leave the block of client.watch(...)"),
    "call_tool_mcp": Change("call_tool"),
    "list_tools_mcp": Change(mark="list_tools() returns the whole list"),
    "get_server_capabilities": Change(mark="use client.server_capabilities"),
    "initialize_result": Change(
        mark="use client.server_info, client.server_capabilities and client.instructions"
    ),
    "is_connected": Change(mark="use client.connected"),
    "transport": Change(mark="the transport of a client is not public"),
}
"""Methods of client sessions."""

CLIENT_LISTS: Final[dict[str, str]] = {
    "list_tools": "tools",
    "list_prompts": "prompts",
    "list_resources": "resources",
    "list_resource_templates": "resource_templates",
}
"""Methods of clients that return the list itself here, and the attribute that has it elsewhere."""

CLIENT_OPTIONS: Final[dict[str, Change]] = {
    "timeout": Change("timeout"),
    "read_timeout_seconds": Change("timeout", "the timeout is a number of seconds"),
    "transport": Change("target"),
    "auth": Change("auth", "auth is an object of interlock.auth, or token= for a bearer token"),
    "sampling_callback": Change(mark="use answers=Answers(sample=function); it gets the params"),
    "elicitation_callback": Change(mark="use answers=Answers(elicit=function); it gets the params"),
    "list_roots_callback": Change(mark="use answers=Answers(roots=[...])"),
    "sampling_handler": Change(mark="use answers=Answers(sample=function); it gets the params"),
    "elicitation_handler": Change(mark="use answers=Answers(elicit=function); it gets the params"),
    "roots": Change(mark="use answers=Answers(roots=[...])"),
    "logging_callback": Change("on_log"),
    "log_handler": Change("on_log"),
    "message_handler": Change(
        "on_notification", "it is called with notifications only, as (method, params)"
    ),
    "progress_handler": Change(mark="use on_progress= of call_tool"),
    "client_info": Change("info"),
    "name": Change(),
    "mode": Change(),
    "raise_exceptions": Change(),
    "init_timeout": Change(),
    "auto_initialize": Change(),
}
"""Options of clients and client sessions."""

CALL_OPTIONS: Final[dict[str, Change]] = {
    "name": Change("name"),
    "arguments": Change("arguments"),
    "timeout": Change("timeout"),
    "meta": Change("meta"),
    "read_timeout_seconds": Change("timeout", "the timeout is a number of seconds"),
    "progress_callback": Change("on_progress"),
    "progress_handler": Change("on_progress"),
    "raise_on_error": Change(),
}
"""Options of `call_tool`."""
