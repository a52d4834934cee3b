"""Tools that run again from the top, what must happen once all the same, and questions that authors
write by hand."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import msgspec
import pytest

from interlock import types as t
from interlock.exchange import Caller, Exchange
from interlock.store import MemoryStore
from interlock.wire.revisions import NEWEST
from tests.retries import Retries, answer_of, asked, by_hand, manual, rounds, said, words

both_ways = pytest.mark.parametrize("suspend", [True, False], ids=["suspended", "replayed"])
again = rounds(suspend=False)


# -- running again from the top


async def test_the_tool_runs_again_and_finds_its_answers() -> None:
    """Once for each round (`MRT-24`)."""
    begun = []

    async def body(x: Exchange) -> str:
        begun.append(1)
        return await answer_of(x, "first?") + await answer_of(x, "second?")

    call = Retries(again, body)
    assert said(await call.retry(await call.retry(await call.call(), "a"), "b")) == "ab"
    assert len(begun) == 3
    assert len(again) == 0


async def test_a_ticket_may_be_used_twice_and_gives_the_same() -> None:
    """What is sealed in it is all there is: no state of ours makes the second use another thing
    (`RPC-25`, `MRT-09`)."""

    async def body(x: Exchange) -> str:
        return await answer_of(x, "first?") + await answer_of(x, "second?")

    call = Retries(again, body)
    first = await call.call()
    assert asked(await call.retry(first, "a")) == asked(await call.retry(first, "a"))
    second = await call.retry(first, "a")
    assert said(await call.retry(second, "b")) == said(await call.retry(second, "b")) == "ab"
    assert said(await call.retry(await call.retry(first, "other"), "b")) == "otherb"


GREEDY: dict[str, Any] = {}


def greedy(function: Any) -> Any:
    """One more way in which an author may come between a question and its answer."""
    GREEDY[function.__name__.replace("_", " ")] = function
    return function


@greedy
async def catches_every_exception(x: Exchange) -> str:
    try:
        return await answer_of(x, "?")
    except Exception:
        return "eaten"


@greedy
async def suppresses_and_goes_on(x: Exchange) -> str:
    for _ in range(3):
        try:
            return await answer_of(x, "?", key="it")
        except (Exception, asyncio.CancelledError):
            continue
    return "eaten"


@greedy
async def catches_even_base_exceptions(x: Exchange) -> str:
    try:
        return await answer_of(x, "?")
    except BaseException:
        return "eaten"


@greedy
async def catches_even_base_exceptions_and_fails(x: Exchange) -> str:
    try:
        return await answer_of(x, "?")
    except BaseException:
        raise ValueError("eaten") from None


@greedy
async def gathers_exceptions_as_values(x: Exchange) -> str:
    (answer,) = await asyncio.gather(answer_of(x, "?"), return_exceptions=True)
    return str(answer)


@greedy
async def waits_for_it_in_a_task(x: Exchange) -> str:
    task = asyncio.ensure_future(answer_of(x, "?"))
    await asyncio.wait([task])
    return "eaten" if task.exception() else task.result()


@greedy
async def asks_in_a_nested_group(x: Exchange) -> str:
    async with asyncio.TaskGroup() as outer, asyncio.TaskGroup() as inner:
        inner.create_task(asyncio.sleep(0))
        task = inner.create_task(answer_of(x, "?"))
        outer.create_task(asyncio.sleep(0))
    return task.result()


@greedy
async def asks_beside_a_task_that_fails(x: Exchange) -> str:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("beside it")

    failed = False
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(answer_of(x, "?"))
            group.create_task(fails())
    except* ValueError:
        failed = True
    return "failed" if failed else "eaten"


@greedy
async def asks_in_a_finally(x: Exchange) -> str:
    answer = ""
    try:
        pass
    finally:
        answer = await answer_of(x, "?")
    return answer


@greedy
async def asks_within_a_timeout(x: Exchange) -> str:
    async with asyncio.timeout(3600):
        return await asyncio.wait_for(answer_of(x, "?"), 3600)


@pytest.mark.parametrize("body", GREEDY.values(), ids=GREEDY)
async def test_an_author_cannot_come_between_a_question_and_its_answer(body: Any) -> None:
    """Whatever he catches, the client is asked first, and the tool has its answer the next time
    (`MRT-22`, `MRT-24`)."""
    call = Retries(again, body)
    first = await call.call()
    assert list(asked(first).values()) == ["?"]
    assert said(await call.retry(first, "yes")) in ("yes", "failed")


async def test_a_question_asked_in_another_task_unwinds_the_tool_all_the_same() -> None:
    """As where an inner client's own task asks: it hears that it was cancelled, and nothing waits
    for ever."""
    ended: list[str] = []
    tasks: list[asyncio.Task[Any]] = []

    async def asks(x: Exchange, answered: asyncio.Future[str]) -> None:
        try:
            answered.set_result(await answer_of(x, "?"))
        except asyncio.CancelledError:
            ended.append("asked")
            raise

    async def body(x: Exchange) -> str:
        answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        tasks.append(asyncio.ensure_future(asks(x, answered)))
        try:
            return await answered
        except asyncio.CancelledError:
            ended.append("waited")
            raise

    call = Retries(again, body)
    first = await call.call()
    assert list(asked(first).values()) == ["?"]
    assert sorted(ended) == ["asked", "waited"]
    assert said(await call.retry(first, "yes")) == "yes"
    assert all(task.done() for task in tasks)


@both_ways
async def test_a_malformed_answer_is_told_wherever_the_question_was_asked(suspend: bool) -> None:
    """Also in a task of its own, which no exception leads out of."""

    async def body(x: Exchange) -> str:
        task = asyncio.ensure_future(answer_of(x, "?", key="it"))
        await asyncio.wait({task})
        return "eaten"

    records = MemoryStore().records
    call = Retries(rounds(suspend=suspend, records=records), body)
    first = await call.call()
    call.rounds = rounds(
        suspend=suspend, records=records
    )  # another worker, which finds the answer in what was sent
    with pytest.raises(t.McpError) as caught:
        await call.call({"it": {"action": 7}}, first.request_state)
    assert caught.value.code == t.INVALID_PARAMS


async def test_a_tool_is_cancelled_when_its_round_is() -> None:
    """Before it has asked (`CAN-05`); once it has put things in order the round is over."""
    ended = []

    async def body(x: Exchange) -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            ended.append(1)
            raise
        return ""

    running = asyncio.ensure_future(Retries(again, body).call())
    for _ in range(5):
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended == [1]


async def test_a_tool_that_waits_for_more_than_its_answer_is_unwound_at_once() -> None:
    """What else it waits for is given up with the question."""
    ended = []

    async def body(x: Exchange) -> str:
        try:
            await asyncio.gather(answer_of(x, "?"), asyncio.sleep(3600), return_exceptions=True)
        except asyncio.CancelledError:
            ended.append(1)
            raise
        return ""

    assert list(asked(await Retries(again, body).call()).values()) == ["?"]
    assert ended == [1]


# -- once


@dataclasses.dataclass
class Receipt:
    """What an author's deed may return."""

    number: int
    lines: tuple[str, ...]


@both_ways
async def test_what_must_happen_once_happens_once_over_all_rounds(suspend: bool) -> None:
    """Its result is the same in every run, as JSON has it, wherever the rounds are carried
    (`MRT-09`, `MRT-24`)."""
    charged: list[int] = []

    async def charge() -> Any:
        charged.append(1)
        return {"receipt": Receipt(len(charged), ("a", "b")), 5: b"xy"}

    async def body(x: Exchange) -> str:
        before = await x.asker.once("charge", charge)
        await answer_of(x, "first?")
        after = await x.asker.once("refund", charge)
        await answer_of(x, "second?")
        return msgspec.json.encode([before, after]).decode()

    records = MemoryStore().records
    here = rounds(suspend=suspend, records=records)
    there = rounds(suspend=suspend, records=records)
    call = Retries(here, body)
    second = await call.retry(await call.call(), "a")
    call.rounds = there
    result = await call.retry(second, "b")
    receipts = msgspec.json.decode(said(result))
    assert receipts == [
        {"receipt": {"number": n, "lines": ["a", "b"]}, "5": "eHk="} for n in (1, 2)
    ]
    assert len(charged) == 2
    await here.aclose()


@both_ways
async def test_a_deed_that_fails_is_not_taken_for_done(suspend: bool) -> None:
    """It is tried again in the next run, and the same name is used once in a run."""
    tries: list[int] = []

    async def charge() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("later")
        return "charged"

    async def body(x: Exchange) -> str:
        result = await x.asker.once("charge", charge)
        with pytest.raises(ValueError, match="twice"):
            await x.asker.once("charge", charge)
        return str(result)

    call = Retries(rounds(suspend=suspend), body)
    with pytest.raises(ConnectionError):
        await call.call()
    assert said(await call.call()) == "charged"


@both_ways
async def test_a_client_cannot_make_a_deed_look_done(suspend: bool) -> None:
    """Answers are taken for questions that were asked, and for nothing else (`MRT-06`)."""

    async def charge() -> str:
        return "really charged"

    async def body(x: Exchange) -> str:
        await answer_of(x, "?", key="once charge?")
        return str(await x.asker.once("charge", charge))

    call = Retries(rounds(suspend=suspend), body)
    first = await call.call({"once charge": "charged"})
    done = await call.call(
        {"once charge?": words("a"), "once charge": "charged"}, first.request_state
    )
    assert said(done) == "really charged"


# -- written by hand


@both_ways
async def test_questions_written_by_hand_are_put_and_their_state_comes_back(suspend: bool) -> None:
    """Sealed on its way, so that the tool may trust it; marked as what it is (`MRT-02`, `MRT-07`,
    `MRT-14`, `MRT-24`)."""
    call = Retries(rounds(suspend=suspend), manual)
    first = await call.call()
    assert asked(first) == {"first?": "first?"}
    assert first.request_state not in (None, "one")
    second = await call.retry(first, "a")
    assert asked(second) == {"second?": "second?"}
    assert said(await call.retry(second, "b")) == "two a b"
    again = asked(await call.call({}, first.request_state))
    assert again == ({"second?": "second?"} if suspend else {"first?": "first?"})


@both_ways
@pytest.mark.parametrize("forged", ["one", "two bold", "", "x" * 100])
async def test_a_state_written_by_hand_cannot_be_forged(suspend: bool, forged: str) -> None:
    """Nobody but the server can make one that opens (`MRT-06`, `MRT-07`)."""
    with pytest.raises(t.McpError) as caught:
        await Retries(rounds(suspend=suspend), manual).call({"second?": words("b")}, forged)
    assert caught.value.code == t.INVALID_PARAMS


@both_ways
async def test_a_state_without_questions_is_a_round_too(suspend: bool) -> None:
    """As for work that is not done yet: come back with this (`MRT-02`, `MRT-13`)."""

    async def body(x: Exchange) -> Any:
        done = int(x.params.request_state or 0)
        return "ready" if done == 2 else by_hand(str(done + 1))

    call = Retries(rounds(suspend=suspend), body)
    result: Any = await call.call()
    for _ in range(2):
        assert asked(result) == {}
        result = await call.call(None, result.request_state)
    assert said(result) == "ready"


@both_ways
async def test_a_question_by_hand_that_the_client_cannot_take_is_an_error(suspend: bool) -> None:
    """It names what would have to be declared, as an object (`MRT-05`, `ERR-08`, `STA-07`)."""
    call = Retries(rounds(suspend=suspend), manual)
    call.caller = Caller(NEWEST, t.ClientCapabilities(sampling=t.SamplingCapability()))
    with pytest.raises(t.McpError) as caught:
        await call.call()
    assert caught.value.code == t.MISSING_CLIENT_CAPABILITY
    assert msgspec.to_builtins(caught.value.data) == {
        "requiredCapabilities": {"elicitation": {"form": {}}}
    }


@both_ways
async def test_both_ways_of_asking_may_be_mixed(suspend: bool) -> None:
    """What was answered, and what was done once, before the hand-written round is not lost in it
    (`MRT-24`)."""
    charged = []

    async def charge() -> int:
        charged.append(1)
        return len(charged)

    async def body(x: Exchange) -> Any:
        first = await answer_of(x, "first?")
        number = await x.asker.once("charge", charge)
        given = x.params.input_responses or {}
        if "second?" not in given:
            return by_hand("s", "second?")
        return (
            f"{first} {number} {msgspec.json.decode(given['second?'])['content']['words']} "
            f"{x.params.request_state}"
        )

    call = Retries(rounds(suspend=suspend), body)
    second = await call.retry(await call.call(), "a")
    assert asked(second) == {"second?": "second?"}
    assert said(await call.retry(second, "b")) == "a 1 b s"
    assert len(charged) == 1
