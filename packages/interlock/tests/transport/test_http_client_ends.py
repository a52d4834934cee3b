"""A client over HTTP that is closed, in whatever state it is: everything ends, whoever waits is
told, and nothing is left behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from interlock import Client, Unreachable
from tests.transport.http_peers import both_loops, fetch_for_tests
from tests.transport.scripted_server import (
    R1,
    R4,
    R5,
    REVISIONS,
    Asked,
    ScriptedServer,
    begun,
    client_of,
    event,
    listed,
    result,
    scripted,
    talking,
    tool,
)

Doing = asyncio.Task[Any]
State = Callable[[ScriptedServer, Client], Awaitable[tuple[Doing, Asked]]]


class Forever:
    """Waits as long as it is told to; the test never lets it end."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.begun.set()
        await asyncio.Event().wait()


async def opening(server: ScriptedServer, client: Client) -> tuple[Doing, Asked]:
    """The server has not answered the first request."""
    server.on.clear()
    doing = begun(client.open())
    return doing, await server.next()


async def calling(server: ScriptedServer, client: Client) -> tuple[Doing, Asked]:
    """The server has not answered a call."""
    await client.open()
    doing = begun(client.call_tool("act"))
    return doing, await server.next("tools/call")


async def streaming(server: ScriptedServer, client: Client) -> tuple[Doing, Asked]:
    """The server answers a call with a stream that goes on."""
    doing, asked = await calling(server, client)
    await asked.streams(event(id="1"), b":\n\n")
    return doing, asked


async def reading(server: ScriptedServer, client: Client) -> tuple[Doing, Asked]:
    """Half of a JSON answer has come."""
    doing, asked = await calling(server, client)
    await asked._talk.send(
        b"HTTP/1.1 200 OK\r\nContent-Type: "
        b'application/json\r\nContent-Length: 999\r\n\r\n{"jsonrpc"'
    )
    return doing, asked


async def asking(server: ScriptedServer, client: Client) -> tuple[Doing, Asked]:
    """A person is asked in the middle of a call (handshake era), or between two rounds of it
    (stateless era).
    """
    doing, asked = await calling(server, client)
    params = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
    if client.revision == R5:
        await asked.gives(
            {
                "resultType": "input_required",
                "inputRequests": {"q": {"method": "elicitation/create", "params": params}},
                "requestState": "s",
            }
        )
    else:
        await asked.streams(
            event({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})
        )
    await person.asked.wait()
    return doing, asked


class Person:
    """Who is asked, and takes their time."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.decided = asyncio.Event()

    async def __call__(self, params: Any) -> Any:
        self.asked.set()
        await self.decided.wait()


person = Person()


async def coming_back(server: ScriptedServer, client: Client) -> tuple[Doing, Asked]:
    """The stream has broken, and the client waits before it comes back, or before it asks again."""
    await client.open()
    server.on["tools/list"] = lambda asked: asked.gives(listed(tool("act", readOnlyHint=True)))
    await client.list_tools()
    doing = begun(client.call_tool("act"))
    asked = await server.next("tools/call")
    await asked.streams(event(id="1"))
    await asked.breaks()
    await pause.begun.wait()
    return doing, asked


pause = Forever()


async def renewing(server: ScriptedServer, client: Client) -> tuple[Doing, Asked]:
    """The session is gone, and the server does not answer who wants to begin another."""
    doing, asked = await calling(server, client)
    if client.revision == R5:
        return doing, asked  # which has no sessions
    del server.on["initialize"]
    await asked.says("404 Not Found")
    return doing, await server.next("initialize")


async def watching(server: ScriptedServer, client: Client) -> tuple[Doing, Asked]:
    """Somebody waits for changes; in the handshake era on the session's stream."""
    if client_revision(client) != R5:
        del server.on["GET"]
        opened = begun(client.open())
        stream = await server.next("GET")
        await stream.streams(b":\n\n")
        await opened
        watch = await client.watch(tools=True).__aenter__()
        return begun(anext(watch)), stream
    await client.open()
    entering = begun(client.watch(tools=True).__aenter__())
    stream = await server.next("subscriptions/listen")
    about = {"io.modelcontextprotocol/subscriptionId": stream.id}
    params = {"notifications": stream.params["notifications"], "_meta": about}
    await stream.streams(
        event(
            {
                "jsonrpc": "2.0",
                "method": "notifications/subscriptions/acknowledged",
                "params": params,
            }
        )
    )
    return begun(anext(await entering)), stream


def client_revision(client: Client) -> str:
    """The one revision that a client of these tests allows."""
    return client._allowed[0]


STATES: list[State] = [
    opening,
    calling,
    streaming,
    reading,
    asking,
    coming_back,
    renewing,
    watching,
]


@pytest.mark.parametrize("given", [False, True], ids=["own fetch", "given fetch"])
@pytest.mark.parametrize("revision", [R4, R5])
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
@both_loops
async def test_closing(state: State, revision: str, given: bool) -> None:
    """Who waits gets Unreachable, the server sees its connection closed, and a second closing is no
    fault; a fetch that was given lives on.
    """
    global person, pause
    person = Person()
    pause = Forever()
    fetch = fetch_for_tests()
    options: dict[str, Any] = {"fetch": fetch} if given else {}
    async with scripted() as server:
        client = client_of(server.url, revision, elicit=person, sleep=pause, **options)
        doing, asked = await state(server, client)
        await client.aclose()
        with pytest.raises(Unreachable, match="closed"):
            await doing
        await client.aclose()
        if not asked.over.is_set():
            await asked.hung_up()
        assert not client.connected
        with pytest.raises(Unreachable):
            await client.call_tool("act")
        await fetch.aclose()


@pytest.mark.parametrize("revision", REVISIONS)
@both_loops
async def test_a_client_can_be_opened_again(revision: str) -> None:
    """As if it were new."""
    async with scripted() as server:
        client = client_of(server.url, revision)
        for _ in range(3):
            async with client:
                doing = begun(client.call_tool("act"))
                await (await server.next("tools/call")).gives(result())
                assert (await doing).text == "done"


@both_loops
async def test_closing_takes_nobody_along() -> None:
    """A task that was thrown out of its call goes on with what it does next, and can be cancelled
    as ever.
    """
    async with talking(R5) as (server, client):

        async def work() -> str:
            try:
                await client.call_tool("act")
            except Unreachable:
                await asyncio.sleep(0)
                return "went on"
            return "was answered"

        doing = begun(work())
        asked = await server.next("tools/call")
        await client.aclose()
        assert await doing == "went on"
        assert doing.cancelling() == 0
        await asked.hung_up()


@both_loops
async def test_a_call_that_is_cancelled_and_closed_at_once() -> None:
    """Both at the same moment: it ends, one way or the other."""
    async with talking(R4) as (server, client):
        doing = begun(client.call_tool("act"))
        asked = await server.next("tools/call")
        doing.cancel()
        await client.aclose()
        (ended,) = await asyncio.gather(doing, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError | Unreachable)
        await asked.hung_up()


@both_loops
async def test_closing_that_is_cancelled() -> None:
    """The server does not answer DELETE, and nobody waits for that: the connections are closed all
    the same.
    """
    async with scripted() as server:
        del server.on["DELETE"]
        client = client_of(server.url, R4)
        await client.open()
        closing = begun(client.aclose())
        end = await server.next("DELETE")
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await end.hung_up()


@both_loops
async def test_who_is_not_open() -> None:
    """A call before the opening is Unreachable, in words that say what to do."""
    client = client_of("http://127.0.0.1:1/mcp")
    with pytest.raises(Unreachable, match="async with"):
        await client.call_tool("act")
    await client.aclose()


@both_loops
async def test_closing_the_older_transport() -> None:
    """Before it is open, and while a call waits."""
    async with scripted() as server:
        server.on.clear()
        client = client_of(server.url, R1, legacy_sse=True)
        doing = begun(client.open())
        stream = await server.next("GET")
        await client.aclose()
        with pytest.raises(Unreachable):
            await doing
        await stream.hung_up()
