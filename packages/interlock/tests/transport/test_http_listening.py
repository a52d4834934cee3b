"""The stream on which a server of the handshake era speaks of itself: it is there before the first
call, wherever the server has one.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from interlock import Client, types
from tests.transport.http_peers import Peer, Seen, Talk, ok, serving

REVISION = "2025-11-25"
GREETING = {
    "protocolVersion": REVISION,
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "peer", "version": "1"},
}
JSON = "Content-Type: application/json"
EVENTS = "Content-Type: text/event-stream"
QUESTION = {
    "jsonrpc": "2.0",
    "id": "q1",
    "method": "elicitation/create",
    "params": {"message": "Well?", "requestedSchema": {"type": "object", "properties": {}}},
}


def data(message: dict[str, Any]) -> bytes:
    """A message as an event."""
    return b"data: %b\n\n" % json.dumps(message).encode()


def answer(id: Any, result: dict[str, Any]) -> dict[str, Any]:
    """A response."""
    return {"jsonrpc": "2.0", "id": id, "result": result}


class Speaker:
    """A server that is slow to open the stream of its session, and asks on it as soon as a tool is
    called.
    """

    def __init__(self, *, listens: bool = True, settles_there: bool = False) -> None:
        self.listens = listens
        self.settles_there = settles_there
        self.stream: asyncio.StreamWriter | None = None
        self.replied = asyncio.Event()

    async def __call__(self, talk: Talk) -> None:
        while (seen := await talk.read()) is not None:
            if seen.line.startswith("GET"):
                await self.receive(talk)
            elif seen.line.startswith("DELETE"):
                await talk.send(ok())
            else:
                await self.post(talk, json.loads(seen.body))

    async def receive(self, talk: Talk) -> None:
        if not self.listens:
            await talk.send(ok(b"", status="405 Method Not Allowed"))
            return
        await asyncio.sleep(0.05)  # as long as a session takes to be found
        await talk.send(f"HTTP/1.1 200 OK\r\n{EVENTS}\r\n\r\n".encode())
        self.stream = talk.writer
        await talk.gone()

    async def post(self, talk: Talk, message: dict[str, Any]) -> None:
        method = message.get("method")
        id = message.get("id")
        if method == "initialize":
            await talk.send(
                ok(json.dumps(answer(id, GREETING)).encode(), JSON, "Mcp-Session-Id: s1")
            )
        elif method == "tools/call" and self.settles_there:
            await self.settle_elsewhere(talk, id)
        elif method == "tools/call":
            if self.stream is not None:
                self.stream.write(data(QUESTION))
                await self.replied.wait()
            words = "nobody listens" if self.stream is None else "asked"
            await talk.send(
                ok(
                    json.dumps(answer(id, {"content": [{"type": "text", "text": words}]})).encode(),
                    JSON,
                )
            )
        else:
            if id == "q1":
                self.replied.set()
            await talk.send(ok(b"", status="202 Accepted"))

    async def settle_elsewhere(self, talk: Talk, id: Any) -> None:
        """Answer on the stream of the session, against the rules, and let the stream of the call
        end without an answer.
        """
        assert self.stream is not None
        self.stream.write(data(answer(id, {"content": [{"type": "text", "text": "there"}]})))
        head = f"HTTP/1.1 200 OK\r\n{EVENTS}\r\nConnection: close\r\n\r\n"
        await talk.send(head.encode(), b"id: e1\nretry: 1\ndata:\n\n")
        talk.writer.write_eof()


def listened(peer: Peer) -> list[Seen]:
    """The GET requests that came."""
    return [seen for seen in peer.requests if seen.line.startswith("GET")]


async def test_a_question_that_belongs_to_no_call() -> None:
    """The stream is open before the first call is made, so that nothing that is said on it then is
    lost (`HTL-23`, `HTL-24`).
    """
    asked: list[str | None] = []

    def elicit(params: types.ElicitRequestParams) -> bool:
        asked.append(params.message)
        return True

    async with (
        serving(Speaker()) as peer,
        Client(peer.url, revision=REVISION, elicit=elicit) as client,
    ):
        assert (await client.call_tool("t", timeout=5)).text == "asked"
    assert asked == ["Well?"]
    assert [seen.header("accept") for seen in listened(peer)] == ["text/event-stream"]


async def test_a_server_that_does_not_speak_of_itself() -> None:
    """It says so, and that is that (`HTL-25`)."""
    async with (
        serving(Speaker(listens=False)) as peer,
        Client(peer.url, revision=REVISION) as client,
    ):
        assert (await client.call_tool("t", timeout=5)).text == "nobody listens"
    assert len(listened(peer)) == 1


async def test_a_server_that_lets_the_listener_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the answer to the GET does not come, the client does not wait for it for long."""
    monkeypatch.setattr("interlock.transport.http.client.transport._LISTENING", 0.01)
    speaker = Speaker()
    speaker.receive = Talk.gone  # type: ignore[method-assign]  # it takes the request and says nothing
    async with serving(speaker) as peer, Client(peer.url, revision=REVISION) as client:
        assert (await client.call_tool("t", timeout=5)).text == "nobody listens"
    assert len(listened(peer)) == 1


async def test_an_answer_that_comes_on_the_stream_of_the_session() -> None:
    """It is taken for what it is, and nobody waits for it anywhere else, though a server must not
    send it there (`HTL-26`).
    """
    async with (
        serving(Speaker(settles_there=True)) as peer,
        Client(peer.url, revision=REVISION) as client,
    ):
        assert (await client.call_tool("t", timeout=5)).text == "there"
    assert len(listened(peer)) == 1
