"""The travel server books once, only after a yes, and safely beside other processes; what only
reads changes not a byte.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from interlock import Client, InputRequiredResult, McpError, Server, Stdio, types
from interlock.exchange import Exchange
from interlock_servers.travel import database as records_file
from interlock_servers.travel import travel_server
from interlock_servers.travel.bookings import Booking, book, bookings, cancel
from interlock_servers.travel.database import VARIABLE, TravelDatabase
from tests.servers.travel_fixtures import (
    BACK,
    CONTACT,
    HOTEL,
    OUT,
    STAY,
    TRIP,
    WAY,
    YES,
    contents,
    person,
    stock,
)

ASKING = pytest.mark.parametrize(
    "interlock_way",
    ["2025-06-18", "2025-11-25", "2026-07-28-suspended", "2026-07-28-replayed"],
    indirect=True,
)
NOT_ASKING = ["2024-11-05", "2025-03-26"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where this test's database lies, in a folder of its own."""
    return tmp_path / "data" / "travel.sqlite"


@pytest.fixture
def server(path: Path) -> Server:
    """A server over it, filled and without bookings."""
    return travel_server(stock(path))


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    """A client of somebody who agrees to everything."""
    async with Client(server, answers=person()) as opened:
        yield opened


def kept(path: Path) -> list[Booking]:
    """The bookings in the file, looked at from outside of the server."""
    return bookings(TravelDatabase(path))


# -- a trip ----------------------------------------------------------------------------------------


@ASKING
async def test_a_trip(
    interlock_client: Any, interlock_way: Any, server: Server, path: Path
) -> None:
    """The holiday of the guide: one form with the total, one for the contact, and one booking of it
    all (`ELI-04`, `ELI-06`, `MRT-24`).
    """
    answers = person()
    async with interlock_client(server, answers=answers) as client:
        await client.list_tools()
        done = (await client.call_tool("book_trip", TRIP)).value()
        assert (done["booked"], done["message"]) == (
            True,
            "Booked: BK-2024-0001, Barcelona, 2024-06-15 to 2024-06-22, $3,150 in all.",
        )
        assert (await client.call_tool("list_bookings")).value() == {
            "count": 1,
            "bookings": [done["booking"]],
        }
    (booking,) = kept(path)
    assert msgspec.to_builtins(booking) == done["booking"]
    assert (booking.id, booking.status, booking.kind, booking.travelers, booking.total) == (
        "BK-2024-0001",
        "booked",
        "trip",
        2,
        3150,
    )
    assert booking.outbound is not None
    assert booking.return_flight is not None
    assert booking.hotel is not None
    assert (booking.outbound.id, booking.return_flight.id, booking.hotel.id) == (OUT, BACK, HOTEL)
    assert (booking.check_in, booking.check_out, booking.seat, booking.room, booking.insurance) == (
        "2024-06-15", "2024-06-22", "Aisle", "Sea view", True,
    )  # fmt: skip
    assert booking.contact is not None
    assert (booking.contact.name, booking.contact.email, booking.contact.phone) == (
        "Ada Lovelace",
        "ada@example.com",
        None,
    )
    assert booking.contact.special_requests == "A quiet room"


async def test_the_forms_of_a_trip(server: Server) -> None:
    """The first form is the guide's, with the summary and the total of $3,000; the second asks for
    the contact (`ELI-08` to `ELI-11`).
    """
    answers = person({"confirmBooking": True})
    async with Client(server, answers=answers) as client:
        done = (await client.call_tool("book_trip", TRIP)).value()["booking"]
    assert (done["total"], done["seat"], done["room"], done["insurance"]) == (
        3000,
        None,
        None,
        False,
    )
    first, second = (request.params for request in answers.asked)
    assert isinstance(first, types.ElicitRequestParams)
    assert isinstance(second, types.ElicitRequestParams)
    for word in (
        "Barcelona",
        "2024-06-15 to 2024-06-22",
        "Hotel Mar Blau",
        "CW101",
        "CW102",
        "7 nights",
        "Travelers: 2",
        "Total: $3,000",
    ):
        assert word in first.message
    form = first.requested_schema or {}
    assert form["required"] == ["confirmBooking"]
    fields = {
        name: {key: value for key, value in field.items() if key != "title"}
        for name, field in form["properties"].items()
    }
    assert fields == {
        "confirmBooking": {
            "type": "boolean",
            "description": "Confirm the booking (flights + hotel = $3,000)",
        },
        "seatPreference": {
            "type": "string",
            "enum": ["Window", "Aisle", "No preference"],
            "description": "Preferred seat on the flights",
        },
        "roomType": {
            "type": "string",
            "enum": ["Sea view", "City view", "Garden view"],
            "description": "Preferred room at the hotel",
        },
        "travelInsurance": {
            "type": "boolean",
            "default": False,
            "description": "Add travel insurance ($150)",
        },
    }
    contact = second.requested_schema or {}
    assert contact["required"] == ["name", "email"]
    assert set(contact["properties"]) == {"name", "email", "phone", "specialRequests"}
    assert contact["properties"]["email"]["format"] == "email"


@ASKING
@pytest.mark.parametrize(
    "booking, contact, words",
    [
        ({"confirmBooking": False}, None, "did not confirm"),
        (False, None, "declined"),
        (lambda _: None, None, "dismissed"),
        (None, False, "declined"),
        (None, lambda _: None, "dismissed"),
    ],
    ids=["no", "declined", "dismissed", "contact declined", "contact dismissed"],
)
async def test_a_no_books_nothing(
    interlock_client: Any,
    interlock_way: Any,
    server: Server,
    path: Path,
    booking: Any,
    contact: Any,
    words: str,
) -> None:
    """Refused, dismissed or not confirmed, in either form: a result that says so, and no booking
    (`ELI-13`, `ELI-14`).
    """
    async with interlock_client(server, answers=person(booking, contact)) as client:
        await client.list_tools()
        result = await client.call_tool("book_trip", TRIP)
    assert not result.is_error
    done = result.value()
    assert (done["booked"], done["booking"]) == (False, None)
    assert words in done["message"]
    assert done["message"].endswith("nothing was booked.")
    assert result.text == done["message"]
    assert kept(path) == []


@pytest.mark.parametrize(
    "contact",
    [
        {"name": " ", "email": "ada@example.com"},
        {"name": "Ada", "email": "ada"},
        {"name": "Ada", "email": "a@b@c.d"},
    ],
)
async def test_nobody_to_write_to(server: Server, path: Path, contact: dict[str, str]) -> None:
    """A form without a name or an address books nothing, whoever of the two sides notices it
    (`ELI-35`).
    """
    async with Client(server, answers=person(contact=contact)) as client:
        try:
            failed = (await client.call_tool("book_trip", TRIP)).is_error
        except McpError as bad:
            failed = bad.code == types.INVALID_PARAMS
    assert failed
    assert kept(path) == []


@pytest.mark.parametrize("revision", NOT_ASKING)
@pytest.mark.parametrize(
    "tool, arguments",
    [
        ("book_trip", TRIP),
        ("book_flight", {"flight": OUT}),
        ("book_hotel", {"hotel": HOTEL, **STAY}),
    ],
)
async def test_nobody_to_ask(
    server: Server, path: Path, revision: str, tool: str, arguments: dict[str, Any]
) -> None:
    """Where nobody can be asked nothing is booked (`LIF-12`, `ELI-03`)."""
    async with Client(server, revision=revision, answers=person()) as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert "elicitation" in result.text
    async with Client(server) as client:
        with pytest.raises(McpError, match="elicitation"):
            await client.call_tool(tool, arguments)
    assert kept(path) == []


@pytest.mark.parametrize(
    "tool, arguments, words",
    [
        ("book_trip", {**TRIP, "outbound_flight": "CW999-2024-06-15"}, "There is no flight"),
        ("book_trip", {**TRIP, "outbound_flight": "CW101"}, "such as CW101-2024-06-15"),
        ("book_trip", {**TRIP, "outbound_flight": "CW101-2024-06-31"}, "There is no flight"),
        ("book_trip", {**TRIP, "outbound_flight": "CW101-2039-06-15"}, "does not fly on"),
        ("book_trip", {**TRIP, "hotel": "ritz"}, "There is no hotel"),
        ("book_trip", {**TRIP, "hotel": "par-le-quai-vert"}, "Le Quai Vert is in Paris"),
        ("book_trip", {**TRIP, "check_in": "2024-06-14"}, "before the flight on 2024-06-15"),
        ("book_trip", {**TRIP, "check_out": "2024-06-15"}, "has 0 nights"),
        ("book_trip", {**TRIP, "check_out": "2024-06-23"}, "before the stay ends"),
        ("book_trip", {**TRIP, "return_flight": "CW101-2024-06-22"}, "leaves from New York (NYC)"),
        ("book_trip", {**TRIP, "travelers": 0}, "travelers"),
        ("book_flight", {"flight": "nonsense"}, "There is no flight"),
        (
            "book_hotel",
            {"hotel": HOTEL, "check_in": "2024-06-15", "check_out": "2024-12-15"},
            "it needs 1 to 60",
        ),
        ("cancel_booking", {"booking": "BK-2024-0001"}, "list_bookings shows all bookings"),
    ],
)
async def test_what_cannot_be_booked(
    server: Server, path: Path, tool: str, arguments: dict[str, Any], words: str
) -> None:
    """What makes no journey is said before anybody is asked (`TOL-15`)."""
    answers = person()
    async with Client(server, answers=answers) as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert words in result.text
    assert answers.asked == []
    assert kept(path) == []


# -- parts of a trip -------------------------------------------------------------------------------


@ASKING
async def test_a_flight_alone(
    interlock_client: Any, interlock_way: Any, server: Server, path: Path
) -> None:
    """A form with seat and insurance, and no room (`ELI-06`)."""
    answers = person({"confirmBooking": True, "seatPreference": "Window", "travelInsurance": True})
    async with interlock_client(server, answers=answers) as client:
        done = (
            await client.call_tool("book_flight", {"flight": OUT.lower(), "travelers": 3})
        ).value()
    params = answers.asked[0].params
    assert isinstance(params, types.ElicitRequestParams)
    assert set((params.requested_schema or {})["properties"]) == {
        "confirmBooking",
        "seatPreference",
        "travelInsurance",
    }
    assert len(answers.asked) == 1
    assert done["booked"]
    (booking,) = kept(path)
    assert (booking.kind, booking.total, booking.seat, booking.hotel) == (
        "flight",
        3 * 412 + 150,
        "Window",
        None,
    )


@ASKING
async def test_a_hotel_alone(
    interlock_client: Any, interlock_way: Any, server: Server, path: Path
) -> None:
    """A form with the room, and neither seat nor insurance; guests who need two rooms pay for two
    (`ELI-06`).
    """
    answers = person({"confirmBooking": True, "roomType": "Garden view"})
    async with interlock_client(server, answers=answers) as client:
        done = (
            await client.call_tool("book_hotel", {"hotel": "hotel mar blau", **STAY, "guests": 3})
        ).value()
    params = answers.asked[0].params
    assert isinstance(params, types.ElicitRequestParams)
    assert set((params.requested_schema or {})["properties"]) == {"confirmBooking", "roomType"}
    assert done["booked"]
    (booking,) = kept(path)
    assert (booking.kind, booking.total, booking.room, booking.outbound) == (
        "hotel",
        2 * 1372,
        "Garden view",
        None,
    )


@ASKING
async def test_cancelling(
    interlock_client: Any, interlock_way: Any, server: Server, path: Path
) -> None:
    """Only after a yes; the booking stays, as cancelled; a second time there is nothing to do
    (`ELI-14`).
    """
    async with interlock_client(server, answers=person(cancel={"confirm": False})) as client:
        await client.call_tool("book_trip", TRIP)
        kept_on = (await client.call_tool("cancel_booking", {"booking": "bk-2024-0001"})).value()
        assert (kept_on["cancelled"], kept_on["booking"]["status"]) == (False, "booked")
        assert "did not agree" in kept_on["message"]
    assert [booking.status for booking in kept(path)] == ["booked"]
    answers = person()
    async with interlock_client(server, answers=answers) as client:
        gone = (await client.call_tool("cancel_booking", {"booking": "BK-2024-0001"})).value()
        again = (await client.call_tool("cancel_booking", {"booking": "BK-2024-0001"})).value()
        await client.call_tool("book_trip", TRIP)
    assert (gone["cancelled"], gone["booking"]["status"]) == (True, "cancelled")
    assert (again["cancelled"], again["booking"]["status"]) == (False, "cancelled")
    assert sum("Cancel the booking" in words for words in answers.messages) == 1
    assert [(booking.id, booking.status) for booking in kept(path)] == [
        ("BK-2024-0001", "cancelled"),
        ("BK-2024-0002", "booked"),
    ]


# -- once ------------------------------------------------------------------------------------------


async def put(client: Client, **more: Any) -> Any:
    """Call book_trip once, with no answers but those given: questions come back as they are."""
    params = types.CallToolRequestParams(
        name="book_trip", arguments=Raw(msgspec.json.encode(TRIP)), **more
    )
    return await client._transport(Exchange("tools/call", params, client.caller))


def accepted(key: str, content: dict[str, Any]) -> dict[str, Raw]:
    """The answer to one question."""
    return {key: Raw(msgspec.json.encode({"action": "accept", "content": content}))}


@pytest.mark.parametrize("suspend", [True, False], ids=["suspended", "replayed"])
@pytest.mark.parametrize("elsewhere", [False, True], ids=["one server", "two servers"])
async def test_a_retry_that_comes_twice(
    path: Path, monkeypatch: pytest.MonkeyPatch, suspend: bool, elsewhere: bool
) -> None:
    """The last round sent twice, also at once and to two workers that know nothing of each other,
    books once (`MRT-24`, `MRT-09`).
    """
    monkeypatch.setenv("INTERLOCK_STATE_KEY", "00" * 32)
    one = travel_server(path, suspend=suspend)
    other = travel_server(path, suspend=suspend)
    async with (
        Client(one, answers=person()) as first,
        Client(other if elsewhere else one, answers=person()) as second,
    ):
        asked = await put(first)
        assert isinstance(asked, InputRequiredResult)
        (key,) = asked.input_requests or {}
        asked = await put(
            first, input_responses=accepted(key, YES), request_state=asked.request_state
        )
        assert isinstance(asked, InputRequiredResult)
        (key,) = asked.input_requests or {}
        last = {"input_responses": accepted(key, CONTACT), "request_state": asked.request_state}
        done = [
            await put(first, **last),
            *await asyncio.gather(put(first, **last), put(second, **last)),
            await put(second, **last),
        ]
    assert [result.structured_content["booking"]["id"] for result in done] == ["BK-2024-0001"] * 4
    assert len(kept(path)) == 1


async def test_two_calls_are_two_bookings(client: Client, path: Path) -> None:
    """The same call made again is another booking: only a replayed one is not."""
    await client.call_tool("book_flight", {"flight": OUT})
    await client.call_tool("book_flight", {"flight": OUT})
    assert [booking.id for booking in kept(path)] == ["BK-2024-0001", "BK-2024-0002"]


async def test_a_year_counts_for_itself(client: Client, path: Path) -> None:
    """The number begins anew with the year of the journey."""
    for flight in (OUT, "CW101-2025-06-14", OUT):
        await client.call_tool("book_flight", {"flight": flight})
    assert {booking.id for booking in kept(path)} == {
        "BK-2024-0001",
        "BK-2024-0002",
        "BK-2025-0001",
    }


async def test_two_processes_book_at_once(path: Path) -> None:
    """Two servers that start on a file that is not there yet, and book at the same time: every
    booking has an id of its own.
    """
    command = [sys.executable, "-m", "interlock", "serve", "travel"]
    env = {**os.environ, VARIABLE: str(path)}
    async with (
        Client(Stdio(command, env=env), answers=person()) as one,
        Client(Stdio(command, env=env), answers=person()) as other,
    ):
        calls = [client.call_tool("book_trip", TRIP) for _ in range(8) for client in (one, other)]
        done = [result.value() for result in await asyncio.gather(*calls)]
        listed = (await one.call_tool("list_bookings")).value()
    assert sorted(result["booking"]["id"] for result in done) == [
        f"BK-2024-{n:04}" for n in range(1, 17)
    ]
    assert listed["count"] == 16


# -- what only reads -------------------------------------------------------------------------------

READS: dict[str, dict[str, Any]] = {
    "search_flights": WAY,
    "find_best_flight": WAY,
    "search_hotels": {"city": "Barcelona", **STAY},
    "list_bookings": {},
}
CHANGES: dict[str, dict[str, Any]] = {
    "book_trip": TRIP,
    "book_flight": {"flight": OUT},
    "book_hotel": {"hotel": HOTEL, **STAY},
    "cancel_booking": {"booking": "BK-2024-0001"},
}


async def test_the_annotations_are_true(server: Server, path: Path) -> None:
    """A tool that says it only reads leaves every byte of the folder as it was; the others do not
    (`TOL-04`).
    """
    async with Client(server, answers=person(model=f"1. {OUT}: yes")) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert set(tools) == set(READS) | set(CHANGES)
        await client.call_tool("book_trip", TRIP)
        for name, arguments in {**READS, **CHANGES}.items():
            annotations = tools[name].annotations
            assert annotations is not None
            before = contents(path.parent)
            result = await client.call_tool(name, arguments)
            assert not result.is_error, result.text
            assert (contents(path.parent) == before) == annotations.read_only_hint, name
        before = contents(path.parent)
        for resource in await client.list_resources():
            await client.read_resource(resource.uri)
        await client.get_prompt("plan-vacation", {"destination": "Barcelona"})
        assert contents(path.parent) == before


# -- what is told ----------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_bookings_are_resources(server: Server, path: Path, revision: str) -> None:
    """A booking comes into the list, and who watches hears of it, of its cancellation, and of the
    list (`RES-09`, `SUB-01`, `LSN-02`).
    """
    uri = "travel://bookings/BK-2024-0001"
    async with Client(server, revision=revision, answers=person()) as client:
        async with (
            asyncio.timeout(20),  # a notice that is missing must not hold up the run
            client.watch(resources=True) as lists,
            client.watch(resources=["travel://bookings", uri]) as changes,
        ):
            await client.call_tool("book_trip", TRIP)
            assert (await anext(lists)).kind == "resources"
            assert {(await anext(changes)).uri, (await anext(changes)).uri} == {
                "travel://bookings",
                uri,
            }
            await client.call_tool("cancel_booking", {"booking": "BK-2024-0001"})
            assert {(await anext(changes)).uri, (await anext(changes)).uri} == {
                "travel://bookings",
                uri,
            }
        listed = {resource.uri: resource for resource in await client.list_resources()}
        assert listed[uri].title == "Booking BK-2024-0001"
        (found,) = (await client.read_resource(uri)).contents
        assert msgspec.json.decode(found.text or "", type=Booking) == kept(path)[0]
        (found,) = (await client.read_resource("travel://bookings")).contents
        assert msgspec.json.decode(found.text or "", type=list[Booking]) == kept(path)
        assert (await client.complete("travel://bookings/{booking}", "booking", "bk")).values == [
            "BK-2024-0001"
        ]


async def test_bookings_outlive_the_server(server: Server, path: Path) -> None:
    """The next server lists what was booked before; one over another file does not."""
    async with Client(server, answers=person()) as client:
        await client.call_tool("book_trip", TRIP)
    for again in (server, travel_server(path)):
        async with Client(again) as client:
            assert "travel://bookings/BK-2024-0001" in [
                resource.uri for resource in await client.list_resources()
            ]
    path.unlink()
    async with Client(server) as client:
        assert "travel://bookings/BK-2024-0001" not in [
            resource.uri for resource in await client.list_resources()
        ]


# -- files in trouble ------------------------------------------------------------------------------


def wreck(path: Path, kind: str) -> None:
    """Put something in the place of the database that is none of ours."""
    path.unlink()
    match kind:
        case "no database":
            path.write_bytes(b"holiday pictures" * 400)
        case "a folder":
            path.mkdir()
        case "another program's":
            with closing(sqlite3.connect(path)) as db:
                db.execute("CREATE TABLE diary (day TEXT)")
        case "a newer version's":
            TravelDatabase(path).prepare()
            with closing(sqlite3.connect(path)) as db:
                db.execute("PRAGMA user_version = 9")


@pytest.mark.parametrize(
    "kind, words",
    [
        ("no database", "cannot be opened: it is damaged, or not a SQLite database"),
        ("a folder", "cannot be opened"),
        ("another program's", "is the database of another program"),
        (
            "a newer version's",
            "a newer version of Interlock wrote it (version 9 of its tables; "
            "this one knows up to 1)",
        ),
    ],
)
async def test_a_file_that_is_no_travel_database(
    server: Server, path: Path, kind: str, words: str
) -> None:
    """The server starts, every call says what is wrong with which file, and the file stays as it
    was (`TOL-15`).
    """
    wreck(path, kind)
    before = path.read_bytes() if path.is_file() else None
    async with Client(server, answers=person()) as client:
        for tool, arguments in {**READS, **CHANGES}.items():
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            assert words in result.text
            assert str(path) in result.text
        with pytest.raises(McpError, match="travel.sqlite"):
            await client.read_resource("travel://bookings")
        with pytest.raises(McpError, match="travel.sqlite"):
            await client.get_prompt("plan-vacation", {"destination": "Barcelona"})
    assert (path.read_bytes() if path.is_file() else None) == before


async def test_a_place_where_no_file_can_be(tmp_path: Path) -> None:
    """A file that cannot be made is named; once it can, the server that runs already makes it."""
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, not a folder", encoding="utf-8")
    async with Client(travel_server(blocked / "travel.sqlite")) as client:
        result = await client.call_tool("list_bookings")
        assert result.is_error
        assert "cannot be opened" in result.text
        blocked.unlink()
        assert (await client.call_tool("list_bookings")).value() == {"count": 0, "bookings": []}


async def test_a_file_that_cannot_be_written(server: Server, path: Path) -> None:
    """It can be read; a booking fails in words, after the questions, and nothing is booked."""
    async with Client(server, answers=person()) as client:
        await client.call_tool("book_flight", {"flight": OUT})
        with path.open("r+b") as file:
            file.seek(18)
            file.write(
                b"\3\1"
            )  # a format that is newer for writing than for reading: whoever opens it may only read
        assert (await client.call_tool("search_flights", WAY)).value()["count"] == 47
        result = await client.call_tool("book_trip", TRIP)
        assert result.is_error
        assert "cannot be written: it is read-only" in result.text
        assert (await client.call_tool("list_bookings")).value()["count"] == 1


async def test_a_file_that_another_process_holds(
    server: Server, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits in vain for another's transaction hears so; afterwards all goes on."""
    monkeypatch.setattr(records_file, "PATIENCE", 0.05)
    async with Client(server, answers=person()) as client:
        await client.call_tool("list_bookings")
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            result = await client.call_tool("book_flight", {"flight": OUT})
            assert result.is_error
            assert "database is locked" in result.text
            db.execute("ROLLBACK")
        assert (await client.call_tool("book_flight", {"flight": OUT})).value()["booking"][
            "id"
        ] == "BK-2024-0001"


async def test_a_file_that_goes_away(client: Client, path: Path) -> None:
    """A server whose file is deleted makes it anew, with its data."""
    await client.call_tool("book_flight", {"flight": OUT})
    path.unlink()
    assert (await client.call_tool("list_bookings")).value()["count"] == 0
    assert (await client.call_tool("search_flights", WAY)).value()["count"] == 47


def test_newer_data_keeps_the_bookings(path: Path) -> None:
    """A file with another data set gets the one of this server, and keeps what was booked."""
    book(TravelDatabase(path), "a reference", 2024, booking())
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE facts SET value = 'an older one'")
        db.execute("DELETE FROM timetable")
    again = TravelDatabase(path)
    assert len(bookings(again)) == 1
    assert again.rows("SELECT count(*) FROM timetable") != [(0,)]


def test_one_reference_one_booking(path: Path) -> None:
    """The same reference is the same booking, by whichever connection it comes; cancelling happens
    once.
    """
    one = TravelDatabase(path)
    other = TravelDatabase(path)
    assert book(one, "r", 2024, booking()) == book(other, "r", 2024, booking()) == "BK-2024-0001"
    assert book(other, "s", 2024, booking()) == "BK-2024-0002"
    assert (
        cancel(one, "BK-2024-0001"),
        cancel(other, "BK-2024-0001"),
        cancel(one, "BK-1999-0001"),
    ) == (True, False, False)


def test_what_reads_cannot_write(path: Path) -> None:
    """A query that would change something is refused by SQLite itself."""
    with pytest.raises(Exception, match="attempt to write a readonly database"):
        TravelDatabase(path).rows("DELETE FROM bookings RETURNING id")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such modes")
def test_the_file_is_its_owners(path: Path) -> None:
    """Nobody else may read who travels where."""
    TravelDatabase(path).prepare()
    assert path.stat().st_mode & 0o777 == 0o600


def booking() -> Booking:
    """A booking of no interest."""
    return Booking(id="", status="booked", kind="hotel", made="", travelers=1, total=1)
