"""What providers sign and want to see again, exactly where it was."""

from __future__ import annotations

from typing import Any

from interlock.models.anthropic import Anthropic
from interlock.models.gemini import Gemini
from interlock.models.interface import Usage
from interlock.types import ImageContent, TextContent, ToolUseContent
from tests.models.asking import received, request, said
from tests.models.providers import Act, Site, event


def piece(*parts: Any, stop: str = "") -> bytes:
    return event(
        {
            "candidates": [
                {"content": {"parts": list(parts)}} | ({"finishReason": stop} if stop else {})
            ]
        }
    )


async def test_signed_parts_of_gemini() -> None:
    """SAM-21: a signature stays with its own part, parts with one are not put together with others,
    and one without text comes last.
    """
    stream = [
        piece({"text": "One "}),
        piece({"text": "two. "}),
        piece({"text": "Three. ", "thoughtSignature": "S1"}),
        piece({"text": "Four."}),
        piece({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}),
        piece({"functionCall": {"name": "t"}, "thoughtSignature": "S2"}),
        piece({"text": "", "thoughtSignature": "S3"}, stop="STOP"),
    ]
    async with Site(Act(stream=stream), "Yes.") as site:
        model = Gemini("m", model="model-1", url=site.gemini)
        content = (await received(model, request()))[1].result.content
        kinds = [type(block) for block in content]
        assert kinds == [TextContent, TextContent, TextContent, ImageContent, ToolUseContent]
        assert [block.text for block in content[:3]] == ["One two. ", "Three. ", "Four."]
        await received(model, request(said("user", "Hi"), said("assistant", *content)))
        parts = site.asked[-1].body["contents"][1]["parts"]
        left_out = "[A picture (image/png, 3 bytes) was left out: this model does not take any.]"
        assert parts == [
            {"text": "One two. "},
            {"text": "Three. ", "thoughtSignature": "S1"},
            {"text": "Four."},
            {"text": left_out},
            {"functionCall": {"name": "t", "args": {}}, "thoughtSignature": "S2"},
            {"text": "", "thoughtSignature": "S3"},
        ]
        await model.aclose()


async def test_thinking_of_anthropic_stays_where_it_was() -> None:
    """SAM-21: signed and hidden thinking, before, between and after the rest, goes back unchanged
    and in its place.
    """
    first = {"type": "thinking", "thinking": "Hm.", "signature": "S1"}
    hidden = {"type": "redacted_thinking", "data": "XYZ"}
    last = {"type": "thinking", "thinking": "Well.", "signature": "S2"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Paris"}}
    text = {"type": "text", "text": "I look."}
    usage = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 3,
        "cache_read_input_tokens": 2,
        "output_tokens": 4,
    }
    body = {
        "type": "message",
        "model": "model-1",
        "content": [first, hidden, text, last, call, last],
        "stop_reason": "tool_use",
        "usage": usage,
    }
    async with Site(Act(body=body), Act(body=body)) as site:
        model = Anthropic("m", model="model-1", url=site.anthropic, stream=False)
        _, whole = await received(model, request())
        assert whole.usage == Usage(input=10, output=4, kept=2)
        await received(model, request(said("user", "Hi"), said("assistant", *whole.result.content)))
        assert site.asked[-1].body["messages"][1]["content"] == [
            first,
            hidden,
            text,
            last,
            call,
            last,
        ]
        await model.aclose()
