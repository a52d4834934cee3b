"""A wall clock that is set back for good: no record of a store stays valid for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.store import bounds
from tests.store.makers import fresh, opened

NOW = 1e9
AHEAD = NOW + 365 * 86_400


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_records_end_although_the_clock_was_ahead(kind: str, tmp_path: Path) -> None:
    """They are kept as long as they were written for, because an action may have run just before.

    Redis counts from the write by itself.
    """
    store = fresh(kind, tmp_path, "")[0]
    async with opened(store):
        records = store.records
        await records.swap("k", b"k", was=0, until=AHEAD + 60, now=AHEAD)
        await records.swap("other", b"x", was=0, until=NOW + 60, now=NOW)
        assert await records.load("k", now=NOW + 60) is not None
        end = NOW + 61 + bounds.CLOCK_TOLERANCE
        assert await records.load("k", now=end) is None
        await records.swap("other", b"y", was=0, until=end + 60, now=end)
        assert await records.keys("k", now=0.0) == []


async def test_records_of_an_earlier_process_end_too(tmp_path: Path) -> None:
    """The clock was set back while no process used the file."""
    one, other = fresh("sqlite", tmp_path, "")
    async with opened(one):
        await one.records.swap("k", b"k", was=0, until=AHEAD + 60, now=AHEAD)
    async with opened(other):
        await other.records.swap("other", b"x", was=0, until=NOW + 60, now=NOW)
        end = NOW + 61 + bounds.CLOCK_TOLERANCE
        assert await other.records.load("k", now=end) is None
