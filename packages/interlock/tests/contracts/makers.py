"""Pairs of channels of every kind, and servers that socket transports can reach."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from interlock import Channel, Server
from interlock.transport.pipes import PipeChannel, ThreadChannel
from interlock.transport.sockets import Address, connect, listen

Pair = tuple[Channel, Channel]


def over_pipes(kind: type[PipeChannel] | type[ThreadChannel]) -> Pair:
    """Two channels over a pipe for each direction, as between a process and its child."""
    (read_one, write_other), (read_other, write_one) = os.pipe(), os.pipe()
    return kind(read_one, write_one), kind(read_other, write_other)


def over_socketpair(kind: type[PipeChannel] | type[ThreadChannel]) -> Pair:
    """Two channels over two sockets that are connected to each other."""
    one, other = (end.detach() for end in socket.socketpair())
    return kind(one, os.dup(one)), kind(other, os.dup(other))


@asynccontextmanager
async def listening(address: Address, talk: Any) -> AsyncIterator[Address]:
    """Someone who listens at an address for as long as the block lasts; gives the address in
    use.
    """
    ready: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(listen(address, talk, on_ready=ready.set_result))
    try:
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        yield ready.result() if ready.done() else task.result()  # type: ignore[misc]  # a task that has ended has raised
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Meeting:
    """A listener whose peers are handed out: pairs of channels over a real socket."""

    def __init__(self) -> None:
        self.address: Address = ""
        self._arrived: asyncio.Queue[Channel] = asyncio.Queue()
        self._over = asyncio.Event()

    async def talk(self, channel: Channel) -> None:
        """Hand one peer out, and keep its socket until the end of the test."""
        self._arrived.put_nowait(channel)
        await self._over.wait()

    async def pair(self) -> Pair:
        """Two channels that are each other's peer."""
        one = await connect(self.address)
        return one, await self._arrived.get()


@asynccontextmanager
async def meeting(address: Address) -> AsyncIterator[Meeting]:
    """A place to meet at an address."""
    place = Meeting()
    async with listening(address, place.talk) as place.address:
        yield place


@asynccontextmanager
async def served(server: Server, address: Address) -> AsyncIterator[Address]:
    """A server that listens at an address for as long as the block lasts."""

    async def talk(channel: Channel) -> None:
        await server.serve(channel)

    async with listening(address, talk) as found:
        yield found


def addresses(folder: Path) -> dict[str, Address]:
    """An address of each kind."""
    return {"unix": folder / "socket", "tcp": ("127.0.0.1", 0)}
