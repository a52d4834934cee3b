"""Conversations made fit for providers, whatever they were."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from interlock.models.conversation import NOT_RUN, IdMap, begun_and_ended_by_user, prepared
from interlock.types import SamplingMessage, TextContent, ToolResultContent, ToolUseContent
from tests.models.asking import said

IDS = st.sampled_from("abcd")
TEXTS = st.sampled_from(["", " ", "x", "yes"]).map(TextContent)
USES = IDS.map(lambda id: ToolUseContent(id=id, name="t", input={}))
RESULTS = IDS.map(lambda id: ToolResultContent(tool_use_id=id, content=[TextContent(f"of {id}")]))
MESSAGES = st.builds(said, st.sampled_from(["user", "assistant"])).flatmap(
    lambda bare: st.lists(TEXTS | USES | RESULTS, max_size=4).map(
        lambda blocks: SamplingMessage(role=bare.role, content=blocks)
    )
)


@given(st.lists(MESSAGES, max_size=8))
def test_any_conversation_becomes_one_that_is_taken(messages: list[Any]) -> None:
    """SAM-14, SAM-15: roles in turn, nothing empty, each use followed at once by exactly its
    result, no result without its use.
    """
    talk = begun_and_ended_by_user(prepared(messages))
    assert [turn.role for turn in talk] == ["user", "assistant"] * (len(talk) // 2) + ["user"] * (
        len(talk) % 2
    )
    assert not talk or talk[-1].role == "user"
    before: list[str] = []
    for turn in talk:
        assert turn.blocks
        assert all(
            not isinstance(block, TextContent) or block.text.strip() for block in turn.blocks
        )
        answered = [
            block.tool_use_id for block in turn.blocks if isinstance(block, ToolResultContent)
        ]
        assert answered == (list(dict.fromkeys(before)) if turn.role == "user" else [])
        if answered:
            assert all(
                isinstance(block, ToolResultContent) for block in turn.blocks[: len(answered)]
            )
        before = [block.id for block in turn.blocks if isinstance(block, ToolUseContent)]
        if turn.role == "user":
            assert not before
    told = [block.text for turn in talk for block in turn.blocks if isinstance(block, TextContent)]
    results = [
        block for turn in talk for block in turn.blocks if isinstance(block, ToolResultContent)
    ]
    for message in messages:  # nothing that a tool said to the user's side is lost
        for block in message.content:
            if isinstance(block, ToolResultContent) and message.role == "user":
                assert block.content[0].text in told or block in results


def test_a_turn_that_was_cancelled_is_completed() -> None:
    """SAM-15: a use without a result is told not to have run."""
    uses = said("assistant", *(ToolUseContent(id=id, name="t", input={}) for id in "ab"))
    done = ToolResultContent(tool_use_id="b", content=[TextContent("Done.")])
    talk = prepared([said("user", "Go"), uses, said("user", done), said("user", "Never mind.")])
    first, second, last = talk[-1].blocks
    assert isinstance(first, ToolResultContent)
    assert (first.tool_use_id, first.is_error, first.content) == ("a", True, [TextContent(NOT_RUN)])
    assert second == done
    assert last == TextContent("Never mind.")


@given(st.lists(st.text(max_size=100), max_size=20, unique=True))
def test_words_that_are_replaced_are_told_apart(words: list[str]) -> None:
    """TOL-20: every name comes out as the provider takes it, different ones different, and turns
    back.
    """
    names = IdMap("a-zA-Z0-9_-", 64, first="a-zA-Z_")
    out = [names.out(word) for word in words]
    assert len(set(out)) == len(words)
    for word, name in zip(words, out, strict=True):
        assert 0 < len(name) <= 64
        assert not name[0].isdigit()
        assert all(sign.isascii() and (sign.isalnum() or sign in "_-") for sign in name)
        assert names.back(name) == word
