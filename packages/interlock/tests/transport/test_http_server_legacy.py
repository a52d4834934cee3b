"""The older transport of two endpoints, over a real socket: a stream to listen to, and a place to
post to (2024-11-05, "HTTP with SSE").
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from interlock import Limits, Server
from interlock.wire.revisions import R1, R4
from tests.protocol.frames import answer, initialize, notification, request
from tests.protocol.offered import offered
from tests.transport.raw_web import House, Line, Web, call, serving, tool

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.usefixtures("web_server"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web(web_server: str) -> AsyncIterator[Web]:
    """A server that serves it too."""
    async with serving(House().server, legacy_sse=True, authorized=True) as shared:
        yield shared


def listening(**headers: str | None) -> Any:
    """A wish for the stream."""
    return offered(
        b"", method="GET", content_type=None, **{"accept": "text/event-stream", **headers}
    )


async def opened(web: Web, revision: str = R1, **headers: str | None) -> tuple[Line, str]:
    """A conversation that was begun: its stream, and where to post."""
    line = await web.begin(listening(**headers), "/sse")
    assert (line.status, line.headers["content-type"]) == (200, "text/event-stream")
    event = await line.event()
    assert event is not None
    assert event.name == "endpoint"
    path = event.data.decode()
    reply = await web.ask(offered(initialize(0, revision), **headers), path)
    assert (reply.status, reply.body) == (202, b"")
    assert (await line.message())["result"]["protocolVersion"] == revision
    assert (
        await web.ask(offered(notification("notifications/initialized"), **headers), path)
    ).status == 202
    return line, path


@pytest.mark.parametrize("revision", [R1, R4])
async def test_two_endpoints(web: Web, revision: str):
    """The first event says where to post; every message of the server is a `message` event of the
    stream, every POST is answered with 202 (`HPS-01`, `HPS-02`, `HPS-04`).
    """
    line, path = await opened(web, revision)
    assert path.startswith("/messages?")
    assert (
        await web.ask(
            offered(request(1, "tools/call", {"name": "chatter", "_meta": {"progressToken": 7}})),
            path,
        )
    ).status == 202
    names = []
    messages = []
    while not messages or "id" not in messages[-1]:
        event = await line.event()
        assert event is not None
        names.append(event.name)
        messages.append(json.loads(event.data))
    assert set(names) == {"message"}
    assert [m.get("method", m.get("id")) for m in messages] == [
        "notifications/progress",
        "notifications/message",
        1,
    ]
    await line.close()


async def test_questions_and_notices(web: Web):
    """Go by the same stream, and their answers by the same place (`HPS-04`)."""
    line, path = await opened(web, R4)
    await web.ask(offered(request(1, "tools/call", {"name": "ask"})), path)
    question = await line.message()
    assert question["method"] == "elicitation/create"
    assert (
        await web.ask(
            offered(answer(question["id"], {"action": "accept", "content": {"value": "Ada"}})), path
        )
    ).status == 202
    assert (await line.message())["result"]["content"][0]["text"] == "Hello, Ada!"
    await web.ask(offered(request(2, "tools/call", {"name": "touch"})), path)
    said = [await line.message(), await line.message()]
    assert {m.get("method", m.get("id")) for m in said} == {"notifications/tools/list_changed", 2}
    await line.close()


async def test_it_stands_beside_the_endpoint(web: Web):
    """Which serves its own eras as ever (`ERA-16`)."""
    assert (await web.ask(call("add", {"a": 1}))).status == 200
    assert (await web.ask(offered(initialize(1, R4)))).status == 200


async def test_it_is_not_there_unless_it_was_asked_for():
    """A new server has no use for it (`HPS-08`)."""
    async with serving(House().server) as web:
        for x, path in (
            (listening(), "/sse"),
            (offered(request(1, "ping")), "/messages?session=x"),
        ):
            assert (await web.ask(x, path)).status == 404


@pytest.mark.parametrize(
    "headers", [{"origin": "https://evil.example"}, {"host": "evil.example"}, {"origin": "null"}]
)
async def test_strangers(web: Web, headers: dict[str, str]):
    """Are refused at both ends, also those that know a place to post to (`HPS-05`, `SEC-01`)."""
    line, path = await opened(web)
    assert (await web.ask(listening(**headers), "/sse")).status == 403
    assert (await web.ask(offered(request(1, "ping"), **headers), path)).status == 403
    await web.ask(offered(request(2, "ping")), path)
    assert (await line.message())["id"] == 2
    await line.close()


async def test_the_place_is_of_no_use_to_others(web: Web):
    """It belongs to the principal that opened the stream, and cannot be guessed (`HPS-06`,
    `SEC-02`, `SEC-03`).
    """
    line, path = await opened(web, authorization="ada")
    for who, status in (("eve", 404), (None, 404), ("ada", 202)):
        assert (
            await web.ask(offered(request(1, "ping"), authorization=who), path)
        ).status == status
    assert (await line.message())["id"] == 1
    assert len(path.partition("session=")[2]) >= 48
    for wrong in ("/messages", "/messages?session=", "/messages?session=" + "0" * 48):
        assert (await web.ask(offered(request(1, "ping")), wrong)).status == 404
    await line.close()


async def test_a_session_of_the_endpoint_is_none_of_this_transport(web: Web):
    """There is no stream that would take what is posted."""
    session = await web.greet()
    assert (
        await web.ask(offered(request(1, "ping")), f"/messages?session={session.id}")
    ).status == 404


async def test_the_end_of_the_stream_is_the_end():
    """The session goes with it, and what ran for it is stopped."""
    house = House()
    async with serving(house.server, legacy_sse=True) as web:
        line, path = await opened(web)
        await web.ask(
            offered(request(1, "tools/call", {"name": "work", "arguments": {"name": "w"}})), path
        )
        await house.began["w"].wait()
        await line.close()
        await house.ended["w"].wait()
        assert house.cancelled == {"w"}
        while (await web.ask(offered(request(2, "ping")), path)).status != 404:
            pass


async def test_what_is_no_message(web: Web):
    """The wrong method, the wrong type, and what cannot be answered are refused with their
    status.
    """
    line, path = await opened(web)
    assert (await web.ask(offered(request(1, "ping")), "/sse")).status == 405
    assert (await web.ask(listening(), path)).status == 405
    assert (await web.ask(listening(accept="application/json"), "/sse")).status == 406
    assert (
        await web.ask(offered(request(1, "ping"), content_type="text/plain"), path)
    ).status == 415
    assert (await web.ask(offered(b"nonsense"), path)).status in (202, 400)
    await line.close()


async def test_calls_count_for_their_caller():
    """A call over the quota is refused, with the reason, and the others run. Everything is given
    back when they end, and when the client goes.
    """
    server = Server("waits")
    go = asyncio.Event()

    @server.tool
    async def wait(text: str = "") -> str:
        await go.wait()
        return "done"

    limits = Limits(calls=2, queue=0, share=1.0)
    async with serving(server, legacy_sse=True, limits=limits) as web:
        line, path = await opened(web)
        other, other_path = await opened(web)
        await web.ask(offered(tool(1, "wait")), path)
        await web.ask(offered(tool(2, "wait", text="x" * 10_000)), path)
        await web.ask(offered(tool(3, "wait")), other_path)
        refused = await other.message()
        assert refused["id"] == 3
        assert refused["error"]["data"] == {"reason": "busy", "resource": "calls", "retryAfter": 1}
        usage = web.app.usage()
        assert usage["calls"].used == 2
        assert usage["memory"].used > 40_000
        go.set()
        assert {(await line.message())["id"] for _ in range(2)} == {1, 2}
        usage = web.app.usage()
        assert usage["calls"].used == usage["memory"].used == 0
        go.clear()
        await web.ask(offered(tool(4, "wait")), path)
        assert web.app.usage()["calls"].used == 1
        line.writer.close()
        other.writer.close()
        while any(web.app.usage()[name].used for name in ("calls", "streams", "memory")):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
