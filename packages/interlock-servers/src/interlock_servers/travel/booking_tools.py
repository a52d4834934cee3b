"""Booking tools. Each asks the user with a form before anything is booked or cancelled."""

from __future__ import annotations

import asyncio
import datetime as dt
import secrets
from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from interlock import Cancelled, Context, Declined, RunningServer, ToolError, ToolResult

from . import bookings as ledger
from .bookings import Booking, Contact
from .database import TravelDatabase
from .flights import Day, Flight, flight_called
from .hotels import Guests, Hotel, hotel_called, nights_between
from .prices import INSURANCE, dollars

BOOKINGS = "travel://bookings"
Travelers = Annotated[int, Meta(ge=1, le=9)]
FlightId = Annotated[str, Meta(min_length=1, max_length=40, examples=["CW101-2024-06-15"])]
HotelId = Annotated[str, Meta(min_length=1, max_length=80, examples=["bcn-hotel-mar-blau"])]
BookingId = Annotated[str, Meta(min_length=1, max_length=40, examples=["BK-2024-0001"])]

SEAT = {
    "type": "string",
    "title": "Seat",
    "enum": ["Window", "Aisle", "No preference"],
    "description": "Preferred seat on the flights",
}
ROOM = {
    "type": "string",
    "title": "Room",
    "enum": ["Sea view", "City view", "Garden view"],
    "description": "Preferred room at the hotel",
}
COVER = {
    "type": "boolean",
    "title": "Insurance",
    "default": False,
    "description": f"Add travel insurance (${INSURANCE})",
}
CONTACT = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Traveller's name", "minLength": 1, "maxLength": 100},
        "email": {
            "type": "string",
            "title": "E-mail",
            "format": "email",
            "description": "Address for the confirmation",
        },
        "phone": {
            "type": "string",
            "title": "Phone",
            "maxLength": 40,
            "description": "For emergencies",
        },
        "specialRequests": {
            "type": "string",
            "title": "Special requests",
            "maxLength": 500,
            "description": "For the hotel",
        },
    },
    "required": ["name", "email"],
}


class BookingResult(Struct):
    """The booking, or why there is none."""

    booked: bool
    message: str
    booking: Booking | None = None


class Cancellation(Struct):
    """Whether the booking was cancelled, and its state now."""

    cancelled: bool
    message: str
    booking: Booking


class BookingList(Struct):
    """All bookings, including cancelled ones."""

    count: int
    bookings: list[Booking]


async def book_trip(
    outbound_flight: FlightId,
    hotel: HotelId,
    check_in: Day,
    check_out: Day,
    ctx: Context[TravelDatabase],
    travelers: Travelers = 1,
    return_flight: FlightId | None = None,
) -> ToolResult[BookingResult]:
    """Book flights and a hotel together, once the user has confirmed it in a form and said who
    travels.

    Args:
        outbound_flight: id of the flight there, from search_flights or find_best_flight.
        hotel: id of the hotel, from search_hotels.
        check_in: the first day at the hotel.
        check_out: the last day at the hotel.
        travelers: how many people.
        return_flight: id of the flight back.
    """
    nights = nights_between(check_in, check_out)

    def found() -> tuple[Flight, Flight | None, Hotel]:
        out = flight_called(ctx.lifespan_state, outbound_flight)
        back = (
            flight_called(ctx.lifespan_state, return_flight) if return_flight is not None else None
        )
        stay = hotel_called(ctx.lifespan_state, hotel, nights, travelers)
        _fits(ctx.lifespan_state, out, back, stay, check_in, check_out)
        return out, back, stay

    out, back, stay = await asyncio.to_thread(found)
    total = travelers * (out.price + (back.price if back is not None else 0)) + stay.total
    wanted = Booking(
        id="",
        status="booked",
        kind="trip",
        made="",
        travelers=travelers,
        total=total,
        outbound=out,
        return_flight=back,
        hotel=stay,
        check_in=check_in.isoformat(),
        check_out=check_out.isoformat(),
    )
    summary = [
        f"Please confirm the booking details of your {stay.city} holiday, {check_in} to "
        f"{check_out}:",
        f"- Out: {out.words}",
        *([f"- Back: {back.words}"] if back is not None else []),
        _stay(stay, nights),
        f"- Travelers: {travelers}",
        f"- Total: {dollars(total)}",
    ]
    flights = "flights" if back is not None else "flight"
    fields = {
        **_yes(f"{flights} + hotel", total),
        "seatPreference": SEAT,
        "roomType": ROOM,
        "travelInsurance": COVER,
    }
    return await _booked(ctx, "\n".join(summary), fields, wanted, check_in.year, with_contact=True)


async def book_flight(
    flight: FlightId, ctx: Context[TravelDatabase], travelers: Travelers = 1
) -> ToolResult[BookingResult]:
    """Book seats on one flight, once the user has confirmed it in a form.

    Args:
        flight: id of the flight, from search_flights or find_best_flight.
        travelers: how many seats.
    """
    out = await asyncio.to_thread(flight_called, ctx.lifespan_state, flight)
    total = travelers * out.price
    wanted = Booking(
        id="",
        status="booked",
        kind="flight",
        made="",
        travelers=travelers,
        total=total,
        outbound=out,
    )
    summary = (
        f"Please confirm the booking of your flight:\n- {out.words}\n- Travelers: {travelers}\n- "
        f"Total: {dollars(total)}"
    )
    fields = {**_yes("flight", total), "seatPreference": SEAT, "travelInsurance": COVER}
    return await _booked(ctx, summary, fields, wanted, dt.date.fromisoformat(out.date).year)


async def book_hotel(
    hotel: HotelId, check_in: Day, check_out: Day, ctx: Context[TravelDatabase], guests: Guests = 2
) -> ToolResult[BookingResult]:
    """Book a hotel, once the user has confirmed it in a form.

    Args:
        hotel: id of the hotel, from search_hotels.
        check_in: the first day.
        check_out: the last day.
        guests: how many people.
    """
    nights = nights_between(check_in, check_out)
    stay = await asyncio.to_thread(hotel_called, ctx.lifespan_state, hotel, nights, guests)
    wanted = Booking(
        id="",
        status="booked",
        kind="hotel",
        made="",
        travelers=guests,
        total=stay.total,
        hotel=stay,
        check_in=check_in.isoformat(),
        check_out=check_out.isoformat(),
    )
    lines = [
        f"Please confirm the booking of your hotel, {check_in} to {check_out}:",
        _stay(stay, nights),
        f"- Guests: {guests}",
    ]
    summary = "\n".join([*lines, f"- Total: {dollars(stay.total)}"])
    return await _booked(
        ctx, summary, {**_yes("hotel", stay.total), "roomType": ROOM}, wanted, check_in.year
    )


async def cancel_booking(
    booking: BookingId, ctx: Context[TravelDatabase]
) -> ToolResult[Cancellation]:
    """Cancel a booking, once the user has agreed. This cannot be undone.

    Args:
        booking: its id, from list_bookings.
    """
    known = await asyncio.to_thread(ledger.find, ctx.lifespan_state, booking)
    if known.status == "cancelled":
        return _cancellation(
            False, f"{known.id} was cancelled before; there is nothing left to do.", known
        )
    if not await ctx.confirm(
        f"Cancel the booking {known.id} ({_title(known)}, {dollars(known.total)})? This "
        "cannot be undone.",
        key="cancel",
    ):
        return _cancellation(False, f"The user did not agree: {known.id} was not changed.", known)
    await ctx.once("cancel", asyncio.to_thread, ledger.cancel, ctx.lifespan_state, known.id)
    _notify_clients(ctx, known.id)
    return _cancellation(
        True,
        f"{known.id} is cancelled.",
        await asyncio.to_thread(ledger.find, ctx.lifespan_state, known.id),
    )


def list_bookings(ctx: Context[TravelDatabase]) -> ToolResult[BookingList]:
    """All bookings with what they hold and how they stand."""
    found = ledger.bookings(ctx.lifespan_state)
    lines = [f"{one.id}: {_title(one)}, {dollars(one.total)}, {one.status}" for one in found] or [
        "There are no bookings."
    ]
    return ToolResult(BookingList(len(found), found), "\n".join(lines))


async def _booked(
    ctx: Context[TravelDatabase],
    summary: str,
    fields: dict[str, Any],
    wanted: Booking,
    year: int,
    *,
    with_contact: bool = False,
) -> ToolResult[BookingResult]:
    """Ask the user, and book if the answer is yes."""
    # Generated before the first question, so that it stays the same if the tool runs again from the
    # top, in any process.
    reference = await ctx.once("reference", secrets.token_hex, 16)
    form = {"type": "object", "properties": fields, "required": ["confirmBooking"]}
    try:
        said = await ctx.elicit(summary, form, key="booking")
        if said["confirmBooking"] is not True:
            return _outcome("The user did not confirm: nothing was booked.")
        contact = await _asked_contact(ctx) if with_contact else None
    except Declined:
        return _outcome("The user declined: nothing was booked.")
    except Cancelled:
        return _outcome("The user dismissed the form: nothing was booked.")
    covered = said.get("travelInsurance") is True
    final = structs.replace(
        wanted,
        total=wanted.total + (INSURANCE if covered else 0),
        seat=said.get("seatPreference"),
        room=said.get("roomType"),
        insurance=covered,
        contact=contact,
    )
    name = await ctx.once(
        "book", asyncio.to_thread, ledger.book, ctx.lifespan_state, reference, year, final
    )
    _notify_clients(ctx, name)
    booking = await asyncio.to_thread(ledger.find, ctx.lifespan_state, name)
    return _outcome(f"Booked: {name}, {_title(booking)}, {dollars(booking.total)} in all.", booking)


def _outcome(message: str, booking: Booking | None = None) -> ToolResult[BookingResult]:
    return ToolResult(BookingResult(booking is not None, message, booking), message)


def _cancellation(cancelled: bool, message: str, booking: Booking) -> ToolResult[Cancellation]:
    return ToolResult(Cancellation(cancelled, message, booking), message)


async def _asked_contact(ctx: Context[TravelDatabase]) -> Contact:
    said = await ctx.elicit(
        "Who travels, and where does the confirmation go?", CONTACT, key="contact"
    )
    if not said["name"].strip():
        raise ToolError("Nothing was booked: the form needs the traveller's name.")
    return Contact(
        said["name"].strip(),
        said["email"],
        said.get("phone") or None,
        said.get("specialRequests") or None,
    )


def _fits(
    records: TravelDatabase,
    out: Flight,
    back: Flight | None,
    stay: Hotel,
    check_in: dt.date,
    check_out: dt.date,
) -> None:
    """Raise ToolError if flights and hotel do not fit together."""
    there = records.atlas.find(out.destination)
    if stay.city != there.name:
        raise ToolError(
            f"{out.id} goes to {there.label}, and {stay.name} is in {stay.city}. Choose a hotel "
            "there with search_hotels."
        )
    if check_in < dt.date.fromisoformat(out.date):
        raise ToolError(f"The stay begins on {check_in}, before the flight on {out.date}.")
    if back is None:
        return
    home = records.atlas.find(back.origin)
    if home.code != there.code:
        raise ToolError(
            f"The flight back, {back.id}, leaves from {home.label}, not from {there.label}."
        )
    if dt.date.fromisoformat(back.date) < check_out:
        raise ToolError(f"The flight back is on {back.date}, before the stay ends on {check_out}.")


def _yes(what: str, total: int) -> dict[str, Any]:
    words = f"Confirm the booking ({what} = {dollars(total)})"
    return {"confirmBooking": {"type": "boolean", "title": "Confirm", "description": words}}


def _stay(stay: Hotel, nights: int) -> str:
    rooms = f"{stay.rooms} room{'' if stay.rooms == 1 else 's'}"
    length = f"{nights} night{'' if nights == 1 else 's'}"
    price = f"{dollars(stay.price_per_night)} a night"
    return f"- Hotel: {stay.name}, {stay.area}, {length}, {rooms} at {price}"


def _title(booking: Booking) -> str:
    if booking.hotel is not None:
        return f"{booking.hotel.city}, {booking.check_in} to {booking.check_out}"
    assert booking.outbound is not None
    return f"{booking.outbound.id}, {booking.outbound.origin} to {booking.outbound.destination}"


def _notify_clients(ctx: Context[TravelDatabase], name: str) -> None:
    """Notify clients of a change; a new booking is also a new resource."""
    show(ctx.server, name)
    ctx.updated(BOOKINGS)
    ctx.updated(f"{BOOKINGS}/{name}")


def show(server: RunningServer, name: str) -> None:
    """Add a booking to the list of resources, if it is not in it."""
    uri = f"{BOOKINGS}/{name}"

    def read(ctx: Context[TravelDatabase]) -> Booking | None:
        """A booking, with its flights and its hotel."""
        return ledger.seek(ctx.lifespan_state, name)

    if server.resources.get(uri) is None:
        server.add_resource(
            uri,
            read,
            name=name,
            title=f"Booking {name}",
            mime_type="application/json",
            cache_scope="private",
        )
