"""Resources of the travel server: preferences, past trips, activities, timetable and bookings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from interlock import Context, Server

from . import bookings as ledger
from .booking_tools import BOOKINGS
from .database import TravelDatabase
from .flights import clock

ACTIVITIES = "travel://activities/{city}/{category}"
FLIGHTS = "travel://flights/{origin}/{destination}"
AIRPORT = "flights://search/{airport}"
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_JSON = "application/json"


def add_library(made: Server) -> None:
    """Add the resources, the templates and their completions."""
    _add_notes(made)
    _add_places(made)
    _add_bookings(made)


def _add_notes(made: Server) -> None:
    """The preferences and past trips of the traveller; some are listed, the others are found by
    template.
    """

    def preferences(region: str, ctx: Context[TravelDatabase]) -> str | None:
        """What the traveller prefers in a part of the world."""
        rows = ctx.lifespan_state.rows(
            "SELECT text FROM preferences WHERE region = ?", region.lower()
        )
        return (
            f"# Travel preferences: {region.replace('-', ' ').title()}\n\n{rows[0][0]}"
            if rows
            else None
        )

    def past_trip(trip: str, ctx: Context[TravelDatabase]) -> str | None:
        """What the traveller thought of a journey."""
        rows = ctx.lifespan_state.rows("SELECT data FROM trips WHERE lower(id) = lower(?)", trip)
        return _notes(msgspec.json.decode(rows[0][0])) if rows else None

    def history(trip: str, ctx: Context[TravelDatabase]) -> Any:
        """The facts of a journey, as data."""
        rows = ctx.lifespan_state.rows("SELECT data FROM trips WHERE history = lower(?)", trip)
        return msgspec.json.decode(rows[0][0]) if rows else None

    def europe(ctx: Context[TravelDatabase]) -> str | None:
        """What the traveller prefers in Europe: flights, hotels, days."""
        return preferences("europe", ctx)

    def spain(ctx: Context[TravelDatabase]) -> str | None:
        """What the traveller liked in Spain in 2023, and what not."""
        return past_trip("Spain-2023", ctx)

    def barcelona(ctx: Context[TravelDatabase]) -> Any:
        """The facts of the journey to Barcelona in 2023."""
        return history("barcelona-2023", ctx)

    text = "text/markdown"
    notes: list[tuple[str, Callable[..., Any], str, str, str]] = [
        (
            "travel://preferences/europe",
            europe,
            "preferences-europe",
            "Travel preferences: Europe",
            text,
        ),
        (
            "travel://past-trips/Spain-2023",
            spain,
            "past-trip-spain-2023",
            "Past trip: Spain 2023",
            text,
        ),
        (
            "trips://history/barcelona-2023",
            barcelona,
            "history-barcelona-2023",
            "Trip history: Barcelona 2023",
            _JSON,
        ),
        ("travel://preferences/{region}", preferences, "preferences", "Travel preferences", text),
        ("travel://past-trips/{trip}", past_trip, "past-trip", "Past trips", text),
        ("trips://history/{trip}", history, "trip-history", "Trip history", _JSON),
    ]
    for uri, function, name, title, mime_type in notes:
        made.add_resource(
            uri, function, name=name, title=title, mime_type=mime_type, cache_scope="private"
        )

    columns = [
        (
            "travel://preferences/{region}",
            "region",
            "SELECT region FROM preferences ORDER BY region",
        ),
        ("travel://past-trips/{trip}", "trip", "SELECT id FROM trips ORDER BY id DESC"),
        ("trips://history/{trip}", "trip", "SELECT history FROM trips ORDER BY id DESC"),
    ]
    for template, argument, query in columns:
        _complete_from(made, template, argument, query)


def _notes(trip: dict[str, Any]) -> str:
    """A past trip as a page of notes."""
    days = f"{trip['from']} to {trip['to']}"
    lines = [
        f"# {trip['id'].replace('-', ' ')}: {trip['city']}",
        "",
        f"{days}, {trip['travelers']} travelers, ${trip['spent']:,} in all.",
    ]
    lines += ["", f"Hotel: {trip['hotel']}.", "", "Liked:", *(f"- {one}" for one in trip["liked"])]
    return "\n".join(
        [*lines, "", "Disliked:", *(f"- {one}" for one in trip["disliked"]), "", trip["wish"], ""]
    )


def _add_places(made: Server) -> None:
    """Activities and the timetable."""

    @made.resource(ACTIVITIES, name="activities", title="Activities", mime_type=_JSON)
    def activities(
        city: str, category: str, ctx: Context[TravelDatabase]
    ) -> list[dict[str, str]] | None:
        """Sights and activities in a city: museums, architecture, food, and beaches or parks if it
        has them.
        """
        place = ctx.lifespan_state.atlas.seek(city)
        query = "SELECT name, about FROM activities WHERE city = ? AND category = lower(?)"
        rows = ctx.lifespan_state.rows(query, place.code, category) if place is not None else []
        return [{"name": name, "about": about} for name, about in rows] or None

    @made.resource(FLIGHTS, name="flight-search", title="Flight Search", mime_type=_JSON)
    def flights(
        origin: str, destination: str, ctx: Context[TravelDatabase]
    ) -> dict[str, Any] | None:
        """Search available flights between cities"""
        here = ctx.lifespan_state.atlas.seek(origin)
        there = ctx.lifespan_state.atlas.seek(destination)
        if here is None or there is None or here.code == there.code:
            return None
        lines = _timetable(ctx.lifespan_state, list(here.airports), list(there.airports))
        return {
            "origin": here.label,
            "destination": there.label,
            "count": len(lines),
            "flights": lines,
        }

    @made.resource(AIRPORT, name="airport-search", title="Airport Search", mime_type=_JSON)
    def departures(airport: str, ctx: Context[TravelDatabase]) -> dict[str, Any] | None:
        """The cities that can be reached from an airport, and the flights a week."""
        place = ctx.lifespan_state.atlas.seek(airport)
        if place is None:
            return None
        marks = ", ".join("?" * len(place.airports))
        query = f"""SELECT c.name, c.code, sum(length(t.days)), min(t.cents)
          FROM timetable t JOIN airports a ON a.code = t.destination
          JOIN cities c ON c.code = a.city WHERE t.origin IN ({marks})
          GROUP BY c.code ORDER BY c.place"""
        rows = ctx.lifespan_state.rows(query, *place.airports)
        to = [
            {"city": f"{name} ({code})", "flights_a_week": week, "fare_from": round(cents / 100)}
            for name, code, week, cents in rows
        ]
        return {"airports": place.airports, "city": place.label, "destinations": to}

    @made.completion(ACTIVITIES, "city")
    def complete_city(value: str, ctx: Context[TravelDatabase]) -> list[str]:
        """Cities as they stand in the URI: barcelona."""
        return [place.slug for place in ctx.lifespan_state.atlas.cities(value)]

    @made.completion(ACTIVITIES, "category")
    def complete_category(
        value: str, arguments: dict[str, str], ctx: Context[TravelDatabase]
    ) -> list[str]:
        """The categories of the city, or of all."""
        place = ctx.lifespan_state.atlas.seek(arguments.get("city", ""))
        rows = ctx.lifespan_state.rows(
            "SELECT DISTINCT category FROM activities WHERE ? IN (city, '') ORDER BY 1",
            place.code if place else "",
        )
        return [category for (category,) in rows if category.startswith(value.lower())]

    @made.completion(FLIGHTS, "origin")
    def complete_origin(value: str, ctx: Context[TravelDatabase]) -> list[str]:
        """Cities as people read them: Barcelona (BCN)."""
        return [place.label for place in ctx.lifespan_state.atlas.cities(value)]

    @made.completion(FLIGHTS, "destination")
    def complete_destination(
        value: str, arguments: dict[str, str], ctx: Context[TravelDatabase]
    ) -> list[str]:
        """The same, without the origin."""
        return [
            place.label
            for place in ctx.lifespan_state.atlas.cities(value, but=arguments.get("origin", ""))
        ]

    @made.completion(AIRPORT, "airport")
    def complete_airport(value: str, ctx: Context[TravelDatabase]) -> list[str]:
        """Airports with their names: JFK - John F. Kennedy International."""
        return list(ctx.lifespan_state.atlas.airports(value))


def _timetable(
    records: TravelDatabase, origins: list[str], destinations: list[str]
) -> list[dict[str, Any]]:
    marks = [", ".join("?" * len(codes)) for codes in (origins, destinations)]
    query = f"""SELECT t.number, a.name, t.origin, t.destination, t.departs, t.arrives, t.via,
      t.days, t.cents FROM timetable t JOIN airlines a ON a.code = substr(t.number, 1, 2)
      WHERE t.origin IN ({marks[0]}) AND t.destination IN ({marks[1]})
      ORDER BY t.departs, t.number"""
    rows = records.rows(query, *origins, *destinations)
    return [
        {
            "number": number,
            "airline": airline,
            "origin": origin,
            "destination": destination,
            "departs": clock(departs),
            "arrives": clock(arrives) + ("+1" if arrives >= 1440 else ""),
            "via": msgspec.json.decode(via),
            "days": [DAYS[int(day) - 1] for day in days],
            "usual_fare": round(cents / 100),
        }
        for number, airline, origin, destination, departs, arrives, via, days, cents in rows
    ]


def _add_bookings(made: Server) -> None:
    @made.resource(
        BOOKINGS, name="bookings", title="Bookings", mime_type=_JSON, cache_scope="private"
    )
    def bookings(ctx: Context[TravelDatabase]) -> list[ledger.Booking]:
        """All bookings; watch it to hear of new ones."""
        return ledger.bookings(ctx.lifespan_state)

    @made.resource(
        BOOKINGS + "/{booking}",
        name="booking",
        title="A booking",
        mime_type=_JSON,
        cache_scope="private",
    )
    def booking(booking: str, ctx: Context[TravelDatabase]) -> ledger.Booking | None:
        """A booking, with its flights and its hotel, by its id."""
        return ledger.seek(ctx.lifespan_state, booking)

    _complete_from(
        made,
        BOOKINGS + "/{booking}",
        "booking",
        "SELECT id FROM bookings ORDER BY year DESC, number DESC",
    )


def _complete_from(made: Server, template: str, argument: str, query: str) -> None:
    @made.completion(template, argument)
    def complete(value: str, ctx: Context[TravelDatabase]) -> list[str]:
        """The values in the database that begin like this."""
        return [
            name
            for (name,) in ctx.lifespan_state.rows(query)
            if name.lower().startswith(value.lower())
        ]
