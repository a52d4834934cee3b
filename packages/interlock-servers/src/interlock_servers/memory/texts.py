"""Normalizes text for storage, comparison, search and display."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote

from interlock import ToolError
from interlock.untrusted.invisible import visible_line as shown

# Scripts without spaces between words: each character counts as a word, and a word as a phrase.
_ALONE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3105-\u312f\u3400-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_PICTURES = "\u2190-\u2bff\U0001f000-\U0001faff"
_SIGN = re.compile(rf"[^\w\s{_ALONE}{_PICTURES}]|_")
_WORD = re.compile(rf"[{_ALONE}{_PICTURES}]|[^\W_{_ALONE}]+")
# Accents, and the points of Hebrew and Arabic, which people leave out in searches. Marks of other
# scripts are letters.
_MARKS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u0640\u064b-\u065f\u0670]"
)
_UNSEEN = re.compile("[\ufe00-\ufe0f\u200b-\u200f\u00ad\u2060\ufeff]")
# Not printable for Python, but part of words and emoji.
_JOINERS = "\u200c\u200d"
_MOST_SHOWN = 200  # characters of a rejected text in an error message


def kept(text: str, what: str, most: int) -> str:
    """Normalize a text for storage (NFC), so that texts that look the same are the same.

    Raises ToolError for text that cannot be stored. `what` names it in the error message; `most` is
    its maximum length in characters.
    """
    if len(text) > most:
        raise ToolError(f"{what} has {len(text):,} characters, and the limit is {most:,}.")
    if "\0" in text:
        raise ToolError(
            f"{what} has a NUL character, which cannot be stored: {shown(text[:_MOST_SHOWN])}"
        )
    made = text if text.isascii() else unicodedata.normalize("NFC", text)
    try:
        made.encode()
    except UnicodeEncodeError:
        raise ToolError(f"{what} has a lone surrogate.") from None
    return made


def name_of(text: str, what: str, most: int) -> str:
    """Normalize a name or a type. Raises ToolError for an invisible one."""
    made = kept(text, what, most)
    if not made.strip():
        raise ToolError(f"{what} is empty.")
    return made


def folded(text: str) -> str:
    """Fold a text for searching: without case, accents and width."""
    if text.isascii():
        return text.lower()
    apart = _UNSEEN.sub("", _MARKS.sub("", unicodedata.normalize("NFKD", text)))
    return unicodedata.normalize(
        "NFC", _MARKS.sub("", unicodedata.normalize("NFKD", apart.casefold()))
    )


def words_of(text: str) -> list[str]:
    """The words of a folded text, in order."""
    return _WORD.findall(text)


def signs_of(text: str) -> set[str]:
    """The signs of a folded text that are not part of words, alone and with their neighbours."""
    places = [found.start() for found in _SIGN.finditer(text)]
    found = {
        text[start : start + length]
        for place in places
        for start, length in ((place, 1), (place, 2), (max(0, place - 1), 2))
    }
    return {one for one in found if not any(char.isspace() for char in one)}


def sign_of(text: str) -> str:
    """A sign encoded as an ASCII word for the index."""
    return text.encode("utf-8", "surrogatepass").hex()


def uri_of(name: str) -> str:
    """The URI of an entity."""
    return f"memory://entity/{quote(name, safe='')}"
