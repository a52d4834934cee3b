"""A tool whose arguments are pydantic models: twenty records of six fields in each call."""

from __future__ import annotations

from pydantic import BaseModel


class Record(BaseModel):
    """One row of the argument."""

    id: int
    name: str
    email: str
    score: float
    active: bool
    tags: list[str]


async def record(records: list[Record]) -> int:
    """Add up the identifiers of the active records."""
    return sum(row.id for row in records if row.active)
