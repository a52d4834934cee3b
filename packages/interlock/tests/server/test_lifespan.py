"""What lives as long as the server does: entered once, left with the last peer, and who hears of
what goes wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Client, Context, Server
from interlock.lifespan import Lifespan
from interlock.testing import channel_pair
from tests.server.by_hand import R4
from tests.server.wire import Peer

LONG = 30.0


@dataclass
class House:
    """What a lifespan of these tests gives, and what happened to it."""

    steps: list[str]
    number: int = 0


class Book:
    """Makes lifespans, and keeps what happens to them; entering and leaving wait for their events
    where they are told to.
    """

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.made = 0
        self.may_enter = asyncio.Event()
        self.may_leave = asyncio.Event()
        self.may_enter.set()
        self.may_leave.set()
        self.entering_fails: Exception | None = None
        self.leaving_fails: Exception | None = None

    @asynccontextmanager
    async def __call__(self, server: Any = None) -> AsyncIterator[House]:
        self.made += 1
        number = self.made
        self.steps.append(f"entering {number}")
        await self.may_enter.wait()
        if self.entering_fails is not None:
            raise self.entering_fails
        self.steps.append(f"entered {number}")
        try:
            yield House(self.steps, number)
        finally:
            self.steps.append(f"leaving {number}")
            await self.may_leave.wait()
            self.steps.append(f"left {number}")
            if self.leaving_fails is not None:
                raise self.leaving_fails


async def turns(count: int = 5) -> None:
    """Let the loop go round."""
    for _ in range(count):
        await asyncio.sleep(0)


def living(book: Book) -> Server:
    server = Server("living", lifespan=book)

    @server.tool
    async def number(ctx: Context[House]) -> int:
        return ctx.lifespan_state.number

    return server


@pytest.mark.parametrize("revision", [R4, "2026-07-28"])
async def test_entered_once_for_all_and_left_with_the_last(revision: str):
    """Whoever comes while it lives shares it; whoever comes later gets a new one."""
    book = Book()
    server = living(book)
    assert server.lifespan_state is None
    async with AsyncExitStack() as clients:
        one, other = [
            await clients.enter_async_context(Client(server, revision=revision)) for _ in range(2)
        ]
        assert (await one.call_tool("number")).text == (await other.call_tool("number")).text == "1"
        assert isinstance(server.lifespan_state, House)
        await one.aclose()
        assert (await other.call_tool("number")).text == "1"
        assert book.steps == ["entering 1", "entered 1"]
    assert book.steps == ["entering 1", "entered 1", "leaving 1", "left 1"]
    assert server.lifespan_state is None
    async with Client(server, revision=revision) as later:
        assert (await later.call_tool("number")).text == "2"
    assert book.steps[-1] == "left 2"


async def test_peers_of_all_kinds_share_it():
    """One in memory, one over a channel."""
    book = Book()
    server = living(book)
    peer = await Peer.of(server)
    async with Client(server) as client:
        assert (await client.call_tool("number")).text == "1"
    assert (await peer.ask("tools/call", {"name": "number"}))["result"]["structuredContent"] == {
        "result": 1
    }
    await peer.aclose()
    assert book.steps == ["entering 1", "entered 1", "leaving 1", "left 1"]


async def test_those_who_come_while_it_is_entered_wait_for_it():
    """Two at once: one lifespan, and nobody is served before it is there."""
    book = Book()
    book.may_enter.clear()
    server = living(book)
    clients = [Client(server), Client(server)]
    opening = [asyncio.create_task(client.open()) for client in clients]
    await turns()
    assert book.steps == ["entering 1"]
    assert not any(task.done() for task in opening)
    book.may_enter.set()
    await asyncio.gather(*opening)
    assert [(await client.call_tool("number")).text for client in clients] == ["1", "1"]
    for client in clients:
        await client.aclose()
    assert book.steps[-1] == "left 1"


async def test_those_who_come_while_it_is_left_get_the_next_one():
    """The old one is left before the new one is entered, and the new one's state is not swept away
    with the old one's.
    """
    book = Book()
    server = living(book)
    one = Client(server)
    other = Client(server)
    await one.open()
    book.may_leave.clear()
    closing = asyncio.create_task(one.aclose())
    await turns()
    opening = asyncio.create_task(other.open())
    await turns()
    assert book.steps == ["entering 1", "entered 1", "leaving 1"]
    book.may_leave.set()
    await closing
    await opening
    assert (await other.call_tool("number")).text == "2"
    await other.aclose()
    assert book.steps == [
        f"{step} {n}" for n in (1, 2) for step in ("entering", "entered", "leaving", "left")
    ]


async def test_what_goes_wrong_on_entering_reaches_those_who_came():
    """All of them; and whoever tries again later may have more luck."""
    book = Book()
    book.may_enter.clear()
    book.entering_fails = ConnectionError("no database")
    server = living(book)
    opening = [asyncio.create_task(Client(server).open()) for _ in range(2)]
    await turns()
    book.may_enter.set()
    for outcome in await asyncio.gather(*opening, return_exceptions=True):
        assert outcome is book.entering_fails
    assert book.steps == ["entering 1"]
    book.entering_fails = None
    async with Client(server) as client:
        assert (await client.call_tool("number")).text == "2"


async def test_a_peer_over_a_channel_is_not_left_hanging():
    """Where the lifespan cannot be entered its channel is closed, and whoever serves it hears
    why.
    """
    book = Book()
    book.entering_fails = ConnectionError("no database")
    mine, theirs = channel_pair()
    with pytest.raises(ConnectionError, match="no database"):
        await living(book).serve(theirs)
    assert await asyncio.wait_for(mine.receive(), LONG) == []


async def test_what_goes_wrong_on_leaving_reaches_the_last_one():
    """The others have gone in peace before."""
    book = Book()
    book.leaving_fails = ConnectionError("the database has gone")
    server = living(book)
    one = Client(server)
    other = Client(server)
    await one.open()
    await other.open()
    await one.aclose()
    with pytest.raises(ConnectionError, match="the database has gone"):
        await other.aclose()
    book.leaving_fails = None
    async with Client(server) as client:
        assert (await client.call_tool("number")).text == "2"


async def test_whoever_gives_up_while_it_is_entered_does_not_spoil_it():
    """One of two gives up waiting: the other gets what both waited for."""
    book = Book()
    book.may_enter.clear()
    server = living(book)
    impatient = Client(server)
    patient = Client(server)
    giving_up = asyncio.create_task(impatient.open())
    opening = asyncio.create_task(patient.open())
    await turns()
    giving_up.cancel()
    await turns()
    book.may_enter.set()
    await opening
    assert giving_up.cancelled()
    assert (await patient.call_tool("number")).text == "1"
    await patient.aclose()
    assert book.steps == ["entering 1", "entered 1", "leaving 1", "left 1"]


async def test_the_only_one_gives_up_while_it_is_entered():
    """What was entered is left again."""
    book = Book()
    book.may_enter.clear()
    lifespan = Lifespan(book)
    entering = asyncio.create_task(lifespan.enter())
    await turns()
    entering.cancel()
    book.may_enter.set()
    await asyncio.gather(entering, return_exceptions=True)
    assert (lifespan.users, lifespan.state) == (0, None)
    assert book.steps == ["entering 1", "entered 1", "leaving 1", "left 1"]


async def test_it_is_entered_and_left_in_one_task():
    """As context managers with a task group or a timeout in them want it, whoever comes and
    goes.
    """
    tasks: list[Any] = []

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        tasks.append(asyncio.current_task())
        async with asyncio.TaskGroup() as group, asyncio.timeout(LONG):
            ticking = group.create_task(asyncio.Event().wait())
            yield
            ticking.cancel()
        tasks.append(asyncio.current_task())

    server = Server("living", lifespan=lifespan)
    one = Client(server)
    other = Client(server)
    await asyncio.create_task(one.open())
    await asyncio.create_task(other.open())
    await asyncio.create_task(one.aclose())
    await asyncio.create_task(other.aclose())
    assert len(set(tasks)) == 1
    assert len(tasks) == 2


async def test_without_a_lifespan_there_is_no_state():
    """Users are counted all the same."""
    lifespan = Lifespan(None)
    await lifespan.enter()
    assert (lifespan.users, lifespan.state) == (1, None)
    await lifespan.leave()
    assert lifespan.users == 0


async def test_features_are_there_with_the_lifespan():
    """It gets the server, and may add to it before the first peer is served."""

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[dict[str, str]]:
        server.add_resource("docs://a", "text", replace=True)
        yield {"greeting": "Hello"}

    server = Server("living", lifespan=lifespan)

    @server.prompt
    async def greet(ctx: Context[dict[str, str]]) -> str:
        return ctx.lifespan_state["greeting"]

    async with Client(server) as client:
        assert [resource.uri for resource in await client.list_resources()] == ["docs://a"]
        (message,) = (await client.get_prompt("greet")).messages
        assert getattr(message.content, "text", None) == "Hello"


moves = st.lists(
    st.tuples(st.sampled_from(["come", "go", "give up", "turn"]), st.integers(0, 5)), max_size=25
)


@given(moves, st.booleans(), st.booleans())
def test_one_at_a_time_however_they_come_and_go(
    plan: list[tuple[str, int]], slow_in: bool, slow_out: bool
):
    """Entered before left, never two at once, never left while somebody is there, and nothing
    remains at the end.
    """

    async def main() -> None:
        book = Book()
        lifespan = Lifespan(book)
        tasks: list[tuple[asyncio.Task[Any], asyncio.Event]] = []
        there = 0

        async def visit(go: asyncio.Event) -> None:
            nonlocal there
            await lifespan.enter()
            there += 1
            try:
                assert isinstance(lifespan.state, House)
                await go.wait()
                assert isinstance(lifespan.state, House)
                assert book.steps[-1].startswith("entered")
            finally:
                there -= 1
                await lifespan.leave()

        def act(move: str, n: int) -> None:
            if move == "come":
                go = asyncio.Event()
                tasks.append((asyncio.create_task(visit(go)), go))
            elif move == "go" and tasks:
                tasks[n % len(tasks)][1].set()
            elif move == "give up" and tasks and not tasks[n % len(tasks)][1].is_set():
                tasks[n % len(tasks)][0].cancel()

        for move, n in plan:
            (book.may_enter.clear if slow_in and n == 0 else book.may_enter.set)()
            (book.may_leave.clear if slow_out and n == 1 else book.may_leave.set)()
            act(move, n)
            if move == "turn":
                await turns(n)
        book.may_enter.set()
        book.may_leave.set()
        for _, go in tasks:
            go.set()
        outcomes = await asyncio.wait_for(
            asyncio.gather(*(task for task, _ in tasks), return_exceptions=True), LONG
        )
        assert all(
            outcome is None or isinstance(outcome, asyncio.CancelledError) for outcome in outcomes
        ), outcomes
        assert (lifespan.users, there, lifespan.state) == (0, 0, None)
        whole = [
            f"{step} {n + 1}"
            for n in range(book.made)
            for step in ("entering", "entered", "leaving", "left")
        ]
        assert book.steps == whole

    asyncio.run(main())


async def test_a_peer_that_is_cancelled_while_it_leaves() -> None:
    """The lifespan is left to its end all the same: what it holds is not lost halfway."""
    book = Book()
    book.may_leave.clear()
    server = Server("cancelled", lifespan=book)
    await server.enter()
    leaving = asyncio.ensure_future(server.leave())
    while "leaving 1" not in book.steps:  # noqa: ASYNC110 - the book has no event for it
        await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.sleep(0)
    assert not leaving.done()
    book.may_leave.set()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert book.steps[-1] == "left 1"


async def test_a_peer_that_is_cancelled_before_it_leaves_the_lifespan() -> None:
    """Suspended calls are ended first; a cancellation there does not keep the lifespan open."""
    book = Book()
    server = Server("cancelled", lifespan=book)
    await server.enter()
    leaving = asyncio.ensure_future(server.leave())
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert book.steps[-1] == "left 1"
