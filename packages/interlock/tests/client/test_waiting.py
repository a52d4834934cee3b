"""How long a client waits: bounds of time, progress that moves them, and what is cancelled when
they are over.

Time stands still here but where a test moves it: the loop's clock is the test's own.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from interlock import (
    AnyResult,
    Client,
    ClientSettings,
    Context,
    Exchange,
    Server,
    TimedOut,
    Unreachable,
)
from interlock import types as t
from interlock.client.app import DEFAULT_TIMEOUT
from interlock.testing import Clock
from interlock.wire.revisions import NEWEST, R4
from tests.client.peers import SILENCE, ByHand, Peer, asks, complete, form, text

BOTH = pytest.mark.parametrize("revision", [R4, NEWEST])


@pytest.fixture
async def time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the running loop."""
    loop = asyncio.get_running_loop()
    clock = Clock(loop.time())
    monkeypatch.setattr(loop, "time", clock)
    return clock


def silent(revision: str = NEWEST) -> Peer:
    """A server that answers no call."""
    return Peer(
        {
            "tools/call": SILENCE,
            "tools/list": SILENCE,
            "resources/read": SILENCE,
            "completion/complete": SILENCE,
        },
        revision,
    )


# -- bounds ---------------------------------------------------------------------------------------


@BOTH
async def test_a_call_that_takes_too_long(time: Clock, revision: str):
    """It raises, and is cancelled at the server; a late answer is nobody's (`LIF-18`, `CAN-01`,
    `CAN-07`, `STD-12`).
    """
    async with silent(revision) as peer, Client(peer.channel, timeout=10) as client:
        call = asyncio.create_task(client.call_tool("x"))
        asked = await peer.until("tools/call")
        time.advance(9.9)
        await asyncio.sleep(0)
        assert not call.done()
        time.advance(0.2)
        with pytest.raises(TimedOut, match="No answer to tools/call came within 10 seconds"):
            await call
        cancelled = await peer.until("notifications/cancelled")
        assert cancelled["params"]["requestId"] == asked["id"]
        peer.say(id=asked["id"], result=text("late"))
        peer.on["tools/call"] = text("in time")
        assert (await client.call_tool("x")).text == "in time"
        assert peer.count("notifications/cancelled") == 1


BOUNDS: dict[str, tuple[Any, dict[str, Any], float | None]] = {
    # what the client was told, what the call says, and after how many seconds it ends
    "nothing": ({}, {}, DEFAULT_TIMEOUT),
    "the client's": ({"timeout": 7}, {}, 7),
    "the call's": ({"timeout": 7}, {"timeout": 3}, 3),
    "the call's, longer": ({"timeout": 7}, {"timeout": 30.5}, 30.5),
    "the call's alone": ({"timeout": None}, {"timeout": 3}, 3),
    "no bound": ({"timeout": None}, {}, None),
    "no bound for the call": ({"timeout": 7}, {"timeout": None}, None),
    "in all": ({"timeout": None, "settings": ClientSettings(max_timeout=5)}, {}, 5),
    "in all, sooner": ({"timeout": 7, "settings": ClientSettings(max_timeout=5)}, {}, 5),
    "in all, of the call": ({"timeout": 7}, {"max_timeout": 5}, 5),
    "in all, not of the call": (
        {"timeout": 7, "settings": ClientSettings(max_timeout=5)},
        {"max_timeout": None},
        7,
    ),
}


@pytest.mark.parametrize("told, options, seconds", BOUNDS.values(), ids=BOUNDS)
async def test_whose_bound_it_is(
    time: Clock, told: dict[str, Any], options: dict[str, Any], seconds: float | None
):
    """That of the call, else the client's; None for no bound (`LIF-19`)."""
    async with silent() as peer, Client(peer.channel, **told) as client:
        call = asyncio.create_task(client.call_tool("x", **options))
        asked = await peer.until("tools/call")
        time.advance((seconds or 1_000_000) - 0.5)
        await client.ping()
        assert not call.done()
        if seconds is None:
            peer.say(id=asked["id"], result=text())
            await call
            return
        time.advance(0.5)
        with pytest.raises(TimedOut, match="tools/call"):
            await call


USES: dict[str, Any] = {
    "list_tools": lambda c, **o: c.list_tools(**o),
    "read_resource": lambda c, **o: c.read_resource("x:y", **o),
    "complete": lambda c, **o: c.complete("x", "a", **o),
    "call_tool": lambda c, **o: c.call_tool("x", **o),
    "request": lambda c, **o: c.request("tools/list", t.ListToolsRequestParams(), **o),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
async def test_every_request_has_its_bound(time: Clock, use: Any):
    """(`LIF-18`, `LIF-19`)"""
    async with silent() as peer, Client(peer.channel) as client:
        call = asyncio.create_task(use(client, timeout=2))
        await peer.until_received(lambda message: message.get("id") == 2)
        time.advance(2)
        with pytest.raises(TimedOut):
            await call
        await peer.until("notifications/cancelled")


async def test_a_ping_that_is_not_answered(time: Clock):
    """(`PNG-02`)"""
    async with Peer(None, R4) as peer, Client(peer.channel) as client:
        peer.on["ping"] = SILENCE
        ping = asyncio.create_task(client.ping(timeout=1))
        await peer.until("ping")
        time.advance(1)
        with pytest.raises(TimedOut, match="No answer to ping"):
            await ping


async def test_the_bound_is_for_all_rounds(time: Clock):
    """Whoever is asked is given up too, and so is the request, once the time in all is over; until
    then a person may think.
    """
    asked = asyncio.Event()
    given_up = asyncio.Event()

    async def think(params: Any) -> None:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    async with (
        Peer({"tools/call": asks("s", a=form())}) as peer,
        Client(peer.channel, elicit=think, timeout=10) as client,
    ):
        call = asyncio.create_task(client.call_tool("x", max_timeout=100))
        await asked.wait()
        time.advance(99)
        await asyncio.wait({call}, timeout=0)
        assert not given_up.is_set()
        time.advance(1)
        with pytest.raises(TimedOut):
            await call
        assert given_up.is_set()
        assert peer.count("tools/call") == 1


async def test_a_person_may_think_for_longer_than_a_request_may_last(time: Clock):
    """The time stands still while somebody is asked, and goes on from where it was."""
    asked = asyncio.Event()
    answered = asyncio.Event()

    async def think(params: Any) -> dict[str, Any]:
        asked.set()
        await answered.wait()
        return {}

    answers = [asks("s", a=form()), SILENCE]
    async with (
        Peer({"tools/call": answers}) as peer,
        Client(peer.channel, elicit=think, timeout=10) as client,
    ):
        call = asyncio.create_task(client.call_tool("x"))
        await asked.wait()
        time.advance(1000)
        answered.set()
        await peer.until("tools/call", 2)
        assert not call.done()
        time.advance(10)
        with pytest.raises(TimedOut):
            await call


@BOTH
async def test_a_function_in_memory_is_ended_in_place(time: Clock, revision: str):
    """It runs in the caller's task, which goes on."""
    server = Server("slow")
    begun = asyncio.Event()
    ended = asyncio.Event()

    @server.tool
    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def ask(client: Client) -> int:
        with pytest.raises(TimedOut):
            await client.call_tool("wait")
        task = asyncio.current_task()
        assert task is not None
        await asyncio.sleep(0)
        return task.cancelling()

    async with Client(server, revision=revision, timeout=10) as client:
        call = asyncio.create_task(ask(client))
        await begun.wait()
        time.advance(10)
        assert await call == 0
        assert ended.is_set()


# -- progress -------------------------------------------------------------------------------------


class Working:
    """A call of a tool that says how far it has come."""

    def __init__(
        self, peer: Peer, call: asyncio.Task[t.CallToolResult], received: asyncio.Semaphore
    ) -> None:
        self.peer = peer
        self.call = call
        self._received = received
        self._done = 0

    async def progress(self) -> None:
        self._done += 1
        params = self.peer.all("tools/call")[0]["params"]
        self.peer.tell(
            "notifications/progress",
            {"progressToken": params["_meta"]["progressToken"], "progress": self._done},
        )
        await self._received.acquire()


@contextlib.asynccontextmanager
async def working(listens: bool = True, **told: Any) -> Any:
    received = asyncio.Semaphore(0)
    on_progress = (lambda params: received.release()) if listens else None
    async with silent() as peer, Client(peer.channel, **told) as client:
        call = asyncio.create_task(client.call_tool("x", on_progress=on_progress))
        await peer.until("tools/call")
        yield Working(peer, call, received)
        call.cancel()


async def test_progress_begins_the_time_anew(time: Clock):
    """Where there is a bound in all: a call that moves may take longer than `timeout`
    (`LIF-20`).
    """
    async with working(timeout=10, settings=ClientSettings(max_timeout=100)) as work:
        for _ in range(5):
            time.advance(9)
            await work.progress()
        work.peer.say(id=2, result=text("45 seconds later"))
        assert (await work.call).text == "45 seconds later"


async def test_progress_that_ends(time: Clock):
    """The time since the last sign of life counts (`LIF-20`)."""
    async with working(timeout=10, settings=ClientSettings(max_timeout=100)) as work:
        time.advance(9)
        await work.progress()
        time.advance(10)
        with pytest.raises(TimedOut, match="within 10 seconds without progress"):
            await work.call
        await work.peer.until("notifications/cancelled")


async def test_progress_that_never_ends(time: Clock):
    """There is a bound that it does not move (`LIF-21`)."""
    async with working(timeout=10, settings=ClientSettings(max_timeout=25)) as work:
        for _ in range(2):
            time.advance(9)
            await work.progress()
        time.advance(7)
        with pytest.raises(TimedOut, match="within 25 seconds in all"):
            await work.call
        await work.peer.until("notifications/cancelled")


async def test_progress_without_a_bound_in_all(time: Clock):
    """Moves nothing: who wants it to, says how long it may take at the most."""
    async with working(timeout=10) as work:
        time.advance(9)
        await work.progress()
        time.advance(1)
        with pytest.raises(TimedOut, match="within 10 seconds"):
            await work.call


async def test_progress_is_asked_for_where_it_counts():
    """Though nobody listens to it; else no token is sent."""
    for told, wanted in (
        ({}, False),
        ({"settings": ClientSettings(max_timeout=100)}, True),
        ({"timeout": None, "settings": ClientSettings(max_timeout=100)}, False),
    ):
        async with working(listens=False, **told) as work:
            assert ("progressToken" in work.peer.all("tools/call")[0]["params"]["_meta"]) == wanted


async def test_progress_in_memory(time: Clock):
    """A server's function that reports moves its own bound."""
    server = Server("worker")

    @server.tool
    async def work(ctx: Context) -> str:
        for n in range(5):
            time.advance(9)
            ctx.progress(n)
            for _ in range(4):  # turns of the loop: progress arrives, the timer is set, and runs
                await asyncio.sleep(0)
        return "45 seconds later"

    async with Client(server) as client:
        assert (
            await client.call_tool("work", timeout=10, max_timeout=100)
        ).text == "45 seconds later"
        with pytest.raises(TimedOut):
            await client.call_tool("work", timeout=10, max_timeout=40)
        with pytest.raises(TimedOut):
            await client.call_tool("work", timeout=10)


async def test_who_hears_progress():
    """The function of the call, as long as it runs; what it raises harms nobody (`on_progress`)."""
    received: list[tuple[float, float | None, str | None]] = []

    def on_progress(params: t.ProgressNotificationParams) -> None:
        received.append((params.progress, params.total, params.message))
        raise ZeroDivisionError

    async with silent() as peer, Client(peer.channel) as client:
        call = asyncio.create_task(client.call_tool("x", on_progress=on_progress))
        other = asyncio.create_task(client.call_tool("x"))
        first, second = [await peer.until("tools/call", n) for n in (1, 2)]
        assert "progressToken" not in second["params"]["_meta"]
        token = first["params"]["_meta"]["progressToken"]
        for progress in ({"progress": 1}, {"progress": 2.5, "total": 10, "message": "half"}):
            peer.tell("notifications/progress", {"progressToken": token, **progress})
        for nobody in (second["id"], "x", 10_000):
            peer.tell("notifications/progress", {"progressToken": nobody, "progress": 9})
        peer.tell("notifications/progress", {"progress": 9})
        peer.say(id=first["id"], result=text())
        peer.tell("notifications/progress", {"progressToken": token, "progress": 9})
        peer.say(id=second["id"], result=text())
        await asyncio.gather(call, other)
    assert received == [(1, None, None), (2.5, 10, "half")]


async def test_progress_over_rounds():
    """Each round has a token of its own; one function hears them all."""
    received: list[float] = []
    async with (
        Peer({"tools/call": SILENCE}) as peer,
        Client(peer.channel, elicit=lambda p: True) as client,
    ):
        call = asyncio.create_task(
            client.call_tool("x", on_progress=lambda params: received.append(params.progress))
        )
        tokens = []
        for n, result in enumerate((asks("s", a=form()), text()), 1):
            asked = await peer.until("tools/call", n)
            tokens.append(asked["params"]["_meta"]["progressToken"])
            peer.tell("notifications/progress", {"progressToken": tokens[-1], "progress": n})
            peer.say(id=asked["id"], result=result)
        await call
    assert received == [1, 2]
    assert len(set(tokens)) == 2


# -- cancellation ---------------------------------------------------------------------------------


@BOTH
async def test_cancelled_from_outside(revision: str):
    """The server is told, and the caller gets its own cancellation (`CAN-01`)."""
    async with silent(revision) as peer, Client(peer.channel) as client:
        call = asyncio.create_task(client.call_tool("x"))
        asked = await peer.until("tools/call")
        call.cancel("enough")
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await peer.until("notifications/cancelled"))["params"]["requestId"] == asked["id"]


async def test_cancelled_from_outside_and_out_of_time(time: Clock):
    """Both in the same moment: whoever cancelled is not told of a timeout."""
    async with silent() as peer, Client(peer.channel, timeout=10) as client:
        call = asyncio.create_task(client.call_tool("x"))
        await peer.until("tools/call")
        time.advance(10)
        asyncio.get_running_loop().call_soon(call.cancel)
        with pytest.raises(asyncio.CancelledError):
            await call
        assert call.cancelled()


async def test_a_bound_of_the_caller(time: Clock):
    """`asyncio.timeout` around a call is the caller's own, and is not taken for ours."""
    async with silent() as peer, Client(peer.channel, timeout=10) as client:

        async def ask() -> None:
            async with asyncio.timeout(5):
                await client.call_tool("x")

        call = asyncio.create_task(ask())
        await peer.until("tools/call")
        time.advance(5)
        with pytest.raises(TimeoutError):
            await call


async def test_a_call_in_the_end_of_a_task_that_was_cancelled(time: Clock):
    """A bound works there too: what is raised is a timeout, not the cancellation that was before
    it.
    """
    async with silent() as peer, Client(peer.channel, timeout=10) as client:

        async def tidy() -> str:
            try:
                await asyncio.Event().wait()
            finally:
                with pytest.raises(TimedOut):
                    await client.call_tool("tidy")
                tidied.append("tidy")
            return "never"

        tidied: list[str] = []
        task = asyncio.create_task(tidy())
        await asyncio.sleep(0)
        task.cancel()
        await peer.until("tools/call")
        time.advance(10)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (tidied, task.cancelling()) == (["tidy"], 1)
        await peer.until("notifications/cancelled")


async def test_a_transport_that_does_not_let_itself_be_cancelled(time: Clock):
    """What it gives in the end is the answer, and no cancellation is left behind in the task."""
    begun = asyncio.Event()
    go_on = asyncio.Event()

    async def stubborn(x: Exchange) -> AnyResult:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await go_on.wait()
        if x.params.name == "lost":
            raise Unreachable("lost")
        return t.CallToolResult(content=[])

    async def ask(name: str) -> int:
        with contextlib.suppress(Unreachable):
            await client.call_tool(name)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    async with Client(ByHand(stubborn), timeout=10) as client:
        for name in ("kept", "lost"):
            begun.clear()
            go_on.clear()
            call = asyncio.create_task(ask(name))
            await begun.wait()
            time.advance(10)
            for _ in range(3):
                await asyncio.sleep(0)
            go_on.set()
            assert await call == 0


async def test_no_timer_is_left(time: Clock):
    """A call that was answered in time is not ended later."""

    async def ask() -> None:
        await client.call_tool("x")
        time.advance(100)
        for _ in range(3):
            await asyncio.sleep(0)

    async with (
        Peer({"tools/call": text(), "tools/list": complete(tools=[])}) as peer,
        Client(peer.channel, timeout=10) as client,
    ):
        await asyncio.create_task(ask())


async def test_outside_of_a_task():
    """There is nothing to cancel there, so a bound could not be kept; it is said."""
    raised: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    def ask() -> None:
        try:
            client.call_tool("x").send(None)
        except RuntimeError as bad:
            raised.set_result(bad)

    async with Client(ByHand()) as client:
        asyncio.get_running_loop().call_soon(ask)
        assert "from an asyncio task" in str(await raised)
