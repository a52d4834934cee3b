"""The older transport of two endpoints, from the client's end: a stream to listen to, and a place
to post to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from interlock import Client, McpError, ProtocolError, TimedOut, Unreachable
from tests.transport.http_peers import both_loops
from tests.transport.scripted_server import (
    ALL,
    HANDSHAKES,
    INFO,
    R1,
    R3,
    Asked,
    ScriptedServer,
    begun,
    client_of,
    event,
    result,
    scripted,
)


class Post:
    """An HTTP+SSE server: its stream, which the test holds, and the messages that were posted."""

    def __init__(self, server: ScriptedServer, client: Client, stream: Asked) -> None:
        self.server = server
        self.client = client
        self.stream = stream

    async def said(self, key: str) -> Asked:
        """The next message that was posted, which is accepted."""
        asked = await self.server.next(key)
        assert asked.path == "/messages?id=7"
        await asked.taken()
        return asked

    async def answers(self, asked: Asked, told: dict[str, Any]) -> None:
        """Answer a message on the stream."""
        await self.stream.sends(b"event: message\n" + event(asked.response(told)))


@asynccontextmanager
async def old(
    revision: str = R1, endpoint: bytes = b"/messages?id=7", **options: Any
) -> AsyncIterator[Post]:
    """An open client of such a server."""
    async with scripted() as server:
        server.on.clear()
        client = client_of(server.url, revision, legacy_sse=True, **options)
        opening = begun(client.open())
        stream = await server.next("GET")
        assert stream.header("accept") == "text/event-stream"
        await stream.streams(b"event: endpoint\ndata: " + endpoint + b"\n\n")
        post = Post(server, client, stream)
        greeting = await post.said("initialize")
        await post.answers(
            greeting, {"protocolVersion": revision, "capabilities": ALL, "serverInfo": INFO}
        )
        await post.said("notifications/initialized")
        await opening
        try:
            yield post
        finally:
            await client.aclose()
            await post.stream.hung_up()


@pytest.mark.parametrize("revision", HANDSHAKES)
@both_loops
async def test_calls_and_answers(revision: str) -> None:
    """Everything is posted to the place that the first event names, and answered on the stream; in
    any revision of its era (`HPS-02`, `HPS-03`).
    """
    async with old(revision) as post:
        assert post.client.revision == revision
        doing = [begun(post.client.call_tool("act", {"n": n})) for n in range(5)]
        calls = [await post.said("tools/call") for _ in doing]
        assert [call.params["arguments"]["n"] for call in calls] == list(
            range(5)
        )  # one after the other, as they were said
        for call in reversed(calls):
            await post.answers(call, result(str(call.params["arguments"]["n"])))
        assert [answer.text for answer in await asyncio.gather(*doing)] == ["0", "1", "2", "3", "4"]


@both_loops
async def test_what_else_stands_on_the_stream() -> None:
    """Comments, events without data, events of other names, half events: passed over; they are not
    its end (`HPS-04`).
    """
    async with old() as post:
        doing = begun(post.client.call_tool("act"))
        call = await post.said("tools/call")
        await post.stream.sends(
            b": ping\n\n",
            b"id: 1\n\n",
            b"retry: 5\n\n",
            b"event: ping\ndata: {}\n\n",
            b"data: no JSON\n\n",
            b"data:\n\n",
        )
        await post.stream.sends(b"event: endpoint\ndata: /elsewhere\n\n")
        answer = event(call.response(result()))
        for byte in answer:
            await post.stream.sends(bytes([byte]))
        assert (await doing).text == "done"


@both_loops
async def test_questions_and_cancellation() -> None:
    """The server asks on the stream, and is answered by a POST; a call that is given up is
    cancelled by one (`HPS-03`, `HTL-22`).
    """
    async with old(R3, elicit=lambda params: {"a": 1}) as post:
        doing = begun(post.client.call_tool("act"))
        call = await post.said("tools/call")
        params = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        await post.stream.sends(
            event({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})
        )
        assert (await post.said("response")).body["result"]["content"] == {"a": 1}
        doing.cancel()
        cancelled = await post.said("notifications/cancelled")
        assert cancelled.params["requestId"] == call.id


ENDPOINTS = [
    b"http://127.0.0.2/messages", b"//127.0.0.2/messages", b"https://127.0.0.1/messages",
    b"http://127.0.0.1:1/messages",
    b"http://[::1/messages", b"http://127.0.0.1:99999/m", b"javascript:alert(1)",
    b"http://me@127.0.0.2/", b"/mess ages",
]  # fmt: skip


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@both_loops
async def test_another_origin_is_refused(endpoint: bytes) -> None:
    """Nothing is posted to an endpoint of another origin, or one that is none (`HPS-07`)."""
    async with scripted() as server:
        server.on.clear()
        opening = begun(client_of(server.url, R1, legacy_sse=True, token="t0k").open())
        stream = await server.next("GET")
        await stream.streams(b"event: endpoint\ndata: " + endpoint + b"\n\n")
        with pytest.raises(Unreachable, match="another origin"):
            await opening
        await stream.hung_up()
        assert server.keys() == ["GET"]


@pytest.mark.parametrize("absolute", [False, True])
@both_loops
async def test_endpoints_may_be_absolute(absolute: bool) -> None:
    """With scheme, host and port, where they are the same."""
    async with scripted() as server:
        server.on.clear()
        opening = begun(client_of(server.url, R1, legacy_sse=True).open())
        stream = await server.next("GET")
        where = f"HTTP://127.0.0.1:{server.port}" if absolute else ""
        await stream.streams(
            b"\xef\xbb\xbfid: 0\n\nevent: endpoint\ndata: "
            + where.encode()
            + b"/deep/er?x=1\r\n\r\n"
        )
        greeting = await server.next("initialize")
        assert greeting.path == "/deep/er?x=1"
        await greeting.fails(-32603, "no")
        await stream.ends()
        with pytest.raises(Unreachable):
            await opening


NO_SUCH: dict[str, tuple[Any, str]] = {
    "404": (lambda asked: asked.says("404 Not Found"), "404"),
    "401": (lambda asked: asked.says("401 Unauthorized"), "401.*token"),
    "a page": (
        lambda asked: asked.says("200 OK", b"<html>Hello</html>", "Content-Type: text/html"),
        "Hello",
    ),
    "another first event": (
        lambda asked: asked.streams(b"data: {}\n\n"),
        "does not say where to post to",
    ),
    "an end": (
        lambda asked: asked.says("200 OK", b"", "Content-Type: text/event-stream"),
        "does not say where to post to",
    ),
    "a break": (lambda asked: asked.breaks(), "closed the connection"),
    "endless words": (
        lambda asked: asked.streams(b"event: endpoint\ndata: " + b"x" * 5000),
        "cannot be read",
    ),
}


@pytest.mark.parametrize("why", NO_SUCH)
@both_loops
async def test_servers_that_are_none_of_these(why: str) -> None:
    """An error in words, and nothing posted."""
    say, words = NO_SUCH[why]
    async with scripted() as server:
        server.on.clear()
        opening = begun(client_of(server.url, R1, legacy_sse=True, limit=4096).open())
        stream = await server.next("GET")
        await say(stream)
        with pytest.raises((Unreachable, ProtocolError), match=words):
            await opening
        await stream.hung_up()
        assert server.keys() == ["GET"]


@both_loops
async def test_a_server_that_never_says_where() -> None:
    """The wait has an end, and the stream is closed."""
    async with scripted() as server:
        server.on.clear()
        opening = begun(client_of(server.url, R1, legacy_sse=True, timeout=0.3).open())
        stream = await server.next("GET")
        await stream.streams(b":\n\n")
        with pytest.raises(TimedOut, match="where to post to"):
            await opening
        await stream.hung_up()


@pytest.mark.parametrize("how", ["refused", "sent elsewhere", "broken"])
@both_loops
async def test_a_message_that_is_not_taken(how: str) -> None:
    """Its answer would never come: whoever waits is told the words of the refusal (`HPS-03`)."""
    async with old() as post:
        doing = begun(post.client.call_tool("act"))
        call = await post.server.next("tools/call")
        match how:
            case "refused":
                await call.says("403 Forbidden", b"Not you")
            case "sent elsewhere":
                await call.says("307 Over there", b"", "Location: http://127.0.0.2/")
            case "broken":
                await call.breaks()
        words = {
            "refused": "403: Not you",
            "sent elsewhere": "another origin",
            "broken": "closed the connection",
        }
        with pytest.raises(Unreachable, match=words[how]):
            await doing


@both_loops
async def test_redirects_within_the_origin_are_followed() -> None:
    """For messages as for anything else; the body goes with them."""
    async with old() as post:
        doing = begun(post.client.call_tool("act", {"n": 1}))
        call = await post.server.next("tools/call")
        await call.says("307 Over there", b"", "Location: /messages?id=7&more")
        again = await post.server.next("tools/call")
        assert (again.path, again.body) == ("/messages?id=7&more", call.body)
        await again.taken()
        await post.answers(again, result())
        assert (await doing).text == "done"


@pytest.mark.parametrize("gracefully", [False, True])
@both_loops
async def test_a_stream_that_ends(gracefully: bool) -> None:
    """Whoever waits is told; the next call opens another stream, with a handshake."""
    async with old() as post:
        doing = begun(post.client.call_tool("act"))
        await post.said("tools/call")
        await (post.stream.ends() if gracefully else post.stream.breaks())
        with pytest.raises(Unreachable, match="closed the connection|broke"):
            await doing
        doing = begun(post.client.call_tool("act"))
        await again(post)
        await post.answers(await post.said("tools/call"), result("once more"))
        assert (await doing).text == "once more"


async def again(post: Post) -> None:
    """Serve another stream, and the handshake on it."""
    post.stream = await post.server.next("GET")
    await post.stream.streams(b"event: endpoint\ndata: /messages?id=7\n\n")
    greeting = await post.said("initialize")
    await post.answers(greeting, {"protocolVersion": R1, "capabilities": ALL, "serverInfo": INFO})
    await post.said("notifications/initialized")


@both_loops
async def test_what_a_server_was_told_is_told_again_on_another_stream() -> None:
    """Its log level and its subscriptions; a list that was under way is asked for again, a call is
    not.
    """
    async with old() as post:
        telling = begun(post.client.set_log_level("debug"))
        await post.answers(await post.said("logging/setLevel"), {})
        await telling
        lists = begun(post.client.list_prompts())
        calls = begun(post.client.call_tool("act"))
        await post.said("prompts/list")
        await post.said("tools/call")
        await post.stream.ends()
        with pytest.raises(Unreachable, match="closed the connection"):
            await calls
        await again(post)
        level = await post.said("logging/setLevel")
        assert level.params["level"] == "debug"
        await post.answers(level, {})
        await post.answers(await post.said("prompts/list"), {"prompts": []})
        assert await lists == []


@both_loops
async def test_a_server_that_is_away_is_asked_for_with_each_call() -> None:
    """Each call says that it is away, and the first one after that goes well."""
    async with old() as post:
        doing = begun(post.client.call_tool("act"))
        await post.said("tools/call")
        await post.stream.ends()
        with pytest.raises(Unreachable):
            await doing
        for _ in range(5):
            doing = begun(post.client.call_tool("act"))
            await (await post.server.next("GET")).says("503 Service Unavailable", b"later")
            with pytest.raises(Unreachable):
                await doing
        doing = begun(post.client.call_tool("act"))
        await again(post)
        await post.answers(await post.said("tools/call"), result("back"))
        assert (await doing).text == "back"


@both_loops
async def test_an_error_is_an_error() -> None:
    """On the stream, like any answer."""
    async with old() as post:
        doing = begun(post.client.call_tool("act"))
        call = await post.said("tools/call")
        await post.stream.sends(
            event(
                {
                    "jsonrpc": "2.0",
                    "id": call.id,
                    "error": {"code": -32602, "message": "Unknown tool"},
                }
            )
        )
        with pytest.raises(McpError, match="Unknown tool"):
            await doing
