"""The endpoint in the handshake era, over a real socket: sessions and how they end, and the ways in
which their requests are answered.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from interlock import Client, Server
from interlock import types as t
from interlock.store import MemoryStore
from interlock.transport.http.limits import Limits
from interlock.wire.revisions import R1, R2, R3, R4
from tests.protocol.frames import answer, initialize, notification, request
from tests.protocol.offered import offered
from tests.transport.raw_web import House, Web, call, cancelled, serving, tool, written

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.usefixtures("web_server"),
]
REVISIONS = pytest.mark.parametrize("revision", [R2, R3, R4])
EVENTS = "text/event-stream"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web(web_server: str) -> AsyncIterator[Web]:
    """A server for the tests that leave nothing behind but sessions."""
    async with serving(House().server) as shared:
        yield shared


# -- opening and ending ----------------------------------------------------------------------------


async def test_a_session_is_opened_with_an_id_that_nobody_can_guess(web: Web):
    """On the response to `initialize`, of visible ASCII, of 192 random bits, and never the same
    (`HTL-37`, `HTL-38`, `HTL-39`).
    """
    found = set()
    for _ in range(50):
        reply = await web.ask(offered(initialize(1, R4)))
        assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
        found.add(reply.headers["mcp-session-id"])
    assert len(found) == 50
    assert all(re.fullmatch(r"[!-~]+", id) and len(bytes.fromhex(id)) == 24 for id in found)
    counts = Counter(
        bit for id in found for bit, digit in enumerate(f"{int(id, 16):0192b}") if digit == "1"
    )
    assert all(5 < counts[bit] < 45 for bit in range(192))  # no bit that is always the same


@REVISIONS
async def test_messages_that_ask_for_nothing(web: Web, revision: str):
    """202 without a body, for notifications and answers (`HTL-06`)."""
    session = await web.greet(revision)
    for body in (
        notification("notifications/initialized"),
        cancelled(99),
        answer(99, {}),
        notification("no/such"),
    ):
        reply = await session.ask(body)
        assert (reply.status, reply.body) == (202, b"")
        assert "content-type" not in reply.headers


async def test_a_session_that_is_not_named(web: Web):
    """400, but for `initialize` (`HTL-41`)."""
    session = await web.greet()
    for method, body in (
        ("POST", tool(1, "add", a=1)),
        ("POST", notification("notifications/initialized")),
        ("GET", b""),
        ("DELETE", b""),
    ):
        reply = await web.ask(session.said(body, method=method, mcp_session_id=None))
        assert (reply.status, reply.code) == (400, t.INVALID_REQUEST)
        assert "Mcp-Session-Id" in reply.json["error"]["message"]


async def test_sessions_that_are_not_there(web: Web):
    """404 for one that was ended and for one that never was, for every method (`HTL-42`)."""
    session = await web.greet()
    never = await web.greet()
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
    """The one it listens to, and those of its calls, which are stopped and say so (`HTL-55`,
    `HTL-42`).
    """
    house = House()
    async with serving(house.server) as web:
        session = await web.greet()
        other = await web.greet()
        feed = await session.listen()
        work = await session.begin(tool(1, "work", token=1, name="mine"))
        kept = await other.listen()
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
            offers = greeted.json["result"]["capabilities"]
            assert offers["tools"] == {}
            assert (
                offers["resources"] == {}
            )  # there is no way to tell of changes, so none are promised (`SUB-01`)
            watched = await web.ask(
                offered(
                    request(2, "resources/subscribe", {"uri": "text://one"}),
                    mcp_protocol_version=revision,
                )
            )
            assert watched.json["error"]["code"] == -32601
            reply = await web.ask(offered(tool(1, "add", a=1), mcp_protocol_version=revision))
            assert reply.json["result"]["content"][0]["text"] == "2"
        for method in ("GET", "DELETE"):
            assert (await web.ask(offered(b"", method=method, mcp_session_id="x"))).status == 405


@pytest.mark.parametrize(
    "said, status",
    [
        (R4, 200),
        (R3, 400),
        (R2, 400),
        (R1, 400),
        (None, 200),
        ("2099-01-01", 400),
        ("", 400),
        ("x", 400),
    ],
)
async def test_the_revision_of_a_request(web: Web, said: str | None, status: int):
    """A header that names another one than the session, or none, is refused (`HTL-50`)."""
    session = await web.greet(R4)
    for body in (tool(1, "add", a=1), notification("notifications/initialized")):
        reply = await session.ask(body, mcp_protocol_version=said)
        assert reply.status == (status if b'"id"' in body or status == 400 else 202)
    reply = await web.ask(session.said(b"", method="DELETE", mcp_protocol_version=said))
    assert (reply.status == 400) is (status == 400)


async def test_sessions_belong_to_whoever_opened_them():
    """Another principal's request finds none, and so does nobody's; the session goes on (`SEC-02`,
    `SEC-03`, `HTL-54`).
    """
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
                assert (
                    await web.ask(session.said(b"", method="DELETE", authorization=who))
                ).status == 404


# -- answers and their streams ---------------------------------------------------------------------


@REVISIONS
async def test_json_where_the_response_comes_first_and_a_stream_where_it_does_not(revision: str):
    """The stream holds the response, which is its last event, and what relates to that request
    before it (`HTL-07`, `HTL-09`, `HTL-10`, `HTL-11`, `HTL-12`, `HTL-13`).
    """
    house = House()
    async with serving(house.server) as web:
        session = await web.greet(revision)
        plain = await session.ask(tool(1, "add", a=1))
        assert (plain.status, plain.headers["content-type"], plain.json["id"]) == (
            200,
            "application/json",
            1,
        )
        one, two = [
            await session.begin(tool(n, "work", token=f"t{n}", name=f"w{n}")) for n in (2, 3)
        ]
        for line in (one, two):
            assert (
                line.status,
                line.headers["content-type"],
                line.headers["x-accel-buffering"],
            ) == (200, EVENTS, "no")
        for n in (2, 3):
            await house.began[f"w{n}"].wait()
        house.go.set()
        for n, line in ((2, one), (3, two)):
            messages = (await line.rest()).messages
            assert [m.get("params", {}).get("progressToken") for m in messages] == [
                f"t{n}",
                f"t{n}",
                None,
            ]
            assert messages[-1]["result"]["content"][0]["text"] == f"w{n} is done"


async def test_a_question_goes_out_on_the_stream_of_its_call(web: Web):
    """And its answer is a POST of its own, answered with 202 (`HTL-10`, `HTL-11`, `HTL-27`,
    `HTL-30`).
    """
    session = await web.greet(R4)
    feed = await session.listen()
    line = await session.begin(tool(1, "ask"))
    question = await line.message()
    assert question["method"] == "elicitation/create"
    reply = await session.ask(
        answer(question["id"], {"action": "accept", "content": {"value": "Ada"}})
    )
    assert (reply.status, reply.body) == (202, b"")
    assert (await line.message())["result"]["content"][0]["text"] == "Hello, Ada!"
    assert await line.message() is None
    await feed.close()
    assert b"elicitation" not in feed.raw


@REVISIONS
@pytest.mark.parametrize("retry", [None, 120])
async def test_how_a_stream_begins(revision: str, retry: int | None):
    """With an event that has an id and empty data, and with the time to come back, in 2025-11-25;
    before that with its first message (`HTL-14`, `HTL-16`).
    """
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
    """2025-03-26 takes them and answers with an array, or with a stream; the others refuse them
    (`RPC-13`, `RPC-16`, `HTL-06`).
    """
    session = await web.greet(R2)
    batch = (
        b"["
        + b",".join(
            [tool(1, "add", a=1), notification("notifications/initialized"), tool(2, "add", a=2)]
        )
        + b"]"
    )
    reply = await session.ask(batch)
    assert reply.headers["content-type"] == "application/json"
    assert {r["id"]: r["result"]["content"][0]["text"] for r in reply.json} == {1: "2", 2: "3"}
    told = await session.ask(b"[" + tool(3, "chatter", token=1) + b"," + tool(4, "add", a=1) + b"]")
    assert told.headers["content-type"] == EVENTS
    assert sorted(m["id"] for m in told.messages if "id" in m) == [3, 4]
    quiet = await session.ask(
        b"[" + notification("notifications/initialized") + b"," + cancelled(9) + b"]"
    )
    assert (quiet.status, quiet.body) == (202, b"")
    mixed = await session.ask(b"[1,%b,[],{}]" % tool(5, "add", a=1))
    assert mixed.status == 200
    assert [(r.get("id"), r.get("error", {}).get("code")) for r in mixed.json] == [
        (None, t.INVALID_REQUEST),
        (None, t.INVALID_REQUEST),
        (None, t.INVALID_REQUEST),
        (5, None),
    ]
    for bad, answers in ((b"[]", 0), (b"[1]", 1), (b"[[],2]", 2)):
        reply = await session.ask(bad)
        assert reply.status == 400
        assert (len(reply.json) if isinstance(reply.json, list) else 0) == answers
    for revision in (R3, R4):
        later = await web.greet(revision)
        refused = await later.ask(batch)
        assert (refused.status, refused.code) == (400, t.INVALID_REQUEST)


@REVISIONS
async def test_an_id_in_use_cannot_be_used_again(revision: str):
    """Not by another request of the session; a cancellation would hit either (`RPC-03`)."""
    house = House()
    async with serving(house.server) as web:
        session = await web.greet(revision)
        one = await web.line()
        await one.send(written(session.said(tool(1, "work", name="first"))))
        await house.began["first"].wait()
        again = await session.ask(tool(1, "add", a=1))
        assert (again.status, again.code) == (400, t.INVALID_REQUEST)
        if revision == R2:
            batch = await session.ask(b"[%b,%b]" % (tool(1, "add", a=1), tool(2, "add", a=2)))
            assert {r["id"]: "error" in r for r in batch.json} == {1: True, 2: False}
        other = await web.greet(revision)
        assert (await other.ask(tool(1, "add", a=1))).status == 200
        house.go.set()
        await one.head()
        assert (await one.rest()).status == 200
        assert (await session.ask(tool(1, "add", a=1))).status == 200


async def test_initialize_within_a_session_ends_it(web: Web):
    """Of the session there are not two; who has another's id ends nothing (`LIF-01`, `HTL-42`)."""
    session = await web.greet(R4)
    again = await session.ask(initialize(1, R3))
    assert again.json["result"]["protocolVersion"] == R3
    assert again.headers["mcp-session-id"] != session.id
    assert (await session.ask(request(2, "ping"))).status == 404


async def test_nobody_ends_a_session_of_another_by_initialize():
    """Who is somebody else gets a session of their own (`SEC-03`)."""
    async with serving(House().server, authorized=True) as web:
        opened = await web.ask(offered(initialize(0, R4), authorization="ada"))
        mine = {
            "mcp_session_id": opened.headers["mcp-session-id"],
            "mcp_protocol_version": R4,
        }
        hers = await web.ask(offered(initialize(0, R4), authorization="eve", **mine))
        assert hers.headers["mcp-session-id"] != mine["mcp_session_id"]
        still = await web.ask(offered(request(1, "ping"), authorization="ada", **mine))
        assert still.status == 200


async def test_a_batch_for_a_client_that_takes_only_json(web: Web):
    """The responses and nothing between them."""
    session = await web.greet(R2)
    reply = await session.ask(
        b"[" + tool(1, "chatter", token=1) + b"," + tool(2, "add", a=1) + b"]",
        accept="application/json",
    )
    assert sorted(r["id"] for r in reply.json) == [1, 2]


async def test_a_client_that_takes_only_json_cannot_be_asked(web: Web):
    """A question would never reach it: the tool hears so at once, and does not wait for ever
    (`HTL-07`).
    """
    session = await web.greet(R4)
    reply = await session.ask(tool(1, "ask"), accept="application/json")
    assert reply.json["result"]["isError"]
    assert "cannot be asked" in reply.json["result"]["content"][0]["text"]
    assert (await session.begin(tool(2, "ask"))).headers["content-type"] == EVENTS


@pytest.mark.parametrize(
    "body",
    [b'{"jsonrpc":"2.0","id":null,"method":"ping"}', b'{"jsonrpc":"2.0","id":1}', b"7", b"{", b""],
)
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


async def test_a_session_of_a_clock_that_was_set_back_ends_in_time() -> None:
    """Its end was written with a clock that was a year ahead. The next use puts it right."""
    store = MemoryStore()
    async with (
        serving(Server("s"), store=store) as web,
        Client(f"http://127.0.0.1:{web.port}/mcp", revision=R4) as client,
    ):
        (session,) = await store.sessions.recent(most=9, now=0.0)
        await store.sessions.prolong(session.id, session.until + 365 * 86_400)
        await client.ping()
        (corrected,) = await store.sessions.recent(most=9, now=0.0)
        assert session.until <= corrected.until < session.until + 3600
