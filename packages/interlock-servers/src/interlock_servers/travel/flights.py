"""Flight search, and a choice among flights by the client's own model."""

from __future__ import annotations

import asyncio
import datetime as dt
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from interlock import Context, TextContent, ToolError, ToolResult, types

from .airports import TravelCity
from .database import TravelDatabase
from .prices import dollars, fare

# the days of the timetable
FIRST = dt.date(2024, 1, 1)
LAST = dt.date(2030, 12, 31)
SYSTEM = "You are a travel expert who helps people find the best flight for their preferences."
_ANSWER = re.compile(
    r"^[\s*#-]*\d+[.)][\s*`]*([A-Z]{2}\d{1,4}-\d{4}-\d\d-\d\d)[\s*`]*[:–-][\s*]*(\S.*?)\s*$",
    re.MULTILINE,
)
_ID = re.compile(r"([A-Z]{2}\d{1,4})-(\d{4}-\d\d-\d\d)")
_QUERY = """SELECT t.number, a.name, t.origin, t.destination, t.departs, t.lasts, t.arrives,
  t.via, t.cents, t.days FROM timetable t
  JOIN airlines a ON a.code = substr(t.number, 1, 2) WHERE """

City = Annotated[
    str, Meta(min_length=1, max_length=80, examples=["NYC", "JFK", "Barcelona", "Barcelona (BCN)"])
]
Day = Annotated[dt.date, Meta(examples=["2024-06-15"])]
Dollars = Annotated[float, Meta(gt=0)]


class Flight(Struct):
    """A flight on a day. Times are local; the price is for one seat in US dollars."""

    id: str
    airline: str
    origin: str
    destination: str
    date: str
    departs: str
    arrives: str
    arrives_next_day: bool
    duration_minutes: int
    stops: int
    via: list[str]
    price: int

    @property
    def line(self) -> str:
        """The flight in one line, for models to read."""
        day = "+1" if self.arrives_next_day else ""
        stops = f"{self.stops} stop{'' if self.stops == 1 else 's'}"
        lasts = f"{self.duration_minutes // 60}h {self.duration_minutes % 60:02}m"
        return (
            f"- {self.id} | {self.airline} | {self.departs} -> {self.arrives}{day} | {stops} | "
            f"{lasts} | ${self.price}"
        )

    @property
    def words(self) -> str:
        """The flight as a person reads it before booking."""
        day = " the next day" if self.arrives_next_day else ""
        when = (
            f"{self.date}, {self.origin} {self.departs} to {self.destination} {self.arrives}{day}"
        )
        return f"{self.id.partition('-')[0]} {self.airline}, {when}, {dollars(self.price)} a seat"


class Flights(Struct):
    """The flights that were found, best first."""

    origin: str
    destination: str
    date: str
    count: int
    flights: list[Flight]


class Recommendation(Struct):
    """A flight that the model recommends, and why."""

    rank: int
    flight: Flight
    reason: str


class BestFlight(Struct):
    """The model's recommendation, the number of flights compared, and the preferences it used."""

    preferences: str
    considered: int
    model: str
    picks: list[Recommendation]


_ORDER: dict[str, Callable[[Flight], tuple[Any, ...]]] = {
    "price": lambda flight: (flight.price, flight.departs),
    "departure": lambda flight: (flight.departs, flight.price),
    "duration": lambda flight: (flight.duration_minutes, flight.price),
    "stops": lambda flight: (flight.stops, flight.price),
}


def search_flights(
    origin: City,
    destination: City,
    date: Day,
    ctx: Context[TravelDatabase],
    max_price: Dollars | None = None,
    max_stops: Annotated[int, Meta(ge=0, le=3)] | None = None,
    sort: Literal["price", "departure", "duration", "stops"] = "price",
) -> ToolResult[Flights]:
    """The flights from one city or airport to another on a day, with times, stops and prices.

    Args:
        origin: city or airport code, by name or by code.
        destination: the same.
        date: the day of departure.
        max_price: the most that one seat may cost, in US dollars.
        max_stops: how often it may stop at most.
        sort: what comes first: the cheapest, the earliest, the shortest, or the one with the fewest
            stops.
    """
    here, there = route(ctx.lifespan_state, origin, destination)
    found = [
        flight
        for flight in flights_on(ctx.lifespan_state, here, there, date)
        if (max_price is None or flight.price <= max_price)
        and (max_stops is None or flight.stops <= max_stops)
    ]
    found.sort(key=_ORDER[sort])
    words = (
        f"{len(found) or 'No'} flights from {here.label} to {there.label} on {date}, priced in US "
        "dollars for one seat"
    )
    data = Flights(here.label, there.label, date.isoformat(), len(found), found)
    return ToolResult(data, "\n".join([words, *(flight.line for flight in found)]))


async def find_best_flight(
    origin: City,
    destination: City,
    date: Day,
    ctx: Context[TravelDatabase],
    preferences: Annotated[
        str, Meta(min_length=1, max_length=500)
    ] = "morning departure, at most one stop",
) -> ToolResult[BestFlight]:
    """Let the client's own model weigh all flights of a day and recommend three, with reasons.

    Args:
        origin: city or airport, by name or by code.
        destination: the same.
        date: the day of departure.
        preferences: what matters to the user, in their words.
    """
    here, there = await asyncio.to_thread(route, ctx.lifespan_state, origin, destination)
    offered = {
        flight.id: flight
        for flight in await asyncio.to_thread(flights_on, ctx.lifespan_state, here, there, date)
    }
    if not offered:
        raise ToolError(
            f"There is no flight from {here.label} to {there.label} on {date}. Try the day before "
            "or after."
        )
    wishes = " ".join(preferences.split())
    answer = await ctx.sample(
        question(list(offered.values()), here, there, date, wishes),
        system=SYSTEM,
        max_tokens=1500,
        preferences=types.ModelPreferences(
            hints=[types.ModelHint(name="claude-sonnet-4-20250514")],
            cost_priority=0.3,
            speed_priority=0.2,
            intelligence_priority=0.9,
        ),
        key="best-flight",
    )
    blocks = answer.content if isinstance(answer.content, list) else [answer.content]
    picks = picked(
        "\n".join(block.text for block in blocks if isinstance(block, TextContent)), offered
    )
    if not picks:
        raise ToolError(
            "The model's answer names none of these flights. Ask again, or choose one "
            "with search_flights."
        )
    words = "\n".join(
        f"{pick.rank}. {pick.flight.line.removeprefix('- ')}: {pick.reason}" for pick in picks
    )
    return ToolResult(BestFlight(wishes, len(offered), answer.model, picks), words)


def question(
    offered: list[Flight], here: TravelCity, there: TravelCity, day: dt.date, wishes: str
) -> str:
    """The prompt for the model: the flights one a line, the wishes, and the form of the answer."""
    return "\n".join(
        [
            f"Analyze these {len(offered)} flights from {here.label} to {there.label} on {day} "
            "and recommend the best choice:",
            *(flight.line for flight in offered),
            "",
            f"User preferences: {wishes}",
            "",
            "Weigh price, hours, stops and duration. Answer with the three best, the best first, "
            "one line a flight and nothing else:",
            "{rank}. {id}: {reason}",
        ]
    )


def picked(text: str, offered: dict[str, Flight]) -> list[Recommendation]:
    """The first three existing flights that an answer names, in its order."""
    reasons: dict[str, str] = {}
    for name, reason in _ANSWER.findall(text):
        if name in offered:
            reasons.setdefault(name, reason[:500])
    return [
        Recommendation(rank, offered[name], reason)
        for rank, (name, reason) in enumerate(list(reasons.items())[:3], 1)
    ]


def route(records: TravelDatabase, origin: str, destination: str) -> tuple[TravelCity, TravelCity]:
    """The two ends of a route. Raises ToolError for unknown places, or the same place twice."""
    here = records.atlas.find(origin)
    there = records.atlas.find(destination)
    if here.code == there.code:
        raise ToolError(f"{here.label} is both origin and destination. Give two different cities.")
    return here, there


def flights_on(
    records: TravelDatabase, here: TravelCity, there: TravelCity, day: dt.date
) -> list[Flight]:
    """All flights between two places on a day, by departure time.

    Raises ToolError for a day outside the timetable.
    """
    if not FIRST <= day <= LAST:
        raise ToolError(f"The timetable goes from {FIRST} to {LAST}; {day} is not in it.")
    places = [*here.airports, *there.airports]
    marks = ["(" + ", ".join("?" * len(place.airports)) + ")" for place in (here, there)]
    rows = records.rows(
        f"{_QUERY} t.origin IN {marks[0]} AND t.destination IN {marks[1]} ORDER BY t.departs, "
        "t.number",
        *places,
    )
    return [_flight(row, day) for row in rows if str(day.isoweekday()) in row[9]]


def flight_called(records: TravelDatabase, name: str) -> Flight:
    """The flight with an id from the search. Raises ToolError if there is none."""
    found = _ID.fullmatch(name.strip().upper())
    rows = records.rows(f"{_QUERY} t.number = ?", found[1]) if found else []
    try:
        day = dt.date.fromisoformat(found[2]) if found else None
    except ValueError:
        day = None
    if not rows or day is None:
        raise ToolError(
            f"There is no flight {name[:60]!r}. Use an id from search_flights, such as "
            "CW101-2024-06-15."
        )
    if str(day.isoweekday()) not in rows[0][9] or not FIRST <= day <= LAST:
        raise ToolError(f"{rows[0][0]} does not fly on {day}. Use an id from search_flights.")
    return _flight(rows[0], day)


def _flight(row: tuple[Any, ...], day: dt.date) -> Flight:
    number, airline, origin, destination, departs, lasts, arrives, via, cents, _ = row
    stops = msgspec.json.decode(via, type=list[str])
    return Flight(
        id=f"{number}-{day}",
        airline=airline,
        origin=origin,
        destination=destination,
        date=day.isoformat(),
        departs=clock(departs),
        arrives=clock(arrives),
        arrives_next_day=arrives >= 1440,
        duration_minutes=lasts,
        stops=len(stops),
        via=stops,
        price=fare(cents, number, day),
    )


def clock(minutes: int) -> str:
    """Minutes from midnight as hours and minutes."""
    return f"{minutes % 1440 // 60:02}:{minutes % 60:02}"
