"""A holiday as the planner plans it: everything that must be known is known."""

from __future__ import annotations

from msgspec import Struct

HOME = "NYC"
FLIGHTS = "morning departure, at most one stop"


class Wishes(Struct, frozen=True, kw_only=True):
    """A holiday request. Days are ISO 8601; `budget` and `night` are US dollars (0: no limit).

    `remarks` are said before the first step: how words were read, and which were not understood.
    """

    destination: str
    departure: str
    back: str
    travelers: int = 1
    budget: int = 0
    night: int = 0
    home: str = HOME
    flights: str = FLIGHTS
    sea: bool = False
    remarks: str = ""
