"""Calls of the stateless era between light and grown: what they leave behind, who counts them, and
who ends them.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from interlock import Context, McpError, Server
from interlock.transport.http.limits import Limits
from tests.protocol.offered import Offered
from tests.transport.raw_web import call

PATIENCE = 10.0


class StatelessApp:
    """An endpoint that is asked without a socket, and tools that wait until they are let go."""

    def __init__(self, **options: Any) -> None:
        self.go = asyncio.Event()
        self.runs = asyncio.Event()
        server = Server("waiting")

        @server.tool
        async def add(a: int) -> int:
            return a + 1

        @server.tool
        async def wait() -> str:
            self.runs.set()
            await self.go.wait()
            return "done"

        @server.tool
        async def tell(ctx: Context) -> str:
            ctx.log.error("told")
            return "done"

        @server.tool
        async def leave(ctx: Context) -> str:
            async def tell_late() -> None:
                await self.go.wait()
                ctx.log.error("told too late")

            self.late = asyncio.create_task(tell_late())
            return "done"

        @server.tool
        async def refuse() -> str:
            raise McpError(4050, "not today")

        self.http_app = server.http_app(**options)

    async def ask(self, offer: Offered) -> tuple[int, bytes]:
        """The status and the body of the response."""
        body = json.dumps(offer.body).encode()
        headers = [(name.lower().encode(), value.encode()) for name, value in offer.headers.items()]
        sent: list[Any] = []
        come = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if come:
                return come.pop()
            return await asyncio.Future()

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
        async with asyncio.timeout(PATIENCE):
            await self.http_app(scope, receive, send)
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)

    @property
    def left(self) -> int:
        """Calls that the endpoint still knows of."""
        return len(self.http_app.ticker.light) + len(self.http_app.calls.servings)


@pytest.mark.parametrize(
    "name, arguments, status, words",
    [
        ("add", {"a": 1}, 200, b'{"result":2}'),
        ("add", {"a": "no"}, 200, b'"isError":true'),
        ("tell", {}, 200, b"notifications/message"),
        ("refuse", {}, 200, b"not today"),
        ("nothing", {}, 200, b"Unknown tool"),
    ],
)
async def test_a_call_that_is_over_leaves_nothing_behind(
    name: str, arguments: dict[str, Any], status: int, words: bytes
):
    """However it ends: plainly, as a stream, as an error (`HTM-06`, `HTM-24`)."""
    app = StatelessApp()
    offer = call(name, arguments)
    offer.body["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "info"
    found, body = await app.ask(offer)
    assert (found, words in body) == (status, True), body
    assert app.left == 0
    await app.http_app.aclose()


async def test_what_a_call_says_after_its_answer_leaves_nothing_behind():
    """A task that outlives its call has nobody to tell, and the endpoint makes nothing for it."""
    app = StatelessApp()
    offer = call("leave", {})
    offer.body["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "info"
    assert (await app.ask(offer))[0] == 200
    app.go.set()
    await app.late
    assert app.left == 0
    await app.http_app.aclose()


async def test_a_call_that_has_said_nothing_yet_is_counted():
    """One more than may run at once is refused, though the one that runs has made nothing but its
    task.
    """
    app = StatelessApp(limits=Limits(calls=1))
    first = asyncio.create_task(app.ask(call("wait", {})))
    await app.runs.wait()
    assert (await app.ask(call("add", {"a": 1})))[0] == 503
    app.go.set()
    assert (await first)[0] == 200
    assert (await app.ask(call("add", {"a": 1})))[0] == 200
    assert app.left == 0
    await app.http_app.aclose()


async def test_a_call_that_has_said_nothing_yet_is_told_of_the_end():
    """The server is shut down before the slow clock has seen the call: its client is answered all
    the same.
    """
    app = StatelessApp()
    first = asyncio.create_task(app.ask(call("wait", {})))
    await app.runs.wait()
    await app.http_app.drain(0)
    assert b'"reason":"shutdown"' in (await first)[1]
    assert app.left == 0
    await app.http_app.aclose()


async def test_a_task_that_is_cancelled_from_outside_stays_cancelled():
    """Whoever serves the endpoint may end its task; that is passed on, and nothing stays behind."""
    app = StatelessApp()
    first = asyncio.create_task(app.ask(call("wait", {})))
    await app.runs.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert app.left == 0
    await app.http_app.aclose()
