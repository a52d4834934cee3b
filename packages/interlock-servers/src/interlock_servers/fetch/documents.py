"""Turns a response into readable text, an image or audio, by its media type or its first bytes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from interlock import Audio, AudioContent, Image, ImageContent, ToolError
from interlock.untrusted.invisible import one_line as shown

from . import errors
from .charsets import decoded
from .convert import DocumentConverter
from .fetcher import FetchedResponse
from .paging import clean, digest_of
from .results import Kind
from .settings import PREFIX, FetchSettings

Format = Literal["markdown", "text", "html"]

_TEXTS = frozenset(
    {
        "application/json",
        "application/xml",
        "application/javascript",
        "application/ecmascript",
        "application/x-javascript",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/sql",
        "application/jsonl",
        "application/x-ndjson",
        "application/graphql",
        "application/x-sh",
        "application/rtf",
        "application/x-httpd-php",
        "application/x-www-form-urlencoded",
        "image/svg+xml",
    }
)
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_VAGUE = frozenset(
    {
        "",
        "application/octet-stream",
        "binary/octet-stream",
        "application/force-download",
        "application/download",
    }
)
_BEGINS = (
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
)
_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,127}/[a-z0-9!#$&^_.+-]{1,127}")
_MARKUP = re.compile(
    rb"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_RANGE = re.compile(r"(\d{1,6})(?:\s*-\s*(\d{1,6})?)?")
_LONGEST_PDF = 2_000  # pages in one call; further pages are requested by number


class FetchedDocument(Struct, frozen=True):
    """A document ready to read.

    `medium` is an image or audio, `text` anything else; `digest` is its version.
    """

    kind: Kind
    text: str = ""
    digest: str = ""
    medium: ImageContent | AudioContent | None = None
    title: str | None = None
    description: str | None = None
    language: str | None = None
    encoding: str | None = None
    pages: int | None = None
    first_page: int | None = None
    last_page: int | None = None
    cut: bool = False


class PdfPages(NamedTuple):
    """The range of pages of a PDF, counted from 1."""

    first: int
    last: int


def leaves(text: str | None) -> PdfPages:
    """Parse a range of pages: "3", "3-7" or "3-"; all pages without one.

    Raises ToolError.
    """
    if text is None or not text.strip():
        return PdfPages(1, _LONGEST_PDF)
    found = _RANGE.fullmatch(text.strip())
    if found is None or int(found[1]) < 1 or (found[2] and int(found[2]) < int(found[1])):
        raise ToolError(f'{shown(text, 60)!r} is not a range of pages. Write "3", "3-7" or "3-".')
    first = int(found[1])
    if found[2]:
        return PdfPages(first, int(found[2]))
    return PdfPages(first, first + _LONGEST_PDF - 1 if "-" in text else first)


def type_of(headers: Mapping[str, str], body: bytes | None = None) -> str:
    """The media type of a response; if the header is missing or wrong, the type that the first
    bytes show.
    """
    said = headers.get("content-type", "").partition(";")[0].strip().lower()
    if not _TYPE.fullmatch(said):
        said = ""
    if said not in _VAGUE or body is None:
        return said
    found = next((kind for mark, kind in _BEGINS if body.startswith(mark)), None)
    if found is None and body[8:12] in (b"WEBP", b"WAVE") and body.startswith(b"RIFF"):
        found = "image/webp" if body[8:12] == b"WEBP" else "audio/wav"
    if found is None and _MARKUP.match(body[:2048]):
        found = "text/html"
    if found is None and b"\0" not in body[:4096] and _is_text(body):
        found = "text/plain"
    return found or said


def _is_text(body: bytes) -> bool:
    try:
        body[:4096].decode()
    except UnicodeDecodeError as bad:
        return bad.start > 4092  # a character that was cut off
    return True


def kind_of(media_type: str) -> Kind | None:
    """How a media type is read; None for a type that cannot be."""
    if media_type in _HTML:
        return "html"
    if media_type == "application/pdf":
        return "pdf"
    if (
        media_type.startswith("text/")
        or media_type in _TEXTS
        or media_type.endswith(("+json", "+xml", "+yaml"))
    ):
        return "text"
    family = media_type.partition("/")[0]
    if family == "image":
        return "image"
    if family == "audio":
        return "audio"
    return None


def wanted(settings: FetchSettings, url: str, headers: Mapping[str, str]) -> None:
    """Check the headers of a response before its body is loaded.

    Raises ToolError if the document cannot be read anyway.
    """
    said = type_of(headers)
    length = headers.get("content-length", "")
    size = int(length) if length.isdigit() and len(length) < 16 else None
    if said not in _VAGUE and kind_of(said) is None:
        raise errors.no_reader(url, said, size)
    if size is not None and size > settings.bytes:
        raise ToolError(
            f"{shown(url)} has {errors.amount(size)}; the limit is "
            f"{errors.amount(settings.bytes)} ({PREFIX}BYTES)."
        )


async def document_of(
    got: FetchedResponse,
    bench: DocumentConverter,
    settings: FetchSettings,
    form: Format,
    main: bool,
    pages: PdfPages,
) -> FetchedDocument:
    """Convert a response as requested. Raises ToolError if it cannot be converted."""
    media_type = type_of(got.headers, got.body)
    kind = kind_of(media_type)
    if kind is None:
        raise errors.no_reader(got.url, media_type, len(got.body))
    if kind == "pdf":
        return await _pdf(got, bench, pages)
    if kind in ("image", "audio"):
        if len(got.body) > settings.media:
            raise ToolError(
                f"{shown(got.url)} is {'a picture' if kind == 'image' else 'sound'} of "
                f"{errors.amount(len(got.body))}; the limit is "
                f"{errors.amount(settings.media)} ({PREFIX}MEDIA)."
            )
        medium = (Image if kind == "image" else Audio)(data=got.body, mime_type=media_type)
        return FetchedDocument(kind, medium=medium.content())
    text, encoding = await text_of(got, markup=kind == "html" or media_type.endswith("xml"))
    if kind == "html" and form != "html":
        written = await bench.of_html(
            text, got.url, form="markdown" if form == "markdown" else "plain", main=main
        )
        return await _text(
            "markdown" if form == "markdown" else "text",
            written.text,
            encoding=encoding,
            title=written.title,
            description=written.description,
            language=written.language,
        )
    plain = "markdown" if media_type in ("text/markdown", "text/x-markdown") else kind
    return await _text(plain, text, encoding=encoding)


async def _pdf(got: FetchedResponse, bench: DocumentConverter, pages: PdfPages) -> FetchedDocument:
    printed = await bench.of_pdf(got.body, pages.first, pages.last)
    if pages.first > printed.count:
        raise ToolError(
            f"{shown(got.url)} has {printed.count} pages, so there is no page {pages.first}."
        )
    if not any(text.strip() for text in printed.texts):
        raise ToolError(
            f"The pages of {shown(got.url)} have no text: they are images, perhaps scans."
        )
    marked = [
        f"[Page {number} of {printed.count}]\n\n{text.strip()}\n\n"
        for number, text in enumerate(printed.texts, printed.first)
    ]
    last = printed.first + len(printed.texts) - 1
    return await _text(
        "pdf",
        "".join(marked),
        title=printed.title,
        pages=printed.count,
        first_page=printed.first,
        last_page=last,
        cut=printed.cut
        or (last < printed.count and last < pages.last)
        or last - printed.first + 1 == _LONGEST_PDF < printed.count,
    )


async def text_of(got: FetchedResponse, *, markup: bool) -> tuple[str, str]:
    """The text of a response, and its encoding."""
    return await asyncio.to_thread(
        decoded, got.body, got.headers.get("content-type", ""), markup=markup
    )


async def _text(kind: Kind, text: str, **about: object) -> FetchedDocument:
    seen = await asyncio.to_thread(clean, text)
    about.update(
        {
            name: clean(said)
            for name in ("title", "description")
            if isinstance(said := about.get(name), str)
        }
    )
    return FetchedDocument(kind, seen, await asyncio.to_thread(digest_of, seen), **about)  # type: ignore[arg-type]  # what callers above give
