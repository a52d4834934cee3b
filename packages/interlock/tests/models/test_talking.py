"""The three adapters against a site that speaks their interfaces: what is the same for all
of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.models.answer_builder import UNREADABLE
from interlock.models.interface import Delta, ModelAnswer, ModelFailure, Usage
from interlock.types import TextContent, ToolResultContent, ToolUseContent
from tests.models.asking import (
    ADAPTERS,
    KEY,
    InPieces,
    Pauses,
    collect,
    received,
    request,
    said,
    text_of,
)
from tests.models.providers import STREAMED, Act, Answer, Site, event

TALK = Answer(
    ("Let me look. ", ("weather", {"city": "Paris"}), ("weather", {"city": "Zürich"})),
    thought="They want the weather",
)
everybody = pytest.mark.parametrize("speaks", list(ADAPTERS))
both_ways = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site(TALK) as site:
        yield site


def adapter(speaks: str, site: Site, **more: Any) -> Any:
    more = {"model": "model-1", "key": KEY, "sleep": Pauses(), **more}
    return ADAPTERS[speaks]("mine", url=getattr(site, speaks), **more)


@everybody
@both_ways
async def test_what_a_model_says_comes_in_pieces_and_whole(
    speaks: str, stream: bool, site: Site
) -> None:
    """SAM-05: text, thinking, parallel calls, the reason for the stop, the model's name and the
    tokens.
    """
    model = adapter(speaks, site, stream=stream)
    deltas, last = await received(model, request())
    assert text_of(deltas) == "Let me look. "
    assert text_of(deltas, "thought") == "They want the weather"
    assert [block.text for block in last.result.content if isinstance(block, TextContent)] == [
        "Let me look. "
    ]
    calls = [block for block in last.result.content if isinstance(block, ToolUseContent)]
    assert [(call.name, call.input) for call in calls] == [
        ("weather", {"city": "Paris"}),
        ("weather", {"city": "Zürich"}),
    ]
    assert [(delta.text, delta.call) for delta in deltas if delta.kind == "call"] == [
        ("weather", call.id) for call in calls
    ]
    assert len({call.id for call in calls}) == 2
    assert (last.result.role, last.result.model, last.result.stop_reason) == (
        "assistant",
        "model-1",
        "toolUse",
    )
    assert last.usage == Usage(input=7, output=5, kept=2)
    if not stream:
        assert [delta.text for delta in deltas if delta.kind == "text"] == ["Let me look. "]
    await model.aclose()


@everybody
async def test_the_next_turn_brings_everything_back_to_the_same_provider_only(
    speaks: str, site: Site
) -> None:
    """SAM-21: signatures and thinking go back to who made them, and to nobody else."""
    model = adapter(speaks, site)
    _, last = await received(model, request())
    calls = [block for block in last.result.content if isinstance(block, ToolUseContent)]
    results = [
        ToolResultContent(tool_use_id=call.id, content=[TextContent("Sunny.")]) for call in calls
    ]
    params = request(
        said("user", "Hi"), said("assistant", *last.result.content), said("user", *results)
    )
    await received(model, params)
    mark = "They want the weather" if speaks == "openai" else "SIGNED"
    assert mark in json.dumps(site.asked[-1].body)
    async with Site(TALK) as elsewhere:
        for other in ADAPTERS:
            stranger = adapter(other, elsewhere)
            await received(stranger, params)
            assert mark not in json.dumps(elsewhere.asked[-1].body)
            assert "Sunny." in json.dumps(elsewhere.asked[-1].body)
            await stranger.aclose()
    await model.aclose()


@everybody
@both_ways
@pytest.mark.parametrize(
    "stops, reason",
    [
        ({"openai": "stop", "anthropic": "end_turn", "gemini": "STOP"}, "endTurn"),
        ({"openai": "length", "anthropic": "max_tokens", "gemini": "MAX_TOKENS"}, "maxTokens"),
        ({"openai": "content_filter", "anthropic": "refusal", "gemini": "SAFETY"}, "refusal"),
        ({"anthropic": "stop_sequence"}, "stopSequence"),
        ({"anthropic": "model_context_window_exceeded"}, "maxTokens"),
        ({"gemini": "RECITATION"}, "refusal"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_reasons_to_stop(
    speaks: str, stream: bool, stops: dict[str, str], reason: str
) -> None:
    """SAM-05: each provider's reasons in the words of sampling; a filter that let nothing through
    is a failure.
    """
    speaks = speaks if speaks in stops else next(iter(stops))
    stop = stops[speaks]
    async with Site(Answer(("Well.",), stop=stop), Answer((), stop=stop)) as site:
        model = adapter(speaks, site, stream=stream)
        _, last = await received(model, request())
        assert last.result.stop_reason == reason
        assert last.result.content == [TextContent("Well.")]
        if reason == "refusal":
            with pytest.raises(ModelFailure, match="refuses") as caught:
                await received(model, request())
            assert caught.value.kind == "refused"
        await model.aclose()


@everybody
async def test_a_filter_that_stops_an_answer_calls_no_tools(speaks: str) -> None:
    """SAM-06: what was cut by a filter is not acted upon."""
    stop = {"openai": "content_filter", "anthropic": "refusal", "gemini": "SAFETY"}[speaks]
    async with Site(Answer(("Well.", ("weather", {"city": "Paris"})), stop=stop)) as site:
        model = adapter(speaks, site)
        _, last = await received(model, request())
        assert last.result.content == [TextContent("Well.")]
        await model.aclose()


@everybody
async def test_ids_that_are_missing_are_made_up_and_stay_the_same(speaks: str) -> None:
    """SAM-15: each call has an id of its own, also in a conversation that had such calls before."""
    async with Site(
        Answer((("weather", {"city": "Paris"}), ("weather", {"city": "Rome"})), ids=False)
    ) as site:
        model = adapter(speaks, site)
        first = (await received(model, request()))[1].result.content
        again = (await received(model, request()))[1].result.content
        assert [block.id for block in first] == [block.id for block in again]
        later = (await received(model, request(said("user", "Hi"), said("assistant", *first))))[
            1
        ].result.content
        assert len({block.id for block in [*first, *later]}) == 4
        await model.aclose()


@pytest.mark.parametrize("speaks", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "raw", [b'{"city": "Par', b"[1]", b"city=Paris", b'{"a": NaN}', b"[" * 100_000]
)
async def test_arguments_that_are_no_object(speaks: str, raw: bytes) -> None:
    """TOL-23: arguments that cannot be read are never guessed: they are kept as they were, cut, for
    the loop to tell the model.
    """
    async with Site(Answer((raw,))) as site:
        model = adapter(speaks, site)
        [block] = (await received(model, request()))[1].result.content
        assert (block.name, block.input) == ("broken", {})
        assert raw.decode().startswith(block.meta[UNREADABLE][:100])
        assert len(block.meta[UNREADABLE]) <= 4_000
        await model.aclose()


@everybody
async def test_tool_choice_is_kept(speaks: str) -> None:
    """SAM-16:

    `none` leads to no call whatever the model does; `required` without a call is a failure.
    """
    async with Site(Answer(("So.", ("weather", {"city": "Paris"}))), Answer(("No.",))) as site:
        model = adapter(speaks, site)
        _, last = await received(model, request(mode="none"))
        assert last.result.content == [TextContent("So.")]
        assert last.result.stop_reason == "endTurn"
        with pytest.raises(ModelFailure, match="had to call a tool") as caught:
            await received(model, request(mode="required"))
        assert caught.value.kind == "bad_answer"
        await model.aclose()


@everybody
async def test_a_stream_that_is_cut_is_no_answer(speaks: str) -> None:
    """HST-01: a connection that closes before the end gives "cut", after whichever event; what came
    was told before.
    """
    events = STREAMED[speaks](TALK)
    ends = {"openai": 2, "anthropic": 1, "gemini": 0}[
        speaks
    ]  # how many events before the last already make it whole
    for number in range(len(events) - ends):
        async with Site(Act(TALK, cut=number)) as site:
            model = adapter(speaks, site)
            came: list[Any] = []
            with pytest.raises(ModelFailure, match="Ask again") as caught:
                await collect(model, came)
            assert all(isinstance(piece, Delta) for piece in came)
            assert caught.value.kind == "cut"
            assert len(site.asked) == 1
            await model.aclose()


@everybody
async def test_a_whole_answer_that_is_cut_or_none(speaks: str) -> None:
    """HST-01: half an answer is "cut"; a page, an empty object and a list are answers that nobody
    understands.
    """
    bodies = [b"<html>Welcome!</html>", {}, [], {"choices": 1, "content": 2, "candidates": 3}, b""]
    async with Site(Act(TALK, cut=20), *(Act(body=body) for body in bodies)) as site:
        model = adapter(speaks, site, stream=False)
        kinds = []
        for _ in range(6):
            with pytest.raises(ModelFailure) as caught:
                await received(model, request())
            kinds.append(caught.value.kind)
        assert kinds == ["cut", *["bad_answer"] * 5]
        await model.aclose()


@everybody
async def test_silence_ends_a_stream(speaks: str) -> None:
    """HST-01: a provider that says nothing more is not waited for without end, and its connection
    is closed.
    """
    fetch = InPieces(STREAMED[speaks](TALK)[:2], endless=True)
    model = ADAPTERS[speaks]("m", model="model-1", url="http://here", fetch=fetch, silence=0.02)
    with pytest.raises(ModelFailure, match="fell silent") as caught:
        await received(model, request())
    assert caught.value.kind == "cut"
    assert fetch.closed == 1
    whole = InPieces(
        STREAMED[speaks](TALK)[: -1 if speaks == "openai" else None], endless=True
    )  # [DONE] does not come
    model = ADAPTERS[speaks]("m", model="model-1", url="http://here", fetch=whole, silence=0.02)
    assert (await received(model, request()))[1].result.stop_reason == "toolUse"


@everybody
async def test_no_answer_at_all(speaks: str) -> None:
    """HST-01: without a head in time it is "unreachable", and not asked again, for it would take as
    long again.
    """
    async with Site(Act(hang=True)) as site:
        pauses = Pauses()
        model = adapter(speaks, site, silence=0.05, sleep=pauses)
        with pytest.raises(ModelFailure, match="did not begin to answer") as caught:
            await received(model, request())
        assert caught.value.kind == "unreachable"
        assert pauses.all == []
        await model.aclose()


@everybody
async def test_cancelling_closes_the_connection(speaks: str) -> None:
    """CAN-01: who stops reading, or is cancelled while waiting, leaves no request behind."""
    async with Site(Act(TALK, stall=4)) as site:
        model = adapter(speaks, site)
        pieces = model.stream(request())
        await anext(pieces)
        await pieces.aclose()
        await asyncio.wait_for(site.left.wait(), 5)
        site.left.clear()
        site.begun.clear()
        task = asyncio.create_task(received(model, request()))
        await site.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(site.left.wait(), 5)
        await model.aclose()


@everybody
async def test_what_may_pass_is_tried_again(speaks: str) -> None:
    """SAM-19: a rate limit and an overload are waited for, as long as the provider says, and each
    wait is told.
    """
    busy = Act(status=429, body={"error": {"message": "Slow down"}}, headers={"retry-after": "3"})
    async with Site(busy, Act(status=503, body=b"down"), TALK) as site:
        pauses = Pauses()
        model = adapter(speaks, site, sleep=pauses)
        deltas, last = await received(model, request())
        assert pauses.all == [3.0, 2.0]
        assert last.result.stop_reason == "toolUse"
        notes = [delta.text for delta in deltas if delta.kind == "note"]
        assert len(notes) == 2
        assert "Retrying in 3 s (2 of 4)" in notes[0]
        await model.aclose()


@everybody
@pytest.mark.parametrize(
    "wait, asked, slept", [("31", 1, []), ("12", 3, [12.0, 12.0]), ("0.5", 4, [0.5, 0.5, 0.5])]
)
async def test_patience_ends(speaks: str, wait: str, asked: int, slept: list[float]) -> None:
    """SAM-19: at most a few times, and 30 seconds of waiting in all; then the failure says how long
    it would take.
    """
    async with Site(Act(status=429, body={}, headers={"retry-after": wait})) as site:
        pauses = Pauses()
        model = adapter(speaks, site, sleep=pauses)
        with pytest.raises(ModelFailure, match=f"wait {wait} seconds") as caught:
            await received(model, request())
        assert (len(site.asked), pauses.all) == (asked, slept)
        assert (caught.value.kind, caught.value.status, caught.value.retry_after) == (
            "rate_limited",
            429,
            float(wait),
        )
        await model.aclose()


@everybody
async def test_nobody_there(speaks: str, site: Site) -> None:
    """HST-01: a server that is not running is tried again, and then named, with what to do."""
    pauses = Pauses()
    async with Site() as gone:
        pass
    model = adapter(speaks, gone, sleep=pauses)
    with pytest.raises(ModelFailure, match="cannot be reached.*Check the URL") as caught:
        await received(model, request())
    assert caught.value.kind == "unreachable"
    assert pauses.all == [1.0, 2.0, 4.0]
    await model.aclose()


ERRORS_IN_STREAMS: dict[str, list[tuple[Any, str, str]]] = {
    "openai": [
        (
            {"error": {"message": "The server had an error", "type": "server_error"}},
            "",
            "overloaded",
        ),
        ({"error": {"message": "Rate limit", "code": 429}}, "", "rate_limited"),
        ({"error": "something else"}, "error", "cut"),
        (
            {"object": "error", "message": "maximum context length is 10", "code": 400},
            "",
            "too_long",
        ),
    ],
    "anthropic": [
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            "error",
            "overloaded",
        ),
        (
            {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow"}},
            "error",
            "rate_limited",
        ),
        (
            {"type": "error", "error": {"type": "api_error", "message": "Internal"}},
            "error",
            "overloaded",
        ),
        (
            {
                "type": "error",
                "error": {"type": "invalid_request_error", "message": "prompt is too long"},
            },
            "error",
            "too_long",
        ),
    ],
    "gemini": [
        (
            {"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}},
            "",
            "overloaded",
        ),
        (
            {"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED"}},
            "",
            "rate_limited",
        ),
    ],
}


@pytest.mark.parametrize(
    "speaks, error, name, kind",
    [(speaks, *row) for speaks, rows in ERRORS_IN_STREAMS.items() for row in rows],
)
async def test_errors_in_the_middle_of_a_stream(
    speaks: str, error: Any, name: str, kind: str
) -> None:
    """HST-01: before the first piece what may pass is tried again; after it nothing is, for it was
    shown already.
    """
    head = STREAMED[speaks](Answer(("Hello",)))
    silent = {"openai": 1, "anthropic": 3, "gemini": 0}[speaks]  # events before the first word
    at_once = [*head[:silent], event(error, name)]
    later = [*head[: silent + 1], event(error, name)]
    async with Site(Act(stream=at_once), Act(Answer(("Hello",))), Act(stream=later)) as site:
        model = adapter(speaks, site)
        if kind in ("overloaded", "rate_limited"):
            deltas, _ = await received(model, request())
            assert [delta.kind for delta in deltas] == ["note", "text"]
        else:
            with pytest.raises(ModelFailure) as caught:
                await received(model, request())
            assert caught.value.kind == kind
            await received(model, request())
        came: list[Any] = []
        with pytest.raises(ModelFailure) as caught:
            await collect(model, came)
        assert caught.value.kind == kind
        assert came == [Delta("text", "Hello")]
        assert len(site.asked) == 3
        await model.aclose()


@everybody
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.sets(st.integers(1, 4_000), max_size=12))
async def test_streams_in_pieces_of_any_size(speaks: str, cuts: set[int]) -> None:
    """HTM-13: where the network cuts a stream changes nothing of what is heard."""
    stream = b"".join(STREAMED[speaks](TALK))
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    pieces = [stream[one:other] for one, other in pairwise(edges)]
    whole, cut, bytewise = [
        await received(
            ADAPTERS[speaks]("m", model="model-1", url="http://here", fetch=InPieces(one)),
            request(),
        )
        for one in ([stream], pieces, [stream[at : at + 1] for at in range(len(stream))])
    ]
    assert whole == cut == bytewise


@everybody
@given(
    noise=st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from([b"data: {}\n\n", b"data: []\n\n", b"data: 1\n\n", b"\n"]),
        ),
        max_size=8,
    )
)
async def test_noise_is_a_failure_and_nothing_else(speaks: str, noise: list[bytes]) -> None:
    """HST-01: whatever a server sends, the host gets an answer or a ModelFailure."""
    events = STREAMED[speaks](TALK)
    middle = len(events) // 2
    for pieces in (noise, [*events[:middle], *noise, *events[middle:]]):
        model = ADAPTERS[speaks](
            "m", model="model-1", url="http://here", fetch=InPieces(pieces), tries=1
        )
        try:
            _, last = await received(model, request())
        except ModelFailure as failure:
            assert str(failure)
        else:
            assert isinstance(last, ModelAnswer)


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@everybody
@given(data=st.data())
async def test_answers_of_the_wrong_shape(speaks: str, data: st.DataObject) -> None:
    """HST-01: members of any type at any place of a real stream lead to an answer or to a
    ModelFailure.
    """
    events = [
        json.loads(one.partition(b"data: ")[2])
        for one in STREAMED[speaks](TALK)
        if b"[DONE]" not in one
    ]
    for _ in range(3):
        spot: Any = data.draw(st.sampled_from(events))
        while isinstance(spot, dict | list) and spot:
            key = data.draw(
                st.sampled_from(sorted(spot) if isinstance(spot, dict) else range(len(spot)))
            )
            if not isinstance(spot[key], dict | list) or not spot[key] or data.draw(st.booleans()):
                spot[key] = data.draw(JSONS)
                break
            spot = spot[key]
    pieces = [event(json.dumps(one)) for one in events]
    model = ADAPTERS[speaks](
        "m", model="model-1", url="http://here", fetch=InPieces(pieces), tries=1
    )
    try:
        _, last = await received(model, request())
    except ModelFailure as failure:
        assert str(failure)
    else:
        assert isinstance(last, ModelAnswer)


@everybody
async def test_bounds(speaks: str) -> None:
    """SAM-19: an answer without end is given up."""
    async with Site(Answer(("word " * 5_000,))) as site:
        for stream in (True, False):
            model = adapter(speaks, site, stream=stream, most=10_000)
            with pytest.raises(ModelFailure, match="large|bytes") as caught:
                await received(model, request())
            assert caught.value.kind == "bad_answer"
            await model.aclose()
