"""The tutorial's quickstart: a weather server that runs as it was written,
but for the line that imports the server class."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock import Client
from tests.servers.weather_site import WeatherSite

HERE = Path(__file__).parent
SEEDS = HERE.parents[4] / "shared" / "seeds"
NOWHERE = {
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
}  # every way out ends at a closed port

# Where each piece of the program begins and ends in the document; between them it explains.
PIECES = (
    ("from typing import Any\nimport httpx", 'USER_AGENT = "weather-app/1.0"'),
    ("async def make_nws_request", 'No specific instructions provided\')}\n"""'),
    ("@mcp.tool()\nasync def get_alerts", 'return "\\n---\\n".join(forecasts)'),
    ('if __name__ == "__main__":', "mcp.run(transport='stdio')"),
)
THEIR_IMPORT = "from mcp.server.fastmcp import FastMCP"
OUR_IMPORT = "from interlock import Server as FastMCP"
THEIR_BASE = 'NWS_API_BASE = "https://api.weather.gov"'


def entry(script: Path, **env: str) -> dict[str, Any]:
    """How a host's configuration would name a script."""
    return {"command": sys.executable, "args": [str(script)], "env": env}


def text(path: Path) -> str:
    """What a file holds."""
    return path.read_text(encoding="utf-8")


def exchange(path: Path, old: str, new: str) -> None:
    """Put one piece of text in another's place; it must be there, and once."""
    assert text(path).count(old) == 1
    path.write_text(text(path).replace(old, new), encoding="utf-8")


@pytest.fixture
def quickstart(tmp_path: Path) -> Path:
    """The program of the document, its import line exchanged and nothing else."""
    documents = sorted(SEEDS.glob("004_*.txt"))
    if not documents:
        pytest.skip(
            "the document with the quickstart is not beside this repository (../shared/seeds)"
        )
    document = text(documents[0])
    pieces = []
    for first, last in PIECES:
        begin = document.index(first)
        pieces.append(document[begin : document.index(last, begin) + len(last)])
    path = tmp_path / "weather.py"
    path.write_text("\n\n".join(pieces) + "\n", encoding="utf-8")
    exchange(path, THEIR_IMPORT, OUR_IMPORT)
    return path


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2024-11-05"])
async def test_the_quickstart_runs(quickstart: Path, revision: str) -> None:
    """Two tools with schemas from the hints and words from `Args:`; without a way out, the
    tutorial's own sorry sentences (`TOL-02`)."""
    async with Client(entry(quickstart, **NOWHERE), revision=revision) as client:
        assert client.server_info is not None
        assert client.server_info.name == "weather"
        alerts, forecast = await client.list_tools()
        assert (alerts.name, forecast.name) == ("get_alerts", "get_forecast")
        state = alerts.input_schema["properties"]["state"]
        assert (state["type"], bool(state["description"])) == ("string", True)
        places = forecast.input_schema["properties"]
        assert {name: places[name]["type"] for name in places} == {
            "latitude": "number",
            "longitude": "number",
        }
        assert forecast.input_schema["required"] == ["latitude", "longitude"]
        sorry = [
            await client.call_tool("get_alerts", {"state": "CA"}),
            await client.call_tool("get_forecast", {"latitude": 38, "longitude": -121}),
        ]
    program = text(quickstart)
    assert all(result.text in program and not result.is_error for result in sorry)


async def test_the_quickstart_finds_the_weather(quickstart: Path, site: WeatherSite) -> None:
    """With its address exchanged (a piece of text) for one on loopback,
    alerts and forecast come as the tutorial shapes them."""
    program = text(quickstart)
    exchange(quickstart, THEIR_BASE, f'NWS_API_BASE = "{site.url}"')
    async with Client(entry(quickstart, NO_PROXY="127.0.0.1")) as client:
        alerts = (await client.call_tool("get_alerts", {"state": "CA"})).text
        quiet = (await client.call_tool("get_alerts", {"state": "NV"})).text
        forecast = (
            await client.call_tool("get_forecast", {"latitude": 40.5, "longitude": -100})
        ).text
    assert "Wind Advisory" in alerts
    assert "Gusts up to 50 mph." in alerts
    assert alerts.count("---") == 1
    assert quiet in program
    assert forecast.count("---") == 4
    assert "60°F" in forecast


async def test_a_script_of_the_same_make(site: WeatherSite, tmp_path: Path) -> None:
    """The same without the document: `Server as FastMCP`, `@mcp.tool()`, `Args:`,
    `run(transport="stdio")`."""
    script = HERE / "scripts" / "gales.py"
    async with Client(entry(script, **NOWHERE)) as client:
        gales, outlook = await client.list_tools()
        assert gales.input_schema["properties"]["region"] == {
            "description": "Its two letters (such as CA)",
            "type": "string",
        }
        assert (
            await client.call_tool("gales", {"region": "CA"})
        ).text == "The gales cannot be had."
        assert (
            await client.call_tool("outlook", {"north": 1, "east": 2})
        ).text == "The outlook cannot be had."
        assert outlook.description == "The outlook for a place."
    copy = tmp_path / "gales.py"
    shutil.copy(script, copy)
    exchange(copy, "https://gales.invalid", site.url)
    async with Client(entry(copy, NO_PROXY="127.0.0.1")) as client:
        assert (
            await client.call_tool("gales", {"region": "CA"})
        ).text == "Wind Advisory in Coast; Hills\nFrost Advisory in places unknown"
        assert (
            await client.call_tool("outlook", {"north": 40.5, "east": -100})
        ).text == "This Afternoon: 60°\nTonight: 61°"
