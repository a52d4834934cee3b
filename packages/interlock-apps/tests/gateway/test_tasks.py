"""Tasks through a gateway: those of one revision are those of the other, and those of a personal
server run in the process of the principal."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from interlock import Client, Context, McpError, Principal, Server, Tasks
from interlock.wire.revisions import REVISIONS
from tests.gateway.behind import connected, gateway_of, names_of, settings_of
from tests.gateway.made import client, entries, made
from tests.gateway.running import gateway

BOTH = ("2025-11-25", "2026-07-28")


def slow() -> Server:
    """A server whose tool can be a task that asks."""
    server = Server("slow", extensions=[Tasks()])

    @server.tool(task="optional")
    async def work(ctx: Context) -> str:
        """Work, if the person agrees."""
        return f"agreed {await ctx.confirm('sure?')}"

    return server


async def outcome(client: Client) -> tuple[bool, str]:
    """Start the tool. Returns whether it became a task, and its result."""
    assert await names_of(client) == ["slow__work"]
    handle = await client.start_tool("slow__work")
    return handle.id is not None, (await handle.result()).text


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("behind", BOTH)
@pytest.mark.parametrize("front", BOTH)
async def test_tasks_of_either_revision(front: str, behind: str, shared: bool) -> None:
    text = f'[servers.slow]\ncommand = ["slow"]\nrevision = "{behind}"\n'
    settings = settings_of(f"{text}shared = {str(shared).lower()}\n")
    gateway = gateway_of(settings, {"slow": slow()})
    async with connected(gateway, revision=front, elicit=lambda q: {"confirm": True}) as client:
        assert await outcome(client) == (True, "agreed True")


def crunching() -> Server:
    """A server whose tools can be, and have to be, tasks where there are any."""
    server = Server("slow", extensions=[Tasks()])

    @server.tool(task="optional")
    async def double(n: int) -> int:
        return 2 * n

    @server.tool(task="required")
    async def square(n: int) -> int:
        return n * n

    return server


@pytest.mark.matrix
@pytest.mark.parametrize("behind", REVISIONS)
@pytest.mark.parametrize("front", REVISIONS)
async def test_tools_with_tasks_between_any_two_revisions(front: str, behind: str) -> None:
    """A client without tasks gets the result, for which the gateway waits. A tool that has to be a
    task fails in clear words only where its server cannot have tasks with the gateway.
    """
    settings = settings_of(f'[servers.slow]\ncommand = ["slow"]\nrevision = "{behind}"\n')
    gateway = gateway_of(settings, {"slow": crunching()})
    async with connected(gateway, revision=front) as client:
        assert (await client.call_tool("slow__double", {"n": 21})).text == "42"
        handle = await client.start_tool("slow__double", {"n": 3})
        assert (handle.id is not None) == (front in BOTH and behind in BOTH)
        assert (await handle.result()).text == "6"
        if behind in BOTH:
            assert (await client.call_tool("slow__square", {"n": 6})).text == "36"
        else:
            with pytest.raises(McpError, match=r"square runs only as a task"):
                await client.call_tool("slow__square", {"n": 6})


@pytest.mark.parametrize("behind", BOTH)
@pytest.mark.parametrize("front", BOTH)
async def test_a_task_id_leads_to_the_process_of_its_principal(
    front: str, behind: str, tmp_path: Path
) -> None:
    processes: list[Server] = []

    def process() -> Server:
        """What stands for a process: a server for each connection."""
        server = Server("counter", extensions=[Tasks()])
        number = len(processes)
        processes.append(server)

        @server.tool(task="optional")
        async def work(ctx: Context) -> str:
            """Say which process works, once the person agrees."""
            await ctx.confirm("sure?")
            return f"process {number}"

        return server

    text = entries({"counter": f'shared = false\nrevision = "{behind}"'})
    async with made(tmp_path, text, {"counter": process}) as gateway:
        handles = []
        ids: list[str] = []
        clients = [
            client(
                gateway,
                Principal(subject=name, issuer="https://login.example"),
                revision=front,
                elicit=lambda question: {"confirm": True},
            )
            for name in ("ada", "bob")
        ]
        for each in clients:
            await each.open()
            assert await names_of(each) == ["counter__work"]
            handle = await each.start_tool("counter__work")
            assert handle.id is not None
            handles.append(handle)
            ids.append(handle.id)
        for number, each in enumerate(clients):
            with pytest.raises(McpError, match="not found"):
                await each.task(ids[1 - number]).result()
            assert (await handles[number].result()).text == f"process {number}"
        started = await clients[0].start_tool("counter__work")
        assert started.id is not None
        await clients[0].task(started.id).cancel()
        for each in clients:
            await each.aclose()
    assert len(processes) == 2


LASTING = """
import asyncio, os
from pathlib import Path
from interlock import Server, Tasks

server = Server("lasting", extensions=[Tasks()])

@server.tool(task="optional")
async def work() -> str:
    with open("started.txt", "a") as file:
        file.write(f"{os.getppid()}\\n")
    while not Path("go").exists():
        await asyncio.sleep(0.02)
    return "done"

server.run()
"""


@pytest.mark.slow
async def test_a_killed_worker_ends_the_tasks_of_its_personal_servers(tmp_path: Path) -> None:
    """The process of a principal ends with its worker, and its tasks with it. Another worker says
    so, and does not run the tool a second time.
    """
    program = tmp_path / "lasting.py"
    program.write_text(LASTING, encoding="utf-8")
    command = json.dumps([sys.executable, str(program)])
    settings = f"[servers.lasting]\ncommand = {command}\nshared = false\n"
    store = f"sqlite:///{tmp_path / 'store.db'}"
    starts = tmp_path / "started.txt"
    async with (
        gateway(tmp_path, settings, "--workers", "2", "--store", store) as running,
        running.client() as client,
    ):
        handle = await client.start_tool("lasting__work")
        assert handle.id is not None
        async with asyncio.timeout(60):
            while not (starts.exists() and starts.read_text().endswith("\n")):  # noqa: ASYNC110  # of another process
                await asyncio.sleep(0.02)
        os.kill(int(starts.read_text()), signal.SIGKILL)  # the worker, which this test started
        (tmp_path / "go").touch()
        with pytest.raises(McpError, match="not found"):
            await handle.result()
    assert len(starts.read_text().split()) == 1
