"""A peer that writes frames by hand, to servers that are served over a channel in memory."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import msgspec

from interlock import Server
from interlock.testing import MemoryChannel, channel_pair
from interlock.wire.revisions import NEWEST, STATELESS_REVISIONS

META = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    "io.modelcontextprotocol/clientInfo": {"name": "peer", "version": "1"},
}


class Peer:
    """A client without manners of its own: says what it is told to, and keeps what is said to
    it.
    """

    def __init__(
        self,
        server: Server,
        revision: str | None,
        capabilities: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.channel, other = channel_pair()
        self.revision = revision
        self.capabilities = {"elicitation": {}} if capabilities is None else capabilities
        self.serving = asyncio.create_task(server.serve(other, **options))
        self.other: MemoryChannel = other
        self.received: list[dict[str, Any]] = []
        self._ids = count(1)

    @classmethod
    async def of(cls, server: Server, revision: str | None = NEWEST, **options: Any) -> Peer:
        """A peer that speaks a revision, or with None one that has not said which; `options` are
        those of `Server.serve`.
        """
        peer = cls(server, revision, **options)
        if revision is not None and revision not in STATELESS_REVISIONS:
            hello = {
                "protocolVersion": revision,
                "capabilities": peer.capabilities,
                "clientInfo": {"name": "peer", "version": "1"},
            }
            assert "result" in await peer.ask("initialize", hello)
            peer.say({"method": "notifications/initialized"})
        return peer

    def say(self, message: dict[str, Any]) -> None:
        """Send one message."""
        self.channel.send([msgspec.json.encode({"jsonrpc": "2.0", **message})])

    def begin(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request; returns its id."""
        id = next(self._ids)
        self.say({"id": id, "method": method, "params": self._signed(params)})
        return id

    def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification that says who sends it, as a request does."""
        self.say({"method": method, "params": self._signed(params)})

    def _signed(self, params: dict[str, Any] | None) -> dict[str, Any]:
        given = params or {}
        if self.revision not in STATELESS_REVISIONS:
            return given
        said = {**META, "io.modelcontextprotocol/clientCapabilities": self.capabilities}
        return {**given, "_meta": {**said, **given.get("_meta", {})}}

    async def answer(self, id: int) -> dict[str, Any]:
        """Listen until a request is answered; what else is said lies in `received`."""
        async with asyncio.timeout(30):
            while True:
                for message in self.received:
                    if message.get("id") == id and "method" not in message:
                        self.received.remove(message)
                        return message
                await self.listen()

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        return await self.answer(self.begin(method, params))

    async def listen(self) -> None:
        """Take in what comes next."""
        frames = await self.channel.receive()
        assert frames, "the server has closed the channel"
        self.received += [msgspec.json.decode(frame) for frame in frames]

    async def aclose(self) -> None:
        """Go away, and wait until the server has noticed. Raises what serving raised."""
        await self.channel.aclose()
        await self.serving
