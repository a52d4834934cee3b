"""What authors return from prompts and resources, made into messages and contents."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import pytest

from interlock import Audio, File, Image, Server, assistant, user
from interlock import types as t
from interlock.typed.content import block, contents, prompt_result, resource_result
from tests.server.by_hand import written

PNG = b"\x89PNG\r\n\x1a\n"
WAV = b"RIFF\0\0\0\0WAVE"
LINK = t.ResourceLink(uri="docs://a", name="a")
TEXT = t.TextContent("a")
MADE = t.ResourceContents(uri="docs://other", mime_type="text/x-own", text="own")


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    "value, made",
    [
        ("a", TEXT),
        (TEXT, TEXT),
        (LINK, LINK),
        (Image(data=PNG), t.ImageContent(data=encoded(PNG), mime_type="image/png")),
        (Audio(data=WAV), t.AudioContent(data=encoded(WAV), mime_type="audio/wav")),
        (MADE, t.EmbeddedResource(resource=MADE)),
        ({"a": 1}, t.TextContent('{"a":1}')),
        (5, t.TextContent("5")),
    ],
)
def test_blocks(value: Any, made: t.ContentBlock):
    """Strings, media, contents and blocks as they are; plain data as its JSON (`PRM-03`,
    `PRM-04`).
    """
    assert block(value) == made


def said(*messages: tuple[str, str]) -> list[t.PromptMessage]:
    return [t.PromptMessage(role=role, content=t.TextContent(text)) for role, text in messages]  # type: ignore[arg-type]  # a role


@pytest.mark.parametrize(
    "value, messages",
    [
        ("hello", said(("user", "hello"))),
        (["a", "b"], said(("user", "a"), ("user", "b"))),
        (("a", "b"), said(("user", "a"), ("user", "b"))),
        (user("a"), said(("user", "a"))),
        (
            [user("a"), assistant("b", "c"), "d"],
            said(("user", "a"), ("assistant", "b"), ("assistant", "c"), ("user", "d")),
        ),
        ([*user("a"), *assistant("b")], said(("user", "a"), ("assistant", "b"))),
        (assistant("a")[0], said(("assistant", "a"))),
        ([["a", "b"], "c"], said(("user", "a"), ("user", "b"), ("user", "c"))),
        ([], []),
        (
            [user("look", Image(data=PNG))],
            [*user("look"), *user(t.ImageContent(data=encoded(PNG), mime_type="image/png"))],
        ),
        (LINK, [t.PromptMessage(role="user", content=LINK)]),
    ],
)
def test_messages(value: Any, messages: list[t.PromptMessage]):
    """A string is one message of the user; lists mix strings, content and messages of both sides
    (`PRM-03`).
    """
    assert prompt_result(value, "words") == t.GetPromptResult(
        messages=messages, description="words"
    )


def test_results_made_by_hand_pass_through():
    """As they are, with their own words."""
    by_hand = t.GetPromptResult(messages=said(("user", "a")), description="mine")
    assert prompt_result(by_hand, "words") is by_hand
    read = t.ReadResourceResult(contents=[MADE], ttl_ms=5)
    assert resource_result(read, "docs://a", None) is read


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    "value, uri, mime_type, made",
    [
        (
            "text",
            "docs://a",
            None,
            t.ResourceContents(uri="docs://a", mime_type="text/plain", text="text"),
        ),
        (
            "text",
            "docs://a.md",
            None,
            t.ResourceContents(uri="docs://a.md", mime_type="text/markdown", text="text"),
        ),
        (
            "text",
            "docs://{name}.md",
            None,
            t.ResourceContents(uri="docs://{name}.md", mime_type="text/markdown", text="text"),
        ),
        (
            "text",
            "https://a.md",
            None,
            t.ResourceContents(uri="https://a.md", mime_type="text/plain", text="text"),
        ),
        (
            "text",
            "docs://a.md",
            "text/x-own",
            t.ResourceContents(uri="docs://a.md", mime_type="text/x-own", text="text"),
        ),
        ("", "docs://a", None, t.ResourceContents(uri="docs://a", mime_type="text/plain", text="")),
        (
            b"\xff",
            "docs://a",
            None,
            t.ResourceContents(uri="docs://a", mime_type="application/octet-stream", blob="/w=="),
        ),
        (
            b"\xff",
            "docs://a.pdf?page=1",
            None,
            t.ResourceContents(uri="docs://a.pdf?page=1", mime_type="application/pdf", blob="/w=="),
        ),
        (
            bytearray(b"\xff"),
            "docs://a",
            "x/y",
            t.ResourceContents(uri="docs://a", mime_type="x/y", blob="/w=="),
        ),
        (
            memoryview(b"\xff"),
            "docs://a",
            "x/y",
            t.ResourceContents(uri="docs://a", mime_type="x/y", blob="/w=="),
        ),
        (b"", "docs://a", "x/y", t.ResourceContents(uri="docs://a", mime_type="x/y", blob="")),
        (
            Image(data=PNG),
            "docs://a",
            None,
            t.ResourceContents(uri="docs://a", mime_type="image/png", blob=encoded(PNG)),
        ),
        (
            Audio(data=WAV),
            "docs://a",
            None,
            t.ResourceContents(uri="docs://a", mime_type="audio/wav", blob=encoded(WAV)),
        ),
        (
            {"a": [1]},
            "docs://a",
            None,
            t.ResourceContents(uri="docs://a", mime_type="application/json", text='{"a":[1]}'),
        ),
        (
            Point(1),
            "docs://a",
            None,
            t.ResourceContents(uri="docs://a", mime_type="application/json", text='{"x":1}'),
        ),
        (
            ["a", "b"],
            "docs://a",
            None,
            t.ResourceContents(uri="docs://a", mime_type="application/json", text='["a","b"]'),
        ),
        (
            [],
            "docs://a",
            None,
            t.ResourceContents(uri="docs://a", mime_type="application/json", text="[]"),
        ),
        (
            5,
            "docs://a",
            None,
            t.ResourceContents(uri="docs://a", mime_type="application/json", text="5"),
        ),
        (MADE, "docs://a", None, MADE),
        (t.EmbeddedResource(resource=MADE), "docs://a", None, MADE),
    ],
)
def test_one_content(value: Any, uri: str, mime_type: str | None, made: t.ResourceContents):
    """Text, bytes as base64, media, data as JSON; the MIME type is the author's, else the name's
    (`RES-02`, `RES-07`).
    """
    assert contents(value, uri, mime_type) == made
    assert resource_result(value, uri, mime_type) == t.ReadResourceResult(contents=[made])


def test_files(tmp_path):
    """Text is text and the rest is base64, under the file's own URI where it has one, else under
    that of the resource (`RES-03`).
    """
    path = tmp_path / "notes.md"
    path.write_text("# Notes")
    made = contents(File(path=path, uri="docs://notes"), "docs://a", None)
    assert made == t.ResourceContents(uri="docs://notes", mime_type="text/markdown", text="# Notes")
    assert contents(File(path=path), "docs://a", None) == t.ResourceContents(
        uri="docs://a", mime_type="text/markdown", text="# Notes"
    )


def test_several_contents():
    """One read may give several, each with its own URI and type (`RES-03`)."""
    result = resource_result([MADE, b"\xff", Image(data=PNG)], "docs://a", None)
    assert [(c.uri, c.mime_type) for c in result.contents] == [
        ("docs://other", "text/x-own"),
        ("docs://a", "application/octet-stream"),
        ("docs://a", "image/png"),
    ]


async def test_prompts_of_a_server():
    """Arguments come as their types, and the messages go out as they were written (`PRM-03`)."""
    server = Server("writing")

    @server.prompt
    async def review(code: str, lines: list[int], strict: bool = False) -> Any:
        """Review some code."""
        return [
            user(f"Review {code}, lines {lines}"),
            assistant("Strictly?" if strict else "Kindly?"),
            Image(data=PNG),
        ]

    messages = await written(
        server, "review", {"code": "x = 1", "lines": "[1, 2]", "strict": "true"}
    )
    assert [
        (message.role, getattr(message.content, "text", "a picture")) for message in messages
    ] == [
        ("user", "Review x = 1, lines [1, 2]"),
        ("assistant", "Strictly?"),
        ("user", "a picture"),
    ]
