"""Weather server: US alerts and forecasts, and climate normals of the world.

`interlock serve weather` runs it over stdio. Climate normals come from a table in the package and
need no network. INTERLOCK_WEATHER_URL names another address with the API of
https://api.weather.gov, and INTERLOCK_WEATHER_SECONDS the timeout of a response.
"""

from __future__ import annotations

import datetime
import sys
from calendar import month_name, monthrange
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct, field

from interlock import (
    Context,
    McpError,
    Server,
    ServerInfo,
    ServerLimits,
    ToolAnnotations,
    ToolError,
    ToolResult,
    settings_of,
    types,
)

from .climate import UnknownCity, cities_like, climates, find_city, month_of

if TYPE_CHECKING:
    from httpx2 import AsyncClient

NWS = "https://api.weather.gov"
PREFIX = "INTERLOCK_WEATHER_"
MOST_BYTES = 8 * 1024 * 1024
MOST_PERIODS = 5
FORECAST = "weather://forecast/{city}/{date}"
YEAR = "weather://forecast/{city}"
NORMALS = "These are climate normals, the usual weather of the month, not a forecast."
MOST_DATES = 100
NO_ALERTS = "There are no active weather alerts for {state}."

T = TypeVar("T")


class WeatherSettings(Struct, frozen=True):
    """The service to ask and its timeout: INTERLOCK_WEATHER_URL sets `url`,
    INTERLOCK_WEATHER_SECONDS `seconds`.
    """

    url: str = NWS
    seconds: float = 20.0  # for one response


# -- what the service answers, as far as it is needed ----------------------------------------------


class _Alert(Struct, rename="camel"):
    event: str
    headline: str | None = None
    area_desc: str | None = None
    severity: str | None = None
    urgency: str | None = None
    expires: str | None = None
    description: str | None = None
    instruction: str | None = None


class _AlertFeature(Struct):
    properties: _Alert


class _Alerts(Struct):
    features: list[_AlertFeature]


class _City(Struct):
    city: str
    state: str


class _Relative(Struct):
    properties: _City


class _Point(Struct, rename="camel"):
    forecast: str
    relative_location: _Relative | None = None


class _PointAnswer(Struct):
    properties: _Point


class _Quantity(Struct):
    value: float | None = None


class _Period(Struct, rename="camel"):
    name: str
    start_time: str
    temperature: float
    temperature_unit: str
    wind_speed: str = ""
    wind_direction: str = ""
    detailed_forecast: str = ""
    probability_of_precipitation: _Quantity | None = None


class _Periods(Struct):
    periods: list[_Period]


class _ForecastAnswer(Struct):
    properties: _Periods


class _Problem(Struct):
    title: str = ""
    detail: str = ""


# -- what the tools give ---------------------------------------------------------------------------


class Period(Struct, rename="camel"):
    """The weather of one part of a day."""

    name: str
    starts: str
    temperature: float
    unit: str
    wind: str
    rain_percent: float | None
    words: str


class Forecast(Struct, rename="camel"):
    """The forecast for one place. Times are ISO 8601."""

    place: str | None
    latitude: float
    longitude: float
    periods: list[Period] = field(default_factory=list)


class ClimateNormals(Struct, rename="camel"):
    """Climate normals of a month in a city.

    `rain_days` are days with rain or snow; `note` explains the data.
    """

    city: str
    country: str
    month: str
    high_celsius: int
    low_celsius: int
    high_fahrenheit: int
    low_fahrenheit: int
    rain_days: int
    note: str = NORMALS
    date: datetime.date | None = None


# -- the service -----------------------------------------------------------------------------------


class _Absent(Exception):
    """The service has nothing at that path. `words` is its explanation."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


class WeatherService:
    """A client of the National Weather Service, or of an address with the same API.

    Every failure is raised as a ToolError with a message for the model.
    """

    def __init__(self, address: str, seconds: float) -> None:
        self.address = address.rstrip("/")
        self.seconds = seconds
        self._client: AsyncClient | None = None

    async def get(self, path: str, kind: type[T]) -> T:
        """Get `path` from the service, parsed as `kind`.

        Raises _Absent if it does not exist, and ToolError for every other failure.
        """
        status, body = await self._fetch(path)
        if status in (400, 404):
            problem = self._read(body, _Problem) if body else _Problem()
            raise _Absent(status, problem.detail or problem.title)
        if status == 429:
            raise ToolError("The weather service gets too many requests. Try again in a minute.")
        if status >= 500:
            raise ToolError(
                f"The weather service has an internal error (HTTP {status}). Try again later."
            )
        if status != 200:
            raise ToolError(f"The weather service refused the request (HTTP {status}).")
        return self._read(body, kind)

    async def aclose(self) -> None:
        """Close the connections."""
        client = self._client
        self._client = None
        if client is not None:
            await client.aclose()

    async def _fetch(self, path: str) -> tuple[int, bytes]:
        client = self._client = self._client or self._opened()
        import httpx2  # imported already, or `_opened` has said what to install

        host = urlsplit(self.address).netloc
        try:
            async with client.stream("GET", self.address + path) as response:
                body = b""
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MOST_BYTES:
                        raise ToolError(
                            f"The weather service sent more than {MOST_BYTES} bytes, too "
                            "many for a forecast."
                        )
                return response.status_code, body
        except httpx2.TimeoutException:
            raise ToolError(
                f"The weather service at {host} did not answer within {self.seconds:g} seconds. "
                "Try again later."
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as bad:
            why = str(bad) or type(bad).__name__
            raise ToolError(
                f"The weather service at {host} cannot be reached ({why}). Check the "
                "network connection."
            ) from None

    def _opened(self) -> AsyncClient:
        try:
            import httpx2  # at the first call: importing it takes longest
        except ImportError:
            raise ToolError(
                "The weather server needs an HTTP client. Install it with: pip install "
                "'interlock[servers]'"
            ) from None
        return httpx2.AsyncClient(
            headers={"User-Agent": "interlock-weather/1.0", "Accept": "application/geo+json"},
            timeout=self.seconds,
            limits=httpx2.Limits(max_connections=10),
            follow_redirects=True,  # the service redirects coordinates to its canonical form
            max_redirects=3,
        )

    def _read(self, body: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as bad:
            raise ToolError(
                f"The weather service sent an answer that cannot be read ({bad})."
            ) from None


# -- the tools -------------------------------------------------------------------------------------

State = Annotated[str, Meta(pattern="^[A-Za-z]{2}$", examples=["CA", "NY"])]
Latitude = Annotated[float, Meta(ge=-90, le=90, examples=[38.58])]
City = Annotated[str, Meta(min_length=1, max_length=100, examples=["Barcelona", "New York"])]
Longitude = Annotated[float, Meta(ge=-180, le=180, examples=[-121.49])]


async def get_alerts(state: State, ctx: Context[WeatherService]) -> str:
    """The weather alerts that are in force in a state of the USA now.

    Args:
        state: two letters, such as CA or NY.
    """
    state = state.upper()
    try:
        answer = await ctx.lifespan_state.get(f"/alerts/active/area/{state}", _Alerts)
    except _Absent as bad:
        raise ToolError(
            f"The National Weather Service knows no state {state}. {bad.words}".strip()
        ) from None
    alerts = [_alert(feature.properties) for feature in answer.features]
    return "\n\n---\n\n".join(alerts) if alerts else NO_ALERTS.format(state=state)


async def get_forecast(
    latitude: Latitude, longitude: Longitude, ctx: Context[WeatherService]
) -> ToolResult[Forecast]:
    """The weather of the next days at a place in the USA.

    Args:
        latitude: degrees north; south is negative.
        longitude: degrees east; west, as all of the USA, is negative.
    """
    where = f"{_degrees(latitude)},{_degrees(longitude)}"
    try:
        point = (await ctx.lifespan_state.get(f"/points/{where}", _PointAnswer)).properties
        # Only the path of the response is used: the request goes to the configured service in any
        # case.
        found = urlsplit(point.forecast)
        answer = await ctx.lifespan_state.get(
            found.path + (f"?{found.query}" if found.query else ""), _ForecastAnswer
        )
    except _Absent as bad:
        words = (
            f"There is no forecast for {where}: the National Weather Service covers the USA and "
            f"its territories only. {bad.words}"
        )
        raise ToolError(words.strip()) from None
    city = point.relative_location.properties if point.relative_location is not None else None
    place = f"{city.city}, {city.state}" if city is not None else None
    periods = [_period(period) for period in answer.properties.periods[:MOST_PERIODS]]
    return ToolResult(
        Forecast(place, latitude, longitude, periods),
        "\n".join([f"{place or where}:", *map(_words, periods)]),
    )


async def check_weather(city: City, date: datetime.date) -> ToolResult[ClimateNormals]:
    """Usual weather in a city at a time of the year: climate normals of the
    month, not a forecast.

    Args:
        city: one of many cities of the world, such as Barcelona.
        date: the day, such as 2024-06-15.
    """
    found = _normals(city, date)
    days = monthrange(date.year, date.month)[1]
    words = (
        f"{found.city}, {found.country}, in {found.month}: mostly {found.low_celsius} to "
        f"{found.high_celsius} °C "
        f"({found.low_fahrenheit} to {found.high_fahrenheit} °F), and rain on {found.rain_days} "
        f"of {days} days. {NORMALS}"
    )
    return ToolResult(found, words)


def _normals(city: str, day: datetime.date, *, dated: bool = True) -> ClimateNormals:
    """The normals of a city for the month of a day.

    Raises ToolError for an unknown city.
    """
    try:
        name = find_city(city)
    except UnknownCity as bad:
        hint = (
            f"Did you mean {' or '.join(bad.near)}?"
            if bad.near
            else f"There are {len(climates())} cities, such as Barcelona."
        )
        raise ToolError(f"There are no climate normals for {city!r}. {hint}") from None
    climate = climates()[name]
    high, low, rain = month_of(climate, day)
    fahrenheit = round(high * 9 / 5 + 32), round(low * 9 / 5 + 32)
    when = day if dated else None
    return ClimateNormals(
        name, climate.country, month_name[day.month], high, low, *fahrenheit, rain, date=when
    )


def _add_climate(made: Server) -> None:
    """Add the tool, the templates and the completions that need no network."""
    made.add_tool(
        check_weather,
        title="Usual weather",
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )

    @made.resource(
        FORECAST,
        name="weather-forecast",
        title="Weather Forecast",
        description="Get weather forecast for any city and date",
        mime_type="application/json",
    )
    async def forecast(city: str, date: datetime.date) -> ClimateNormals:
        try:
            return _normals(city, date)
        except ToolError as bad:
            raise McpError(types.INVALID_PARAMS, str(bad)) from None

    @made.resource(
        YEAR, name="weather-year", title="Weather of a year", mime_type="application/json"
    )
    async def year(city: str) -> list[ClimateNormals]:
        """The usual weather of each month in a city: climate normals, not a forecast."""
        try:
            return [
                _normals(city, datetime.date(2024, month, 1), dated=False) for month in range(1, 13)
            ]
        except ToolError as bad:
            raise McpError(types.INVALID_PARAMS, str(bad)) from None

    @made.completion(FORECAST, "city")
    async def complete_city(value: str) -> list[str]:
        return cities_like(value)

    @made.completion(YEAR, "city")
    async def complete_city_of_year(value: str) -> list[str]:
        return cities_like(value)

    @made.completion(FORECAST, "date")
    async def complete_date(value: str) -> list[str]:
        return _dates_like(value, datetime.date.today())


def _dates_like(start: str, today: datetime.date) -> list[str]:
    """Dates that begin with a text: first those from today on, then those of the given year."""
    spans = [today.toordinal()]
    if len(start) >= 4 and start[:4].isdecimal() and start[:4].isascii() and start[:4] != "0000":
        spans.append(datetime.date(int(start[:4]), 1, 1).toordinal())
    last = datetime.date.max.toordinal()
    numbers = (n for first in spans for n in range(first, min(first + 366, last + 1)))
    days = dict.fromkeys(
        day for n in numbers if (day := datetime.date.fromordinal(n).isoformat()).startswith(start)
    )
    return list(days)[: MOST_DATES if start else 10]


def _degrees(value: float) -> str:
    """Coordinates with four digits, as the service requires, and without trailing zeros, which it
    rejects.
    """
    text = f"{value:.4f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _alert(alert: _Alert) -> str:
    facts = [
        ("Area", alert.area_desc),
        ("Severity", alert.severity),
        ("Urgency", alert.urgency),
        ("Until", alert.expires),
    ]
    lines = [alert.headline or alert.event, *(f"{name}: {value}" for name, value in facts if value)]
    return "\n".join(
        [*lines, *(f"\n{text.strip()}" for text in (alert.description, alert.instruction) if text)]
    )


def _words(period: Period) -> str:
    rain = f", rain {period.rain_percent:g} %" if period.rain_percent else ""
    return (
        f"{period.name}: {period.temperature:g} °{period.unit}, wind "
        f"{period.wind or 'none'}{rain}. {period.words}"
    ).strip()


def _period(period: _Period) -> Period:
    rain = period.probability_of_precipitation
    return Period(
        name=period.name,
        starts=period.start_time,
        temperature=period.temperature,
        unit=period.temperature_unit,
        wind=f"{period.wind_speed} {period.wind_direction}".strip(),
        rain_percent=rain.value if rain is not None else None,
        words=period.detailed_forecast,
    )


def weather_server(address: str | None = None, seconds: float | None = None) -> Server:
    """Return a weather server that asks `address`; by default the environment's or the real
    service.

    `seconds` is the timeout of a response.
    """

    @asynccontextmanager
    async def lifespan(_: Server) -> AsyncIterator[WeatherService]:
        known = settings_of(WeatherSettings, PREFIX)
        service = WeatherService(address or known.url, seconds or known.seconds)
        try:
            yield service
        finally:
            await service.aclose()

    made = Server(
        "weather",
        "1.0.0",
        info=ServerInfo(
            title="Weather",
            description=("Alerts and forecasts for the USA, and the usual weather elsewhere."),
        ),
        instructions=(
            "Forecasts (by latitude and longitude) and alerts (by state) are for the "
            "USA. For other places and distant dates check_weather gives the usual "
            "weather: climate normals of the month, not a forecast. Say so."
        ),
        lifespan=lifespan,
        limits=ServerLimits(list_ttl_ms=3_600_000),
    )
    only_reads = ToolAnnotations(read_only_hint=True, open_world_hint=True)
    made.add_tool(get_alerts, title="Weather alerts of a state", annotations=only_reads)
    made.add_tool(get_forecast, title="Weather forecast for a place", annotations=only_reads)
    _add_climate(made)
    return made


def server_of(*arguments: str) -> Server:
    """Return the server for the command line.

    Raises ValueError for any argument, and for invalid settings.
    """
    if arguments:
        raise ValueError(
            f"weather takes no arguments; {PREFIX}URL and {PREFIX}SECONDS configure it."
        )
    settings_of(WeatherSettings, PREFIX)
    return server


server = weather_server()

if __name__ == "__main__":
    server_of(*sys.argv[1:]).run()
