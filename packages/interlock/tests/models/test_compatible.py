"""What servers that speak the interface of OpenAI do differently, and is understood all the
same.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock.models.interface import ModelAnswer, ModelFailure
from interlock.models.openai import OpenAI
from interlock.types import TextContent, ToolResultContent, ToolUseContent
from tests.models.asking import received, request, said
from tests.models.providers import Act, Answer, Site, event, openai_whole


def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": reason, **more}]})


def piece(arguments: Any, **more: Any) -> dict[str, Any]:
    name = more.pop("name", None)
    return {"function": {"arguments": arguments} | ({"name": name} if name else {}), **more}


async def streamed(*events: bytes, **more: Any) -> ModelAnswer:
    """What is heard of the stream."""
    async with Site(Act(stream=events)) as site:
        model = OpenAI("m", model="model-1", url=site.openai)
        _, last = await received(model, request(**more))
        await model.aclose()
        return last


A = '{"city":"Paris"}'
B = '{"city":"Rome"}'
PARALLEL: dict[str, list[dict[str, Any]]] = {
    "by index": [
        piece("", index=0, id="a", name="t"),
        piece("", index=1, id="b", name="t"),
        piece(B, index=1),
        piece(A, index=0),
    ],
    "no index": [piece(A, id="a", name="t"), piece(B, id="b", name="t")],
    "no index, in pieces": [
        piece(A[:5], id="a", name="t"),
        piece(A[5:]),
        piece(B[:5], id="b", name="t"),
        piece(B[5:]),
    ],
    "no index and no id": [piece(A, name="t"), piece(B, name="t")],
    "always the first": [
        piece(A[:5], index=0, id="a", name="t"),
        piece(A[5:], index=0),
        piece(B, index=0, id="b", name="t"),
    ],
    "an object": [
        piece({"city": "Paris"}, index=0, id="a", name="t"),
        piece({"city": "Rome"}, index=1, id="b", name="t"),
    ],
    "written twice": [
        piece('"{\\"city\\":\\"Paris\\"}"', index=0, id="a", name="t"),
        piece(B, index=1, id="b", name="t"),
    ],
    "the name again": [
        piece(A[:5], index=0, id="a", name="t"),
        piece(A[5:], index=0, id="a", name="t"),
        piece(B, index=1, id="b", name="t"),
    ],
    "another id each time": [
        piece(A[:5], index=0, id="a", name="t"),
        piece(A[5:], index=0, id="x"),
        piece(B, index=1, id="b", name="t"),
    ],
    "the name later": [
        piece("", index=0, id="a"),
        piece(A, index=0, name="t"),
        piece(B, index=1, id="b", name="t"),
    ],
    "one id for both": [piece(A, index=0, id="a", name="t"), piece(B, index=1, id="a", name="t")],
}


@pytest.mark.parametrize("how", list(PARALLEL))
async def test_parallel_calls_however_they_come(how: str) -> None:
    """SAM-15: two calls, each with its own arguments and id."""
    last = await streamed(
        *(chunk({"tool_calls": [one]}) for one in PARALLEL[how]),
        chunk({}, "tool_calls"),
        event("[DONE]"),
    )
    calls = [block for block in last.result.content if isinstance(block, ToolUseContent)]
    assert [(call.name, call.input) for call in calls] == [
        ("t", {"city": "Paris"}),
        ("t", {"city": "Rome"}),
    ]
    assert len({call.id for call in calls}) == 2
    assert last.result.stop_reason == "toolUse"


async def test_ends_of_streams() -> None:
    """HST-01: a reason to stop or [DONE] is an end, whatever of the rest is missing; "stop" with
    calls is for the calls.
    """
    assert (await streamed(chunk({"content": "So."}, "stop"))).result.content == [
        TextContent("So.")
    ]
    assert (
        await streamed(chunk({"content": "So."}), event("[DONE]"))
    ).result.stop_reason == "endTurn"
    usage = event({"choices": None, "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
    assert (await streamed(chunk({"content": "So."}, "stop"), usage)).usage.input == 3
    called = chunk({"tool_calls": [piece(A, id="a", name="t")]}, "stop")
    assert (await streamed(called)).result.stop_reason == "toolUse"
    assert (
        await streamed(chunk({"content": "So"}, "stop", stop_reason="END"), stop_sequences=["END"])
    ).result.stop_reason == "stopSequence"
    assert (
        await streamed(b": comment\n\n", chunk({"content": "So."}, "stop"), b"data:\n\n")
    ).result.content == [TextContent("So.")]


async def test_kinds_of_content() -> None:
    """SAM-11: text in parts, a refusal as text, thinking under either name."""
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "So."}]
    assert (await streamed(chunk({"content": parts}, "stop"))).result.content == [
        TextContent("So.")
    ]
    refused = await streamed(chunk({"refusal": "I will not."}, "stop"))
    assert (refused.result.content, refused.result.stop_reason) == (
        [TextContent("I will not.")],
        "refusal",
    )


async def test_a_server_that_does_not_stream() -> None:
    """HST-01: who answers in one although a stream was asked for is understood."""
    async with Site(
        Act(body=openai_whole(Answer(("So.", ("t", {"a": 1}))))), Act(body={"choices": []})
    ) as site:
        model = OpenAI("m", model="model-1", url=site.openai)
        _, last = await received(model, request())
        assert [type(block) for block in last.result.content] == [TextContent, ToolUseContent]
        with pytest.raises(ModelFailure, match="without content"):
            await received(model, request())
        await model.aclose()


async def test_thinking_goes_back_within_the_turn_only() -> None:
    """SAM-21: what a provider wants to see again of thinking and calls is sent while the turn
    lasts, and not after it.
    """
    details = [
        {"type": "reasoning.text", "text": "Let ", "index": 0},
        {"type": "reasoning.text", "text": "me", "signature": "S", "index": 0},
    ]
    mark = {"google": {"thought_signature": "T"}}
    events = [
        *(chunk({"reasoning": one["text"], "reasoning_details": [one]}) for one in details),
        chunk(
            {"tool_calls": [piece(A, index=0, id="a", name="t", extra_content=mark)]}, "tool_calls"
        ),
        event("[DONE]"),
    ]
    async with Site(Act(stream=events), "Yes.") as site:
        model = OpenAI("m", model="model-1", url=site.openai)
        deltas, last = await received(model, request())
        assert [delta.text for delta in deltas if delta.kind == "thought"] == ["Let ", "me"]
        turn = [said("user", "Hi"), said("assistant", *last.result.content)]
        turn.append(
            said("user", ToolResultContent(tool_use_id="a", content=[TextContent("Sunny.")]))
        )
        await received(model, request(*turn))
        again = site.asked[-1].body["messages"][1]
        assert again["reasoning"] == "Let me"
        assert again["reasoning_details"] == [
            {"type": "reasoning.text", "text": "Let me", "signature": "S", "index": 0}
        ]
        assert again["tool_calls"][0]["extra_content"] == mark
        await received(
            model, request(*turn, said("assistant", "It is sunny."), said("user", "Thanks."))
        )
        assert "reasoning" not in site.asked[-1].body["messages"][1]
        await model.aclose()
