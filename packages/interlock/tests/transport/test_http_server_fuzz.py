"""The whole endpoint under spoiled requests: each gets one response, none of them says that the
server is at fault, and nothing is left running.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from interlock.transport.http.app import HttpApp
from interlock.wire.revisions import R2, R4
from tests.protocol.frames import initialize, notification
from tests.protocol.offered import offered
from tests.protocol.test_http_fuzz import Parts, Spoiler
from tests.transport.raw_web import House

ONE_TIME = 500  # requests at once


class Served:
    """One request through the endpoint, by its ASGI face; its client goes away once it has sent the
    body.
    """

    def __init__(self, parts: Parts) -> None:
        method, headers, twice, self.body = parts
        pairs = [*headers.items(), *((name, headers.get(name, b"")) for name in twice)]
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": method,
            "path": "/mcp",
            "root_path": "",
            "query_string": b"",
            "headers": pairs,
            "client": ("127.0.0.1", 1),
        }
        self.starts: list[dict[str, Any]] = []
        self.sent = b""
        self.whole = False
        self._asked = 0

    async def receive(self) -> dict[str, Any]:
        """The body in one piece, then the client's going away."""
        self._asked += 1
        if self._asked == 1:
            return {"type": "http.request", "body": self.body, "more_body": False}
        await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        """Note what is sent, and hold it to the rules of ASGI."""
        if message["type"] == "http.response.start":
            assert not self.starts
            self.starts.append(message)
            return
        assert self.starts
        assert not self.whole
        self.sent += message.get("body", b"")
        self.whole = not message.get("more_body", False)

    async def through(self, app: HttpApp) -> str:
        """Let the endpoint serve it; what came of it in a word."""
        await app(self.scope, self.receive, self.send)
        if not self.starts:
            return "gone"  # the client had gone before there was anything to say
        (start,) = self.starts
        headers: dict[bytes, bytes] = dict(start["headers"])
        assert len(headers) == len(start["headers"])
        assert all(b"\n" not in value and b"\r" not in value for value in headers.values())
        if headers.get(b"content-type") == b"application/json":
            json.loads(self.sent)
            assert int(headers[b"content-length"]) == len(self.sent)
        return str(start["status"])


async def storm(number: int, seed: int) -> Counter[str]:
    """So many spoiled requests to one endpoint, some of them in sessions that exist; what came of
    them.
    """
    house = House()
    house.go.set()
    app = house.server.http_app()
    spoiler = Spoiler(seed)
    found = Counter[str]()
    sessions: list[bytes] = []
    for revision in (R2, R4):
        greeting = offered(initialize(1, revision))
        headers = {name.encode(): value.encode() for name, value in greeting.headers.items()}
        served = Served(("POST", headers, [], initialize(1, revision)))
        assert await served.through(app) == "200"
        sessions.append(dict(served.starts[0]["headers"])[b"mcp-session-id"])
        headers[b"mcp-session-id"] = sessions[-1]
        assert (
            await Served(("POST", headers, [], notification("notifications/initialized"))).through(
                app
            )
            == "202"
        )
    for begin in range(0, number, ONE_TIME):
        batch = []
        for turn in range(begin, begin + ONE_TIME):
            parts = spoiler.spoiled()
            if b"mcp-session-id" in parts[1] and turn % 4 and parts[0] != "DELETE":
                parts[1][b"mcp-session-id"] = sessions[turn % len(sessions)]
            batch.append(Served(parts).through(app))
        found.update(await asyncio.gather(*batch))
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not app.calls.servings
    await app.aclose()
    await asyncio.gather(*left, return_exceptions=True)
    assert app.ticker.streams.used == 0
    return found


async def test_two_thousand_spoiled_requests():
    """The everyday round (`ERR-05`)."""
    found = await storm(2_000, seed=1)
    assert {"200", "202", "400", "403", "404", "405", "406", "415"} <= found.keys()
    assert not {status for status in found if status.startswith("5")}
    assert found["200"] > 100


@pytest.mark.endurance(seconds=3)
async def test_ten_thousand_spoiled_requests():
    """The long round."""
    found = await storm(10_000, seed=2)
    assert not {status for status in found if status.startswith("5")}
