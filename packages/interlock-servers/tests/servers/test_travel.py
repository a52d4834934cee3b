"""The travel server: flights, hotels, notes, prompt and completions, as the guide's holiday in
Barcelona has them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Answers, Client, McpError, Server, types
from interlock.testing import ScriptedAnswers
from interlock_servers.travel import travel_server
from interlock_servers.travel.airports import CityIndex, TravelCity
from interlock_servers.travel.database import VARIABLE, named_path
from interlock_servers.travel.flights import SYSTEM, Flight, clock, picked
from interlock_servers.travel.prices import dollars, fare
from scripts import travel_data
from tests.servers.calls import done, words
from tests.servers.travel_fixtures import BACK, HOTEL, OUT, STAY, WAY, stock

FLIGHT_SEARCH = "travel://flights/{origin}/{destination}"
ACTIVITIES = "travel://activities/{city}/{category}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    """A server over a file of its own, which nothing here changes."""
    return travel_server(stock(tmp_path_factory.mktemp("travel") / "travel.sqlite"))


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    """A client that checks results against the output schemas, and can be asked nothing."""
    async with Client(server) as opened:
        await opened.list_tools()
        yield opened


async def search(client: Client, **arguments: Any) -> dict[str, Any]:
    """What search_flights finds on the way of the guide, or another."""
    found = (await client.call_tool("search_flights", {**WAY, **arguments})).value()
    assert isinstance(found, dict)
    return found


# -- what it offers --------------------------------------------------------------------------------


async def test_nobody_who_uses_it_is_broken(server: Server, interlock_catalogue: Any) -> None:
    """Tools, resources, templates and the prompt are those of the snapshot (`TOL-02`, `RES-02`,
    `PRM-02`).
    """
    drift = await interlock_catalogue(server, "travel_catalogue.json")
    assert not drift.breaking


async def test_one_tool_takes_something_away(client: Client) -> None:
    """And says so; all others add, or read (`TOL-04`)."""
    tools = {tool.name: tool for tool in await client.list_tools()}
    assert set(tools) == {
        "search_flights",
        "find_best_flight",
        "search_hotels",
        "book_trip",
        "book_flight",
        "book_hotel",
        "cancel_booking",
        "list_bookings",
    }
    destructive = [
        name
        for name, tool in tools.items()
        if tool.annotations and tool.annotations.destructive_hint
    ]
    assert destructive == ["cancel_booking"]


async def test_the_file_of_data_is_what_the_script_writes() -> None:
    """The committed file is the script's output to the letter, and of modest size."""
    committed = travel_data.TARGET.read_text(encoding="utf-8")
    assert travel_data.whole() == committed
    assert len(committed.encode()) < 400_000


# -- flights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ["NYC", "New York", "new york", "New York (NYC)", " nyc "])
@pytest.mark.parametrize(
    "destination", ["Barcelona", "BCN", "Barcelona (BCN)", "bcn", "BCN - Barcelona El Prat"]
)
async def test_47_flights_to_barcelona(client: Client, origin: str, destination: str) -> None:
    """The search of the guide finds its 47 flights, however the cities are written."""
    found = await search(client, origin=origin, destination=destination)
    assert (found["origin"], found["destination"], found["count"]) == (
        "New York (NYC)",
        "Barcelona (BCN)",
        47,
    )
    assert len({flight["id"] for flight in found["flights"]}) == 47


async def test_words_say_it_too(client: Client) -> None:
    """Beside the data stand lines to be read, with the ids that other tools take, and not the data
    once more (`TOL-09`).
    """
    found = await done(client, "search_flights", **WAY)
    lines = (await words(client, "search_flights", **WAY)).splitlines()
    assert lines[0] == (
        "47 flights from New York (NYC) to Barcelona (BCN) on 2024-06-15, priced in US "
        "dollars for one seat"
    )
    assert [line.split(" | ")[0] for line in lines[1:]] == [
        f"- {flight['id']}" for flight in found["flights"]
    ]
    hotels = {"city": "Barcelona", **STAY}
    ids = [hotel["id"] for hotel in (await done(client, "search_hotels", **hotels))["hotels"]]
    first, *others = (await words(client, "search_hotels", **hotels)).splitlines()
    assert first == (
        f"{len(ids)} hotels in Barcelona (BCN) for 2, 2024-06-15 to 2024-06-22, priced in US "
        "dollars"
    )
    assert [line.split(" | ")[0] for line in others] == [f"- {one}" for one in ids]
    assert (await words(client, "search_flights", **WAY, max_price=1)).startswith("No flights from")
    assert await words(client, "list_bookings") == "There are no bookings."


async def test_choosing_is_a_trade_off(client: Client) -> None:
    """The cheapest flights leave at night; those in the morning with at most one stop cost more,
    the guide's one the least of them.
    """
    flights = (await search(client))["flights"]
    prices = [flight["price"] for flight in flights]
    assert prices == sorted(prices)
    assert all(flight["departs"] >= "18:00" for flight in flights[:5])
    morning = [
        flight
        for flight in flights
        if "05:00" <= flight["departs"] < "12:00" and flight["stops"] <= 1
    ]
    assert len(morning) >= 8
    assert morning[0]["id"] == OUT
    assert (morning[0]["price"], morning[0]["stops"]) == (412, 0)
    assert {flight["stops"] for flight in flights} == {0, 1, 2}
    assert len({flight["airline"] for flight in flights}) > 5
    assert all(
        flight["arrives_next_day"] == (flight["arrives"] < flight["departs"]) for flight in flights
    )


async def test_the_way_back(client: Client) -> None:
    """There are flights home a week later, the guide's among them, and as many as the timetable has
    for a Saturday.
    """
    found = await search(client, origin="Barcelona", destination="NYC", date="2024-06-22")
    assert found["count"] == 39
    assert BACK in [flight["id"] for flight in found["flights"]]


async def test_one_airport_of_a_city(client: Client) -> None:
    """An airport is not its whole city: what leaves from there is a part of what leaves from the
    city.
    """
    jfk = await search(client, origin="JFK")
    assert jfk == await search(client, origin="JFK - John F. Kennedy International")
    assert {flight["origin"] for flight in jfk["flights"]} == {"JFK"}
    newark = await search(client, origin="EWR")
    assert jfk["count"] + newark["count"] == 47
    assert min(jfk["count"], newark["count"]) > 5


async def test_every_city_can_be_reached_from_every_other(client: Client) -> None:
    """On a Saturday and a Wednesday, with prices that are whole dollars and times that are
    times.
    """
    cities = [city.name for city in travel_data.CITIES]
    assert {"Barbados", "Paris", "London", "Tokyo", "Boston", "San Francisco", "Madrid"} <= set(
        cities
    )
    for day in ("2024-06-15", "2025-02-12"):
        for city in cities[1:]:
            for way in ({"destination": city}, {"origin": city, "destination": "NYC"}):
                found = await search(client, **way, date=day)
                assert found["count"] > 0, way
                for flight in found["flights"]:
                    assert 20 < flight["price"] < 3000
                    assert 30 < flight["duration_minutes"] < 40 * 60
                    assert len(flight["via"]) == flight["stops"]


@pytest.mark.parametrize("limit, value", [("max_price", 400), ("max_stops", 0), ("max_stops", 1)])
async def test_limits_of_the_search(client: Client, limit: str, value: int) -> None:
    """Only what is within the limit is found, and all of that."""
    every = (await search(client))["flights"]
    member = {"max_price": "price", "max_stops": "stops"}[limit]
    found = (await search(client, **{limit: value}))["flights"]
    assert found == [flight for flight in every if flight[member] <= value]
    assert 0 < len(found) < 47


@pytest.mark.parametrize(
    "sort, member",
    [
        ("price", "price"),
        ("departure", "departs"),
        ("duration", "duration_minutes"),
        ("stops", "stops"),
    ],
)
async def test_orders_of_the_search(client: Client, sort: str, member: str) -> None:
    """Each order begins with the least."""
    values = [flight[member] for flight in (await search(client, sort=sort))["flights"]]
    assert values == sorted(values)


@pytest.mark.parametrize(
    "tool, arguments, words",
    [
        ("search_flights", {**WAY, "destination": "Barselona"}, "Did you mean Barcelona (BCN)?"),
        (
            "search_flights",
            {**WAY, "origin": "Park City"},
            "There is New York (NYC), Barcelona (BCN)",
        ),
        ("search_flights", {**WAY, "destination": "JFK"}, "two different cities"),
        ("search_flights", {**WAY, "date": "2023-12-31"}, "from 2024-01-01 to 2030-12-31"),
        ("search_flights", {**WAY, "date": "June"}, "date"),
        ("search_flights", {**WAY, "max_price": 0}, "max_price"),
        ("search_flights", {**WAY, "sort": "luck"}, "sort"),
        ("search_hotels", {"city": "Madird", **STAY}, "Did you mean Madrid (MAD)?"),
        (
            "search_hotels",
            {"city": "BCN", "check_in": "2024-06-22", "check_out": "2024-06-15"},
            "has -7 nights",
        ),
        (
            "search_hotels",
            {"city": "BCN", "check_in": "2024-06-22", "check_out": "2024-06-22"},
            "has 0 nights",
        ),
        ("search_hotels", {"city": "BCN", **STAY, "guests": 0}, "guests"),
    ],
)
async def test_what_cannot_be_searched(
    client: Client, tool: str, arguments: dict[str, Any], words: str
) -> None:
    """Bad input is told to the model in words that help (`TOL-15`, `TOL-16`)."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert words in result.text


# -- the best flight -------------------------------------------------------------------------------


async def test_the_best_flight(interlock_client: Any, interlock_way: Any, server: Server) -> None:
    """The model is asked as in the guide, sees every flight in a line, and what it names is what is
    recommended (`SAM-05`, `SAM-08`).
    """
    answer = (
        f"1. {OUT}: leaves in the morning, nonstop\n2. NS102-2024-06-15: cheaper, later\n3. "
        "AX107-2024-06-15: also nonstop"
    )
    answers = ScriptedAnswers(sample=[answer])
    async with interlock_client(server, answers=answers) as client:
        best = (await client.call_tool("find_best_flight", WAY)).value()
        offered = {flight["id"]: flight for flight in (await search(client))["flights"]}
    assert [(pick["rank"], pick["flight"]["id"], pick["reason"]) for pick in best["picks"]] == [
        (1, OUT, "leaves in the morning, nonstop"),
        (2, "NS102-2024-06-15", "cheaper, later"),
        (3, "AX107-2024-06-15", "also nonstop"),
    ]
    assert all(pick["flight"] == offered[pick["flight"]["id"]] for pick in best["picks"])
    assert (best["considered"], best["preferences"]) == (47, "morning departure, at most one stop")
    answers.check()
    params = answers.asked[0].params
    assert isinstance(params, types.CreateMessageRequestParams)
    assert (params.max_tokens, params.system_prompt) == (1500, SYSTEM)
    wanted = params.model_preferences
    assert wanted is not None
    assert (wanted.cost_priority, wanted.speed_priority, wanted.intelligence_priority) == (
        0.3,
        0.2,
        0.9,
    )
    assert [hint.name for hint in wanted.hints or ()] == ["claude-sonnet-4-20250514"]
    (message,) = params.messages
    assert isinstance(message.content, types.TextContent)
    lines = [line for line in message.content.text.splitlines() if line.startswith("- ")]
    assert len(lines) == 47
    assert f"- {OUT} | Catalan Wings | 08:15 -> 22:15 | 0 stops | 8h 00m | $412" in lines
    assert sum("+1 |" in line for line in lines) == sum(
        flight["arrives_next_day"] for flight in offered.values()
    )
    assert (
        "User preferences: morning departure, at most one stop" in message.content.text.splitlines()
    )


@pytest.mark.parametrize(
    "text, picks",
    [
        (f"1. {OUT}: good", [(OUT, "good")]),
        (
            f"Here they are:\n\n1) **{OUT}**: *good*\n2) `{BACK}` - no: stops",
            [(OUT, "good*"), (BACK, "no: stops")],
        ),
        (f"1. **{OUT}:** good", [(OUT, "good")]),
        (f"2. {BACK}: b\n1. {OUT}: a", [(BACK, "b"), (OUT, "a")]),
        (f"1. {OUT}: a\n2. {OUT}: again\n3. {BACK}: b", [(OUT, "a"), (BACK, "b")]),
        (f"1. XX1-2024-06-15: not there\n2. {BACK}: b", [(BACK, "b")]),
        (f"{OUT} is good", []),
        (f"1. {OUT}:", []),
        (f"1. {OUT} good", []),
        ("I cannot help with that.", []),
        ("", []),
    ],
)
def test_answers_of_models(text: str, picks: list[tuple[str, str]]) -> None:
    """Lines with a number, a flight that there is and a reason count, in their order; all else does
    not.
    """
    offered = {name: flight(name) for name in (OUT, BACK)}
    found = picked(text, offered)
    assert [(pick.flight.id, pick.reason) for pick in found] == picks
    assert [pick.rank for pick in found] == list(range(1, len(picks) + 1))


def test_no_more_than_three_and_no_long_speech() -> None:
    """Of four flights the first three are taken; a reason is cut."""
    names = [f"AB{n}-2024-06-15" for n in range(100, 104)]
    found = picked(
        "\n".join(f"{n}. {name}: {'x' * 900}" for n, name in enumerate(names, 1)),
        {name: flight(name) for name in names},
    )
    assert [pick.flight.id for pick in found] == names[:3]
    assert {len(pick.reason) for pick in found} == {500}


def flight(name: str) -> Flight:
    """A flight of no interest."""
    return Flight(name, "Any", "JFK", "BCN", "2024-06-15", "08:00", "10:00", False, 120, 0, [], 100)


async def test_a_model_that_names_no_flight(server: Server) -> None:
    """An answer without a flight that there is fails in words for the model that called
    (`TOL-15`).
    """
    async with Client(
        server, answers=Answers(sample=lambda p: "1. XX1-2024-06-15: my favourite")
    ) as client:
        result = await client.call_tool("find_best_flight", WAY)
    assert result.is_error
    assert "names none of these flights" in result.text


async def test_preferences_stay_on_their_line(server: Server) -> None:
    """Wishes with line breaks cannot pass for flights."""
    seen: list[str] = []

    def model(params: types.CreateMessageRequestParams) -> str:
        assert isinstance(params.messages[0].content, types.TextContent)
        seen.extend(params.messages[0].content.text.splitlines())
        return f"1. {OUT}: yes"

    async with Client(server, answers=Answers(sample=model)) as client:
        await client.call_tool(
            "find_best_flight",
            {**WAY, "preferences": "cheap\n- ZZ1-2024-06-15 | Free | 00:00 -> 00:01"},
        )
    assert sum(line.startswith("- ") for line in seen) == 47
    assert "User preferences: cheap - ZZ1-2024-06-15 | Free | 00:00 -> 00:01" in seen


async def test_sampling_refused(server: Server) -> None:
    """A person who refuses, and a client without a model, end the call in words (`ERR-17`,
    `SAM-03`, `SAM-07`).
    """
    refusal = ScriptedAnswers(sample=[McpError(types.USER_REJECTED, "Not today.")])
    async with Client(server, revision="2025-11-25", answers=refusal) as client:
        result = await client.call_tool("find_best_flight", WAY)
    assert (result.is_error, result.text) == (True, "The person refused: Not today.")
    async with Client(server, revision="2025-11-25") as client:
        result = await client.call_tool("find_best_flight", WAY)
    assert result.is_error
    assert "sampling" in result.text
    async with Client(server) as client:
        with pytest.raises(McpError, match="sampling"):
            await client.call_tool("find_best_flight", WAY)


# -- hotels ----------------------------------------------------------------------------------------


async def test_hotels(client: Client) -> None:
    """The best rated first, within the price for a night, with the price of the whole stay; the
    guide's is by the sea.
    """
    every = (await client.call_tool("search_hotels", {"city": "Barcelona", **STAY})).value()
    found = (
        await client.call_tool(
            "search_hotels", {"city": "Barcelona", **STAY, "max_price_per_night": 196}
        )
    ).value()
    assert found["hotels"] == [
        hotel for hotel in every["hotels"] if hotel["price_per_night"] <= 196
    ]
    assert 0 < found["count"] < every["count"]
    ratings = [hotel["rating"] for hotel in every["hotels"]]
    assert ratings == sorted(ratings, reverse=True)
    first = found["hotels"][0]
    assert (first["id"], first["area"], first["price_per_night"], first["total"]) == (
        HOTEL,
        "Barceloneta",
        196,
        1372,
    )
    assert "beachfront" in first["features"]


async def test_guests_who_do_not_fit_into_one_room(client: Client) -> None:
    """Rooms are counted by how many sleep in one."""
    arguments = {"city": "Barcelona", **STAY, "guests": 5}
    for hotel in (await client.call_tool("search_hotels", arguments)).value()["hotels"]:
        assert (hotel["rooms"] - 1) * hotel["sleeps"] < 5 <= hotel["rooms"] * hotel["sleeps"]
        assert hotel["total"] == 7 * hotel["rooms"] * hotel["price_per_night"]


# -- resources -------------------------------------------------------------------------------------


async def read(client: Client, uri: str) -> str:
    """The text behind a URI."""
    (found,) = (await client.read_resource(uri)).contents
    assert found.text is not None
    return found.text


async def test_what_the_guide_attaches(client: Client) -> None:
    """The preferences, the past trip and the history are in the list, and say what a plan needs
    (`RES-02`, `RES-06`).
    """
    listed = {resource.uri: resource for resource in await client.list_resources()}
    assert listed["travel://preferences/europe"].mime_type == "text/markdown"
    assert "Home airport: New York (NYC)" in await read(client, "travel://preferences/europe")
    assert "tapas in El Born" in await read(client, "travel://past-trips/Spain-2023")
    assert (
        json.loads(await read(client, "trips://history/barcelona-2023"))["hotel"] == "Casa Passeig"
    )
    for uri in (
        "travel://preferences/caribbean",
        "travel://past-trips/Japan-2022",
        "trips://history/tokyo-2022",
    ):
        assert await read(client, uri)


async def test_the_template_of_the_guide(client: Client) -> None:
    """The flight search is described as in the guide, and reads what its completions give
    (`RES-12`, `CMP-03`).
    """
    templates = {
        template.uri_template: template for template in await client.list_resource_templates()
    }
    search = templates[FLIGHT_SEARCH]
    assert (search.name, search.title, search.mime_type) == (
        "flight-search",
        "Flight Search",
        "application/json",
    )
    assert search.description == "Search available flights between cities"
    written = json.loads(await read(client, "travel://flights/NYC/Barcelona%20%28BCN%29"))
    assert written == json.loads(await read(client, "travel://flights/new-york/bcn"))
    assert (written["origin"], written["destination"], written["count"]) == (
        "New York (NYC)",
        "Barcelona (BCN)",
        53,
    )
    assert sum("Sat" in flight["days"] for flight in written["flights"]) == 47


async def test_activities(client: Client) -> None:
    """Museums of Barcelona as in the guide; for every city that is suggested there is every
    category that is suggested.
    """
    museums = json.loads(await read(client, "travel://activities/barcelona/museums"))
    assert "Museu Picasso" in [museum["name"] for museum in museums]
    for city in (await client.complete(ACTIVITIES, "city")).values:
        categories = (
            await client.complete(ACTIVITIES, "category", arguments={"city": city})
        ).values
        assert {"museums", "architecture", "food"} & set(categories)
        for category in categories:
            assert (
                len(json.loads(await read(client, f"travel://activities/{city}/{category}"))) >= 2
            )
    assert (await client.complete(ACTIVITIES, "city", "Bar")).values == ["barcelona", "barbados"]
    assert (
        await client.complete(ACTIVITIES, "category", "m", arguments={"city": "barcelona"})
    ).values == ["museums"]


async def test_departures_of_an_airport(client: Client) -> None:
    """What the completion gives can be read, and lists cities that flights go to."""
    found = json.loads(
        await read(client, "flights://search/JFK%20-%20John%20F.%20Kennedy%20International")
    )
    assert found["airports"] == {"JFK": "John F. Kennedy International"}
    assert "Barcelona (BCN)" in [to["city"] for to in found["destinations"]]


@pytest.mark.parametrize(
    "uri",
    [
        "travel://preferences/moon",
        "travel://past-trips/Spain-1999",
        "trips://history/atlantis",
        "travel://activities/atlantis/museums",
        "travel://activities/barcelona/casinos",
        "travel://flights/NYC/JFK",
        "travel://flights/NYC/Atlantis",
        "flights://search/XXX",
        "travel://bookings/BK-1999-0001",
    ],
)
async def test_what_is_not_there(client: Client, uri: str) -> None:
    """A URI that names nothing is not found (`RES-08`)."""
    with pytest.raises(McpError, match="not found"):
        await client.read_resource(uri)


# -- completion and prompt -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ref, argument, value, known, wanted",
    [
        (FLIGHT_SEARCH, "origin", "NYC", {}, ["New York (NYC)"]),
        (
            FLIGHT_SEARCH,
            "destination",
            "Bar",
            {"origin": "NYC"},
            ["Barcelona (BCN)", "Barbados (BGI)"],
        ),
        (FLIGHT_SEARCH, "destination", "Bar", {"origin": "Barcelona (BCN)"}, ["Barbados (BGI)"]),
        (FLIGHT_SEARCH, "destination", "lhr", {}, ["London (LON)"]),
        (
            "flights://search/{airport}",
            "airport",
            "JFK",
            {},
            ["JFK - John F. Kennedy International"],
        ),
        (
            "flights://search/{airport}",
            "airport",
            "kenn",
            {},
            ["JFK - John F. Kennedy International"],
        ),
        (
            "flights://search/{airport}",
            "airport",
            "paris",
            {},
            ["CDG - Charles de Gaulle", "ORY - Orly"],
        ),
        ("travel://preferences/{region}", "region", "eu", {}, ["europe"]),
        ("travel://past-trips/{trip}", "trip", "", {}, ["Spain-2023", "Japan-2022"]),
        ("trips://history/{trip}", "trip", "b", {}, ["barcelona-2023"]),
        ("travel://bookings/{booking}", "booking", "BK", {}, []),
        ("plan-vacation", "destination", "Bar", {}, ["Barcelona", "Barbados"]),
        ("plan-vacation", "interests", "beaches,ar", {}, ["beaches, architecture"]),
    ],
)
async def test_completions(
    client: Client, ref: str, argument: str, value: str, known: dict[str, str], wanted: list[str]
) -> None:
    """Known values are suggested, those of the guide in its words (`CMP-02`, `CMP-03`)."""
    assert (await client.complete(ref, argument, value, arguments=known)).values == wanted


async def planned(client: Client, **arguments: Any) -> str:
    """The text of the prompt."""
    (message,) = (await client.get_prompt("plan-vacation", arguments)).messages
    assert isinstance(message.content, types.TextContent)
    return message.content.text


async def test_the_prompt_with_dates(client: Client) -> None:
    """The first call of the guide: every argument in a line of its own, and then the whole way to
    the mail (`PRM-02`, `PRM-05`).
    """
    text = await planned(
        client,
        destination="Barcelona",
        departure_date="2024-06-15",
        return_date="2024-06-22",
        budget=3000,
        travelers=2,
    )
    assert text.split("\n\n")[1].splitlines() == [
        "Destination: Barcelona",
        "Departure date: 2024-06-15",
        "Return date: 2024-06-22",
        "Budget: 3000",
        "Travelers: 2",
    ]
    steps = [
        "resources",
        "weather",
        "search_flights",
        "find_best_flight",
        "search_hotels",
        "book_trip",
        "calendar",
        "mail",
    ]
    places = [text.index(step) for step in steps]
    assert places == sorted(places)


@pytest.mark.parametrize(
    "interests",
    [
        ["beaches", "architecture", "food"],
        " beaches, architecture ,food,",
        '["beaches","architecture","food"]',
    ],
)
async def test_the_prompt_with_interests(client: Client, interests: Any) -> None:
    """The second call of the guide: Barcelona, 7, 3000 and a list, which may be JSON or words with
    commas.
    """
    text = await planned(
        client, destination="barcelona (BCN)", duration=7, budget=3000, interests=interests
    )
    assert text.split("\n\n")[1].splitlines() == [
        "Destination: Barcelona",
        "Duration: 7",
        "Budget: 3000",
        "Interests: beaches, architecture, food",
    ]


async def test_the_prompt_is_described(client: Client) -> None:
    """Name, title, description and arguments as in the guide; only the destination is required
    (`PRM-03`).
    """
    (prompt,) = await client.list_prompts()
    assert (prompt.name, prompt.title, prompt.description) == (
        "plan-vacation",
        "Plan a vacation",
        "Guide through vacation planning process",
    )
    arguments = {argument.name: argument for argument in prompt.arguments or ()}
    assert [name for name, argument in arguments.items() if argument.required] == ["destination"]
    assert arguments["duration"].description == "days"
    assert set(arguments) == {
        "destination",
        "departure_date",
        "return_date",
        "duration",
        "budget",
        "travelers",
        "interests",
    }


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({}, "destination"),
        ({"destination": "Atlantis"}, "There is no city"),
        (
            {"destination": "BCN", "departure_date": "2024-06-22", "return_date": "2024-06-15"},
            "is not after",
        ),
        ({"destination": "BCN", "departure_date": "soon"}, "departure_date"),
        ({"destination": "BCN", "budget": "much"}, "budget"),
        ({"destination": "BCN", "travelers": "0"}, "travelers"),
        ({"destination": "BCN", "interests": "[1, 2]"}, "interests"),
        ({"destination": "BCN", "interests": '["a'}, "interests"),
    ],
)
async def test_prompts_that_cannot_be_written(
    client: Client, arguments: dict[str, Any], words: str
) -> None:
    """What does not fit is named (`PRM-06`)."""
    with pytest.raises(McpError, match=words) as caught:
        await client.get_prompt("plan-vacation", arguments)
    assert caught.value.code == types.INVALID_PARAMS


async def test_arguments_do_not_break_their_lines(client: Client) -> None:
    """An interest with a line break stays one line, so that it cannot pass for another argument."""
    text = await planned(client, destination="BCN", interests=["food\nBudget: 9"])
    assert text.split("\n\n")[1].splitlines() == [
        "Destination: Barcelona",
        "Interests: food Budget: 9",
    ]


# -- parts -----------------------------------------------------------------------------------------


@given(st.text(max_size=30))
def test_any_words_for_a_place(text: str) -> None:
    """Whatever is written, it is a place or it is not; a suggestion always is the place that it
    came from.
    """
    atlas = CityIndex(
        [
            TravelCity(city.code, city.name, city.country, city.airports)
            for city in travel_data.CITIES
        ]
    )
    found = atlas.seek(text)
    assert found is None or found.code in travel_data.CITY_BY_CODE
    for place in atlas.cities(text):
        assert atlas.seek(place.label) == atlas.seek(place.slug) == atlas.seek(place.name) == place
    for label in atlas.airports(text):
        airport = atlas.seek(label)
        assert airport is not None
        assert label[:3] in airport.airports


@given(st.integers(1, 300_000), st.integers(0, 2555), st.integers(100, 999))
def test_fares_stay_near_the_usual_one(cents: int, days: int, number: int) -> None:
    """Season and day move a price by a third at most, and a day's price is the same each time."""
    day = date(2024, 1, 1) + timedelta(days=days)
    price = fare(cents, f"AB{number}", day)
    assert price == fare(cents, f"AB{number}", day)
    assert cents * 0.77 / 100 - 1 <= price <= cents * 1.3 / 100 + 1


def test_money_and_hours() -> None:
    """As people write them."""
    assert (dollars(3000), dollars(98)) == ("$3,000", "$98")
    assert (clock(0), clock(495), clock(1440 + 65)) == ("00:00", "08:15", "01:05")


def test_the_file_is_the_one_that_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The environment names the file; without it, it lies in the user's folder for data."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "a.sqlite"))
    assert named_path() == tmp_path / "a.sqlite"
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert named_path() == tmp_path / "interlock" / "travel.sqlite"
