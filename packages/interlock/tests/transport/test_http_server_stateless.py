"""The endpoint under the newest revision, over a real socket: statuses, headers and bytes as a
client sees them.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from inspect import signature

import pytest
import pytest_asyncio

from interlock import Context, Server
from interlock import types as t
from interlock.exchange import Principal
from interlock.server.run.http import serve_web
from interlock.transport.http.limits import Limits
from interlock.transport.http.server.serve import listening_socket
from interlock.wire.revisions import NEWEST, R3, R4, R5
from tests.protocol.frames import KEY, answer, initialize, notification, request
from tests.protocol.offered import modern, offered
from tests.transport.raw_web import House, Web, call, listening, serving, written

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.usefixtures("web_server"),
]

JSON = "application/json"
EVENTS = "text/event-stream"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web(web_server: str) -> AsyncIterator[Web]:
    """A server for the tests that leave nothing behind."""
    async with serving(House().server, legacy_sse=True) as shared:
        yield shared


async def test_one_endpoint_that_takes_posts(web: Web):
    """At one path, for both eras; elsewhere there is nothing, and the words say where it is
    (`HTM-01`, `HTL-01`, `ERA-01`, `ERA-02`).
    """
    modern_ = await web.ask(call("add", {"a": 1}))
    old = await web.ask(offered(initialize(1, R4)))
    assert (modern_.status, modern_.json["result"]["structuredContent"]) == (200, {"result": 2})
    assert (old.status, old.json["result"]["protocolVersion"]) == (200, R4)
    elsewhere = await web.ask(call("add", {"a": 1}), "/elsewhere")
    assert (elsewhere.status, elsewhere.headers["content-type"]) == (404, "text/plain")
    assert b"/mcp" in elsewhere.body


async def test_a_response_that_comes_first_is_json(web: Web):
    """One JSON object with its length, nothing of a session, nothing of the server's making
    (`HTM-06`, `HTM-20`).
    """
    reply = await web.ask(
        call("add", {"a": 1, "b": 2}, id="x", mcp_session_id="made up", last_event_id="made.up.1")
    )
    assert reply.status == 200
    assert reply.headers["content-type"] == JSON
    assert int(reply.headers["content-length"]) == len(reply.body)
    assert reply.headers.keys() == {"content-type", "content-length", "date"}
    assert reply.json["id"] == "x"


async def test_what_is_told_on_the_way_makes_it_a_stream():
    """Progress and log of this call and of no other, then the response, then the end; no buffering,
    no event ids (`HTM-06`, `HTM-08`, `HTM-10`, `HTM-11`, `HTM-17`).
    """
    house = House()
    async with serving(house.server) as web:
        other = await web.begin(call("work", {"name": "other"}, id=2, token="theirs"))
        x = call("chatter", id=1, token="ours")
        x.body["params"]["_meta"][KEY + "logLevel"] = "info"
        reply = await web.ask(x)
        assert (reply.status, reply.headers["content-type"]) == (200, EVENTS)
        assert reply.headers["x-accel-buffering"] == "no"
        assert "no-cache" in reply.headers["cache-control"]
        assert "mcp-session-id" not in reply.headers
        progress, log, response = reply.messages
        assert (progress["method"], progress["params"]["progressToken"]) == (
            "notifications/progress",
            "ours",
        )
        assert log["method"] == "notifications/message"
        assert (response["id"], response["result"]["content"][0]["text"]) == (1, "said")
        assert {event.id for event in reply.events} == {None}
        house.go.set()
        theirs = await other.rest()
        assert [m.get("params", {}).get("progressToken", m.get("id")) for m in theirs.messages] == [
            "theirs",
            "theirs",
            2,
        ]


async def test_no_request_of_ours_on_any_stream(web: Web):
    """A tool that asks gets its question into the result (`HTM-09`)."""
    reply = await web.ask(call("ask"))
    assert reply.headers["content-type"] == JSON
    assert reply.json["result"]["resultType"] == "input_required"


async def test_a_client_that_closes_has_cancelled():
    """The call is stopped soon, and nothing more is said for it; others go on (`HTM-14`, `HTM-15`,
    `HTM-16`, `X-02`).
    """
    house = House()
    async with serving(house.server) as web:
        line = await web.begin(call("work", {"name": "left"}, token=1))
        other = await web.begin(call("work", {"name": "kept"}, token=2))
        quiet = await web.line()
        await quiet.send(written(call("work", {"name": "silent"})))
        for name in ("left", "kept", "silent"):
            await house.began[name].wait()
        await line.close()
        await quiet.close()
        await house.ended["left"].wait()
        await house.ended["silent"].wait()
        assert house.cancelled == {"left", "silent"}
        house.go.set()
        assert (await other.rest()).messages[-1]["result"]["content"][0]["text"] == "kept is done"
        await web.ask(modern("tools/list"))
        assert not web.app.calls.servings


async def test_a_client_that_closes_its_side_and_nothing_else():
    """Half a close is a close, as the server beneath sees it: the call is stopped, and the
    connection is not kept.
    """
    house = House()
    async with serving(house.server) as web:
        line = await web.line()
        await line.send(written(call("work", {"name": "half"}, token=1)))
        await house.began["half"].wait()
        line.writer.write_eof()
        await house.ended["half"].wait()
        assert house.cancelled == {"half"}


async def test_signs_of_life_on_a_quiet_stream():
    """Comments, which are no events (`HTM-12`)."""
    house = House()
    async with serving(house.server, limits=Limits(keep_alive=0.05)) as web:
        line = await web.begin(listening(toolsListChanged=True))
        assert (await line.message())["method"] == "notifications/subscriptions/acknowledged"
        while line.raw.count(b":\n\n") < 3:
            assert await line.piece()
        silent = await web.begin(
            call("work", {"name": "slow"})
        )  # a call that says nothing shows that it lives as well
        assert silent.headers["content-type"] == EVENTS
        assert (await silent.piece()).startswith(b":")
        house.go.set()
        assert (await silent.rest()).messages[-1]["result"]["content"][0]["text"] == "slow is done"


@pytest.mark.parametrize(
    "method",
    [
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/roots/list_changed",
        "no/such",
    ],
)
async def test_notifications(method: str):
    """Are taken without a body and change nothing, with the headers of a request or without: a
    cancellation by id would let strangers cancel each other (`HTM-05`, `X-09`, `X-15`).
    """
    house = House()
    async with serving(house.server) as web:
        line = await web.begin(call("work", {"name": "theirs"}, id=7, token=1))
        await house.began["theirs"].wait()
        for headers in ({}, {"mcp_method": method}, {"mcp_method": "something/else"}):
            reply = await web.ask(
                offered(
                    notification(method, {"requestId": 7}), mcp_protocol_version=NEWEST, **headers
                )
            )
            assert (reply.status, reply.body) == (202, b"")
        house.go.set()
        assert (await line.rest()).messages[-1]["id"] == 7
        assert not house.cancelled


@pytest.mark.parametrize(
    "body, code",
    [
        (answer(1, {}), t.INVALID_REQUEST),
        (b"[" + request(1, "tools/list") + b"]", t.INVALID_REQUEST),
        (b"[]", t.INVALID_REQUEST),
        (b"nonsense", t.PARSE_ERROR),
        (b"", t.PARSE_ERROR),
    ],
)
async def test_bodies_that_are_no_request(web: Web, body: bytes, code: int):
    """No response, no batch, no nonsense; the connection is good for the next request (`HTM-03`,
    `RPC-16`, `RPC-18`).
    """
    line = await web.line()
    await line.send(written(offered(body, mcp_protocol_version=NEWEST)))
    assert await line.head() == 400
    reply = await line.rest()
    assert (reply.code, reply.json.get("id"), reply.headers["content-type"]) == (code, None, JSON)
    line.raw = b""
    await line.send(written(modern("tools/list")))
    assert await line.head() == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_get_and_delete_belong_to_the_older_revisions(method: str):
    """405 under the newest revision, and from a server that has nothing else, with what is allowed
    (`HTM-19`).
    """
    async with serving(House().server) as web, serving(House(revisions=[R5]).server) as only:
        for at, headers in (
            (web, {"mcp_protocol_version": R5}),
            (only, {}),
            (only, {"mcp_protocol_version": R4, "mcp_session_id": "x"}),
        ):
            reply = await at.ask(offered(b"", method=method, content_type=None, **headers))
            assert reply.status == 405
            assert "POST" in reply.headers["allow"]


async def test_no_resumption(web: Web):
    """A stream that broke is not come back to: `Last-Event-ID` has no effect on a POST, and GET is
    not for it (`HTM-17`, `HTM-21`).
    """
    plain = await web.ask(call("chatter", token=1))
    with_id = await web.ask(call("chatter", token=1, last_event_id="x.1.1"))
    assert with_id.body == plain.body
    again = offered(
        b"",
        method="GET",
        content_type=None,
        mcp_protocol_version=R5,
        last_event_id="x.1.1",
        mcp_session_id="x",
    )
    assert (await web.ask(again)).status == 405


async def test_a_server_of_the_newest_revision_only():
    """Names its versions to whoever greets it, and ignores what belongs to sessions (`ERA-03`,
    `ERA-18`, `HTM-20`).
    """
    async with serving(House(revisions=[R5]).server) as web:
        for said in (None, R4):
            reply = await web.ask(offered(initialize(1, R4), mcp_protocol_version=said))
            assert (reply.status, reply.code) == (400, t.UNSUPPORTED_PROTOCOL_VERSION)
            assert reply.json["error"]["data"]["supported"] == [R5]
            assert "mcp-session-id" not in reply.headers
        bare = await web.ask(offered(request(1, "tools/list"), mcp_session_id="x"))
        assert (bare.status, bare.code) == (400, t.HEADER_MISMATCH)
        assert "MCP-Protocol-Version is missing" in bare.json["error"]["message"]
        assert (await web.ask(call("add", {"a": 1}, mcp_session_id="x"))).status == 200


async def test_a_request_without_a_revision():
    """Belongs to 2025-03-26 where that is served without sessions, and is refused where that is not
    (`ERA-17`, `ERA-18`, `HTL-49`).
    """
    bare = offered(request(1, "tools/call", {"name": "add", "arguments": {"a": 1}}))
    async with (
        serving(House().server, sessions=False) as web,
        serving(House(revisions=[R3, R4, R5]).server, sessions=False) as young,
    ):
        reply = await web.ask(bare)
        assert reply.status == 200
        assert reply.json["result"].keys() == {"content"}  # that revision has no structured content
        refused = await young.ask(bare)
        assert (refused.status, refused.code) == (400, t.HEADER_MISMATCH)


# -- subscriptions ---------------------------------------------------------------------------------


async def test_a_subscription_that_the_server_ends():
    """Is answered, and then its stream is closed; no notification on HTTP (`X-01`)."""
    house = House()
    async with serving(house.server) as web:
        line = await web.begin(listening(id="sub", toolsListChanged=True))
        assert (line.status, line.headers["content-type"]) == (200, EVENTS)
        first = await line.message()
        assert first["method"] == "notifications/subscriptions/acknowledged"
        await web.ask(call("touch"))
        assert (await line.message())["method"] == "notifications/tools/list_changed"
        await house.server.aclose()
        last = await line.message()
        end = await line.message()
        assert (last["id"], "result" in last or "error" in last, end) == ("sub", True, None)
        assert "notifications/cancelled" not in line.raw.decode()


async def test_a_subscription_for_a_client_that_takes_no_events(web: Web):
    """Would never be answered, and is refused."""
    x = listening(toolsListChanged=True)
    x.headers["accept"] = JSON
    reply = await web.ask(x)
    assert (reply.status, reply.code, reply.json["id"]) == (406, t.INVALID_REQUEST, 1)


async def test_a_subscription_hears_of_nothing_else():
    """Progress and log of calls go their own way (`HTM-08`)."""
    house = House()
    async with serving(house.server) as web:
        line = await web.begin(listening(toolsListChanged=True))
        await line.message()
        await web.ask(call("chatter", token=1))
        await web.ask(call("touch"))
        assert (await line.message())["method"] == "notifications/tools/list_changed"
        await line.close()


# -- safety ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "PUT", "OPTIONS"])
@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"host": "127.0.0.1", "origin": "http://evil.example"},
    ],
)
async def test_strangers(web: Web, method: str, headers: dict[str, str]):
    """403 for whatever they ask, before anything runs, with words and without an id (`SEC-01`,
    `HTM-22`, `HTL-51`, `HTL-52`).
    """
    x = call("touch", **headers)
    x.method = method
    reply = await web.ask(x)
    assert (reply.status, reply.code) == (403, t.INVALID_REQUEST)
    assert "id" not in reply.json
    for path in ("/sse", "/messages?session=x"):
        assert (await web.ask(x, path)).status == 403
    assert "grown" not in (await web.ask(modern("tools/list"))).body.decode()


async def test_a_local_server_is_reached_from_this_machine_only():
    """Without a word about it a server speaks stdio, and over HTTP it listens on loopback
    (`HTL-53`, `HTM-23`, `SEC-19`, `HPS-06`).
    """
    sock = listening_socket("127.0.0.1", 0)
    assert sock.getsockname()[0] == "127.0.0.1"
    sock.close()
    assert signature(serve_web).parameters["host"].default == "127.0.0.1"
    assert signature(Server.run).parameters["transport"].default == "stdio"


async def test_a_handle_is_no_proof_of_who_asks():
    """A sealed state is bound to whom it was given; with another principal, or with none, it is
    worth nothing (`SEC-04`, `SEC-05`).
    """
    async with serving(House().server, authorized=True) as web:
        asked = (await web.ask(call("ask", authorization="ada"))).json["result"]
        (key,) = asked["inputRequests"]
        for who, good in (("eve", False), (None, False), ("ada", True)):
            x = call("ask", authorization=who)
            x.body["params"] |= {
                "requestState": asked["requestState"],
                "inputResponses": {key: {"action": "accept", "content": {"value": "Ada"}}},
            }
            reply = await web.ask(x)
            assert reply.code == (None if good else t.INVALID_PARAMS)
        assert reply.json["result"]["content"][0]["text"] == "Hello, Ada!"


async def test_who_asks_reaches_the_tool():
    """What the authorization in front found out is the caller's principal, request by request
    (`SEC-02`).
    """
    house = House()

    @house.server.tool
    async def whoami(ctx: Context) -> str:
        """Who asks."""
        principal: Principal | None = ctx.caller.principal
        return principal.subject if principal else "nobody"

    async with serving(house.server, authorized=True) as web:
        session = await web.greet(R4)
        for who in ("ada", None, "eve"):
            assert (await web.ask(call("whoami", authorization=who))).json["result"]["content"][0][
                "text"
            ] == (who or "nobody")
        body = request(1, "tools/call", {"name": "whoami"})
        assert (await session.ask(body)).json["result"]["content"][0]["text"] == "nobody"
        assert (
            await session.ask(body, authorization="eve")
        ).status == 404  # a session is no proof of who asks, and not theirs


# -- the socket ------------------------------------------------------------------------------------


async def test_small_answers_are_not_held_back():
    """Nagle's delay is off on what is accepted, on asyncio's own loop too: a head and a body in two
    writes would cost 40 ms.
    """
    sock = listening_socket("127.0.0.1", 0)
    seen: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def look(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.set_result(
            writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        )
        writer.close()

    server = await asyncio.start_server(look, sock=sock)
    _, writer = await asyncio.open_connection(*sock.getsockname())
    assert await seen != 0
    writer.close()
    server.close()
    await server.wait_closed()


async def test_many_requests_on_one_connection(web: Web):
    """One after the other, and several at once without waiting for the answers (RFC 9112 has it
    so).
    """
    line = await web.line()
    for number in range(5):
        await line.send(written(call("add", {"a": number})))
        await line.head()
        assert json.loads(await line.piece())["result"]["structuredContent"] == {
            "result": number + 1
        }
        line.raw = b""
    await line.send(b"".join(written(call("add", {"a": number}, id=number)) for number in range(5)))
    for number in range(5):
        await line.head()
        assert json.loads(await line.piece())["id"] == number
        line.raw = b""
