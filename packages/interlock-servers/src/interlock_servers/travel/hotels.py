"""Hotel search, and the price of a stay."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from interlock import Context, ToolError, ToolResult

from .database import TravelDatabase
from .flights import City, Day, Dollars

MOST_NIGHTS = 60
Guests = Annotated[int, Meta(ge=1, le=9)]
_QUERY = """SELECT h.id, h.name, c.name, h.area, h.stars, h.rating, h.price, h.sleeps, h.has
  FROM hotels h JOIN cities c ON c.code = h.city
  WHERE """


class Hotel(Struct):
    """A hotel and the total price of the stay in US dollars, for `rooms` rooms that sleep `sleeps`
    each.
    """

    id: str
    name: str
    city: str
    area: str
    stars: int
    rating: float
    features: list[str]
    sleeps: int
    price_per_night: int
    rooms: int
    total: int

    @property
    def line(self) -> str:
        """The hotel in one line, for models to read."""
        about = f"{self.stars} stars, rated {self.rating:g}, {', '.join(self.features)}"
        return (
            f"- {self.id} | {self.name}, {self.area} | {about} | ${self.price_per_night} a night "
            f"| ${self.total} in all"
        )


class Hotels(Struct):
    """The hotels that were found, best rated first."""

    city: str
    check_in: str
    check_out: str
    nights: int
    guests: int
    count: int
    hotels: list[Hotel]


def search_hotels(
    city: City,
    check_in: Day,
    check_out: Day,
    ctx: Context[TravelDatabase],
    max_price_per_night: Dollars | None = None,
    guests: Guests = 2,
) -> ToolResult[Hotels]:
    """The hotels of a city for a stay, the best rated first.

    Args:
        city: by name or by code.
        check_in: the first day.
        check_out: the last day.
        max_price_per_night: the most that a room may cost for a night, in US dollars.
        guests: how many people; where they do not fit into one room, the price is that of several.
    """
    place = ctx.lifespan_state.atlas.find(city)
    nights = nights_between(check_in, check_out)
    rows = ctx.lifespan_state.rows(
        f"{_QUERY} h.city = ? ORDER BY h.rating DESC, h.price", place.code
    )
    found = [_hotel(row, nights, guests) for row in rows]
    found = [
        hotel
        for hotel in found
        if max_price_per_night is None or hotel.price_per_night <= max_price_per_night
    ]
    words = (
        f"{len(found) or 'No'} hotels in {place.label} for {guests}, {check_in} to {check_out}, "
        "priced in US dollars"
    )
    data = Hotels(
        place.label, check_in.isoformat(), check_out.isoformat(), nights, guests, len(found), found
    )
    return ToolResult(data, "\n".join([words, *(hotel.line for hotel in found)]))


def hotel_called(records: TravelDatabase, name: str, nights: int, guests: int) -> Hotel:
    """The hotel with an id from the search, or with a name, for a stay.

    Raises ToolError if there is none.
    """
    rows = records.rows(
        f"{_QUERY} h.id = ? OR lower(h.name) = lower(?)", name.strip().lower(), name.strip()
    )
    if not rows:
        raise ToolError(
            f"There is no hotel {name[:60]!r}. Use an id from search_hotels, such as "
            "bcn-hotel-mar-blau."
        )
    return _hotel(rows[0], nights, guests)


def nights_between(check_in: dt.date, check_out: dt.date) -> int:
    """The number of nights of a stay. Raises ToolError for none or too many."""
    nights = (check_out - check_in).days
    if not 0 < nights <= MOST_NIGHTS:
        raise ToolError(
            f"A stay from {check_in} to {check_out} has {nights} nights; it needs 1 to "
            f"{MOST_NIGHTS}."
        )
    return nights


def _hotel(row: tuple[Any, ...], nights: int, guests: int) -> Hotel:
    name, called, city, area, stars, rating, price, sleeps, has = row
    rooms = -(-guests // sleeps)
    return Hotel(
        id=name,
        name=called,
        city=city,
        area=area,
        stars=stars,
        rating=rating,
        features=msgspec.json.decode(has, type=list[str]),
        sleeps=sleeps,
        price_per_night=price,
        rooms=rooms,
        total=nights * rooms * price,
    )
