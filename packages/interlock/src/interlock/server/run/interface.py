"""The interface of a server to the code that serves it over HTTP, stdio and sockets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ...exchange import Handler, Middleware, Principal
from ...idempotency import Peers
from ...input_required import SuspendedCalls
from ...observe.meters import Meters
from ...observe.options import Observe
from ...protocol.identity import Identity
from ...quotas import CountsUsage, Quota
from ...store.interface import RecordStore
from ...transport.channel import Channel
from ..changes import ChangeBus
from ..server_options import ServerLimits

if TYPE_CHECKING:
    from ...transport.http.routes import Routes
    from ..sources.upstreams import UpstreamState


class ServedServer(Protocol):
    """The members of a server that a program or an HTTP endpoint uses."""

    bus: ChangeBus
    observe: Observe | None

    @property
    def identity(self) -> Identity:
        """The name and the capabilities of the server."""
        ...

    @property
    def dev(self) -> bool:
        """Whether the server is in development mode."""
        ...

    @property
    def limits(self) -> ServerLimits:
        """The limits of the server."""
        ...

    @property
    def meters(self) -> Meters:
        """The metrics of the server in this process."""
        ...

    @property
    def memory(self) -> Quota:
        """The memory budget: the bytes that requests, suspended calls and tasks hold."""
        ...

    @property
    def quotas(self) -> Mapping[str, CountsUsage]:
        """All quotas of the server and its extensions, by the names of their counters."""
        ...

    @property
    def upstreams(self) -> Sequence[UpstreamState]:
        """The state of each mounted source."""
        ...

    @property
    def handler(self) -> Handler:
        """The handler with all middleware."""
        ...

    @property
    def scopes(self) -> frozenset[str]:
        """All scopes that a feature requires."""
        ...

    @property
    def suspended_calls(self) -> SuspendedCalls:
        """The calls that wait for answers."""
        ...

    def share_calls(self, records: RecordStore, peers: Peers) -> None:
        """Share suspended calls and their outcomes with other workers. Call it before the first
        call.
        """
        ...

    def log_requests(self, log: Middleware) -> None:
        """Log every request with this middleware. Call it before the first request."""
        ...

    def take_routes(self) -> Routes | None:
        """Return the routes beside the endpoint. No routes can be added after that."""
        ...

    def session_ended(self, seconds: float, *, is_http: bool) -> None:
        """Record how long a session lasted, or the connection of a peer."""
        ...

    async def serve(
        self, channel: Channel, *, principal: Principal | None = None, anonymous: bool = False
    ) -> None:
        """Serve one peer over a channel until it closes."""
        ...

    async def enter(self) -> None:
        """Register a peer or an endpoint. The first one starts the lifespan."""
        ...

    async def drain(self) -> None:
        """Let extensions give up what other workers continue."""
        ...

    async def leave(self) -> None:
        """Unregister a peer or an endpoint. The last one ends the lifespan."""
        ...

    def close_subscriptions(self) -> None:
        """End every open subscription."""
        ...

    async def aclose(self) -> None:
        """End subscriptions, suspended calls and threads."""
        ...
