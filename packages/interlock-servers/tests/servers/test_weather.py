"""The weather server, against a service on loopback that answers as the real one does."""

from __future__ import annotations

import socket
import sys
from typing import Any

import pytest

from interlock import Client, McpError
from interlock_servers import weather
from interlock_servers.weather import MOST_BYTES, weather_server
from tests.servers.weather_site import WeatherSite

HERE = {"latitude": 38.58, "longitude": -121.49}


async def call(
    address: str, name: str, arguments: dict[str, Any], seconds: float = 10.0
) -> tuple[bool, str, Any]:
    """Whether the call failed, its text, and its data."""
    async with Client(weather_server(address, seconds)) as client:
        await client.list_tools()
        result = await client.call_tool(name, arguments)
        return bool(result.is_error), result.text, result.structured_content


async def test_the_tools_are_those_of_the_tutorial() -> None:
    """Names, titles, true annotations, and arguments with their limits (`TOL-02`, `TOL-04`)."""
    async with Client(weather.server) as client:
        alerts, forecast, _ = await client.list_tools()
    assert (alerts.name, forecast.name) == ("get_alerts", "get_forecast")
    for tool in (alerts, forecast):
        assert tool.title
        assert tool.annotations is not None
        assert (tool.annotations.read_only_hint, tool.annotations.open_world_hint) == (True, True)
    assert alerts.input_schema["required"] == ["state"]
    assert alerts.input_schema["properties"]["state"]["pattern"] == "^[A-Za-z]{2}$"
    places = forecast.input_schema["properties"]
    assert (places["latitude"]["minimum"], places["latitude"]["maximum"]) == (-90, 90)
    assert (places["longitude"]["minimum"], places["longitude"]["maximum"]) == (-180, 180)
    assert places["latitude"]["description"]
    assert alerts.output_schema is None
    assert forecast.output_schema is not None


async def test_alerts(site: WeatherSite) -> None:
    """All that a person needs of each alert, as text; a state in small letters will do."""
    failed, text, _ = await call(site.url, "get_alerts", {"state": "ca"})
    assert not failed
    assert text == (
        "Wind Advisory until this evening\nArea: Coast; Hills\nSeverity: Moderate\nUrgency: "
        "Expected\n"
        "Until: 2026-11-21T18:00:00-08:00\n\nGusts up to 50 mph.\n\nTie down what may "
        "fly.\n\n---\n\nFrost Advisory"
    )
    assert site.requests == [("/alerts/active/area/CA", "interlock-weather/1.0")]


async def test_no_alerts(site: WeatherSite) -> None:
    """A quiet state is no failure."""
    assert (await call(site.url, "get_alerts", {"state": "NV"}))[:2] == (
        False,
        "There are no active weather alerts for NV.",
    )


async def test_a_forecast(site: WeatherSite) -> None:
    """Five periods as data, which the client checks against the schema; redirections of the service
    are followed (`TOL-10`).
    """
    failed, text, data = await call(site.url, "get_forecast", HERE)
    assert not failed
    assert text.splitlines()[::2][:2] == [
        "Sacramento, CA:",
        "Tonight: 61 °F, wind 5 to 10 mph NW, rain 10 %. Forecast number 1.",
    ]
    assert (data["place"], len(data["periods"])) == ("Sacramento, CA", 5)
    assert data["periods"][1] == {
        "name": "Tonight",
        "starts": "2026-11-21T01:00:00-08:00",
        "temperature": 61,
        "unit": "F",
        "wind": "5 to 10 mph NW",
        "rainPercent": 10,
        "words": "Forecast number 1.",
    }
    assert data["periods"][0]["rainPercent"] is None
    assert [path for path, _ in site.requests] == [
        "/points/38.58,-121.49",
        "/points/38.5800,-121.4900",
        "/gridpoints/STO/41,67/forecast",
    ]


async def test_coordinates_have_four_digits(site: WeatherSite) -> None:
    """More than the service takes are rounded away."""
    await call(site.url, "get_forecast", {"latitude": 40.500000001, "longitude": -99.99999})
    assert site.requests[0][0] == "/points/40.5,-100"
    await call(site.url, "get_forecast", {"latitude": -0.00001, "longitude": 10})
    assert site.requests[-1][0] == "/points/0,10"


async def test_only_the_service_itself_is_asked(site: WeatherSite) -> None:
    """An answer that points to another host does not lead us there."""
    site.elsewhere = True
    failed, _, data = await call(site.url, "get_forecast", HERE)
    assert not failed
    assert data["periods"]


@pytest.mark.parametrize(
    "name, arguments, words",
    [
        (
            "get_forecast",
            {"latitude": 51.5, "longitude": -0.12},
            "covers the USA and its territories only",
        ),
        ("get_alerts", {"state": "ZZ"}, "knows no state ZZ"),
        ("get_alerts", {"state": "California"}, "state"),
        ("get_forecast", {"latitude": 91, "longitude": 0}, "latitude"),
        ("get_forecast", {"latitude": 1}, "longitude"),
    ],
)
async def test_what_cannot_be_answered(
    site: WeatherSite, name: str, arguments: dict[str, Any], words: str
) -> None:
    """Places abroad, states that do not exist and arguments out of range fail in words (`TOL-16`,
    `TOL-23`).
    """
    failed, text, _ = await call(site.url, name, arguments)
    assert failed
    assert words in text


@pytest.mark.parametrize(
    "status, body, words",
    [
        (503, b"", "an internal error (HTTP 503)"),
        (500, b"<html>oops</html>", "an internal error (HTTP 500)"),
        (429, b"", "too many requests"),
        (403, b"{}", "refused the request (HTTP 403)"),
        (200, b"<html>a captive portal</html>", "cannot be read"),
        (200, b'{"features": [{"properties": {}}]}', "cannot be read"),
        (200, b'{"features": {}}', "cannot be read"),
        (200, b"\xff\xfe", "cannot be read"),
        (404, b"not json", "cannot be read"),
        (200, b" " * (MOST_BYTES + 1), "more than"),
    ],
)
async def test_a_service_in_trouble(
    site: WeatherSite, status: int, body: bytes, words: str
) -> None:
    """Whatever the service answers, the model gets a sentence (`TOL-15`)."""
    site.trouble = (status, body)
    failed, text, _ = await call(site.url, "get_alerts", {"state": "CA"})
    assert failed
    assert words in text
    assert "\n" not in text


async def test_a_service_that_is_silent(site: WeatherSite) -> None:
    """After the time allowed the call ends, and says so."""
    site.silent.set()
    failed, text, _ = await call(site.url, "get_alerts", {"state": "CA"}, seconds=0.1)
    assert failed
    assert "did not answer within 0.1 seconds" in text


async def test_a_service_that_is_not_there(site: WeatherSite) -> None:
    """Nothing listens: clear words, and the address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: whoever connects is refused
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        failed, text, _ = await call(f"http://{address}", "get_alerts", {"state": "CA"})
    assert failed
    assert f"The weather service at {address} cannot be reached" in text


async def test_without_the_extra(site: WeatherSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing HTTP client costs one line that says what to install; the tools are listed all the
    same.
    """
    monkeypatch.setitem(sys.modules, "httpx2", None)
    failed, text, _ = await call(site.url, "get_alerts", {"state": "CA"})
    assert failed
    assert text == (
        "The weather server needs an HTTP client. Install it with: pip install 'interlock[servers]'"
    )


async def test_as_a_program(site: WeatherSite) -> None:
    """The module runs over stdio, and takes its address from the environment."""
    env = {
        "INTERLOCK_WEATHER_URL": site.url,
        "INTERLOCK_WEATHER_SECONDS": "5",
        "NO_PROXY": "127.0.0.1",
    }
    entry = {"command": sys.executable, "args": ["-m", "interlock_servers.weather"], "env": env}
    async with Client(entry) as client:
        assert [tool.name for tool in await client.list_tools()] == [
            "get_alerts",
            "get_forecast",
            "check_weather",
        ]
        assert (await client.call_tool("get_forecast", HERE)).value()["place"] == "Sacramento, CA"


async def test_older_clients_are_told_in_their_way(site: WeatherSite) -> None:
    """Arguments that do not fit are a protocol error before 2025-11-25, and the text of a forecast
    holds its data (`TOL-11`, `TOL-16`).
    """
    async with Client(weather_server(site.url), revision="2024-11-05") as client:
        with pytest.raises(McpError, match="state"):
            await client.call_tool("get_alerts", {"state": "California"})
        assert '"place":"Sacramento, CA"' in (await client.call_tool("get_forecast", HERE)).text
