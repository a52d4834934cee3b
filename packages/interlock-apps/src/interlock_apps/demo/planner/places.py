"""Places in a sentence: where to, and where from."""

from __future__ import annotations

import re

from .sentence import ENDS, Sentence

_LETTER = r"[^\W\d_]"
_WORD = rf"{_LETTER}(?:[\w'-]*\w)?"
_TWO_WORDS = (
    "san|new|los|las|saint|st|rio|buenos|hong|cape|tel|kuala|mexico|abu|la|le|el|santa|puerto|sao|"
    "são|ho|addis|panama"
)
_NO_PLACE = frozenset(
    """
    rather instead hi hello hey ok okay yes no well sure maybe dear
    a all an and any anywhere april at august autumn be beach beaches book budget by cheap december
    december's early eat end enjoy fall february first five flight for four friday get go have help
    him i it january july june late late march may me mid middle monday morning mountains my next
    night november october one our out plan please relax sea see september six somewhere south
    spend spring start stay summer sun sunday saturday swim take ten thank thanks that the
    them there this three thursday today tomorrow total town travel trip tuesday two us visit warm
    we wednesday week weekend where winter with you your advance general order time fly do
    the general hand hotel hotels airport say know make find celebrate
    """.split()  # noqa: SIM905 - a table of words reads better than a list of strings
)
_IN = re.compile(
    rf"\b(?P<verb>(?:go(?:ing)?|travel(?:ing)?|fly(?:ing)?|trip|away|week|days|flights?|back)\s+)?"
    rf"(?P<how>in|to|into|at|visit(?:ing)?|explor(?:e|ing)|see(?:ing)?|around|destination:?)\s+"
    rf"(?:the city of\s+)?(?P<name>{_WORD}(?:\s+{_WORD}){{0,3}})",
    re.IGNORECASE,
)
_FROM = re.compile(
    rf"\b(?:(?:fly(?:ing)?|leav(?:e|ing)|depart(?:ing)?|start(?:ing)?|travel(?:ing)?)\s+)?from\s+"
    rf"(?P<name>{_WORD}(?:\s+{_WORD}){{0,3}})",
    re.IGNORECASE,
)
_LEADING = re.compile(rf"^(?P<name>[A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*)(?:,|{ENDS})")
_INSTEAD = re.compile(
    rf"\b(?:rather|(?:what|how) about|make it|prefer|then|better|no,?)\s+"
    rf"(?P<name>{_WORD}(?:\s+{_WORD})?)",
    re.IGNORECASE,
)
_BARE = re.compile(rf"^\W*(?P<name>{_WORD}(?:\s+{_WORD}){{0,2}})\W*{ENDS}", re.IGNORECASE)


def take_home(sentence: Sentence) -> str:
    """Take the place that the trip starts from; "" if the sentence does not say it."""
    return _take(sentence, _FROM)


def take_destination(sentence: Sentence, *, answers: bool = False, again: bool = False) -> str:
    """Take the destination; "" if the sentence names none.

    Args:
        sentence: The sentence.
        answers: Whether a name at the beginning is the destination, also without a capital letter.
        again: Whether "rather Rome" names another destination.
    """
    name = (
        _take(sentence, _IN, capital=True)
        or (_take(sentence, _INSTEAD) if again else "")
        or _take(sentence, _LEADING)
        or _take(sentence, _IN)
        or (_take(sentence, _BARE) if answers else "")
    )
    if name:
        twice = re.compile(rf"\b(?:(?:in|to|visit|at)\s+)?{re.escape(name)}\b", re.IGNORECASE)
        while sentence.take(twice):
            pass
    return name


def _take(sentence: Sentence, pattern: re.Pattern[str], *, capital: bool = False) -> str:
    """Take the first name; with `capital`, the first one that begins with a capital letter."""
    match = pattern.search(sentence.left)
    while match is not None:
        name = _name(match["name"])
        # "to relax" is no place; "go to lisbon" is one
        verb = match.groupdict().get("how", "").lower() == "to" and not match["verb"]
        inside = re.search(r"\w\s*$", sentence.left[: match.start()]) is not None
        if not name or (name[0].islower() and (capital or (verb and inside))):
            match = pattern.search(sentence.left, match.start() + 1)
            continue
        before, _, _ = match[0].partition(match["name"])
        sentence.take(re.compile(re.escape(before + match["name"][: len(name)])))
        return name if name != name.lower() else name.title()
    return ""


def _name(words: str) -> str:
    """The name at the beginning of some words; "" if they begin with none.

    A name with capitals ends before the first word without one. A name without capitals is one
    word, or two after a word such as "san".
    """
    taken: list[str] = []
    for word in re.split(r"(\s+)", words):
        if word.isspace():
            taken.append(word)
            continue
        plain = word.lower()
        if plain in _NO_PLACE and not (taken and word[0].isupper()):
            break
        if taken and word[0].islower():
            first = "".join(taken).split()
            whole = len(first) == 1 and first[0].islower() and first[0] in _TWO_WORDS.split("|")
            if not whole:
                break
        if taken and word[0].isupper() and taken[0][0].islower():
            break
        if taken and plain in _MONTHS:
            break
        taken.append(word)
    return "".join(taken).strip()


_MONTHS = frozenset(
    "january february march april may june july august september october november december".split()  # noqa: SIM905 - a table of months
)
