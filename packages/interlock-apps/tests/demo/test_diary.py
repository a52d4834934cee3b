"""The calendar that the demo begins with."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from interlock import Client
from interlock_apps.demo.diary import TAKEN, write_diary
from interlock_servers.calendar import calendar_server


async def test_the_calendar_server_reads_it_and_the_holiday_is_free(tmp_path: Path) -> None:
    """Its events are there as they are written down, and from the 15th to the 22nd of June there
    are none.
    """
    write_diary(tmp_path / "calendar")
    async with Client(
        calendar_server(tmp_path / "calendar", today=lambda: dt.date(2024, 6, 1))
    ) as client:
        listed = (
            await client.call_tool("list_events", {"from": "2024-01-01", "to": "2024-12-31"})
        ).structured_content
        free = (
            await client.call_tool(
                "find_free_days", {"from": "2024-06-01", "to": "2024-06-30", "length": 8}
            )
        ).structured_content
    assert [(event["start"], event["end"], event["title"]) for event in listed["events"]] == list(
        TAKEN
    )
    assert any(
        span["first"] <= "2024-06-15" and span["last"] >= "2024-06-22" for span in free["free"]
    ), free


def test_a_calendar_that_is_there_is_left_alone(tmp_path: Path) -> None:
    """Also one without a file: somebody has emptied it."""
    (tmp_path / "calendar").mkdir()
    write_diary(tmp_path / "calendar")
    assert list((tmp_path / "calendar").iterdir()) == []
