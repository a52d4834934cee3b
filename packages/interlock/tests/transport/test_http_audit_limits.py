"""Whose requests are counted together, and how many calls one session may have at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Limits, Rate, Server, ServerLimits
from interlock.transport.http.app import HttpApp
from interlock.wire.revisions import R4
from tests.protocol.frames import request
from tests.protocol.offered import modern
from tests.transport.raw_web import House, call, serving, written


async def ask(app: HttpApp, address: str | None) -> int:
    """The status of one request from an address, as an ASGI server hands it on."""
    head, _, body = written(modern("server/discover")).partition(b"\r\n\r\n")
    pairs = [line.split(b": ", 1) for line in head.split(b"\r\n")[1:]]
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    client = None if address is None else (address, 40_000)
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "headers": [(name, value) for name, value in pairs],
        "client": client,
    }
    await app(scope, receive, send)
    return statuses[0]


@pytest.mark.parametrize(
    "one, other, together",
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::1", "127.0.0.1", False),
        (None, None, True),
        ("unix:", "unix:", True),
    ],
)
async def test_whose_requests_are_counted_together(
    one: str | None, other: str | None, together: bool
):
    """Those of one address, and of version 6 those of one network, since everybody has 2 to the
    64th of them; an address of version 4 that a socket for both writes as one of version 6 is still
    its own.
    """
    app = Server("counted").http_app(limits=Limits(rate=Rate(per_second=0.001, burst=3)))
    assert [await ask(app, one) for _ in range(4)] == [200, 200, 200, 429]
    assert await ask(app, other) == (429 if together else 200)
    await app.aclose()


async def test_one_session_cannot_take_all_the_calls():
    """`calls_per_peer` holds over HTTP too: 503 with the id of the request, and other sessions go
    on; room that is made is room.
    """
    house = House(limits=ServerLimits(calls_per_peer=2))
    async with serving(house.server) as web:
        mine = await web.greet(R4)
        other = await web.greet(R4)

        def work(n: int) -> bytes:
            return request(
                n,
                "tools/call",
                {"name": "work", "arguments": {"name": f"w{n}"}, "_meta": {"progressToken": n}},
            )

        lines = [await mine.begin(work(n)) for n in (1, 2)]
        reply = await mine.ask(work(3))
        assert (reply.status, reply.json["id"], reply.json["error"]["data"]) == (
            503,
            3,
            {"reason": "busy", "resource": "calls in this session", "retryAfter": 1},
        )
        assert (
            await other.ask(request(1, "tools/call", {"name": "add", "arguments": {"a": 1}}))
        ).status == 200
        assert (await web.ask(call("add", {"a": 1}))).status == 200
        house.go.set()
        for line in lines:
            await line.rest()
        async with asyncio.timeout(10):
            while (await mine.ask(work(4))).status == 503:
                pass


async def test_events_that_are_no_longer_kept_are_refused_in_words():
    """A session keeps the events of its last streams only; who comes back for older ones is told
    so, and the newest are still there (`HTL-35`).
    """
    async with serving(House().server) as web:
        mine = await web.greet(R4)
        params = {"name": "chatter", "_meta": {"progressToken": 1}}
        first: list[str] = []
        for n in range(70):
            reply = await mine.ask(request(n, "tools/call", params))
            first.append(reply.events[0].id or "")
        for last, status in ((first[0], 400), (first[-1], 200)):
            line = await mine.listen(last)
            assert line.status == status
            told = await line.rest()
            assert status == 200 or "no longer kept" in told.json["error"]["message"]
