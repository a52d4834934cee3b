"""Invisible and bidirectional characters: written out for people, removed for models."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# A terminal's commands: CSI, OSC and the other strings, and two-character escapes; whole, so that
# none of their letters remains.
_ANSI = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-Z\\\\^-~]?"
)
_LINE_ENDS = re.compile("\r\n|[\r\x85\u2028\u2029]")
_PLAIN = re.compile(
    "[\t\n -~]*"
)  # most texts; what is not pure ASCII is looked at letter by letter
_PRINTABLE = re.compile("[ -~]*")

_FOREIGN = re.compile("[^\t\n -~]+")
# Printable, and yet not seen.
_ODD = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)

# Not of category Cf, and yet nothing to see.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
# Of category Cf, and yet to be seen: signs of numbers and verses.
_SEEN = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
_JOINERS = frozenset("\u200c\u200d")
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Writing systems in which the joiners belong to the spelling.
_JOINED = (
    (0x0600, 0x08FF),
    (0x0900, 0x0DFF),
    (0x0F00, 0x109F),
    (0x1780, 0x18AF),
    (0xFB50, 0xFDFF),
    (0xFE70, 0xFEFC),
)


def visible(text: str) -> str:
    """The text for people, with what cannot be seen written out: ⟨U+200B⟩.

    Line ends and tabs stay; total and idempotent.
    """
    if _seen(text):
        return text
    shown: list[str] = []
    for place, letter in enumerate(text):
        shown.append(
            _written_out(letter)
            if _hidden(letter) and not _at_home(letter, shown, text[place + 1 : place + 2])
            else letter
        )
    return "".join(shown)


def visible_line(text: str) -> str:
    """The text for people in one line, where nothing can pass for something else.

    Total and idempotent.

    For commands, addresses and names that a person approves: line ends, tabs, every blank but the
    space and all that is not printable is written out, also where it belongs to the spelling.
    """
    if _PRINTABLE.fullmatch(text):
        return text
    return "".join(
        letter if letter.isprintable() and not _hidden(letter) else _written_out(letter)
        for letter in text
    )


def one_line(text: str, most: int = 200) -> str:
    """The text for people in one line, spelled as it is: line ends become \\n, tabs become spaces.

    Args:
        text: Words of somebody else, for a sentence of ours.
        most: The most characters. A longer text is cut, and ends with " ...".
    """
    flat = visible(text[: most * 2].replace("\n", "\\n").replace("\t", " "))
    return flat if len(flat) <= most and len(text) <= most * 2 else f"{flat[: most - 4]} ..."


def plain_line(text: str, most: int = 400) -> str:
    """The text for people in one line, without what is not printable.

    Args:
        text: Words of somebody else, for a sentence of ours.
        most: The most characters. A longer text is cut, and ends with "…".
    """
    seen = (letter if letter.isprintable() else " " for letter in text[: most * 4])
    flat = " ".join("".join(seen).split())
    return flat if len(flat) <= most else flat[: most - 1].rstrip() + "…"


def _written_out(letter: str) -> str:
    return f"⟨U+{ord(letter):04X}⟩"


def clean(text: str) -> str:
    """The text for a model: without what a person cannot see. Total and idempotent.

    Terminal commands, control characters, tags, zero-width characters and direction marks go; line
    ends become newlines. What belongs to the spelling stays: joiners inside Persian or Indian words
    and between the parts of an emoji, and one variation selector.
    """
    if _PLAIN.fullmatch(text):
        return text
    text = _LINE_ENDS.sub("\n", _ANSI.sub("", text))
    if _seen(text):
        return text
    kept: list[str] = []
    for place, letter in enumerate(text):
        if "\ud800" <= letter <= "\udfff":
            kept.append("\ufffd")
        elif not _hidden(letter) or _at_home(letter, kept, text[place + 1 : place + 2]):
            kept.append(letter)
    return "".join(kept)


def hidden(text: str) -> list[str]:
    """The characters of a text that nobody sees and that have no business there, in order."""
    if _seen(text):
        return []
    found: list[str] = []
    for run in _FOREIGN.finditer(text):
        # Whether a character is at home depends on those before it in the run, and on one more.
        kept = list(text[max(0, run.start() - 1) : run.start()])
        for place in range(run.start(), run.end()):
            letter = text[place]
            if (
                letter != "\r"
                and _hidden(letter)
                and not _at_home(letter, kept, text[place + 1 : place + 2])
            ):
                found.append(letter)
            else:
                kept.append(letter)
    return found


def smuggled(text: str) -> str:
    """What a text says in tag characters, which are ASCII that nobody sees."""
    return "".join(
        chr(ord(letter) - 0xE0000) for letter in text if 0xE0020 <= ord(letter) <= 0xE007E
    )


def turned(text: str) -> bool:
    """Whether a text has marks that turn the direction of writing, so that it is not read as it
    stands.
    """
    return any(letter in _BIDI for letter in hidden(text))


def _seen(text: str) -> bool:
    """Whether all of a text is plainly there to see: then nobody has to go through it letter by
    letter.
    """
    return all(run[0].isprintable() and not _ODD.search(run[0]) for run in _FOREIGN.finditer(text))


@lru_cache(maxsize=4096)
def _hidden(letter: str) -> bool:
    if letter in "\t\n" or " " <= letter <= "~" or letter in _SEEN:
        return False
    return (
        letter in _BLANK
        or selector(letter)
        or unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    )


def selector(letter: str) -> bool:
    """Whether this chooses among the shapes of the character before it."""
    return (
        "\ufe00" <= letter <= "\ufe0f"
        or "\U000e0100" <= letter <= "\U000e01ef"
        or "\u180b" <= letter <= "\u180f"
    )


def _at_home(letter: str, before: list[str], after: str) -> bool:
    """Whether an invisible character belongs to the spelling, between what was kept before it and
    what comes after it.
    """
    if not before:
        return False
    last = before[-1][-1]  # what was written out is longer than a character
    if selector(letter):
        if "\ufe00" <= letter <= "\ufe0f" and letter not in "\ufe0e\ufe0f":
            return _ideograph(last)
        if letter in "\ufe0e\ufe0f":
            return (
                unicodedata.category(last) in ("So", "Sm", "Po", "Nd", "Sc") and not _hidden(last)
            ) or last in "↔↩〰〽㊗㊙"
        return (
            _ideograph(last)
            if letter >= "\U000e0100"
            else 0x1800 <= ord(last) <= 0x18AF and last.isalpha()
        )
    if letter not in _JOINERS or not after:
        return False
    if (
        letter == "\u200d"
        and _picture(after)
        and (_picture(last) or (last == "\ufe0f" and len(before) > 1 and _picture(before[-2][-1])))
    ):
        return True
    return _joined(last) and _joined(after)


def _picture(letter: str) -> bool:
    return (
        unicodedata.category(letter) in ("So", "Sk") and ord(letter) > 0x2000
    ) or letter in "♂♀⚕↔"


def _ideograph(letter: str) -> bool:
    return (
        0x3400 <= ord(letter) <= 0x9FFF
        or 0x20000 <= ord(letter) <= 0x3FFFF
        or 0xF900 <= ord(letter) <= 0xFAFF
    )


@lru_cache(maxsize=4096)
def _joined(letter: str) -> bool:
    return (
        any(first <= ord(letter) <= last for first, last in _JOINED)
        and unicodedata.category(letter)[0] in "LM"
    )
