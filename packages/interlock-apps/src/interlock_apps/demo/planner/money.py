"""Budgets in a sentence: amounts with a currency or with a word such as under, at most, budget."""

from __future__ import annotations

import re

from msgspec import Struct

from .numbers import AMOUNT, number
from .sentence import ENDS, Sentence

RATES = {"USD": 1.0, "EUR": 1.08, "GBP": 1.27, "CHF": 1.12, "JPY": 0.0067, "CAD": 0.73}
"""Fixed rates of the demo: US dollars for one unit of a currency."""
_SIGNS = {"us$": "USD", "$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY"}
_CODES = {
    "USD": r"usd|us dollars?|dollars?|bucks",
    "EUR": r"eur|euros?",
    "GBP": r"gbp|pounds?(?: sterling)?|quid",
    "CHF": r"chf|(?:swiss )?francs?",
    "JPY": r"jpy|yen",
    "CAD": r"cad|canadian dollars?",
}
_SIGN = r"(?:us\$|[$€£¥])"
_CODE = rf"(?:(?:{'|'.join(reversed(_CODES.values()))})\b|[$€£])"
_LIMIT = (
    r"(?:(?:(?:my|our|the|a|with)\s+)*budget(?:\s+(?:of|is|around|about))*:?|under|below|up to|"
    r"at most|no more than|not more than|less than|within|max(?:imum)?(?: of)?|cheaper than|"
    r"for less than|spend(?:ing)?(?: up to| about| around| at most)?|around|about|roughly)"
)
_EACH = r"(?P<each>\s*(?:each|per person|a person|per head|a head|pp|p\.p\.))?"
_NIGHT = r"(?P<night>\s*(?:a night|per night|each night|nightly))?"
_IN_ALL = r"(?:\s+(?:in total|in all|altogether|total|overall|budget|at most|max(?:imum)?))?"
_MONEY = re.compile(
    rf"(?:{_LIMIT}\s*)*(?:"
    rf"(?P<sign>{_SIGN})\s?(?P<signed>{AMOUNT})"
    rf"|(?P<before>\b(?:usd|eur|gbp|chf|jpy|cad))\s?(?P<coded>{AMOUNT})"
    rf"|(?P<amount>\b{AMOUNT})\s?(?P<code>{_CODE})"
    rf"){_EACH}{_NIGHT}{_IN_ALL}",
    re.IGNORECASE,
)
_LIMITED = re.compile(
    rf"\b{_LIMIT}\s*(?P<amount>{AMOUNT})"
    r"(?!\s*(?:st|nd|rd|th|days?|nights?|weeks?|months?|people|persons|stops?|of)\b)"
    rf"{_EACH}{_NIGHT}{_IN_ALL}",
    re.IGNORECASE,
)
_BARE = re.compile(rf"(?<![\w-])(?P<amount>{AMOUNT}){_EACH}{_IN_ALL}{ENDS}", re.IGNORECASE)
_FREE = re.compile(
    r"\b(?:no (?:budget|limit)(?: limit)?|without (?:a )?(?:budget|limit)|any budget|"
    r"unlimited(?: budget)?|money (?:is no object|does(?:n't| not) matter)|"
    r"(?:the )?(?:budget|price|cost|money) does(?:n't| not) matter|whatever it costs)\b",
    re.IGNORECASE,
)
_LEAST = 100  # a bare number below this is no budget
_YEARS = range(2024, 2036)


class Money(Struct, frozen=True):
    """A limit of costs in whole US dollars; 0 means no limit.

    Attributes:
        dollars: For all travelers, or for each.
        each: Whether it is for each traveler.
        night: Whether it is for a night at the hotel.
        words: How it was converted; empty for dollars.
    """

    dollars: int
    each: bool = False
    night: bool = False
    words: str = ""


def take_money(sentence: Sentence) -> list[Money]:
    """Take the limits that a sentence names."""
    found = []
    while match := sentence.take(_MONEY) or _take_limited(sentence):
        found.append(_money(match))
    if not found and sentence.take(_FREE):
        found.append(Money(0))
    return found


def take_bare_amount(sentence: Sentence) -> Money | None:
    """Take a number without a currency, such as the answer to a question about the budget."""
    for match in _BARE.finditer(sentence.left):
        value = number(match["amount"])
        if value is not None and value >= _LEAST and value not in _YEARS:
            sentence.take(re.compile(re.escape(match[0])))
            return Money(round(value), each=bool(match["each"]))
    return None


def _take_limited(sentence: Sentence) -> re.Match[str] | None:
    """Take a word such as "under" with a number that is large enough for a budget."""
    match = _LIMITED.search(sentence.left)
    if match is None or (number(match["amount"]) or 0) < _LEAST:
        return None
    return sentence.take(_LIMITED)


def _money(match: re.Match[str]) -> Money:
    groups = match.groupdict()
    text = groups.get("signed") or groups.get("coded") or groups["amount"]
    value = number(text) or 0.0
    currency = _currency(groups.get("sign") or groups.get("before") or groups.get("code") or "")
    dollars = round(value * RATES[currency])
    words = (
        ""
        if currency == "USD"
        else f"{value:,.0f} {currency} are about ${dollars:,}, at the fixed rate of this demo."
    )
    return Money(
        dollars, each=bool(groups.get("each")), night=bool(groups.get("night")), words=words
    )


def _currency(text: str) -> str:
    plain = text.lower()
    if plain in _SIGNS:
        return _SIGNS[plain]
    return next((code for code, pattern in _CODES.items() if re.fullmatch(pattern, plain)), "USD")
