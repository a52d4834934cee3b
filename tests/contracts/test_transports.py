"""Every client transport passes the contract check, and the check catches transports that break a promise."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from interlock import ClientTransport, Duplex, Exchange, McpError, Socket, Stdio, Unreachable
from interlock.exchange import silent
from interlock.testing import channel_pair, check_client_transport, probe_server
from interlock.transport.memory import Memory
from interlock.wire.revisions import LAST_HANDSHAKE, NEWEST

from .makers import addresses, served

Make = Callable[[], Awaitable[ClientTransport]]


@asynccontextmanager
async def in_memory(folder: Path) -> AsyncIterator[Make]:
    """Frames handed over by hand."""

    async def make() -> ClientTransport:
        return probe_server().transport()

    yield make


@asynccontextmanager
async def over_a_channel(folder: Path) -> AsyncIterator[Make]:
    """A Duplex over any channel."""
    serving: set[asyncio.Task[None]] = set()

    async def make() -> ClientTransport:
        ours, theirs = channel_pair()
        serving.add(asyncio.create_task(probe_server().serve(theirs)))
        return Duplex(ours)

    yield make
    await asyncio.gather(*serving)


@asynccontextmanager
async def over_stdio(folder: Path) -> AsyncIterator[Make]:
    """A child process."""

    async def make() -> ClientTransport:
        return Stdio([sys.executable, "-m", "interlock.testing.probe"])

    yield make


def over_sockets(kind: str) -> Callable[[Path], object]:
    """Lines over a socket of a kind."""

    @asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[Make]:
        server, count = probe_server, 0
        async with served_by_many(folder, kind) as next_address:

            async def make() -> ClientTransport:
                return Socket(await next_address(server()))

            yield make
            assert count == 0

    return opened


@asynccontextmanager
async def served_by_many(folder: Path, kind: str):
    """A fresh server, and with it a fresh address, each time."""
    from contextlib import AsyncExitStack  # beside its only use

    async with AsyncExitStack() as stack:
        count = 0

        async def next_address(server):
            nonlocal count
            count += 1
            room = folder / str(count)
            room.mkdir()
            return await stack.enter_async_context(served(server, addresses(room)[kind]))

        yield next_address


WAYS = {
    "memory": in_memory,
    "duplex": over_a_channel,
    "stdio": over_stdio,
    "unix": over_sockets("unix"),
    "tcp": over_sockets("tcp"),
}
