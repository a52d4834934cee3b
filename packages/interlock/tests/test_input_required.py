"""Questions in the stateless era: what holds whether a tool waits where it stands or runs again
from the top."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from interlock import types as t
from interlock.exchange import Caller, Exchange
from interlock.input_required import SuspendedCalls, required_capability
from interlock.wire.revisions import NEWEST, R4
from tests.retries import ABLE, Retries, answer_of, asked, form, rounds, said, words

both_ways = pytest.mark.parametrize("suspend", [True, False], ids=["suspended", "replayed"])


async def two_questions(x: Exchange) -> str:
    first = await answer_of(x, "Which day?")
    second = await answer_of(x, f"Which seat on {first}?")
    return f"{first}, seat {second}"


async def no_question(x: Exchange) -> str:
    return "done"


async def together(x: Exchange) -> str:
    return " and ".join(await asyncio.gather(*(answer_of(x, f"{n}?") for n in range(3))))


async def in_a_group(x: Exchange) -> str:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(answer_of(x, f"{n}?")) for n in range(2)]
        last = await answer_of(x, "2?")
    return " and ".join([*(task.result() for task in tasks), last])


@both_ways
async def test_a_tool_that_asks_nothing_is_just_run(suspend: bool) -> None:
    """And nothing is left of it."""
    house = rounds(suspend=suspend)
    assert said(await Retries(house, no_question).call()) == "done"
    assert len(house) == 0


@both_ways
async def test_one_question_after_the_other(suspend: bool) -> None:
    """Each in a round of its own, the second made of the first answer (`MRT-02`, `MRT-03`,
    `MRT-11`, `MRT-14`)."""
    house = rounds(suspend=suspend)
    call = Retries(house, two_questions)
    first = await call.call()
    assert list(asked(first).values()) == ["Which day?"]
    second = await call.retry(first, "Monday")
    assert list(asked(second).values()) == ["Which seat on Monday?"]
    assert said(await call.retry(second, "4A")) == "Monday, seat 4A"
    assert len(house) == 0


@both_ways
@pytest.mark.parametrize("body", [together, in_a_group], ids=["gathered", "in a task group"])
async def test_questions_asked_together_travel_together(suspend: bool, body: Any) -> None:
    """In one round, each under a key of its own (`MRT-04`, `MRT-12`)."""
    call = Retries(rounds(suspend=suspend), body)
    first = await call.call()
    assert sorted(asked(first).values()) == ["0?", "1?", "2?"]
    answers = {key: words(f"<{message}>") for key, message in asked(first).items()}
    assert said(await call.call(answers, first.request_state)) == "<0?> and <1?> and <2?>"


@both_ways
@pytest.mark.parametrize("body", [together, in_a_group], ids=["gathered", "in a task group"])
async def test_what_was_not_answered_is_asked_again(suspend: bool, body: Any) -> None:
    """What was answered is not, and an answer to nothing is passed over (`MRT-21`, `MRT-22`)."""
    call = Retries(rounds(suspend=suspend), body)
    first = await call.call()
    by_message = {message: key for key, message in asked(first).items()}
    second = await call.call(
        {by_message["1?"]: words("b"), "made up": words("x"), "": 5}, first.request_state
    )
    assert sorted(asked(second).values()) == ["0?", "2?"]
    third = await call.call({}, second.request_state)
    assert sorted(asked(third).values()) == ["0?", "2?"]
    fourth = await call.call(None, third.request_state)
    assert sorted(asked(fourth).values()) == ["0?", "2?"]
    again = {message: key for key, message in asked(fourth).items()}
    assert (
        said(
            await call.call(
                {again["0?"]: words("a"), again["2?"]: words("c")}, fourth.request_state
            )
        )
        == "a and b and c"
    )


MALFORMED: list[Any] = [
    None,
    [],
    "yes",
    5,
    True,
    {},
    {"action": "maybe"},
    {"action": "accept", "content": [1]},
    {"content": {"words": "x"}},
]


@both_ways
@pytest.mark.parametrize("bad", MALFORMED, ids=repr)
async def test_an_answer_that_is_none_is_an_error_and_can_be_given_better(
    suspend: bool, bad: Any
) -> None:
    """Never an answer, never a second question; the round stays open (`MRT-07`, `MRT-20`,
    `CFQ-06`)."""

    async def body(x: Exchange) -> str:
        try:
            return await answer_of(x, "Sure?", key="sure")
        except Exception:  # an author who is careful about the wrong thing
            return "went ahead without an answer"

    call = Retries(rounds(suspend=suspend), body)
    first = await call.call()
    for _ in range(2):
        with pytest.raises(t.McpError) as caught:
            await call.call({"sure": bad}, first.request_state)
        assert caught.value.code == t.INVALID_PARAMS
    assert said(await call.call({"sure": words("yes")}, first.request_state)) == "yes"


@both_ways
async def test_a_malformed_answer_among_good_ones_spoils_the_round_and_nothing_else(
    suspend: bool,
) -> None:
    """None of them counts until all can be read (`MRT-20`)."""
    call = Retries(rounds(suspend=suspend), together)
    first = await call.call()
    keys = list(asked(first))
    with pytest.raises(t.McpError):
        await call.call(
            {keys[0]: words("a"), keys[1]: {"action": 5}, keys[2]: words("c")}, first.request_state
        )
    assert said(await call.retry(first, "x", "y", "z")) == "x and y and z"


@both_ways
async def test_bytes_that_are_no_json_are_a_malformed_answer(suspend: bool) -> None:
    """An unread slice of the request may hold anything (`MRT-06`)."""
    call = Retries(rounds(suspend=suspend), two_questions)
    first = await call.call()
    (key,) = asked(first)
    for raw in (b'"\xff"', b"[" * 100_000):
        params = t.CallToolRequestParams(
            name="x",
            arguments=Raw(b"{}"),
            input_responses={key: Raw(raw)},
            request_state=first.request_state,
        )
        with pytest.raises(t.McpError) as caught:
            await call.call(params=params)
        assert caught.value.code == t.INVALID_PARAMS


@both_ways
async def test_the_three_kinds_of_question(suspend: bool) -> None:
    """To the person, to the model, and for the roots; declining is an answer like any other
    (`MRT-03`, `ELI-05`, `ELI-14`)."""

    async def body(x: Exchange) -> str:
        message = t.SamplingMessage(role="user", content=t.TextContent("hi"))
        sample = t.CreateMessageRequest(
            t.CreateMessageRequestParams(max_tokens=1, messages=[message])
        )
        elicited, sampled, roots = [
            await x.asker.ask(q) for q in (form("?"), sample, t.ListRootsRequest())
        ]
        assert isinstance(elicited, t.ElicitResult)
        assert isinstance(sampled, t.CreateMessageResult)
        assert isinstance(roots, t.ListRootsResult)
        return f"{elicited.action} {sampled.model} {roots.roots[0].uri}"

    call = Retries(rounds(suspend=suspend), body)
    result = await call.call()
    for answer in (
        {"action": "decline"},
        {"role": "assistant", "model": "m", "content": {"type": "text", "text": "x"}},
        {"roots": [{"uri": "file:///x"}]},
    ):
        (key,) = asked(result)
        result = await call.call({key: answer}, result.request_state)
    assert said(result) == "decline m file:///x"


@both_ways
async def test_a_question_may_have_a_name_of_its_own(suspend: bool) -> None:
    """Which is its key on the wire; the same name twice in a call is the author's mistake
    (`MRT-04`)."""

    async def body(x: Exchange) -> str:
        name = await answer_of(x, "Who?", key="user_name")
        with pytest.raises(ValueError, match="twice"):
            await answer_of(x, "Who else?", key="user_name")
        return name

    call = Retries(rounds(suspend=suspend), body)
    first = await call.call()
    assert asked(first) == {"user_name": "Who?"}
    assert said(await call.retry(first, "Ada")) == "Ada"


@both_ways
async def test_the_same_words_asked_twice_are_two_questions(suspend: bool) -> None:
    """One after the other, and together (`MRT-04`)."""

    async def body(x: Exchange) -> str:
        first = await answer_of(x, "Again?")
        return first + "".join(await asyncio.gather(answer_of(x, "Again?"), answer_of(x, "Again?")))

    call = Retries(rounds(suspend=suspend), body)
    first = await call.call()
    second = await call.retry(first, "a")
    assert len(asked(second)) == 2
    assert said(await call.retry(second, "b", "c")) == "abc"


@both_ways
async def test_answers_brought_along_uninvited_count_for_nothing(suspend: bool) -> None:
    """With the first request, or under the key of a question that was not asked yet (`MRT-06`,
    `MRT-21`)."""
    call = Retries(rounds(suspend=suspend), two_questions)
    honest = await call.call()
    (first_key,) = asked(honest)
    (second_key,) = asked(await call.retry(honest, "Monday"))
    bold = await call.call({first_key: words("Sunday"), second_key: words("1A")})
    assert list(asked(bold).values()) == ["Which day?"]
    bolder = await call.call(
        {first_key: words("Monday"), second_key: words("1A")}, bold.request_state
    )
    assert list(asked(bolder).values()) == ["Which seat on Monday?"]


@both_ways
@pytest.mark.parametrize(
    "change",
    [
        {"params": t.CallToolRequestParams(name="y", arguments=Raw(b'{"to":"bob"}'))},
        {"params": t.CallToolRequestParams(name="x", arguments=Raw(b'{"to":"eve"}'))},
        {"params": t.CallToolRequestParams(name="x", arguments=Raw(b'{"to":"bob","more":1}'))},
        {"method": "prompts/get"},
        {"caller": Caller(NEWEST, ABLE)},
    ],
    ids=[
        "another tool",
        "other arguments",
        "more arguments",
        "another method",
        "another principal",
    ],
)
async def test_a_state_is_good_for_its_own_request_only(
    suspend: bool, change: dict[str, Any]
) -> None:
    """Whoever takes it elsewhere gets an error and no question (`MRT-07`, `MRT-08`, `MRT-17`)."""
    call = Retries(
        rounds(suspend=suspend), two_questions, arguments={"to": "bob"}, principal="alice"
    )
    first = await call.call()
    if "params" in change:
        p = change["params"]
        change = {
            "params": t.CallToolRequestParams(
                name=p.name, arguments=p.arguments, request_state=first.request_state
            )
        }
    with pytest.raises(t.McpError) as caught:
        await call.call({}, first.request_state, **change)
    assert caught.value.code == t.INVALID_PARAMS
    assert list(asked(await call.retry(first, "Monday")).values()) == ["Which seat on Monday?"]


@both_ways
async def test_arguments_written_otherwise_are_the_same_arguments(suspend: bool) -> None:
    """Blanks and the order of keys are no part of what was asked (`MRT-14`)."""
    call = Retries(rounds(suspend=suspend), two_questions, arguments={"a": 1, "b": [2]})
    first = await call.call()
    call.params = t.CallToolRequestParams(name="x", arguments=Raw(b'{ "b":[2],\n"a":1 }'))
    assert list(asked(await call.retry(first, "Monday")).values()) == ["Which seat on Monday?"]


@both_ways
@given(at=st.integers(0, 10_000), bit=st.integers(0, 6))
async def test_a_state_that_was_changed_is_an_error(suspend: bool, at: int, bit: int) -> None:
    """One letter of it is enough, wherever; the answers that come with it are not looked at
    (`MRT-06`, `MRT-07`)."""
    call = Retries(rounds(suspend=suspend), two_questions)
    first = await call.call()
    state = first.request_state or ""
    n = at % (len(state) - 1)  # the last letter may hold bits that no byte is made of
    changed = state[:n] + chr(ord(state[n]) ^ 1 << bit) + state[n + 1 :]
    with pytest.raises(t.McpError) as caught:
        await call.call({key: 5 for key in asked(first)}, changed)
    assert (caught.value.code, "requestState" in caught.value.message) == (t.INVALID_PARAMS, True)
    await call.rounds.aclose()


@both_ways
async def test_a_state_expires(suspend: bool) -> None:
    """By the clock on the wall; the words say what to do (`MRT-08`, `MRT-10`)."""
    now = [1000.0]
    call = Retries(rounds(suspend=suspend, seconds=60, wall_clock=lambda: now[0]), two_questions)
    first = await call.call()
    now[0] += 61
    with pytest.raises(t.McpError, match="expired"):
        await call.retry(first, "Monday")
    await call.rounds.aclose()


@both_ways
async def test_the_client_is_shown_no_answers_of_others(suspend: bool) -> None:
    """The journal travels sealed: neither questions nor answers can be read from the state
    (`MRT-06`)."""
    call = Retries(rounds(suspend=suspend), two_questions)
    second = await call.retry(await call.call(), "Monday")
    assert "Monday" not in (second.request_state or "")


@both_ways
async def test_what_a_tool_raises_ends_the_call_in_any_round(suspend: bool) -> None:
    """As it was raised; nothing is left (`MRT-11`)."""

    async def body(x: Exchange) -> str:
        if await answer_of(x, "Fail?") == "yes":
            raise t.McpError(-32000, "as you wish")
        raise ValueError("it broke")

    house = rounds(suspend=suspend)
    call = Retries(house, body)
    with pytest.raises(t.McpError, match="as you wish"):
        await call.retry(await call.call(), "yes")
    with pytest.raises(ValueError, match="it broke"):
        await call.retry(await call.call(), "no")
    assert len(house) == 0


CAPABILITIES: list[tuple[Any, Any, str | None]] = [
    (form("?"), {"elicitation": {}}, None),
    (form("?"), {"elicitation": {"form": {}}}, None),
    (form("?"), {"elicitation": {"form": {}, "url": {}}}, None),
    (form("?"), {"elicitation": {"url": {}}}, "elicitation.form"),
    (form("?"), {}, "elicitation.form"),
    (t.ElicitRequest(t.ElicitRequestParams(message="?")), {"elicitation": {}}, None),
    (
        t.ElicitRequest(t.ElicitRequestParams(message="?", mode="url", url="x:y")),
        {"elicitation": {"url": {}}},
        None,
    ),
    (
        t.ElicitRequest(t.ElicitRequestParams(message="?", mode="url", url="x:y")),
        {"elicitation": {}},
        "elicitation.url",
    ),
    (
        t.ElicitRequest(t.ElicitRequestParams(message="?", mode="url", url="x:y")),
        {},
        "elicitation.url",
    ),
    (
        t.CreateMessageRequest(t.CreateMessageRequestParams(max_tokens=1, messages=[])),
        {"sampling": {}},
        None,
    ),
    (
        t.CreateMessageRequest(t.CreateMessageRequestParams(max_tokens=1, messages=[])),
        {},
        "sampling",
    ),
    (
        t.CreateMessageRequest(
            t.CreateMessageRequestParams(max_tokens=1, messages=[], tool_choice=t.ToolChoice())
        ),
        {"sampling": {}},
        "sampling.tools",
    ),
    (
        t.CreateMessageRequest(t.CreateMessageRequestParams(max_tokens=1, messages=[], tools=[])),
        {"sampling": {}},
        None,
    ),
    (t.ListRootsRequest(), {"roots": {}}, None),
    (t.ListRootsRequest(), {"elicitation": {}, "sampling": {}}, "roots"),
]


@pytest.mark.parametrize("question, declared, lacking", CAPABILITIES, ids=range(len(CAPABILITIES)))
def test_what_a_client_must_have_declared_to_be_asked(
    question: Any, declared: dict[str, Any], lacking: str | None
) -> None:
    """And what it would have to declare, in the shape that the error wants (`MRT-05`, `ERR-08`,
    `LIF-16`, `LIF-17`, `ELI-03`, `STA-17`)."""
    found = required_capability(question, msgspec.convert(declared, t.ClientCapabilities))
    assert (found and found[0]) == lacking
    if found is not None:
        assert required_capability(question, found[1]) is None


async def test_an_older_client_is_not_led_through_rounds() -> None:
    """It is asked directly; whatever it puts into its request for rounds is not looked at
    (`MRT-06`)."""

    class Straight:
        async def ask(self, request: Any, key: str | None = None) -> Any:
            return t.ElicitResult(action="accept", content={"words": "straight"})

        async def once(self, name: str, do: Any) -> Any:
            return await do()

    async def body(x: Exchange) -> str:
        assert x.params.request_state is None
        assert x.params.input_responses is None
        return await answer_of(x, "?")

    house: SuspendedCalls = rounds()
    call = Retries(house, body)
    call.caller = Caller(R4, ABLE)
    assert said(await call.call(asker=Straight())) == "straight"
    assert said(await call.call({"x": words("forged")}, "forged", asker=Straight())) == "straight"
    assert len(house) == 0
