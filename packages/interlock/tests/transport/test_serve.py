"""The server's shell: every request its answer, whatever a handler does and whenever a peer
goes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Callable
from typing import Any

import pytest

from interlock import types as t
from interlock.exchange import AnyResult, Exchange
from interlock.protocol.handshake.server import ServerConnection
from interlock.store import StoreError
from interlock.testing import channel_pair
from interlock.transport.pipes import PipeChannel
from interlock.transport.serve import MOST_QUEUED, Serving, serve
from interlock.wire.revisions import R2, R4
from tests.protocol.frames import (
    answer,
    error,
    identity,
    initialize,
    notification,
    request,
    stamped,
)
from tests.transport.ends import ends, turns
from tests.transport.peers import HandClient, served

NEVER = 3600.0


def text(words: str) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(words)])


def words(message: dict[str, Any]) -> str:
    return str(message["result"]["content"][0]["text"])


class Stage:
    """A handler whose calls wait until the test lets them go, and that remembers how each ended."""

    def __init__(self) -> None:
        self.doors: dict[str, asyncio.Event] = {}
        self.begun: list[str] = []
        self.ended: dict[str, str] = {}

    async def __call__(self, x: Exchange) -> AnyResult:
        if x.method == "subscriptions/listen":
            await asyncio.sleep(NEVER)
        name = x.params.name
        self.begun.append(name)
        self.ended[name] = "cancelled"
        await self.doors.setdefault(name, asyncio.Event()).wait()
        self.ended[name] = "done"
        return text(name)

    def let_go(self, name: str) -> None:
        """Let one call end."""
        self.doors.setdefault(name, asyncio.Event()).set()

    async def until(self, number: int) -> None:
        """Wait until so many calls have begun."""
        while len(self.begun) < number:
            await turns(1)


# -- what a handler may do

FAULTS: dict[str, tuple[Callable[[], BaseException], int, str]] = {
    "an answer that is an error": (
        lambda: t.McpError(-32000, "as I said", {"a": 1}),
        -32000,
        "as I said",
    ),
    "an error with a detail of no JSON": (
        lambda: t.McpError(-32000, "as I said", object()),
        -32000,
        "as I said",
    ),
    "an error with half a sign": (lambda: t.McpError(-32000, "half \ud800"), -32000, "half ?"),
    "anything else": (
        lambda: ValueError("the password is 1234"),
        t.INTERNAL_ERROR,
        "Internal error",
    ),
    "an error of ours": (
        lambda: t.Unreachable("upstream 10.0.0.7 is down"),
        t.INTERNAL_ERROR,
        "The server behind this one cannot be reached",
    ),
    "a store that is away": (
        lambda: StoreError("the disk of 10.0.0.7 is full"),
        t.INTERNAL_ERROR,
        "The server cannot reach its store. Try again later.",
    ),
    "a group of them": (
        lambda: ExceptionGroup("x", [ValueError("1234")]),
        t.INTERNAL_ERROR,
        "Internal error",
    ),
    "the end of a generator": (lambda: StopAsyncIteration(), t.INTERNAL_ERROR, "Internal error"),
    "a cancelling of its own making": (
        lambda: asyncio.CancelledError(),
        t.INTERNAL_ERROR,
        "The call was cancelled by the server.",
    ),
    "deep recursion": (lambda: RecursionError(), t.INTERNAL_ERROR, "Internal error"),
}


@pytest.mark.parametrize("fault, code, said", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("session", [True, False], ids=["session", "stateless"])
async def test_whatever_a_handler_raises_is_an_answer(
    fault: Callable[[], BaseException], code: int, said: str, session: bool
) -> None:
    """Its own words where it meant them to be heard, else none of them; the next call is served
    (`ERR-01`, `ERR-20`).
    """

    async def handler(x: Exchange) -> AnyResult:
        if x.params.name == "fails":
            raise fault()
        return text("fine")

    async with served(handler) as client:
        if session:
            await client.greet(R4)
            client.old_call(1, "fails")
            client.old_call(2, "works")
        else:
            client.call(1, "fails")
            client.call(2, "works")
        answers = await client.answered(1, 2)
    assert answers[1]["error"]["code"] == code
    message = answers[1]["error"]["message"]
    assert re.sub(r" \(reference [0-9a-f]{8}\)$", "", message) == said
    assert words(answers[2]) == "fine"


@pytest.mark.parametrize(
    "value",
    [object(), {(1, 2): 3}, 10**5000],
    ids=["object", "key", "digits"],
)
async def test_a_result_that_is_no_json_is_an_error(value: Any) -> None:
    """The caller is not left waiting (`ERR-20`)."""

    async def handler(x: Exchange) -> AnyResult:
        return t.CallToolResult(content=[], structured_content={"a": value})

    async with served(handler) as client:
        client.call(1)
        error = (await client.next())["error"]
        assert error["code"] == t.INTERNAL_ERROR
        assert re.fullmatch(r"Internal error \(reference [0-9a-f]{8}\)", error["message"])


async def test_half_a_sign_in_a_result_is_replaced() -> None:
    """As in the name of a file that is not UTF-8: the rest of the result is worth having."""

    async def handler(x: Exchange) -> AnyResult:
        return t.CallToolResult(content=[], structured_content={"a": "\ud800", "\ud800": [1]})

    async with served(handler) as client:
        client.call(1)
        result = (await client.next())["result"]
        assert result["structuredContent"] == {"a": "\ufffd", "\ufffd": [1]}
        assert result["content"] == []


async def test_no_result_at_all_is_an_error() -> None:
    """What only broken middleware does."""

    async def handler(x: Exchange) -> Any:
        return None

    async with served(handler) as client:
        await client.greet(R4)
        client.call(1)
        client.old_call(2)
        answers = await client.answered(1, 2)
    assert {answers[id]["error"]["code"] for id in (1, 2)} == {t.INTERNAL_ERROR}


async def test_a_crowd_is_answered_each_with_its_own() -> None:
    """However they end: in any order, all at once."""
    stage = Stage()
    async with served(stage) as client:
        for n in range(500):
            client.call(n, f"n{n}")
        await stage.until(500)
        for n in reversed(range(500)):
            stage.let_go(f"n{n}")
        answers = await client.answered(*range(500))
    assert {id: words(message) for id, message in answers.items()} == {
        n: f"n{n}" for n in range(500)
    }


# -- one too many


async def test_beyond_the_limit_a_call_is_refused_at_once() -> None:
    """It says that it is busy; when there is room again the next is served."""
    stage = Stage()
    async with served(stage, most_calls=2) as client:
        for n in range(3):
            client.call(n, f"n{n}")
        refused = await client.next()
        assert (refused["id"], refused["error"]["data"]) == (2, {"reason": "busy"})
        stage.let_go("n0")
        assert words(await client.next()) == "n0"
        client.call(3, "n3")
        stage.let_go("n1")
        stage.let_go("n3")
        assert set(await client.answered(1, 3)) == {1, 3}
    assert "n2" not in stage.begun


async def test_what_a_peer_listens_to_does_not_make_a_server_busy() -> None:
    """The exchanges that a session opens on its behalf do not count."""
    stage = Stage()
    async with served(stage, most_calls=2) as client:
        await client.greet(R4)
        client.channel.send([notification("notifications/initialized")])
        client.channel.send(
            [request(f"s{n}", "resources/subscribe", {"uri": f"x:{n}"}) for n in range(20)]
        )
        client.old_call(1, "a")
        client.old_call(2, "b")
        client.old_call(3, "c")
        answers = await client.answered(3)
        stage.let_go("a")
        stage.let_go("b")
        answers |= await client.answered(1, 2)
    assert [("error" in answers[id]) for id in (1, 2, 3)] == [False, False, True]


async def test_a_cancelled_call_makes_room() -> None:
    """At once, though its clean-up may take a while (`CAN-05`)."""
    stage = Stage()
    async with served(stage, most_calls=1) as client:
        client.call(1, "a")
        await stage.until(1)
        client.cancel(1)
        client.call(2, "b")
        stage.let_go("b")
        assert words((await client.answered(2))[2]) == "b"
    assert stage.ended == {"a": "cancelled", "b": "done"}


# -- cancelling


async def test_a_cancelled_call_is_stopped_and_never_answered() -> None:
    """Before it has begun, and after (`CAN-05`, `STD-13`)."""
    stage = Stage()
    async with served(stage) as client:
        client.channel.send(
            [
                stamped(1, "tools/call", {"name": "at once"}),
                notification("notifications/cancelled", {"requestId": 1}),
            ]
        )
        client.call(2, "later")
        await stage.until(1)
        while "later" not in stage.begun:
            await turns(1)
        client.cancel(2)
        client.call(3, "last")
        stage.let_go("last")
        assert (await client.next())["id"] == 3
        await client.channel.aclose()
        assert await client.rest() == []
    assert stage.ended["later"] == "cancelled"
    assert stage.ended.get("at once") in (None, "cancelled")


@pytest.mark.parametrize("ending", ["returns", "fails", "breaks"])
async def test_a_call_that_eats_its_cancelling_does_not_answer_for_another(ending: str) -> None:
    """The id may have been used again meanwhile: that call gets its own answer, and no other
    (`RPC-04`, `CAN-05`, `CAN-08`).
    """
    let_go = asyncio.Event()
    cleaned = asyncio.Event()

    async def handler(x: Exchange) -> AnyResult:
        if x.params.name == "new":
            await cleaned.wait()
            await turns()
            return text("new")
        try:
            await asyncio.sleep(NEVER)
        except asyncio.CancelledError:
            await let_go.wait()
        finally:
            cleaned.set()
        if ending == "fails":
            raise t.McpError(-32000, "old")
        if ending == "breaks":
            raise ValueError("old")
        return text("old")

    async with served(handler) as client:
        client.call(1, "old")
        await turns(10)
        client.cancel(1)
        client.call(1, "new")
        await turns(10)
        let_go.set()
        assert words(await client.next()) == "new"
        await client.channel.aclose()
        assert await client.rest() == []


async def test_a_call_can_still_be_cancelled_when_an_old_one_of_its_id_has_ended() -> None:
    """The end of the old one is not the end of the new one."""
    first_is_over = asyncio.Event()
    ended: list[str] = []

    async def handler(x: Exchange) -> AnyResult:
        name = x.params.name
        try:
            await asyncio.sleep(NEVER)
        finally:
            if name == "old":
                await turns(20)
                first_is_over.set()
            ended.append(name)
        return text("")

    async with served(handler) as client:
        client.call(1, "old")
        await turns(10)
        client.cancel(1)
        client.call(1, "new")
        await first_is_over.wait()
        client.cancel(1)
        client.channel.send([stamped("p", "tools/imagined")])
        await client.answered("p")
        await turns(10)
        assert ended == ["old", "new"]


# -- telling


async def test_what_is_told_goes_out_before_the_answer_and_nothing_after() -> None:
    """A call that keeps its exchange and goes on talking is not heard any more (`STD-13`)."""
    kept: list[Exchange] = []

    async def handler(x: Exchange) -> AnyResult:
        kept.append(x)
        for n in range(3):
            x.notify(
                "notifications/progress", t.ProgressNotificationParams(progress_token=1, progress=n)
            )
        return text("")

    async with served(handler) as client:
        client.call(1, _meta={"progressToken": 1})
        messages = [await client.next() for _ in range(4)]
        kept[0].notify(
            "notifications/progress", t.ProgressNotificationParams(progress_token=1, progress=9)
        )
        await client.channel.aclose()
        assert await client.rest() == []
    assert [message.get("method", "answer") for message in messages] == [
        "notifications/progress"
    ] * 3 + ["answer"]
    kept[0].notify(
        "notifications/progress", t.ProgressNotificationParams(progress_token=1, progress=9)
    )


async def test_a_peer_that_does_not_read_is_told_less() -> None:
    """Progress and log are dropped while too much is queued; changes, and above all answers, are
    not (`PRG-05`, `LOG-09`).
    """
    out: list[bytes] = []
    queued = [0]

    async def handler(x: Exchange) -> AnyResult:
        x.notify(
            "notifications/progress", t.ProgressNotificationParams(progress_token=1, progress=1)
        )
        x.notify(
            "notifications/message", t.LoggingMessageNotificationParams(level="error", data="x")
        )
        x.notify("notifications/resources/updated", t.ResourceUpdatedNotificationParams(uri="x:y"))
        return text("")

    serving = Serving(
        handler,
        ServerConnection(identity()),
        lambda frames: out.extend(f for _, f in frames),
        queued=lambda: queued[0],
    )
    for queued[0], told in ((0, 4), (MOST_QUEUED - 10_000, 4), (MOST_QUEUED + 1, 2)):
        out.clear()
        params = {"name": "x", "_meta": {"progressToken": 1}}
        serving.receive([stamped(1, "tools/call", params)])
        while not any(b'"result"' in frame for frame in out):
            await turns(1)
        assert len(out) == told
    await serving.aclose()


async def test_a_listener_that_fails_does_not_cost_the_messages_behind_it() -> None:
    """What comes in the same breath is taken in all the same."""
    received: list[str] = []

    def receive(method: str, params: Any, caller: Any) -> None:
        received.append(method)
        raise ValueError("not today")

    stage = Stage()
    stage.let_go("x")
    async with served(stage, on_notification=receive) as client:
        client.channel.send(
            [
                notification("notifications/roots/list_changed"),
                stamped(1, "tools/call", {"name": "x"}),
            ]
        )
        assert words(await client.next()) == "x"
    assert received == ["notifications/roots/list_changed"]


# -- asking


async def asking(x: Exchange) -> AnyResult:
    """A handler that asks for the roots and says what came of it."""
    try:
        roots = await x.asker.ask(t.ListRootsRequest())
    except t.McpError as bad:
        return text(f"{bad.code}")
    assert isinstance(roots, t.ListRootsResult)
    return text(",".join(root.uri for root in roots.roots))


async def asked(client: HandClient) -> dict[str, Any]:
    question = await client.next()
    assert question["method"] == "roots/list"
    return question


async def test_a_question_goes_out_and_its_answer_comes_back() -> None:
    """A result, an error, and something that is neither (`ELI-04`, `RPC-06`)."""
    async with served(asking) as client:
        await client.greet(R4)
        for n, (reply, said) in enumerate(
            [
                (lambda id: answer(id, {"roots": [{"uri": "file:///x"}]}), "file:///x"),
                (lambda id: error(id, -1), "-1"),
                (lambda id: answer(id, {"roots": 5}), str(t.INVALID_PARAMS)),
                (lambda id: b'{"jsonrpc":"2.0","id":%d,"error":"no"}' % id, str(t.INVALID_PARAMS)),
            ]
        ):
            client.old_call(n)
            client.channel.send([reply((await asked(client))["id"])])
            assert words(await client.next()) == said


async def test_a_call_that_is_cancelled_takes_its_question_back() -> None:
    """The peer need not answer it any more (`CAN-05`)."""
    async with served(asking) as client:
        await client.greet(R4)
        client.old_call(1)
        question = await asked(client)
        client.cancel(1)
        taken_back = await client.next()
        assert (taken_back["method"], taken_back["params"]["requestId"]) == (
            "notifications/cancelled",
            question["id"],
        )
        await client.channel.aclose()
        assert await client.rest() == []


async def test_whoever_waits_for_an_answer_is_not_left_waiting_by_a_peer_that_goes() -> None:
    """The call ends."""
    ended: list[str] = []

    async def handler(x: Exchange) -> AnyResult:
        try:
            return await asking(x)
        finally:
            ended.append("over")

    async with served(handler, grace=0) as client:
        await client.greet(R4)
        client.old_call(1)
        await asked(client)
    assert ended == ["over"]


# -- the end


async def test_running_calls_have_a_little_time_when_the_peer_has_said_its_last() -> None:
    """A client that closes after its last call still gets the answer (`LIF-24`, `STD-09`)."""
    stage = Stage()
    async with ends(PipeChannel) as both:
        serving = asyncio.create_task(serve(stage, identity(), both.channel, grace=20))
        both.write(stamped(1, "tools/call", {"name": "quick"}) + b"\n")
        await stage.until(1)
        both.hang_up()
        await turns(20)
        assert not serving.done()
        stage.let_go("quick")
        (line,) = (await both.rest()).splitlines()
        await serving
    assert words(json.loads(line)) == "quick"


async def test_calls_that_take_longer_are_cancelled_and_awaited() -> None:
    """When serving is over nothing of it runs any more (`STD-09`)."""
    stage = Stage()
    before = asyncio.all_tasks()
    async with served(stage, grace=0.01) as client:
        await client.greet(R4)
        client.channel.send([notification("notifications/initialized")])
        for n in range(10):
            client.call(n, f"n{n}")
        await stage.until(10)
    assert set(stage.ended.values()) == {"cancelled"}
    assert asyncio.all_tasks() <= before


async def test_what_a_call_says_after_the_peer_has_gone_is_dropped() -> None:
    """No fault, and no frame."""
    over = asyncio.Event()

    async def handler(x: Exchange) -> AnyResult:
        try:
            await asyncio.sleep(NEVER)
        finally:
            x.notify(
                "notifications/progress", t.ProgressNotificationParams(progress_token=1, progress=1)
            )
            over.set()
        return text("")

    async with served(handler, grace=0) as client:
        client.call(1)
        await turns(10)
    assert over.is_set()


async def test_serving_that_is_cancelled_closes_its_channel_and_its_calls() -> None:
    """Whatever happens."""
    stage = Stage()
    ours, theirs = channel_pair()
    serving = asyncio.create_task(serve(stage, identity(), theirs, grace=0))
    ours.send([stamped(1, "tools/call", {"name": "x"})])
    await stage.until(1)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert stage.ended == {"x": "cancelled"}
    assert await ours.receive() == []


async def test_a_channel_that_breaks_ends_the_serving() -> None:
    """With what it raised; the calls are ended."""

    class Broken:
        queued = 0
        lost = ""
        closed = False

        def __init__(self) -> None:
            self.frames = [stamped(1, "tools/call", {"name": "x"})]

        async def receive(self) -> list[bytes]:
            if self.frames:
                return [self.frames.pop()]
            await stage.until(1)
            raise OSError("the wire was cut")

        def send(self, frames: list[bytes]) -> None:
            """Nobody reads it."""

        async def drain(self) -> None:
            """At once."""

        async def aclose(self) -> None:
            self.closed = True

    stage = Stage()
    channel = Broken()
    with pytest.raises(OSError, match="cut"):
        await serve(stage, identity(), channel, grace=0)
    assert channel.closed
    assert stage.ended == {"x": "cancelled"}


async def test_garbage_is_answered_and_the_conversation_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever comes between two good messages; it is no fault of ours and makes no noise
    (`RPC-09`, `ERR-01`).
    """
    stage = Stage()
    stage.let_go("x")
    with caplog.at_level(logging.INFO):
        async with served(stage) as client:
            client.channel.send(
                [
                    b"\x00\xff",
                    b"[1,2]",
                    b"{}",
                    stamped(1, "tools/call", {"name": "x"}),
                    b'{"jsonrpc":"2.0","id":',
                ]
            )
            messages = [await client.next() for _ in range(5)]
    assert [message["error"]["code"] for message in messages if "error" in message] == [
        t.PARSE_ERROR,
        t.INVALID_REQUEST,
        t.INVALID_REQUEST,
        t.PARSE_ERROR,
    ]
    assert caplog.records == []


async def test_a_batch_of_an_older_session_is_served() -> None:
    """Its requests run beside each other, and are answered with one array (`RPC-13`)."""
    stage = Stage()
    async with served(stage) as client:
        client.channel.send([initialize("hello", R2)])
        await client.next()
        calls = [request(n, "tools/call", {"name": f"n{n}"}) for n in range(3)]
        client.channel.send([b"[%b]" % b",".join(calls)])
        await stage.until(3)
        for n in (2, 0, 1):
            stage.let_go(f"n{n}")
        answers: Any = await client.next()
    assert [words(answer) for answer in answers] == ["n2", "n0", "n1"]


def _progress(x: Exchange, *steps: int) -> None:
    for step in steps:
        x.notify(
            "notifications/progress",
            t.ProgressNotificationParams(progress_token=x.progress_token or 0, progress=step),
        )


@pytest.mark.parametrize("session", [True, False], ids=["session", "stateless"])
@pytest.mark.parametrize("waits", [True, False], ids=["waits", "does not wait"])
@pytest.mark.parametrize("outcome", ["result", "error"])
async def test_the_response_of_a_call_is_never_read_together_with_its_progress(
    session: bool, waits: bool, outcome: str
) -> None:
    """However late the peer reads; the responses of other calls do not wait for that (`PRG-02`)."""

    async def handler(x: Exchange) -> AnyResult:
        if x.params.name == "reports":
            _progress(x, 1, 2)
            if waits:
                await turns(3)
            if outcome == "error":
                raise t.McpError(-32000, "as I said")
        return text(x.params.name)

    async with ends(PipeChannel, sockets=True) as both:
        serving = asyncio.ensure_future(serve(handler, identity(), both.channel))

        def call(name: str) -> bytes:
            params = {"name": name, "_meta": {"progressToken": name}}
            line = request if session else stamped
            return line(name, "tools/call", params) + b"\n"

        if session:
            both.write(initialize("hello", R4) + b"\n")
            await asyncio.to_thread(os.read, both.read_from, 65536)
        both.write(call("reports") + call("silent"))
        reads: list[set[Any]] = []
        while not any("reports" in read for read in reads):
            await turns(300)
            data = await asyncio.to_thread(os.read, both.read_from, 65536)
            messages = [json.loads(line) for line in data.splitlines()]
            reads.append({m["id"] if "id" in m else m["params"]["progress"] for m in messages})
        both.hang_up()
        await serving
    assert reads == [{1, 2, "silent"}, {"reports"}]


async def test_the_array_of_a_batch_is_not_read_together_with_progress() -> None:
    """It holds the response of the call that has reported; nothing of the call is kept after it."""
    sent: list[list[bytes]] = []
    barriers: list[int] = []

    async def handler(x: Exchange) -> AnyResult:
        _progress(x, 1)
        return text("x")

    serving = Serving(
        handler,
        ServerConnection(identity()),
        lambda out: sent.append([frame for _, frame in out]),
        barrier=lambda: barriers.append(len(sent)),
    )
    serving.receive([initialize("hello", R2)])
    params = {"name": "x", "_meta": {"progressToken": 1}}
    calls = [request(n, "tools/call", params) for n in (1, 2)]
    serving.receive([b"[%b]" % b",".join(calls)])
    while not sent[-1][0].startswith(b"["):
        await turns(1)
    assert barriers == [len(sent) - 1]
    assert [b"notifications/progress" in frame for frame in sent[-2]] == [True, True]
    serving.receive([request(3, "ping")])
    assert len(barriers) == 1


async def test_a_call_without_progress_passes_no_barrier() -> None:
    """Such calls cost what they did; many calls that report in one turn share one."""
    barriers: list[int] = []
    sent: list[int] = []

    async def handler(x: Exchange) -> AnyResult:
        if x.params.name == "reports":
            _progress(x, 1)
        return text("x")

    connection = ServerConnection(identity())
    serving = Serving(
        handler,
        connection,
        lambda out: sent.append(len(out)),
        barrier=lambda: barriers.append(len(sent)),
    )
    serving.receive([stamped(n, "tools/call", {"name": "x"}) for n in range(5)])
    await turns(5)
    assert (barriers, sum(sent)) == ([], 5)
    params = {"name": "reports", "_meta": {"progressToken": 7}}
    serving.receive([stamped(n, "tools/call", params) for n in range(10, 15)])
    await turns(5)
    assert len(barriers) == 1
    assert sum(sent) == 15


@pytest.mark.parametrize("method", ["notifications/progress", "notifications/message"])
@pytest.mark.parametrize("size", [10, 100_000])
async def test_what_waits_is_bounded_within_one_turn_of_the_loop(
    method: str, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A tool that never lets the loop go on sends 8 MiB; the rest is counted, and logged."""
    many = 3 * MOST_QUEUED // (size + 100)
    sent: list[int] = []
    words_of = "w" * size

    async def handler(x: Exchange) -> AnyResult:
        params: Any = (
            t.ProgressNotificationParams(progress_token=1, progress=1, message=words_of)
            if method == "notifications/progress"
            else t.LoggingMessageNotificationParams(level="error", data=words_of)
        )
        for _ in range(many):
            x.notify(method, params)
        return text("x")

    serving = Serving(
        handler,
        ServerConnection(identity()),
        lambda out: sent.extend(len(frame) for _, frame in out),
    )
    params = {"name": "x", "_meta": {"progressToken": 1}}
    serving.receive([stamped(1, "tools/call", params)])
    while not sent:
        await turns(1)
    assert MOST_QUEUED - 2 * (size + 200) < sum(sent) < MOST_QUEUED + 2 * (size + 200)
    assert serving.dropped == many - (len(sent) - 1)
    await serving.aclose()
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert f"{serving.dropped} progress and log messages were dropped" in told[1]
