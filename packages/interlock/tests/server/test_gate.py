"""The gate: who comes in, who waits, who is refused; and that no place is ever lost."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from interlock import McpError
from interlock.server.calls.concurrency_limit import Gate


class Guests:
    """People who come to a gate, and stay inside until they are let go."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.tasks: list[asyncio.Task[None]] = []
        self.doors: list[asyncio.Event] = []
        self.inside: list[int] = []
        self.entered: list[int] = []
        self.refused: list[int] = []

    def arrive(self, holder: str = "") -> int:
        """One more; returns its number."""
        number = len(self.tasks)
        self.doors.append(asyncio.Event())
        self.tasks.append(asyncio.get_running_loop().create_task(self._stay(number, holder)))
        return number

    async def _stay(self, number: int, holder: str) -> None:
        try:
            async with self.gate.slot(holder):
                self.entered.append(number)
                self.inside.append(number)
                assert len(self.inside) <= self.gate.most
                try:
                    await self.doors[number].wait()
                finally:
                    self.inside.remove(number)
        except McpError:
            self.refused.append(number)

    @property
    def waiting(self) -> list[int]:
        """Those at the door."""
        return [n for n, task in enumerate(self.tasks) if not task.done() and n not in self.inside]

    async def settle(self) -> None:
        """Let everybody do what they can do now."""
        for _ in range(3 * len(self.tasks) + 3):
            await asyncio.sleep(0)

    async def all_leave(self) -> None:
        """Until nobody is left."""
        for door in self.doors:
            door.set()
        await self.settle()


async def test_those_who_wait_come_in_in_order():
    """As many as may are in at once; the others come in as they came."""
    guests = Guests(Gate(2, 10, "The house"))
    for _ in range(6):
        guests.arrive()
    await guests.settle()
    assert (guests.inside, guests.waiting) == ([0, 1], [2, 3, 4, 5])
    guests.doors[1].set()
    await guests.settle()
    assert guests.inside == [0, 2]
    await guests.all_leave()
    assert guests.entered == [0, 1, 2, 3, 4, 5]
    assert guests.gate.inside == 0


async def test_one_too_many_is_refused_at_once():
    """The refusal names what is busy and how much, and does not wait for anybody."""
    guests = Guests(Gate(1, 1, "The tool dig"))
    guests.arrive()
    guests.arrive()
    await guests.settle()
    with pytest.raises(
        McpError, match=r"The tool dig is busy: 1 calls are running and 1 wait\. Try again later\."
    ) as caught:
        await guests.gate.acquire("")
    assert caught.value.data == {"reason": "busy"}
    await guests.all_leave()
    assert guests.entered == [0, 1]


async def test_callers_come_in_in_turn():
    """An honest caller waits for one call of a greedy one, and not for all that came before."""
    guests = Guests(Gate(1, 400, "The tool dig"))
    for _ in range(300):
        guests.arrive("greedy")
    honest = [guests.arrive("honest") for _ in range(3)]
    await guests.settle()
    for _ in range(8):
        guests.doors[guests.inside[0]].set()
        await guests.settle()
    assert guests.entered == [0, 1, honest[0], 2, honest[1], 3, honest[2], 4, 5]
    for task in guests.tasks:
        task.cancel()
    await guests.settle()
    assert guests.gate.inside == 0


async def test_a_full_queue_has_room_for_other_callers():
    """The last call of the caller with the most waiting ones is refused for it."""
    guests = Guests(Gate(1, 3, "The tool dig"))
    for _ in range(4):
        guests.arrive("greedy")
    await guests.settle()
    honest = guests.arrive("honest")
    await guests.settle()
    assert guests.refused == [3]
    assert guests.waiting == [1, 2, honest]
    await guests.all_leave()
    assert guests.entered == [0, 1, honest, 2]


async def test_without_a_queue_nobody_waits():
    """`waiting=0`: in at once or not at all."""
    guests = Guests(Gate(1, 0, "The tool dig"))
    guests.arrive()
    guests.arrive()
    await guests.settle()
    assert (guests.inside, guests.refused) == ([0], [1])
    await guests.all_leave()


async def test_a_place_is_handed_on_though_its_heir_gives_up():
    """Somebody leaves, and in the same turn of the loop the first of the queue gives up: the next
    one gets the place.
    """
    guests = Guests(Gate(1, 10, "The house"))
    for _ in range(3):
        guests.arrive()
    await guests.settle()
    guests.doors[0].set()
    guests.tasks[0].add_done_callback(
        lambda _: guests.tasks[1].cancel()
    )  # the place is 1's by now, who has not come in yet
    await guests.settle()
    assert guests.tasks[1].cancelled()
    assert guests.inside == [2]
    await guests.all_leave()


async def test_giving_up_just_before_somebody_leaves():
    """Whoever gives up stays given up, and is told nothing else than that."""
    guests = Guests(Gate(1, 10, "The house"))
    for _ in range(3):
        guests.arrive()
    await guests.settle()
    guests.doors[0].set()
    guests.tasks[1].cancel()
    await guests.settle()
    assert guests.tasks[1].cancelled()
    assert guests.inside == [2]
    await guests.all_leave()


@pytest.mark.parametrize("most, waiting", [(0, 1), (1, -1)])
def test_limits_without_sense(most: int, waiting: int):
    """A gate that lets nobody in would hold up everything for ever."""
    with pytest.raises(ValueError, match="a limit lets at least one in"):
        Gate(most, waiting, "The house")


class Gates(RuleBasedStateMachine):
    """Guests who come, leave and give up, several in one turn of the loop or one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.crowd = self.refused_before = 0

    @initialize(most=st.integers(1, 3), waiting=st.integers(0, 3))
    def build(self, most: int, waiting: int) -> None:
        self.guests = Guests(Gate(most, waiting, "The house"))
        self.gone: set[int] = set()

    def in_loop(self, act) -> None:
        async def now() -> None:
            act()

        self.loop.run_until_complete(now())

    def alive(self) -> list[int]:
        """Those who take a place, inside or at the door, unless they are about to give it up."""
        return [
            n for n, task in enumerate(self.guests.tasks) if not task.done() and n not in self.gone
        ]

    @rule(count=st.integers(1, 4))
    def come(self, count: int) -> None:
        def act() -> None:
            for _ in range(count):
                self.guests.arrive()

        self.crowd = max(self.crowd, len(self.alive()) + count)
        self.in_loop(act)

    @rule(data=st.data(), give_up=st.lists(st.booleans(), min_size=1, max_size=4))
    def go(self, data: st.DataObject, give_up: list[bool]) -> None:
        def act() -> None:
            for gives_up in give_up:
                if alive := self.alive():
                    n = data.draw(st.sampled_from(alive))
                    if gives_up:
                        self.guests.tasks[n].cancel()
                    else:
                        self.guests.doors[n].set()
                    if gives_up or n in self.guests.inside:
                        self.gone.add(n)

        self.in_loop(act)

    @rule()
    def settle(self) -> None:
        self.loop.run_until_complete(self.guests.settle())
        guests = self.guests
        gate = self.guests.gate
        assert gate.inside == len(guests.inside)
        assert len(guests.waiting) <= gate.waiting
        if guests.waiting:
            assert len(guests.inside) == gate.most  # nobody waits at a free place
        if self.crowd <= gate.most + gate.waiting:
            assert len(guests.refused) == self.refused_before  # nobody is refused without need
        self.crowd = len(self.alive())
        self.refused_before = len(guests.refused)

    @invariant()
    def order(self) -> None:
        assert self.guests.entered == sorted(self.guests.entered)

    def teardown(self) -> None:
        if hasattr(self, "guests"):
            self.loop.run_until_complete(self.guests.all_leave())
            for task in self.guests.tasks:
                assert task.done()
                assert task.cancelled() or task.exception() is None
            assert self.guests.gate.inside == 0
        self.loop.close()


TestGates = Gates.TestCase
TestGates.settings = settings(stateful_step_count=30)
