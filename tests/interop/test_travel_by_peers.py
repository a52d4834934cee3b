"""The official SDKs' clients use the servers of the travel scenario over stdio: they list and use
everything, and the effects are on the disk."""

from __future__ import annotations

import email
import email.policy
import json
import re
from collections.abc import Callable
from pathlib import Path

import icalendar
import pytest

from interlock_servers.travel.bookings import bookings
from interlock_servers.travel.database import TravelDatabase
from tests.interop.walking import WAYS, Walk, accepted, walk_by
from tests.servers.travel_fixtures import BACK, CONTACT, HOTEL, OUT, STAY, TRIP, WAY, YES

pytestmark = pytest.mark.interop


@pytest.fixture(params=WAYS, ids=" ".join)
def walk(request: pytest.FixtureRequest, installed: Callable[[str], Path]) -> Walk:
    """Connects this combination's client to a server, with given environment variables."""
    return walk_by(request.param, installed)


async def test_travel(walk: Walk, tmp_path: Path) -> None:
    """Flights are found, compared by the client's model and booked with two forms, and the database
    has the booking (`SAM-05`, `ELI-04`, `ELI-06`)."""
    path = tmp_path / "travel.db"
    async with walk("travel", {"INTERLOCK_TRAVEL_DB": str(path)}) as walker:
        found = await walker.use("search_flights", WAY)
        assert OUT in {flight["id"] for flight in found["flights"]}
        said = {
            "role": "assistant",
            "content": {"type": "text", "text": f"1. {OUT}: leaves in the morning"},
            "model": "m",
        }
        best, step = await walker.asked("find_best_flight", WAY, {"sampling/createMessage": said})
        assert [(pick["flight"]["id"], pick["reason"]) for pick in best["picks"]] == [
            (OUT, "leaves in the morning")
        ]
        assert [method for method, _ in step.asked] == ["sampling/createMessage"]
        assert "recommend the best choice" in str(step.asked[0][1]["messages"])
        hotels = await walker.use("search_hotels", {"city": "Barcelona", **STAY})
        assert HOTEL in {hotel["id"] for hotel in hotels["hotels"]}

        for refusal, words in (
            ({"action": "decline"}, "declined"),
            ({"action": "cancel"}, "dismissed"),
        ):
            left = await walker.use("book_trip", TRIP, {"elicitation/create": refusal})
            assert (left["booked"], words in left["message"]) == (False, True)
        assert bookings(TravelDatabase(path)) == []
        forms = {"elicitation/create": [accepted(YES), accepted(CONTACT)]}
        booked, step = await walker.asked("book_trip", TRIP, forms)
        assert (
            booked["message"]
            == "Booked: BK-2024-0001, Barcelona, 2024-06-15 to 2024-06-22, $3,150 in all."
        )
        summary, contact = (params["message"] for _, params in step.asked)
        assert summary.startswith("Please confirm the booking details")
        assert contact.startswith("Who travels")
        assert (await walker.use("list_bookings", {})) == {
            "count": 1,
            "bookings": [booked["booking"]],
        }

        assert {
            "travel://preferences/europe",
            "travel://bookings",
            "travel://bookings/BK-2024-0001",
        } <= await walker.uris()
        assert "Europe" in await walker.read("travel://preferences/europe")
        assert json.loads(await walker.read("travel://activities/barcelona/museums"))
        assert json.loads(await walker.read("travel://bookings/BK-2024-0001")) == booked["booking"]
        assert "Barcelona" in await walker.complete("destination", "Bar", prompt="plan-vacation")
        assert await walker.complete("region", "eu", template="travel://preferences/{region}") == [
            "europe"
        ]
        days = {"departure_date": STAY["check_in"], "return_date": STAY["check_out"]}
        planned = await walker.prompt(
            "plan-vacation", destination="Barcelona", **days, budget="3000", travelers="2"
        )
        assert "Please plan my vacation in Barcelona" in planned
        gone = await walker.use(
            "cancel_booking",
            {"booking": "BK-2024-0001"},
            {"elicitation/create": accepted({"confirm": True})},
        )
        assert gone["cancelled"]
    (kept,) = bookings(TravelDatabase(path))
    assert (kept.id, kept.status, kept.total, kept.seat, kept.room, kept.insurance) == (
        "BK-2024-0001", "cancelled", 3150, "Aisle", "Sea view", True,
    )  # fmt: skip
    assert kept.outbound is not None
    assert kept.return_flight is not None
    assert kept.contact is not None
    assert (kept.outbound.id, kept.return_flight.id, kept.contact.email) == (
        OUT,
        BACK,
        CONTACT["email"],
    )


async def test_calendar(walk: Walk, tmp_path: Path) -> None:
    """Events are created, changed, found and, once the user agrees, deleted; the file has the
    remaining events (`ELI-04`, `RES-13`)."""
    async with walk("calendar", {"INTERLOCK_CALENDAR_FOLDER": str(tmp_path)}) as walker:
        span = {"from": "2024-06-01", "to": "2024-06-30"}
        trip = {
            "title": "Barcelona Trip",
            "start_date": STAY["check_in"],
            "end_date": STAY["check_out"],
            "notes": "BK-2024-0001",
        }
        made = await walker.use("create_event", trip)
        other = await walker.use(
            "create_event", {"title": "Dentist", "start_date": "2024-06-03T10:00"}
        )
        moved = await walker.use(
            "update_event", {"event": other["id"], "start_date": "2024-06-04T10:00"}
        )
        assert moved["id"] == other["id"]
        listed = await walker.use("list_events", span)
        assert [event["id"] for event in listed["events"]] == [other["id"], made["id"]]
        assert await walker.use("find_free_days", {**span, "length": 10})
        assert "calendar://events/2024" in await walker.uris()
        assert "Barcelona Trip" in await walker.read("calendar://events/2024")
        assert "Barcelona Trip" in await walker.read("calendar://my-calendar/June-2024")
        assert await walker.complete(
            "calendar", "my", template="calendar://{calendar}/{month}"
        ) == ["my-calendar"]
        no = {"elicitation/create": {"action": "decline"}}
        yes = {"elicitation/create": accepted({"confirm": True})}
        kept = await walker.client.call("delete_event", {"event": other["id"]}, answers=no)
        assert (kept.result["isError"], kept.text) == (
            True,
            "The user did not agree, and nothing was deleted.",
        )
        await walker.use("delete_event", {"event": other["id"]}, yes)
    (file,) = tmp_path.glob("*.ics")
    (event,) = icalendar.Calendar.from_ical(file.read_bytes()).walk("VEVENT")
    assert (str(event["SUMMARY"]), event.start.isoformat(), str(event["DESCRIPTION"])) == (
        "Barcelona Trip",
        "2024-06-15",
        "BK-2024-0001",
    )


async def test_mail(walk: Walk, tmp_path: Path) -> None:
    """Messages are written, saved and sent to the local Maildir, which contains them (`TOL-09`,
    `RES-13`, `PRM-03`)."""
    letter = {
        "to": CONTACT["email"],
        "subject": "Barcelona — booked",
        "body": "BK-2024-0001, and see you there.\n",
    }
    env = {
        "INTERLOCK_MAIL_FOLDER": str(tmp_path / "mail"),
        "INTERLOCK_MAIL_FROM": "desk@example.com",
    }
    async with walk("mail", env) as walker:
        sent = await walker.use("send_mail", letter)
        assert (sent["how"], sent["from"], sent["to"]) == (
            "local",
            "desk@example.com",
            [CONTACT["email"]],
        )
        draft = await walker.use("create_draft", {**letter, "subject": "Later"})
        assert [each["id"] for each in (await walker.use("list_drafts", {}))["letters"]] == [
            draft["id"]
        ]
        assert "see you there" in await walker.read(sent["uri"])
        assert await walker.complete("id", sent["id"][:4], template="mail://sent/{id}") == [
            sent["id"]
        ]
        assert (await walker.use("send_draft", {"draft": draft["id"]}))["subject"] == "Later"
        assert {
            each["subject"]
            for each in (await walker.use("search_mail", {"words": "see you"}))["letters"]
        } == {
            letter["subject"],
            "Later",
        }
        assert len((await walker.use("list_sent", {}))["letters"]) == 2
        assert (await walker.use("list_drafts", {}))["letters"] == []
    files = [
        path
        for path in (tmp_path / "mail").rglob("*")
        if path.is_file() and re.search(r"/(new|cur)$", path.parent.as_posix())
    ]
    kept = [
        email.message_from_bytes(path.read_bytes(), policy=email.policy.default) for path in files
    ]
    assert sorted(str(each["Subject"]) for each in kept) == [letter["subject"], "Later"]
    assert {(str(each["To"]), str(each["From"])) for each in kept} == {
        (CONTACT["email"], "desk@example.com")
    }


async def test_weather(walk: Walk) -> None:
    """The climate needs no network; tools that need one return an error message (`TOL-09`,
    `TOL-15`, `CMP-02`)."""
    nobody = {
        "INTERLOCK_WEATHER_URL": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1",
    }  # the discard port
    async with walk("weather", nobody) as walker:
        june = await walker.use("check_weather", {"city": "Barcelona", "date": STAY["check_in"]})
        assert (june["city"], june["month"], june["highCelsius"]) == ("Barcelona", "June", 26)
        assert json.loads(await walker.read("weather://forecast/Barcelona/2024-06-15")) == june
        assert len(json.loads(await walker.read("weather://forecast/Barcelona"))) == 12
        assert "Barcelona" in await walker.complete(
            "city", "barc", template="weather://forecast/{city}"
        )
        alerts = await walker.client.call("get_alerts", {"state": "CA"})
        assert alerts.result["isError"]
        assert "127.0.0.1:9 cannot be reached" in alerts.text
