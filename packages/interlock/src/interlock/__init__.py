"""Interlock: the Model Context Protocol in Python, for servers and clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import version
from .lazy_names import lazily

if TYPE_CHECKING:
    from .client.answers import Answers
    from .client.app import Client
    from .client.options import ClientSettings
    from .client.skills import Skill
    from .client.targets import Target
    from .client.tasks.handle import TaskHandle
    from .client.watch import Changed, Watch
    from .exchange import (
        AnyResult,
        Asker,
        Caller,
        Exchange,
        ExchangeTransport,
        Handler,
        HttpRequest,
        Middleware,
        Principal,
        RawResult,
        SessionStorage,
        TraceContext,
        stack,
    )
    from .extension import CoreCapability, Extension, Method
    from .http11.client import HttpFetch
    from .http11.fetch import ConnectionLost, Fetch, Request, Response
    from .http11.safe_fetch import BlockedAddress, SafeFetch
    from .observe.options import Observe
    from .protocol.opening import UnsupportedRevision
    from .server.app import Server
    from .server.audit import AuditTrail
    from .server.calls.context import Context, get_context
    from .server.calls.environment import RunningServer
    from .server.calls.session_state import SessionState
    from .server.catalogue.features import Feature
    from .server.changes import Change, ChangeBus
    from .server.extensions.apps import App, Csp
    from .server.run.http_server import HttpServer
    from .server.run.liveness import WorkerLimits
    from .server.server_options import QuestionSettings, ServerInfo, ServerLimits
    from .server.sources.mount import Mount
    from .server.sources.openapi.document import OpenApiError
    from .server.sources.openapi.source import OpenApi
    from .server.sources.transform import Transform
    from .settings import settings_of
    from .source import Offered, Source, ToolTasks
    from .store.audit_log import AuditCheck
    from .tasks.docket import Docket
    from .tasks.extension import Tasks
    from .tasks.forwarding import ForwardedTasks
    from .tasks.runner import TaskLimits
    from .transport.channel import Channel
    from .transport.conversation import ClientTransport
    from .transport.duplex import Duplex
    from .transport.http.client.transport import Http
    from .transport.http.limits import Limits, Rate
    from .transport.http.routes import HttpResponse
    from .transport.http.server.serve import listening_socket, serve_http
    from .transport.sockets import Socket
    from .transport.stdio import Stdio
    from .typed.content import assistant, user
    from .typed.depends import Depends
    from .typed.media import Audio, File, Image
    from .typed.output import ToolResult
    from .typed.progress import Progress
    from .typed.uri_templates import Template
    from .types import (
        AudioContent,
        CallToolResult,
        Cancelled,
        Declined,
        EmbeddedResource,
        Forbidden,
        Icon,
        ImageContent,
        Implementation,
        InputRequiredResult,
        InterlockError,
        McpError,
        NoSession,
        ProtocolError,
        ResourceContents,
        ResourceLink,
        SkillError,
        TaskCancelled,
        TextContent,
        TimedOut,
        ToolAnnotations,
        ToolError,
        Unanswerable,
        Unreachable,
    )
    from .wire.revisions import REVISIONS
    from .wire.sse import EventReader

__version__ = version.VERSION  # of this package

# Each public name and the module that defines it. Importing the server does not load the client,
# and the other way round.
_ROOMS = {
    ".client.answers": ("Answers",),
    ".client.app": ("Client",),
    ".client.options": ("ClientSettings",),
    ".client.skills": ("Skill",),
    ".client.targets": ("Target",),
    ".client.tasks.handle": ("TaskHandle",),
    ".client.watch": ("Changed", "Watch"),
    ".exchange": (
        "AnyResult",
        "Asker",
        "Caller",
        "Exchange",
        "ExchangeTransport",
        "Handler",
        "HttpRequest",
        "Middleware",
        "Principal",
        "RawResult",
        "SessionStorage",
        "TraceContext",
        "stack",
    ),
    ".observe.options": ("Observe",),
    ".protocol.opening": ("UnsupportedRevision",),
    ".server.app": ("Server",),
    ".server.audit": ("AuditTrail",),
    ".store.audit_log": ("AuditCheck",),
    ".server.extensions.apps": ("App", "Csp"),
    ".server.changes": ("Change", "ChangeBus"),
    ".typed.content": ("assistant", "user"),
    ".server.calls.context": ("Context", "get_context"),
    ".server.calls.environment": ("RunningServer",),
    ".extension": ("CoreCapability", "Extension", "Method"),
    ".server.catalogue.features": ("Feature",),
    ".server.run.http_server": ("HttpServer",),
    ".server.run.liveness": ("WorkerLimits",),
    ".typed.depends": ("Depends",),
    ".typed.media": ("Audio", "File", "Image"),
    ".typed.output": ("ToolResult",),
    ".typed.progress": ("Progress",),
    ".server.server_options": ("QuestionSettings", "ServerInfo", "ServerLimits"),
    ".server.sources.mount": ("Mount",),
    ".server.sources.transform": ("Transform",),
    ".source": ("Offered", "Source", "ToolTasks"),
    ".server.calls.session_state": ("SessionState",),
    ".server.sources.openapi.document": ("OpenApiError",),
    ".server.sources.openapi.source": ("OpenApi",),
    ".typed.uri_templates": ("Template",),
    ".settings": ("settings_of",),
    ".tasks.docket": ("Docket",),
    ".tasks.extension": ("Tasks",),
    ".tasks.forwarding": ("ForwardedTasks",),
    ".tasks.runner": ("TaskLimits",),
    ".transport.channel": ("Channel",),
    ".transport.conversation": ("ClientTransport",),
    ".transport.duplex": ("Duplex",),
    ".http11.fetch": ("Fetch", "ConnectionLost", "Request", "Response"),
    ".http11.client": ("HttpFetch",),
    ".transport.http.client.transport": ("Http",),
    ".transport.http.limits": ("Limits", "Rate"),
    ".transport.http.routes": ("HttpResponse",),
    ".http11.safe_fetch": ("BlockedAddress", "SafeFetch"),
    ".transport.sockets": ("Socket",),
    ".transport.stdio": ("Stdio",),
    ".types": (
        "AudioContent",
        "CallToolResult",
        "Cancelled",
        "Declined",
        "EmbeddedResource",
        "Forbidden",
        "Icon",
        "Implementation",
        "ImageContent",
        "InputRequiredResult",
        "InterlockError",
        "McpError",
        "NoSession",
        "ProtocolError",
        "ResourceContents",
        "ResourceLink",
        "TextContent",
        "TimedOut",
        "ToolAnnotations",
        "SkillError",
        "TaskCancelled",
        "ToolError",
        "Unanswerable",
        "Unreachable",
    ),
    ".transport.http.server.serve": ("listening_socket", "serve_http"),
    ".wire.revisions": ("REVISIONS",),
    ".wire.sse": ("EventReader",),
}
__all__ = [
    "REVISIONS",
    "Answers",
    "AnyResult",
    "App",
    "Asker",
    "Audio",
    "AudioContent",
    "AuditCheck",
    "AuditTrail",
    "BlockedAddress",
    "CallToolResult",
    "Caller",
    "Cancelled",
    "Change",
    "ChangeBus",
    "Changed",
    "Channel",
    "Client",
    "ClientSettings",
    "ClientTransport",
    "ConnectionLost",
    "Context",
    "CoreCapability",
    "Csp",
    "Declined",
    "Depends",
    "Docket",
    "Duplex",
    "EmbeddedResource",
    "EventReader",
    "Exchange",
    "ExchangeTransport",
    "Extension",
    "Feature",
    "Fetch",
    "File",
    "Forbidden",
    "ForwardedTasks",
    "Handler",
    "Http",
    "HttpFetch",
    "HttpRequest",
    "HttpResponse",
    "HttpServer",
    "Icon",
    "Image",
    "ImageContent",
    "Implementation",
    "InputRequiredResult",
    "InterlockError",
    "Limits",
    "McpError",
    "Method",
    "Middleware",
    "Mount",
    "NoSession",
    "Observe",
    "Offered",
    "OpenApi",
    "OpenApiError",
    "Principal",
    "Progress",
    "ProtocolError",
    "QuestionSettings",
    "Rate",
    "RawResult",
    "Request",
    "ResourceContents",
    "ResourceLink",
    "Response",
    "RunningServer",
    "SafeFetch",
    "Server",
    "ServerInfo",
    "ServerLimits",
    "SessionState",
    "SessionStorage",
    "Skill",
    "SkillError",
    "Socket",
    "Source",
    "Stdio",
    "Target",
    "TaskCancelled",
    "TaskHandle",
    "TaskLimits",
    "Tasks",
    "Template",
    "TextContent",
    "TimedOut",
    "ToolAnnotations",
    "ToolError",
    "ToolResult",
    "ToolTasks",
    "TraceContext",
    "Transform",
    "Unanswerable",
    "Unreachable",
    "UnsupportedRevision",
    "Watch",
    "WorkerLimits",
    "__version__",
    "assistant",
    "get_context",
    "listening_socket",
    "serve_http",
    "settings_of",
    "stack",
    "user",
]


__getattr__, __dir__ = lazily(__name__, _ROOMS)
