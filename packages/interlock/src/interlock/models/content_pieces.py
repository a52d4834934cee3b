"""Splits content into what a provider accepts; the rest is described in words."""

from __future__ import annotations

import binascii
from typing import Any, Literal
from urllib.parse import unquote

import msgspec
from msgspec import UNSET, Struct

from interlock.types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    ToolResultContent,
    ToolUseContent,
    UnknownContent,
)

from ..untrusted.invisible import plain_line as plain
from .interface import AcceptedContent

_MOST_TEXT = 2_000_000  # characters of one text: more than any model accepts
NOTHING = "The tool gave nothing."


class ContentPiece(Struct, frozen=True):
    """Text, or base64 `data` of a media type, with an optional name."""

    kind: Literal["text", "image", "audio", "document"]
    text: str = ""
    data: str = ""
    mime: str = ""
    name: str = ""


def pieces(block: Any, taken: AcceptedContent) -> list[ContentPiece]:
    """Convert a content block into pieces that the provider accepts.

    A text line replaces content that it does not accept, and says what was left out. Messages of
    sampling have no block for a document: an `UnknownContent` with an embedded resource is one.
    """
    if isinstance(block, TextContent):
        return [ContentPiece("text", block.text[:_MOST_TEXT])] if block.text else []
    if isinstance(block, ImageContent):
        return [_media("image", "A picture", block.data, block.mime_type, taken)]
    if isinstance(block, AudioContent):
        return [_media("audio", "A sound", block.data, block.mime_type, taken)]
    if isinstance(block, ResourceLink):
        return [ContentPiece("text", _link(block))]
    if isinstance(block, EmbeddedResource):
        return _resource(block, taken)
    if isinstance(block, ToolUseContent | ToolResultContent):
        return []
    if isinstance(block, UnknownContent) and block.block.get("type") == "resource":
        try:
            return _resource(msgspec.convert(block.block, EmbeddedResource), taken)
        except msgspec.ValidationError:
            pass  # it is described below, like any other kind
    kind = block.block.get("type") if isinstance(block, UnknownContent) else type(block).__name__
    return [
        ContentPiece(
            "text",
            f"[Content of the kind {plain(str(kind), 60)} was left out: this kind is not "
            "supported.]",
        )
    ]


def result_pieces(result: ToolResultContent, taken: AcceptedContent) -> list[ContentPiece]:
    """Convert a tool result into at least one piece.

    Structured content is included if no text represents it.
    """
    found = [piece for block in result.content for piece in pieces(block, taken)]
    if result.structured_content is not UNSET and not any(
        isinstance(block, TextContent) for block in result.content
    ):
        found.insert(
            0,
            ContentPiece(
                "text", msgspec.json.encode(result.structured_content).decode()[:_MOST_TEXT]
            ),
        )
    return found or [ContentPiece("text", NOTHING)]


def text_of_pieces(found: list[ContentPiece]) -> str:
    """The text of the pieces, in lines."""
    return "\n".join(piece.text for piece in found if piece.kind == "text")


def size_of(data: str) -> int:
    """The number of bytes that base64 text encodes."""
    return len(data) * 3 // 4 - data[-2:].count("=")


def _media(
    kind: Literal["image", "audio", "document"],
    what: str,
    data: str,
    mime: str,
    taken: AcceptedContent,
    name: str = "",
) -> ContentPiece:
    mime = mime.partition(";")[0].strip().lower()
    allowed = {"image": taken.images, "audio": taken.audio, "document": taken.documents}[kind]
    if mime == "image/jpg":
        mime = "image/jpeg"
    described = (
        f"{what} ({plain(mime or 'no type', 60)}, "
        f"{_readable(size_of(data))}{', ' + plain(name, 100) if name else ''})"
    )
    if not allowed:
        return ContentPiece("text", f"[{described} was left out: this model does not take any.]")
    if mime not in allowed:
        return ContentPiece(
            "text", f"[{described} was left out: this model does not take this type.]"
        )
    if size_of(data) > (taken.most_document if kind == "document" else taken.most):
        return ContentPiece("text", f"[{described} was left out: it is too large for this model.]")
    try:
        binascii.a2b_base64(data.encode("ascii"), strict_mode=True)
    except ValueError:
        return ContentPiece("text", f"[{described} was left out: its data is broken.]")
    return ContentPiece(kind, data=data, mime=mime, name=name)


def _readable(size: int) -> str:
    if size < 1_000:
        return f"{size} bytes"
    if size < 1_000_000:
        return f"{size / 1_000:.0f} KB"
    return f"{size / 1_000_000:.1f} MB"


def _link(link: ResourceLink) -> str:
    about = ", ".join(
        filter(None, [link.mime_type, f"{link.size} bytes" if link.size is not None else ""])
    )
    words = (
        f"[Resource that can be read: {link.title or link.name}, "
        f"{link.uri}{f' ({about})' if about else ''}]"
    )
    return f"{words}\n{link.description}" if link.description else words


def _resource(block: EmbeddedResource, taken: AcceptedContent) -> list[ContentPiece]:
    held = block.resource
    mime = (held.mime_type or "").partition(";")[0].strip().lower()
    head = f"[Resource {held.uri}{f' ({mime})' if mime else ''}]"
    if held.text is not None:
        return [ContentPiece("text", f"{head}\n{held.text[:_MOST_TEXT]}")]
    data = held.blob or ""
    if mime.startswith("image/"):
        return [ContentPiece("text", head), _media("image", "A picture", data, mime, taken)]
    if mime.startswith("audio/"):
        return [ContentPiece("text", head), _media("audio", "A sound", data, mime, taken)]
    return [
        ContentPiece("text", head),
        _media(
            "document",
            "A document",
            data,
            mime,
            taken,
            unquote(held.uri.rstrip("/").rpartition("/")[2]),
        ),
    ]
