"""The interface of an open client to its parts that send requests: subscriptions and skills."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from .. import types as t
from ..exchange import AnyResult, Caller, Exchange
from ..transport.list_pages import ListLimits

R = TypeVar("R", bound=t.Result)


class OpenClient(Protocol):
    """What a subscription or a skill needs of its client."""

    @property
    def timeout(self) -> float | None:
        """Seconds that a request may take."""
        ...

    @property
    def caller(self) -> Caller:
        """What the client says about itself on each request."""
        ...

    @property
    def connected(self) -> bool:
        """Whether the client is open."""
        ...

    @property
    def server_capabilities(self) -> t.ServerCapabilities:
        """What the server offers."""
        ...

    @property
    def list_limits(self) -> ListLimits:
        """How much a list may hold over all its pages."""
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

    def outdate(self, method: str, params: Any) -> None:
        """Drop cached answers that a change notice makes stale."""
        ...
