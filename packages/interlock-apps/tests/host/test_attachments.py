"""Files of a person: what they are, which models get them, how they are logged and refused."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.models.anthropic import Anthropic
from interlock.models.gemini import Gemini
from interlock.models.interface import AcceptedContent, ModelFacts
from interlock.models.openai import OpenAI
from interlock.models.scripted import Scripted
from interlock.types import ImageContent, TextContent, UnknownContent
from interlock_apps.fleet.log import SqliteLog
from interlock_apps.host import AttachedFile, FileRefused
from interlock_apps.host.attachments import (
    FILE,
    MOST_FILES,
    check_file,
    media_type,
    pages_of,
    text_of,
)
from interlock_apps.host.loop import tokens
from interlock_apps.host.loop.context_window import blocks
from interlock_apps.host.pages.uploads import Uploads
from interlock_apps.host.replay import Replay
from interlock_servers.everything.samples import png
from tests.host.scene import scene, texts_of

PNG = png(8)
PDF = b"%PDF-1.4\n1 0 obj <</Type /Page>> endobj\n2 0 obj <</Type/Page /A 1>> <</Type /Pages>>"
PICTURE = AttachedFile("sea.png", PNG)
PAPER = AttachedFile("a plan.pdf", PDF)
NOTES = AttachedFile("notes.txt", "Sch\u00f6n.\n".encode())
SEES = ModelFacts(images=True)
BLIND = ModelFacts(images=False)


@pytest.mark.parametrize(
    "data, mime",
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89a...", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", "audio/wav"),
        (b"ID3\x04", "audio/mpeg"),
        (b"\x00\x00\x00\x18ftypheic", "image/heic"),
        (PDF, "application/pdf"),
        (b"print('hi')\n", "text/plain"),
        ("\ufeffBOM".encode(), "text/plain"),
        ("wide".encode("utf-16"), "text/plain"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "text/plain"),
        (b"\x00\x01\x02", ""),
        (b"PK\x03\x04\xff\xff", ""),
    ],
)
def test_a_file_is_what_its_content_says(data: bytes, mime: str) -> None:
    assert media_type(data) == mime


@given(st.binary(max_size=40))
def test_no_content_is_text_that_is_not(data: bytes) -> None:
    """Whatever bytes come: text is text without zeros, and nothing fails."""
    mime = media_type(data)
    text = text_of(data)
    assert (mime == "text/plain") <= (text is not None and "\0" not in text)


@pytest.mark.parametrize(
    "file, facts, words",
    [
        (AttachedFile("x.zip", b"PK\x03\x04\xff"), SEES, "x.zip is neither text nor a picture"),
        (AttachedFile("no.txt", b""), SEES, "no.txt is empty"),
        (PICTURE, BLIND, "accepts no pictures. Choose another model, or remove sea.png"),
        (PAPER, SEES, "accepts no documents"),
        (AttachedFile("a.heic", b"\0\0\0\x18ftypheic"), SEES, "accepts gif, jpeg, png, webp"),
        (AttachedFile("big.png", PNG + bytes(5_000_000)), SEES, "has 5.0 MB. scripted accepts"),
        (AttachedFile("big.txt", b"a" * 4_000_001), BLIND, "A text file can have at most 4.0 MB"),
        (AttachedFile("a\u202eb\n.zip", b"\0"), SEES, "a b .zip is neither"),
    ],
)
def test_a_file_that_a_model_does_not_accept(
    file: AttachedFile, facts: ModelFacts, words: str
) -> None:
    with pytest.raises(FileRefused) as refused:
        check_file(file, Scripted(facts=facts))
    assert words in str(refused.value)


async def test_files_go_to_the_model_and_into_the_log(tmp_path: Path) -> None:
    """Before what was typed, in their order; a large one is stored by its digest, and a replay has
    it again.
    """
    model = Scripted("A sea.", facts=SEES)
    model.accepts = AcceptedContent(  # type: ignore[attr-defined]  # what a model may state
        images=frozenset({"image/png"}), documents=frozenset({"application/pdf"})
    )
    large = AttachedFile("large.png", PNG + bytes(range(256)) * 400)
    async with scene({}, model=model, log=SqliteLog(tmp_path / "log.db")) as one:
        session = one.host.session()
        await session.say("What is this?", files=[NOTES, large, PAPER])
        [message] = model.requests[0].messages
        notes, label, picture, paper, typed = blocks(message)
        assert isinstance(notes, TextContent)
        assert "file notes.txt]]\nSch\u00f6n." in notes.text
        assert label == TextContent(
            text="File large.png:", meta={FILE: {"name": "large.png", "label": True}}
        )
        assert isinstance(picture, ImageContent)
        assert base64.b64decode(picture.data) == large.data
        assert isinstance(paper, UnknownContent)
        assert paper.block["resource"]["uri"] == "attachment:///a%20plan.pdf"
        assert paper.block["_meta"][FILE]["pages"] == pages_of(PDF) == 2
        assert tokens.of_block(paper) == 2 * tokens.PAGE
        assert typed == TextContent(text="What is this?")
        assert session.title == "What is this?"
        await one.host.log.flush()
        assert len(list((tmp_path / "log.db.bodies").iterdir())) == 1
        replay = Replay(await one.host.log.read(session.id))
        assert replay.messages == session.messages


async def test_nothing_is_sent_with_a_file_that_is_refused() -> None:
    async with scene({}, "Yes.", model=Scripted("Yes.", facts=BLIND)) as one:
        session = one.host.session()
        for files in ([PICTURE], [NOTES] * (MOST_FILES + 1)):
            with pytest.raises(FileRefused):
                await session.say("Look", files=files)
        assert session.messages == []
        assert (await session.say("", files=[NOTES])).reason == "done"
        assert "Sch\u00f6n." in texts_of(session.messages[0])[-1]


def parts(body: Any) -> Any:
    """The content of the user's message in the request to a provider."""
    if "contents" in body:
        return body["contents"][0]["parts"]
    return body["messages"][-1]["content"]


@pytest.mark.parametrize("provider", [Anthropic, OpenAI, Gemini])
async def test_each_provider_gets_pictures_and_documents(provider: Any) -> None:
    """In the form of its interface, with the name of the document where there is a place for it."""
    model = provider("m", model="claude-sonnet-4-5", key="k")
    async with scene({}, model=Scripted("Yes.", facts=SEES)) as one:
        one.model.accepts = model.accepts
        await one.host.session().say("Look", files=[PICTURE, PAPER])
        sent = json.dumps(parts(model._asked(one.model.requests[0]).body))
    assert base64.b64encode(PNG).decode() in sent
    assert base64.b64encode(PDF).decode() in sent
    assert "File sea.png:" in sent
    assert "a plan.pdf" in sent or provider is Gemini
    await model.aclose()


def test_uploads_are_bounded_and_forgotten() -> None:
    """The oldest go first; an id that is gone is refused in words."""
    uploads = Uploads(most=10)
    first = uploads.add(AttachedFile("a", b"12345"))
    assert uploads.add(AttachedFile("a", b"12345")) == first
    second = uploads.add(AttachedFile("b", b"12345"))
    assert [file.name for file in uploads.named([second, first])] == ["b", "a"]
    third = uploads.add(AttachedFile("c", b"123456"))
    uploads.remove(second)
    for gone in (first, second):
        with pytest.raises(FileRefused, match="Attach it again"):
            uploads.named([gone])
    assert uploads.named([third])[0].name == "c"
