"""Prices of flights by day, and formatting of amounts."""

from __future__ import annotations

from datetime import date
from zlib import crc32

INSURANCE = 150  # dollars for a trip
_SEASON = (0.86, 0.84, 0.92, 1.0, 1.02, 1.1, 1.2, 1.18, 1.0, 0.95, 0.88, 1.16)  # by month


def fare(cents: int, number: str, day: date) -> int:
    """The price of one seat in whole dollars: by season, with a variation of up to 8 %.

    It is the same for each request.
    """
    wobble = 1 + (crc32(f"{number} {day}".encode()) % 17 - 8) / 100
    return round(cents * _SEASON[day.month - 1] * wobble / 100)


def dollars(amount: int) -> str:
    """An amount in readable form: $3,000."""
    return f"${amount:,}"
