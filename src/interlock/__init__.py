"""Interlock: the Model Context Protocol, whole - servers, clients and what goes between them, under all five revisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import version
from .lazily import lazily

if TYPE_CHECKING:
    from .client.answers import Answers
    from .client.app import Client
    from .client.options import ClientSettings
    from .client.skills import Skill
    from .client.targets import Target
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
    from .fetch import ConnectionLost, Fetch, Request, Response
    from .protocol.opening import UnsupportedRevision
    from .server.app import Server
    from .server.apps import App, Csp
    from .server.changes import Change, ChangeBus
    from .server.content import assistant, user
    from .server.context import Context, Progress, get_context
    from .server.features import Feature
    from .server.http_server import HttpServer
    from .server.media import Audio, File, Image
    from .server.output import ToolResult
    from .server.server_options import QuestionSettings, ServerInfo, ServerLimits
    from .server.session_state import SessionState
    from .server.templates import Template
    from .settings import settings_of
    from .transport.channel import Channel
    from .transport.conversation import ClientTransport
    from .transport.duplex import Duplex
    from .transport.fetching import HttpFetch
    from .transport.http import Http
    from .transport.limits import Limits, Rate
    from .transport.public import BlockedAddress, SafeFetch
    from .transport.routes import HttpResponse
    from .transport.sockets import Socket
    from .transport.stdio import Stdio
    from .transport.webserver import listening_socket, serve_http
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

# Each public name and the room it lives in: a server does not load the client, nor a client the server.
_ROOMS = {
    ".client.answers": ("Answers",),
    ".client.app": ("Client",),
    ".client.options": ("ClientSettings",),
    ".client.skills": ("Skill",),
    ".client.targets": ("Target",),
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
    ".protocol.opening": ("UnsupportedRevision",),
    ".server.app": ("Server",),
    ".server.apps": ("App", "Csp"),
    ".server.changes": ("Change", "ChangeBus"),
    ".server.content": ("assistant", "user"),
    ".server.context": ("Context", "Progress", "get_context"),
    ".extension": ("CoreCapability", "Extension", "Method"),
    ".server.features": ("Feature",),
    ".server.http_server": ("HttpServer",),
    ".server.media": ("Audio", "File", "Image"),
    ".server.output": ("ToolResult",),
    ".server.server_options": ("QuestionSettings", "ServerInfo", "ServerLimits"),
    ".server.session_state": ("SessionState",),
    ".server.templates": ("Template",),
    ".settings": ("settings_of",),
    ".transport.channel": ("Channel",),
    ".transport.conversation": ("ClientTransport",),
    ".transport.duplex": ("Duplex",),
    ".fetch": ("Fetch", "ConnectionLost", "Request", "Response"),
    ".transport.fetching": ("HttpFetch",),
    ".transport.http": ("Http",),
    ".transport.limits": ("Limits", "Rate"),
    ".transport.routes": ("HttpResponse",),
    ".transport.public": ("BlockedAddress", "SafeFetch"),
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
        "ToolError",
        "Unanswerable",
        "Unreachable",
    ),
    ".transport.webserver": ("listening_socket", "serve_http"),
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
    "Context",
    "CoreCapability",
    "Csp",
    "Declined",
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
    "ConnectionLost",
    "McpError",
    "Method",
    "Middleware",
    "NoSession",
    "BlockedAddress",
    "Principal",
    "Progress",
    "ProtocolError",
    "SafeFetch",
    "QuestionSettings",
    "Rate",
    "RawResult",
    "UnsupportedRevision",
    "Request",
    "ResourceContents",
    "ResourceLink",
    "Response",
    "Server",
    "ServerInfo",
    "ServerLimits",
    "SessionState",
    "SessionStorage",
    "Skill",
    "SkillError",
    "Socket",
    "Stdio",
    "Target",
    "Template",
    "TextContent",
    "TimedOut",
    "ToolAnnotations",
    "ToolError",
    "ToolResult",
    "TraceContext",
    "Unanswerable",
    "Unreachable",
    "Watch",
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
