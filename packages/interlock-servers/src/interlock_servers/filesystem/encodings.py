"""Detects what bytes are: text in some encoding, an image, audio, or something else."""

from __future__ import annotations

import codecs
import mimetypes
from typing import Literal, NamedTuple

from interlock import ToolError
from interlock.untrusted.invisible import visible_line as plain

Encoding = Literal[
    "utf-8",
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "utf-32",
    "ascii",
    "latin-1",
    "iso-8859-2",
    "iso-8859-15",
    "cp1250",
    "cp1251",
    "cp1252",
    "koi8-r",
    "mac-roman",
    "shift_jis",
    "euc-jp",
    "euc-kr",
    "big5",
    "gb18030",
]

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# The offset in the file, the bytes, and the type.
_MAGIC = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypheic", "image/heic"),
    (0, b"II*\0", "image/tiff"),
    (0, b"MM\0*", "image/tiff"),
    (8, b"WAVE", "audio/wav"),
    (4, b"ftypM4A ", "audio/mp4"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
    (0, b"\xff\xf2", "audio/mpeg"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"\x7fELF", "application/x-elf"),
    (0, b"SQLite format 3\0", "application/vnd.sqlite3"),
)
# These types do not depend on the system's tables.
_SUFFIXES = {
    "md": "text/markdown",
    "py": "text/x-python",
    "rs": "text/x-rust",
    "go": "text/x-go",
    "ts": "text/x-typescript",
    "js": "text/javascript",
    "json": "application/json",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "toml": "application/toml",
    "csv": "text/csv",
    "html": "text/html",
    "css": "text/css",
    "xml": "application/xml",
    "svg": "image/svg+xml",
    "txt": "text/plain",
}


class EncodingMark(NamedTuple):
    """The byte order mark of a text, and its encoding."""

    encoding: str
    bytes: bytes


def mark_of(head: bytes) -> EncodingMark | None:
    """The byte order mark at the beginning of a file, if it has one."""
    return next((EncodingMark(name, mark) for mark, name in _MARKS if head.startswith(mark)), None)


def magic_of(head: bytes) -> str | None:
    """The MIME type that the first bytes show, for images, audio and a few others."""
    for offset, magic, mime in _MAGIC:
        if head.startswith(magic, offset) and (offset != 8 or head.startswith(b"RIFF")):
            return mime
    return None


def type_of(name: str, head: bytes = b"") -> str:
    """The MIME type of a file, by its first bytes, or else by its name."""
    found = magic_of(head)
    if found is not None:
        return found
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    known = _SUFFIXES.get(suffix) or mimetypes.types_map.get(f".{suffix}")
    if known is not None and not (b"\0" in head and known.startswith("text/")):
        return known
    return "application/octet-stream" if b"\0" in head and mark_of(head) is None else "text/plain"


def is_medium(mime: str) -> bool:
    """Whether it is shown as an image or played as audio."""
    return mime.startswith(("image/", "audio/")) and mime != "image/svg+xml"


def decoded(data: bytes, asked: str | None, path: str) -> tuple[str, str, bytes]:
    """Decode a whole file; return its text, its encoding, and its byte order mark.

    Raises ToolError if it is not text in that encoding.
    """
    encoding, mark = encoding_of(data[:4096], asked, path)
    try:
        return data[len(mark) :].decode(encoding), encoding, mark
    except UnicodeDecodeError as bad:
        raise no_text(path, encoding, bad.start) from None


def encoding_of(head: bytes, asked: str | None, path: str) -> tuple[str, bytes]:
    """The encoding of a text and its byte order mark; without a mark the requested encoding.

    Raises ToolError.
    """
    mark = mark_of(head)
    if mark is not None:
        return mark.encoding, mark.bytes
    if asked is None and b"\0" in head:
        what = type_of(path, head)
        raise ToolError(
            f"{plain(path)} is {what} and not text. Read bytes of it with offset and length, or "
            "name its encoding."
        )
    return {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(
        asked or "utf-8", asked or "utf-8"
    ), b""


def no_text(path: str, encoding: str, at: int) -> ToolError:
    """The error for a file that is not valid in an encoding."""
    return ToolError(
        f"{plain(path)} is not text in {encoding} (see byte {at}). Name its encoding, such as "
        "cp1252 or latin-1, "
        "or read its bytes with offset and length."
    )


def encoded(text: str, encoding: str, mark: bytes, path: str) -> bytes:
    """Encode a text. Raises ToolError for characters that the encoding does not have."""
    if encoding in ("utf-16", "utf-32") and not mark:
        encoding = f"{encoding}-le"
        mark = codecs.BOM_UTF16_LE if encoding == "utf-16-le" else codecs.BOM_UTF32_LE
    try:
        return mark + text.encode(encoding)
    except UnicodeEncodeError as bad:
        char = text[bad.start]
        raise ToolError(
            f"{encoding} does not have {plain(char)!r} (U+{ord(char):04X}), so "
            f"{plain(path)} was not written."
        ) from None
