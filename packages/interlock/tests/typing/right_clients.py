"""Programs of client authors, and of those who write transports and tests, that must type-check."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

from interlock import (
    Answers,
    CallToolResult,
    Changed,
    Channel,
    Client,
    ClientTransport,
    Duplex,
    McpError,
    Server,
    Stdio,
    Target,
    Watch,
)
from interlock import sync as blocking
from interlock.server.changes import MemoryBus
from interlock.tape import Tape, Taped
from interlock.testing import (
    ScriptedAnswers,
    channel_pair,
    check_change_bus,
    check_channel,
    check_client_transport,
    connect,
    probe_server,
)
from interlock.types import (
    Completion,
    ElicitRequestParams,
    GetPromptResult,
    ProgressNotificationParams,
    Prompt,
    ReadResourceResult,
    Resource,
    Tool,
)


def answer(params: ElicitRequestParams) -> dict[str, Any]:
    """An answer to a question."""
    return {"value": params.message}


async def talk() -> None:
    """Every call of a client, and what it gives."""
    async with Client(
        "server.py",
        answers=Answers(elicit=answer, roots=["."]),
        revision="2025-11-25",
        timeout=None,
    ) as client:
        assert_type(client, Client)
        assert_type(await client.list_tools(), list[Tool])
        assert_type(
            await client.call_tool(
                "add", {"a": 1}, timeout=3, on_progress=lambda p: print(p.progress)
            ),
            CallToolResult,
        )
        assert_type((await client.call_tool("add")).text, str)
        assert_type(await client.list_resources(), list[Resource])
        assert_type(await client.read_resource("note://x"), ReadResourceResult)
        assert_type(await client.list_prompts(), list[Prompt])
        assert_type(await client.get_prompt("story", {"topic": "x"}), GetPromptResult)
        assert_type(await client.complete("story", "topic", "x"), Completion)
        async with client.watch(tools=True, resources=["note://x"]) as changes:
            assert_type(changes, Watch)
            async for change in changes:
                assert_type(change, Changed)
        try:
            await client.ping()
        except McpError as bad:
            assert_type(bad.code, int)


def script() -> None:
    """The blocking face."""
    with blocking.Client(["python", "server.py"]) as client:
        assert_type(client.call_tool("add", {"a": 1}), CallToolResult)


class Loopback:
    """A channel of somebody's own."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    async def receive(self) -> list[bytes]:
        """The next frames."""
        frames = self.frames
        self.frames = []
        return frames

    def send(self, frames: list[bytes]) -> None:
        """Send frames."""
        self.frames += frames

    async def drain(self) -> None:
        """Nothing waits."""

    async def aclose(self) -> None:
        """Nothing is open."""

    @property
    def queued(self) -> int:
        """Nothing is queued."""
        return 0

    @property
    def lost(self) -> str:
        """Nothing is lost."""
        return ""


async def transports(server: Server) -> None:
    """A custom channel plugs in on both sides, and every transport is one."""
    channel: Channel = Loopback()
    await server.serve(channel)
    roads: list[ClientTransport] = [
        Duplex(channel),
        Stdio(["python", "server.py"]),
        server.transport(),
        Duplex(Taped(channel, Tape().record)),
    ]
    for road in roads:
        async with Client(road) as client:
            await client.ping()


def targets(server: Server, channel: Channel) -> list[Target]:
    """Whatever a client can be pointed at."""
    every: list[Target] = [
        server,
        server.transport(),
        channel,
        "server.py",
        Path("server.py"),
        ["uvx", "some-server"],
        ("python", Path("server.py")),
        {"command": "uvx", "args": ["some-server"]},
        "https://host/mcp",
    ]
    for target in every:
        Client(target)
        blocking.Client(target)
    return every


async def progress(client: Client) -> None:
    """Callbacks may be plain or async."""
    received: list[float] = []

    async def receive(params: ProgressNotificationParams) -> None:
        received.append(params.progress)

    result = await client.call_tool("add", on_progress=receive)
    await client.call_tool("add", on_progress=lambda params: received.append(params.progress))
    assert_type(result.is_error, bool)


async def pair() -> tuple[Channel, Channel]:
    """Two channels for the contract check."""
    return channel_pair()


async def road() -> ClientTransport:
    """A transport for the contract check."""
    return probe_server().transport()


async def bus() -> MemoryBus:
    """A bus for the contract check."""
    return MemoryBus()


async def checks(server: Server) -> None:
    """The contract checks, and a client in memory."""
    await check_channel(pair)
    await check_client_transport(road)
    await check_change_bus(bus)
    answers = ScriptedAnswers(elicit=[True, {"value": 1}, None], sample={"Why": "42"}, roots=["."])
    async with connect(server, revision="2026-07-28", suspend=False, answers=answers) as client:
        assert_type(client, Client)
