"""Integers that JavaScript rounds, on their way to the page and back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_apps.fleet.questions import CallQuestion, Decision
from interlock_apps.host.pages.state import plain
from interlock_apps.host.pages.user import PageUser
from interlock_apps.web.integers import MOST_EXACT, restored

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def on_the_page(arguments: dict[str, Any]) -> Any:
    """The arguments of a question as the page gets them."""
    question = CallQuestion(id="c1", server="s", tool="t", title="T", arguments=arguments)
    return plain(question)["arguments"]


@pytest.mark.parametrize(
    "value, shown",
    [
        (MOST_EXACT, MOST_EXACT),
        (-MOST_EXACT, -MOST_EXACT),
        (MOST_EXACT + 1, "9007199254740992"),
        (-MOST_EXACT - 2, "-9007199254740993"),
        (10**30, "1" + "0" * 30),
        (True, True),
        (1.5, 1.5),
        ("9007199254740993", "9007199254740993"),
    ],
)
def test_what_the_page_cannot_hold_is_text(value: Any, shown: Any) -> None:
    """Wherever it is among the arguments; all else is as it is (`TOL-24`)."""
    assert on_the_page({"a": [{"b": value}]}) == {"a": [{"b": shown}]}
    assert type(on_the_page({"a": value})["a"]) is type(shown)


@given(st.dictionaries(st.text(), VALUES))
def test_what_nobody_touched_comes_back_as_it_was(arguments: dict[str, Any]) -> None:
    """Whatever the arguments are."""
    assert restored(on_the_page(arguments), arguments) == arguments


@pytest.mark.parametrize(
    "edited, given_, back",
    [
        ({"a": "9007199254740994"}, {"a": 9007199254740993}, {"a": "9007199254740994"}),
        ({"a": "9007199254740993"}, {"a": "9007199254740993"}, {"a": "9007199254740993"}),
        ({"b": "9007199254740993"}, {"a": 9007199254740993}, {"b": "9007199254740993"}),
        ({"a": ["9007199254740993", "x"]}, {"a": [2**53 + 1]}, {"a": [2**53 + 1, "x"]}),
        ({"a": {"b": 1}}, {"a": [1]}, {"a": {"b": 1}}),
        ({"a": [1]}, {"a": None}, {"a": [1]}),
    ],
)
def test_what_a_person_wrote_is_left_alone(edited: Any, given_: Any, back: Any) -> None:
    """Only the same digits in the same place are the integer that was there."""
    assert restored(edited, given_) == back


async def test_an_edited_call_keeps_its_large_integers() -> None:
    """A person changes another argument, and the page sends all of them (`TOL-24`)."""
    person = PageUser()
    arguments = {"account": 9007199254740993, "to": "Ada"}
    question = CallQuestion(id="c1", server="s", tool="t", title="T", arguments=arguments)
    waiting = asyncio.create_task(person.answer(question))
    await asyncio.sleep(0)
    edited = {"account": "9007199254740993", "to": "Bob"}
    assert person.settle("c1", Decision(allow=True, arguments=edited))
    answer = await waiting
    assert isinstance(answer, Decision)
    assert answer.arguments == {"account": 9007199254740993, "to": "Bob"}
