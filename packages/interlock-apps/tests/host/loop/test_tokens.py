"""Estimates of tokens: never nothing, and more for more."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    SamplingMessage,
    TextContent,
    Tool,
    ToolResultContent,
    ToolUseContent,
)
from interlock_apps.host.loop import tokens

BLOCKS: list[Any] = [
    TextContent(text="hello there"),
    ImageContent(data="AAAA", mime_type="image/png"),
    AudioContent(data="AAAA", mime_type="audio/wav"),
    ToolUseContent(id="1", name="add", input={"a": 1}),
    ToolResultContent(tool_use_id="1", content=[TextContent(text="3")]),
    EmbeddedResource(resource=ResourceContents(uri="a:b", text="x")),
]


@given(st.text(max_size=200), st.text(max_size=200))
def test_more_text_is_more_tokens(one: str, other: str) -> None:
    assert tokens.of_text(one) >= 1
    assert tokens.of_text(one + other) >= max(tokens.of_text(one), tokens.of_text(other))


@given(
    st.text(
        alphabet=st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF),
        min_size=20,
        max_size=100,
    )
)
def test_chinese_takes_about_a_token_for_a_sign(text: str) -> None:
    """On the safe side: an estimate for Latin letters would be a third of what there is."""
    assert len(text) * 0.7 <= tokens.of_text(text) <= len(text) + 1
    assert tokens.of_text("x" * len(text)) < tokens.of_text(text) / 2


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
def test_every_kind_of_block_counts(block: Any) -> None:
    bare = tokens.of_message(SamplingMessage(role="user", content=[]))
    alone = tokens.of_message(SamplingMessage(role="user", content=block))
    assert alone > bare
    message = SamplingMessage(role="user", content=[block, block])
    assert tokens.of_message(message) > alone
    assert tokens.of_messages([message, message]) == 2 * tokens.of_message(message)


def test_a_picture_counts_by_what_it_takes_and_not_by_its_letters() -> None:
    large = ImageContent(data="A" * 4_000_000, mime_type="image/png")
    assert tokens.of_block(large) == tokens.of_block(BLOCKS[1]) < 10_000


def test_a_tool_counts_with_its_schema() -> None:
    plain = Tool(name="a", input_schema={"type": "object"})
    rich = Tool(
        name="a",
        description="Add.",
        input_schema={
            "type": "object",
            "properties": {"a": {"type": "integer", "description": "One"}},
        },
    )
    assert tokens.of_tools([plain]) < tokens.of_tools([rich]) < tokens.of_tools([plain, rich])
