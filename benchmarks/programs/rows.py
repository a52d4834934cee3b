"""A tool with a long structured result: rows of six fields."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Row:
    """One row of the result."""

    number: int
    name: str
    email: str
    score: float
    active: bool
    city: str


# built once: the cost of a call is that of its result
ROWS = [
    Row(
        number,
        f"Person Number {number}",
        f"person.{number}@example.org",
        number * 1.25,
        number % 2 == 0,
        "Amsterdam",
    )
    for number in range(55_000)
]


async def rows(count: int) -> list[Row]:
    """Return the first rows of a table."""
    return ROWS[:count]
