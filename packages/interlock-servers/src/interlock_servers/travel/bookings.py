"""Bookings in the database, each changed in one transaction."""

from __future__ import annotations

import datetime as dt
from typing import Literal

import msgspec
from msgspec import Struct

from interlock import ToolError

from .database import TravelDatabase
from .flights import Flight
from .hotels import Hotel


class Contact(Struct):
    """Name and address of the traveller."""

    name: str
    email: str
    phone: str | None = None
    special_requests: str | None = None


class Booking(Struct):
    """What was booked; `total` is in US dollars, `made` in UTC."""

    id: str
    status: Literal["booked", "cancelled"]
    kind: Literal["trip", "flight", "hotel"]
    made: str
    travelers: int
    total: int
    outbound: Flight | None = None
    return_flight: Flight | None = None
    hotel: Hotel | None = None
    check_in: str | None = None
    check_out: str | None = None
    seat: str | None = None
    room: str | None = None
    insurance: bool = False
    contact: Contact | None = None


_QUERY = "SELECT details, id, status, made FROM bookings"


def book(records: TravelDatabase, reference: str, year: int, wanted: Booking) -> str:
    """Write a booking and return its id, BK-year-number; for a repeated `reference` the earlier
    booking's id.

    The reference ensures that a booking happens once, even if the tool runs again in another
    process.
    """
    with records.changing() as db:
        known = db.execute("SELECT id FROM bookings WHERE reference = ?", (reference,)).fetchone()
        if known is not None:
            return str(known[0])
        ((last,),) = db.execute(
            "SELECT coalesce(max(number), 0) FROM bookings WHERE year = ?", (year,)
        )
        name = f"BK-{year}-{last + 1:04}"
        made = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        details = msgspec.json.encode(wanted).decode()
        db.execute(
            "INSERT INTO bookings VALUES (?, ?, ?, ?, 'booked', ?, ?)",
            (name, reference, year, last + 1, made, details),
        )
    return name


def cancel(records: TravelDatabase, name: str) -> bool:
    """Cancel a booking; False if it was cancelled already."""
    with records.changing() as db:
        return (
            db.execute(
                "UPDATE bookings SET status = 'cancelled' WHERE id = ? AND status = 'booked'",
                (name,),
            ).rowcount
            == 1
        )


def seek(records: TravelDatabase, name: str) -> Booking | None:
    """The booking with an id, or None."""
    rows = records.rows(f"{_QUERY} WHERE id = ?", name.strip().upper())
    return _booking(*rows[0]) if rows else None


def find(records: TravelDatabase, name: str) -> Booking:
    """The booking with an id. Raises ToolError if there is none."""
    booking = seek(records, name)
    if booking is None:
        raise ToolError(f"There is no booking {name[:40]!r}. list_bookings shows all bookings.")
    return booking


def bookings(records: TravelDatabase) -> list[Booking]:
    """All bookings, including cancelled ones, in the order of their creation."""
    return [_booking(*row) for row in records.rows(f"{_QUERY} ORDER BY made, year, number")]


def _booking(details: str, name: str, status: str, made: str) -> Booking:
    return msgspec.structs.replace(
        msgspec.json.decode(details, type=Booking), id=name, status=status, made=made
    )
