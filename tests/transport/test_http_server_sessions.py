"""The endpoint in the handshake era, over a real socket: sessions, their streams, and coming back to a stream that broke."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from interlock import types as t
from interlock.transport.limits import Limits
from interlock.wire.revisions import R2, R3, R4
from tests.protocol.frames import answer, initialize, notification, request
from tests.protocol.offered import offered

from .raw_web import House, Line, Web, call, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")
REVISIONS = pytest.mark.parametrize("revision", [R2, R3, R4])
EVENTS = "text/event-stream"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web() -> AsyncIterator[Web]:
    """A server for the tests that leave nothing behind but sessions."""
    async with serving(House().server) as shared:
        yield shared


def tool(id: Any, name: str, /, *, token: Any = None, **arguments: Any) -> bytes:
    """A call of a tool."""
    return request(
        id, "tools/call", {"name": name, "arguments": arguments, **({} if token is None else {"_meta": {"progressToken": token}})}
    )


def cancelled(id: Any) -> bytes:
    """The cancellation of a request."""
    return notification("notifications/cancelled", {"requestId": id})


async def ids(line: Line) -> list[str | None]:
    """The ids of all events of a stream, to its end."""
    found = []
    while (event := await line.event()) is not None:
        found.append(event.id)
    return found


# -- opening and ending ---------------------------------------------------------------------------------------------


async def test_a_session_is_opened_with_an_id_that_nobody_can_guess(web: Web):
    """On the response to `initialize`, of visible ASCII, of 192 random bits, and never the same (`HTL-37`, `HTL-38`, `HTL-39`)."""
    found = set()
    for _ in range(50):
        reply = await web.ask(offered(initialize(1, R4)))
        assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
        found.add(reply.headers["mcp-session-id"])
    assert len(found) == 50
    assert all(re.fullmatch(r"[!-~]+", id) and len(bytes.fromhex(id)) == 24 for id in found)
    counts = Counter(bit for id in found for bit, digit in enumerate(f"{int(id, 16):0192b}") if digit == "1")
    assert all(5 < counts[bit] < 45 for bit in range(192))  # no bit that is always the same


@REVISIONS
async def test_messages_that_ask_for_nothing(web: Web, revision: str):
    """202 without a body, for notifications and answers (`HTL-06`)."""
    session = await web.greet(revision)
    for body in (notification("notifications/initialized"), cancelled(99), answer(99, {}), notification("no/such")):
        reply = await session.ask(body)
        assert (reply.status, reply.body) == (202, b"")
        assert "content-type" not in reply.headers


async def test_a_session_that_is_not_named(web: Web):
    """400, but for `initialize` (`HTL-41`)."""
    session = await web.greet()
    for method, body in (("POST", tool(1, "add", a=1)), ("POST", notification("notifications/initialized")), ("GET", b""), ("DELETE", b"")):
        reply = await web.ask(session.said(body, method=method, mcp_session_id=None))
        assert (reply.status, reply.code) == (400, t.INVALID_REQUEST)
        assert "Mcp-Session-Id" in reply.json["error"]["message"]


async def test_sessions_that_are_not_there(web: Web):
    """404 for one that was ended and for one that never was, for every method (`HTL-42`)."""
    session, never = await web.greet(), await web.greet()
    assert (await session.end()).status in (200, 204)
    never.id = "0" * 48
    for gone in (session, never):
        for method, body in (
            ("POST", tool(1, "add", a=1)),
            ("POST", notification("notifications/initialized")),
            ("GET", b""),
            ("DELETE", b""),
        ):
            assert (await web.ask(gone.said(body, method=method))).status == 404
    strange = await web.greet()
    strange.id = "' OR 1=1 --"
    assert (await strange.ask(tool(1, "add", a=1))).status == 404


async def test_the_end_of_a_session_ends_its_streams():
    """The one it listens to, and those of its calls, which are stopped and say so (`HTL-55`, `HTL-42`)."""
    house = House()
    async with serving(house.server) as web:
        session, other = await web.greet(), await web.greet()
        feed, work, kept = await session.listen(), await session.begin(tool(1, "work", token=1, name="mine")), await other.listen()
        await house.began["mine"].wait()
        assert (await session.end()).status in (200, 204)
        await feed.rest()
        (last,) = [m for m in (await work.rest()).messages if "id" in m]
        assert last["error"]["data"] == {"reason": "session"}
        await house.ended["mine"].wait()
        assert house.cancelled == {"mine"}
        assert (await other.ask(tool(1, "touch"))).status == 200
        assert (await kept.message())["method"].startswith("notifications/")


async def test_a_session_grows_old():
    """And its streams end with it (`HTL-55`)."""
    async with serving(House().server, limits=Limits(session_seconds=0.4)) as web:
        session = await web.greet()
        feed = await session.listen()
        assert (await session.ask(tool(1, "add", a=1))).status == 200
        await feed.rest()
        assert (await session.ask(tool(2, "add", a=1))).status == 404


async def test_a_server_without_sessions():
    """Mints no id, wants none, and has nothing to listen to (`HTL-25`, `HTL-37`, `HTL-45`)."""
    async with serving(House().server, sessions=False) as web:
        for revision in (R2, R3, R4):
            greeted = await web.ask(offered(initialize(1, revision)))
            assert greeted.status == 200
            assert "mcp-session-id" not in greeted.headers
            reply = await web.ask(offered(tool(1, "add", a=1), mcp_protocol_version=revision))
            assert reply.json["result"]["content"][0]["text"] == "2"
        for method in ("GET", "DELETE"):
            assert (await web.ask(offered(b"", method=method, mcp_session_id="x"))).status == 405


@pytest.mark.parametrize("said, status", [(R4, 200), (R3, 200), (None, 200), ("2099-01-01", 400), ("", 400), ("x", 400)])
async def test_the_revision_of_a_request(web: Web, said: str | None, status: int):
    """A session knows its revision; a header that names none is refused (`HTL-49`, `HTL-50`)."""
    session = await web.greet(R4)
    for body in (tool(1, "add", a=1), notification("notifications/initialized")):
        reply = await session.ask(body, mcp_protocol_version=said)
        assert reply.status == (status if b'"id"' in body or status == 400 else 202)
    reply = await web.ask(session.said(b"", method="DELETE", mcp_protocol_version=said))
    assert (reply.status == 400) is (status == 400)


async def test_sessions_belong_to_whoever_opened_them():
    """Another principal's request finds none, and so does nobody's; the session goes on (`SEC-02`, `SEC-03`, `HTL-54`)."""
    async with serving(House().server, authorized=True) as web:
        reply = await web.ask(offered(initialize(0, R4), authorization="ada"))
        session = await web.greet()
        session.id = reply.headers["mcp-session-id"]
        for who, status in (("eve", 404), (None, 404), ("ada", 200)):
            for method, body in (("POST", tool(1, "add", a=1)), ("GET", b"")):
                line = await web.begin(session.said(body, method=method, authorization=who))
                assert line.status == status
                await line.close()
            if who != "ada":
                assert (await web.ask(session.said(b"", method="DELETE", authorization=who))).status == 404


# -- answers and their streams ------------------------------------------------------------------------------------------


@REVISIONS
async def test_json_where_the_response_comes_first_and_a_stream_where_it_does_not(revision: str):
    """The stream holds the response, which is its last event, and what relates to that request before it (`HTL-07`, `HTL-09`, `HTL-10`, `HTL-11`,
    `HTL-12`, `HTL-13`)."""
    house = House()
    async with serving(house.server) as web:
        session = await web.greet(revision)
        plain = await session.ask(tool(1, "add", a=1))
        assert (plain.status, plain.headers["content-type"], plain.json["id"]) == (200, "application/json", 1)
        one, two = [await session.begin(tool(n, "work", token=f"t{n}", name=f"w{n}")) for n in (2, 3)]
        for line in (one, two):
            assert (line.status, line.headers["content-type"], line.headers["x-accel-buffering"]) == (200, EVENTS, "no")
        for n in (2, 3):
            await house.began[f"w{n}"].wait()
        house.go.set()
        for n, line in ((2, one), (3, two)):
            messages = (await line.rest()).messages
            assert [m.get("params", {}).get("progressToken") for m in messages] == [f"t{n}", f"t{n}", None]
            assert messages[-1]["result"]["content"][0]["text"] == f"w{n} is done"


async def test_a_question_goes_out_on_the_stream_of_its_call(web: Web):
    """And its answer is a POST of its own, answered with 202 (`HTL-10`, `HTL-11`, `HTL-27`, `HTL-30`)."""
    session = await web.greet(R4)
    feed = await session.listen()
    line = await session.begin(tool(1, "ask"))
    question = await line.message()
    assert question["method"] == "elicitation/create"
    reply = await session.ask(answer(question["id"], {"action": "accept", "content": {"value": "Ada"}}))
    assert (reply.status, reply.body) == (202, b"")
    assert (await line.message())["result"]["content"][0]["text"] == "Hello, Ada!"
    assert await line.message() is None
    await feed.close()
    assert b"elicitation" not in feed.raw


@REVISIONS
@pytest.mark.parametrize("retry", [None, 120])
async def test_how_a_stream_begins(revision: str, retry: int | None):
    """With an event that has an id and empty data, and with the time to come back, in 2025-11-25; before that with its first message (`HTL-14`, `HTL-16`)."""
    async with serving(House().server, retry_ms=retry) as web:
        session = await web.greet(revision)
        first, *others = (await session.ask(tool(1, "chatter", token=1))).events
        assert all(event.id and event.data and event.retry is None for event in others)
        if revision >= R4:
            assert (first.data, first.retry) == (b"", retry)
        else:
            assert (bool(first.data), first.retry) == (True, None)
        assert first.id


async def test_streams_that_were_asked_for():
    """`stream=True` answers sessions with nothing else, but for what changes the session itself."""
    async with serving(House().server, stream=True) as web:
        session = await web.greet(R4)
        reply = await session.ask(tool(1, "add", a=1))
        assert reply.headers["content-type"] == EVENTS
        assert [m["id"] for m in reply.messages] == [1]
        assert (await web.ask(call("add", {"a": 1}))).headers["content-type"] == "application/json"


async def test_batches(web: Web):
    """2025-03-26 takes them and answers with an array, or with a stream; the others refuse them (`RPC-13`, `RPC-16`, `HTL-06`)."""
    session = await web.greet(R2)
    batch = b"[" + b",".join([tool(1, "add", a=1), notification("notifications/initialized"), tool(2, "add", a=2)]) + b"]"
    reply = await session.ask(batch)
    assert reply.headers["content-type"] == "application/json"
    assert {r["id"]: r["result"]["content"][0]["text"] for r in reply.json} == {1: "2", 2: "3"}
    told = await session.ask(b"[" + tool(3, "chatter", token=1) + b"," + tool(4, "add", a=1) + b"]")
    assert told.headers["content-type"] == EVENTS
    assert sorted(m["id"] for m in told.messages if "id" in m) == [3, 4]
    quiet = await session.ask(b"[" + notification("notifications/initialized") + b"," + cancelled(9) + b"]")
    assert (quiet.status, quiet.body) == (202, b"")
    for bad in (b"[]", b"[1]", b"[[]]"):
        assert (await session.ask(bad)).status == 400
    for revision in (R3, R4):
        later = await web.greet(revision)
        refused = await later.ask(batch)
        assert (refused.status, refused.code) == (400, t.INVALID_REQUEST)


async def test_a_batch_for_a_client_that_takes_only_json(web: Web):
    """The responses and nothing between them."""
    session = await web.greet(R2)
    reply = await session.ask(b"[" + tool(1, "chatter", token=1) + b"," + tool(2, "add", a=1) + b"]", accept="application/json")
    assert sorted(r["id"] for r in reply.json) == [1, 2]


@pytest.mark.parametrize("body", [b'{"jsonrpc":"2.0","id":null,"method":"ping"}', b'{"jsonrpc":"2.0","id":1}', b"7", b"{", b""])
async def test_bodies_of_a_session_that_are_nothing(web: Web, body: bytes):
    """Are refused or taken, never a 500, and the session is as it was."""
    session = await web.greet(R4)
    assert (await session.ask(body)).status in (202, 400)
    assert (await session.ask(request(1, "ping"))).json == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def test_unknown_methods_of_the_older_revisions(web: Web):
    """200 with -32601: the status says nothing there (`ERR-10`)."""
    session = await web.greet(R4)
    reply = await session.ask(request(1, "no/such"))
    assert (reply.status, reply.code, reply.json["id"]) == (200, t.METHOD_NOT_FOUND, 1)


# -- cancelling, and leaving without cancelling -------------------------------------------------------------------------------


@REVISIONS
async def test_cancelling(revision: str):
    """By a notification of its own POST; the stream of the call ends without a response (`HTL-22`, `CAN-05`)."""
    house = House()
    async with serving(house.server) as web:
        session, other = await web.greet(revision), await web.greet(revision)
        told = await session.begin(tool(1, "work", token=1, name="told"))
        await house.began["told"].wait()
        stranger = await other.ask(cancelled(1))
        assert stranger.status == 202
        assert not house.cancelled  # an id means nothing in another session
        assert (await session.ask(cancelled(1))).status == 202
        assert [m for m in (await told.rest()).messages if "id" in m] == []
        await house.ended["told"].wait()
        assert house.cancelled == {"told"}


async def test_a_client_that_closes_has_not_cancelled():
    """The call goes on, and its response can be come back for (`HTL-21`, `HTL-34`, `HTL-35`)."""
    house = House()
    async with serving(house.server) as web:
        session = await web.greet(R4)
        line = await session.begin(tool(1, "work", token=1, name="left"))
        primed, progress = await line.event(), await line.event()
        assert primed is not None
        assert progress is not None
        await line.close()
        again = await session.listen(progress.id)
        assert (again.status, again.headers["content-type"]) == (200, EVENTS)
        house.go.set()
        rest = (await again.rest()).messages
        assert [m.get("method", m.get("id")) for m in rest] == ["notifications/progress", 1]
        assert house.cancelled == set()
        later = await session.listen(primed.id)  # all of it again, also after the end
        assert [m.get("method", m.get("id")) for m in (await later.rest()).messages] == ["notifications/progress"] * 2 + [1]


async def test_letting_a_client_go():
    """The stream is closed with the time to come back, and the response waits for the client (`HTL-15`, `HTL-16`, `HTL-18`)."""
    house = House()
    async with serving(house.server) as web:
        session = await web.greet(R4)
        reply = await session.ask(tool(1, "leave"))
        (event,) = reply.events
        assert (event.data, event.retry) == (b"", 70)
        await house.began["leave"].wait()
        again = await session.listen(event.id)
        house.go.set()
        (message,) = (await again.rest()).messages
        assert (message["id"], message["result"]["content"][0]["text"]) == (1, "let go")


@pytest.mark.parametrize("revision", [R2, R3])
async def test_older_clients_are_not_let_go(revision: str):
    """There a stream is not closed before its response (`HTL-12`)."""
    house = House()
    house.go.set()
    async with serving(house.server) as web:
        reply = await (await web.greet(revision)).ask(tool(1, "leave"))
        assert reply.json["result"]["content"][0]["text"] == "kept"


# -- streams of a session ---------------------------------------------------------------------------------------------------


@REVISIONS
async def test_the_stream_of_a_session(web: Web, revision: str):
    """GET opens it; what happens beside the client's requests is told there, and no response ever (`HTL-25`, `HTL-26`, `HTL-27`)."""
    session = await web.greet(revision)
    subscribed = await session.ask(request(1, "resources/subscribe", {"uri": "note://one"}))
    assert subscribed.json["result"] == {}
    line = await session.listen()
    assert (line.status, line.headers["content-type"]) == (200, EVENTS)
    await session.ask(tool(2, "chatter", token=1))
    await session.ask(tool(3, "add", a=1))
    await session.ask(tool(4, "touch"))
    told = [await line.message(), await line.message()]
    assert {m["method"] for m in told} == {"notifications/resources/updated", "notifications/tools/list_changed"}
    assert not [m for m in told if "id" in m]
    assert b'"result"' not in line.raw
    assert b"progress" not in line.raw
    await line.close()


async def test_what_cannot_be_listened_to(web: Web):
    """A GET that takes no events is refused (`HTL-24`, `HTL-25`)."""
    session = await web.greet(R4)
    assert (await web.ask(session.said(b"", method="GET", accept="application/json"))).status == 406


async def test_a_notice_goes_to_one_stream():
    """A session that listens twice hears on the newer stream, and the older one ends (`HTL-28`, `HTL-30`)."""
    async with serving(House().server) as web:
        session = await web.greet(R4)
        older = await session.listen()
        newer = await session.listen()
        assert (await older.rest()).messages == []
        await session.ask(tool(1, "touch"))
        assert (await newer.message())["method"] == "notifications/tools/list_changed"
        await newer.close()


async def test_a_stream_that_is_come_back_to_moves():
    """What it was before hears no more: each message goes out on one stream (`HTL-30`, `HTL-36`)."""
    house = House()
    async with serving(house.server) as web:
        session = await web.greet(R4)
        first = await session.begin(tool(1, "work", token=1, name="moves"))
        event = await first.event()
        assert event is not None
        await first.event()
        second = await session.listen(event.id)
        await second.event()
        house.go.set()
        assert [m.get("id") for m in (await second.rest()).messages][-1] == 1
        assert [m for m in (await first.rest()).messages if "id" in m] == []


async def test_only_the_stream_that_broke_is_replayed():
    """Not those beside it, and nothing of another session (`HTL-36`)."""
    house = House()
    async with serving(house.server) as web:
        session, other = await web.greet(R4), await web.greet(R4)
        lines = {n: await session.begin(tool(n, "work", token=f"t{n}", name=f"s{n}")) for n in (1, 2)}
        first = {n: await line.event() for n, line in lines.items()}
        for line in lines.values():
            await line.event()
            await line.close()
        house.go.set()
        for n in (1, 2):
            await house.ended[f"s{n}"].wait()
            event = first[n]
            assert event is not None
            rest = (await (await session.listen(event.id)).rest()).messages
            assert [m.get("id", m.get("params", {}).get("progressToken")) for m in rest] == [f"t{n}", f"t{n}", n]
            stolen = await other.listen(event.id)
            assert (stolen.status, b"t1" in (await stolen.rest()).body) == (400, False)


@pytest.mark.parametrize("last", ["nothing", "no.such.1", "x.1", "1", ".", "..", "a" * 2000, "changes.", "changes.9999999999"])
async def test_events_that_never_were(web: Web, last: str):
    """Are refused, or begin from now on; never an error of the server's own (`HTL-36`)."""
    session = await web.greet(R4)
    line = await session.listen(last)
    assert line.status in (200, 400)
    assert (line.status == 400) is not last.startswith("changes.")
    await line.close()


async def test_event_ids_are_unique_and_name_their_stream():
    """Over all streams of a session, of calls and of notices, and over sessions (`HTL-31`, `HTL-32`, `HTL-33`)."""
    async with serving(House().server) as web:
        found: list[str | None] = []
        streams = []
        for session in (await web.greet(R4), await web.greet(R4)):
            feed = await session.listen()
            lines = await asyncio.gather(*(session.begin(tool(n, "chatter", token=n)) for n in range(5)))
            for line in lines:
                of_one = await ids(line)
                assert len({str(id).rpartition(".")[0] for id in of_one}) == 1
                streams.append(str(of_one[0]).rpartition(".")[0])
                found += of_one
            await session.ask(tool(9, "touch"))
            while True:
                event = await feed.event()
                assert event is not None
                found.append(event.id)
                if event.data:
                    break
            await feed.close()
        calls = [id for id in found if not str(id).startswith("changes.")]
        assert None not in found
        assert len(set(calls)) == len(calls) == 2 * 5 * 4
        assert len(set(streams)) == 10


async def test_notices_that_were_missed():
    """Who comes back to the stream of notices hears what happened meanwhile, once (`HTL-34`, `HTL-35`)."""
    async with serving(House().server) as web:
        session = await web.greet(R4)
        await session.ask(request(1, "resources/subscribe", {"uri": "note://one"}))
        line = await session.listen()
        primed = await line.event()
        assert primed is not None
        assert (primed.data, primed.id is not None) == (b"", True)
        await line.close()
        await session.ask(tool(2, "touch"))
        again = await session.listen(primed.id)
        told = [await again.message(), await again.message()]
        assert {m["method"] for m in told} == {"notifications/resources/updated", "notifications/tools/list_changed"}
        await session.ask(tool(3, "touch"))
        assert (await again.message())["method"].startswith("notifications/")
        await again.close()


async def test_what_is_unsubscribed_is_not_told():
    """Nor what another session has subscribed to (`SUB-05`, `HTL-30`)."""
    async with serving(House().server) as web:
        session, other = await web.greet(R4), await web.greet(R4)
        await session.ask(request(1, "resources/subscribe", {"uri": "note://one"}))
        lines = [await s.listen() for s in (session, other)]
        await session.ask(request(2, "resources/unsubscribe", {"uri": "note://one"}))
        await session.ask(tool(3, "touch"))
        for line in lines:
            assert (await line.message())["method"] == "notifications/tools/list_changed"
            assert b"resources/updated" not in line.raw
            await line.close()


async def test_the_log_level_of_a_session(web: Web):
    """Is the session's, and no other's."""
    session, other = await web.greet(R4), await web.greet(R4)
    assert (await session.ask(request(1, "logging/setLevel", {"level": "emergency"}))).json["result"] == {}
    assert b"hear, hear" not in (await session.ask(tool(2, "chatter"))).body
    assert b"hear, hear" in (await other.ask(tool(2, "chatter"))).body
