"""Conversations as files for readers: what a model or a server wrote does nothing there."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from interlock import Context, ImageContent, Server
from interlock.models.interface import ModelFailure
from interlock.models.scripted import call
from interlock.types import CallToolResult, TextContent
from interlock_apps.fleet.questions import Filled
from interlock_apps.host.conversations.html_export import POLICY, to_html
from interlock_apps.host.conversations.markdown_export import inert, to_markdown
from interlock_apps.host.conversations.transcript import Call, Form, Message, Remark, Transcript
from tests.host.scene import ALLOW, NO, Sitting, scene

PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
ATTACK = """<script>alert(1)</script> <img src=x onerror=alert(1)>
![tracker](https://evil.example/x.png) [go](javascript:alert(1)) <https://evil.example>

[ref]: javascript:alert(1)
[ref]

```html
</code></pre><script>alert(1)</script>
```
   ```
<b>x</b>
```
<i>y</i>
"""
PIECES = st.lists(
    st.sampled_from(
        ["<b>", "<img src=x>", "<!--", "<?", "&lt;", "![", "[", "]", "(", ")", "](", "]:", "`",
            "``", "```", "````", "~~~", "\n", "\n\n", " ", "   ", "    ", "\t", "- ", "> ", "1. ",
            "\\", "javascript:x", "data:text/html,x", "https://a", "//a", "x", "|", "---", "#", "&",
            "&#33;", "!", ":", "*", "_", "http:", "mailto:a@b"]
    ),
    max_size=25,
).map("".join)  # fmt: skip


def shop() -> Server:
    """A server with a result that attacks, a picture and a form."""
    server = Server("shop")

    @server.tool
    async def look() -> CallToolResult:
        """Look around."""
        return CallToolResult(
            content=[TextContent(text=ATTACK), ImageContent(data=PIXEL, mime_type="image/gif")]
        )

    @server.tool
    async def buy(ctx: Context) -> str:
        """Buy something."""
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        return str(await ctx.elicit("Who <b>are</b> you?", schema))

    return server


class Tags(HTMLParser):
    """The tags of a page, with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def tags(page: str) -> list[tuple[str, dict[str, str | None]]]:
    reader = Tags()
    reader.feed(page)
    return reader.found


def assert_inert(page: str) -> None:
    """No script, no foreign asset, no handler, and links to pages only."""
    for tag, attributes in tags(page):
        assert tag not in {"script", "iframe", "object", "embed", "link", "form", "base", "svg"}
        # The alignment of a table's cells is the one style that Markdown has.
        assert attributes.get("style", "text-align:") in {
            "text-align:", "text-align:left", "text-align:right", "text-align:center"
        }  # fmt: skip
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href"):
            value = attributes.get(name)
            if value is None:
                continue
            wanted = r"data:image/" if tag == "img" else r"(?i:https?:|mailto:)"
            assert re.match(wanted, value), (tag, value)


def tokens_of(text: str) -> list[Token]:
    """What a program that renders HTML finds in Markdown."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    return [*tokens, *(child for token in tokens for child in token.children or ())]


async def test_a_conversation_is_exported_for_readers() -> None:
    """With messages, calls, results, pictures, forms and failures; what attacks is text."""
    answers = (
        call("shop__look"),
        call("shop__buy"),
        f"Done. {ATTACK}",
        ModelFailure("No.", "refused"),
    )
    person = Sitting(form=Filled(action="accept", content={"name": "<u>Ada</u>"}))
    async with scene({"shop": shop()}, *answers, policy=ALLOW, person=person) as one:
        session = one.host.session(title="A <b>bold</b> title")
        await session.say("Look <i>there</i>")
        await session.say("More")
        page = await one.host.conversations.to_html(session.id)
        text = await one.host.conversations.to_markdown(session.id)
    assert_inert(page)
    assert POLICY.startswith("default-src 'none'")
    assert [tag for tag, _ in tags(page)].count("img") == 1
    for part in ("A &lt;b&gt;bold", "Look &lt;i&gt;", "&lt;script&gt;", "&lt;u&gt;Ada", "No."):
        assert part in page
    rendered = MarkdownIt("commonmark", {"html": True}).render(text)
    assert_inert(rendered)
    for part in ("Call of look of shop", "An image, image/gif", "Who &lt;b&gt;", "gave no answer"):
        assert part in rendered
    assert "<u>Ada" not in rendered


async def test_a_denied_call_says_so() -> None:
    """The arguments are those that were proposed."""
    person = Sitting(call=NO)
    async with scene({"shop": shop()}, call("shop__look"), "No.", person=person) as one:
        session = one.host.session()
        await session.say("Look")
        text = await one.host.conversations.to_markdown(session.id)
    assert "Not called." in text


@given(PIECES)
def test_markdown_of_models_is_inert(text: str) -> None:
    """Whatever a model writes: a reader that renders HTML gets neither tags nor images."""
    tokens = tokens_of(inert(text))
    assert not {token.type for token in tokens} & {"html_block", "html_inline", "image"}
    for token in tokens:
        if token.type == "link_open":
            assert str(token.attrGet("href")).lower().startswith(("http:", "https:", "mailto:"))


@given(PIECES, PIECES)
def test_exports_are_inert_whatever_was_said(text: str, name: str) -> None:
    """In every part, also in names of tools and titles."""
    transcript = Transcript(
        title=name,
        model=name,
        began=0.0,
        parts=(
            Message(at=0.0, model="m", text=text),
            Message(at=0.0, model="", text=text, remarks=(name,)),
            Call(at=0.0, server=name, tool=name, arguments={name: text}, text=text),
            Form(at=0.0, server=name, message=text, content={name: text}),
            Remark(at=0.0, words=name),
        ),
    )
    assert_inert(to_html(transcript))
    kinds = {token.type for token in tokens_of(to_markdown(transcript))}
    assert not kinds & {"html_block", "html_inline", "image"}


def test_code_keeps_its_characters() -> None:
    """Fenced code at the margin is not changed."""
    text = "Use this:\n\n```python\nif a < b: x[0](1)\n```\n\nDone."
    assert inert(text) == text
