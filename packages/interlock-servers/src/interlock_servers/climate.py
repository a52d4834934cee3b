"""Climate normals: the usual weather of cities, month by month. It forecasts no single day."""

from __future__ import annotations

import unicodedata
from datetime import date
from difflib import get_close_matches
from functools import cache
from importlib import resources

import msgspec
from msgspec import Struct

# Other names of some cities.
_ALSO = {
    "nyc": "New York",
    "new york city": "New York",
    "washington dc": "Washington",
    "la": "Los Angeles",
    "roma": "Rome",
    "lisboa": "Lisbon",
}


class Climate(Struct, frozen=True):
    """The climate of a city: mean daily highs and lows in °C and rainy days, for each month."""

    country: str
    high: tuple[int, ...]
    low: tuple[int, ...]
    rain: tuple[int, ...]


class UnknownCity(LookupError):
    """The city is not in the table. `near` holds similar names."""

    def __init__(self, city: str, near: list[str]) -> None:
        super().__init__(city)
        self.near = near


@cache
def climates() -> dict[str, Climate]:
    """All cities, by name."""
    text = resources.files(__package__).joinpath("climate.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, Climate])


def find_city(city: str) -> str:
    """A city's name as in the table, ignoring case and accents. Raises UnknownCity."""
    known = {**{folded(name): name for name in climates()}, **_ALSO}
    wanted = folded(city.partition(",")[0])  # "Barcelona, Spain" too
    if wanted in known:
        return known[wanted]
    begin = [name for key, name in known.items() if wanted and key.startswith(wanted)]
    near = [known[key] for key in get_close_matches(wanted, known, n=3, cutoff=0.6)]
    raise UnknownCity(city, list(dict.fromkeys([*begin, *near]))[:5])


def cities_like(start: str) -> list[str]:
    """The cities whose name begins with a text, then those in which a later word does."""
    wanted = folded(start)
    first = [name for name in climates() if folded(name).startswith(wanted)]
    later = [
        name
        for name in climates()
        if any(word.startswith(wanted) for word in folded(name).split()[1:])
    ]
    return list(dict.fromkeys([*first, *later]))


def month_of(climate: Climate, day: date) -> tuple[int, int, int]:
    """The mean high and low, and the days with rain, in the month of a date."""
    n = day.month - 1
    return climate.high[n], climate.low[n], climate.rain[n]


def folded(text: str) -> str:
    """A name without case, accents and extra spaces."""
    plain = "".join(
        sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign)
    )
    return " ".join(plain.casefold().split())
