"""Quotas and fair queueing: the arithmetic of shares, and the order in which slots are given."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.quotas import FairQueue, Quota, holder_of

PATIENCE = 10.0


@pytest.mark.parametrize(
    "principal, address, holder",
    [
        ("alice", "192.0.2.1", "alice"),
        (None, "192.0.2.1", "address:192.0.2.1"),
        (None, "::ffff:192.0.2.1", "address:192.0.2.1"),
        (None, "2001:db8:1:2:3::4", "address:2001:db8:1:2::/64"),
        (None, None, "address:"),
        (None, "x" * 1000, "address:" + "x" * 100),
    ],
)
def test_a_caller_counts_as_its_principal_or_its_network(principal, address, holder):
    assert holder_of(principal, address) == holder


@pytest.mark.parametrize(
    "limit, share, alone",
    [
        (1, 0.9, 1),
        (2, 0.9, 2),
        (9, 0.9, 9),
        (10, 0.9, 9),
        (1000, 0.9, 900),
        (10, 0.5, 5),
        (10, 1, 10),
    ],
)
def test_one_holder_alone_may_have_nearly_everything(limit: int, share: float, alone: int):
    """How much a single holder gets, in steps of one."""
    quota = Quota(limit, share)
    got = 0
    while quota.acquire("a"):
        got += 1
    assert got == alone


def test_there_is_room_for_newcomers():
    """Where one holder has taken all that it may, each of five others still gets something."""
    quota = Quota(100_000)
    while quota.acquire("greedy"):
        pass
    for name in ("b", "c", "d", "e"):
        assert quota.acquire(name)
        while quota.acquire(name):
            pass


def test_idle_things_of_larger_holders_make_room():
    """Room is made by those who have more than the newcomer would have, the largest first, and by
    nobody else.
    """
    quota = Quota(10, share=1)
    evicted: list[str] = []

    def evict(holder: str) -> bool:
        evicted.append(holder)
        quota.release(holder)
        return True

    quota.on_pressure(evict)
    quota.take("a", 6)
    quota.take("b", 4)
    assert quota.acquire("c", 2)
    assert evicted == ["a", "a"]
    assert not quota.acquire("a")
    assert not quota.acquire("b")
    assert quota.usage().evicted == 2
    assert quota.usage().refused == 2
    assert quota.acquire("c")
    assert (quota.held("a"), quota.held("b"), quota.held("c")) in {(3, 4, 3), (4, 3, 3)}


def test_nothing_is_released_that_is_not_held():
    quota = Quota(2)
    quota.take("a")
    with pytest.raises(ValueError, match="cannot release"):
        quota.release("a", 2)
    with pytest.raises(ValueError, match="cannot release"):
        quota.release("b")
    assert quota.used == 1


@pytest.mark.parametrize("limit, share", [(0, 0.9), (1, 0.4), (1, 1.1)])
def test_a_quota_has_a_limit_and_a_share(limit: int, share: float):
    with pytest.raises(ValueError, match="a quota has"):
        Quota(limit, share)


@given(
    limit=st.integers(1, 50),
    share=st.floats(0.5, 1),
    steps=st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.booleans())),
)
def test_amounts_are_never_negative_and_never_over_the_limit(limit, share, steps):
    """Whatever is acquired and released: the total is the sum of the parts, and within the limit;
    in the end nothing is left.
    """
    quota = Quota(limit, share)
    held: list[tuple[str, int]] = []
    for holder, amount, gives in steps:
        if gives and held:
            quota.release(*held.pop())
        elif quota.acquire(holder, amount):
            held.append((holder, amount))
        parts = Counter[str]()
        for each, amount in held:
            parts[each] += amount
        assert quota.used == sum(parts.values()) <= limit
        assert all(quota.held(each) == parts[each] for each in "abc")
    for each in held:
        quota.release(*each)
    assert quota.used == quota.usage().holders == 0


async def test_slots_are_given_to_the_holders_in_turn():
    """A holder with many requests waits behind its own, not the others behind it."""
    queue = FairQueue(Quota(1), 100, share=1)
    assert queue.quota.acquire_now("greedy")
    served: list[str] = []

    async def want(holder: str) -> None:
        assert await queue.acquire(holder, PATIENCE)
        served.append(holder)
        queue.quota.release(holder)

    tasks = [asyncio.create_task(want("greedy")) for _ in range(10)]
    tasks += [asyncio.create_task(want("modest")) for _ in range(2)]
    await asyncio.sleep(0)
    queue.quota.release("greedy")
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*tasks)
    assert served[:4].count("modest") == 2
    assert queue.quota.used == 0
    assert queue.usage().used == 0


async def test_a_large_request_waits_until_its_holder_has_the_credit():
    """Who asks for four times as much gets a quarter of the turns (deficit round robin)."""
    queue = FairQueue(Quota(1), 100, share=1)
    assert queue.quota.acquire_now("x")
    served: list[str] = []

    async def want(holder: str, cost: int) -> None:
        assert await queue.acquire(holder, PATIENCE, cost)
        served.append(holder)
        queue.quota.release(holder)

    tasks = [asyncio.create_task(want("large", 4)) for _ in range(3)]
    tasks += [asyncio.create_task(want("small", 1)) for _ in range(12)]
    await asyncio.sleep(0)
    queue.quota.release("x")
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*tasks)
    assert 6 <= served[:10].count("small") <= 9


async def test_the_queue_of_one_holder_makes_room_for_others():
    """Where the queue is full, the last request of who has the most in it is refused for the first
    of who has fewer.
    """
    queue = FairQueue(Quota(1), 4, share=1)
    assert queue.quota.acquire_now("a")
    greedy = [asyncio.create_task(queue.acquire("greedy", PATIENCE)) for _ in range(4)]
    await asyncio.sleep(0)
    modest = asyncio.create_task(queue.acquire("modest", PATIENCE))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [task.done() for task in (*greedy, modest)] == [False, False, False, True, False]
    assert not await greedy[3]
    assert queue.usage().evicted == 1
    queue.close()
    assert not any(await asyncio.gather(*greedy, modest))
    queue.quota.release("a")
    assert queue.quota.used == queue.usage().used == 0


async def test_who_waits_too_long_or_is_cancelled_leaves_nothing_behind():
    """By time, by cancellation (also in the turn in which it gets its slot), by a full queue, and
    by the end of the queue.
    """
    queue = FairQueue(Quota(1), 3, share=1)
    assert queue.quota.acquire_now("a")
    assert not await queue.acquire("b", 0.001)
    tasks = [asyncio.create_task(queue.acquire(each, PATIENCE)) for each in "bcd"]
    await asyncio.sleep(0)
    assert not await queue.acquire("e", PATIENCE)  # three wait already
    queue.quota.release("a")
    tasks[0].cancel()  # it has got the slot, and does not know yet
    await asyncio.wait({tasks[0]})
    assert await tasks[1]
    tasks[2].cancel()
    await asyncio.wait({tasks[2]})
    last = asyncio.create_task(queue.acquire("f", PATIENCE))
    await asyncio.sleep(0)
    queue.close()
    assert not await last
    queue.quota.release("c")
    assert queue.quota.used == queue.usage().used == 0
    assert queue.quota.acquire_now("g")


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["ask", "end", "cancel"]), st.sampled_from("abc")), max_size=40
    ),
    slots=st.integers(1, 5),
)
def test_slots_of_a_queue_are_all_given_back(steps, slots):
    """Whatever is asked, ended and cancelled: never more than there are, and none is lost."""

    async def play() -> None:
        queue = FairQueue(Quota(slots), 10)
        asked: list[tuple[str, asyncio.Task[bool]]] = []
        running: list[str] = []

        async def settle() -> None:
            for _ in range(4):
                await asyncio.sleep(0)
            for pair in list(asked):
                if pair[1].done():
                    asked.remove(pair)
                    if not pair[1].cancelled() and pair[1].result():
                        running.append(pair[0])
            assert queue.quota.used == len(running) <= slots

        for step, holder in steps:
            if step == "ask":
                task = asyncio.create_task(queue.acquire(holder, PATIENCE))
                asked.append((holder, task))
            elif step == "end" and running:
                queue.quota.release(running.pop())
            elif step == "cancel" and asked:
                asked[-1][1].cancel()
            await settle()
        while running:
            queue.quota.release(running.pop())
            await settle()
        assert not asked
        assert queue.quota.used == queue.usage().used == 0

    asyncio.run(play())
