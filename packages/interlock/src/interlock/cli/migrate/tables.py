"""What the migrator knows: spellings of the official SDK and of FastMCP, and what replaces them.

The migration pages of the guide are made from these tables.
"""

from __future__ import annotations

from typing import Final, NamedTuple

MARK: Final = "# interlock: "
"""The beginning of each comment that the migrator leaves for a person."""

PEERS: Final = ("mcp", "mcp_types", "fastmcp")
"""The packages that are migrated from: the official SDK 1.x and 2.x, and FastMCP 2 to 4."""


class SpellingChange(NamedTuple):
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

NAMES: Final[dict[str, SpellingChange]] = {
    # servers
    "FastMCP": SpellingChange("interlock.Server"),
    "MCPServer": SpellingChange("interlock.Server"),
    "Server": SpellingChange("interlock.Server"),
    "Context": SpellingChange("interlock.Context"),
    "Image": SpellingChange("interlock.Image"),
    "Audio": SpellingChange("interlock.Audio"),
    "File": SpellingChange("interlock.File"),
    "ToolResult": SpellingChange("interlock.ToolResult"),
    "Depends": SpellingChange("interlock.Depends"),
    "get_context": SpellingChange("interlock.get_context"),
    "UserMessage": SpellingChange("interlock.user"),
    "AssistantMessage": SpellingChange("interlock.assistant"),
    "Icon": SpellingChange("interlock.Icon"),
    # errors
    "ToolError": SpellingChange("interlock.ToolError"),
    "McpError": SpellingChange("interlock.McpError"),
    "MCPError": SpellingChange("interlock.McpError"),
    "ResourceError": SpellingChange("interlock.ToolError"),
    # clients
    "Client": SpellingChange("interlock.Client"),
    "ClientSession": SpellingChange("interlock.Client"),
    "StdioServerParameters": SpellingChange("interlock.Stdio"),
    "StdioTransport": SpellingChange("interlock.Stdio"),
    "StreamableHttpTransport": SpellingChange("interlock.Http"),
    "SSETransport": SpellingChange("interlock.Http"),
    "create_connected_server_and_client_session": SpellingChange("interlock.Client"),
    # types whose name differs
    "TextResourceContents": SpellingChange("interlock.types.ResourceContents"),
    "BlobResourceContents": SpellingChange("interlock.types.ResourceContents"),
    "ResourceTemplateReference": SpellingChange("interlock.types.ResourceTemplateReference"),
    "ResourceReference": SpellingChange("interlock.types.ResourceTemplateReference"),
    "Content": SpellingChange("interlock.types.ContentBlock"),
    "ServerSession": SpellingChange(),
    "NotificationOptions": SpellingChange(),
    "InitializationOptions": SpellingChange(),
    "stdio_server": SpellingChange(),
    "CurrentContext": SpellingChange(),
    # what a person moves
    "ErrorData": SpellingChange(
        mark="McpError takes the code, the message and the data themselves"
    ),
    "RequestContext": SpellingChange(mark="callbacks of clients get no context: see Answers(...)"),
    "AuthSettings": SpellingChange(mark=_AUTH),
    "TokenVerifier": SpellingChange(mark=_AUTH),
    "AccessToken": SpellingChange(mark=_AUTH),
    "OAuthProvider": SpellingChange(mark=_AUTH),
    "BearerAuthProvider": SpellingChange(mark=_AUTH),
    "JWTVerifier": SpellingChange(mark=_AUTH),
    "StaticTokenVerifier": SpellingChange(mark=_AUTH),
    "get_access_token": SpellingChange(mark="use ctx.principal, which the guard has verified"),
    "get_http_headers": SpellingChange(
        mark="use ctx.request.headers; ctx.request is None on stdio"
    ),
    "get_http_request": SpellingChange(mark="use ctx.request, which is None on stdio"),
    "Middleware": SpellingChange(mark=_MIDDLEWARE),
    "MiddlewareContext": SpellingChange(mark=_MIDDLEWARE),
    "ServerMiddleware": SpellingChange(mark=_MIDDLEWARE),
    "CallNext": SpellingChange(mark=_MIDDLEWARE),
    "HandlerResult": SpellingChange(mark=_MIDDLEWARE),
    "RouteMap": SpellingChange(mark=_OPENAPI),
    "MCPType": SpellingChange(mark=_OPENAPI),
    "AcceptedElicitation": SpellingChange(mark=_ANSWERS),
    "DeclinedElicitation": SpellingChange(mark=_ANSWERS),
    "CancelledElicitation": SpellingChange(mark=_ANSWERS),
    "ElicitationResult": SpellingChange(mark=_ANSWERS),
    "Elicit": SpellingChange(mark="ask inside the function: await ctx.elicit(message, Type)"),
    "Resolve": SpellingChange(
        mark="use Depends(function), or ask with await ctx.elicit(message, Type)"
    ),
    "Progress": SpellingChange(mark="use ctx.progress(done, total, message)"),
    "SseServerTransport": SpellingChange(mark='use server.run("http", legacy_sse=True)'),
    "StreamableHTTPSessionManager": SpellingChange(
        mark="use server.http_app(): the app needs no session manager and no lifespan"
    ),
    "TransportSecuritySettings": SpellingChange(mark="use the options hosts= and origins="),
    "ResourceNotFoundError": SpellingChange(
        mark="return None from the resource: it does not exist"
    ),
    "NotFoundError": SpellingChange(
        mark="clients get McpError; a resource that does not exist is None"
    ),
    "ClientSessionGroup": SpellingChange(mark="a Client of a configuration with several servers"),
    "create_proxy": SpellingChange(mark="server.mount(TARGET), or interlock bridge"),
    "FastMCPProxy": SpellingChange(mark="server.mount(TARGET), or interlock bridge"),
}
"""Classes and functions by their last name, whichever module of a peer they are imported from."""

SERVER_OPTIONS: Final[dict[str, SpellingChange]] = {
    "name": SpellingChange("name"),
    "version": SpellingChange("version"),
    "instructions": SpellingChange("instructions"),
    "lifespan": SpellingChange("lifespan"),
    "title": SpellingChange("info.title"),
    "description": SpellingChange("info.description"),
    "website_url": SpellingChange("info.website_url"),
    "icons": SpellingChange("info.icons"),
    "host": SpellingChange("run.host"),
    "port": SpellingChange("run.port"),
    "streamable_http_path": SpellingChange("run.path"),
    "stateless_http": SpellingChange("run.sessions"),
    "json_response": SpellingChange(),
    "debug": SpellingChange(),
    "log_level": SpellingChange(),
    "dependencies": SpellingChange(),
    "sse_path": SpellingChange(mark="the legacy endpoints are at /sse and /messages"),
    "message_path": SpellingChange(mark="the legacy endpoints are at /sse and /messages"),
    "mount_path": SpellingChange(mark="mount http_app() at the path instead"),
    "warn_on_duplicate_tools": SpellingChange(),
    "warn_on_duplicate_resources": SpellingChange(),
    "warn_on_duplicate_prompts": SpellingChange(),
    "warn_on_duplicates": SpellingChange(),
    "on_duplicate_tools": SpellingChange(mark="a second feature of one name is an error"),
    "on_duplicate_resources": SpellingChange(mark="a second feature of one name is an error"),
    "on_duplicate_prompts": SpellingChange(mark="a second feature of one name is an error"),
    "on_duplicate": SpellingChange(mark="a second feature of one name is an error"),
    "mask_error_details": SpellingChange(),
    "strict_input_validation": SpellingChange("lenient.not"),
    "include_fastmcp_meta": SpellingChange(),
    "tool_serializer": SpellingChange(
        mark="return ToolResult(data, text): each tool writes its own text"
    ),
    "tools": SpellingChange(mark="add each with server.add_tool(function)"),
    "prompts": SpellingChange(mark="add each with server.add_prompt(function)"),
    "resources": SpellingChange(mark="add each with server.add_resource(uri, content)"),
    "middleware": SpellingChange(mark=_MIDDLEWARE),
    "auth": SpellingChange(mark=_AUTH),
    "token_verifier": SpellingChange(mark=_AUTH),
    "auth_server_provider": SpellingChange(mark=_AUTH),
    "transport_security": SpellingChange("run.security"),
    "event_store": SpellingChange(mark="give run() a store: store='sqlite:///FILE'"),
    "retry_interval": SpellingChange(mark="give run() retry_ms="),
    "subscriptions": SpellingChange(mark="leave it out: a list that never changes is quiet"),
    "include_tags": SpellingChange(mark="use server.disable(tags=...)"),
    "exclude_tags": SpellingChange(mark="use server.disable(tags=...)"),
    "tasks": SpellingChange(
        mark="give the server extensions=[Tasks()] and the tools task='optional'"
    ),
}
"""Options of the constructors: `run.X` moves to `run()`, `info.X` to `info=ServerInfo(...)`."""

RUN_OPTIONS: Final[dict[str, SpellingChange]] = {
    "transport": SpellingChange("transport"),
    "host": SpellingChange("host"),
    "port": SpellingChange("port"),
    "path": SpellingChange("path"),
    "streamable_http_path": SpellingChange("path"),
    "stateless_http": SpellingChange("sessions"),
    "stateless": SpellingChange("sessions"),
    "json_response": SpellingChange(),
    "log_level": SpellingChange(),
    "show_banner": SpellingChange(),
    "transport_security": SpellingChange("security"),
    "middleware": SpellingChange(mark="wrap http_app() in the ASGI middleware"),
    "uvicorn_config": SpellingChange(
        mark="Interlock has a server of its own: see the options of run()"
    ),
    "mount_path": SpellingChange(mark="mount http_app() at the path instead"),
    "sse_path": SpellingChange(mark="the legacy endpoints are at /sse and /messages"),
    "message_path": SpellingChange(mark="the legacy endpoints are at /sse and /messages"),
    "event_store": SpellingChange(mark="give a store: store='sqlite:///FILE'"),
    "retry_interval": SpellingChange("retry_ms"),
    "host_origin_protection": SpellingChange(),
    "allowed_hosts": SpellingChange("hosts"),
    "allowed_origins": SpellingChange("origins"),
}
"""Options of `run`, `run_async`, `http_app` and `streamable_http_app`."""

TOOL_OPTIONS: Final[dict[str, SpellingChange]] = {
    "name": SpellingChange("name"),
    "title": SpellingChange("title"),
    "description": SpellingChange("description"),
    "annotations": SpellingChange("annotations"),
    "icons": SpellingChange("icons"),
    "meta": SpellingChange("meta"),
    "tags": SpellingChange("tags"),
    "timeout": SpellingChange("timeout"),
    "input_schema": SpellingChange("input_schema"),
    "output_schema": SpellingChange("output_schema"),
    "run_in_thread": SpellingChange("thread"),
    "name_or_fn": SpellingChange("name"),
    "uri": SpellingChange("uri"),
    "mime_type": SpellingChange("mime_type"),
    "structured_output": SpellingChange(),
    "enabled": SpellingChange(mark="call server.disable(NAME) after the definition"),
    "exclude_args": SpellingChange(
        mark="take these values from Depends(...) or the context instead"
    ),
    "serializer": SpellingChange(mark="return ToolResult(data, text) instead"),
    "task": SpellingChange("task"),
    "version": SpellingChange(
        mark="a name stands for one version here: put the version into the name"
    ),
    "auth": SpellingChange(mark="use scopes=, which callers without them do not see"),
    "app": SpellingChange(mark="use server.app(FILE, tool=function)"),
    "ui": SpellingChange(mark="use server.app(FILE, tool=function)"),
    "security": SpellingChange(),
}
"""Options of the decorators of tools, prompts and resources."""

CONTEXT: Final[dict[str, SpellingChange]] = {
    "request_context.lifespan_context": SpellingChange("lifespan_state"),
    "lifespan_context": SpellingChange("lifespan_state"),
    "meta": SpellingChange("meta"),
    "request_context.request": SpellingChange(
        "request", "this HttpRequest has headers, client, method and path"
    ),
    "request_context.meta": SpellingChange("meta"),
    "request_context.session": SpellingChange(
        mark="questions are methods of ctx: elicit, sample, roots"
    ),
    "request_context": SpellingChange(mark="see ctx.caller, ctx.request and ctx.lifespan_state"),
    "session.create_message": SpellingChange("sample"),
    "session.list_roots": SpellingChange("roots", "this returns the list of roots itself"),
    "session.elicit": SpellingChange("elicit", _ANSWERS),
    "session.send_resource_list_changed": SpellingChange(
        mark="adding and removing announces it already"
    ),
    "session.send_tool_list_changed": SpellingChange(
        mark="adding and removing announces it already"
    ),
    "session.send_prompt_list_changed": SpellingChange(
        mark="adding and removing announces it already"
    ),
    "session.send_resource_updated": SpellingChange(mark="ctx.updated(uri), without await"),
    "session.send_log_message": SpellingChange(
        mark="ctx.log.write(level, data, logger), without await"
    ),
    "session.send_progress_notification": SpellingChange(
        mark="ctx.progress(done, total), without await"
    ),
    "session": SpellingChange(
        mark="its questions are methods of ctx, and its state is ctx.session_state"
    ),
    "notify_prompts_changed": SpellingChange(
        mark="adding and removing announces it already: leave it out"
    ),
    "notify_tools_changed": SpellingChange(
        mark="adding and removing announces it already: leave it out"
    ),
    "notify_resources_changed": SpellingChange(
        mark="adding and removing announces it already: leave it out"
    ),
    "notify_resource_updated": SpellingChange(mark="ctx.updated(uri), without await"),
    "send_tool_list_changed": SpellingChange(
        mark="adding and removing announces it already: leave it out"
    ),
    "list_roots": SpellingChange("roots"),
    "fastmcp": SpellingChange("server"),
    "mcp_server": SpellingChange("server"),
    "elicit": SpellingChange("elicit", _ANSWERS),
    "elicit_url": SpellingChange(
        "elicit_url", "it raises Declined or Cancelled; there is no action"
    ),
    "sample": SpellingChange("sample"),
    "read_resource": SpellingChange(
        "read_resource", "this returns a list of ResourceContents, with text or blob"
    ),
    "log": SpellingChange("log.write", "the level comes first: ctx.log.write(level, data, logger)"),
    "client_id": SpellingChange(mark="use ctx.principal, which the guard has verified"),
    "request_id": SpellingChange(mark="a request has no id for tools; make one if you log it"),
    "session_id": SpellingChange(
        mark="use ctx.caller.session; calls of 2026-07-28 have no session"
    ),
    "get_state": SpellingChange(mark="use await ctx.session_state.get(key)"),
    "set_state": SpellingChange(mark="use await ctx.session_state.set(key, value)"),
    "get_http_request": SpellingChange(mark="use ctx.request, which is None on stdio"),
    "list_tools": SpellingChange(mark="use ctx.server"),
    "get_prompt": SpellingChange(mark="call the function of the prompt"),
    "close_sse_stream": SpellingChange(mark="await ctx.disconnect()"),
    "headers": SpellingChange(mark="use ctx.request.headers; ctx.request is None on stdio"),
}
"""Attributes and methods of the context. The longest path counts."""

CONTEXT_KEPT: Final = frozenset(
    {"info", "debug", "warning", "error", "report_progress", "progress", "server"}
)
"""Methods of the context that Interlock also has under the same name."""

SAMPLE_OPTIONS: Final[dict[str, SpellingChange]] = {
    "messages": SpellingChange("messages"),
    "system_prompt": SpellingChange("system"),
    "max_tokens": SpellingChange("max_tokens"),
    "temperature": SpellingChange("temperature"),
    "stop_sequences": SpellingChange("stop"),
    "model_preferences": SpellingChange("preferences"),
    "include_context": SpellingChange("include_context"),
    "metadata": SpellingChange("metadata"),
    "result_type": SpellingChange("result_type"),
    "tools": SpellingChange(
        "tools", "the tools are not run: the answer has tool uses, which you run"
    ),
    "tool_choice": SpellingChange("tool_choice"),
    "related_request_id": SpellingChange(),
}
"""Options of `ctx.sample` and `session.create_message`."""

SERVER_METHODS: Final[dict[str, SpellingChange]] = {
    "sse_app": SpellingChange(mark="http_app(legacy_sse=True) serves /sse beside the endpoint"),
    "session_manager": SpellingChange(mark="leave it out: the app starts and ends by itself"),
    "get_tools": SpellingChange(mark="open a Client(server) and await client.list_tools()"),
    "get_resources": SpellingChange(mark="open a Client(server) and await client.list_resources()"),
    "get_prompts": SpellingChange(mark="open a Client(server) and await client.list_prompts()"),
    "get_tool": SpellingChange(mark="open a Client(server) and await client.list_tools()"),
    "list_tools": SpellingChange(mark="open a Client(server) and await client.list_tools()"),
    "list_resources": SpellingChange(
        mark="open a Client(server) and await client.list_resources()"
    ),
    "list_resource_templates": SpellingChange(
        mark="open a Client(server) and await client.list_resource_templates()"
    ),
    "list_prompts": SpellingChange(mark="open a Client(server) and await client.list_prompts()"),
    "get_prompt": SpellingChange(mark="open a Client(server) and await client.get_prompt(...)"),
    "call_tool": SpellingChange(mark="open a Client(server) and await client.call_tool(...)"),
    "read_resource": SpellingChange(
        mark="open a Client(server) and await client.read_resource(...)"
    ),
    "add_middleware": SpellingChange(mark=_MIDDLEWARE),
    "import_server": SpellingChange(
        mark="use mount(server, prefix=...): a tool is then named PREFIX__NAME, not PREFIX_NAME"
    ),
    "from_openapi": SpellingChange(mark=_OPENAPI),
    "from_fastapi": SpellingChange(mark=_OPENAPI),
    "as_proxy": SpellingChange(mark="mount the target: Server(NAME).mount(TARGET)"),
    "add_provider": SpellingChange(mark="mount a Source: server.mount(SOURCE)"),
    "add_transform": SpellingChange(mark="mount(..., change={NAME: Transform(...)})"),
    "add_template": SpellingChange(mark="use add_resource(uri_template, function)"),
    "settings": SpellingChange(mark="give these settings to run() as options"),
    "get_context": SpellingChange(mark="use get_context() of interlock"),
    "request_context": SpellingChange("get_context()"),
    "_mcp_server": SpellingChange(
        mark="there is no inner server: use the public methods of Server"
    ),
    "_tool_manager": SpellingChange(
        mark="there is no tool manager: use the public methods of Server"
    ),
    "_call_tool_mcp": SpellingChange(mark="open a Client(server) and await client.call_tool(...)"),
    "_read_resource_mcp": SpellingChange(
        mark="open a Client(server) and await client.read_resource(...)"
    ),
    "set_logging_level": SpellingChange(mark="leave it out: each client sets its own level"),
    "progress_notification": SpellingChange(mark="use ctx.progress(done, total)"),
    "subscribe_resource": SpellingChange(
        mark="leave it out: clients can subscribe to every resource"
    ),
    "unsubscribe_resource": SpellingChange(
        mark="leave it out: clients can subscribe to every resource"
    ),
    "get_capabilities": SpellingChange(mark="leave it out: capabilities follow from the features"),
    "create_initialization_options": SpellingChange(mark="leave it out"),
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

CLIENT_METHODS: Final[dict[str, SpellingChange]] = {
    "initialize": SpellingChange(),
    "send_notification": SpellingChange(mark="use await client.notify(method, params)"),
    "send_request": SpellingChange(mark="use await client.request(method, params)"),
    "send_roots_list_changed": SpellingChange(mark="use client.roots_changed(), without await"),
    "send_ping": SpellingChange("ping"),
    "set_logging_level": SpellingChange("set_log_level"),
    "send_progress_notification": SpellingChange(mark="clients send no progress here"),
    "subscribe_resource": SpellingChange(mark="use async with client.watch(...)"),
    "unsubscribe_resource": SpellingChange(mark="leave the block of client.watch(...)"),
    "call_tool_mcp": SpellingChange("call_tool"),
    "list_tools_mcp": SpellingChange(mark="list_tools() returns the whole list"),
    "get_server_capabilities": SpellingChange(mark="use client.server_capabilities"),
    "initialize_result": SpellingChange(
        mark="use client.server_info, client.server_capabilities and client.instructions"
    ),
    "is_connected": SpellingChange(mark="use client.connected"),
    "transport": SpellingChange(mark="the transport of a client is not public"),
}
"""Methods of client sessions."""

CLIENT_LISTS: Final[dict[str, str]] = {
    "list_tools": "tools",
    "list_prompts": "prompts",
    "list_resources": "resources",
    "list_resource_templates": "resource_templates",
}
"""Methods of clients that return the list itself here, and the attribute that has it elsewhere."""

CLIENT_OPTIONS: Final[dict[str, SpellingChange]] = {
    "timeout": SpellingChange("timeout"),
    "read_timeout_seconds": SpellingChange("timeout", "the timeout is a number of seconds"),
    "transport": SpellingChange("target"),
    "auth": SpellingChange(
        "auth", "auth is an object of interlock.auth, or token= for a bearer token"
    ),
    "sampling_callback": SpellingChange(
        mark="use answers=Answers(sample=function); it gets the params"
    ),
    "elicitation_callback": SpellingChange(
        mark="use answers=Answers(elicit=function); it gets the params"
    ),
    "list_roots_callback": SpellingChange(mark="use answers=Answers(roots=[...])"),
    "sampling_handler": SpellingChange(
        mark="use answers=Answers(sample=function); it gets the params"
    ),
    "elicitation_handler": SpellingChange(
        mark="use answers=Answers(elicit=function); it gets the params"
    ),
    "roots": SpellingChange(mark="use answers=Answers(roots=[...])"),
    "logging_callback": SpellingChange("on_log"),
    "log_handler": SpellingChange("on_log"),
    "message_handler": SpellingChange(
        "on_notification", "it is called with notifications only, as (method, params)"
    ),
    "progress_handler": SpellingChange(mark="use on_progress= of call_tool"),
    "client_info": SpellingChange("info"),
    "name": SpellingChange(),
    "mode": SpellingChange(),
    "raise_exceptions": SpellingChange(),
    "init_timeout": SpellingChange(),
    "auto_initialize": SpellingChange(),
}
"""Options of clients and client sessions."""

CALL_OPTIONS: Final[dict[str, SpellingChange]] = {
    "name": SpellingChange("name"),
    "arguments": SpellingChange("arguments"),
    "timeout": SpellingChange("timeout"),
    "meta": SpellingChange("meta"),
    "read_timeout_seconds": SpellingChange("timeout", "the timeout is a number of seconds"),
    "progress_callback": SpellingChange("on_progress"),
    "progress_handler": SpellingChange("on_progress"),
    "raise_on_error": SpellingChange(),
}
"""Options of `call_tool`."""
