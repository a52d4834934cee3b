"""Finding a tool among thousands by words: the one that is meant is among the first three."""

from __future__ import annotations

import fnmatch
import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Client
from interlock.types import Tool
from interlock_apps.fleet.text_index import TextIndex, stem, words_of
from interlock_apps.fleet.toolbox import Toolbox
from interlock_servers import everything, weather
from tests.host.catalogue import catalogue

WANTED = {
    # As a model would ask. Where no deed is named, any of the five of the thing will do.
    "create pull request": "github__create_pull_request",
    "open a new pull request on GitHub": "github__create_pull_request",
    "list repositories": "github__list_repository",
    "merge request": "gitlab__get_merge_request",
    "log time on a jira ticket": "jira__get_ticket",
    "send a message to a slack channel": "slack__create_message",
    "delete draft email": "gmail__delete_draft",
    "what meetings rooms are there": "calendar__list_meeting_room",
    "invitations": "calendar__list_invitation",
    "share a link to a document": "drive__*_shared_link",
    "add a row to a postgres table": "postgres__create_row",
    "refund a payment": "stripe__*_refund",
    "cancel subscription": "stripe__delete_subscription",
    "discount codes": "shopify__list_discount_code",
    "sales opportunity": "salesforce__get_opportunity",
    "search flights": "flights__list_flight",
    "is my flight on time? flight status": "flights__*_flight_status",
    "baggage allowance for airline": "flights__get_baggage_allowance",
    "hotel reservation": "hotels__*_reservation",
    "book a hotel room": "hotels__create_room",
    "train timetables": "trains__list_timetable",
    "weather forecast for tomorrow": "*__*_forecast",
    "what is the temperature in Paris": "meteo__get_temperature",
    "air quality": "meteo__get_air_quality",
    "currency exchange rates": "currency__list_exchange_rate",
    "convert a currency": "currency__*",
    "account balance": "bank__get_balance",
    "my playlists": "spotify__list_playlist",
    "recipes with these ingredients": "kitchen__list_recipe",
    "turn on the lamp": "smarthome__update_lamp",
    "kubernetes pods": "kubernetes__list_pod",
    "restart deployment": "kubernetes__update_deployment",
    "s3 bucket": "aws__get_bucket",
    "stack traces of an exception": "sentry__get_stack_trace",
    "track parcel tracking number": "logistics__get_tracking_number",
    "rental cars": "cars__list_rental_car",
    "charging stations near me": "cars__list_charging_station",
    "moon phase": "astronomy__get_moon_phase",
    "patient's allergies": "health__*_allergy",
    "vaccinations": "health__list_vaccination",
    # Only the beginnings of words, other spellings, other signs.
    "transl": "translate__*",
    "PullRequest": "github__get_pull_request",
    "pull-request": "github__get_pull_request",
    "PULL REQUESTS!!!": "github__list_pull_request",
    "thermostats'": "smarthome__list_thermostat",
    "délete pâtent": "legal__delete_patent",
    # Our own.
    "add two numbers": "everything__add",
    "count the words of a text": "everything__count_words",
    "severe weather alerts for a US state": "weather__get_alerts",
    "forecast by latitude and longitude": "weather__get_forecast",
    "航班 搜索": "travel__search_flights",
    "预订酒店": "travel__book_hotel",
}

CHINESE = [
    Tool(
        name="search_flights",
        title="搜索航班",
        description="按出发地、目的地和日期搜索航班。",
        input_schema={"type": "object"},
    ),
    Tool(
        name="book_hotel",
        title="预订酒店",
        description="为指定日期预订酒店房间。",
        input_schema={"type": "object"},
    ),
    Tool(
        name="get_weather",
        title="查询天气",
        description="查询目的地的天气预报。",
        input_schema={"type": "object"},
    ),
]


@functools.cache
def full() -> Toolbox:
    box = Toolbox()
    for server, tools in catalogue().items():
        assert box.put(server, tools) == []
    return box


@pytest.fixture
async def box() -> Toolbox:
    """2,000 tools of 50 servers, and those of our own servers."""
    box = full()
    if len(box.items) == 2000:
        for id, server in {"everything": everything.server, "weather": weather.server}.items():
            async with Client(server) as client:
                box.put(id, await client.list_tools())
        box.put("travel", CHINESE)
    assert len(box.items) > 2030
    return box


@pytest.mark.parametrize("words", WANTED)
async def test_the_wanted_tool_is_among_the_first_three(box: Toolbox, words: str) -> None:
    """`HST-05`: a model that searches for a tool gets it to see."""
    assert fnmatch.filter([item.name for item in box.search(words, 3)], WANTED[words])


@pytest.mark.parametrize("words", ["", " ", "!?", "\x00", "xyzzyplugh", "👍"])
async def test_what_nothing_is_said_of_is_not_found(box: Toolbox, words: str) -> None:
    """No tool is better than any tool."""
    assert box.search(words) == []


async def test_a_question_of_empty_words_only_is_still_a_question(box: Toolbox) -> None:
    """Where there is nothing else, even they are looked for."""
    assert box.search("get all")


@pytest.mark.parametrize(
    "text, words",
    [
        ("getHTTPResponse2xx", ["get", "http", "response2xx"]),
        ("read_multiple-files.v2", ["read", "multiple", "file", "v2"]),
        ("Straße ÉTÉS naïve", ["strasse", "ete", "naive"]),
        (
            "cities boxes classes glasses buses status this gas",
            ["city", "box", "class", "glass", "buse", "status", "this", "gas"],
        ),
        ("旅行计划 v2版", ["旅行", "行计", "计划", "v2", "版"]),
        ("東京tower", ["東京", "tower"]),
        ("", []),
        ("___", []),
    ],
)
def test_words_are_compared_as(text: str, words: list[str]) -> None:
    """Humps, signs, accents and plurals make no difference; writing without spaces is read in
    pairs.
    """
    assert words_of(text) == words


@given(st.text(max_size=40))
def test_small_and_capital_letters_are_the_same(text: str) -> None:
    """However a word is written, and a plural of a plural is none."""
    assert words_of(text.lower().upper().lower()) == words_of(
        text.lower().upper().lower().casefold()
    )
    for word in words_of(text):
        assert stem(stem(word)) in (stem(word), stem(stem(word)))


TEXTS = st.lists(st.text(alphabet="abc ", max_size=12), min_size=1, max_size=3).map(
    lambda texts: [(1.0, text) for text in texts]
)


@given(st.lists(st.tuples(st.integers(0, 5), TEXTS | st.none()), max_size=30))
def test_an_index_holds_no_trace_of_what_went(
    steps: list[tuple[int, list[tuple[float, str]] | None]],
) -> None:
    """After any coming and going, scores are those of an index of what is left."""
    index: TextIndex[int] = TextIndex()
    kept: dict[int, list[tuple[float, str]]] = {}
    for key, fields in steps:
        kept.pop(key, None)
        if fields is None:
            index.drop(key)
        else:
            index.put(key, fields)
            kept[key] = fields
        index.search("ab")
    new: TextIndex[int] = TextIndex()
    for key, fields in kept.items():
        new.put(key, fields)
    assert len(index) == len(kept)
    for words in ("a", "ab", "abc b", "cab"):
        assert index.search(words) == [
            (key, pytest.approx(score)) for key, score in new.search(words)
        ]


def test_repeating_a_word_does_not_win() -> None:
    """A description stuffed with words does not come before a tool that is called so."""
    index: TextIndex[str] = TextIndex()
    index.put("stuffed", [(1.0, "weather " * 1000)])
    index.put("called", [(4.0, "weather"), (1.0, "Tells how it will be tomorrow.")])
    assert [key for key, _ in index.search("weather")] == ["called", "stuffed"]


def test_a_text_is_read_so_far_and_no_further() -> None:
    """Servers may say what they like, as long as they like; a schema may have any shape."""
    properties = {f"ab{number:03}z": {"description": "x " * 100_000} for number in range(1000)}
    box = Toolbox()
    box.put(
        "a",
        [
            Tool(
                name="x",
                description="y " * 1_000_000,
                input_schema={"type": "object", "properties": properties},
            )
        ],
    )
    assert [item.name for item in box.search("ab001z")] == ["a__x"]
    assert box.search("ab999z") == []
