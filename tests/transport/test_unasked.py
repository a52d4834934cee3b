"""What a server asks of a client unasked is answered at once, though the client itself has nothing to say."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from interlock import Client


class Script:
    """A channel whose other end is a server played by the test."""

    lost = ""
    queued = 0

    def __init__(self) -> None:
        self.to_client: asyncio.Queue[bytes] = asyncio.Queue()
        self.to_server: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def say(self, **message: Any) -> None:
        self.to_client.put_nowait(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def receive(self) -> list[bytes]:
        frame = await self.to_client.get()
        return [frame] if frame else []

    def send(self, frames: list[bytes]) -> None:
        for frame in frames:
            self.to_server.put_nowait(json.loads(frame))

    async def drain(self) -> None:
        """Nothing is ever queued."""

    async def aclose(self) -> None:
        self.to_client.put_nowait(b"")


QUESTIONS = [
    ("2025-11-25", "ping", {"result": {}}),
    ("2025-11-25", "house/unknown", {"error": {"code": -32601, "message": "Method not found: house/unknown"}}),
    ("2024-11-05", "elicitation/create", {"error": {"code": -32601, "message": "Method not found: elicitation/create"}}),
    ("2025-11-25", "sampling/createMessage", {"error": {"code": -32602}}),
]


@pytest.mark.parametrize("revision, method, answer", QUESTIONS, ids=[q[1] for q in QUESTIONS])
async def test_a_quiet_client_answers(revision: str, method: str, answer: dict[str, Any]) -> None:
    """A ping, a request that the revision or nobody knows, and one without sense (`PNG-01`)."""
    channel = Script()
    channel.say(id=1, result={"protocolVersion": revision, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}})
    async with Client(channel, revision=revision):
        assert [(await channel.to_server.get())["method"] for _ in range(2)] == ["initialize", "notifications/initialized"]
        channel.say(id="q", method=method, params={})
        said = await asyncio.wait_for(channel.to_server.get(), 10)
        assert said.pop("id") == "q"
        if "error" in answer:
            assert said["error"].items() >= answer["error"].items()
        else:
            assert said["result"] == answer["result"]
