"""Travelers in a sentence: numbers, companions, and words such as just me."""

from __future__ import annotations

import re

from .numbers import COUNT, number
from .sentence import ENDS, Sentence

_PERSON = (
    r"(?:people|persons?|adults?|travell?ers?|passengers?|guests?|pax|friends|of us|tickets|seats)"
)
_CHILD = r"(?:kids?|child(?:ren)?|sons?|daughters?|babys?|babies|toddlers?|teenagers?|teens?)"
_PARTNER = (
    r"(?:wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?|friend|mother|father|mom|mum|"
    r"dad|brother|sister|son|daughter|colleague|boss)"
)
_COUNTED = re.compile(
    rf"(?:\b(?:for|with|the|we are|there are|there will be|group of|party of|family of|and)\s+)*"
    rf"\b(?P<count>{COUNT})\s+(?:other\s+)?(?P<who>{_PERSON}|{_CHILD})\b",
    re.IGNORECASE,
)
_FOR = re.compile(
    rf"\b(?:for(?: the)?|we are|we're|family of|group of|party of|travell?ers?:?|people:?)\s+"
    rf"(?P<count>(?!an?\b){COUNT})\b"
    rf"(?={ENDS[3:-1]}|\s+(?:in|to|from|on|at|with|under|below|please|next|this|and|for|by|"
    rf"between|during|leaving|around|about|up)\b)",
    re.IGNORECASE,
)
_ALONE = re.compile(
    r"\b(?:(?:it's |only |for )*(?:just|only) (?:for )?(?:me|myself|one)|for (?:me|myself|one)|"
    r"by myself|on my own|alone|solo)\b",
    re.IGNORECASE,
)
_PAIR = re.compile(
    r"\b(?:(?:for )?(?:the )?(?:both|two) of us|as a couple|(?:for )?a couple(?! of)|honeymoon)\b",
    re.IGNORECASE,
)
_WITH = re.compile(
    rf"\b(?:with|for me and|me and|and)\s+(?:my|our|a|his|her)\s+{_PARTNER}(?:\s+and\s+(?:I|me))?\b"
    rf"|\b(?:for\s+)?my\s+{_PARTNER}\s+and\s+(?:I|me|myself)\b",
    re.IGNORECASE,
)
_BARE = re.compile(rf"(?<![\w.,'-])(?P<count>(?!an?\b|a couple){COUNT}){ENDS}", re.IGNORECASE)


def take_people(sentence: Sentence, *, answers: bool = False) -> int:
    """Take how many people travel; 0 if the sentence does not say it.

    Args:
        sentence: The sentence.
        answers: Whether a number alone is the number of people.
    """
    alone = sentence.take(_ALONE) is not None
    pair = sentence.take(_PAIR) is not None
    adults = 0
    others = 0
    while match := sentence.take(_COUNTED):
        count = _count(match)
        if re.fullmatch(_CHILD, match["who"], re.IGNORECASE):
            others += count
        elif match["who"].lower() == "friends" and "with" in match[0].lower():
            others += count  # "with two friends" are three
        else:
            adults += count
    if not adults and (match := sentence.take(_FOR)):
        adults = _count(match)
    while sentence.take(_WITH):
        others += 1
    if answers and not (adults or others or alone or pair) and (match := sentence.take(_BARE)):
        adults = _count(match)
    if not adults:
        adults = 2 if pair else int(alone or others > 0)
        # "with my wife" as a couple is the same person
        if pair and others:
            others -= 1
    return adults + others


def _count(match: re.Match[str]) -> int:
    return int(number(match["count"]) or 0)
