"""What the demo has kept in its folder: bookings, calendar, mail, approvals and the log, read
without the servers.
"""

from __future__ import annotations

import json
import mailbox
import sqlite3
from contextlib import closing
from email.header import decode_header, make_header
from pathlib import Path
from typing import Any

import icalendar

from interlock_apps.fleet.events import AnyEvent
from interlock_apps.fleet.log import SqliteLog


def bookings(folder: Path) -> list[dict[str, Any]]:
    """The bookings in the database of the travel server."""
    with closing(sqlite3.connect(folder / "travel.db")) as db:
        return [
            {**json.loads(details), "id": name}
            for name, details in db.execute("SELECT id, details FROM bookings ORDER BY number")
        ]


def events(folder: Path) -> list[Any]:
    """The events in all calendars."""
    calendars = (
        sorted((folder / "calendar").glob("*.ics")) if (folder / "calendar").is_dir() else []
    )
    return [
        event
        for path in calendars
        for event in icalendar.Calendar.from_ical(path.read_bytes()).walk("VEVENT")
    ]


def letters(folder: Path) -> list[mailbox.MaildirMessage]:
    """What was sent."""
    if not (folder / "mail").is_dir():
        return []
    return list(mailbox.Maildir(folder / "mail", create=False).get_folder("Sent"))


def subject(letter: Any) -> str:
    """What a letter is about."""
    return str(make_header(decode_header(letter["subject"])))


def pins(folder: Path) -> dict[str, Any]:
    """What was approved."""
    read: dict[str, Any] = json.loads((folder / "interlock.lock").read_text(encoding="utf-8"))
    return read


async def log(folder: Path) -> list[AnyEvent]:
    """Every entry of the log, which nobody has tampered with."""
    kept = SqliteLog(folder / "log.db")
    await kept.open()
    try:
        notes = await kept.read(limit=10_000)
        assert await kept.verify() == len(notes)
    finally:
        await kept.aclose()
    return [noted.event for noted in notes]
