"""The front of the gateway over HTTP: it leads each request to the endpoint of its view, to the
connect page, or to the page of the gateway.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from interlock import HttpResponse

if TYPE_CHECKING:
    from interlock.auth import Guard

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

_METADATA = "/.well-known/oauth-protected-resource/"
_READY = ("/health", "/health/ready")


class FrontDoors(Protocol):
    """The endpoints beside that of the default view."""

    def view_app(self, view: str) -> ASGIApp | None:
        """Return the app of a view, with its guard; None if there is no such view."""
        ...

    @property
    def connect_app(self) -> ASGIApp | None:
        """The connect page."""
        ...

    def page_app(self, path: str) -> ASGIApp | None:
        """Return the page of the gateway, if a path is its."""
        ...

    def unready(self) -> Sequence[str]:
        """Return the required servers that cannot be used."""
        ...

    async def drain_views(self, grace: float) -> None:
        """Let the running calls of all views but the default one end."""
        ...


class GatewayFront:
    """The front, as the `guard` of the default view's endpoint.

    Args:
        doors: The other endpoints.
        guard: The guard of the default view; None for none.
    """

    def __init__(self, doors: FrontDoors, guard: Guard | None) -> None:
        self._doors = doors
        self._guard = guard

    def __call__(self, app: ASGIApp) -> FrontApp:
        """Return the endpoint of the default view with the front before it."""
        if self._guard is None:
            return FrontApp(self._doors, app, has_guard=False)
        return FrontApp(self._doors, self._guard(app), has_guard=True)

    def learn(self, path: str, scopes: Callable[[], Iterable[str]]) -> None:
        """Tell the guard the path of the endpoint, and the scopes of its features."""
        if self._guard is not None:
            self._guard.learn(path, scopes)

    async def drain(self, grace: float) -> None:
        """Let the running calls of the other views end, for `grace` seconds."""
        await self._doors.drain_views(grace)

    async def aclose(self) -> None:
        """Close the guard."""
        if self._guard is not None:
            await self._guard.aclose()


class FrontApp:
    """The ASGI app of the front.

    Args:
        doors: The other endpoints.
        app: The endpoint of the default view, with its guard.
        has_guard: Whether it has a guard.
    """

    def __init__(self, doors: FrontDoors, app: ASGIApp, *, has_guard: bool) -> None:
        self._doors = doors
        self._app = app
        self._read_token = getattr(app, "read_token", None)
        self.has_principals = has_guard
        """Whether the clients of one address may be several principals."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lead one request to its endpoint."""
        app = self._app
        if scope["type"] == "http":
            app = self._found(scope["path"]) or app
        await app(scope, receive, send)

    def read_token(
        self, path: str, query: bytes, headers: Sequence[tuple[bytes, bytes]]
    ) -> tuple[Any, list[tuple[bytes, bytes]]] | None:
        """Read the bearer token of a request to the default view, as its guard does; no token
        without a guard.
        """
        if self._read_token is None:
            return None, [*headers]
        found: tuple[Any, list[tuple[bytes, bytes]]] | None = self._read_token(path, query, headers)
        return found

    def _found(self, path: str) -> ASGIApp | None:
        """Return the app of a path; None for the default view."""
        doors = self._doors
        if path in _READY and (unready := doors.unready()):
            answer: Any = HttpResponse({"status": "unready", "servers": [*unready]}, 503)
            refusing: ASGIApp = answer
            return refusing
        if path.startswith("/connect/"):
            return doors.connect_app
        named = path.removeprefix(_METADATA) if path.startswith(_METADATA) else path[1:]
        view, slash, rest = named.partition("/")
        if slash and rest:
            app = doors.view_app(view)
            if app is not None:
                return app
        return doors.page_app(path)
