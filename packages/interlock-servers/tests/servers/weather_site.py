"""A weather service on loopback that answers as the real one does, misfortunes included."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.loopback import Loopback, Quiet

ALERT = {
    "properties": {
        "event": "Wind Advisory",
        "headline": "Wind Advisory until this evening",
        "areaDesc": "Coast; Hills",
        "severity": "Moderate",
        "urgency": "Expected",
        "expires": "2026-11-21T18:00:00-08:00",
        "description": "Gusts up to 50 mph.\n",
        "instruction": "Tie down what may fly.",
    }
}
PERIODS = [
    {
        "number": n,
        "name": name,
        "startTime": f"2026-11-21T{n:02}:00:00-08:00",
        "isDaytime": n % 2 == 0,
        "temperature": 60 + n,
        "temperatureUnit": "F",
        "probabilityOfPrecipitation": {
            "unitCode": "wmoUnit:percent",
            "value": None if n == 0 else 10 * n,
        },
        "windSpeed": "5 to 10 mph",
        "windDirection": "NW",
        "shortForecast": "Sunny",
        "detailedForecast": f"Forecast number {n}.",
    }
    for n, name in enumerate(
        ["This Afternoon", "Tonight", "Sunday", "Sunday Night", "Monday", "Monday Night", "Tuesday"]
    )
]


class WeatherSite(Loopback):
    """The service: its address, the requests that came, and how it is to misbehave."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []  # path, User-Agent
        self.trouble: tuple[int, bytes] | None = None  # status and body to answer everything with
        self.elsewhere = False  # whether the forecast is said to be on another host
        self.silent = threading.Event()  # while set nothing is answered
        self.over = threading.Event()
        super().__init__(self._handler())
        self.url = self.root

    def close(self) -> None:
        """End the service and its threads."""
        self.over.set()
        super().close()

    def answer(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers for a path."""
        if self.trouble is not None:
            return (*self.trouble, {})
        if path == "/alerts/active/area/CA":
            return self._geo(
                {
                    "type": "FeatureCollection",
                    "features": [ALERT, {"properties": {"event": "Frost Advisory"}}],
                }
            )
        if path == "/alerts/active/area/NV":
            return self._geo({"type": "FeatureCollection", "features": []})
        if path.startswith("/alerts/"):
            return self._problem(400, "Bad Request", "The area is not one that is known.")
        if path == "/points/38.58,-121.49":
            return 301, b"", {"Location": "/points/38.5800,-121.4900"}
        if path in ("/points/38.5800,-121.4900", "/points/40.5,-100", "/points/40.5,-100.0"):
            host = "https://elsewhere.invalid" if self.elsewhere else self.url
            city = {"properties": {"city": "Sacramento", "state": "CA"}}
            return self._geo(
                {
                    "properties": {
                        "forecast": f"{host}/gridpoints/STO/41,67/forecast",
                        "relativeLocation": city,
                    }
                }
            )
        if path == "/gridpoints/STO/41,67/forecast":
            return self._geo({"properties": {"units": "us", "periods": PERIODS}})
        return self._problem(
            404,
            "Data Unavailable For Requested Point",
            f"Unable to provide data for requested point {path[8:]}",
        )

    @staticmethod
    def _geo(value: Any) -> tuple[int, bytes, dict[str, str]]:
        return 200, json.dumps(value).encode(), {"Content-Type": "application/geo+json"}

    @staticmethod
    def _problem(status: int, title: str, detail: str) -> tuple[int, bytes, dict[str, str]]:
        return (
            status,
            json.dumps({"title": title, "status": status, "detail": detail}).encode(),
            {"Content-Type": "application/problem+json"},
        )

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.requests.append((self.path, self.headers.get("User-Agent", "")))
                if site.silent.is_set():
                    site.over.wait(10)
                    return
                status, body, headers = site.answer(self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler
