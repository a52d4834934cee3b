"""The weather server's climate: what the weather is mostly like in cities of the world, with no
network, and never called a forecast.
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, McpError
from interlock_servers import climate
from interlock_servers.climate import cities_like, climates, find_city
from interlock_servers.weather import NORMALS, _dates_like, weather_server

FORECAST = "weather://forecast/{city}/{date}"
JUNE = {"city": "Barcelona", "date": "2024-06-15"}


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A client of a server whose weather service is nowhere."""
    async with Client(weather_server("http://127.0.0.1:9", 0.1)) as opened:
        await opened.list_tools()
        yield opened


async def test_nobody_who_uses_it_is_broken(client: Client, interlock_catalogue: Any) -> None:
    """Tools and templates are those of the snapshot (`TOL-02`, `RES-13`)."""
    assert not (await interlock_catalogue(client, "weather_catalogue.json")).breaking


async def test_the_template_of_the_guide(client: Client) -> None:
    """Its URI, name, title, description and type are those that tutorials print (`RES-13`)."""
    template = next(
        one for one in await client.list_resource_templates() if one.uri_template == FORECAST
    )
    assert (template.name, template.title, template.description, template.mime_type) == (
        "weather-forecast",
        "Weather Forecast",
        "Get weather forecast for any city and date",
        "application/json",
    )


async def test_what_the_weather_is_mostly_like(client: Client) -> None:
    """Highs, lows and rain of the month, in both scales; data and words say that it is no forecast
    (`TOL-09`).
    """
    result = await client.call_tool("check_weather", JUNE)
    assert result.structured_content == {
        "city": "Barcelona",
        "country": "Spain",
        "month": "June",
        "highCelsius": 26,
        "lowCelsius": 17,
        "highFahrenheit": 79,
        "lowFahrenheit": 63,
        "rainDays": 4,
        "note": NORMALS,
        "date": "2024-06-15",
    }
    assert result.text == (
        "Barcelona, Spain, in June: mostly 17 to 26 °C (63 to 79 °F), and rain on 4 of 30 "
        f"days. {NORMALS}"
    )
    assert "not a forecast" in NORMALS
    tool = next(tool for tool in await client.list_tools() if tool.name == "check_weather")
    assert tool.annotations is not None
    assert (tool.annotations.read_only_hint, tool.annotations.open_world_hint) == (True, False)


@pytest.mark.parametrize(
    "city", ["bogota", "BOGOTÁ", " Bogotá ", "Bogotá, Colombia", "bogota\u0301"]
)
def test_case_and_accents_do_not_matter(city: str) -> None:
    """Nor does the country behind a comma."""
    assert find_city(city) == "Bogotá"


@pytest.mark.parametrize(
    "city, name",
    [
        ("NYC", "New York"),
        ("la", "Los Angeles"),
        ("new  york city", "New York"),
        ("Washington, DC", "Washington"),
    ],
)
def test_other_names(city: str, name: str) -> None:
    """A few cities have them."""
    assert find_city(city) == name


@pytest.mark.parametrize(
    "given, words",
    [
        (
            {"city": "Barcelna"},
            "There are no climate normals for 'Barcelna'. Did you mean Barcelona?",
        ),
        ({"city": "San"}, "Did you mean San Francisco"),
        ({"city": "Atlantis"}, "There are no climate normals for 'Atlantis'."),
        ({"city": ""}, "city"),
        ({"date": "15.6.2024"}, "date"),
        ({"date": "2024-02-30"}, "date"),
    ],
)
async def test_what_is_not_known(client: Client, given: dict[str, str], words: str) -> None:
    """Cities that are called alike are named; days that are none are refused (`TOL-16`)."""
    result = await client.call_tool("check_weather", {**JUNE, **given})
    assert result.is_error
    assert words in result.text


async def test_reading(client: Client) -> None:
    """A day, or a whole year, as JSON; the errors say what is near (`RES-08`)."""
    (day,) = (await client.read_resource("weather://forecast/barcelona/2024-06-15")).contents
    assert day.mime_type == "application/json"
    assert (
        json.loads(day.text or "")
        == (await client.call_tool("check_weather", JUNE)).structured_content
    )
    (year,) = (await client.read_resource("weather://forecast/Reykjavik")).contents
    months = json.loads(year.text or "")
    assert [month["month"] for month in months][::11] == ["January", "December"]
    assert {month["note"] for month in months} == {NORMALS}
    for uri in ("Barcelna/2024-06-15", "Barcelna"):
        with pytest.raises(McpError, match="Did you mean Barcelona"):
            await client.read_resource(f"weather://forecast/{uri}")
    with pytest.raises(McpError, match="date"):
        await client.read_resource("weather://forecast/Barcelona/tomorrow")


async def test_completion(client: Client) -> None:
    """Three letters suggest the two cities of the guide; a date is completed to days there are
    (`CMP-02`, `CMP-03`).
    """
    for template in (FORECAST, "weather://forecast/{city}"):
        assert (await client.complete(template, "city", "Par")).values == ["Paris", "Park City"]
        assert (await client.complete(template, "city", "york")).values == ["New York"]
    assert (await client.complete(FORECAST, "date", "2024-06-1")).values == [
        f"2024-06-{n}" for n in range(10, 20)
    ]


@pytest.mark.parametrize(
    "start, first, count",
    [
        ("", "2026-11-21", 10),
        ("2", "2026-11-21", 100),
        ("2026", "2026-11-21", 100),
        ("2026-12", "2026-12-01", 31),
        ("2026-03", "2026-03-01", 31),
        ("2024-02-", "2024-02-01", 29),
        ("2023-02-", "2023-02-01", 28),
        ("9999-12-3", "9999-12-30", 2),
        ("0000", None, 0),
        ("x", None, 0),
        ("２０２４", None, 0),
    ],
)
def test_dates(start: str, first: str | None, count: int) -> None:
    """From today on, or in the year that is given; never a day that there is not."""
    found = _dates_like(start, datetime.date(2026, 11, 21))
    assert (found[0] if found else None, len(found)) == (first, count)
    assert all(datetime.date.fromisoformat(day).isoformat() == day for day in found)


def test_the_table_makes_sense() -> None:
    """Twelve months, highs above lows, days that a month has; the seasons are where they belong;
    names in order, none twice.
    """
    table = climates()
    assert len(table) >= 60
    for name, one in table.items():
        assert len(one.high) == len(one.low) == len(one.rain) == 12, name
        assert all(-40 < low < high < 50 for low, high in zip(one.low, one.high, strict=True)), name
        assert all(0 <= days <= 28 for days in one.rain), name
        assert all(
            abs(a - b) <= 12 for a, b in zip(one.high, one.high[1:] + one.high[:1], strict=True)
        ), name
    assert len({climate.folded(name) for name in table}) == len(table)
    for south in ("Sydney", "Buenos Aires", "Cape Town", "Auckland", "Melbourne"):
        assert table[south].high[0] > table[south].high[6]
    assert all(find_city(name) == name for name in table)
    assert all(name in cities_like(name) for name in table)


async def test_what_only_reads_changes_nothing(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written, wherever one stands."""
    monkeypatch.chdir(tmp_path)
    await client.call_tool("check_weather", JUNE)
    await client.read_resource("weather://forecast/Paris")
    assert os.listdir(tmp_path) == []
