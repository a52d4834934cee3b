"""What a server asks of a client unasked is answered at once, though the client itself has nothing
to say.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from interlock import Answers, Client


class Script:
    """A channel whose other end is a server played by the test."""

    lost = ""
    queued = 0

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self.to_client: asyncio.Queue[bytes] = asyncio.Queue()
        self.to_server: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def say(self, **message: Any) -> None:
        self.to_client.put_nowait(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def receive(self) -> list[bytes]:
        frame = await self.to_client.get()
        return [frame] if frame else []

    def send(self, frames: list[bytes]) -> None:
        for frame in frames:
            message = json.loads(frame)
            self.to_server.put_nowait(message)
            if message.get("method") == "initialize":
                self.say(
                    id=message["id"],
                    result={
                        "protocolVersion": self.revision,
                        "capabilities": {},
                        "serverInfo": {"name": "s", "version": "1"},
                    },
                )

    async def drain(self) -> None:
        """Nothing is ever queued."""

    async def aclose(self) -> None:
        self.to_client.put_nowait(b"")


URL = {"mode": "url", "message": "Sign in", "url": "https://example.com", "elicitationId": "1"}
TOOLS = {
    "messages": [],
    "maxTokens": 9,
    "tools": [{"name": "t", "inputSchema": {"type": "object"}}],
}

QUESTIONS: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "ping": ("2025-11-25", "ping", {}, {"result": {}}),
    "unknown": ("2025-11-25", "house/unknown", {}, {"error": -32601}),
    "too new": (
        "2024-11-05",
        "elicitation/create",
        {"message": "?", "requestedSchema": {}},
        {"error": -32601},
    ),
    "without sense": ("2025-11-25", "sampling/createMessage", {}, {"error": -32602}),
    "a page to visit": ("2025-06-18", "elicitation/create", URL, {"error": -32602}),
    "tools for the model": ("2025-06-18", "sampling/createMessage", TOOLS, {"error": -32602}),
}


@pytest.mark.parametrize("name", QUESTIONS)
async def test_a_quiet_client_answers(name: str) -> None:
    """A ping is answered; what nobody knows, what the revision lacks, what has no sense or was not
    declared is refused (`PNG-01`, `ERR-18`, `SAM-13`).
    """
    revision, method, params, answer = QUESTIONS[name]
    asked: list[Any] = []
    channel = Script(revision)
    async with Client(
        channel, revision=revision, answers=Answers(elicit=asked.append, sample=asked.append)
    ):
        assert [(await channel.to_server.get())["method"] for _ in range(2)] == [
            "initialize",
            "notifications/initialized",
        ]
        channel.say(id="q", method=method, params=params)
        said = await asyncio.wait_for(channel.to_server.get(), 10)
        assert said["id"] == "q"
        assert said.get("result", said.get("error", {}).get("code")) == answer.get(
            "result", answer.get("error")
        )
    assert asked == []
