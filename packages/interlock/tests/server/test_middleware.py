"""Middleware around a server: its order, what it may change or cut short, and limits over the whole
server.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from interlock import CallToolResult, Client, Context, McpError, Server, ServerLimits, TextContent
from interlock import types as t
from interlock.exchange import AnyResult, Exchange, Handler, Middleware
from interlock.server.middleware import limited
from tests.server.by_hand import R4, call, exchange, listed, text


def layer(around: Any) -> Middleware:
    """Middleware of a function that takes the exchange and the next handler."""

    def made(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            result: AnyResult = await around(x, handler)
            return result

        return handle

    return made


async def test_the_first_is_the_outermost():
    """On the way in from left to right, on the way out the other way round; `use` adds on the
    inside.
    """
    steps: list[str] = []

    def noting(name: str) -> Middleware:
        async def around(x: Exchange, handler: Handler) -> AnyResult:
            steps.append(f"{name} in")
            try:
                return await handler(x)
            finally:
                steps.append(f"{name} out")

        return layer(around)

    server = Server("layers", middleware=[noting("a"), noting("b")])
    server.use(noting("c"))

    @server.tool
    async def do() -> str:
        steps.append("tool")
        return "done"

    assert await text(server, "do") == "done"
    assert steps == ["a in", "b in", "c in", "tool", "c out", "b out", "a out"]


async def test_a_layer_may_answer_itself():
    """What is inside of it is never reached."""

    async def around(x: Exchange, handler: Handler) -> AnyResult:
        if x.method == "tools/call":
            return CallToolResult(content=[TextContent("from the layer")])
        return await handler(x)

    server = Server("layers", middleware=[layer(around)])

    @server.tool
    async def do() -> str:
        raise AssertionError("this is never reached")

    async with Client(server) as client:
        assert (await client.call_tool("do")).text == "from the layer"
        assert [tool.name for tool in await client.list_tools()] == ["do"]


@pytest.mark.parametrize("revision", [R4, "2026-07-28"])
async def test_a_layer_may_change_what_goes_in_and_out(revision: str):
    """Another tool than was asked for, and words added to its result."""

    async def around(x: Exchange, handler: Handler) -> AnyResult:
        if x.method != "tools/call":
            return await handler(x)
        result = await handler(replace(x, params=replace(x.params, name=x.params.name.lower())))
        assert isinstance(result, CallToolResult)
        return replace(
            result,
            content=[*result.content, TextContent("and more")],
            meta={"example.com/layer": 1},
        )

    server = Server("layers", middleware=[layer(around)])

    @server.tool
    async def do(ctx: Context) -> str:
        return "done"

    async with Client(server, revision=revision) as client:
        result = await client.call_tool("DO")
        assert [block.text for block in result.content if isinstance(block, TextContent)] == [
            "done",
            "and more",
        ]
        assert result.meta is not None
        assert result.meta["example.com/layer"] == 1


async def test_a_layer_sees_every_exchange_and_may_refuse_it():
    """Lists, reads and discovery as well as calls; an McpError that it raises is the answer."""
    seen: list[str] = []

    async def around(x: Exchange, handler: Handler) -> AnyResult:
        seen.append(x.method)
        if x.method == "resources/read":
            raise McpError(-32001, "Show me your badge.")
        return await handler(x)

    server = Server("layers", middleware=[layer(around)])
    server.add_resource("docs://a", "text")
    async with Client(server) as client:
        await client.list_resources()
        with pytest.raises(McpError, match="badge") as caught:
            await client.read_resource("docs://a")
    assert caught.value.code == -32001
    assert seen == ["server/discover", "resources/list", "resources/read"]


class Rooms:
    """A server with a tool that stays until it is let go."""

    def __init__(self, **options: Any) -> None:
        self.server = Server("rooms", **options)
        self.go = asyncio.Event()
        self.entered = asyncio.Semaphore(0)
        self.order: list[int] = []
        self.server.add_tool(self.stay, name="stay")

    async def stay(self, n: int) -> int:
        self.order.append(n)
        self.entered.release()
        await self.go.wait()
        return n

    def begin(self, *numbers: int) -> list[asyncio.Task[CallToolResult]]:
        return [asyncio.create_task(call(self.server, "stay", {"n": n})) for n in numbers]


async def test_the_whole_server_has_a_limit():
    """Two at once, one more waits, and the fourth is refused at once, whatever it wants."""
    rooms = Rooms(limits=ServerLimits(concurrency=2, queue=1))
    calls = rooms.begin(1, 2, 3)
    async with asyncio.timeout(30):
        await rooms.entered.acquire()
        await rooms.entered.acquire()
        with pytest.raises(
            McpError, match=r"The server rooms is busy: 2 calls are running and 1 wait"
        ) as caught:
            await listed(rooms.server, "tools/list")
        assert (caught.value.code, caught.value.data) == (t.INTERNAL_ERROR, {"reason": "busy"})
        assert rooms.order == [1, 2]
        rooms.go.set()
        assert [result.text for result in await asyncio.gather(*calls)] == ["1", "2", "3"]
    assert (await listed(rooms.server, "tools/list"))["tools"]


async def test_who_gives_up_waiting_makes_room():
    """A call that is cancelled while it waits is not counted any more."""
    rooms = Rooms(limits=ServerLimits(concurrency=1, queue=1))
    running, waiting = rooms.begin(1, 2)
    async with asyncio.timeout(30):
        await rooms.entered.acquire()
        waiting.cancel()
        (next_one,) = rooms.begin(3)
        rooms.go.set()
        assert [(await running).text, (await next_one).text] == ["1", "3"]
    assert waiting.cancelled()
    assert rooms.order == [1, 3]


async def test_subscriptions_take_no_place():
    """They stay open for long, and would hold up all else."""
    gate = limited(1, 0, "The server")
    server = Server("rooms", middleware=[gate])
    server.add_resource("docs://a", "text")
    async with Client(server) as client, client.watch(resources=True) as changes:
        assert changes.honoured.resources_list_changed
        assert (await client.read_resource("docs://a")).contents[0].text == "text"


async def test_the_limit_stands_outside_of_the_middleware():
    """What an author's layers do counts too, and a refusal costs them nothing."""
    seen: list[str] = []

    async def around(x: Exchange, handler: Handler) -> AnyResult:
        seen.append(x.method)
        return await handler(x)

    rooms = Rooms(limits=ServerLimits(concurrency=1, queue=0), middleware=[layer(around)])
    (running,) = rooms.begin(1)
    async with asyncio.timeout(30):
        await rooms.entered.acquire()
        with pytest.raises(McpError, match="busy"):
            await rooms.server.handle(exchange("server/discover", t.DiscoverRequestParams()))
        rooms.go.set()
        await running
    assert seen == ["tools/call"]
