"""The interface of a server to what serves it over HTTP, stdio and sockets."""

from __future__ import annotations

from typing import Protocol

from ...exchange import Handler, Principal
from ...idempotency import Peers
from ...protocol.identity import Identity
from ...store.interface import RecordStore
from ...transport.channel import Channel
from ...transport.http.routes import Routes
from ..changes import ChangeBus
from ..server_options import ServerLimits


class ServedServer(Protocol):
    """What a program or an HTTP endpoint needs of the server that it serves."""

    bus: ChangeBus

    @property
    def identity(self) -> Identity:
        """What the server says it is and offers."""
        ...

    @property
    def limits(self) -> ServerLimits:
        """The limits of the server."""
        ...

    @property
    def handler(self) -> Handler:
        """The handler with all middleware around it."""
        ...

    @property
    def scopes(self) -> frozenset[str]:
        """All scopes that a feature needs."""
        ...

    def share_calls(self, records: RecordStore, peers: Peers) -> None:
        """Share suspended calls and their outcomes with other workers; before the first call."""
        ...

    def take_routes(self) -> Routes | None:
        """The routes beside the endpoint. None may be added afterwards."""
        ...

    async def serve(
        self, channel: Channel, *, principal: Principal | None = None, anonymous: bool = False
    ) -> None:
        """Serve one peer over a channel until it closes."""
        ...

    async def enter(self) -> None:
        """Count one more peer or endpoint; the first one starts the lifespan."""
        ...

    async def leave(self) -> None:
        """Count one peer or endpoint less; the last one ends the lifespan."""
        ...

    def close_subscriptions(self) -> None:
        """End every open subscription."""
        ...

    async def aclose(self) -> None:
        """End subscriptions, suspended calls and threads."""
        ...
