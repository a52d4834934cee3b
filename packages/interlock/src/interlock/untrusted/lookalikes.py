"""Homographs: names that look like others, and the writing systems that they mix."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from .invisible import clean, visible

# Letters that are taken for another at a glance; the left is what a reader sees. Decomposition does
# the rest (accents, full width).
_ALIKE = {
    "a": "аɑαạ", "b": "ЬƄвɓ", "c": "сϲƈ", "d": "ԁɗժ", "e": "еҽєɛ℮", "f": "ƒϝ", "g": "ɡɢցԍ",
    "h": "һнհ", "i": "іıɩιǃ1!|l", "j": "јʝ", "k": "кκƙ", "m": "мm", "n": "ոпη", "o": "оοօ0ө",
    "p": "рρ", "q": "ԛգ", "r": "гɾ", "s": "ѕʂ5$", "t": "тτ", "u": "υսц", "v": "ѵνv", "w": "ԝшωա",
    "x": "хχ×", "y": "уүγʏ", "z": "ʐᴢ2",
}  # fmt: skip
_SEEN_AS = {look: letter for letter, looks in _ALIKE.items() for look in looks if look != letter}
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))


def scripts(name: str) -> set[str]:
    """The writing systems of a name, by the first word of its letters' names.

    Chinese, Japanese and Korean ones belong together, and Latin letters to them.
    """
    found = {unicodedata.name(letter, "?").split(" ")[0] for letter in name if letter.isalpha()}
    east = {"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "KATAKANA-HIRAGANA"}
    latin = {"LATIN"} if found & east else set()
    return {"EAST" if script in east else script for script in found} - latin


def skeleton(name: str) -> str:
    """What a reader takes a name for at a glance."""
    plain = "".join(
        each
        for each in unicodedata.normalize("NFKD", name.lower())
        if not unicodedata.combining(each)
    )
    seen = "".join(_SEEN_AS.get(each, each) for each in plain)
    for pair, letter in _PAIRS:
        seen = seen.replace(pair, letter)
    return seen


def lookalikes(names: Sequence[str]) -> dict[str, str]:
    """What a person should know of names that stand in one list; those that are as they look are
    left out.

    Only names with letters beyond ASCII, or with characters that nobody sees, can be there.

    Args:
        names: The names, in their order.

    Returns:
        A sentence by name.
    """
    first: dict[str, str] = {}
    for name in sorted(names, key=lambda each: not each.isascii()):
        first.setdefault(skeleton(clean(name)), name)
    found: dict[str, str] = {}
    for name in names:
        seen = clean(name)
        other = first[skeleton(seen)]
        mixed = scripts(seen)
        if name.isascii() and name == seen:
            continue
        if other != name:
            found[name] = f"This name looks like {visible(other)}, but differs from it."
        elif len(mixed) > 1:
            words = " and ".join(sorted(script.capitalize() for script in mixed))
            found[name] = f"This name mixes letters that look alike: {words}."
        elif seen != name:
            found[name] = "This name contains invisible characters."
        elif mixed != {"LATIN"} and skeleton(seen).isascii():
            found[name] = f"This name reads like {skeleton(seen)}, but differs from it."
    return found
