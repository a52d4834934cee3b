"""HTTP routes of the author beside the endpoint: ASGI apps by path, and an ASGI response of text,
bytes or JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from .authorization import ASGIApp
from .requests import Receive, Scope, Send

# Default paths of the endpoint and the health check; paths of a guard and an issuer.
RESERVED = ("/mcp", "/health")
_WELL_KNOWN = ("/.well-known/oauth-", "/.well-known/openid-configuration")


class Route(Struct, frozen=True):
    """An ASGI app at a path. A path that ends with a slash includes all paths below it.

    Attributes:
        path: The path below the mount point of the server's app.
        app: The ASGI app.
        methods: The HTTP methods of the route; None for all.
        guarded: Whether the guard of the endpoint protects the route too.
    """

    path: str
    app: ASGIApp
    methods: frozenset[str] | None = None
    guarded: bool = False

    @property
    def is_prefix(self) -> bool:
        """Whether the route includes all paths below its path."""
        return len(self.path) > 1 and self.path.endswith("/")


class Routes:
    """The routes of one server: one app for each path, the longest path first."""

    def __init__(self, routes: Iterable[Route] = ()) -> None:
        self._exact: dict[str, Route] = {}
        self._prefixes: list[Route] = []
        for route in routes:
            self.add(route)

    def add(self, route: Route) -> None:
        """Add a route. Raises ValueError if its path is taken."""
        known = (*self._exact, *(prefix.path for prefix in self._prefixes))
        if route.path in known:
            raise ValueError(f"there is a route {route.path!r} already")
        if route.is_prefix:
            self._prefixes.append(route)
            self._prefixes.sort(key=lambda prefix: -len(prefix.path))
        else:
            self._exact[route.path] = route

    def find(self, path: str) -> Route | None:
        """Return the route for a path below the mount point of the app."""
        route = self._exact.get(path)
        if route is not None:
            return route
        for prefix in self._prefixes:
            if path.startswith(prefix.path) or path == prefix.path[:-1]:
                return prefix
        return None

    def check_free(self, taken: Iterable[str]) -> None:
        """Raise ValueError if a route would serve one of these paths, or a path below one of
        them.
        """
        for path in taken:
            for known in (*self._exact.values(), *self._prefixes):
                check_apart(known.path, path)

    def __iter__(self) -> Iterator[Route]:
        return iter((*self._exact.values(), *self._prefixes))

    def __len__(self) -> int:
        return len(self._exact) + len(self._prefixes)


def check_apart(path: str, taken: str) -> None:
    """Raise ValueError if the path of a route is a path of the server, or one of them includes the
    other.
    """
    if taken == "/":
        lies_together = path == "/"
    else:
        lies_together = f"{path.rstrip('/')}/".startswith(f"{taken.rstrip('/')}/") or (
            path.endswith("/") and len(path) > 1 and taken.startswith(path)
        )
    if lies_together:
        raise ValueError(f"the route {path!r} is in the way of {taken!r}, which the server answers")


def made_route(
    path: str, app: ASGIApp, methods: Sequence[str] | None = None, *, guarded: bool = False
) -> Route:
    """Return a route. Raises ValueError for an invalid path or method, and TypeError if the app is
    not an ASGI app.
    """
    if not path.startswith("/") or "//" in path or "?" in path or "#" in path:
        raise ValueError(
            f"the path of a route begins with a slash, as in '/status'; {path!r} is none"
        )
    for taken in RESERVED:
        check_apart(path, taken)
    if path.startswith(_WELL_KNOWN) or path == "/.well-known/":
        raise ValueError(f"the route {path!r} is in the way of what the server's guard answers")
    if not callable(app):
        raise TypeError(f"a route leads to an ASGI app, not to {app!r}")
    if isinstance(methods, str):
        raise TypeError(f"methods are a list, as in [{methods!r}]")
    if methods is None:
        return Route(path, app, None, guarded)
    named = {method.upper() for method in methods}
    if not named:
        raise ValueError("a route answers one method at least; None stands for all")
    if "GET" in named:
        named.add("HEAD")
    return Route(path, app, frozenset(named), guarded)


class HttpResponse:
    """A complete HTTP response, as an ASGI app: `await HttpResponse({"open": True})(scope, receive,
    send)`.

    A HEAD request is answered without the body.

    Args:
        content: Text, bytes, or a value that becomes JSON.
        status: The HTTP status.
        headers: Further headers.
        content_type: Replaces the default: `text/plain; charset=utf-8` for text,
            `application/octet-stream` for bytes, `application/json` for everything else.
    """

    def __init__(
        self,
        content: Any = b"",
        status: int = 200,
        *,
        headers: Mapping[str, str] | None = None,
        content_type: str | None = None,
    ) -> None:
        """Create a response.

        Args:
            content: Text, bytes, or a value that becomes JSON.
            status: The HTTP status.
            headers: Further headers.
            content_type: Replaces the default: `text/plain; charset=utf-8` for text,
                `application/octet-stream` for bytes, `application/json` for everything else.

        Raises:
            TypeError: The value cannot be encoded as JSON.
        """
        if isinstance(content, str):
            body = content.encode()
            usual = "text/plain; charset=utf-8"
        elif isinstance(content, bytes):
            body = content
            usual = "application/octet-stream"
        else:
            body = msgspec.json.encode(content)
            usual = "application/json"
        self.status = status
        self.body = body
        self.headers = {name.lower(): value for name, value in (headers or {}).items()}
        if body:
            self.headers.setdefault("content-type", content_type or usual)
        if status >= 200 and status not in (204, 304):
            self.headers.setdefault("content-length", str(len(body)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        pairs = [
            (name.encode("latin-1"), value.encode("latin-1"))
            for name, value in self.headers.items()
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": pairs})
        body = b"" if scope["method"] == "HEAD" else self.body
        await send({"type": "http.response.body", "body": body})


def bounded(receive: Receive, most: int) -> Receive:
    """Return a `receive` that returns at most this many bytes of a body. After them it reports that
    the client has disconnected.
    """
    taken = 0

    async def receiving() -> Any:
        nonlocal taken
        if taken > most:
            return {"type": "http.disconnect"}
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > most:
            return {"type": "http.disconnect"}
        return message

    return receiving
