"""The streams of a session over a real socket: leaving and coming back, what is replayed, and which
message goes out where.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from interlock.wire.revisions import R2, R3, R4
from tests.protocol.frames import request
from tests.transport.raw_web import House, Web, cancelled, ids, serving, tool

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


# -- cancelling, and leaving without cancelling ----------------------------------------------------


@REVISIONS
async def test_cancelling(revision: str):
    """By a notification of its own POST; the stream of the call ends without a response (`HTL-22`,
    `CAN-05`).
    """
    house = House()
    async with serving(house.server) as web:
        session = await web.greet(revision)
        other = await web.greet(revision)
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
        primed = await line.event()
        progress = await line.event()
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
        assert [m.get("method", m.get("id")) for m in (await later.rest()).messages] == [
            "notifications/progress"
        ] * 2 + [1]


async def test_a_call_that_takes_long_becomes_a_stream():
    """Without a word of the tool's, so that a client that loses it can come back for the response
    (`HTL-14`, `HTL-21`, `HTL-34`).
    """
    house = House()
    async with serving(house.server) as web:
        session = await web.greet(R4)
        line = await session.begin(tool(1, "work", name="long"))
        event = await line.event()
        assert event is not None
        assert (line.headers["content-type"], event.data) == (EVENTS, b"")
        await line.close()
        again = await session.listen(event.id)
        house.go.set()
        assert [m["id"] for m in (await again.rest()).messages] == [1]
        assert not house.cancelled


async def test_letting_a_client_go():
    """The stream is closed with the time to come back, and the response waits for the client
    (`HTL-15`, `HTL-16`, `HTL-18`).
    """
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


# -- streams of a session --------------------------------------------------------------------------


@REVISIONS
async def test_the_stream_of_a_session(web: Web, revision: str):
    """GET opens it; what happens beside the client's requests is told there, and no response ever
    (`HTL-25`, `HTL-26`, `HTL-27`).
    """
    session = await web.greet(revision)
    subscribed = await session.ask(request(1, "resources/subscribe", {"uri": "note://one"}))
    assert subscribed.json["result"] == {}
    line = await session.listen()
    assert (line.status, line.headers["content-type"]) == (200, EVENTS)
    await session.ask(tool(2, "chatter", token=1))
    await session.ask(tool(3, "add", a=1))
    await session.ask(tool(4, "touch"))
    told = [await line.message(), await line.message()]
    assert {m["method"] for m in told} == {
        "notifications/resources/updated",
        "notifications/tools/list_changed",
    }
    assert not [m for m in told if "id" in m]
    assert b'"result"' not in line.raw
    assert b"progress" not in line.raw
    await line.close()


async def test_what_cannot_be_listened_to(web: Web):
    """A GET that takes no events is refused (`HTL-24`, `HTL-25`)."""
    session = await web.greet(R4)
    assert (await web.ask(session.said(b"", method="GET", accept="application/json"))).status == 406


async def test_a_notice_goes_to_one_stream():
    """A session that listens twice hears on the newer stream, and the older one ends (`HTL-28`,
    `HTL-30`).
    """
    async with serving(House().server) as web:
        session = await web.greet(R4)
        older = await session.listen()
        newer = await session.listen()
        assert (await older.rest()).messages == []
        await session.ask(tool(1, "touch"))
        assert (await newer.message())["method"] == "notifications/tools/list_changed"
        await newer.close()


async def test_a_stream_that_is_come_back_to_moves():
    """What it was before hears no more: each message goes out on one stream (`HTL-30`,
    `HTL-36`).
    """
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
        session = await web.greet(R4)
        other = await web.greet(R4)
        lines = {
            n: await session.begin(tool(n, "work", token=f"t{n}", name=f"s{n}")) for n in (1, 2)
        }
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
            assert [m.get("id", m.get("params", {}).get("progressToken")) for m in rest] == [
                f"t{n}",
                f"t{n}",
                n,
            ]
            stolen = await other.listen(event.id)
            assert (stolen.status, b"t1" in (await stolen.rest()).body) == (400, False)


@pytest.mark.parametrize(
    "last",
    ["nothing", "no.such.1", "x.1", "1", ".", "..", "a" * 2000, "changes.", "changes.9999999999"],
)
async def test_events_that_never_were(web: Web, last: str):
    """Are refused, or begin from now on; never an error of the server's own (`HTL-36`)."""
    session = await web.greet(R4)
    line = await session.listen(last)
    assert line.status in (200, 400)
    assert (line.status == 400) is not last.startswith("changes.")
    await line.close()


async def test_event_ids_are_unique_and_name_their_stream():
    """Over all streams of a session, of calls and of notices, and over sessions (`HTL-31`,
    `HTL-32`, `HTL-33`).
    """
    async with serving(House().server) as web:
        found: list[str | None] = []
        streams = []
        for session in (await web.greet(R4), await web.greet(R4)):
            feed = await session.listen()
            lines = await asyncio.gather(
                *(session.begin(tool(n, "chatter", token=n)) for n in range(5))
            )
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
    """Who comes back to the stream of notices hears what happened meanwhile, once (`HTL-34`,
    `HTL-35`).
    """
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
        assert {m["method"] for m in told} == {
            "notifications/resources/updated",
            "notifications/tools/list_changed",
        }
        await session.ask(tool(3, "touch"))
        assert (await again.message())["method"].startswith("notifications/")
        await again.close()


async def test_what_is_unsubscribed_is_not_told():
    """Nor what another session has subscribed to (`SUB-05`, `HTL-30`)."""
    async with serving(House().server) as web:
        session = await web.greet(R4)
        other = await web.greet(R4)
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
    session = await web.greet(R4)
    other = await web.greet(R4)
    assert (await session.ask(request(1, "logging/setLevel", {"level": "emergency"}))).json[
        "result"
    ] == {}
    assert b"hear, hear" not in (await session.ask(tool(2, "chatter"))).body
    assert b"hear, hear" in (await other.ask(tool(2, "chatter"))).body
