"""The prompter: every question ends with an answer that fits, or with none, and the time in which a
person is asked is known.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.types import CallToolResult, CreateMessageRequestParams, CreateMessageResult
from interlock_apps.fleet.events import Event, QuestionAnswered, QuestionAsked
from interlock_apps.fleet.questions import (
    CallQuestion,
    Decision,
    FeatureChange,
    Filled,
    FormQuestion,
    NotAnswered,
    PinQuestion,
    ResultQuestion,
    SampledQuestion,
    SampleQuestion,
    StartQuestion,
    UrlQuestion,
)
from interlock_apps.host.prompter import FULL, Prompter
from tests.host.scene import NO, YES, Sitting, turns

RESULT = CreateMessageResult(role="assistant", content=[], model="m")
QUESTIONS = [
    StartQuestion(id="start", command="python server.py"),
    PinQuestion(id="pin", changes=(FeatureChange(kind="tool", name="add", was="", now="{}"),)),
    CallQuestion(id="call", tool="add", title="Add"),
    ResultQuestion(id="result", tool="add", title="Add", result=CallToolResult(content=[])),
    SampleQuestion(
        id="sample", request=CreateMessageRequestParams(messages=[], max_tokens=1), model="m"
    ),
    SampledQuestion(id="sampled", model="m", result=RESULT),
    FormQuestion(id="form", message="Who?"),
    UrlQuestion(id="url", message="There", url="https://example.com", host="example.com"),
]
FILLED = Filled(action="accept", content={})


def prompter(person: Any = None, **options: Any) -> tuple[Prompter, list[Event]]:
    received: list[Event] = []
    made = Prompter(received.append, **options)
    if person is not None:
        made.person = person
    return made, received


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
async def test_every_question_takes_its_own_kind_of_answer(question: Any) -> None:
    """A form or a page is filled in, all else is decided; another kind of answer is none, and so is
    something that is no answer.
    """
    form = question.id in ("form", "url")
    for answer, fits in [
        (YES, not form),
        (NO, not form),
        (FILLED, form),
        (NotAnswered(words="later"), True),
        (True, False),
        (None, False),
    ]:
        one, received = prompter(Sitting(**{question.id: answer}))
        came = await one.ask(question)
        assert came == (
            answer if fits else NotAnswered(words="The answer does not fit the question.")
        )
        by = "nobody" if isinstance(came, NotAnswered) else "person"
        assert received == [
            QuestionAsked(session="", question=question),
            QuestionAnswered(session="", question=question.id, answer=came, by=by),
        ]
        assert not one.open


async def test_without_anybody_nothing_is_allowed() -> None:
    one, received = prompter()
    for question in QUESTIONS:
        assert await one.ask(question) == NotAnswered(words="No user can be asked.")
        assert await one.decide(question) == Decision(allow=False, reason="No user can be asked.")
    assert all(event.by == "nobody" for event in received if isinstance(event, QuestionAnswered))


async def test_a_person_that_fails_has_not_said_yes() -> None:
    one, received = prompter(Sitting(call=RuntimeError("no screen")))
    assert await one.ask(QUESTIONS[2]) == NotAnswered(
        words="The question could not be shown (RuntimeError)."
    )
    assert not (await one.decide(QUESTIONS[2])).allow
    assert not one.open
    assert len(received) == 4


async def test_a_face_that_gives_up_has_not_cancelled_the_conversation() -> None:
    """A future of its own that it cancels is no cancellation of who asked."""

    async def gone(_: Any) -> Any:
        waiting: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        waiting.cancel()
        return await waiting

    one, _ = prompter(Sitting(call=gone))
    assert await one.ask(QUESTIONS[2]) == NotAnswered(words="The question is no longer open.")


async def test_a_question_that_became_moot_is_withdrawn() -> None:
    """The person's side is cancelled, and everybody hears that the question is over."""
    ends: list[str] = []

    async def wait(question: Any) -> Any:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ends.append(question.id)

    one, received = prompter(Sitting(call=wait))
    asking = asyncio.ensure_future(one.ask(QUESTIONS[2]))
    await turns()
    assert list(one.open) == ["call"]
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert ends == ["call"]
    assert not one.open
    assert received[-1] == QuestionAnswered(
        session="",
        question="call",
        answer=NotAnswered(words="The question is no longer open."),
        by="nobody",
    )


async def test_only_so_many_are_open_at_once() -> None:
    """One more is a no, at once, and is seen; when one is answered there is room again."""
    gate = asyncio.Event()

    async def wait(question: Any) -> Any:
        await gate.wait()
        return YES

    person = Sitting(call=wait)
    one, received = prompter(person, most_open=2)
    first = [
        asyncio.ensure_future(one.ask(CallQuestion(id=one.new_id(), tool="t", title="t")))
        for _ in range(2)
    ]
    await turns()
    assert await one.ask(CallQuestion(id=one.new_id(), tool="t", title="t")) == NotAnswered(
        words=FULL
    )
    assert len(person.asked) == 2
    assert [type(event) for event in received] == [
        QuestionAsked,
        QuestionAsked,
        QuestionAsked,
        QuestionAnswered,
    ]
    gate.set()
    assert await asyncio.gather(*first) == [YES, YES]
    assert await one.ask(CallQuestion(id=one.new_id(), tool="t", title="t")) == YES


async def test_the_person_may_change_while_the_host_runs() -> None:
    one, _ = prompter()
    assert isinstance(await one.ask(QUESTIONS[2]), NotAnswered)
    one.person = Sitting(call=YES)
    assert await one.ask(QUESTIONS[2]) == YES


class Ticking(asyncio.SelectorEventLoop):
    """A loop whose clock goes only when the test says so."""

    now = 100.0

    def time(self) -> float:
        return self.now


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.integers(1, 9)), max_size=8)
)
def test_time_in_which_somebody_is_asked_counts_once(spans: list[tuple[str, int, int]]) -> None:
    """However questions of a conversation overlap: the seconds in which at least one was open, of
    each conversation for itself.
    """
    loop = Ticking()

    async def play() -> dict[str, float]:
        gates: dict[str, asyncio.Event] = {}

        async def wait(question: Any) -> Any:
            await gates[question.id].wait()
            return YES

        one, _ = prompter(Sitting(call=wait))
        asking: list[asyncio.Future[Any]] = []
        for moment in range(20):
            for index, (session, begin, length) in enumerate(spans):
                if moment == begin:
                    gates[str(index)] = asyncio.Event()
                    asking.append(
                        asyncio.ensure_future(
                            one.ask(
                                CallQuestion(id=str(index), session=session, tool="t", title="t")
                            )
                        )
                    )
                if moment == begin + length:
                    gates[str(index)].set()
            await turns(8)
            for session in "abc":
                assert one.is_asking(session) == any(
                    s == session and b <= moment < b + n for s, b, n in spans
                )
                assert one.asked_seconds(session) == open_until(moment, session)
            loop.now += 1
        await asyncio.gather(*asking)
        return {session: one.asked_seconds(session) for session in "abc"}

    def open_until(moment: int, session: str) -> float:
        return float(
            len(
                {
                    at
                    for s, begin, length in spans
                    if s == session
                    for at in range(begin, begin + length)
                    if at < moment
                }
            )
        )

    try:
        assert loop.run_until_complete(play()) == {
            session: open_until(99, session) for session in "abc"
        }
    finally:
        loop.close()
