"""Servers whose changes are listened to, in both eras."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Changed, Server
from interlock.wire.revisions import NEWEST, R4
from tests.client.peers import Peer

BOTH = pytest.mark.parametrize("revision", [R4, NEWEST])
TOOLS = Changed("tools")
PROMPTS = Changed("prompts")
RESOURCES = Changed("resources")


def shop() -> Server:
    """A server in which everything can change."""
    server = Server("shop")

    @server.tool
    async def touch(uri: str) -> None:
        """Say that something has changed."""
        server.updated(uri)

    @server.resource("shop://shelf")
    async def shelf() -> str:
        return "full"

    @server.resource("shop://shelf/{row}/{place}")
    async def place(row: str, place: str) -> str | None:
        return f"{row}{place}" if row != "z" else None

    @server.prompt
    async def offer() -> str:
        return "Buy."

    return server


def peer_of(revision: str, **more: Any) -> Peer:
    """A server on the wire that grants every subscription."""
    peer = Peer({"resources/subscribe": {}, "resources/unsubscribe": {}, **more}, revision)
    peer.on.setdefault("subscriptions/listen", peer.acknowledge)
    return peer


def tell(peer: Peer, method: str, params: dict[str, Any] | None = None, listen: int = 0) -> None:
    """Tell of a change as the era has it."""
    listens = peer.all("subscriptions/listen")
    peer.tell(method, params, subscription=listens[listen]["id"] if listens else None)
