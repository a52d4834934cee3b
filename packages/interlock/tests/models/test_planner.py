"""The rule-based model: each step of its plan, all that can go wrong with one, what it understands,
and that it says what it is.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock_apps.demo.planner import Planner
from interlock_apps.demo.planner.model import HELP
from interlock_apps.demo.planner.steps import MISSING
from tests.models.asking import said
from tests.models.holidays import (
    BACK,
    BOOKING,
    CHEAP_OUT,
    OUT,
    PREFERENCES,
    PROMPT,
    World,
    asked,
    names,
    planned,
)

LOOK = ["check_weather", "search_flights", "search_flights", "search_hotels"]
CHOOSE = ["find_best_flight", "find_best_flight"]
WHOLE = [*LOOK, *CHOOSE, "book_trip", "create_event", "send_mail"]
FLIGHTS = """Analyze these 4 flights from New York (NYC) to Barcelona (BCN) on 2024-06-15 and \
recommend the best choice:
- AA1-2024-06-15 | Early Air | 05:30 -> 19:00 | 2 stops | 8h 00m | $300
- BB2-2024-06-15 | Noon Air | 12:30 -> 22:00 | 0 stops | 7h 30m | $310
- CC3-2024-06-15 | Night Air | 23:00 -> 12:00+1 | 1 stop | 9h 00m | $290
- DD4-2024-06-15 | Dear Air | 09:00 -> 19:00 | 0 stops | 8h 00m | $1,400

User preferences: """


async def test_the_whole_plan() -> None:
    """Each step with what it is given, in order; the booking's own data goes into calendar, mail
    and summary.
    """
    world = World()
    texts, _ = await planned(world, said("user", PREFERENCES), said("user", PROMPT))
    assert names(world) == WHOLE
    ways = [
        (given["origin"], given["destination"], given["date"])
        for given in world.given("search_flights")
    ]
    assert ways == [
        ("Boston (BOS)", "Barcelona", "2024-06-15"),
        ("Barcelona", "Boston (BOS)", "2024-06-22"),
    ]
    assert [given["preferences"] for given in world.given("find_best_flight")] == [
        "direct, in the morning"
    ] * 2
    assert world.given("search_hotels") == [
        {"city": "Barcelona", "check_in": "2024-06-15", "check_out": "2024-06-22", "guests": 2}
    ]
    trip = {
        "outbound_flight": OUT["id"],
        "return_flight": BACK["id"],
        "hotel": "mar",
        "check_in": "2024-06-15",
        "check_out": "2024-06-22",
        "travelers": 2,
    }
    assert world.given("book_trip") == [trip]
    (event,), (mail,) = world.given("create_event"), world.given("send_mail")
    assert (event["title"], event["start_date"], event["end_date"]) == (
        "Barcelona Trip",
        "2024-06-15",
        "2024-06-22",
    )
    assert (mail["to"], mail["subject"]) == (
        "ada@example.com",
        "Barcelona Trip: booked (BK-2024-0001)",
    )
    assert "Total: $3,150" in mail["body"]
    for words in (
        "**Barcelona** is booked",
        "BK-2024-0001",
        "$3,150 with insurance",
        "17 to 26 °C",
        "sea view",
        "in your calendar",
        "confirmation was sent",
    ):
        assert words in texts[-1]


@pytest.mark.parametrize(
    "changed, called, words",
    [
        (
            {"book_trip": {"booked": False, "message": "The user declined: nothing was booked."}},
            [*LOOK, *CHOOSE, "book_trip"],
            "Nothing was booked. The user declined",
        ),
        (
            {"book_trip": "The user denied this call."},
            [*LOOK, *CHOOSE, "book_trip"],
            "Nothing was booked. The user denied this call.",
        ),
        (
            {"search_flights": "There is no place 'Barcelona'."},
            LOOK,
            "Nothing was booked. There is no place 'Barcelona'.",
        ),
        (
            {"search_flights": {"flights": []}},
            LOOK,
            "I found no flight from NYC to Barcelona on 2024-06-15.",
        ),
        (
            {"search_hotels": {"hotels": []}},
            [*LOOK, *CHOOSE],
            "I found no hotel in Barcelona for 2024-06-15 to 2024-06-22.",
        ),
        (
            {"search_hotels": "The server is down."},
            [*LOOK, *CHOOSE],
            "Nothing was booked. The server is down.",
        ),
        ({"check_weather": "The server is down."}, WHOLE, "is booked"),
        (
            {"create_event": "No."},
            WHOLE,
            "could not be added to your calendar. The confirmation was sent.",
        ),
        (
            {"send_mail": "No."},
            WHOLE,
            "The trip is in your calendar. The confirmation could not be sent.",
        ),
        ({"send_mail": {"how": "local"}}, WHOLE, "on this machine; no mail server is configured"),
        (
            {"book_trip": {"booked": True, "booking": {**BOOKING, "contact": None}}},
            WHOLE[:-1],
            "could not be sent",
        ),
    ],
)
async def test_what_goes_wrong_is_said(
    changed: dict[str, Any], called: list[str], words: str
) -> None:
    """A failed tool, an empty search, a booking that is declined or denied: it ends, and says so;
    nothing is tried twice.
    """
    world = World(**changed)
    texts, _ = await planned(world, said("user", PROMPT))
    assert names(world) == called
    assert words in texts[-1]


async def test_without_a_model_s_choice_the_cheapest_is_taken() -> None:
    """Sampling that the person denied is no reason to stop."""
    world = World(find_best_flight="The person does not allow it.")
    texts, _ = await planned(world, said("user", PROMPT))
    assert names(world) == WHOLE
    assert world.given("book_trip")[0]["outbound_flight"] == CHEAP_OUT["id"]
    assert any(
        "No model chose among the flights, so I picked the cheapest." in text for text in texts
    )


@pytest.mark.parametrize(
    "without, called, words",
    [
        (["travel"], [], MISSING),
        (["weather"], WHOLE[1:], "is booked"),
        (
            ["calendar"],
            [name for name in WHOLE if name != "create_event"],
            "could not be added to your calendar. The confirmation was sent.",
        ),
        (["mail"], WHOLE[:-1], "in your calendar. The confirmation could not be sent."),
        (
            ["calendar", "mail"],
            WHOLE[:-2],
            "could not be added to your calendar. The confirmation could not be sent.",
        ),
        (["find_best_flight"], [*LOOK, *WHOLE[-3:]], "is booked"),
        (["book_trip"], [*LOOK, *CHOOSE], "Nothing was booked. I cannot book anything here."),
        (["search_hotels"], [*LOOK[:3], *CHOOSE], "I found no hotel"),
        (["search_flights"], ["check_weather", "search_hotels"], "I found no flight"),
        (["travel", "weather", "calendar", "mail"], [], MISSING),
    ],
)
async def test_what_is_not_there_is_left_out(
    without: list[str], called: list[str], words: str
) -> None:
    """It calls no tool that it does not have, and ends where it cannot go on."""
    world = World()
    texts, _ = await planned(world, said("user", PROMPT), without=without)
    assert names(world) == called
    assert words in texts[-1]


@pytest.mark.parametrize(
    "budget, attached, hotel, over",
    [
        ("3000", "", "mar", False),
        ("3000", PREFERENCES, "mar", False),
        ("100000", "", "palace", False),
        ("100000", PREFERENCES, "mar", False),
        ("2300", "", "inn", False),
        ("500", "", "inn", True),
    ],
)
async def test_the_hotel_by_budget_and_preferences(
    budget: str, attached: str, hotel: str, over: bool
) -> None:
    """The best rated that fits; where none fits, the cheapest, and it says that it is too dear."""
    world = World()
    texts, _ = await planned(
        world, said("user", *([attached] if attached else []), PROMPT.replace("3000", budget))
    )
    assert world.given("book_trip")[0]["hotel"] == hotel
    assert any("more than the budget of $" in text for text in texts) is over


@pytest.mark.parametrize(
    "text, place, days, budget, travelers",
    [
        (
            "Please plan a trip to Barcelona from 2024-06-15 to 2024-06-22, just me, no limit.",
            "Barcelona",
            ("2024-06-15", "2024-06-22"),
            False,
            1,
        ),
        (
            "2024-06-15 to 2024-06-22 in New York for two with any budget, please",
            "New York",
            ("2024-06-15", "2024-06-22"),
            False,
            2,
        ),
        (
            "Barcelona, 2024-06-15 to 2024-06-22, a budget of 500 for two.",
            "Barcelona",
            ("2024-06-15", "2024-06-22"),
            True,
            2,
        ),
        (
            "To Paris for 7 days, 2024-06-15 to 2024-06-22: I fly to Paris alone. No limit",
            "Paris",
            ("2024-06-15", "2024-06-22"),
            False,
            1,
        ),
        (
            "Destination: Rome\nDeparture date: 2024-06-15\nDuration: 7",
            "Rome",
            ("2024-06-15", "2024-06-22"),
            False,
            1,
        ),
    ],
)
async def test_a_request_in_plain_words(
    text: str, place: str, days: tuple[str, str], budget: bool, travelers: int
) -> None:
    """Place, days, people and budget are enough; dates of attachments are not the person's."""
    world = World()
    texts, _ = await planned(
        world, said("user", "Team days in Boston\n2024-06-11 to 2024-06-13", text)
    )
    (stay,) = world.given("search_hotels")
    assert (stay["city"], (stay["check_in"], stay["check_out"]), stay["guests"]) == (
        place,
        days,
        travelers,
    )
    assert any("more than the budget" in each for each in texts) is budget


@pytest.mark.parametrize(
    "text",
    [
        "Hello",
        "What is the weather in Paris?",
        "2024-06-15",
        "Write a poem.",
        "My budget of 3000 is small.",
    ],
)
async def test_what_it_does_not_understand(text: str) -> None:
    """It says that it is no language model, and what it can do; nothing is called."""
    world = World()
    assert (await planned(world, said("user", text)))[0] == [HELP]
    assert world.calls == []
    assert "not a language model" in HELP


@pytest.mark.parametrize(
    "days, words",
    [
        ("", "When do you leave?"),
        ("Departure date: 2024-06-15", "How long do you stay"),
        (
            "Departure date: 2024-06-15\nReturn date: 2024-06-15",
            "The return date must be after the departure date.",
        ),
        (
            "Departure date: 2024-06-31\nReturn date: 2024-07-03",
            "2024-06-31 is not a day of the calendar.",
        ),
        ("Duration: 7", "When do you leave?"),
    ],
)
async def test_days_that_are_missing_are_asked_for(days: str, words: str) -> None:
    """And who then says them gets the plan, for the same place."""
    world = World()
    before = said("user", f"Destination: Barcelona\n{days}\nTravelers: 2")
    texts, messages = await planned(world, before)
    (asked_for,) = texts
    assert words in asked_for
    assert "- Destination: Barcelona" in asked_for
    assert world.calls == []
    await planned(world, *messages, said("user", "2024-06-15 to 2024-06-22"))
    assert world.given("search_hotels") == [
        {"city": "Barcelona", "check_in": "2024-06-15", "check_out": "2024-06-22", "guests": 2}
    ]


async def test_several_plans_in_one_conversation() -> None:
    """A second holiday begins from its beginning; words of thanks begin none; other days after a
    refusal are planned anew.
    """
    world = World()
    texts, messages = await planned(world, said("user", PROMPT))
    texts, messages = await planned(
        world, *messages, said("user", "Thank you for two good flights!")
    )
    assert texts == [HELP]
    assert names(world) == WHOLE
    _, messages = await planned(
        world, *messages, said("user", PROMPT.replace("Barcelona", "Lisbon"))
    )
    assert names(world) == [*WHOLE, *WHOLE]
    assert world.given("search_hotels")[1]["city"] == "Lisbon"
    world = World(
        book_trip={"booked": False, "message": "The user declined: nothing was booked."},
        search_flights=lambda given: {"flights": [{**OUT, "date": given["date"]}]},
    )
    _, messages = await planned(world, said("user", PROMPT))
    await planned(
        world, *messages, said("user", "Rather 2024-07-01 to 2024-07-08, with a budget of 500.")
    )
    assert [given["check_in"] for given in world.given("book_trip")] == ["2024-06-15", "2024-07-01"]
    assert world.given("search_hotels")[1]["city"] == "Barcelona"


@pytest.mark.parametrize(
    "wishes, order",
    [
        ("morning departure, at most one stop", ["BB2", "CC3", "DD4"]),
        ("morning departure", ["BB2", "AA1", "CC3"]),
        ("at most one stop", ["BB2", "CC3", "DD4"]),
        ("non-stop", ["BB2", "DD4", "CC3"]),
        ("direct, morning", ["BB2", "DD4", "CC3"]),
        ("at most 2 stops", ["BB2", "CC3", "AA1"]),
        ("as cheap as can be", ["BB2", "CC3", "AA1"]),
    ],
)
async def test_the_best_flights_for_a_server(wishes: str, order: list[str]) -> None:
    """`SAM-05`: three of those that are listed, one a line, in the form that was asked for, each
    with its reason.
    """
    lines = (await asked(FLIGHTS + wishes)).splitlines()
    assert [line.split("-")[0] for line in lines] == [
        f"{rank}. {name}" for rank, name in enumerate(order, 1)
    ]
    assert all("leaves at" in line for line in lines)


@pytest.mark.parametrize(
    "text", ["Which is the capital of France?", "Analyze these 0 flights:", "- broken | row"]
)
async def test_what_servers_ask_and_it_does_not_understand(text: str) -> None:
    """It makes nothing up."""
    assert await asked(text) == HELP


def test_it_says_what_it_is() -> None:
    """What faces show beside its name."""
    assert "not a language model" in Planner().facts.remark
