"""Client middleware around notifications of the server that belong to no request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from interlock import Client, Exchange, Extension, Handler, Middleware, Unreachable
from interlock import types as t
from interlock.exchange import AnyResult
from interlock.wire.revisions import NEWEST, R4
from tests.client.peers import SECONDS, Peer, eventually, text

TOOLS_CHANGED = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"
LOG = "notifications/message"
Around = Callable[[Handler, Exchange], Awaitable[AnyResult]]


def wrapping(around: Around) -> Middleware:
    """Middleware of one async function."""

    def layer(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            return await around(handler, x)

        return handle

    return layer


class Received:
    """What reaches the functions of a client, in order."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def log(self, params: t.LoggingMessageNotificationParams) -> None:
        self.all.append(params.data)

    def notification(self, method: str, params: Any) -> None:
        self.all.append(getattr(params, "uri", method))

    def progress(self, params: t.ProgressNotificationParams) -> None:
        self.all.append(params.progress)

    def client(self, peer: Peer, *around: Around, **options: Any) -> Client:
        """A client of a peer, with middleware."""
        return Client(
            peer.channel,
            revision=peer.revision,
            middleware=[wrapping(one) for one in around],
            on_log=self.log,
            on_notification=self.notification,
            **options,
        )


def say(peer: Peer, words: str) -> None:
    """Let a peer send a log message."""
    peer.tell(LOG, {"level": "info", "data": words})


async def waits(handler: Handler, x: Exchange) -> AnyResult:
    """Let others run for a while before a notification goes on."""
    if x.received is not None:
        for _ in range(20):
            await asyncio.sleep(0)
    return await handler(x)


async def passes(handler: Handler, x: Exchange) -> AnyResult:
    """Hand everything on."""
    return await handler(x)


async def test_a_notification_is_an_exchange_of_the_peer_for_every_layer():
    """Outermost first; `received` tells it from what the client sends (`SDX-16`, `SDX-17`)."""
    seen: list[Any] = []

    def noting(name: str) -> Around:
        async def around(handler: Handler, x: Exchange) -> AnyResult:
            if x.received is None:
                return await handler(x)
            seen.append((name, "before", x.method, x.caller.revision))
            result = await handler(x)
            seen.append((name, "after", x.method, type(result)))
            return result

        return around

    received = Received()
    async with (
        asyncio.timeout(SECONDS),
        Peer(revision=R4) as peer,
        received.client(peer, noting("outer"), noting("inner")) as client,
    ):
        peer.tell(TOOLS_CHANGED)
        await client.ping()
    assert received.all == [TOOLS_CHANGED]
    assert seen == [
        ("outer", "before", TOOLS_CHANGED, R4),
        ("inner", "before", TOOLS_CHANGED, R4),
        ("inner", "after", TOOLS_CHANGED, t.EmptyResult),
        ("outer", "after", TOOLS_CHANGED, t.EmptyResult),
    ]


async def test_a_layer_has_one_state_for_both_directions():
    """It is made once for a client (`SDX-16`)."""
    made: list[list[str]] = []

    def layer(handler: Handler) -> Handler:
        methods: list[str] = []
        made.append(methods)

        async def handle(x: Exchange) -> AnyResult:
            methods.append(x.method)
            return await handler(x)

        return handle

    async with (
        asyncio.timeout(SECONDS),
        Peer(revision=R4) as peer,
        Client(peer.channel, revision=R4, middleware=[layer]) as client,
    ):
        peer.tell(TOOLS_CHANGED)
        await client.ping()
    assert made == [["ping", TOOLS_CHANGED]]


@pytest.mark.parametrize("around", [passes, waits])
async def test_messages_keep_their_order(around: Around):
    """Logs, progress, list changes, then the answer, also where middleware waits (`SDX-23`)."""
    received = Received()

    def act(message: dict[str, Any]) -> Any:
        token = message["params"]["_meta"]["progressToken"]
        say(peer, "a")
        peer.tell("notifications/progress", {"progressToken": token, "progress": 1})
        say(peer, "b")
        peer.tell(UPDATED, {"uri": "x://y"})
        peer.tell("notifications/progress", {"progressToken": token, "progress": 2})
        say(peer, "c")
        return text("done")

    async with (
        asyncio.timeout(SECONDS),
        Peer({"tools/call": act}, revision=R4) as peer,
        received.client(peer, around) as client,
    ):
        await client.call_tool("act", on_progress=received.progress)
        assert received.all == ["a", 1, "b", "x://y", 2, "c"]


async def test_an_error_does_not_overtake_a_notification():
    """As little as a result does (`SDX-23`)."""
    received = Received()

    def act(message: dict[str, Any]) -> Any:
        say(peer, "a")
        return t.McpError(-42, "No.")

    async with (
        asyncio.timeout(SECONDS),
        Peer({"tools/call": act}, revision=R4) as peer,
        received.client(peer, waits) as client,
    ):
        with pytest.raises(t.McpError, match="No"):
            await client.call_tool("act")
        assert received.all == ["a"]


@pytest.mark.parametrize("around", [passes, waits])
async def test_the_end_of_the_server_does_not_overtake_a_change(around: Around):
    """Who watches hears of the change first, then that the server has gone (`SDX-23`)."""
    received = Received()
    async with (
        asyncio.timeout(SECONDS),
        Peer(revision=R4) as peer,
        received.client(peer, around) as client,
        client.watch(tools=True) as watch,
    ):
        peer.tell(TOOLS_CHANGED)
        await peer.own.aclose()
        assert (await anext(watch)).kind == "tools"
        with pytest.raises(Unreachable):
            await anext(watch)


async def test_middleware_that_never_waits_adds_no_task_to_a_notification():
    """The function is called in the turn of the loop in which the notification came."""
    tasks: list[set[asyncio.Task[Any]]] = []

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        return await handler(x)

    async with asyncio.timeout(SECONDS), Peer(revision=R4) as peer:
        client = Client(
            peer.channel,
            revision=R4,
            middleware=[wrapping(around)],
            on_notification=lambda method, params: tasks.append(asyncio.all_tasks()),
        )
        async with client:
            before = asyncio.all_tasks()
            peer.tell(TOOLS_CHANGED)
            peer.tell(TOOLS_CHANGED)
            await eventually(lambda: len(tasks) == 2)
    assert not [task for now in tasks for task in now - before if "Callbacks" in repr(task)]


@pytest.mark.parametrize("before", [passes, waits])
async def test_it_suppresses_and_changes_what_it_gets(before: Around):
    """One is left out, others get new params, and the call goes on (`SDX-18`, `SDX-21`)."""
    received = Received()

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        if x.method == TOOLS_CHANGED:
            return t.EmptyResult()
        if x.method == LOG:
            params = msgspec.structs.replace(x.params, data=x.params.data.upper())
            return await handler(msgspec.structs.replace(x, params=params))
        return await handler(x)

    def act(message: dict[str, Any]) -> Any:
        say(peer, "a")
        peer.tell(TOOLS_CHANGED)
        say(peer, "b")
        return text("done")

    subscriptions = {"resources/subscribe": {}, "resources/unsubscribe": {}}
    async with (
        asyncio.timeout(SECONDS),
        Peer({"tools/call": act, **subscriptions}, revision=R4) as peer,
        received.client(peer, before, around) as client,
        client.watch(tools=True, resources=["x://y"]) as watch,
    ):
        assert (await client.call_tool("act")).text == "done"
        assert received.all == ["A", "B"]
        peer.tell(UPDATED, {"uri": "x://y"})
        assert (await anext(watch)).kind == "resource"


async def test_a_notification_that_it_fails_on_is_dropped_and_the_next_is_heard(
    caplog: pytest.LogCaptureFixture,
):
    """What it raises is logged, also where it cancels itself (`SDX-23`)."""
    received = Received()

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        if x.method == LOG and x.params.data == "fail":
            raise ValueError("no")
        if x.method == LOG and x.params.data == "cancel":
            raise asyncio.CancelledError
        return await handler(x)

    with caplog.at_level(logging.WARNING, "interlock.client"):
        async with (
            asyncio.timeout(SECONDS),
            Peer(revision=R4) as peer,
            received.client(peer, around) as client,
        ):
            for words in ("fail", "cancel", "good"):
                say(peer, words)
            await client.ping()
    assert received.all == ["good"]
    assert f"client middleware failed on {LOG}" in caplog.text
    assert f"client middleware cancelled itself on {LOG}" in caplog.text


async def test_it_may_use_the_client_meanwhile():
    """Its requests do not wait for the notification that they are made for."""
    received = Received()
    found: list[str] = []

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        if x.method == TOOLS_CHANGED:
            found.extend(tool.name for tool in await client.list_tools())
        return await handler(x)

    tools = {"tools": [{"name": "new", "inputSchema": {"type": "object"}}]}
    async with (
        asyncio.timeout(SECONDS),
        Peer({"tools/list": tools}, revision=R4) as peer,
        received.client(peer, around) as client,
    ):
        peer.tell(TOOLS_CHANGED)
        await client.ping()
        assert (found, received.all) == (["new"], [TOOLS_CHANGED])


async def test_it_may_hold_a_lock_around_everything():
    """The answer reaches the request that holds the lock, though a notification waits for it."""
    received = Received()
    lock = asyncio.Lock()

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        async with lock:
            return await handler(x)

    def act(message: dict[str, Any]) -> Any:
        say(peer, "a")
        return text("done")

    async with (
        asyncio.timeout(SECONDS),
        Peer({"tools/call": act}, revision=R4) as peer,
        received.client(peer, around) as client,
    ):
        await client.call_tool("act")
        assert received.all == ["a"]


async def test_it_may_watch_meanwhile():
    """The acknowledgement of a subscription does not wait for the middleware of a notification."""
    received = Received()
    granted: list[Any] = []

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        if x.method == LOG:
            async with client.watch(tools=True) as watch:
                granted.append(watch.honoured.tools_list_changed)
        return await handler(x)

    async with (
        asyncio.timeout(SECONDS),
        Peer() as peer,
        received.client(peer, around, log_level="info") as client,
    ):
        peer.on["subscriptions/listen"] = peer.acknowledge
        say(peer, "a")
        await eventually(lambda: received.all == ["a"])
    assert granted == [True]


async def test_what_comes_on_a_subscription_keeps_its_place():
    """A change of a subscription does not overtake the log message before it (`SDX-23`)."""
    received = Received()
    order: list[str] = []
    goes_on = asyncio.Event()

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        if x.method == LOG:
            await goes_on.wait()
            order.append("log")
        return await handler(x)

    async with (
        asyncio.timeout(SECONDS),
        Peer() as peer,
        received.client(peer, around, log_level="info") as client,
    ):
        peer.on["subscriptions/listen"] = peer.acknowledge
        async with client.watch(tools=True) as watch:
            (listen,) = peer.all("subscriptions/listen")
            say(peer, "a")
            peer.tell(TOOLS_CHANGED, subscription=listen["id"])
            change = asyncio.ensure_future(anext(watch))
            for _ in range(50):
                await asyncio.sleep(0)
            assert not change.done()
            goes_on.set()
            await change
            assert (order, received.all) == (["log"], ["a"])


async def test_a_call_that_is_cancelled_hears_no_more_progress():
    """Progress that waits behind a notification does not reach the function of a call that is
    over.
    """
    received = Received()
    goes_on = asyncio.Event()
    reached = asyncio.Event()

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        if x.method == LOG:
            reached.set()
            await goes_on.wait()
        return await handler(x)

    def act(message: dict[str, Any]) -> Any:
        token = message["params"]["_meta"]["progressToken"]
        say(peer, "a")
        peer.tell("notifications/progress", {"progressToken": token, "progress": 1})
        return text("done")

    async with (
        asyncio.timeout(SECONDS),
        Peer({"tools/call": act}, revision=R4) as peer,
        received.client(peer, around) as client,
    ):
        call = asyncio.create_task(client.call_tool("act", on_progress=received.progress))
        await reached.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        goes_on.set()
        await client.ping()
        assert received.all == ["a"]


async def test_closing_the_client_ends_what_waits(monkeypatch: pytest.MonkeyPatch):
    """It ends by its `finally`, and no task is left (`SDX-24`)."""
    monkeypatch.setattr("interlock.client.callbacks._CLOSING_SECONDS", 0.05)
    ended: list[str] = []
    reached = asyncio.Event()

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        if x.received is None:
            return await handler(x)
        try:
            reached.set()
            await asyncio.Event().wait()
            return await handler(x)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    received = Received()
    async with asyncio.timeout(SECONDS), Peer(revision=R4) as peer:
        before = asyncio.all_tasks()
        async with received.client(peer, around):
            say(peer, "a")
            await reached.wait()
        assert ended == ["cancelled"]
        assert not asyncio.all_tasks() - before
    assert received.all == []


async def test_it_may_close_the_client():
    """Without waiting for itself."""
    received = Received()
    closed = asyncio.Event()

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        if x.method == TOOLS_CHANGED:
            await client.aclose()
            closed.set()
        return await handler(x)

    async with (
        asyncio.timeout(SECONDS),
        Peer(revision=R4) as peer,
        received.client(peer, around) as client,
    ):
        peer.tell(TOOLS_CHANGED)
        await closed.wait()
        await eventually(lambda: received.all == [TOOLS_CHANGED])
        assert not client.connected


async def test_what_comes_before_the_client_is_open_waits_for_the_revision():
    """A log message before the answer to `initialize` passes under the revision agreed on."""
    received = Received()
    revisions: list[str] = []

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        if x.method == LOG:
            revisions.append(x.caller.revision)
        return await handler(x)

    async with asyncio.timeout(SECONDS), Peer(revision=R4) as peer:
        said = peer.on["initialize"]

        def initialize(message: dict[str, Any]) -> Any:
            say(peer, "early")
            return said

        peer.on["initialize"] = initialize
        client = Client(peer.channel, middleware=[wrapping(around)], on_log=received.log)
        async with client:
            await client.ping()
        assert (received.all, revisions) == (["early"], [R4])


async def test_what_a_server_says_that_refuses_to_open_is_heard():
    """Its log is how one learns why."""
    received = Received()

    def initialize(message: dict[str, Any]) -> Any:
        say(peer, "the disk is full")
        return t.McpError(-32603, "No.")

    async with (
        asyncio.timeout(SECONDS),
        Peer({"initialize": initialize}, revision=R4) as peer,
    ):
        with pytest.raises(t.InterlockError):
            await received.client(peer, passes).open()
    assert received.all == ["the disk is full"]


class Moved(t.Params, frozen=True, kw_only=True):
    place: str


@pytest.mark.parametrize("revision", [R4, NEWEST])
async def test_a_notification_of_an_extension_passes_once(revision: str):
    """Its handler gets what the middleware passed on (`SDX-13`, `SDX-16`, `SDX-21`)."""
    seen: list[str] = []
    places: list[str] = []

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        if x.received is None:
            return await handler(x)
        seen.append(x.params.place)
        if x.params.place == "secret":
            return t.EmptyResult()
        params = Moved(place=x.params.place.upper())
        return await handler(msgspec.structs.replace(x, params=params))

    moves = Extension(
        "com.example/moves",
        notifications={"moves/moved": Moved},
        middleware=[wrapping(around)],
    ).with_handlers(notifications={"moves/moved": lambda x: places.append(x.params.place)})

    def act(message: dict[str, Any]) -> Any:
        peer.tell("moves/moved", {"place": "hall"})
        peer.tell("moves/moved", {"place": "secret"})
        peer.tell("moves/moved", {"place": "garden"})
        return text("done")

    capabilities = {"tools": {}, "extensions": {"com.example/moves": {}}}
    async with (
        asyncio.timeout(SECONDS),
        Peer({"tools/call": act}, revision=revision, capabilities=capabilities) as peer,
        Client(peer.channel, revision=revision, extensions=[moves]) as client,
    ):
        await client.call_tool("act")
        assert seen == ["hall", "secret", "garden"]
        assert places == ["HALL", "GARDEN"]
