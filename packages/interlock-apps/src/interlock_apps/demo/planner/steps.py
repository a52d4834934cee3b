"""The steps of the plan: what the planner does next, given the results so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from interlock import TextContent
from interlock.types import SamplingMessage, ToolResultContent, ToolUseContent

from .wishes import Wishes

FAILED = object()
MISSING = "I find no flights or hotels: the travel server is missing."
Call = tuple[str, dict[str, Any]]


class Next(Struct):
    """The planner's text and the tool calls it wants; without calls the turn ends."""

    text: str
    calls: list[Call] = []


class Done:
    """The calls since the holiday was asked for: the tool's own name, the arguments, and the data
    or FAILED.
    """

    def __init__(self, messages: Sequence[SamplingMessage], plain: Mapping[str, str]) -> None:
        self.calls: list[tuple[str, dict[str, Any], Any]] = []
        self.words: dict[str, str] = {}
        uses: dict[str, ToolUseContent] = {}
        for message in messages:
            for block in (
                message.content if isinstance(message.content, list) else [message.content]
            ):
                if isinstance(block, ToolUseContent):
                    uses[block.id] = block
                elif (
                    isinstance(block, ToolResultContent)
                    and (use := uses.get(block.tool_use_id)) is not None
                ):
                    name = plain.get(use.name, use.name)
                    self.calls.append((name, dict(use.input), data_of(block)))
                    if block.is_error:
                        self.words[name] = " ".join(
                            b.text for b in block.content if isinstance(b, TextContent)
                        )

    def of(self, name: str, **arguments: Any) -> Any:
        """The data of the last call of a tool with these arguments; None if it was not called."""
        for called, given, data in reversed(self.calls):
            if called == name and all(given.get(key) == value for key, value in arguments.items()):
                return data
        return None


def data_of(result: ToolResultContent) -> Any:
    """The data of a result, also if it is JSON in a line of text."""
    if result.is_error:
        return FAILED
    if result.structured_content is not UNSET:
        return result.structured_content
    for line in _lines(result):
        if line.startswith(("{", "[")):
            try:
                return msgspec.json.decode(line)
            except msgspec.DecodeError:
                continue
    return {}


def _lines(result: ToolResultContent) -> Iterator[str]:
    for block in result.content:
        if isinstance(block, TextContent):
            yield from block.text.splitlines()


def next_step(wish: Wishes, done: Done, tools: Mapping[str, str]) -> Next:
    """The next step.

    `tools` maps each tool's own name to the name under which the model calls it. Steps whose tool
    is missing are skipped.
    """
    if not {"search_flights", "search_hotels"} & set(tools):
        return Next(MISSING)
    for step in (_search, _choose, _book, _confirm):
        found = step(wish, done)
        if found is not None:
            found.calls = [(tools[name], given) for name, given in found.calls if name in tools]
            if found.calls:
                return found
    return Next(_summary(wish, done, tools))


def _search(wish: Wishes, done: Done) -> Next | None:
    """Query weather, flights and hotels at the same time."""
    if done.of("search_hotels") is not None or done.of("search_flights") is not None:
        return None
    where = wish.destination
    there = wish.departure
    back = wish.back
    checking = f"I am checking the weather, flights and hotels in {where} for {there} to {back}."
    text = f"{wish.remarks} {checking}".strip()
    hotel = {"city": where, "check_in": there, "check_out": back, "guests": max(wish.travelers, 1)}
    return Next(
        text,
        [
            ("check_weather", {"city": where, "date": there}),
            ("search_flights", {"origin": wish.home, "destination": where, "date": there}),
            ("search_flights", {"origin": where, "destination": wish.home, "date": back}),
            ("search_hotels", hotel),
        ],
    )


def _choose(wish: Wishes, done: Done) -> Next | None:
    """Have the travel server choose the best flight for each way; it asks a model by sampling."""
    for date, start, end in (
        (wish.departure, wish.home, wish.destination),
        (wish.back, wish.destination, wish.home),
    ):
        if done.of("find_best_flight", date=date) is None and _flights(done, date):
            way = "outbound" if date == wish.departure else "return"
            given = {"origin": start, "destination": end, "date": date, "preferences": wish.flights}
            count = len(_flights(done, date))
            return Next(
                f"There are {count} {way} flights. The travel server will find the best one.",
                [("find_best_flight", given)],
            )
    return None


def _book(wish: Wishes, done: Done) -> Next | None:
    if done.of("book_trip") is not None:
        return None
    there = _flight(done, wish.departure)
    back = _flight(done, wish.back)
    hotel = _hotel(wish, done)
    if there is None or hotel is None:
        return None
    total = (there["price"] + (back["price"] if back else 0)) * wish.travelers + hotel["total"]
    given = {
        "outbound_flight": there["id"],
        "hotel": hotel["id"],
        "check_in": wish.departure,
        "check_out": wish.back,
        "travelers": wish.travelers,
    }
    if back is not None:
        given["return_flight"] = back["id"]
    words = f"{there['airline']} at {there['departs']}" + (
        f", back with {back['airline']} at {back['departs']}" if back else ""
    )
    over = (
        f" That is more than the budget of {dollars(wish.budget)}."
        if wish.budget and total > wish.budget
        else ""
    )
    alone = (
        " No model chose among the flights, so I picked the cheapest."
        if any(name == "find_best_flight" and data is FAILED for name, _, data in done.calls)
        else ""
    )
    chosen = f"I picked {words}, and {hotel['name']} in {hotel['area']}: {dollars(total)} in total."
    return Next(f"{chosen}{alone}{over} Booking it now.", [("book_trip", given)])


def _confirm(wish: Wishes, done: Done) -> Next | None:
    """Write the calendar entry and the mail after the booking."""
    booking = _booking(done)
    if booking is None or done.of("create_event") is not None or done.of("send_mail") is not None:
        return None
    title = f"{wish.destination} Trip"
    hotel = booking.get("hotel") or {}
    event = {
        "title": title,
        "start_date": wish.departure,
        "end_date": wish.back,
        "location": hotel.get("name") or wish.destination,
        "notes": f"Booking {booking['id']}, {dollars(booking['total'])} in total.",
    }
    calls: list[Call] = [("create_event", event)]
    address = (booking.get("contact") or {}).get("email")
    if address:
        mail = {
            "to": address,
            "subject": f"{title}: booked ({booking['id']})",
            "body": _letter(wish, booking),
        }
        calls.append(("send_mail", mail))
    return Next(
        f"Booked: {booking['id']}. I am adding it to your calendar and sending the confirmation.",
        calls,
    )


def _letter(wish: Wishes, booking: Mapping[str, Any]) -> str:
    lines = [
        f"Your trip to {wish.destination}, {wish.departure} to {wish.back}, is booked.",
        "",
        f"Booking: {booking['id']}",
    ]
    for name, key in (("Flight there", "outbound"), ("Flight back", "return_flight")):
        if flight := booking.get(key):
            lines.append(
                f"{name}: {flight['id']}, {flight['airline']}, {flight['date']} "
                f"{flight['departs']} to {flight['arrives']}"
            )
    if hotel := booking.get("hotel"):
        lines.append(
            f"Hotel: {hotel['name']}, {hotel['area']}"
            + (f", {booking['room']}" if booking.get("room") else "")
        )
    lines += [f"Travelers: {booking['travelers']}", f"Total: {dollars(booking['total'])}"]
    return "\n".join(lines)


def dollars(amount: int) -> str:
    """An amount as people write it."""
    return f"${amount:,}"


def _why_not(wish: Wishes, done: Done, tools: Mapping[str, str]) -> str:
    """Why the trip was not booked."""
    outcome = done.of("book_trip")
    if isinstance(outcome, dict):
        words = outcome.get("message", "You did not confirm it.")
        return f"{words} Tell me other dates or another budget, and I will plan again."
    if outcome is FAILED:
        return done.words.get("book_trip", "")
    for name in ("search_flights", "search_hotels"):
        if done.words.get(name):
            return done.words[name]
    if _flight(done, wish.departure) is None:
        return f"I found no flight from {wish.home} to {wish.destination} on {wish.departure}."
    if _hotel(wish, done) is None:
        return f"I found no hotel in {wish.destination} for {wish.departure} to {wish.back}."
    return "I cannot book anything here." if "book_trip" not in tools else ""


def _summary(wish: Wishes, done: Done, tools: Mapping[str, str]) -> str:
    booking = _booking(done)
    if booking is None:
        return f"Nothing was booked. {_why_not(wish, done, tools)}".strip()
    lines = [
        f"Your trip to **{wish.destination}** is booked, {wish.departure} to {wish.back}, "
        f"for {booking['travelers']}.",
        "",
    ]
    for name, key in (("There", "outbound"), ("Back", "return_flight")):
        if flight := booking.get(key):
            lines.append(
                f"- {name}: {flight['airline']} {flight['id']}, "
                f"{flight['departs']} to {flight['arrives']}"
            )
    if hotel := booking.get("hotel"):
        lines.append(
            f"- Hotel: {hotel['name']}, {hotel['area']}"
            + (f", {booking['room'].lower()}" if booking.get("room") else "")
        )
    lines.append(
        f"- Total: {dollars(booking['total'])}"
        + (" with insurance" if booking.get("insurance") else "")
        + f", booking {booking['id']}"
    )
    weather = done.of("check_weather")
    if isinstance(weather, dict) and "highCelsius" in weather:
        degrees = f"{weather['lowCelsius']} to {weather['highCelsius']} °C"
        lines.append(
            f"- Weather: mostly {degrees}, rain on {weather['rainDays']} days of the month"
        )
    lines += ["", _rest(done)]
    return "\n".join(lines)


def _rest(done: Done) -> str:
    mail = done.of("send_mail")
    said = []
    failed = (None, FAILED)
    said.append(
        "The trip could not be added to your calendar."
        if done.of("create_event") in failed
        else "The trip is in your calendar."
    )
    if mail in failed:
        said.append("The confirmation could not be sent.")
    elif mail.get("how") == "local":
        said.append(
            "The confirmation is in your sent mail on this machine; "
            "no mail server is configured, so it was not sent on."
        )
    else:
        said.append("The confirmation was sent.")
    return " ".join(said)


def _flights(done: Done, date: str) -> list[dict[str, Any]]:
    data = done.of("search_flights", date=date)
    return list(data.get("flights", ())) if isinstance(data, dict) else []


def _flight(done: Done, date: str) -> dict[str, Any] | None:
    """The flight chosen as the best, or the cheapest one if the choice failed."""
    best = done.of("find_best_flight", date=date)
    if isinstance(best, dict) and best.get("picks"):
        flight: dict[str, Any] = best["picks"][0]["flight"]
        return flight
    return min(_flights(done, date), key=lambda each: (each["price"], each["id"]), default=None)


def _hotel(wish: Wishes, done: Done) -> dict[str, Any] | None:
    """The best rated hotel within the price for a night and the budget; by the sea if wanted."""
    data = done.of("search_hotels")
    hotels: list[dict[str, Any]] = list(data.get("hotels", ())) if isinstance(data, dict) else []
    flights = [_flight(done, date) for date in (wish.departure, wish.back)]
    spent = sum(flight["price"] for flight in flights if flight) * wish.travelers

    def fits(hotel: dict[str, Any], sea: bool, night: bool) -> bool:
        return (
            (not wish.budget or spent + hotel["total"] <= wish.budget)
            and (
                not (sea and wish.sea) or any("sea" in f or "beach" in f for f in hotel["features"])
            )
            and (not (night and wish.night) or hotel["price_per_night"] <= wish.night)
        )

    for sea, night in ((True, True), (False, True), (True, False), (False, False)):
        if fitting := [hotel for hotel in hotels if fits(hotel, sea, night)]:
            return max(fitting, key=lambda hotel: (hotel["rating"], -hotel["total"]))
    return min(hotels, key=lambda hotel: hotel["total"], default=None)


def _booking(done: Done) -> dict[str, Any] | None:
    data = done.of("book_trip")
    booking = data.get("booking") if isinstance(data, dict) and data.get("booked") else None
    return booking if isinstance(booking, dict) else None
