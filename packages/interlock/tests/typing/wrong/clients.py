"""Programs of client authors that must not type-check: each marked line has the error that is named
beside it, and no other has one.
"""

from __future__ import annotations

from interlock import Channel, Client, ClientSettings, Duplex, Server
from interlock import sync as blocking
from interlock.testing import check_channel, connect
from interlock.types import ElicitRequestParams


def answer() -> None:
    """Takes no question."""


async def talk() -> None:
    """Calls that there are not, and results that are others."""
    Client(42)  # error: arg-type
    Client(None)  # error: arg-type
    Client(b"server.py")  # error: arg-type
    Client(["server.py", 8080])  # error: list-item
    Client(answer)  # error: arg-type
    blocking.Client(42)  # error: arg-type
    Client("server.py", elicit=answer)  # error: arg-type
    Client("server.py", rvision="2025-11-25")  # error: call-arg
    Client("server.py", log_level="loud")  # error: arg-type
    Client("https://x", tokn="x")  # error: call-arg
    Client("server.py", settings=ClientSettings(max_round=2))  # error: call-arg
    blocking.Client("server.py", timout=3)  # error: call-arg
    blocking.Client("server.py").call_tool("x", on_progres=print)  # error: call-arg
    async with Client("server.py") as client:
        tools: list[str] = await client.list_tools()  # error: assignment
        print(tools)
        client.call_tool("add", {"a": 1})  # error: unused-coroutine
        await client.call_tool(1)  # error: arg-type
        await client.call_tool("add", ["a", 1])  # error: arg-type
        await client.call_tool("add", on_progress=print, tiemout=3)  # error: call-arg
        print((await client.call_tool("add")).txt)  # error: attr-defined
        await client.set_log_level("loud")  # error: arg-type
        async for change in client.watch(tools=True):  # error: attr-defined
            print(change)
    with Client("server.py") as closed:  # error: attr-defined
        print(closed)


class Deaf:
    """A channel that cannot receive."""

    def send(self, frames: list[bytes]) -> None:
        """Send frames."""


class Slow(Deaf):
    """A channel whose `send` waits."""

    async def send(self, frames: list[bytes]) -> None:  # error: override
        """Send frames, one day."""


async def transports(server: Server) -> None:
    """What is no channel does not plug in."""
    channel: Channel = Deaf()  # error: assignment
    await server.serve(Slow())  # error: arg-type
    Duplex(server)  # error: arg-type
    Duplex(channel, tap=print.__name__)  # error: arg-type


async def one() -> Channel:
    """One channel, where a pair is wanted."""
    raise LookupError


async def checks(server: Server) -> None:
    """Checks of something else."""
    await check_channel(one)  # error: arg-type
    async with connect("server.py") as client:  # error: arg-type
        print(client)


def question(params: ElicitRequestParams) -> str:
    """Members that there are not."""
    Client("server.py", on_log=lambda message: message.txt)  # error: attr-defined
    return params.mesage  # error: attr-defined, no-any-return
