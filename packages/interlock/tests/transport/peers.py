"""A client held by hand at the other end of a channel: it says what the test wants said, and reads
what comes back as plain data.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from interlock.exchange import Handler
from interlock.testing import MemoryChannel, channel_pair
from interlock.transport.serve import serve
from tests.protocol.frames import identity, initialize, notification, request, stamped


class HandClient:
    """One peer of a server, message by message."""

    def __init__(self, channel: MemoryChannel, serving: asyncio.Task[None]) -> None:
        self.channel = channel
        self.serving = serving
        self._came: list[dict[str, Any]] = []

    def call(self, id: Any, name: str = "x", **params: Any) -> None:
        """Call a tool under the newest revision."""
        self.channel.send([stamped(id, "tools/call", {"name": name, **params})])

    def old_call(self, id: Any, name: str = "x") -> None:
        """Call a tool in a session."""
        self.channel.send([request(id, "tools/call", {"name": name})])

    def cancel(self, id: Any) -> None:
        """Give a call up."""
        self.channel.send([notification("notifications/cancelled", {"requestId": id})])

    async def greet(self, revision: str) -> None:
        """Open a session."""
        self.channel.send([initialize("hello", revision)])
        assert (await self.next())["id"] == "hello"

    async def next(self) -> dict[str, Any]:
        """The next message of the server."""
        while not self._came:
            frames = await self.channel.receive()
            assert frames, "the server has closed"
            self._came += [json.loads(frame) for frame in frames]
        return self._came.pop(0)

    async def rest(self) -> list[dict[str, Any]]:
        """All messages up to the end."""
        while frames := await self.channel.receive():
            self._came += [json.loads(frame) for frame in frames]
        came = self._came
        self._came = []
        return came

    async def answered(self, *ids: Any) -> dict[Any, dict[str, Any]]:
        """The answers to some calls, by id; what else comes is passed over."""
        answers: dict[Any, dict[str, Any]] = {}
        while set(ids) - answers.keys():
            message = await self.next()
            if "method" not in message:
                answers[message.get("id")] = message
        return answers


@contextlib.asynccontextmanager
async def served(handler: Handler, **options: Any) -> AsyncIterator[HandClient]:
    """A handler that is served to a client held by hand."""
    ours, theirs = channel_pair()
    serving = asyncio.create_task(serve(handler, identity(), theirs, **options))
    try:
        async with asyncio.timeout(30):
            yield HandClient(ours, serving)
            await ours.aclose()
            await serving
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
