"""The order in which the requests of several holders start: holders in turn, whoever sends more."""

from __future__ import annotations

import asyncio
import random
import socket
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from interlock.eager import start_eagerly
from interlock.transport.http.server.pacing import PacedCoroutine
from interlock.transport.http.server.parser import RequestParser
from interlock.transport.http.server.scheduler import MOST_DIRECT, RequestScheduler

from .echo_server import PATIENCE, request, running

HONEST, GREEDY = "127.0.0.2", "127.0.0.3"


class Turns:
    """The turns of an event loop, and the order in which requests start."""

    def __init__(self, requests_in_a_turn: int = 1) -> None:
        self._next: list[Callable[[], object]] = []
        self._ticks = 0
        self._every = requests_in_a_turn
        self.order: list[str] = []
        self.scheduler: RequestScheduler[Queued] = RequestScheduler(self._next.append, self._clock)

    def _clock(self) -> float:
        """A clock that lets this many requests pass in each turn."""
        self._ticks += 1
        return self._ticks / self._every * 0.000_101

    def turn(self) -> None:
        """Run one turn."""
        waiting = list(self._next)
        self._next.clear()
        for each in waiting:
            each()

    def finish(self) -> None:
        """Run until nothing waits."""
        while self._next:
            self.turn()
        assert self.scheduler.waiting == 0


class Queued:
    """A connection with requests that are ready."""

    def __init__(self, turns: Turns, holder: str, requests: int) -> None:
        self._turns = turns
        self._holder = holder
        self._requests = requests

    def come(self) -> None:
        """Its requests are ready."""
        if self._turns.scheduler.may_start(self):
            self.start_next()
        else:
            self._turns.scheduler.queue(self, self._holder)

    def start_next(self) -> None:
        """Start one, and queue for the next."""
        self._turns.order.append(self._holder)
        self._requests -= 1
        if self._requests:
            self._turns.scheduler.queue(self, self._holder)


def test_few_requests_start_at_once():
    """Without a queue; a connection that is back shows that the loop has turned."""
    turns = Turns()
    connections = [Queued(turns, f"h{n}", 1000) for n in range(MOST_DIRECT + 1)]
    scheduler = turns.scheduler
    assert all(scheduler.may_start(connections[0]) for _ in range(100))
    for each in connections[1:MOST_DIRECT]:
        assert scheduler.may_start(each)
    assert not scheduler.may_start(connections[-1])
    assert scheduler.may_start(connections[0])
    for each in connections[:MOST_DIRECT]:
        scheduler.forget(each)
    scheduler.queue(connections[-1], "h")
    assert not scheduler.may_start(connections[0])


@pytest.mark.parametrize("requests_in_a_turn", [1, 3, 1000])
def test_a_holder_waits_for_one_request_of_each_other_holder(requests_in_a_turn: int):
    """Nobody's second request starts before everybody's first."""
    turns = Turns(requests_in_a_turn)
    for n in range(100):
        Queued(turns, f"greedy{n % 3}", 5).come()
    Queued(turns, "honest", 1).come()
    turns.finish()
    assert turns.order.index("honest") <= MOST_DIRECT + 3
    assert Counter(turns.order) == {
        "greedy0": 170,
        "greedy1": 165,
        "greedy2": 165,
        "honest": 1,
    }


def test_who_sends_seldom_is_next():
    """A holder without requests waits for the one that runs, not for one more."""
    turns = Turns()
    for _ in range(50):
        Queued(turns, "greedy", 10).come()
    for _ in range(20):
        turns.turn()
        before = len(turns.order)
        Queued(turns, "honest", 1).come()
        turns.turn()
        assert turns.order[before] == "honest"
        turns.turn()
        assert turns.order[-1] == "greedy"
    turns.finish()


@pytest.mark.parametrize("seed", range(5))
def test_every_request_starts_and_nobody_is_overtaken_twice(seed: int):
    """Whoever comes when: between two requests of a holder that waits, each other one starts at
    most two (the rest of one round, and the next one).
    """
    rng = random.Random(seed)
    turns = Turns(rng.choice([1, 2, 5]))
    sent: Counter[str] = Counter()
    waits: dict[str, int] = {}
    for _ in range(300):
        for _ in range(rng.randrange(4)):
            holder = rng.choice("aaaaabbcdefgh")
            requests = rng.choice([1, 1, 2, 7])
            waits.setdefault(holder, len(turns.order))
            sent[holder] += requests
            Queued(turns, holder, requests).come()
        turns.turn()
        for holder, since in list(waits.items()):
            started = turns.order[since:]
            if holder in started:
                del waits[holder]
            else:
                assert max(Counter(started).values(), default=0) <= 2
    turns.finish()
    assert Counter(turns.order) == sent


def test_a_failure_does_not_stop_the_others():
    """The scheduler goes on with the next turn."""
    turns = Turns()

    class Broken(Queued):
        def start_next(self) -> None:
            raise KeyboardInterrupt

    turns.scheduler.queue(Broken(turns, "broken", 1), "broken")
    Queued(turns, "honest", 1).come()
    with pytest.raises(KeyboardInterrupt):
        turns.turn()
    turns.finish()
    assert turns.order == ["honest"]


def test_requests_that_have_waited_continue_in_turn():
    """Some at once, the others by holder. Those that are cancelled meanwhile end at once."""
    order: list[str] = []

    async def wait(event: asyncio.Event, name: str) -> None:
        try:
            await event.wait()
        except asyncio.CancelledError:
            name = f"cancelled {name}"
        order.append(name)

    def holder_of(name: str) -> str:
        return name.partition(" ")[0]

    async def main() -> None:
        loop = asyncio.get_running_loop()
        scheduler: RequestScheduler[PacedCoroutine[None]] = RequestScheduler(loop.call_soon)
        event = asyncio.Event()
        names = [*(f"greedy {n}" for n in range(300)), "honest"]
        tasks = [
            start_eagerly(
                PacedCoroutine(wait(event, name), scheduler, partial(holder_of, name), loop), loop
            )
            for name in names
        ]
        event.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # those of the first turn have continued, and the others wait
        assert scheduler.waiting
        tasks[200].cancel()
        await asyncio.gather(*tasks)
        assert scheduler.waiting == 0
        assert sorted(order) == sorted({*names, "cancelled greedy 200"} - {"greedy 200"})

    asyncio.run(main())
    assert order.index("honest") <= 2 * MOST_DIRECT + 2


async def test_a_request_that_waits_for_its_turn_can_be_cancelled():
    """It never continues, also not when its turn comes. A failure of a request stays its own."""
    loop = asyncio.get_running_loop()
    turns: list[Callable[[], object]] = []
    scheduler: RequestScheduler[PacedCoroutine[str]] = RequestScheduler(turns.append)
    event = asyncio.Event()

    async def wait(name: str) -> str:
        await event.wait()
        if name == "broken":
            raise ValueError(name)
        return name

    tasks = {
        name: loop.create_task(PacedCoroutine(wait(name), scheduler, lambda: "holder", loop))
        for name in ("first", "second", "cancelled", "broken", "last")
    }
    await asyncio.sleep(0)
    event.set()
    while scheduler.waiting < 3:  # noqa: ASYNC110 - each turn of the loop is one step
        await asyncio.sleep(0)
    tasks["cancelled"].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks["cancelled"]
    while turns:
        loop.call_soon(turns.pop(0))
        await asyncio.sleep(0)
    ended = await asyncio.gather(*tasks.values(), return_exceptions=True)
    assert [str(each) for each in ended] == ["first", "second", "", "broken", "last"]


# -- over sockets ----------------------------------------------------------------------------------


class Recorder:
    """An ASGI app that notes the order of the requests, and answers at once, or when `gate` is set.

    `arrived` counts the requests.
    """

    def __init__(self, gate: asyncio.Event | None = None) -> None:
        self.order: list[str] = []
        self.arrived = asyncio.Semaphore(0)
        self._gate = gate
        self.on_request: Callable[[str], object] = str

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer."""
        self.arrived.release()
        if self._gate is not None:
            await self._gate.wait()
        self.order.append(scope["client"][0])
        self.on_request(scope["client"][0])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def connect(port: int, address: str) -> socket.socket:
    """A connection from an address of this machine."""
    made = socket.create_connection(("127.0.0.1", port), source_address=(address, 0))
    made.setblocking(False)
    return made


async def answers(ends: list[socket.socket], each: int) -> None:
    """Wait until every connection has this many responses."""
    loop = asyncio.get_running_loop()

    async def read(end: socket.socket) -> None:
        data = b""
        while data.count(b"\r\n\r\n") < each:
            piece = await loop.sock_recv(end, 65536)
            assert piece
            data += piece

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*map(read, ends))


@pytest.mark.parametrize("connections, pipelined", [(300, 1), (30, 100)])
async def test_an_honest_client_beside_greedy_connections(
    connections: int, pipelined: int, monkeypatch: pytest.MonkeyPatch
):
    """All requests are in the kernel before the server reads any; the honest one comes last. Until
    it starts, only a few connections of others are parsed.
    """
    app = Recorder()
    parsed = 0
    parsed_before: list[int] = []
    feed = RequestParser.feed

    def counted(self: RequestParser, data: bytes) -> None:
        nonlocal parsed
        parsed += 1
        feed(self, data)

    monkeypatch.setattr(RequestParser, "feed", counted)
    app.on_request = lambda address: parsed_before.append(parsed) if address == HONEST else None
    async with running(app) as place:
        port = place.address[1]
        greedy = [connect(port, GREEDY) for _ in range(connections)]
        honest = connect(port, HONEST)
        everyone = [*greedy, honest]
        for each in everyone:  # every connection is accepted
            each.send(request())
        await answers(everyone, 1)
        app.order.clear()
        parsed_before.clear()
        parsed = 0
        for each in greedy:
            assert each.send(request() * pipelined)
        honest.send(request())
        await answers(everyone[:-1], pipelined)
        await answers([honest], 1)
        for each in everyone:
            each.close()
    assert len(app.order) == connections * pipelined + 1
    # Those that start directly, one of the round, and those that start while the loop reads.
    assert app.order.index(HONEST) <= 2 * MOST_DIRECT + 2
    assert parsed_before[0] <= 2 * MOST_DIRECT + 3


async def test_an_honest_client_whose_request_ends_with_many_greedy_ones():
    """What all of them wait for is ready in one turn of the event loop, the honest one last."""
    gate = asyncio.Event()
    gate.set()
    app = Recorder(gate)
    async with running(app) as place:
        port = place.address[1]
        ends = [connect(port, GREEDY) for _ in range(100)]
        honest = connect(port, HONEST)
        for each in (*ends, honest):  # every connection is accepted
            each.send(request())
        await answers([*ends, honest], 1)
        gate.clear()
        app.order.clear()
        app.arrived = asyncio.Semaphore(0)
        for number, each in enumerate((*ends, honest)):
            if each is honest:
                for _ in range(number):
                    await app.arrived.acquire()
            each.send(request())
        await app.arrived.acquire()
        gate.set()
        await answers([*ends, honest], 1)
        honest.close()
        for each in ends:
            each.close()
    assert app.order.index(HONEST) <= 2 * MOST_DIRECT + 2


async def test_clients_behind_a_proxy_are_holders_of_their_own():
    """The forwarded address counts, not the connection."""
    app = Recorder()
    async with running(app, proxies=["127.0.0.1"]) as place:
        port = place.address[1]
        ends = [connect(port, "127.0.0.1") for _ in range(20)]
        for each in ends:
            each.send(request())
        await answers(ends, 1)
        app.order.clear()
        for each in ends[:-1]:
            each.send(request("/", "X-Forwarded-For: 203.0.113.66"))
        ends[-1].send(request("/", "X-Forwarded-For: 203.0.113.7"))
        await answers(ends, 1)
        for each in ends:
            each.close()
    assert app.order.index("203.0.113.7") <= 2 * MOST_DIRECT + 2
