"""A sentence from which recognizers take the words that they understand; the rest can be told."""

from __future__ import annotations

import re

_TAKEN = "\x1f"
_FILLER = frozenset(
    """
    a about again all alright also am an and any are arrange around at away back be beautiful
    book booking break but by can could date dates day days depart departing departure do dream
    dreaming each else find flight flights fly flying for from get getaway give go going good
    great have hello help her hey hi him holiday holidays home honeymoon hotel hotels how i i'd i'm
    i've instead in is it its itself journey just kindly know leave leaving let let's like lovely
    make maybe me
    month more my need new next nice night nights now of off ok okay on or our out organise organize
    over people persons place plan planning please possible prefer quick rather return returning
    seat short show sightseeing so some something spend start starting stay staying take thank
    thanks that the their them then there they think this thinking time to together tour trip trips
    travel traveler travelers traveller travellers traveling travelling us vacation vacations visit
    visiting want wanting wants we we'd we're we've week weekend weeks well what will wish with
    wonderful would yes you your i'll we'll about budget total altogether overall maximum max
    """.split()  # noqa: SIM905 - a table of words reads better than a list of strings
)
_CLAUSE = re.compile(rf"[{_TAKEN},.;:!?()]+")


class Sentence:
    """A text that is read piece by piece.

    Args:
        text: What the person wrote.

    Attributes:
        left: What nobody has taken yet.
    """

    def __init__(self, text: str) -> None:
        plain = text.replace(_TAKEN, " ").replace("’", "'").replace("\N{NO-BREAK SPACE}", " ")
        self.left = " ".join(plain.split())

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Take the first place where a pattern fits; None if it fits nowhere."""
        found = pattern.search(self.left)
        if found is not None:
            self.left = f"{self.left[: found.start()]} {_TAKEN} {self.left[found.end() :]}"
        return found

    def clauses(self) -> list[str]:
        """The clauses that nobody took and that say something, as the person wrote them."""
        kept = []
        for clause in _CLAUSE.split(self.left):
            words = clause.split()
            while words and words[0].lower() in ("and", "but", "or", "so", "then"):
                words.pop(0)
            while words and words[-1].lower() in ("and", "but", "or", "in", "on", "at", "for"):
                words.pop()
            if any(re.sub(r"[^\w']", "", word).lower() not in _FILLER for word in words):
                kept.append(" ".join(words))
        return kept


ENDS = rf"(?=\s*(?:$|[{_TAKEN},.;:!?()]))"
"""The end of a clause."""
