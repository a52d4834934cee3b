"""The options of a server over HTTP and of `Server.run`, as TypedDicts."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from ...store.interface import Store
from ...transport.channel import MessageRecorder
from ...transport.http.authorization import Guarding
from ...transport.http.limits import Limits
from ..request_log import RequestLogFormat
from .liveness import WorkerLimits

if TYPE_CHECKING:
    import ssl


class AppOptions(TypedDict, total=False):
    """The options of the endpoint.

    Attributes:
        hosts: Accepted host names of the server, besides loopback names and plain addresses; "*"
            for any.
        origins: Origins of web pages that may use the server, besides its own.
        cors: Origins of web pages that may use the server and read its responses (CORS).
        sessions: Whether clients of the handshake era get a session. Without a session the server
            never sends them questions or notifications.
        store: The store of sessions: "memory:", "sqlite:///path", "redis://...", or a Store.
            Several workers need a shared one.
        stream: Whether sessions always get an event stream, never plain JSON.
        retry_ms: The time after which clients should resume a broken stream, in milliseconds.
        legacy_sse: Whether to serve the transport of 2024-11-05 too, at `/sse` and `/messages`.
        limits: Limits of sizes, counts, times and the request rate.
        grace: The time that running calls have at the end, in seconds.
        guard: Authorization in front of the endpoint: a function from an ASGI app to an ASGI app,
            such as `interlock.auth.Guard`. Without it no caller has scopes.
        health: The path of the health checks, "/health" by default, with `/live` and `/ready` below
            it; None for none. Name another path to a guard as public.
    """

    hosts: str | Sequence[str]
    origins: str | Sequence[str]
    cors: str | Sequence[str]
    sessions: bool
    store: Store | str | None
    stream: bool
    retry_ms: int | None
    legacy_sse: bool
    limits: Limits | None
    grace: float
    guard: Guarding | None
    health: str | None


class HttpOptions(AppOptions, total=False):
    """The options of an HTTP server that Interlock runs.

    Attributes:
        path: The path of the endpoint; "/mcp" by default.
        host: The address to listen on; loopback, 127.0.0.1, by default. "unix:PATH" is a Unix
            socket, "fd:N" a listening socket that the parent process has opened.
        port: The TCP port; 8000 by default, 0 for a free one.
        tls: The SSL context for HTTPS.
        sock: A listening socket, in place of host and port.
        proxies: Addresses or networks whose `X-Forwarded-For` is trusted; none by default.
        admin: The folder of the admin sockets, for `interlock admin`. It is created with mode 0700.
        admin_path: A path such as "/admin", on which operators with the secret can do the same over
            HTTP; it needs `admin`. None, the default, for none.
        admin_secret: The secret of this path, of at least 32 characters; by default that of the
            variable INTERLOCK_ADMIN_SECRET.
        record: Records all connections, such as `interlock.tape.Recorder`; not with several
            `workers`.
    """

    path: str
    host: str
    port: int
    tls: ssl.SSLContext | None
    sock: socket.socket | None
    proxies: str | Sequence[str]
    admin: str | os.PathLike[str] | None
    admin_path: str | None
    admin_secret: str | None
    record: MessageRecorder | None


class RunOptions(HttpOptions, total=False):
    """The options of `Server.run`. The transport determines which are allowed.

    Attributes:
        workers: The number of processes that serve HTTP. They share a `store`. SIGHUP replaces
            them one at a time.
        worker_limits: When a worker process is replaced: blocked, or after so many requests, or
            above so much memory.
        limit: The maximum size of a message in bytes, for every transport but HTTP, which has
            `limits`.
        on_ready: Called with the address once the server accepts connections.
        log: The format of the request log on stderr: "text", "json" or "off". By default it is that
            of the variable INTERLOCK_LOG, else "text" over stdio and "off" otherwise.
    """

    workers: int
    worker_limits: WorkerLimits | None
    limit: int
    on_ready: Callable[[Any], None]
    log: RequestLogFormat
