"""What a model gets of a result: every kind of block, in words where it is not shown, in pages
where it is long.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock.types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    ToolResultContent,
)
from interlock_apps.fleet.threat_scan import clean
from interlock_apps.host.loop.budget import Budget
from interlock_apps.host.loop.result_renderer import MOST_BLOCKS, ResultRenderer
from interlock_apps.host.loop.result_store import ResultStore
from interlock_apps.host.loop.untrusted_text import UntrustedTextMarker

PNG = "iVBORw0KGgo="
WAV = "UklGRgAAAAA="


def rendering(**bounds: Any) -> ResultRenderer:
    budget = Budget(**bounds)
    return ResultRenderer(
        budget, UntrustedTextMarker("M"), ResultStore(budget.page, budget.stored_results), clean
    )


def text(result: ToolResultContent) -> str:
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


def rendered(*blocks: Any, **more: Any) -> ToolResultContent:
    return rendering().result(
        "u1", CallToolResult(content=list(blocks), **more), "result of t of s"
    )


@pytest.mark.parametrize(
    "block, words, media",
    [
        (TextContent(text="hello"), "hello", None),
        (ImageContent(data=PNG, mime_type="image/png"), "(no text)", ImageContent),
        (AudioContent(data=WAV, mime_type="audio/wav"), "(no text)", AudioContent),
        (
            ResourceLink(uri="a://b", name="b", title="The B", mime_type="text/plain", size=9,
                description="about b"),
            "Link to the resource a://b (The B, text/plain, 9 bytes): about b", None,
        ),
        (ResourceLink(uri="a://b", name="b"), "Link to the resource a://b (b)", None),
        (EmbeddedResource(resource=ResourceContents(uri="a://b", text="inside")),
            "Resource a://b (text):\ninside", None),
        (EmbeddedResource(resource=ResourceContents(uri="a://b", mime_type="text/x", text="in")),
            "Resource a://b (text/x):\nin", None),
        (
            EmbeddedResource(resource=ResourceContents(uri="a://b", mime_type="image/png",
                blob=PNG)),
            "Resource a://b (image/png), an image:", ImageContent,
        ),
        (
            EmbeddedResource(resource=ResourceContents(uri="a://b", mime_type="audio/wav",
                blob=WAV)),
            "Resource a://b (audio/wav), a sound:", AudioContent,
        ),
        (
            EmbeddedResource(resource=ResourceContents(uri="a://b", mime_type="application/pdf",
                blob="AAAA")),
            "Resource a://b (application/pdf, 3 bytes) is not text.", None,
        ),
        (EmbeddedResource(resource=ResourceContents(uri="a://b", blob="AAAA")),
            "Resource a://b (of unknown type, 3 bytes) is not text.", None),
    ],
)  # fmt: skip
def test_every_kind_of_block(block: Any, words: str, media: Any) -> None:
    """Text between the markers; images and sounds beside it; links and other data in words."""
    result = rendered(block)
    assert text(result) == f"[[M result of t of s]]\n{words}\n[[/M]]"
    assert [type(each) for each in result.content[1:]] == ([media] if media else [])
    assert result.is_error is False


def test_errors_are_given_to_the_model() -> None:
    """`TOL-16`: as errors, so that it can put them right."""
    result = rendered(TextContent(text="no such city"), is_error=True)
    assert result.is_error
    assert "no such city" in text(result)


def test_structured_content_is_said_once() -> None:
    """Where the text has it already it is not repeated; else it stands there as JSON."""
    assert (
        text(rendered(TextContent(text='{"a": 1}'), structured_content={"a": 1})).count('"a"') == 1
    )
    assert text(rendered(TextContent(text="3"), structured_content={"result": 3})).count("3") == 1
    assert (
        text(rendered(TextContent(text="plain"), structured_content={"result": "plain"})).count(
            "plain"
        )
        == 1
    )
    assert '{"a":1}' in text(rendered(TextContent(text="one"), structured_content={"a": 1}))
    assert text(rendered(structured_content={"a": 1})).splitlines()[1] == '{"a":1}'


def test_structured_content_has_nothing_invisible() -> None:
    result = rendered(structured_content={"a\u200b": ["x\u202ey", {"b": 1, "c": "\U000e0041"}]})
    assert result.structured_content == {"a": ["xy", {"b": 1, "c": ""}]}


@pytest.mark.parametrize("kind, words", [("image", "an image"), ("audio", "a sound")])
def test_what_is_too_large_is_said_in_words(kind: str, words: str) -> None:
    """An image or a sound beyond the bound, in a block or a resource; one at the bound is shown."""
    block: Any = (ImageContent if kind == "image" else AudioContent)(
        data="A" * 400, mime_type=f"{kind}/x"
    )
    small = rendering(picture=300)
    large = rendering(picture=299)
    resource = EmbeddedResource(
        resource=ResourceContents(uri="a://b", mime_type=f"{kind}/x", blob="A" * 400)
    )
    for each in (block, resource):
        result = CallToolResult(content=[each])
        assert len(small.result("u", result, "o").content) == 2
        shown = large.result("u", result, "o")
        assert len(shown.content) == 1
        assert f"({words} of type {kind}/x, too large to be shown to you)" in text(shown)


def test_pictures_of_one_result_are_bounded_together() -> None:
    """Each is small enough, but not all of them: the first ones go to the model, the others are
    said in words.
    """
    picture = ImageContent(data="A" * 400, mime_type="image/png")
    shown = rendering(picture=300, pictures=700).result(
        "u", CallToolResult(content=[picture] * 4), "x"
    )
    assert shown.content.count(picture) == 2
    assert text(shown).count("too large to be shown to you") == 2


def test_a_long_text_is_given_in_pages() -> None:
    """All pages can be read; each page is between markers, and the hint is outside of them."""
    one = rendering(page=10)
    words = "".join(chr(97 + n % 26) for n in range(35))
    shown = text(one.result("u", CallToolResult(content=[TextContent(text=words)]), "o"))
    assert shown.startswith(f"[[M o]]\n{words[:10]}\n[[/M]]\n(Page 1 of 4.")
    assert '{"result": "r1", "page": 2}' in shown
    assert "".join(one.results.read("r1", page) or "" for page in range(1, 5)) == words
    assert "Page" not in text(
        one.result("u", CallToolResult(content=[TextContent(text=words[:10])]), "o")
    )


def test_a_result_of_very_many_blocks_is_cut() -> None:
    result = rendered(*[TextContent(text=f"<{n}>") for n in range(MOST_BLOCKS + 5)])
    assert f"<{MOST_BLOCKS - 1}>" in text(result)
    assert f"<{MOST_BLOCKS}>" not in text(result)
    assert "(5 more blocks were left out.)" in text(result)


def test_a_long_error_is_given_in_pages_too() -> None:
    """What a server says of its failure is as foreign as its results, and as long."""
    one = rendering(page=10)
    refused = one.refusal("u", "The call failed.", "x" * 100, "o")
    assert refused.is_error
    assert text(refused).startswith(
        f"The call failed.\n[[M o]]\n{'x' * 10}\n[[/M]]\n(Page 1 of 10."
    )
    assert text(one.refusal("u", "Not allowed.")) == "Not allowed."
