"""What the planner of the demo understands of ordinary sentences, what it asks, and what it says
that it did not understand.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import TextContent
from interlock.types import CreateMessageRequestParams, SamplingMessage, Tool
from interlock_apps.demo.planner import Planner
from interlock_apps.demo.planner.trips import (
    Trip,
    missing,
    question_about,
    read_trip,
    wishes_of,
)

TODAY = dt.date(2026, 11, 23)  # a Monday


def told(*sentences: str) -> Trip | None:
    """The trip after some sentences."""
    trip = None
    for sentence in sentences:
        trip = read_trip(sentence, TODAY, trip)
    return trip


def request(*sentences: str) -> tuple[str, str, str, int, int]:
    """Place, days, people and budget of sentences that leave nothing open."""
    trip = told(*sentences)
    assert trip is not None
    assert trip.unknown == []
    wish = wishes_of(trip)
    assert wish is not None, missing(trip)
    return wish.destination, wish.departure, wish.back, wish.travelers, wish.budget


WHOLE = [
    (
        "Ten days in San Francisco from Boston starting June 3rd for a family of four, max $6k",
        ("San Francisco", "2027-06-03", "2027-06-13", 4, 6000),
    ),
    (
        "two adults and three kids to Rome, 10-17 July 2027, at most five thousand dollars",
        ("Rome", "2027-07-10", "2027-07-17", 5, 5000),
    ),
    (
        "Book me a solo trip to Madrid tomorrow for three nights, under two thousand five hundred",
        ("Madrid", "2026-11-24", "2026-11-27", 1, 2500),
    ),
    (
        "I'd like to go to lisbon next weekend with my wife, budget 1500 euros",
        ("Lisbon", "2026-12-04", "2026-12-06", 2, 1620),
    ),
    (
        "from 28 December to 4 January in London, 3 people, 4.500 €",
        ("London", "2026-12-28", "2027-01-04", 3, 4860),
    ),
    (
        "lisbon, may 10 to 17, two people, 2500",
        ("Lisbon", "2027-05-10", "2027-05-17", 2, 2500),
    ),
    (
        "Barcelona, 2027-06-15 to 2027-06-22, a budget of 500 for two.",
        ("Barcelona", "2027-06-15", "2027-06-22", 2, 500),
    ),
    (
        "go to lisbon in two weeks for ten days with two friends. Money is no object",
        ("Lisbon", "2026-12-07", "2026-12-17", 3, 0),
    ),
    (
        "we are five and want to see London between 3 and 9 April, 7k",
        ("London", "2027-04-03", "2027-04-09", 5, 7000),
    ),
    (
        "Please arrange a five-day trip to New York for my husband and me, 3 to 8 June, "
        "at most 4,000 bucks in total",
        ("New York", "2027-06-03", "2027-06-08", 2, 4000),
    ),
    (
        "A week in Tokyo from next Friday for me and my friend, £900 each",
        ("Tokyo", "2026-12-04", "2026-12-11", 2, 2286),
    ),
    (
        "a week in Lisbon for two any time in May, under 2,500 dollars",
        ("Lisbon", "2027-05-01", "2027-05-08", 2, 2500),
    ),
]


@pytest.mark.parametrize("sentence, expected", WHOLE)
def test_a_whole_request(sentence: str, expected: tuple[Any, ...]) -> None:
    """Numbers in words and digits, months, weekends, ISO dates, currencies."""
    assert request(sentence) == expected


@pytest.mark.parametrize(
    "sentences, expected",
    [
        (
            ["a week in Lisbon for two in May, under 2,500 dollars", "the 8th"],
            ("Lisbon", "2027-05-08", "2027-05-15", 2, 2500),
        ),
        (
            ["a week in Lisbon for two in late May, under 2,500 dollars", "you choose"],
            ("Lisbon", "2027-05-22", "2027-05-29", 2, 2500),
        ),
        (
            ["a weekend in Lisbon for two in May, under 2,500 dollars", "any day"],
            ("Lisbon", "2027-05-07", "2027-05-09", 2, 2500),
        ),
        (
            ["holiday in lisbon", "May", "8", "a week for 2, 2000"],
            ("Lisbon", "2027-05-08", "2027-05-15", 2, 2000),
        ),
        (
            ["I need a break for a week by the sea", "lisbon", "10 May, just me, no limit"],
            ("Lisbon", "2027-05-10", "2027-05-17", 1, 0),
        ),
        (
            ["A week in Rome from 3 July for 2, at most 3000", "Rather Paris", "in August", "12"],
            ("Paris", "2027-08-12", "2027-08-19", 2, 3000),
        ),
        (
            ["A week in Rome from 3 July for 2, at most 3000", "from 10 July, 4000 dollars"],
            ("Rome", "2027-07-10", "2027-07-17", 2, 4000),
        ),
        (["A week in Rome from 3 July", "hm"], ("Rome", "2027-07-03", "2027-07-10", 1, 0)),
    ],
)
def test_answers_complete_a_request(sentences: list[str], expected: tuple[Any, ...]) -> None:
    """A number alone is a day, people or a budget, by what was asked. Later words change a plan."""
    trip = told(*sentences)
    assert trip is not None
    wish = wishes_of(trip)
    assert wish is not None, missing(trip)
    assert (
        wish.destination,
        wish.departure,
        wish.back,
        wish.travelers,
        wish.budget,
    ) == expected


@pytest.mark.parametrize(
    "sentence, asked",
    [
        ("a week in Lisbon for two in May, under 2,500 dollars", ["Which day in May 2027"]),
        ("Please plan a trip to Barcelona from 2027-06-15 to 2027-06-22", ["How many", "budget"]),
        ("A week for two, 2000 euros", ["Where", "When"]),
        ("Lisbon from 3 May for two, no limit", ["How long"]),
        ("Lisbon, 2027-05-10 to 2027-05-09, two people, $900", ["return date must be after"]),
        ("Lisbon for a week from 3 May, 12 people, $9000", ["at most 9 people"]),
        ("Rome for a week from 31 June for two, $900", ["When"]),
        ("a week in Boston from 1/2/2027 for two, $900", ["When"]),
    ],
)
def test_what_is_missing_is_asked(sentence: str, asked: list[str]) -> None:
    """Each empty field is one question; the others stand in the form."""
    trip = told(sentence)
    assert trip is not None
    questions = missing(trip)
    assert len(questions) == len(asked)
    assert all(words in question for words, question in zip(asked, questions, strict=True))
    assert all(question in question_about(trip) for question in questions)


@pytest.mark.parametrize(
    "sentence, words",
    [
        ("a week in Lisbon for two from 3 May with my dog, $2000", "“with my dog”"),
        ("a week in Lisbon for two from 31 June, $2000", "There is no 31 June 2026."),
        ("a week in Boston from 1/2/2027 for two, $900", "“1/2/2027” can be read in two ways"),
        ("a week in Rome from 3 May for two, £900", "900 GBP are about $1,143"),
        ("a week in Rome for two, next weekend, $900", "“next weekend” as 2026-12-04"),
    ],
)
def test_what_is_not_understood_is_said(sentence: str, words: str) -> None:
    """Words without a meaning here, days that do not exist, and readings that are a guess."""
    trip = told(sentence)
    assert trip is not None
    wish = wishes_of(trip)
    assert words in (question_about(trip) if wish is None else wish.remarks)


@pytest.mark.parametrize(
    "sentence",
    [
        "Hello",
        "What is the weather in Paris in May?",
        "My budget of 3000 is small.",
        "2027-06-15",
        "Write a poem.",
        "x" * 100_000,
    ],
)
def test_what_is_no_trip(sentence: str) -> None:
    """Questions and single facts begin no plan."""
    assert told(sentence) is None


PLACES = st.sampled_from(["Lisbon", "New York", "San Francisco", "Rome", "Tokyo"])
MONTHS = "January February March April May June July August September October November December"
PEOPLE = st.sampled_from(
    [
        ("for two", 2),
        ("for 3 people", 3),
        ("with my wife", 2),
        ("for a family of four", 4),
        ("just me", 1),
        ("for two adults and a child", 3),
    ]
)
AMOUNTS = st.integers(2, 99).map(lambda hundreds: hundreds * 100)


@st.composite
def phrases(draw: st.DrawFn) -> tuple[str, tuple[Any, ...]]:
    """A request in phrases of any order, and what it means."""
    place = draw(PLACES)
    people, travelers = draw(PEOPLE)
    amount = draw(AMOUNTS)
    day = draw(st.dates(TODAY + dt.timedelta(days=1), TODAY + dt.timedelta(days=360)))
    nights = draw(st.integers(2, 12))
    back = day + dt.timedelta(days=nights)
    month = MONTHS.split()[day.month - 1]
    last = MONTHS.split()[back.month - 1]
    days = draw(
        st.sampled_from(
            [
                f"from {day} to {back}",
                f"{day} - {back}",
                f"from {day.day} {month} to {back.day} {last}",
                f"{month} {day.day} until {last} {back.day}",
                f"{nights} days from {month} {day.day}",
                f"starting on the {day.day}th of {month} {day.year} for {nights} nights",
            ]
        )
    )
    money = draw(
        st.sampled_from(
            [
                f"under {amount:,} dollars",
                f"at most ${amount}",
                f"with a budget of {amount}",
                f"up to {amount / 1000}k USD",
                f"max {amount:,} bucks in total",
            ]
        )
    )
    parts = draw(st.permutations([f"to {place}", people, days, money]))
    text = ", ".join(parts)
    if draw(st.booleans()):
        text = f"Please plan a trip {text}."
    if draw(st.booleans()):
        text = text.lower() if " " not in place else text
    return text, (place, day.isoformat(), back.isoformat(), travelers, amount)


@given(phrases())
def test_phrases_in_any_order(said: tuple[str, tuple[Any, ...]]) -> None:
    """The order of place, people, days and budget changes nothing."""
    text, expected = said
    assert request(text) == expected


@given(st.lists(st.text(max_size=80), min_size=1, max_size=4))
def test_any_text(sentences: list[str]) -> None:
    """Whatever is written, the answer is a plan, a question, or that it is no trip."""
    trip = None
    for sentence in ["a week in Lisbon", *sentences]:
        trip = read_trip(sentence, TODAY, trip)
        if trip is not None:
            assert (wishes_of(trip) is None) == bool(missing(trip))
            assert question_about(trip)


async def test_the_planner_asks_and_goes_on() -> None:
    """In a conversation: the form with what was understood, one question, then the search."""
    planner = Planner(today=lambda: TODAY)
    tools = [
        Tool(name=f"travel__{name}", input_schema={"type": "object"})
        for name in ("search_flights", "search_hotels")
    ]
    messages: list[SamplingMessage] = []

    async def say(text: str) -> Any:
        messages.append(SamplingMessage(role="user", content=TextContent(text)))
        asked = CreateMessageRequestParams(messages=messages, tools=tools, max_tokens=1000)
        *_, last = [piece async for piece in planner.stream(asked)]
        messages.append(SamplingMessage(role="assistant", content=last.result.content))  # type: ignore[union-attr]  # the last piece is the answer
        return last.result.content  # type: ignore[union-attr]  # the last piece is the answer

    (text,) = await say("a week in Lisbon for two in May, under 2,500 dollars, with a piano")
    for line in ("- Destination: Lisbon", "- Departure date: May 2027", "- Duration: 7 days"):
        assert line in text.text
    for line in ("- Travelers: 2", "- Budget: $2,500", "“with a piano”", "Which day in May 2027"):
        assert line in text.text
    text, *calls = await say("the 8th")
    assert "Lisbon for 2027-05-08 to 2027-05-15" in text.text
    assert {"city": "Lisbon", "check_in": "2027-05-08", "check_out": "2027-05-15", "guests": 2} in [
        call.input for call in calls
    ]
