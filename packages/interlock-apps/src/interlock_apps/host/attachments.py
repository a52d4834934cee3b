"""Files that a person attaches to a message: their types, a model's limits, their blocks."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from msgspec import Struct

from interlock import AudioContent, ImageContent, InterlockError, TextContent
from interlock.models.interface import AcceptedContent, Model
from interlock.types import UnknownContent
from interlock.untrusted.invisible import plain_line

FILE = "io.interlock/file"
"""The key in a block's `_meta` for the name and size of the file that it comes from. A text block
with `label` there only names the next block for the model."""

MOST_FILES = 20  # in one message
MOST_TEXT = 4_000_000  # bytes of a text file; a model reads it in pages
MOST_TOGETHER = 30_000_000  # bytes of all files of a message: providers limit a whole request
MOST_NAME = 200  # characters

FileKind = Literal["text", "image", "audio", "document"]
Paged = Callable[[str, str], str]

_STARTS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_HEIF = {b"heic": "image/heic", b"heix": "image/heic", b"mif1": "image/heif"}
_BY_FACTS = AcceptedContent(
    images=frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"}),
    audio=frozenset({"audio/wav", "audio/mpeg"}),
    most=5_000_000,
)
_NAMES = {"image": "pictures", "audio": "sounds", "document": "documents"}
_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_PAGE_SIZE = 50_000  # bytes: a typical page, for a document that hides its pages


class FileRefused(InterlockError):
    """A file cannot be sent to this model. The message says why, and names the file."""


class AttachedFile(Struct, frozen=True):
    """A file for a message.

    Attributes:
        name: Its name, without a folder.
        data: Its content.
    """

    name: str
    data: bytes

    @classmethod
    def read(cls, path: str | Path) -> AttachedFile:
        """Read a file. Raises OSError, and FileRefused for one that is too large."""
        place = Path(path).expanduser()
        with place.open("rb") as opened:
            data = opened.read(MOST_TOGETHER + 1)
        if len(data) > MOST_TOGETHER:
            raise FileRefused(f"{place.name} is larger than {size_in_words(MOST_TOGETHER)}.")
        return cls(place.name, data)


def media_type(data: bytes) -> str:
    """The media type of a file by its content: what a name or a browser says is not trusted.

    Text of any kind is "text/plain"; "" is none of the types that models read.
    """
    for start, mime in _STARTS:
        if data.startswith(start):
            return mime
    if data.startswith(b"RIFF") and data[8:12] in _RIFF:
        return _RIFF[data[8:12]]
    if data[4:8] == b"ftyp" and data[8:12] in _HEIF:
        return _HEIF[data[8:12]]
    return "text/plain" if text_of(data) is not None else ""


def kind_of(mime: str) -> FileKind:
    """Which block a file of this type becomes."""
    main = mime.partition("/")[0]
    if main == "image":
        return "image"
    if main == "audio":
        return "audio"
    return "text" if main == "text" else "document"


def text_of(data: bytes) -> str | None:
    """The text of a file in UTF-8, or in UTF-16 with a byte order mark; None if it is not text."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def accepted_by(model: Model) -> AcceptedContent:
    """The content that a model accepts; for a model that does not say it, by its facts."""
    stated = getattr(model, "accepts", None)
    if isinstance(stated, AcceptedContent):
        return stated
    facts = model.facts
    return AcceptedContent(
        images=_BY_FACTS.images if facts.images else frozenset(),
        audio=_BY_FACTS.audio if facts.audio else frozenset(),
        most=_BY_FACTS.most,
    )


def check_file(file: AttachedFile, model: Model) -> str:
    """Return the media type of a file. Raises FileRefused if the model does not accept it."""
    name = plain_line(file.name, MOST_NAME) or "The file"
    mime = media_type(file.data)
    if not mime:
        raise FileRefused(
            f"{name} is neither text nor a picture, sound or PDF that a model can read."
        )
    if not file.data:
        raise FileRefused(f"{name} is empty.")
    kind = kind_of(mime)
    if kind == "text":
        _check_size(name, file, MOST_TEXT, "A text file can have")
        return mime
    accepts = accepted_by(model)
    types = {"image": accepts.images, "audio": accepts.audio, "document": accepts.documents}[kind]
    if not types:
        raise FileRefused(
            f"{model.name} accepts no {_NAMES[kind]}. Choose another model, or remove {name}."
        )
    if mime not in types:
        known = ", ".join(sorted(each.partition("/")[2] for each in types))
        raise FileRefused(
            f"{name} has the type {mime}. Of {_NAMES[kind]}, {model.name} accepts {known}."
        )
    most = accepts.most_document if kind == "document" else accepts.most
    _check_size(name, file, most, f"{model.name} accepts")
    return mime


def file_blocks(files: Sequence[AttachedFile], model: Model, paged: Paged) -> list[Any]:
    """The content blocks of files, in their order.

    Args:
        files: The files.
        model: The model that gets them.
        paged: Returns the first page of a text between marks, with what it is.

    Raises:
        FileRefused: The model does not accept one of them, or they are too many or too large.
    """
    if len(files) > MOST_FILES:
        raise FileRefused(f"A message can have at most {MOST_FILES} files.")
    if sum(len(file.data) for file in files) > MOST_TOGETHER:
        raise FileRefused(
            f"The files of a message can have at most {size_in_words(MOST_TOGETHER)} together."
        )
    blocks: list[Any] = []
    for file in files:
        mime = check_file(file, model)
        name = plain_line(file.name, MOST_NAME) or "file"
        blocks += _blocks(name, mime, file.data, paged)
    return blocks


def _blocks(name: str, mime: str, data: bytes, paged: Paged) -> list[Any]:
    about: dict[str, Any] = {"name": name, "mimeType": mime, "size": len(data)}
    meta = {FILE: about}
    kind = kind_of(mime)
    if kind == "text":
        return [TextContent(text=paged(text_of(data) or "", f"file {name}"), meta=meta)]
    encoded = base64.b64encode(data).decode()
    if kind == "document":
        resource = {"uri": f"attachment:///{quote(name)}", "mimeType": mime, "blob": encoded}
        about["pages"] = pages_of(data)
        return [UnknownContent(block={"type": "resource", "resource": resource, "_meta": meta})]
    label = TextContent(text=f"File {name}:", meta={FILE: {"name": name, "label": True}})
    if kind == "image":
        return [label, ImageContent(data=encoded, mime_type=mime, meta=meta)]
    return [label, AudioContent(data=encoded, mime_type=mime, meta=meta)]


def pages_of(pdf: bytes) -> int:
    """The pages of a PDF: counted, or estimated by its size if they are compressed."""
    return len(_PAGE.findall(pdf)) or 1 + len(pdf) // _PAGE_SIZE


def size_in_words(size: int) -> str:
    """A number of bytes for people, in decimal units."""
    if size < 1_000:
        return f"{size} bytes"
    return f"{size / 1_000:.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


def _check_size(name: str, file: AttachedFile, most: int, limit: str) -> None:
    if len(file.data) > most:
        raise FileRefused(
            f"{name} has {size_in_words(len(file.data))}. {limit} at most {size_in_words(most)}."
        )
