"""Tools that wait where they stand between the rounds of a call: they run once, and never longer
than somebody may come back."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from typing import Any

import pytest

from interlock import types as t
from interlock.exchange import Exchange, ExchangeTransport
from interlock.store import MemoryStore, StoreError
from interlock.store.interface import RecordStore
from interlock.store.worker_messages import WorkerMessages
from tests.retries import Retries, answer_of, asked, rounds, said, words

NEVER = 3600.0


async def turns(number: int = 5) -> None:
    """Let everything that is ready to run do so, a few times over."""
    for _ in range(number):
        await asyncio.sleep(0)


class Counted:
    """A tool that asks twice, counts how often it was begun and ended, and says how it ended."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended: list[str] = []
        self.over = asyncio.Event()

    async def __call__(self, x: Exchange) -> str:
        self.begun += 1
        how = "cancelled"
        try:
            first = await answer_of(x, "first?")
            x.notify("progress", first)
            second = await answer_of(x, "second?")
            x.notify("progress", second)
            how = "done"
            return f"{first} {second}"
        finally:
            self.ended.append(how)
            self.over.set()


async def test_a_suspended_tool_runs_once_over_all_its_rounds() -> None:
    """What it says goes with whichever request holds its ticket then (`MRT-10`, `MRT-11`)."""
    house = rounds()
    body = Counted()
    call = Retries(house, body)
    first = await call.call()
    assert len(house) == 1
    second = await call.retry(first, "a")
    assert said(await call.retry(second, "b")) == "a b"
    assert (body.begun, body.ended, len(house)) == (1, ["done"], 0)
    assert call.told == [(2, "a"), (3, "b")]


async def test_a_finished_call_keeps_its_outcome_and_not_its_arguments() -> None:
    """A retry that is sent again gets the outcome, and a large argument is held for no longer than
    its call runs.
    """
    house = rounds()
    call = Retries(house, Counted(), arguments={"text": "x" * 1000})
    before = sys.getrefcount(call.params.arguments)
    first = await call.call()
    second = await call.retry(first, "a")
    third = await call.retry(second, "b")
    assert said(await call.retry(second, "b")) == said(third) == "a b"
    gc.collect()
    after = sys.getrefcount(call.params.arguments)
    assert after == before


async def test_what_a_suspended_tool_says_while_nobody_listens_is_dropped() -> None:
    """Between two rounds there is no request that it could go with (`STD-13`)."""
    go_on = asyncio.Event()

    async def body(x: Exchange) -> str:
        async def chatter() -> None:
            await go_on.wait()
            x.notify("progress", "lost")

        talking = asyncio.ensure_future(chatter())
        await answer_of(x, "?")
        await talking
        x.notify("progress", "heard")
        return ""

    call = Retries(rounds(), body)
    first = await call.call()
    go_on.set()
    await turns()
    await call.retry(first, "a")
    assert call.told == [(2, "heard")]


async def test_a_retry_of_a_retry_shares_its_answer() -> None:
    """While it runs, when it has asked again, and after the end; nothing runs twice (`MRT-09`,
    `CAN-08`)."""
    body = Counted()
    call = Retries(rounds(), body)
    first = await call.call()
    one, two, three = await asyncio.gather(
        call.retry(first, "a"), call.retry(first, "other"), call.call(None, first.request_state)
    )
    assert one == two == three
    late = await call.retry(first, "later still")
    assert late == one
    done = await asyncio.gather(call.retry(one, "b"), call.retry(two, "c"))
    assert [said(result) for result in done] == ["a b", "a b"]
    assert said(await call.retry(one, "d")) == "a b"
    assert (await call.retry(first, "e")) == one
    assert (body.begun, body.ended) == (1, ["done"])


async def test_a_retry_of_a_retry_shares_its_failure_too() -> None:
    """As it was raised (`MRT-09`)."""
    times = []

    async def body(x: Exchange) -> str:
        await answer_of(x, "?")
        times.append(1)
        raise t.McpError(-32000, "no more")

    call = Retries(rounds(), body)
    first = await call.call()
    for _ in range(3):
        with pytest.raises(t.McpError, match="no more"):
            await call.retry(first, "a")
    assert times == [1]


async def test_a_round_that_is_cancelled_cancels_the_tool() -> None:
    """The first round, and a later one; whoever shares it hears so, and nothing is left
    (`CAN-05`)."""
    house = rounds()
    body = Counted()

    async def slow(x: Exchange) -> str:
        try:
            await answer_of(x, "?")
            await asyncio.sleep(NEVER)
        finally:
            body.ended.append("stopped")
        return ""

    call = Retries(house, slow)
    first = await call.call()
    holder = asyncio.ensure_future(call.retry(first, "a"))
    sharer = asyncio.ensure_future(call.retry(first, "a"))
    await turns()
    holder.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holder
    with pytest.raises(t.McpError, match=r"may have happened. The call was cancelled"):
        await sharer
    await turns()
    assert (body.ended, len(house)) == (["stopped"], 0)


async def test_whoever_only_shares_a_round_cancels_nothing_but_himself() -> None:
    """The one that holds it goes on (`CAN-05`, `MRT-17`)."""
    go_on = asyncio.Event()

    async def body(x: Exchange) -> str:
        answer = await answer_of(x, "?")
        await go_on.wait()
        return answer

    call = Retries(rounds(), body)
    first = await call.call()
    holder = asyncio.ensure_future(call.retry(first, "a"))
    sharer = asyncio.ensure_future(call.retry(first, "a"))
    await turns()
    sharer.cancel()
    await turns()
    go_on.set()
    assert said(await holder) == "a"
    assert sharer.cancelled()


async def test_a_first_round_that_is_cancelled_leaves_nothing() -> None:
    """Before the tool has asked anything (`CAN-05`)."""
    house = rounds()
    ended = []

    async def body(x: Exchange) -> str:
        try:
            await asyncio.sleep(NEVER)
        finally:
            ended.append(1)
        return ""

    running = asyncio.ensure_future(Retries(house, body).call())
    await turns()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await turns()
    assert (ended, len(house)) == ([1], 0)


async def test_nobody_comes_back_and_the_tool_is_ended() -> None:
    """When its ticket has expired it is cancelled, and takes no more room (`MRT-10`)."""
    house = rounds(seconds=0.02)
    body = Counted()
    await Retries(house, body).call()
    assert len(house) == 1
    await body.over.wait()
    assert (body.ended, len(house)) == (["cancelled"], 0)


async def test_each_round_has_its_time_anew() -> None:
    """The clock of a round stops with its retry (`MRT-10`)."""
    house = rounds(seconds=0.05)
    ready = asyncio.Event()

    async def body(x: Exchange) -> str:
        answer = await answer_of(x, "?")
        asyncio.get_running_loop().call_later(0.15, ready.set)
        await ready.wait()
        return answer

    call = Retries(house, body)
    assert said(await call.retry(await call.call(), "a")) == "a"


async def test_the_house_is_left_clean() -> None:
    """Whatever waits is cancelled, whoever holds a round hears it, and closing twice is no
    fault."""
    house = rounds()
    bodies = [Counted() for _ in range(3)]
    calls = [Retries(house, body) for body in bodies]
    firsts = [await call.call() for call in calls]

    async def stuck(x: Exchange) -> str:
        await asyncio.sleep(NEVER)
        return ""

    held = asyncio.ensure_future(Retries(house, stuck).call())
    await turns()
    assert len(house) == 4
    await house.aclose()
    await house.aclose()
    with pytest.raises(asyncio.CancelledError):
        await held
    assert [body.ended for body in bodies] == [["cancelled"]] * 3
    assert len(house) == 0
    second = await calls[0].retry(firsts[0], "a")
    assert list(asked(second).values()) == ["second?"]
    assert bodies[0].begun == 2
    await house.aclose()


async def test_beyond_the_limit_tools_are_run_again_instead() -> None:
    """A crowd that asks and never comes back takes bounded room, and every call gets on all the
    same (`MRT-10`)."""
    house = rounds(most=2)
    body = Counted()
    calls = [Retries(house, body) for _ in range(4)]
    firsts = [await call.call() for call in calls]
    assert (len(house), body.begun) == (2, 4)
    for call, first in zip(calls, firsts, strict=True):
        assert said(await call.retry(await call.retry(first, "a"), "b")) == "a b"
    assert len(house) == 0
    assert (
        body.begun == 4 + 2
    )  # those for which there was no room ran again from the top, and found room then


async def test_a_ticket_of_another_worker_is_good_here() -> None:
    """The tool runs again from the top, finds its answers, and goes on (`MRT-24`, `RPC-25`)."""
    records = MemoryStore().records
    here = rounds(records=records)
    there = rounds(records=records)
    body = Counted()
    call = Retries(there, body)
    first = await call.call()
    second = await call.retry(first, "a")
    call.rounds = here
    assert said(await call.retry(second, "b")) == "a b"
    assert body.begun == 2
    assert len(here) == 0
    await there.aclose()


async def test_a_ticket_of_another_worker_suspends_here_and_is_retried_like_any() -> None:
    """From then on it is ours."""
    records = MemoryStore().records
    here = rounds(records=records)
    there = rounds(records=records)
    body = Counted()
    call = Retries(there, body)
    first = await call.call()
    call.rounds = here
    second = await call.retry(first, "a")
    assert len(here) == 1
    assert said(await call.retry(second, "b")) == "a b"
    assert body.begun == 2
    await there.aclose()


async def test_a_ticket_of_a_stranger_opens_nothing() -> None:
    """Another key is another house (`MRT-07`)."""
    call = Retries(rounds(keys=(b"s" * 32,)), Counted())
    first = await call.call()
    await call.rounds.aclose()
    call.rounds = rounds()
    with pytest.raises(t.McpError, match="requestState"):
        await call.retry(first, "a")


async def test_a_tool_that_goes_on_by_itself_is_collected_by_the_next_retry() -> None:
    """It gave up waiting for the answer; the answer, when it comes, is to no question any more
    (`MRT-21`)."""
    gave_up = asyncio.Event()

    async def body(x: Exchange) -> str:
        try:
            async with asyncio.timeout(0):
                return await answer_of(x, "?")
        except TimeoutError:
            gave_up.set()
            return "went on without"

    house = rounds()
    call = Retries(house, body)
    first = await call.call()
    if isinstance(first, t.InputRequiredResult):
        await gave_up.wait()
        first = await call.retry(first, "late")
    assert said(first) == "went on without"
    assert len(house) == 0


async def test_a_question_that_was_given_up_is_not_put_again() -> None:
    """The first of two to be answered settles it, and the other is not asked for any more
    (`MRT-22`)."""

    async def body(x: Exchange) -> str:
        pending = [
            asyncio.ensure_future(answer_of(x, "left?")),
            asyncio.ensure_future(answer_of(x, "right?")),
        ]
        done, rest = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()
        return (await done.pop()) + await answer_of(x, "and then?")

    call = Retries(rounds(), body)
    first = await call.call()
    left = next(key for key, message in asked(first).items() if message == "left?")
    second = await call.call({left: words("L")}, first.request_state)
    while (
        "right?" in asked(second).values()
    ):  # it may take one turn more until the author has given it up
        second = await call.call({}, second.request_state)
    assert list(asked(second).values()) == ["and then?"]
    assert said(await call.retry(second, "!")) == "L!"


async def test_a_question_asked_while_nobody_listens_waits_for_the_next_round() -> None:
    """It is added to those that wait, and none is lost."""
    go_on = asyncio.Event()

    async def body(x: Exchange) -> str:
        async def later() -> str:
            await go_on.wait()
            return await answer_of(x, "later?")

        return " ".join(await asyncio.gather(answer_of(x, "now?"), later()))

    call = Retries(rounds(), body)
    first = await call.call()
    assert list(asked(first).values()) == ["now?"]
    go_on.set()
    await turns()
    second = await call.retry(first, "a")
    assert list(asked(second).values()) == ["later?"]
    assert said(await call.retry(second, "b")) == "a b"


async def test_a_round_never_comes_back_empty() -> None:
    """A tool that stirs for nothing is waited for: an input-required result without a question asks
    a client for nothing (`MRT-02`)."""
    go_on = asyncio.Event()

    async def body(x: Exchange) -> str:
        extra = asyncio.ensure_future(answer_of(x, "extra?"))
        first = await answer_of(x, "first?")
        extra.cancel()
        await go_on.wait()
        return first + await answer_of(x, "last?")

    call = Retries(rounds(), body)
    result = await call.call()
    by_message = {message: key for key, message in asked(result).items()}
    retry = asyncio.ensure_future(
        call.call({by_message["first?"]: words("a")}, result.request_state)
    )
    await turns()
    go_on.set()
    second: Any = await retry
    while "extra?" in asked(second).values():  # as above
        second = await call.call({}, second.request_state)
    assert list(asked(second).values()) == ["last?"]
    assert said(await call.retry(second, "b")) == "ab"


async def test_finished_calls_are_not_kept() -> None:
    """A call that never asked leaves nothing at all; of those that did only the last few, for
    whoever asks once more."""
    house = rounds()

    class Large(ExchangeTransport):
        """A transport that holds something large."""

    kept: list[weakref.ref[ExchangeTransport]] = []

    async def quiet(x: Exchange) -> str:
        return "done"

    for _ in range(5):
        large = Large()
        kept.append(weakref.ref(large))
        await Retries(house, quiet).call(transport=large)
        del large
    await turns()
    gc.collect()
    assert [ref() for ref in kept] == [None] * 5


async def test_a_crowd_goes_through_its_rounds_without_getting_mixed_up() -> None:
    """Five hundred calls at once, each with its own answers, retried in another order."""
    house = rounds()

    async def body(x: Exchange) -> str:
        return await answer_of(x, "first?") + await answer_of(x, "second?")

    calls = [Retries(house, body) for _ in range(500)]
    firsts = await asyncio.gather(*(call.call() for call in calls))
    seconds = await asyncio.gather(
        *(
            call.retry(first, f"{n}-")
            for n, (call, first) in enumerate(zip(calls, firsts, strict=True))
        )
    )
    last = [
        await call.retry(second, str(n))
        for n, (call, second) in reversed(list(enumerate(zip(calls, seconds, strict=True))))
    ]
    assert [said(result) for result in reversed(last)] == [f"{n}-{n}" for n in range(500)]
    assert len(house) == 0


# -- once means once


async def test_a_state_is_used_once_over_all_workers() -> None:
    """What ran at one worker is not run at another: it gives the recorded outcome (`MRT-09`)."""
    records = MemoryStore().records
    body = Counted()
    call = Retries(rounds(records=records), body)
    first = await call.call()
    second = await call.retry(first, "a")
    done = await call.retry(second, "b")
    call.rounds = rounds(records=records)
    assert said(await call.retry(second, "b")) == said(done) == "a b"
    assert asked(await call.retry(first, "other")) == asked(second)
    assert body.begun == 1


async def test_a_failure_is_given_again_too() -> None:
    """As its code and words, at another worker."""
    records = MemoryStore().records

    async def body(x: Exchange) -> str:
        await answer_of(x, "?")
        raise t.McpError(-32000, "no more", {"why": 1})

    call = Retries(rounds(records=records), body)
    first = await call.call()
    for rounds_of_worker in (call.rounds, rounds(records=records)):
        call.rounds = rounds_of_worker
        with pytest.raises(t.McpError, match="no more") as caught:
            await call.retry(first, "a")
        assert (caught.value.code, caught.value.data) == (-32000, {"why": 1})


async def test_a_state_that_nobody_here_remembers_is_refused_as_in_doubt() -> None:
    """After a restart without a store, or at a machine that shares only the key."""
    body = Counted()
    call = Retries(rounds(), body)
    first = await call.call()
    call.rounds = rounds()
    with pytest.raises(t.McpError, match="may have happened") as caught:
        await call.retry(first, "a")
    assert caught.value.data == {"reason": "may_have_happened"}
    assert body.begun == 1


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "not idempotent"])
async def test_a_call_whose_worker_died_after_it_was_started_is_in_doubt(idempotent: bool) -> None:
    """It is not run again, unless its author declared it idempotent."""
    records = MemoryStore().records
    acted: list[str] = []
    acting = asyncio.Event()

    async def body(x: Exchange) -> str:
        answer = await answer_of(x, "?")
        acted.append(answer)
        acting.set()
        if len(acted) == 1:
            await asyncio.sleep(NEVER)  # here its worker dies
        return answer

    call = Retries(rounds(records=records), body, idempotent=idempotent)
    first = await call.call()
    dying = asyncio.ensure_future(call.retry(first, "a"))
    await acting.wait()
    call.rounds = rounds(records=records)
    if idempotent:
        assert said(await call.retry(first, "a")) == "a"
    else:
        with pytest.raises(t.McpError, match="may have happened"):
            await call.retry(first, "a")
    assert len(acted) == 1 + idempotent
    dying.cancel()


async def test_a_step_of_an_idempotent_call_is_done_once_all_the_same() -> None:
    """The second run has the result of the first run's step; an idempotent step in doubt is done
    again, any other is an error.
    """
    records = MemoryStore().records
    done: list[str] = []
    stuck = asyncio.Event()

    async def step(name: str) -> str:
        done.append(name)
        return name

    async def hang() -> str:
        done.append("hang")
        if not stuck.is_set():
            stuck.set()
            await asyncio.sleep(NEVER)
        return "hung"

    async def body(x: Exchange) -> str:
        await answer_of(x, "?")
        one = await x.asker.once("one", lambda: step("one"))
        idempotent = x.params.name == "idempotent"
        return f"{one} {await x.asker.once('hang', hang, idempotent=idempotent)}"

    for name in ("idempotent", "other"):
        done.clear()
        stuck.clear()
        call = Retries(rounds(records=records), body, idempotent=True)
        call.params = t.CallToolRequestParams(name=name)
        first = await call.call()
        dying = asyncio.ensure_future(call.retry(first, "a"))
        await stuck.wait()
        call.rounds = rounds(records=records)
        if name == "idempotent":
            assert said(await call.retry(first, "a")) == "one hung"
            assert done == ["one", "hang", "hang"]
        else:
            with pytest.raises(t.McpError, match="may have happened"):
                await call.retry(first, "a")
            assert done == ["one", "hang"]
        dying.cancel()


async def test_a_cancelled_call_is_in_doubt_for_those_who_come_later() -> None:
    """What it did before it was cancelled is not known."""
    records = MemoryStore().records
    acting = asyncio.Event()

    async def body(x: Exchange) -> str:
        await answer_of(x, "?")
        acting.set()
        await asyncio.sleep(NEVER)
        return ""

    call = Retries(rounds(records=records), body)
    first = await call.call()
    running = asyncio.ensure_future(call.retry(first, "a"))
    await acting.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(t.McpError, match=r"may have happened. The call was cancelled"):
        await call.retry(first, "a")


async def test_a_store_that_fails_before_the_answer_is_handed_over_costs_nothing() -> None:
    """Nothing has run; the retry after it runs it. One that fails after it does not take the
    outcome from the caller.
    """
    records = MemoryStore().records
    swap = records.swap
    away: list[bool] = []

    async def failing(key: str, data: bytes, **more: Any) -> int:
        if away.pop(0):
            raise StoreError("away")
        return await swap(key, data, **more)

    records.swap = failing  # type: ignore[method-assign]  # a store that goes away and comes back
    body = Counted()
    house = rounds(records=records)
    call = Retries(house, body)
    first = await call.call()
    away[:] = [True, False, False, True, True]
    with pytest.raises(StoreError):
        await call.retry(first, "a")
    second = await call.retry(first, "a")
    away[:] = [False, True]
    assert said(await call.retry(second, "b")) == "a b"
    assert said(await call.retry(second, "b")) == "a b"
    assert body.begun == 1
    await house.aclose()


async def test_two_retries_of_a_dead_workers_call_share_one_run() -> None:
    """The second one comes while the first still runs the call again: it does not end it."""
    records = MemoryStore().records
    there = rounds(records=records)
    here = rounds(records=records)
    going_on = asyncio.Event()
    begun: list[str] = []

    async def body(x: Exchange) -> str:
        begun.append("begun")
        answer = await answer_of(x, "first?")
        await going_on.wait()
        return answer

    call = Retries(there, body)
    first = await call.call()
    await there.aclose()
    call.rounds = here
    retries = [asyncio.ensure_future(call.retry(first, "a")) for _ in range(2)]
    while len(begun) < 2:  # noqa: ASYNC110 - the body has no event for each run
        await asyncio.sleep(0)
    late = asyncio.ensure_future(call.retry(first, "a"))
    for _ in range(20):
        await asyncio.sleep(0)
    going_on.set()
    assert [said(done) for done in await asyncio.gather(*retries, late)] == ["a"] * 3
    assert len(begun) == 2


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
async def test_a_wall_clock_that_jumps_for_a_moment_repeats_nothing(jump: float) -> None:
    """A retry arrives while the clock is wrong, and its copy at another worker afterwards."""
    now = [1e9]
    records = MemoryStore().records
    there = rounds(records=records, wall_clock=lambda: now[0])
    here = rounds(records=records, wall_clock=lambda: now[0])
    acted: list[str] = []

    async def body(x: Exchange) -> str:
        answer = await answer_of(x, "first?")
        acted.append(answer)
        return answer

    call = Retries(there, body)
    first = await call.call()
    if jump > 0:
        assert said(await call.retry(first, "a")) == "a"
        now[0] += jump
        await Retries(there, body).call()
        await records.swap("other", b"x", was=0, until=now[0] + 1, now=now[0])
    else:
        now[0] += jump
        assert said(await call.retry(first, "a")) == "a"
    now[0] -= jump
    await there.aclose()
    call.rounds = here
    assert said(await call.retry(first, "a")) == "a"
    assert acted == ["a"]
    await here.aclose()


async def test_a_wall_clock_that_is_set_back_for_good_leaves_no_state_valid() -> None:
    """A state that was sealed with a clock a year ahead ends, and so does the record of its use."""
    now = [1e9]
    records = MemoryStore().records
    layer = rounds(records=records, wall_clock=lambda: now[0])
    acted: list[str] = []

    async def body(x: Exchange) -> str:
        acted.append(await answer_of(x, "first?"))
        return "done"

    now[0] += 365 * 86_400
    used = Retries(layer, body)
    first = await used.call()
    assert said(await used.retry(first, "a")) == "done"
    unused = await Retries(layer, body).call()
    now[0] -= 365 * 86_400
    for state in (first, unused):
        with pytest.raises(t.McpError, match="expired"):
            await used.retry(state, "a")
    assert acted == ["a"]
    await layer.aclose()


async def test_a_holder_whose_store_fails_keeps_its_call() -> None:
    """A retry at another worker gets the error of the store. Its call still waits where it is, and
    the next retry resumes it: nothing runs again from the top.
    """
    store = MemoryStore()
    store.shared = True  # type: ignore[misc]  # a constant of the class
    failing = FailingRecords(store.records)
    holder, other = rounds(), rounds()
    for layer, records in ((holder, failing), (other, store.records)):
        messages = WorkerMessages(store)
        messages.open()
        await messages.beat_once()
        layer.share(records, messages)
    began: list[str] = []

    async def body(x: Exchange) -> str:
        began.append("began")
        return await answer_of(x, "first?")

    call = Retries(holder, body)
    first = await call.call()
    call.rounds = other
    failing.is_away = True
    with pytest.raises(t.McpError) as refused:
        await call.retry(first, "a")
    assert refused.value.data == {"reason": "store"}
    failing.is_away = False
    assert said(await call.retry(first, "a")) == "a"
    assert began == ["began"]
    await asyncio.gather(holder.aclose(), other.aclose())


class FailingRecords:
    """Records of a store that can be away."""

    def __init__(self, records: RecordStore) -> None:
        self.is_away = False
        self._records = records

    def __getattr__(self, name: str) -> Any:
        if self.is_away and name != "identity":
            raise StoreError("away")
        return getattr(self._records, name)
