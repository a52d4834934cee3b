"""The interface of an open client to its parts that send requests: subscriptions and skills."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from .. import types as t
from ..exchange import AnyResult, Caller, Exchange
from ..transport.list_pages import ListLimits

R = TypeVar("R", bound=t.Result)


class OpenClient(Protocol):
    """The members of a client that a subscription or a skill uses."""

    @property
    def timeout(self) -> float | None:
        """The default maximum duration of a request, in seconds."""
        ...

    @property
    def caller(self) -> Caller:
        """The client's information and capabilities, as sent with each request."""
        ...

    @property
    def connected(self) -> bool:
        """Whether the client is open."""
        ...

    @property
    def server_capabilities(self) -> t.ServerCapabilities:
        """The capabilities of the server."""
        ...

    @property
    def list_limits(self) -> ListLimits:
        """The maximum size of a list over all its pages."""
        ...

    async def request(self, method: str, params: t.Params, kind: type[R]) -> R:
        """Send a request and return its result."""
        ...

    async def read_resource(self, uri: str) -> t.ReadResourceResult:
        """Read a resource."""
        ...

    async def send(self, exchange: Exchange) -> AnyResult:
        """Send an exchange through all middleware."""
        ...

    def invalidate(self, method: str, params: Any) -> None:
        """Drop cached responses that a change notification makes stale."""
        ...
