"""The calendar at the start of the demo: some days of 2024 are busy, the holiday is free."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

TAKEN = (
    ("2024-06-04", "2024-06-04", "Quarterly review"),
    ("2024-06-11", "2024-06-13", "Team days in Boston"),
    ("2024-06-27", "2024-06-27", "Dentist"),
    ("2024-07-04", "2024-07-07", "Long weekend at the lake"),
)  # first day, last day, title


def write_diary(folder: Path) -> None:
    """Write `my-calendar` into a folder of calendars, unless that folder exists (RFC 5545)."""
    if folder.exists():
        return
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Interlock//demo//EN"]
    for number, (first, last, title) in enumerate(TAKEN, 1):
        after = dt.date.fromisoformat(last) + dt.timedelta(
            days=1
        )  # all-day events end on the day after their last day
        lines += [
            "BEGIN:VEVENT",
            f"UID:demo-{number}@interlock",
            "DTSTAMP:20240101T000000Z",
            f"DTSTART;VALUE=DATE:{first.replace('-', '')}",
            f"DTEND;VALUE=DATE:{after:%Y%m%d}",
            f"SUMMARY:{title}",
            "END:VEVENT",
        ]
    folder.mkdir(mode=0o700)
    (folder / "my-calendar.ics").write_bytes("\r\n".join([*lines, "END:VCALENDAR", ""]).encode())
