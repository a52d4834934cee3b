"""Every client transport passes the contract check, and the check catches transports that break a
promise.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from interlock import ClientTransport, Duplex, McpError, Socket, Stdio, TextContent, Unreachable
from interlock.client.rounds import rounds
from interlock.exchange import silent
from interlock.testing import channel_pair, check_client_transport, probe_server
from interlock.transport.memory import Memory
from interlock.types import CallToolResult
from interlock.wire.revisions import NEWEST
from tests.contracts.makers import addresses, served

Make = Callable[[], Awaitable[ClientTransport]]


@asynccontextmanager
async def in_memory(folder: Path) -> AsyncIterator[Make]:
    """Frames handed over by hand."""

    async def make() -> ClientTransport:
        return probe_server().transport()

    yield make


@asynccontextmanager
async def over_a_channel(folder: Path) -> AsyncIterator[Make]:
    """A Duplex over a channel of somebody's own."""
    serving: list[asyncio.Task[None]] = []

    async def make() -> ClientTransport:
        ours, theirs = channel_pair()
        serving.append(asyncio.create_task(probe_server().serve(theirs)))
        return Duplex(ours)

    yield make
    await asyncio.gather(*serving)


@asynccontextmanager
async def over_stdio(folder: Path) -> AsyncIterator[Make]:
    """A child process."""

    async def make() -> ClientTransport:
        return Stdio([sys.executable, "-m", "interlock.testing.probe"])

    yield make


@asynccontextmanager
async def over_sockets(folder: Path, kind: str) -> AsyncIterator[Make]:
    """Lines over a socket, to a fresh server each time."""
    async with AsyncExitStack() as servers:
        rooms = iter(range(1000))

        async def make() -> ClientTransport:
            room = folder / str(next(rooms))
            room.mkdir()
            return Socket(
                await servers.enter_async_context(served(probe_server(), addresses(room)[kind]))
            )

        yield make


ROADS = {
    "memory": in_memory,
    "duplex": over_a_channel,
    "stdio": over_stdio,
    "unix": lambda folder: over_sockets(folder, "unix"),
    "tcp": lambda folder: over_sockets(folder, "tcp"),
}


@pytest.mark.parametrize("road", ROADS)
async def test_transports_keep_their_promises(road: str, tmp_path):
    """In memory, over any channel, to a child process, and to Unix and TCP sockets (`RPC-30`,
    `CAN-07`, `RPC-05`).
    """
    async with ROADS[road](tmp_path) as make:
        await check_client_transport(make)


# -- a check that cannot fail shows nothing -------------------------------------------------------


class Stubborn(Memory):
    """Speaks the newest revision whatever is allowed."""

    async def open(self, hello):
        """Open as it likes."""
        return await super().open(replace(hello, revisions=(NEWEST,)))


class Polite(Memory):
    """Takes errors for results."""

    async def __call__(self, exchange):
        """Never raises McpError."""
        try:
            return await super().__call__(exchange)
        except McpError as bad:
            return CallToolResult(content=[TextContent(bad.message)], is_error=True)


class Muddled(Memory):
    """Gives everybody the answer of the caller before."""

    last = None

    async def __call__(self, exchange):
        """Give an answer, not always the right one."""
        result = await super().__call__(exchange)
        self.last, answer = result, self.last or result
        return answer


class Narrow(Memory):
    """Cuts what is long."""

    async def __call__(self, exchange):
        """Cut the text."""
        result = await super().__call__(exchange)
        if isinstance(result, CallToolResult) and len(result.text) > 65536:
            return replace(result, content=[TextContent(result.text[:65536])])
        return result


class Deaf(Memory):
    """Drops notifications."""

    async def __call__(self, exchange):
        """Nobody hears anything."""
        return await super().__call__(
            replace(exchange, notify=silent) if exchange.params.name == "count" else exchange
        )


class Discreet(Memory):
    """Tells nobody what belongs to no request."""

    async def open(self, hello):
        """Open, and hear nothing."""
        return await super().open(replace(hello, notify=silent))


class Meddling(Memory):
    """Answers questions that came as a result."""

    async def __call__(self, exchange):
        """Carry the rounds."""
        return await rounds()(super().__call__)(exchange)


class Unstoppable(Memory):
    """Lets calls run on that nobody waits for."""

    async def __call__(self, exchange):
        """Run it elsewhere."""
        return await asyncio.shield(asyncio.ensure_future(super().__call__(exchange)))


class Sleepy(Memory):
    """Forgets at its closing that somebody waits."""

    async def aclose(self):
        """Let them wait."""
        self._inside.clear()
        waiting = self._conversation._waiting if self._conversation is not None else {}
        waiting.clear()
        self._conversation = self._serving = None


class Undead(Memory):
    """Opens again by itself."""

    async def __call__(self, exchange):
        """Call, closed or not."""
        try:
            return await super().__call__(exchange)
        except Unreachable:
            if exchange.params.name != "echo":
                raise
            return CallToolResult(content=[TextContent("?")])


BROKEN = {
    Stubborn: "was negotiated",
    Polite: "an unknown tool must be an error",
    Muddled: "`echo` returned|got another's response|an error",
    Narrow: "was returned changed|has another size",
    Deaf: "its exchange received",
    Discreet: "the Hello's notify received",
    Meddling: "must be returned unanswered",
    Unstoppable: "cancels its call at the server",
    Sleepy: "closing ends waiting calls",
    Undead: "a call after closing returned",
}


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
async def test_broken_transports_are_caught(kind: type[Memory]):
    """Each promise that is broken is the one that the error names."""

    async def make() -> ClientTransport:
        server = probe_server()
        return kind(server.handler, server.identity)

    with pytest.raises(AssertionError, match=BROKEN[kind]):
        await check_client_transport(make, patience=1.0)
