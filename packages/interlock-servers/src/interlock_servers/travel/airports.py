"""Cities and airports, found by the names that people use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from msgspec import Struct

from interlock import ToolError

_IN_BRACKETS = re.compile(r".*\((\w{3})\)")
_IN_FRONT = re.compile(r"(\w{3}) +- .*")


class TravelCity(Struct, frozen=True):
    """A city with its airports by code, or some of them."""

    code: str
    name: str
    country: str
    airports: dict[str, str]

    @property
    def label(self) -> str:
        """The label for suggestions: Barcelona (BCN)."""
        return f"{self.name} ({self.code})"

    @property
    def slug(self) -> str:
        """Its form in a URI."""
        return self.name.lower().replace(" ", "-")


class CityIndex:
    """All cities, the most popular first."""

    def __init__(self, places: Sequence[TravelCity]) -> None:
        self.places = places
        self._by_word: dict[str, TravelCity] = {}
        for place in places:
            for word in (place.code, place.name):
                self._by_word[word.casefold()] = place
        for place in places:
            for code, name in place.airports.items():
                alone = TravelCity(place.code, place.name, place.country, {code: name})
                for word in (code, name):
                    self._by_word.setdefault(
                        word.casefold(), alone
                    )  # BCN means the city, if it is the city's only airport

    def seek(self, text: str) -> TravelCity | None:
        """The place that a text means: a city, or one of its airports, by name, code, or label."""
        words = " ".join(text.split())
        found = _IN_BRACKETS.fullmatch(words) or _IN_FRONT.fullmatch(words)
        plain = (found[1] if found else words).casefold()
        return self._by_word.get(plain) or self._by_word.get(plain.replace("-", " "))

    def find(self, text: str) -> TravelCity:
        """The same. Raises ToolError with similar names if there is no such place."""
        place = self.seek(text)
        if place is not None:
            return place
        near = get_close_matches(" ".join(text.split()).casefold(), self._by_word, n=3, cutoff=0.6)
        labels = list(dict.fromkeys(self._by_word[word].label for word in near))
        hint = (
            f"Did you mean {' or '.join(labels)}?"
            if labels
            else f"There is {', '.join(place.label for place in self.places)}."
        )
        raise ToolError(f"There is no city or airport {text[:60]!r} here. {hint}")

    def cities(self, typed: str, *, but: str = "") -> Iterator[TravelCity]:
        """The cities that begin with a text, by name, code or airport; without the city called
        `but`.
        """
        left_out = self.seek(but)
        begun = typed.strip().casefold()
        for place in self.places:
            words = (place.name, place.label, place.slug, place.code, *place.airports)
            if any(word.casefold().startswith(begun) for word in words) and (
                left_out is None or place.code != left_out.code
            ):
                yield place

    def airports(self, typed: str) -> Iterator[str]:
        """The airports that begin with a text, by code, city or a word of the name.

        An example is "JFK - John F. Kennedy International".
        """
        begun = typed.strip().casefold()
        for place in self.places:
            for code, name in place.airports.items():
                label = f"{code} - {name}"
                if any(
                    word.casefold().startswith(begun)
                    for word in (label, place.name, name, *name.split())
                ):
                    yield label
