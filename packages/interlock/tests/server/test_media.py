"""Pictures, sound and files as authors hold them, and what their names and first bytes tell."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.typed.media import Audio, File, Image, guess_mime, is_text, sniff
from interlock.types import Annotations, AudioContent, ImageContent

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8

MAGIC = {
    PNG: "image/png",
    b"\xff\xd8\xff\xe0JFIF": "image/jpeg",
    b"GIF87a..": "image/gif",
    b"GIF89a..": "image/gif",
    b"RIFF\x10\0\0\0WEBPVP8 ": "image/webp",
    b"RIFF\x10\0\0\0WAVEfmt ": "audio/wav",
    b"\0\0\0\x1cftypavif": "image/avif",
    b"\0\0\0\x1cftypM4A ": "audio/mp4",
    b"ID3\x04": "audio/mpeg",
    b"\xff\xfb\x90": "audio/mpeg",
    b"OggS\0": "audio/ogg",
    b"fLaC\0": "audio/flac",
    b"%PDF-1.7": "application/pdf",
    b"\0\0\0\0\0\0\0\0WAVE": None,
    b"plain text": None,
    b"": None,
}


@pytest.mark.parametrize("data, mime", MAGIC.items())
def test_first_bytes(data: bytes, mime: str | None) -> None:
    """The common formats are known by their first bytes, and nothing else is."""
    assert sniff(data) == mime


@pytest.mark.parametrize(
    "name, mime",
    [
        ("notes.md", "text/markdown"),
        ("main.PY", "text/x-python"),
        ("data.json", "application/json"),
        ("server.log", "text/plain"),
        ("a/b.c/README", "text/plain"),
        (r"C:\pictures\cat.jpg", "image/jpeg"),
        ("file:///srv/chart.svg", "image/svg+xml"),
        ("https://example.com/a.pdf?x=b.png#c.gif", "application/pdf"),
        ("docs://shelf/caf%C3%A9%2Emd", "text/markdown"),
        ("data:image/png;base64,AAAA", "image/png"),
        ("data:,hello", "text/plain"),
        ("letter.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("letter.doc", "application/msword"),
        ("a.tar.gz", "application/gzip"),
        ("travel://[::1/x.png", "image/png"),
        ("travel://activities/bonn", None),
        ("noise.qqq", None),
        (".bashrc", None),
        ("", None),
    ],
)
def test_names(name: str, mime: str | None) -> None:
    """The end of a name or URI tells the type; its query, fragment and host do not."""
    assert guess_mime(name) == mime


@given(st.text())
def test_any_name_may_be_asked(name: str) -> None:
    """Whatever a peer sends as a URI, the answer is a MIME type or none."""
    mime = guess_mime(name)
    assert mime is None or isinstance(mime, str)


def test_an_image_of_bytes() -> None:
    """The type comes from the first bytes; the data is base64 (`TOL-12`)."""
    block = Image(data=PNG, annotations=Annotations(audience=["user"]), meta={"a": 1}).content()
    assert isinstance(block, ImageContent)
    assert (b64decode(block.data), block.mime_type) == (PNG, "image/png")
    assert (block.annotations, block.meta) == (Annotations(audience=["user"]), {"a": 1})


@pytest.mark.parametrize(
    "given, mime",
    [
        ({"data": b"?", "format": "png"}, "image/png"),
        ({"data": b"?", "format": ".JPG"}, "image/jpeg"),
        ({"data": b"?", "format": "x-tga"}, "image/x-tga"),
        ({"data": PNG, "mime_type": "image/x-other"}, "image/x-other"),
        ({"data": bytearray(PNG)}, "image/png"),
        ({"data": memoryview(PNG)}, "image/png"),
    ],
)
def test_what_is_said_goes_before_what_is_found(given: dict[str, Any], mime: str) -> None:
    """An explicit type or format wins over name and bytes."""
    assert Image(**given).content().mime_type == mime


def test_media_of_files(tmp_path: Path) -> None:
    """The name of a file tells its type, and its bytes where the name does not."""
    named = tmp_path / "bell.mp3"
    nameless = tmp_path / "bell"
    named.write_bytes(b"?")
    nameless.write_bytes(b"OggS?")
    assert Audio(path=str(named)).content() == AudioContent(data="Pw==", mime_type="audio/mpeg")
    assert Audio(path=nameless).content().mime_type == "audio/ogg"


def test_files_that_are_text_and_files_that_are_not(tmp_path: Path) -> None:
    """Text goes as text and anything else as base64; a folder's name is never told (`RES-02`,
    `RES-11`).
    """
    notes = tmp_path / "my notes.md"
    notes.write_text("# Größe", encoding="utf-8")
    resource = File(path=notes).content().resource
    assert (resource.uri, resource.mime_type, resource.text, resource.blob) == (
        "file:///my%20notes.md",
        "text/markdown",
        "# Größe",
        None,
    )

    resource = File(data=b"\xff\0", name="a.bin").content().resource
    assert (resource.uri, resource.mime_type, resource.text) == (
        "file:///a.bin",
        "application/octet-stream",
        None,
    )
    assert b64decode(resource.blob or "") == b"\xff\0"

    resource = File(data=b"\xff\xfe", uri="x://y/z.txt").content().resource
    assert (resource.uri, resource.mime_type, resource.text, resource.blob) == (
        "x://y/z.txt",
        "text/plain",
        None,
        "//4=",
    )

    resource = File(data="hi", mime_type="text/x-mine").content().resource
    assert (resource.mime_type, resource.text) == ("text/x-mine", "hi")
    # RFC 6920, section 8.2, has this very hash of "Hello World!".
    assert (
        File(data="Hello World!").content().resource.uri
        == "ni:///sha-256;f4OxZX_x_FO5LcGBSKHWXfwtSx-j1ncoSt3SABJtkGk"
    )


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: Image(), ValueError, "takes data= or path=, one of them"),
        (lambda: Image(data=b"x", path="x"), ValueError, "not both"),
        (lambda: File(), ValueError, "one of them"),
        (lambda: Image("chart.png"), TypeError, "a file is named with path="),  # type: ignore[arg-type] # the mistake that is likely
        (lambda: Image(path=b"x"), TypeError, "as str or Path"),  # type: ignore[arg-type] # a mistake on purpose
        (
            lambda: Image(data=PNG, format="png", mime_type="image/png"),
            ValueError,
            "format= or mime_type=",
        ),
        (lambda: Image(data=PNG, mime_type="audio/wav"), ValueError, "starts with image/"),
        (lambda: Audio(data=PNG).content(), ValueError, "cannot be image/png"),
        (lambda: Image(data=b"?").content(), ValueError, "say mime_type="),
        (
            lambda: Image(path="/no/such/file.png").content(),
            FileNotFoundError,
            "/no/such/file.png: there is no such file",
        ),
        (lambda: File(path="/").content(), OSError, "folder"),
    ],
)
def test_mistakes_are_named(make: Any, error: type[Exception], words: str) -> None:
    """Both sources or none, a wrong family, an unknown type, a missing file: each has its own
    sentence.
    """
    with pytest.raises(error, match=words):
        make()


def test_media_do_not_change() -> None:
    """They may be kept and returned again."""
    with pytest.raises(AttributeError):
        Image(data=PNG).data = b""  # type: ignore[misc] # what must fail


@pytest.mark.parametrize(
    "mime",
    [
        "text/plain",
        "text/html; charset=utf-8",
        "application/json",
        "image/svg+xml",
        "application/ld+json",
    ],
)
def test_text_types(mime: str) -> None:
    """Types that are read as text, whatever stands behind a semicolon."""
    assert is_text(mime)
    assert not is_text("application/octet-stream")
