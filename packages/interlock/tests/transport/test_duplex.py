"""The client's shell over a channel: whoever waits is answered or told why not, whatever the server
does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from interlock import types as t
from interlock.exchange import MUTE, Caller, Exchange
from interlock.protocol.opening import Opened, UnsupportedRevision
from interlock.testing import MemoryChannel, channel_pair
from interlock.transport.conversation import Hello
from interlock.transport.duplex import Duplex
from interlock.wire.revisions import NEWEST, R1, R4, REVISIONS
from tests.protocol.frames import KEY, answer, error, notification, request
from tests.transport.ends import turns

DISCOVERED = {
    "supportedVersions": [NEWEST],
    "capabilities": {},
    "ttlMs": 0,
    "cacheScope": "private",
}
GREETED = {"protocolVersion": R4, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}


class HandServer:
    """The other end of a client's channel, message by message."""

    def __init__(self, channel: MemoryChannel) -> None:
        self.channel = channel
        self._came: list[dict[str, Any]] = []

    async def next(self, method: str | None = None) -> dict[str, Any]:
        """The next message, or the next of a method."""
        while True:
            if not self._came:
                frames = await self.channel.receive()
                assert frames, "the client has closed"
                self._came += [json.loads(frame) for frame in frames]
            message = self._came.pop(0)
            if method is None or message.get("method") == method:
                return message

    def say(self, *frames: bytes) -> None:
        """Send frames."""
        self.channel.send(list(frames))

    async def open(self, revision: str) -> None:
        """Do what a server of a revision does at the beginning."""
        first = await self.next()
        if revision == NEWEST:
            self.say(answer(first["id"], DISCOVERED))
            return
        if first["method"] == "server/discover":
            self.say(error(first["id"], -32601))
            first = await self.next()
        self.say(answer(first["id"], GREETED | {"protocolVersion": revision}))
        assert (await self.next())["method"] == "notifications/initialized"


class Person:
    """Whom the server's questions reach."""

    def __init__(self, reply: Callable[[], Any]) -> None:
        self.reply = reply
        self.asked = 0

    async def ask(self, request: Any, key: str | None = None) -> Any:
        """Answer, or raise."""
        self.asked += 1
        value = self.reply()
        return await value if asyncio.iscoroutine(value) else value

    async def once(self, name: str, do: Any) -> Any:
        """Nobody does this on the client's side."""
        raise AssertionError(name)


def hello(**more: Any) -> Hello:
    said: dict[str, Any] = {
        "info": t.Implementation(name="c", version="1"),
        "capabilities": t.ClientCapabilities(),
        "asker": MUTE,
        "notify": lambda method, params: None,
    }
    return Hello(**(said | more))


@contextlib.asynccontextmanager
async def opened(revision: str = NEWEST, **more: Any) -> AsyncIterator[tuple[Duplex, HandServer]]:
    """A client's end that has agreed on a revision, and the server's end of its channel."""
    ours, theirs = channel_pair()
    duplex = Duplex(ours)
    server = HandServer(theirs)
    async with asyncio.timeout(30):
        opening = asyncio.ensure_future(duplex.open(hello(**more)))
        await server.open(revision)
        assert (await opening).revision == revision
        yield duplex, server
        await duplex.aclose()


def call(name: str = "x", revision: str = NEWEST, **more: Any) -> Exchange:
    return Exchange("tools/call", t.CallToolRequestParams(name=name), Caller(revision), **more)


def started(duplex: Duplex, exchange: Exchange) -> asyncio.Task[Any]:
    async def carry() -> Any:
        return await duplex(exchange)

    return asyncio.create_task(carry())


RESULT = {"content": [{"type": "text", "text": "x"}]}


# -- opening


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_revision_is_agreed_on_with_any_server(revision: str) -> None:
    """(`ERA-04`, `ERA-05`, `ERA-07`, `LIF-08`)"""
    async with opened(revision) as (duplex, server):
        running = started(duplex, call(revision=revision))
        asked = await server.next("tools/call")
        assert ((KEY + "protocolVersion") in asked["params"].get("_meta", {})) == (
            revision == NEWEST
        )
        server.say(answer(asked["id"], RESULT))
        assert (await running).text == "x"


async def test_a_silent_server_is_given_up_after_the_time_allowed() -> None:
    """Probe and introduction each have their own; nobody hangs, and neither is cancelled by a
    message that a server of neither era knows.

    (`ERA-07`, `LIF-13`, `LIF-18`, `LIF-22`)
    """
    for revisions, methods in (
        (REVISIONS, ["server/discover", "initialize", "notifications/cancelled"]),
        ((NEWEST,), ["server/discover", "notifications/cancelled"]),
        ((R4,), ["initialize"]),
    ):
        ours, theirs = channel_pair()
        duplex = Duplex(ours)
        with pytest.raises(t.TimedOut):
            await duplex.open(hello(revisions=revisions, probe_seconds=0.01, open_seconds=0.01))
        await duplex.aclose()
        sent = []
        while frames := await theirs.receive():
            sent += [json.loads(frame)["method"] for frame in frames]
        assert sent == methods


async def test_a_slow_server_is_understood_though_its_answers_come_late() -> None:
    """Who answers the probe is of the stateless era, however late it is; who refuses it, or takes
    the handshake that came meanwhile, of the other (`ERA-05`, `ERA-07`).
    """
    for late, greeted, revision in (
        (DISCOVERED, None, NEWEST),
        (DISCOVERED, GREETED, R4),
        (None, GREETED, R4),
    ):
        ours, theirs = channel_pair()
        duplex = Duplex(ours)
        server = HandServer(theirs)
        opening = asyncio.ensure_future(duplex.open(hello(probe_seconds=0.01)))
        probe = await server.next("server/discover")
        greeting = await server.next("initialize")
        server.say(
            *(
                error(request["id"], -32601) if said is None else answer(request["id"], said)
                for request, said in ((probe, late), (greeting, greeted))
            ),
        )
        result: Opened = await opening
        assert result.revision == revision
        await duplex.aclose()


@pytest.mark.parametrize(
    "garbage",
    [{}, {"supportedVersions": "all"}, [], None, 5, {"supportedVersions": [1], "capabilities": {}}],
    ids=repr,
)
async def test_a_garbage_answer_to_the_probe_leads_to_the_introduction(garbage: Any) -> None:
    """(`ERA-07`)"""
    ours, theirs = channel_pair()
    duplex = Duplex(ours)
    server = HandServer(theirs)
    opening = asyncio.ensure_future(duplex.open(hello()))
    server.say(answer((await server.next())["id"], garbage))
    server.say(answer((await server.next("initialize"))["id"], GREETED))
    assert (await opening).revision == R4
    await duplex.aclose()


@pytest.mark.parametrize(
    "garbage", [{}, {"protocolVersion": 5}, None, [], GREETED | {"capabilities": None}], ids=repr
)
async def test_a_garbage_answer_to_the_introduction_is_the_end(garbage: Any) -> None:
    """A clear word and no hang (`LIF-22`)."""
    ours, theirs = channel_pair()
    duplex = Duplex(ours)
    server = HandServer(theirs)
    opening = asyncio.ensure_future(duplex.open(hello(revisions=(R4,))))
    server.say(answer((await server.next("initialize"))["id"], garbage))
    with pytest.raises(t.InterlockError):
        await opening
    await duplex.aclose()


async def test_a_server_that_closes_while_it_is_being_opened_is_unreachable() -> None:
    """At either step (`ERA-15`, `ERR-21`)."""
    for answers in (0, 1):
        ours, theirs = channel_pair()
        duplex = Duplex(ours)
        server = HandServer(theirs)
        opening = asyncio.ensure_future(duplex.open(hello()))
        for _ in range(answers):
            server.say(error((await server.next())["id"], -32601))
        await server.next()
        await theirs.aclose()
        with pytest.raises(t.Unreachable):
            await opening
        await duplex.aclose()


async def test_a_server_that_shares_no_revision_is_refused() -> None:
    """(`ERA-19`, `STA-13`)"""
    ours, theirs = channel_pair()
    duplex = Duplex(ours)
    server = HandServer(theirs)
    opening = asyncio.ensure_future(duplex.open(hello(revisions=(NEWEST,))))
    server.say(error((await server.next())["id"], -32601))
    with pytest.raises(UnsupportedRevision):
        await opening
    await duplex.aclose()


# -- answers


async def test_answers_find_their_calls_in_any_order() -> None:
    """A thousand at once (`RPC-05`)."""
    async with opened() as (duplex, server):
        running = [started(duplex, call(f"n{n}")) for n in range(1000)]
        asked = [await server.next("tools/call") for _ in range(1000)]
        for message in reversed(asked):
            server.say(
                answer(
                    message["id"],
                    {"content": [{"type": "text", "text": message["params"]["name"]}]},
                )
            )
        results = await asyncio.gather(*running)
    assert [result.text for result in results] == [f"n{n}" for n in range(1000)]


async def test_a_server_that_answers_twice_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """The first answer counts (`CAN-07`)."""
    async with opened() as (duplex, server):
        running = started(duplex, call())
        id = (await server.next())["id"]
        server.say(answer(id, RESULT), answer(id, {"content": []}), error(id, -1), answer(id, 5))
        assert (await running).text == "x"
        again = started(duplex, call())
        server.say(answer((await server.next())["id"], RESULT))
        assert (await again).text == "x"
    assert caplog.records == []


UNREADABLE = {
    "null": b"null",
    "a list": b"[]",
    "no content": b"{}",
    "an unknown kind of result (RPC-20)": b'{"resultType":"dream","content":[]}',
    "questions without sense": b'{"resultType":"input_required","inputRequests":5}',
    "bytes that are no JSON": b'{"content":[{"type":"text","text":"\xff"}]}',
}


@pytest.mark.parametrize("result", UNREADABLE.values(), ids=UNREADABLE)
async def test_an_answer_that_cannot_be_read_is_a_fault_of_the_conversation(result: bytes) -> None:
    """Not an error that the server sent, and not an answer; the next one is read (`RPC-20`,
    `ERR-21`).
    """
    async with opened() as (duplex, server):
        running = started(duplex, call())
        server.say(b'{"jsonrpc":"2.0","id":%d,"result":%b}' % ((await server.next())["id"], result))
        with pytest.raises(t.ProtocolError):
            await running
        again = started(duplex, call())
        server.say(answer((await server.next())["id"], RESULT))
        assert (await again).text == "x"


async def test_a_malformed_answer_does_not_leave_its_call_waiting() -> None:
    """(`RPC-06`, `ERR-21`)"""
    async with opened() as (duplex, server):
        running = started(duplex, call())
        server.say(b'{"jsonrpc":"2.0","id":%d,"error":"no"}' % (await server.next())["id"])
        with pytest.raises(t.ProtocolError, match="cannot be read"):
            await running


async def test_garbage_between_answers_is_logged_and_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A server that prints into its own wire is understood as far as it can be (`STD-02`)."""
    async with opened() as (duplex, server):
        running = started(duplex, call())
        id = (await server.next())["id"]
        server.say(b"Loading model... 100%", b"\x00\xff\xfe", b"[", answer(id, RESULT), b"done")
        assert (await running).text == "x"
        await turns()
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 4


# -- giving up


async def test_a_call_that_nobody_waits_for_is_cancelled_at_the_server() -> None:
    """Once; its late answer harms nobody (`STD-12`, `CAN-03`, `CAN-07`)."""
    async with opened() as (duplex, server):
        running = started(duplex, call())
        id = (await server.next())["id"]
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        cancelled = await server.next()
        assert (cancelled["method"], cancelled["params"]["requestId"]) == (
            "notifications/cancelled",
            id,
        )
        server.say(answer(id, RESULT))
        again = started(duplex, call())
        server.say(answer((await server.next())["id"], RESULT))
        assert (await again).text == "x"


async def test_a_server_that_goes_takes_no_call_with_it_in_silence() -> None:
    """Whoever waits is told, and so is whoever calls later; none of it is an error that the server
    sent (`ERR-21`).
    """
    async with opened() as (duplex, server):
        running = [started(duplex, call()) for _ in range(100)]
        await server.next()
        await server.channel.aclose()
        results = await asyncio.gather(*running, return_exceptions=True)
        assert {type(result) for result in results} == {t.Unreachable}
        for _ in range(3):
            with pytest.raises(t.Unreachable) as caught:
                await duplex(call())
        depth = 0
        trace = caught.value.__traceback__
        while trace is not None:
            depth = depth + 1
            trace = trace.tb_next
        assert depth < 10
        duplex.send_notification(
            "notifications/roots/list_changed", t.RootsListChangedNotificationParams()
        )


async def test_a_client_that_closes_tells_its_own_callers() -> None:
    """(`ERR-21`)"""
    async with opened() as (duplex, server):
        running = started(duplex, call())
        await server.next()
        await duplex.aclose()
        with pytest.raises(t.Unreachable, match="closed"):
            await running
        with pytest.raises(t.Unreachable):
            await duplex(call())
        await duplex.aclose()


async def test_a_message_that_was_lost_on_the_way_leaves_nobody_waiting() -> None:
    """Whose answer it was is not known, so nobody goes on waiting for one that may never come."""
    async with opened() as (duplex, server):
        running = started(duplex, call())
        await server.next()
        duplex.channel.lost = "a line of more than 5 bytes was dropped"
        server.say(notification("notifications/message", {"level": "info", "data": "x"}))
        with pytest.raises(t.Unreachable, match="more than 5 bytes"):
            await running


async def test_a_channel_that_breaks_is_the_reason_that_is_given() -> None:
    """With what it raised as its cause."""
    async with opened() as (duplex, server):

        async def broken() -> list[bytes]:
            raise OSError("the wire was cut")

        duplex.channel.receive = broken
        running = started(duplex, call())
        server.say(notification("notifications/message", {"level": "info", "data": "x"}))
        with pytest.raises(t.Unreachable, match="the wire was cut") as caught:
            await running
        assert isinstance(caught.value.__cause__, OSError)


# -- notices and questions


async def test_progress_reaches_the_call_that_it_belongs_to() -> None:
    """And a listener that fails harms nobody (`CAN-08`)."""
    received: list[Any] = []

    def fails(method: str, params: Any) -> None:
        received.append(params.progress)
        raise ValueError("not today")

    async with opened() as (duplex, server):
        running = [started(duplex, call(notify=fails)), started(duplex, call())]
        first = await server.next()
        second = await server.next()
        token = first["params"]["_meta"]["progressToken"]
        assert "progressToken" not in second["params"]["_meta"]
        server.say(
            *(
                notification("notifications/progress", {"progressToken": token, "progress": n})
                for n in range(3)
            )
        )
        server.say(answer(second["id"], RESULT), answer(first["id"], RESULT))
        assert [result.text for result in await asyncio.gather(*running)] == ["x", "x"]
    assert received == [0, 1, 2]


REPLIES: dict[str, tuple[Callable[[], Any], Any]] = {
    "an answer": (lambda: t.ListRootsResult(roots=[]), {"roots": []}),
    "a refusal": (lambda: (_ for _ in ()).throw(t.McpError(-1, "no")), -1),
    "a fault": (lambda: (_ for _ in ()).throw(ValueError("1234")), t.INTERNAL_ERROR),
    "an answer that is no JSON": (
        # on purpose
        lambda: t.ListRootsResult(roots=[t.Root(uri=object())]),
        t.INTERNAL_ERROR,
    ),
    "an answer with half a sign": (
        lambda: t.ListRootsResult(roots=[t.Root(uri="\ud800")]),
        {"roots": [{"uri": "\ufffd"}]},
    ),
    "nothing": (lambda: None, t.INTERNAL_ERROR),
}


@pytest.mark.parametrize("reply, said", REPLIES.values(), ids=REPLIES)
async def test_a_question_is_always_answered(reply: Callable[[], Any], said: Any) -> None:
    """However the answering went; a fault of ours is not told in words (`ERR-17`, `ERR-20`)."""
    async with opened(R4, asker=Person(reply)) as (_, server):
        server.say(request("q", "roots/list"))
        answered = await server.next()
        assert answered["id"] == "q"
        assert (answered["result"] if isinstance(said, dict) else answered["error"]["code"]) == said
        assert "1234" not in json.dumps(answered)


async def test_a_question_that_is_taken_back_is_not_asked_any_longer() -> None:
    """The person's dialogue closes (`CAN-05`)."""
    closed = asyncio.Event()

    async def slow() -> Any:
        try:
            await asyncio.sleep(3600)
        finally:
            closed.set()

    person = Person(slow)
    async with opened(R4, asker=person) as (_, server):
        server.say(request("q", "roots/list"))
        while not person.asked:
            await turns(1)
        server.say(notification("notifications/cancelled", {"requestId": "q"}))
        await closed.wait()
        server.say(request("p", "ping"))
        assert (await server.next())["id"] == "p"


async def test_a_question_belongs_to_the_only_call_that_can_have_asked_it() -> None:
    """Where one call runs it is that call's to answer, where several do it is the client's."""
    general, particular = (Person(lambda: t.ListRootsResult(roots=[])) for _ in range(2))
    async with opened(R4, asker=general) as (duplex, server):
        first = started(duplex, call(revision=R4, asker=particular))
        one = (await server.next())["id"]
        server.say(request("q1", "roots/list"))
        await server.next()
        assert (general.asked, particular.asked) == (0, 1)
        second = started(duplex, call(revision=R4))
        two = (await server.next())["id"]
        server.say(request("q2", "roots/list"))
        await server.next()
        assert (general.asked, particular.asked) == (1, 1)
        server.say(answer(one, RESULT), answer(two, RESULT))
        await asyncio.gather(first, second)


async def test_closing_ends_the_questions_that_are_being_asked() -> None:
    """Nothing of the client runs afterwards."""
    before = asyncio.all_tasks()
    person = Person(lambda: asyncio.sleep(3600))
    async with opened(R1, asker=person) as (_, server):
        server.say(request("q", "roots/list"))
        while not person.asked:
            await turns(1)
    assert asyncio.all_tasks() <= before
