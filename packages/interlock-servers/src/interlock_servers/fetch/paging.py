"""Pagination of long texts: where to cut them, cursors, and headings."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Annotated, NamedTuple

import msgspec

from interlock.cursors import encode_cursor

from ..cursors import read_cursor

_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u180e\u200b\u2060-\u2064\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
    # One of these selects a variant of the character before it; many of them can hide a message
    "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}"
    "|(?<![\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
    "|[\u200c\u200d]{2,}"
)
_JOINS = frozenset("\u200d\ufe0e\ufe0f")
# characters by which a cut may move back, to keep a letter and its accents together
_CLUSTER = 32
_HEADING = re.compile(r"(#{1,6}) (.{1,2000})")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


class TextPlace(msgspec.Struct, array_like=True):
    """A position in a text: which text, and how far."""

    digest: str
    start: Annotated[int, msgspec.Meta(ge=0)]


class Heading(NamedTuple):
    """A Markdown heading and its position."""

    level: int
    title: str
    start: int


def clean(text: str) -> str:
    """A text without invisible characters, which can hide sentences.

    `interlock.untrusted.invisible.clean` removes more and examines each character. A page can have
    megabytes, so this is one regular expression; and it keeps direction marks and soft hyphens,
    which belong to the text of a page. The host cleans every result before a model gets it.
    """
    return _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def digest_of(text: str) -> str:
    """A digest that identifies a version of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def cursor_of(digest: str, start: int) -> str:
    """The cursor of a position in a text."""
    return encode_cursor(TextPlace(digest, start), "fetch")


def place_of(cursor: str) -> TextPlace:
    """Decode the cursor of a position. Raises ToolError."""
    return read_cursor(cursor, TextPlace, "fetch")


def end_of(text: str, start: int, length: int) -> int:
    """Where a page of at most `length` characters ends: after a paragraph, else a line, else a
    word; never within a character.
    """
    latest = start + max(length, 1)
    if latest >= len(text):
        return len(text)
    for mark, share in (("\n\n", 0.5), ("\n", 0.6), (" ", 0.8)):
        found = text.rfind(mark, start + int(length * share), latest)
        if found > start and found + len(mark) <= latest:
            return found + len(mark)
    end = latest
    while end > max(start + 1, latest - _CLUSTER) and (
        unicodedata.combining(text[end])
        or text[end] in _JOINS
        or text[end - 1] == "\u200d"
        or "\U0001f3fb" <= text[end] <= "\U0001f3ff"
    ):
        end -= 1
    return end if end > max(start + 1, latest - _CLUSTER) else latest


def headings_of(text: str) -> list[Heading]:
    """The headings of a Markdown text, except lines in code blocks that look like headings."""
    found: list[Heading] = []
    fence = ""
    start = 0
    for line in text.splitlines(keepends=True):
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif not fence and (heading := _HEADING.match(line)):
            found.append(Heading(len(heading[1]), heading[2].strip(), start))
        start += len(line)
    return found
