"""The main job of the project: a person plans a holiday in Barcelona in a real browser, and what it
leaves on disk is what was chosen.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from interlock_apps.demo.diary import TAKEN
from interlock_apps.fleet.events import (
    CallDecided,
    CallEnded,
    CallProposed,
    PersonSaid,
    QuestionAnswered,
    QuestionAsked,
    SampleEnded,
    TurnEnded,
)
from interlock_apps.fleet.questions import Decision, Filled
from tests.demo import holdings
from tests.demo.hands import Fingers, Keys, Mouse
from tests.demo.journey import EUROPE, JUNE, SPAIN, SUBJECT, Traveller
from tests.demo.running import DESKTOP, TELEPHONE, demonstrated, shot

pytestmark = [
    pytest.mark.slow,
    pytest.mark.cold,  # the children of the demo are counted
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(
        sys.platform != "linux", reason="watches processes through /proc, which only Linux has"
    ),
]

LONG = pytest.mark.endurance(seconds=20)
"""For the whole journey with other hands:
`tests/web` shows each of its steps by keys and fingers."""

WISH = "Please plan a trip to Barcelona from 2024-06-15 to 2024-06-22, for one, with no limit."
CALLS = [
    "check_weather",
    "search_flights",
    "search_flights",
    "search_hotels",
    "find_best_flight",
    "find_best_flight",
    "book_trip",
    "create_event",
    "send_mail",
]


@pytest.mark.parametrize(
    "name, hand, page, second",
    [
        ("desk", Mouse, {"size": DESKTOP}, True),
        pytest.param("keys", Keys, {"size": DESKTOP, "dark": True}, False, marks=LONG),
        pytest.param(
            "telephone",
            Fingers,
            {
                "size": TELEPHONE,
                "dark": True,
                "has_touch": True,
                "is_mobile": True,
                "device_scale_factor": 2,
            },
            False,
            marks=LONG,
        ),
    ],
)
async def test_the_holiday_from_the_prompt_to_the_mail(
    chromium: Any, tmp_path: Path, name: str, hand: Any, page: dict[str, Any], second: bool
) -> None:
    """By mouse, by keys alone and with a finger: chosen, reviewed, edited, confirmed; then on disk
    (`HST-03`, `TOL-24`, `SAM-03`, `ELI-12`).
    """
    async with demonstrated(chromium, tmp_path / "demo", "--fresh") as demo:
        opened = await demo.open(**page)
        assert await opened.get_by_text("Rule-based, not a language model").first.is_visible()
        await Traveller(opened, hand(opened), name).whole(second=second)
        folder = demo.folder
    await _kept(folder, second)


async def test_a_page_that_is_loaded_again_and_a_second_one(chromium: Any, tmp_path: Path) -> None:
    """In the middle of it: what was said and what is asked come back, in another tab too; a call is
    denied; the log is searched (`TOL-24`).
    """
    async with demonstrated(chromium, tmp_path / "demo") as demo:
        page = await demo.open()
        await _say(page, WISH)
        first = Traveller(page, Mouse(page))
        await first.question("travel wants to ask a model")
        await page.reload()
        await first.question("travel wants to ask a model")
        assert WISH in await page.get_by_role("article", name="You").inner_text()
        other = await demo.tab(demo.contexts[0])
        await other.goto(page.url)
        await Traveller(other, Mouse(other)).fly()
        await page.bring_to_front()
        await page.locator(".item-sampled").wait_for()
        await first.fly()
        await first.question("Call Book a trip on travel?")
        await page.reload()
        box = await first.question("Call Book a trip on travel?")
        await first.hand.answer(box, "Deny")
        await page.keyboard.type("too dear")
        await page.keyboard.press("Enter")
        for each in (page, other):
            await each.locator(".answer", has_text="Nothing was booked.").wait_for()
        await shot(page, "denied")
        await page.get_by_role("button", name="Log", exact=True).click()
        await page.get_by_label("Search the log").fill("too dear")
        entries = page.get_by_role("list", name="Entries of the log").get_by_role("listitem")
        await entries.filter(has_text="denied by person").wait_for()
        assert await entries.filter(has_text="Search hotels").count() == 0
        await entries.filter(has_text="denied by person").get_by_role("button").click()
        await shot(page, "log")
        folder = demo.folder
    assert holdings.bookings(folder) == []
    log = await holdings.log(folder)
    (denied,) = [event for event in log if isinstance(event, CallDecided) and not event.allow]
    assert (denied.by, denied.why) == ("person", "The user denied this call. too dear")


async def test_what_is_declined_or_stopped_is_not_booked(chromium: Any, tmp_path: Path) -> None:
    """A form is declined; in the next plan Escape stops the turn while a question waits (`ELI-13`,
    `HST-03`).
    """
    async with demonstrated(chromium, tmp_path / "demo") as demo:
        page = await demo.open()
        await _say(page, WISH)
        person = Traveller(page, Mouse(page))
        await person.fly()
        await person.fly()
        await person.allow("Book a trip on travel", "")
        await person.hand.answer(await person.question("travel asks you"), "Decline")
        await page.get_by_text("Nothing was booked. The user declined").wait_for()
        await shot(page, "declined")
        await page.locator(".composer .stop").wait_for(state="detached")
        await _say(page, WISH)
        await person.question("travel wants to ask a model")
        await page.get_by_label("Your message").click()
        await page.keyboard.press("Escape")
        await page.locator(".turn-end.stopped").wait_for()
        await page.locator("[data-question]").wait_for(state="detached")
        await shot(page, "stopped")
        folder = demo.folder
    assert (holdings.bookings(folder), holdings.letters(folder), len(holdings.events(folder))) == (
        [],
        [],
        len(TAKEN),
    )
    log = await holdings.log(folder)
    assert [event.reason for event in log if isinstance(event, TurnEnded)] == ["done", "cancelled"]
    assert [event.answer for event in log if isinstance(event, QuestionAnswered)][5] == Filled(
        action="decline"
    )


async def _say(page: Any, text: str) -> None:
    await page.get_by_label("Your message").click()
    await page.keyboard.insert_text(text)
    await page.keyboard.press("Enter")


async def _kept(folder: Path, second: bool) -> None:
    """One booking as it was chosen, one event on its days, one letter with the edited subject, and
    a log that has all of it.
    """
    (booking,) = holdings.bookings(folder)
    chosen = {
        key: booking[key]
        for key in ("seat", "room", "insurance", "travelers", "check_in", "check_out")
    }
    assert chosen == {
        "seat": "Window",
        "room": "Sea view",
        "insurance": True,
        "travelers": 2,
        "check_in": "2024-06-15",
        "check_out": "2024-06-22",
    }
    assert booking["contact"]["name"] == "Ada Lovelace"
    log = await holdings.log(folder)
    found = [
        event.result.structured_content
        for event in log
        if isinstance(event, CallEnded) and event.tool == "find_best_flight" and event.result
    ]
    assert [booking["outbound"]["id"], booking["return_flight"]["id"]] == [
        best["picks"][0]["flight"]["id"] for best in found
    ]
    (event,) = [event for event in holdings.events(folder) if event["summary"] == "Barcelona Trip"]
    assert len(holdings.events(folder)) == 1 + len(TAKEN)
    assert (event["dtstart"].dt, event["dtend"].dt) == (dt.date(2024, 6, 15), dt.date(2024, 6, 23))
    assert booking["id"] in event["description"]
    assert {
        name: len(one["features"]["tool"]) for name, one in holdings.pins(folder)["servers"].items()
    } == {
        "travel": 8,
        "weather": 3,
        "calendar": 5,
        "mail": 7,
    }
    (letter,) = holdings.letters(folder)
    assert (holdings.subject(letter), letter["to"]) == (SUBJECT, "ada@example.com")
    assert booking["id"] in letter.get_payload(decode=True).decode()
    _logged(log, second)


def _logged(log: list[Any], second: bool) -> None:
    """Every call, question, answer, decision and result, and what was changed by hand."""
    calls = {event.call: event for event in log if isinstance(event, CallProposed)}
    assert [event.tool for event in calls.values()] == CALLS
    assert {event.call for event in log if isinstance(event, CallDecided) and event.allow} == set(
        calls
    )
    assert {
        event.call
        for event in log
        if isinstance(event, CallEnded) and event.result is not None and not event.result.is_error
    } == set(calls)
    by = Counter(
        (calls[event.call].tool, event.by) for event in log if isinstance(event, CallDecided)
    )
    assert all(
        who == ("person" if tool in ("book_trip", "create_event", "send_mail") else "rule")
        for tool, who in by
    ), by
    (mail,) = [
        event.arguments
        for event in log
        if isinstance(event, CallDecided) and event.arguments is not None
    ]
    assert mail["subject"] == SUBJECT

    questions = {
        event.question.id: event.question for event in log if isinstance(event, QuestionAsked)
    }
    answers = {event.question: event for event in log if isinstance(event, QuestionAnswered)}
    kinds = [
        type(question).__name__.removesuffix("Question").lower() for question in questions.values()
    ]
    assert kinds == [
        "sample",
        "sampled",
        "sample",
        "sampled",
        "call",
        "form",
        "form",
        "call",
        "call",
    ]
    assert list(answers) == list(questions)
    assert {answer.by for answer in answers.values()} == {"person"}
    asked, given, booking, contact = (
        answers[list(questions)[place]].answer for place in (0, 1, 5, 6)
    )
    assert isinstance(asked, Decision)
    assert asked.request is not None
    assert asked.request.messages[0].content.text.startswith(
        "Weigh these 47 flights from New York (NYC) to Barcelona (BCN)"
    )
    assert isinstance(given, Decision)
    assert (given.sampled is not None) is second
    assert isinstance(booking, Filled)
    assert booking.content == {
        "confirmBooking": True,
        "seatPreference": "Window",
        "roomType": "Sea view",
        "travelInsurance": True,
    }
    assert isinstance(contact, Filled)
    assert contact.content == {
        "name": "Ada Lovelace",
        "email": "ada@example.com",
        "specialRequests": "A quiet room",
    }

    (said,) = [event for event in log if isinstance(event, PersonSaid)]
    assert (said.prompt, said.arguments["destination"], said.arguments["budget"]) == (
        "plan-vacation",
        "Barcelona",
        "3000",
    )
    assert [one.uri for one in said.attached] == [JUNE, EUROPE, SPAIN]
    assert [event.model for event in log if isinstance(event, SampleEnded)] == [
        "planner",
        "planner",
    ]
    assert [event.reason for event in log if isinstance(event, TurnEnded)] == ["done"]
