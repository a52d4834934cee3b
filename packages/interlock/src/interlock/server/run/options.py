"""The options of a server over HTTP and of `Server.run`, as TypedDicts."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from ...store.interface import Store
from ...transport.http.authorization import Guarding
from ...transport.http.limits import Limits

if TYPE_CHECKING:
    import ssl


class AppOptions(TypedDict, total=False):
    """The options of the endpoint.

    Attributes:
        hosts: Names under which the server may be asked, besides loopback names and plain
            addresses; "*" for any.
        origins: Web pages that may use it, besides those of the same host.
        cors: Web pages that may use it and that a browser is told may read the answers.
        sessions: Whether clients of the handshake era get a session; without, the server never asks
            or notifies them.
        store: Where sessions are kept: "memory:", "sqlite:///path", "redis://...", or a Store.
            Workers need a shared one.
        stream: Whether sessions are always answered with an event stream, never with plain JSON.
        retry_ms: The milliseconds after which clients should come back for a stream that broke.
        legacy_sse: Whether the transport of 2024-11-05 is served too, at `/sse` and `/messages`.
        limits: Sizes, counts, times and the rate of requests.
        grace: The seconds that running calls have at the end.
        guard: Authorization in front of the endpoint: it takes an ASGI app and gives one, like
            `interlock.auth.Guard`. Without it nobody has scopes.
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


class HttpOptions(AppOptions, total=False):
    """The options of an HTTP server of its own.

    Attributes:
        path: The path of the endpoint; "/mcp" unless you say otherwise.
        host: The address to listen at; loopback, 127.0.0.1, unless you say otherwise. "unix:PATH"
            is a Unix socket, "fd:N" a listening socket that the parent process has opened.
        port: The TCP port; 8000 unless you say otherwise, 0 for one that is free.
        tls: Serve HTTPS with this context.
        sock: A socket that listens already, in place of host and port.
        proxies: Addresses or networks whose `X-Forwarded-For` is believed; nobody's is otherwise.
    """

    path: str
    host: str
    port: int
    tls: ssl.SSLContext | None
    sock: socket.socket | None
    proxies: str | Sequence[str]


class RunOptions(HttpOptions, total=False):
    """The options of `Server.run`; which of them there are depends on the transport.

    Attributes:
        workers: How many processes serve HTTP; they share a `store`.
        limit: The most bytes of one message, for every transport but HTTP, which has `limits`.
        on_ready: Called with the address in use once the server can be reached.
    """

    workers: int
    limit: int
    on_ready: Callable[[Any], None]
