"""Travel server of the demo: flights, hotels and bookings. All of its data is made up.

`interlock serve travel` runs it over stdio. It keeps its data and the bookings in the SQLite file
that INTERLOCK_TRAVEL_DB names; the default is in the user's data folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from interlock import QuestionSettings, Server, ServerInfo, ToolAnnotations, ToolError

from . import bookings
from .booking_tools import (
    BOOKINGS,
    book_flight,
    book_hotel,
    book_trip,
    cancel_booking,
    list_bookings,
    show,
)
from .database import TravelDatabase, named_path
from .flights import find_best_flight, search_flights
from .hotels import search_hotels
from .prompts import add_prompt
from .resources import add_library

INSTRUCTIONS = (
    "Search flights and hotels by city (Barcelona, NYC) and pass their ids to book_trip, "
    "which asks the user to confirm. find_best_flight lets your model compare all "
    "flights of a day. Read travel://preferences/europe for the user's preferences. All "
    "prices are in US dollars. Nothing here is real: no flight or hotel is booked "
    "anywhere else."
)


def travel_server(path: Path | None = None, *, suspend: bool = True) -> Server:
    """Return a travel server for the database at `path`; by default the environment's or the user's
    file.

    `suspend` is as for Server.
    """

    @asynccontextmanager
    async def lifespan(made: Server) -> AsyncIterator[TravelDatabase]:
        records = TravelDatabase(path or named_path())
        with suppress(ToolError):  # callers of tools see the error
            for booking in await asyncio.to_thread(bookings.bookings, records):
                show(made, booking.id)
        try:
            yield records
        finally:  # the next run may have another file
            for uri in [resource.listing.uri for resource in made.resources.all()]:
                if uri.startswith(f"{BOOKINGS}/"):
                    made.remove_resource(uri)

    made = Server(
        "travel",
        "1.0.0",
        info=ServerInfo(title="Travel", description="Flights, hotels and bookings, all made up."),
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        questions=QuestionSettings(suspend=suspend),
    )
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    asks = ToolAnnotations(read_only_hint=True, open_world_hint=True)
    books = ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
    )
    cancels = ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
    )
    made.add_tool(search_flights, title="Search flights", annotations=reads)
    made.add_tool(find_best_flight, title="Find the best flight", annotations=asks)
    made.add_tool(search_hotels, title="Search hotels", annotations=reads)
    # The same call books once, however often it is replayed. Therefore a server that does not know
    # whether a call was confirmed before may repeat it.
    made.add_tool(book_trip, title="Book a trip", annotations=books, idempotent=True)
    made.add_tool(book_flight, title="Book a flight", annotations=books, idempotent=True)
    made.add_tool(book_hotel, title="Book a hotel", annotations=books, idempotent=True)
    made.add_tool(cancel_booking, title="Cancel a booking", annotations=cancels)
    made.add_tool(list_bookings, title="List bookings", annotations=reads)
    add_library(made)
    add_prompt(made)
    return made


server = travel_server()

if __name__ == "__main__":
    server.run()
