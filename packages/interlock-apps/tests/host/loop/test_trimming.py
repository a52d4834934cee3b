"""What a model still sees of a long conversation: the rules in their order, and what they never
touch.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.types import (
    ImageContent,
    SamplingMessage,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)
from interlock_apps.host.loop import tokens
from interlock_apps.host.loop.context_window import GONE, RECENT, ContextWindow, blocks, turns

PICTURE = ImageContent(data="aGk=", mime_type="image/png")


def person(text: str, *more: Any) -> SamplingMessage:
    return SamplingMessage(role="user", content=[TextContent(text=text), *more])


def model(text: str, *more: Any) -> SamplingMessage:
    return SamplingMessage(role="assistant", content=[TextContent(text=text), *more])


def step(n: int, size: int, *more: Any) -> list[SamplingMessage]:
    use = ToolUseContent(id=f"u{n}", name="t", input={})
    result = ToolResultContent(
        tool_use_id=f"u{n}",
        content=[TextContent(text="r" * size), *more],
        structured_content={"big": "r" * size},
    )
    return [model(f"step {n}", use), SamplingMessage(role="user", content=[result])]


def text_of(messages: list[SamplingMessage]) -> str:
    return " ".join(str(block) for message in messages for block in blocks(message))


def test_what_fits_is_left_alone() -> None:
    messages = [person("a"), model("b")]
    assert ContextWindow().shown(messages, 1_000) == (messages, [])


def test_the_rules_come_in_their_order() -> None:
    """Pictures first, then long results; the last messages stay whole whatever happens."""
    messages = [
        person("go"),
        *step(1, 2_000, PICTURE),
        *step(2, 2_000, PICTURE),
        *step(3, 2_000),
        *step(4, 2_000),
    ]
    size = tokens.of_messages(messages)
    shown, trims = ContextWindow().shown(messages, size - 100)
    assert [trim.rule for trim in trims] == ["old-media"]
    assert PICTURE not in shown[2].content[0].content
    shown, trims = ContextWindow().shown(messages, size // 2)
    assert [trim.rule for trim in trims] == ["old-media", "old-results"]
    assert "more characters were left out" in text_of(shown[:3])
    assert shown[-RECENT:] == messages[-RECENT:]
    assert all(trim.tokens > 0 and trim.words for trim in trims)


def test_old_turns_go_whole_and_are_told_of() -> None:
    messages = [
        each
        for n in range(8)
        for each in (person(f"question {n} " + "q " * 400), model(f"answer {n} " + "a " * 400))
    ]
    shown, trims = ContextWindow(keep=2).shown(messages, 1_500)
    assert [trim.rule for trim in trims] == ["old-turns"]
    assert shown[0].role == "user"
    assert blocks(shown[0])[0] == TextContent(text=GONE)
    assert "question 7" in text_of(shown)
    assert "question 6" in text_of(shown)
    assert "question 0 " not in text_of(shown)


def test_a_turn_of_many_steps_loses_its_earlier_ones() -> None:
    messages = [person("the task"), *[each for n in range(40) for each in step(n, 390)]]
    shown, trims = ContextWindow().shown(messages, 2_500)
    assert "old-steps" in [trim.rule for trim in trims]
    assert "the task" in text_of(shown[:1])
    assert shown[-RECENT:] == messages[-RECENT:]


def test_what_is_left_out_stays_so() -> None:
    """`HST-06`: the beginning does not change from step to step, so that a provider can keep it."""
    trimming = ContextWindow()
    messages = [person("go"), *[each for n in range(20) for each in step(n, 1_000)]]
    first, trims = trimming.shown(messages, 3_000)
    assert trims
    again, none = trimming.shown([*messages, *step(21, 10)], 3_000)
    assert none == []
    assert again[: len(first)] == first


def test_where_turns_begin() -> None:
    messages = [person("a"), *step(1, 1), model("b"), person("c"), model("d")]
    assert turns(messages) == [0, 4]


MESSAGES = st.lists(
    st.one_of(
        st.builds(lambda n: [person("p" * n), model("m" * n)], st.integers(1, 900)),
        st.builds(lambda n: step(n, n), st.integers(1, 900)),
    ),
    max_size=12,
).map(
    lambda parts: [person("first"), model("ok"), *[message for part in parts for message in part]]
)


@given(MESSAGES, st.integers(200, 4_000))
def test_uses_and_results_are_never_parted(messages: list[SamplingMessage], room: int) -> None:
    shown, _ = ContextWindow().shown(messages, room)
    wanted: list[str] = []
    for message in shown:
        results = [
            block.tool_use_id for block in blocks(message) if isinstance(block, ToolResultContent)
        ]
        assert results == wanted
        wanted = [block.id for block in blocks(message) if isinstance(block, ToolUseContent)]
    assert shown[0].role == "user"


@given(
    st.lists(st.tuples(MESSAGES, st.integers(200, 4_000)), min_size=1, max_size=6),
    st.booleans(),
)
def test_the_size_is_that_of_what_is_shown(
    parts: list[tuple[list[SamplingMessage], int]], pictures: bool
) -> None:
    """However the conversation grows, and whichever rules have shortened it."""
    window = ContextWindow()
    messages: list[SamplingMessage] = []
    for n, (more, room) in enumerate(parts):
        messages += more
        if pictures:
            messages += step(1000 + n, 10, PICTURE)
        shown, _ = window.shown(messages, room)
        assert window.size == tokens.of_messages(shown)
        again, none = window.shown(messages, max(room, window.size))
        assert (again, none) == (shown, [])


@pytest.mark.parametrize("length", [10, 100, 1_000, 5_000])
def test_a_step_estimates_only_new_messages(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the conversation is."""
    counted: list[SamplingMessage] = []
    estimate = tokens.of_message
    monkeypatch.setattr(
        tokens, "of_message", lambda message: (counted.append(message), estimate(message))[1]
    )
    window = ContextWindow()
    messages = [person("go"), *[each for n in range(length // 2) for each in step(n, 10)]]
    window.shown(messages, 10_000_000)
    for n in range(3):
        counted.clear()
        messages += step(length + n, 10)
        shown, _ = window.shown(messages, 10_000_000)
        assert counted == messages[-2:]
        assert shown == messages


def test_another_conversation_is_counted_anew() -> None:
    """A shorter one, or one with other messages."""
    window = ContextWindow()
    messages = [person("a"), *step(1, 100)]
    window.shown(messages, 10_000)
    for other in (messages[:1], [person("b"), model("c")], [*messages, person("d")]):
        shown, _ = window.shown(other, 10_000)
        assert shown == other
        assert window.size == tokens.of_messages(other)
