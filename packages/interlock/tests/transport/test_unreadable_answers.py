"""Answers that cannot be read end their calls at once, over every transport, and the connection
goes on.
"""

from __future__ import annotations

import asyncio
import json
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, ClientSettings, ProtocolError, Server
from interlock.testing import channel_pair
from interlock.transport.stdio import Stdio
from interlock.wire.revisions import R2, R4
from tests.protocol.frames import initialize, request, stamped
from tests.transport.http_peers import both_loops
from tests.transport.scripted_server import (
    JSON,
    R5,
    ScriptedServer,
    begun,
    client_of,
    result,
    scripted,
)

SECONDS = 20  # after which a test that waits has failed; each call here has no bound of its own

DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": [R5],
    "capabilities": {"tools": {}},
    "ttlMs": 0,
    "cacheScope": "private",
}

# What stands in the place of %s within the answer to a call, and the words of the error.
UNREADABLE: dict[str, tuple[str, str]] = {
    "NaN": ('{"content":[],"structuredContent":{"x":NaN}}', "NaN and Infinity are no JSON"),
    "deep nesting": (
        '{"content":[],"_meta":{"x":%s}}' % ("[" * 20_000 + "]" * 20_000),
        "too deeply",
    ),
    "half an object": ('{"content":[', "not valid JSON"),
    "a bad escape": (r'{"content":[{"type":"text","text":"\q"}]}', "not valid JSON"),
    "no content": ('{"content":5}', "Expected `array`"),
    "no object": ("[]", "Expected `object`"),
}
READABLE = r'{"resultType":"complete","content":[{"type":"text","text":"a\ud83d"}]}'
RESULTS = {name: answer for name, (answer, _) in UNREADABLE.items()} | {"half a pair": READABLE}


def frame(id: Any, answer: str, *, id_last: bool = False) -> bytes:
    """An answer whose result is written as it stands; many servers write the id after it."""
    if id_last:
        return f'{{"result":{answer},"jsonrpc":"2.0","id":{json.dumps(id)}}}'.encode()
    return f'{{"jsonrpc":"2.0","id":{json.dumps(id)},"result":{answer}}}'.encode()


def replied(line: bytes) -> bytes | None:
    """The frame that a server of the newest revision answers a frame with."""
    message = json.loads(line)
    if "id" not in message:
        return None
    if message["method"] == "server/discover":
        return frame(message["id"], json.dumps(DISCOVERED))
    name = message["params"]["name"]
    answer = RESULTS.get(name.removesuffix(" at the end"), json.dumps(result("fine")))
    return frame(message["id"], answer, id_last=name.endswith(" at the end"))


@asynccontextmanager
async def over_memory(where: Path) -> AsyncIterator[Client]:
    """A client over a channel in this process."""
    ours, theirs = channel_pair()

    async def serve() -> None:
        while frames := await theirs.receive():
            theirs.send([reply for one in frames if (reply := replied(one)) is not None])

    serving = asyncio.create_task(serve())
    async with Client(ours, timeout=None) as client:
        yield client
    await serving


@asynccontextmanager
async def over_socket(where: Path) -> AsyncIterator[Client]:
    """A client over a Unix socket."""
    path = where / "socket"

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            if (reply := replied(line)) is not None:
                writer.write(reply + b"\n")
        writer.close()

    server = await asyncio.start_unix_server(talk, path)
    async with Client(f"unix://{path}", timeout=None) as client:
        yield client
    server.close()
    await server.wait_closed()


@asynccontextmanager
async def over_stdio(where: Path) -> AsyncIterator[Client]:
    """A client of a child process."""
    script = textwrap.dedent(
        """
        import sys
        from tests.transport.test_unreadable_answers import replied
        for line in sys.stdin.buffer:
            if (reply := replied(line)) is not None:
                sys.stdout.buffer.write(reply + b"\\n")
                sys.stdout.buffer.flush()
        """
    )
    root = Path(__file__).parents[4]
    command = [sys.executable, "-c", script]
    async with Client(
        Stdio(command, cwd=root), timeout=None, settings=ClientSettings(probe_timeout=60)
    ) as client:
        yield client


def over_http(*, streams: bool) -> Callable[[Path], Any]:
    """A client over HTTP, whose answers come as JSON or as event streams."""

    async def answer(asked: Any) -> None:
        body = replied(asked.seen.body) or b""
        if streams:
            await asked.streams(b"data: %b\n\n" % body)
            await asked.hung_up()
        else:
            await asked.says("200 OK", body, JSON)

    @asynccontextmanager
    async def opened(where: Path) -> AsyncIterator[Client]:
        async with scripted() as one:
            one.on["tools/call"] = answer
            async with client_of(one.url, R5, timeout=None) as client:
                yield client

    return opened


TRANSPORTS: dict[str, Callable[[Path], Any]] = {
    "memory": over_memory,
    "a socket": over_socket,
    "stdio": over_stdio,
    "HTTP with JSON": over_http(streams=False),
    "HTTP with event streams": over_http(streams=True),
}


@pytest.mark.parametrize("transport", TRANSPORTS.values(), ids=TRANSPORTS)
async def test_an_answer_that_cannot_be_read_ends_its_call_at_once(
    transport: Callable[[Path], Any], tmp_path: Path
) -> None:
    """With words that say what was wrong with it; the calls after it are answered as ever."""
    async with asyncio.timeout(SECONDS), transport(tmp_path) as client:
        for name, (_, words) in UNREADABLE.items():
            with pytest.raises(ProtocolError, match=words):
                await client.call_tool(name)
            assert (await client.call_tool("fine")).text == "fine"
        with pytest.raises(ProtocolError, match="NaN"):
            await client.call_tool("NaN at the end")
        assert (await client.call_tool("half a pair")).text == "a\ufffd"


class Old:
    """A server of HTTP with SSE whose stream the test writes."""

    def __init__(self, one: ScriptedServer) -> None:
        self.scripted = one
        self.stream: Any = None

    async def begin(self, asked: Any) -> None:
        """Open the stream, and name the place for messages."""
        self.stream = asked
        await asked.streams(b"event: endpoint\ndata: /messages\n\n")
        await asked.hung_up()

    async def greet(self, asked: Any) -> None:
        """Answer `initialize`."""
        told = {"protocolVersion": R2, "capabilities": {"tools": {}}}
        greeting = {**told, "serverInfo": {"name": "old", "version": "1"}}
        await asked.taken()
        await self.stream.sends(b"data: %b\n\n" % frame(asked.id, json.dumps(greeting)))

    async def answer(self, asked: Any) -> None:
        """Answer a call."""
        await asked.taken()
        await self.stream.sends(b"data: %b\n\n" % (replied(asked.seen.body) or b""))


@both_loops
async def test_the_same_on_the_one_stream_of_the_oldest_revision() -> None:
    """HTTP with SSE: all answers share a stream, and it goes on."""
    async with scripted() as one:
        old = Old(one)
        one.on |= {"GET": old.begin, "initialize": old.greet, "tools/call": old.answer}
        async with client_of(one.url, R2, timeout=None, legacy_sse=True) as client:
            for name, (_, words) in UNREADABLE.items():
                with pytest.raises(ProtocolError, match=words):
                    await client.call_tool(name)
                assert (await client.call_tool("fine")).text == "fine"


async def test_only_the_call_whose_answer_cannot_be_read_ends() -> None:
    """The others wait on."""
    ours, theirs = channel_pair()

    async def next_call() -> Any:
        (message,) = await theirs.receive()
        return json.loads(message)

    async with asyncio.timeout(SECONDS):
        opening = begun(Client(ours, revision=R5, timeout=None).__aenter__())
        theirs.send([replied(json.dumps(await next_call()).encode()) or b""])
        client = await opening
        first = begun(client.call_tool("one"))
        second = begun(client.call_tool("two"))
        calls: dict[str, Any] = {}
        while len(calls) < 2:
            for message in await theirs.receive():
                said = json.loads(message)
                calls[said["params"]["name"]] = said["id"]
        theirs.send([frame(calls["two"], '{"content":[NaN]}')])
        with pytest.raises(ProtocolError, match="NaN"):
            await second
        assert not first.done()
        theirs.send([frame(calls["one"], json.dumps(result("still")))])
        assert (await first).text == "still"
        await client.aclose()


async def test_every_call_of_a_batch_that_cannot_be_read_ends() -> None:
    """2025-03-26 has batches: what can be read of one is an answer, and the rest is an error."""
    ours, theirs = channel_pair()
    greeting = {
        "protocolVersion": R2,
        "capabilities": {},
        "serverInfo": {"name": "b", "version": "1"},
    }
    async with asyncio.timeout(SECONDS):
        opening = begun(Client(ours, revision=R2, timeout=None).__aenter__())
        (hello,) = await theirs.receive()
        theirs.send([frame(json.loads(hello)["id"], json.dumps(greeting))])
        client = await opening
        calls = [begun(client.call_tool(name)) for name in ("a", "b")]
        ids: list[Any] = []
        while len(ids) < 2:
            for message in await theirs.receive():
                said = json.loads(message)
                ids += [said["id"]] if "id" in said else []
        good = frame(ids[0], json.dumps(result("good")))
        bad = frame(ids[1], '{"content":[NaN]}')
        theirs.send([b"[%b,%b]" % (good, bad)])
        assert (await calls[0]).text == "good"
        with pytest.raises(ProtocolError, match="NaN"):
            await calls[1]
        await client.aclose()


async def test_a_question_of_the_server_is_read_with_replacement_characters() -> None:
    """Halves of surrogate pairs come from servers in requests too."""
    ours, theirs = channel_pair()
    greeting = {
        "protocolVersion": R4,
        "capabilities": {},
        "serverInfo": {"name": "b", "version": "1"},
    }
    asked: list[str] = []

    def elicit(params: Any) -> bool:
        asked.append(params.message)
        return True

    async with asyncio.timeout(SECONDS):
        opening = begun(Client(ours, revision=R4, elicit=elicit).__aenter__())
        (hello,) = await theirs.receive()
        theirs.send([frame(json.loads(hello)["id"], json.dumps(greeting))])
        client = await opening
        question = rb'{"message":"\ud83d?","requestedSchema":{"type":"object","properties":{}}}'
        theirs.send(
            [b'{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":%b}' % question]
        )
        answers: list[Any] = []
        while not answers:
            answers += [m for m in map(json.loads, await theirs.receive()) if m.get("id") == "q"]
        assert answers[0]["result"]["action"] == "accept"
        assert asked == ["\ufffd?"]
        await client.aclose()


@pytest.mark.parametrize("revision", [R4, R5])
async def test_a_server_reads_halves_of_surrogate_pairs_as_replacement_characters(
    revision: str,
) -> None:
    """In arguments that a client sends, under every revision; what no JSON has ends the call with
    its id.
    """
    server = Server("echoes")

    @server.tool
    def echo(text: str) -> str:
        return text

    ours, theirs = channel_pair()
    serving = asyncio.create_task(server.serve(theirs))
    async with asyncio.timeout(SECONDS):
        if revision == R4:
            ours.send([initialize(1, R4)])
            await ours.receive()
        for id, text, want in ((2, rb'"\ud83d!"', "\ufffd!"), (3, b"NaN", None)):
            call = stamped if revision == R5 else request
            plain = call(id, "tools/call", {"name": "echo", "arguments": {"text": "HERE"}})
            ours.send([plain.replace(b'"HERE"', text)])
            (reply,) = [json.loads(frame) for frame in await ours.receive()]
            assert reply["id"] == id
            if want is None:
                assert reply["error"]["code"] == -32700
            else:
                assert reply["result"]["content"][0]["text"] == want
        await ours.aclose()
        await serving
