"""Prices of flights by day, and how money is written."""

from __future__ import annotations

from datetime import date
from zlib import crc32

INSURANCE = 150  # dollars for a trip
_SEASON = (0.86, 0.84, 0.92, 1.0, 1.02, 1.1, 1.2, 1.18, 1.0, 0.95, 0.88, 1.16)  # from January on


def fare(cents: int, number: str, day: date) -> int:
    """The price of one seat in whole dollars: the season's, and up to 8 % more or less, the same
    whenever it is asked for.
    """
    wobble = 1 + (crc32(f"{number} {day}".encode()) % 17 - 8) / 100
    return round(cents * _SEASON[day.month - 1] * wobble / 100)


def dollars(amount: int) -> str:
    """As a person reads it: $3,000."""
    return f"${amount:,}"
