"""Files of calendars for the tests, as several programs write them, and what belongs to looking at
a folder.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

TODAY = date(2026, 11, 21)

# Made by another program: a zone of its own, an alarm, a task, properties nobody else knows, and
# long lines that are folded.
FOREIGN = "\r\n".join(
    [
        "BEGIN:VCALENDAR",
        "PRODID:-//Other//Program 7//EN",
        "VERSION:2.0",
        "X-WR-CALNAME:Ann",
        "BEGIN:VTIMEZONE",
        "TZID:Our Zone",
        "BEGIN:STANDARD",
        "DTSTART:19700101T000000",
        "TZOFFSETFROM:+0330",
        "TZOFFSETTO:+0330",
        "END:STANDARD",
        "END:VTIMEZONE",
        "BEGIN:VEVENT",
        "UID:dinner@other",
        "DTSTAMP:20240101T000000Z",
        "SUMMARY;LANGUAGE=en:Dinner",
        "DTSTART;TZID=Our Zone:20240616T190000",
        "DURATION:PT2H",
        "X-OTHER-MOOD;X-LEVEL=3:cheerful\\, and so on and so on and so on and so on and ",
        "  so on",
        "ATTENDEE;CN=Bob;PARTSTAT=ACCEPTED:mailto:bob@example.com",
        "SEQUENCE:4",
        "BEGIN:VALARM",
        "ACTION:DISPLAY",
        "SUMMARY:An alarm is no event",
        "TRIGGER:-PT15M",
        "END:VALARM",
        "END:VEVENT",
        "BEGIN:VTODO",
        "UID:todo@other",
        "SUMMARY:Pack",
        "END:VTODO",
        "BEGIN:X-STRANGE",
        "X-A:1",
        "END:X-STRANGE",
        "END:VCALENDAR",
        "",
    ]
).encode()


def calendar(*events: str, newline: str = "\r\n") -> bytes:
    """A file with events, each given as its lines without BEGIN, END and UID; their ids are e0, e1,
    ...
    """
    blocks = [
        newline.join(["BEGIN:VEVENT", f"UID:e{n}", *lines.split("\n"), "END:VEVENT"])
        for n, lines in enumerate(events)
    ]
    return newline.join(["BEGIN:VCALENDAR", "VERSION:2.0", *blocks, "END:VCALENDAR", ""]).encode()


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Everything that lies in a folder, by its path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
