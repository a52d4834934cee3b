"""`interlock gateway` as a program: endpoints of views, workers, status, reload, approve, check and
explain."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, McpError
from tests.cli.conftest import Command, home, interlock
from tests.gateway.behind import names_of
from tests.ports import free_port
from tests.workers.balancer import Balancer

__all__ = ["home", "interlock"]

SERVER = """
import os
from interlock import Context, Server

server = Server("plain")

@server.tool
def pid() -> int:
    return os.getpid()

@server.tool
async def order(dish: str, ctx: Context) -> str:
    return dish if await ctx.confirm(f"One {dish}?") else "nothing"

if __name__ == "__main__":
    server.run()
"""


@pytest.fixture
def folder(home: Path) -> Path:
    """A folder with a server and the settings of a gateway."""
    (home / "plain.py").write_text(SERVER)
    write(home, "plain")
    return home


def write(folder: Path, *names: str, more: str = "") -> Path:
    """Write settings with some servers, all of the same program."""
    command = f'command = ["{sys.executable}", "plain.py"]'
    text = "".join(f"[servers.{name}]\n{command}\n" for name in names)
    path = folder / "gateway.toml"
    path.write_text(text + more)
    return path


@asynccontextmanager
async def running(folder: Path, *options: str) -> AsyncIterator[tuple[str, Any]]:
    """Run a gateway. Yields its URL, and the process."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "interlock",
        "gateway",
        "--http",
        f":{port}",
        *options,
        cwd=folder,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        seen = []
        async with asyncio.timeout(60):
            while not seen or not seen[-1].startswith(b"Serving at"):
                line = await process.stderr.readline()
                assert line, b"".join(seen).decode()
                seen.append(line)
        yield f"http://127.0.0.1:{port}", process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.communicate()


async def test_views_status_and_reload_over_http(folder: Path, interlock: Command) -> None:
    write(folder, "plain", more='[views.few]\ntools = ["plain__pid"]\n')
    async with (
        running(folder) as (url, process),
        Client(f"{url}/mcp") as client,
        Client(f"{url}/few/mcp") as few,
    ):
        assert await names_of(client) == ["plain__pid", "plain__order"]
        assert await names_of(few) == ["plain__pid"]
        first = (await client.call_tool("plain__pid")).value()
        shown = await asyncio.to_thread(interlock, "gateway", "status")
        assert f"process {process.pid}" in shown.stdout
        assert "server plain  up  2 tools" in shown.stdout
        assert "view few  /few/mcp  plain" in shown.stdout
        machine = await asyncio.to_thread(interlock, "gateway", "status", "--json")
        assert json.loads(machine.stdout)[0]["upstreams"][0]["condition"] == "up"
        write(folder, "plain", "other")
        done = await asyncio.to_thread(interlock, "gateway", "reload")
        assert done.exit_code == 0
        assert "server other added" in done.stdout
        assert "view few removed" in done.stdout
        assert len(await names_of(client)) == 4
        assert (await client.call_tool("plain__pid")).value() == first
        with pytest.raises(Exception, match="404"):
            async with Client(f"{url}/few/mcp") as gone:
                await gone.list_tools()
        (folder / "gateway.toml").write_text("[listen")
        refused = await asyncio.to_thread(interlock, "gateway", "reload")
        assert refused.exit_code == 2
        assert len(await names_of(client)) == 4
    stopped = interlock("gateway", "status")
    assert stopped.exit_code == 4
    assert "No gateway" in stopped.stderr


async def test_any_worker_serves_any_request(folder: Path, interlock: Command) -> None:
    write(folder, "plain", more='[views.few]\ntools = ["plain__order"]\n')
    async with running(folder, "--workers", "2") as (url, _):
        for revision in ("2025-11-25", "2026-07-28"):
            for path in ("/mcp", "/few/mcp"):
                async with asyncio.timeout(60):
                    for _ in range(3):  # each client has connections of its own
                        async with Client(
                            f"{url}{path}", revision=revision, elicit=lambda q: {"confirm": True}
                        ) as client:
                            answers = await asyncio.gather(
                                *(
                                    client.call_tool("plain__order", {"dish": "pie"})
                                    for _ in range(4)
                                )
                            )
                            assert [answer.text for answer in answers] == ["pie"] * 4
        shown = await asyncio.to_thread(interlock, "gateway", "status", "--json")
        assert len(json.loads(shown.stdout)) == 2
        write(folder, "plain", "other")
        done = await asyncio.to_thread(interlock, "gateway", "reload")
        assert done.stdout.count("server other added") == 2


async def test_several_machines_serve_any_request(folder: Path, redis_url: str) -> None:
    """Two gateways that share nothing but a Valkey server, with two workers each: the requests of a
    client, and the answers to its questions, go to the next one each time."""
    machines = []
    for name in ("one", "two"):
        machine = folder / name
        machine.mkdir()
        (machine / "plain.py").write_text(SERVER)
        machines.append(machine)
        write(machine, "plain", more='[views.few]\ntools = ["plain__order"]\n')
    options = ("--workers", "2", "--store", redis_url)
    async with (
        running(machines[0], *options) as (one, _),
        running(machines[1], *options) as (two, _),
    ):
        with Balancer([int(url.rpartition(":")[2]) for url in (one, two)]) as balancer:
            base = balancer.url.removesuffix("/mcp")
            for revision in ("2025-11-25", "2026-07-28"):
                for path in ("/mcp", "/few/mcp"):
                    async with (
                        asyncio.timeout(60),
                        Client(
                            f"{base}{path}", revision=revision, elicit=lambda q: {"confirm": True}
                        ) as client,
                    ):
                        assert "plain__order" in await names_of(client)
                        answers = [
                            await client.call_tool("plain__order", {"dish": "pie"})
                            for _ in range(4)
                        ]
                        assert [answer.text for answer in answers] == ["pie"] * 4


async def test_sighup_reloads(folder: Path) -> None:
    async with (
        running(folder) as (url, process),
        Client(f"{url}/mcp") as client,
        client.watch(tools=True) as changes,
    ):
        assert len(await names_of(client)) == 2
        write(folder, "plain", "other")
        os.kill(process.pid, signal.SIGHUP)
        async with asyncio.timeout(30):
            async for _ in changes:
                if len(await names_of(client)) == 4:
                    break


async def test_stdio_serves_a_host_that_starts_commands(folder: Path) -> None:
    command = [sys.executable, "-m", "interlock", "gateway", "gateway.toml", "--stdio"]
    async with Client(command) as client:
        assert await names_of(client) == ["plain__pid", "plain__order"]
        with pytest.raises(McpError):
            await client.call_tool("plain__nothing")


def test_check_and_explain(folder: Path, interlock: Command) -> None:
    checked = interlock("gateway", "check", "--connect")
    assert checked.exit_code == 0
    assert "identity service, shared  2 tools" in checked.stdout
    write(folder, "plain", more='[views.few]\ntools = ["plain__pid"]\nscopes = ["few"]\n')
    explained = interlock("gateway", "explain", "plain__pid", "--view", "few")
    assert explained.exit_code == 0
    assert "plain__pid is the tool pid of the server plain." in explained.stdout
    assert "need the scopes few" in explained.stdout
    assert interlock("gateway", "explain", "plain__order", "--view", "few").exit_code == 1
    assert "There is no view" in interlock("gateway", "explain", "x", "--view", "y").stdout
    assert "No server has a tool" in interlock("gateway", "explain", "plain__x").stdout


def test_what_cannot_be_started_is_said(home: Path, interlock: Command) -> None:
    nothing = interlock("gateway")
    assert nothing.exit_code == 2
    assert "There is no gateway.toml here" in nothing.stderr
    both = interlock("gateway", "a.toml", "--config", "b.json")
    assert both.exit_code == 2
    assert "not both" in both.stderr
    (home / "gateway.toml").write_text('[listen]\nhttp = "0.0.0.0:1"\n')
    exposed = interlock("gateway")
    assert exposed.exit_code == 2
    assert "without a guard" in exposed.stderr
    down = "[servers.gone]\ncommand = ['/nonexistent/program']\n"
    (home / "gateway.toml").write_text(down)
    checked = interlock("gateway", "check", "--connect")
    assert checked.exit_code == 4
    helped = interlock("gateway", "--help")
    assert "reload" in helped.stdout
