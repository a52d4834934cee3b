"""The model that says what it was told to."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.models.interface import Delta, ModelAnswer, ModelFailure, Usage
from interlock.models.scripted import Scripted, call
from interlock.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    TextContent,
    ToolUseContent,
)
from tests.models.asking import received, request, said, text_of


async def test_texts_and_calls() -> None:
    """SAM-05: text word by word, calls with ids of their own, the whole at the end, requests as
    they came.
    """
    model = Scripted(
        "Hello my friend.", ["I look.", call("weather", city="Paris"), call("weather", city="Rome")]
    )
    first = request()
    second = request(said("user", "And?"))
    deltas, last = await received(model, first)
    assert [delta.text for delta in deltas] == ["Hello", " my", " friend."]
    assert last.result.content == [TextContent("Hello my friend.")]
    assert last.result.stop_reason == "endTurn"
    deltas, last = await received(model, second)
    uses = [block for block in last.result.content if isinstance(block, ToolUseContent)]
    assert [(use.name, use.input) for use in uses] == [
        ("weather", {"city": "Paris"}),
        ("weather", {"city": "Rome"}),
    ]
    assert len({use.id for use in uses}) == 2
    assert last.result.stop_reason == "toolUse"
    assert model.requests == [first, second]
    assert model.left == 0
    with pytest.raises(ModelFailure, match="no answer left"):
        await received(model, first)


@given(st.text())
def test_nothing_of_a_text_is_lost(text: str) -> None:
    """SAM-05: the pieces together are the text."""
    deltas, _ = asyncio.run(received(Scripted(text), request()))
    assert text_of(deltas) == text


async def test_functions_results_and_failures() -> None:
    """SAM-05: an answer may depend on the request, be whole already, or be a failure."""

    async def echo(params: CreateMessageRequestParams) -> str:
        return f"{len(params.messages)} messages"

    whole = ModelAnswer(
        CreateMessageResult(
            role="assistant", content=TextContent("So."), model="x", stop_reason="maxTokens"
        ),
        Usage(input=3),
    )
    failure = ModelFailure("Busy.", "overloaded")
    model = Scripted(
        echo, whole, failure, lambda params: call("t", a=params.max_tokens), "Bye.", forever=True
    )
    assert text_of((await received(model, request()))[0]) == "1 messages"
    assert (await received(model, request()))[1] is whole
    with pytest.raises(ModelFailure, match=r"Busy\."):
        await received(model, request())
    assert (await received(model, request()))[1].result.content[0].input == {"a": 100}
    for _ in range(3):
        assert text_of((await received(model, request()))[0]) == "Bye."


async def test_stopping_it_anywhere() -> None:
    """CAN-01: a test can hold it before a piece; who stops listening is counted."""
    go = asyncio.Event()

    async def before(number: int) -> None:
        if number == 1:
            await go.wait()

    model = Scripted("one two three", before=before, forever=True)
    pieces = model.stream(request())
    assert await anext(pieces) == Delta("text", "one")
    await pieces.aclose()
    assert model.closed == 1
    go.set()
    await received(model, request())
    assert model.closed == 1
