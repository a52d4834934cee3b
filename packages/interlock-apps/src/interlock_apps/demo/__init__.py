"""The travel demo: a host with four servers and a rule-based model; no network, no key."""

from __future__ import annotations

import sys
from pathlib import Path

from interlock.configs import Entry

from ..fleet.log import SqliteLog
from ..fleet.pins import Pins
from ..host.app import Host
from ..host.options import HostOptions
from .diary import write_diary
from .planner import Planner

SERVERS = ("travel", "weather", "calendar", "mail")
PACE = 0.012  # seconds between two words of the model, so that its text appears gradually
WORDS = (
    "A demonstration: nothing is really booked or sent. "
    "To start, write for example: a week in Lisbon for two in May, under 2,500 dollars. "
    "Or type / and choose “Plan a vacation”."
)


def holiday(folder: Path, *, pace: float = PACE) -> Host:
    """The host of the demo.

    Bookings, calendar, mail, log and approvals are kept in `folder`, which must exist.
    """
    write_diary(folder / "calendar")
    env = {
        "INTERLOCK_TRAVEL_DB": str(folder / "travel.db"),
        "INTERLOCK_CALENDAR_FOLDER": str(folder / "calendar"),
        "INTERLOCK_MAIL_FOLDER": str(folder / "mail"),
    }
    # `-P`: a file in the working directory must not shadow a module
    entries = [
        Entry(
            id=name,
            command=(sys.executable, "-P", "-m", "interlock", "serve", name),
            env=env,
            trusted=True,
            source="the demo",
        )
        for name in SERVERS
    ]
    return Host(
        entries,
        models=[Planner(pace=pace)],
        pins=Pins(folder / "interlock.lock"),
        log=SqliteLog(folder / "log.db"),
        options=HostOptions(ask_to_start=False),  # the demo's own servers are trusted
    )
