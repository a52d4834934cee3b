"""Numbers in a sentence: digits with separators, words, and thousands such as 2.5k."""

from __future__ import annotations

import re

_UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORDS = {
    **{word: value for value, word in enumerate(_UNITS)},
    **{word: 10 * value for value, word in enumerate(_TENS, 2)},
}
_SCALES = {"hundred": 100, "thousand": 1000, "grand": 1000, "k": 1000}
_ONE = "|".join(sorted(_WORDS, key=len, reverse=True))

DIGITS = r"(?<![\d.,])(?:\d{1,3}(?:[.,' ]\d{3})+(?!\d)|\d+(?:[.,]\d{1,2})?(?![\d]))"
"""A number in digits, without its scale."""
AMOUNT = (
    rf"(?:{DIGITS}(?:\s?(?:k|thousand|grand)\b)?"
    rf"|(?:a|{_ONE})(?:[ -](?:and |a )?(?:{_ONE}|hundred|thousand|grand)\b)*)"
)
"""A number in digits or words; may be followed by a scale."""
COUNT = rf"(?:\d{{1,2}}|a couple of|a couple|an?|{'|'.join(_UNITS[1:13])}|fourteen|twenty)"
"""A small number of days or people."""

_GROUPED = re.compile(r"\d{1,3}(?:[.,' ]\d{3})+")


def number(text: str) -> float | None:
    """Return the number that a text says; None if it says none.

    Args:
        text: Such as `2,500`, `2.5k`, `two thousand five hundred`, `a couple of`.
    """
    plain = " ".join(text.lower().replace("-", " ").split())
    if plain.startswith("a couple"):
        return 2
    found = re.match(r"[\d.,' ]*\d", plain)
    if found is None:
        return _worded(plain.split())
    digits = found[0]
    if _GROUPED.fullmatch(digits):
        value = float(re.sub(r"\D", "", digits))
    else:
        value = float(digits.replace(",", "."))
    scale = plain[found.end() :].strip()
    return value * _SCALES.get(scale, 1)


def _worded(words: list[str]) -> float | None:
    total = 0
    part = 0
    for word in words:
        if word in ("a", "an"):
            part += 1
        elif word in _WORDS:
            part += _WORDS[word]
        elif word == "hundred":
            part = max(part, 1) * 100
        elif word in _SCALES:
            total += max(part, 1) * 1000
            part = 0
        elif word != "and":
            return None
    return float(total + part) if words else None
