"""A hostile anonymous client beside honest ones: sessions, running calls, suspended calls, streams
and memory are shared between callers, and everything is given back on every path.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import Context, Limits, Rate, Server, ServerLimits
from interlock.wire.revisions import R4
from tests.protocol.frames import initialize
from tests.protocol.offered import Offered, modern, offered
from tests.transport.raw_web import call, listening

PATIENCE = 10.0
STRANGER = "203.0.113.66"
STATM = Path("/proc/self/statm")


class Answer:
    """What came back."""

    def __init__(self, sent: list[Any]) -> None:
        self.status: int = sent[0]["status"]
        self.headers = dict(sent[0]["headers"])
        self.body = b"".join(message.get("body", b"") for message in sent)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Place:
    """An endpoint that is asked without a socket, from any address."""

    def __init__(self, limits: Limits, server_limits: ServerLimits | None = None) -> None:
        self.go = asyncio.Event()
        self.starts: list[str] = []
        self.ends: list[str] = []
        server = Server("place", limits=server_limits)

        @server.tool
        async def add(a: int) -> int:
            return a + 1

        @server.tool
        async def wait(name: str) -> str:
            self.starts.append(name)
            try:
                await self.go.wait()
            finally:
                self.ends.append(name)
            return name

        @server.tool
        async def fail(text: str) -> str:
            raise RuntimeError(text[:10])

        @server.tool
        async def ask(name: str, ctx: Context, text: str = "") -> str:
            self.starts.append(name)
            return str(await ctx.elicit("Sure?", bool))

        self.server = server
        self.app = server.http_app(limits=limits)

    async def send(self, offer: Offered, address: str) -> Answer:
        """Send a request, and read the whole response."""
        body = offer.body if isinstance(offer.body, bytes) else json.dumps(offer.body).encode()
        headers = [(name.lower().encode(), value.encode()) for name, value in offer.headers.items()]
        sent: list[Any] = []
        come = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if come:
                return come.pop()
            return await asyncio.Future()

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/mcp",
            "headers": headers,
            "client": (address, 1234),
        }
        async with asyncio.timeout(PATIENCE):
            await self.app(scope, receive, send)
        return Answer(sent)

    async def open_session(self, address: str) -> Answer:
        """`initialize`."""
        return await self.send(offered(initialize(0, R4)), address)

    @property
    def used(self) -> dict[str, int]:
        """What is in use of each quota."""
        return {name: usage.used for name, usage in self.app.usage().items()}

    async def is_idle(self) -> bool:
        """Whether nothing is in use, once what has ended has been cleaned up."""
        for _ in range(10):
            await asyncio.sleep(0)
        return not any(self.used.values())


def resident() -> int:
    """The resident memory of this process, in bytes."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that happens in this event loop."""
    while not condition():  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0.001)


def confirmed(question: Offered, answer: Answer) -> Offered:
    """The retry that answers a question with yes."""
    asked = answer.json["result"]
    params = {name: value for name, value in question.body["params"].items() if name != "_meta"}
    yes = {"action": "accept", "content": {"value": True}}
    params["inputResponses"] = dict.fromkeys(asked["inputRequests"], yes)
    params["requestState"] = asked["requestState"]
    return modern("tools/call", params)


@pytest.mark.parametrize(
    "times", [3000, pytest.param(100_000, marks=pytest.mark.endurance(seconds=20))]
)
async def test_honest_clients_open_sessions_while_a_stranger_opens_thousands(times: int):
    """The stranger has all sessions; each honest client gets one, at the cost of the stranger's,
    and keeps it.
    """
    most, every = times // 15, times // 30
    place = Place(Limits(sessions=most))
    honest: list[Answer] = []
    refused = 0
    for n in range(times):
        answer = await place.open_session(STRANGER)
        if answer.status == 503:
            refused += 1
            assert int(answer.headers[b"retry-after"]) > 0
            assert answer.json["error"]["data"]["resource"] == "sessions"
        if n % every == every - 1:
            honest.append(await place.open_session(f"198.51.100.{n // every}"))
    assert [answer.status for answer in honest[:30]] == [200] * 30
    assert times - most <= refused < times - most + 31
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    for n, answer in enumerate(honest[:30]):
        session = answer.headers[b"mcp-session-id"].decode()
        again = await place.send(
            offered(ping, mcp_session_id=session, mcp_protocol_version=R4), f"198.51.100.{n}"
        )
        assert again.status == 200
    await place.app.aclose()


async def test_a_stranger_with_a_whole_network_counts_once():
    """The addresses of an IPv6 /64 are one holder."""
    place = Place(Limits(sessions=20))
    for n in range(40):
        await place.open_session(f"2001:db8:0:1::{n:x}")
    assert (await place.open_session("2001:db8:0:2::1")).status == 200
    assert (await place.open_session("2001:db8:0:1::ffff")).status == 503
    await place.app.aclose()


async def test_a_stranger_leaves_room_for_the_calls_of_others():
    """Where it runs as many calls as it may, it waits, and then is refused; others are not even
    slowed down.
    """
    place = Place(Limits(calls=20, queue=5, queue_seconds=0.2))
    tasks = [
        asyncio.create_task(place.send(call("wait", {"name": str(n)}), STRANGER)) for n in range(30)
    ]
    await until(lambda: place.app.usage()["calls"].used >= 18)
    assert (await place.send(call("add", {"a": 1}), "198.51.100.1")).status == 200
    refused = [
        task.result()
        for task in (await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED))[0]
    ]
    assert {answer.status for answer in refused} == {503}
    assert refused[0].json["error"]["data"]["resource"] == "calls"
    await until(lambda: sum(task.done() for task in tasks) >= 12)
    place.go.set()
    statuses = [answer.status for answer in await asyncio.gather(*tasks)]
    assert (statuses.count(200), statuses.count(503)) == (18, 12)
    assert await place.is_idle()
    await place.app.aclose()


async def test_calls_wait_in_turn_and_the_end_of_the_server_refuses_them():
    """A call that waits runs when another one ends; what waits when the server shuts down is
    refused.
    """
    place = Place(Limits(calls=1, queue_seconds=PATIENCE))
    first = asyncio.create_task(place.send(call("wait", {"name": "first"}), STRANGER))
    await until(lambda: place.starts)
    tasks = [
        asyncio.create_task(place.send(call("add", {"a": 1}), f"198.51.100.{n}")) for n in range(3)
    ]
    await asyncio.sleep(0)
    assert place.used["queue"] == 3
    place.go.set()
    answers = await asyncio.gather(first, *tasks)
    assert [answer.status for answer in answers] == [200] * 4
    assert await place.is_idle()
    place.go.clear()
    first = asyncio.create_task(place.send(call("wait", {"name": "second"}), STRANGER))
    await until(lambda: len(place.starts) >= 2)
    waiting = asyncio.create_task(place.send(call("add", {"a": 1}), "198.51.100.1"))
    cancelled = asyncio.create_task(place.send(call("add", {"a": 1}), "198.51.100.2"))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait({cancelled})
    assert place.used["queue"] == 1
    await place.app.drain(0)
    assert (await waiting).status == 503
    assert b"shutdown" in (await first).body
    assert await place.is_idle()
    await place.app.aclose()


async def test_large_asking_calls_stay_inside_the_memory_budget():
    """A stranger's suspended calls hold no more than the budget, whatever it sends; an honest
    client's large call is let in, and confirmed once.
    """
    budget = 2 * 1024 * 1024
    place = Place(Limits(), ServerLimits(held_bytes=budget))
    statuses: list[int] = []
    for n in range(60):
        question = call("ask", {"name": f"s{n}", "text": "x" * 20_000})
        answer = await place.send(question, STRANGER)
        statuses.append(answer.status)
        assert place.used["memory"] <= budget
    assert 15 < statuses.count(200) < 30
    assert statuses[-1] == 503
    assert answer.json["error"]["data"] == {
        "reason": "busy",
        "resource": "large requests",
        "retryAfter": 1,
    }
    assert place.app.usage()["memory"].refused == statuses.count(503)
    question = call("ask", {"name": "honest", "text": "y" * 60_000})
    asked = await place.send(question, "198.51.100.1")
    assert asked.status == 200
    assert place.app.usage()["memory"].evicted  # the oldest of the stranger's made room
    done = await place.send(confirmed(question, asked), "198.51.100.1")
    assert done.json["result"]["content"][0]["text"] == "True"
    assert place.starts.count("honest") == 1
    await place.server.suspended_calls.aclose()
    assert await place.is_idle()
    await place.app.aclose()


@pytest.mark.skipif(not STATM.exists(), reason="the memory of the process is read from /proc")
@pytest.mark.parametrize(
    "calls", [300, pytest.param(10_000, marks=pytest.mark.endurance(seconds=8))]
)
async def test_the_process_stays_inside_the_memory_budget(calls: int):
    """The resident memory grows by no more than the budget while a stranger sends large asking
    calls, and an honest client is answered all the while.
    """
    budget = 96 * 1024 * 1024
    place = Place(Limits(), ServerLimits(held_bytes=budget))
    large = call("ask", {"name": "s", "text": "x" * 1_000_000})
    encoded = Offered(headers=large.headers, body=json.dumps(large.body).encode())
    await place.send(encoded, STRANGER)
    before = resident()
    statuses: list[int] = []
    for n in range(calls):
        statuses.append((await place.send(encoded, STRANGER)).status)
        if n % 100 == 99:
            question = call("ask", {"name": f"h{n}", "text": "y" * 10_000})
            asked = await place.send(question, "198.51.100.1")
            done = await place.send(confirmed(question, asked), "198.51.100.1")
            assert done.json["result"]["content"][0]["text"] == "True"
            assert resident() - before < budget
    assert 15 < statuses.count(200) < 40
    await place.server.suspended_calls.aclose()
    assert await place.is_idle()
    await place.app.aclose()


async def test_subscriptions_hold_memory():
    """The parameters of a subscription are counted as long as its stream is open."""
    place = Place(Limits(), ServerLimits(held_bytes=200_000, share=1.0))
    large = listening(resourceSubscriptions=["x:" + "y" * 20_000])
    first = asyncio.create_task(place.send(large, STRANGER))
    await until(lambda: place.used["memory"] > 80_000)
    second = asyncio.create_task(place.send(large, STRANGER))
    await until(lambda: place.used["streams"] == 2)
    refused = await place.send(large, STRANGER)
    assert refused.status == 503
    assert refused.json["error"]["data"]["resource"] == "large requests"
    for task in (first, second):
        task.cancel()
    await asyncio.wait({first, second})
    assert await place.is_idle()
    await place.app.aclose()


async def test_a_stranger_makes_nobody_run_a_call_twice():
    """However many calls it leaves suspended, the honest client's is suspended too, so that what it
    did before its question is done once; the stranger's oldest call runs again.
    """
    place = Place(Limits(), ServerLimits(suspended_calls=10))
    first = call("ask", {"name": "s0"})
    asked_first = await place.send(first, STRANGER)
    for n in range(1, 30):
        assert (await place.send(call("ask", {"name": f"s{n}"}), STRANGER)).status == 200
    quota = place.server.suspended_calls.quota
    assert quota.used == 9
    for n in range(4):
        question = call("ask", {"name": f"h{n}"})
        asked = await place.send(question, f"198.51.100.{n}")
        done = await place.send(confirmed(question, asked), f"198.51.100.{n}")
        assert done.json["result"]["content"][0]["text"] == "True"
        assert place.starts.count(f"h{n}") == 1
    held = [await place.send(call("ask", {"name": f"k{n}"}), f"198.51.100.{n}") for n in range(4)]
    assert [answer.status for answer in held] == [200] * 4
    assert quota.used <= 10
    assert quota.usage().evicted >= 3
    done = await place.send(confirmed(first, asked_first), STRANGER)
    assert done.json["result"]["content"][0]["text"] == "True"
    assert place.starts.count("s0") == 2
    await place.server.suspended_calls.aclose()
    assert await place.is_idle()
    await place.app.aclose()


@pytest.mark.parametrize("size", [10, 20_000])
async def test_everything_is_given_back_on_every_path(size: int):
    """By an answer, an error, a cancellation, a refusal and an expired question."""
    place = Place(Limits(calls=3, queue=1, queue_seconds=0.01))
    text = "x" * size
    assert (await place.send(call("add", {"a": text}), STRANGER)).status == 200
    assert (await place.send(call("fail", {"text": text}), STRANGER)).status == 200
    assert (await place.send(call("none", {"text": text}), STRANGER)).status in (200, 400, 404)
    tasks = [
        asyncio.create_task(place.send(call("wait", {"name": text}), STRANGER)) for _ in range(3)
    ]
    await until(lambda: len(place.starts) >= 3)
    assert (await place.send(call("add", {"a": text}), STRANGER)).status == 503
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert (await place.send(call("ask", {"name": "q", "text": text}), STRANGER)).status == 200
    assert place.server.suspended_calls.quota.used == 1
    suspended = place.server.suspended_calls
    suspended._expire(next(iter(suspended._suspended.values())))
    assert await place.is_idle()
    await place.app.aclose()


async def test_streams_are_shared():
    """A stranger that listens as often as it may leaves streams for others."""
    place = Place(Limits(streams=20))
    listeners = [
        asyncio.create_task(place.send(listening(toolsListChanged=True), STRANGER))
        for _ in range(30)
    ]
    await until(lambda: sum(task.done() for task in listeners) >= 12)
    refused = [task.result() for task in listeners if task.done()]
    assert {answer.status for answer in refused} == {503}
    assert refused[0].json["error"]["data"]["resource"] == "streams"
    honest = asyncio.create_task(place.send(listening(toolsListChanged=True), "198.51.100.1"))
    await until(lambda: place.used["streams"] >= 19)
    for task in (*listeners, honest):
        task.cancel()
    await asyncio.wait({*listeners, honest})
    assert await place.is_idle()
    await place.app.aclose()


async def test_a_busy_server_lets_nobody_ask_too_often():
    """The rate holds while more than half of the calls run, and for each caller by itself."""
    place = Place(Limits(calls=10, busy_rate=Rate(per_second=1 / 3600, burst=7)))
    add = call("add", {"a": 1})
    for _ in range(20):
        assert (await place.send(add, STRANGER)).status == 200
    tasks = [
        asyncio.create_task(place.send(call("wait", {"name": "w"}), STRANGER)) for _ in range(6)
    ]
    await until(lambda: len(place.starts) == 6)
    statuses = [(await place.send(add, STRANGER)).status for _ in range(8)]
    assert statuses == [200] * 7 + [429]
    assert int((await place.send(add, STRANGER)).headers[b"retry-after"]) > 3000
    assert (await place.send(add, "198.51.100.1")).status == 200
    place.go.set()
    await asyncio.gather(*tasks)
    assert (await place.send(add, STRANGER)).status == 200
    assert await place.is_idle()
    await place.app.aclose()
