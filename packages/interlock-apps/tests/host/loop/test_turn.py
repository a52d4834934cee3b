"""The turn as a table: what it asks for, what it is sent, and how it ends; no model, no server, no
clock.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.models.interface import ModelAnswer, ModelFacts, ModelFailure, Usage
from interlock.types import (
    CreateMessageResult,
    SamplingMessage,
    TextContent,
    Tool,
    ToolResultContent,
    ToolUseContent,
)
from interlock_apps.fleet.events import ModelAsked, ModelFailed, ModelSaid, Trimmed
from interlock_apps.host.loop import tokens
from interlock_apps.host.loop.budget import Budget
from interlock_apps.host.loop.context_window import ContextWindow, blocks
from interlock_apps.host.loop.turn import (
    UNREADABLE,
    AskModel,
    CallTools,
    ModelContext,
    PublishEvent,
    TurnState,
    TurnStopped,
    turn,
)

ADD = Tool(name="a__add", input_schema={"type": "object"})


def said(*content: Any, stop: str | None = None) -> ModelAnswer:
    made = [TextContent(text=each) if isinstance(each, str) else each for each in content]
    return ModelAnswer(
        CreateMessageResult(role="assistant", content=made, model="m", stop_reason=stop),
        Usage(input=10, output=5),
    )


def use(id: str, name: str = "a__add", **arguments: Any) -> ToolUseContent:
    return ToolUseContent(id=id, name=name, input=arguments)


def result(id: str, text: str = "3") -> ToolResultContent:
    return ToolResultContent(tool_use_id=id, content=[TextContent(text=text)])


def talk(
    *messages: str, budget: Budget | None = None, facts: ModelFacts | None = None
) -> TurnState:
    budget = budget or Budget()
    return TurnState(
        session="s",
        model="m",
        facts=facts or ModelFacts(),
        budget=budget,
        messages=[
            SamplingMessage(role="user", content=[TextContent(text=each)])
            for each in messages or ("hello",)
        ],
        trimming=ContextWindow(budget.keep),
        offer=lambda: ModelContext(
            "system", (ADD,), tokens.of_text("system") + tokens.of_tools([ADD])
        ),
    )


class Played:
    """A turn played against answers: of the model one after the other, of tools always the same."""

    def __init__(
        self, talk: TurnState, *answers: ModelAnswer | ModelFailure | TurnStopped, tools: str = "3"
    ) -> None:
        self.talk = talk
        self.events = []
        self.requests = []
        self.called = []
        steps = turn(talk)
        left = list(answers)
        came = None
        try:
            while True:
                step = steps.send(came)
                came = None
                if isinstance(step, PublishEvent):
                    self.events.append(step.event)
                elif isinstance(step, AskModel):
                    self.requests.append(step.request)
                    came = left.pop(0)
                    if isinstance(came, TurnStopped):
                        steps.throw(came)
                else:
                    assert isinstance(step, CallTools)
                    self.called.append(step.uses)
                    came = [result(each.id, tools) for each in step.uses]
                    if left and isinstance(left[0], TurnStopped) and left[0].reason == "seconds":
                        steps.throw(left.pop(0))
        except StopIteration as end:
            self.ended = end.value
        self.left = left

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def whole(messages: list[SamplingMessage]) -> bool:
    """Whether every use of a tool is followed by its result, as providers demand (`SAM-15`)."""
    wanted: list[str] = []
    for message in messages:
        results = [
            block.tool_use_id for block in blocks(message) if isinstance(block, ToolResultContent)
        ]
        if wanted != results:
            return False
        wanted = [block.id for block in blocks(message) if isinstance(block, ToolUseContent)]
    return not wanted


def test_an_answer_ends_the_turn() -> None:
    played = Played(talk(), said("hi"))
    assert (played.ended.reason, played.ended.usage) == ("done", Usage(input=10, output=5))
    assert [m.role for m in played.talk.messages] == ["user", "assistant"]
    assert [type(event) for event in played.events] == [ModelAsked, ModelSaid]
    assert played.requests[0].system_prompt == "system"
    assert played.requests[0].tools == [ADD]


def test_what_tools_give_goes_back_to_the_model() -> None:
    played = Played(talk(), said("I add.", use("1", a=1), use("2", a=2)), said("done"))
    assert [[u.id for u in uses] for uses in played.called] == [["1", "2"]]
    assert played.called[0][0].arguments == {"a": 1}
    assert [m.role for m in played.talk.messages] == ["user", "assistant", "user", "assistant"]
    assert whole(played.talk.messages)
    assert played.requests[1].messages[-1].content == [result("1"), result("2")]
    assert played.ended.usage == Usage(input=20, output=10)


@pytest.mark.parametrize(
    "budget, reason, steps",
    [
        (Budget(steps=1), "steps", 1),
        (Budget(steps=3), "steps", 3),
        (Budget(tokens=16), "tokens", 2),
        (Budget(tokens=15), "tokens", 1),
    ],
)
def test_a_turn_that_never_ends_is_ended(budget: Budget, reason: str, steps: int) -> None:
    """`SAM-18`: loops are bounded; what the tools gave stays in the conversation, so that it can go
    on.
    """
    played = Played(talk(budget=budget), *[said(use(str(n))) for n in range(9)])
    assert (played.ended.reason, len(played.requests)) == (reason, steps)
    assert played.ended.words
    assert whole(played.talk.messages)


def test_too_many_calls_in_one_step() -> None:
    played = Played(
        talk(budget=Budget(calls=2)), said(*[use(str(n)) for n in range(5)]), said("ok")
    )
    assert [u.id for u in played.called[0]] == ["0", "1"]
    assert whole(played.talk.messages)
    late = played.talk.messages[2].content
    assert isinstance(late, list)
    assert [block.is_error for block in late] == [False, False, True, True, True]


@pytest.mark.parametrize(
    "answer, reason, words",
    [
        (said("", stop="maxTokens"), "done", "cut"),
        (said("part", stop="maxTokens"), "done", "cut"),
        (said(stop="refusal"), "refused", "refuses"),
        (said(), "done", "gave an empty answer"),
        (said("fine"), "done", ""),
        (ModelFailure("no key", "unauthorized"), "failed", "no key"),
        (ModelFailure("not that", "refused"), "refused", "not that"),
        (ModelFailure("broke", "cut"), "failed", "broke"),
        (ModelFailure("later", "rate_limited"), "failed", "later"),
    ],
)
def test_ways_to_end(answer: ModelAnswer | ModelFailure, reason: str, words: str) -> None:
    played = Played(talk(), answer)
    assert played.ended.reason == reason
    assert words in played.ended.words
    assert isinstance(answer, ModelAnswer) or [event.kind for event in played.of(ModelFailed)] == [
        answer.kind
    ]


def test_a_conversation_that_is_too_long_is_tried_once_more_with_less_of_it() -> None:
    long = talk(facts=ModelFacts(context=3_000, output=500))
    for n in range(6):
        long.messages += [
            SamplingMessage(role="assistant", content=[TextContent(text="x " * 300)]),
            SamplingMessage(role="user", content=[TextContent(text=f"{n} " * 300)]),
        ]
    played = Played(long, ModelFailure("too long", "too_long"), said("ok"))
    assert played.ended.reason == "done"
    first, second = (
        sum(len(str(m.content)) for m in request.messages) for request in played.requests
    )
    assert second < first
    assert played.of(Trimmed)
    assert (
        Played(
            talk(), ModelFailure("long", "too_long"), ModelFailure("long", "too_long")
        ).ended.reason
        == "failed"
    )


@pytest.mark.parametrize("reason", ["cancelled", "seconds"])
def test_cancelled_while_the_model_speaks(reason: str) -> None:
    played = Played(talk(), TurnStopped(reason))
    assert played.ended.reason == reason
    assert [m.role for m in played.talk.messages] == ["user"]


def test_cancelled_while_tools_run() -> None:
    """The uses get results that say so: otherwise no provider would take the conversation
    any more.
    """
    played = Played(talk(), said("I add", use("1"), use("2")), TurnStopped("seconds"))
    assert played.ended.reason == "seconds"
    assert whole(played.talk.messages)
    last = played.talk.messages[-1].content
    assert isinstance(last, list)
    assert all(isinstance(block, ToolResultContent) and block.is_error for block in last)


def test_arguments_that_are_no_json_are_told() -> None:
    bad = ToolUseContent(id="1", name="a__add", input={}, meta={UNREADABLE: '{"a": '})
    assert Played(talk(), said(bad), said("sorry")).called[0][0].unreadable == '{"a": '


def test_a_model_without_tools_gets_none() -> None:
    played = Played(talk(facts=ModelFacts(tools=False)), said("hi"))
    assert played.requests[0].tools is None
    assert played.requests[0].tool_choice is None


def test_an_answer_is_never_longer_than_allowed() -> None:
    assert Played(talk(budget=Budget(answer=100)), said("hi")).requests[0].max_tokens == 100
    assert (
        Played(talk(facts=ModelFacts(output=50), budget=Budget(answer=100)), said("hi"))
        .requests[0]
        .max_tokens
        == 50
    )


ANSWERS = st.one_of(
    st.builds(said, st.text(max_size=5)),
    st.builds(lambda n: said("x", *[use(f"u{i}") for i in range(n)]), st.integers(0, 4)),
    st.builds(lambda: said(stop="refusal")),
    st.sampled_from(
        [ModelFailure("a", "cut"), ModelFailure("b", "too_long"), ModelFailure("c", "refused")]
    ),
    st.builds(TurnStopped, st.sampled_from(["cancelled", "seconds"])),
)


@given(st.lists(ANSWERS, max_size=8), st.integers(1, 6), st.integers(1, 3))
def test_however_a_turn_goes_the_conversation_is_whole(
    answers: list[Any], steps: int, calls: int
) -> None:
    """`SAM-14`, `SAM-15`: after any answers, in any order, every use has its result and the turn
    has an end with a reason.
    """
    played = Played(talk(budget=Budget(steps=steps, calls=calls)), *answers, *[said("end")] * 8)
    assert whole(played.talk.messages)
    assert played.ended.reason in ("done", "cancelled", "steps", "failed", "refused", "seconds")
    assert len(played.requests) <= 2 * steps
