"""`interlock bridge`: between transports and revisions, with everything that flows between them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, Http, Server, Stdio, listening_socket, serve_http
from interlock.auth import ApiKeys, Guard
from tests.cli.conftest import Command, Program

KEY = "k3y-of-the-bridge-0123456789abcdef"
BRIDGE = [sys.executable, "-m", "interlock", "bridge"]

BEHIND = '''
"""A server for the bridge."""

from interlock import Context, Server

server = Server("behind", instructions="Order soup first.")


@server.tool
async def order(dish: str, ctx: Context) -> str:
    """Order something, and ask for its size."""
    ctx.progress(1, 2)
    size = await ctx.elicit(f"What size {dish}?", str)
    return f"{size} {dish}"


@server.tool
async def grow(ctx: Context) -> str:
    """Add a tool."""

    async def late() -> str:
        return "late"

    ctx.server.add_tool(late)
    return "grown"


@server.resource("note://one")
async def note() -> str:
    """A note."""
    return "Buy milk"


@server.prompt
async def greet(name: str) -> str:
    """Greet somebody."""
    return f"Greet {name}."


if __name__ == "__main__":
    server.run()
'''


@pytest.fixture
def behind(tmp_path: Path) -> Path:
    path = tmp_path / "behind.py"
    path.write_text(BEHIND, encoding="utf-8")
    return path


@asynccontextmanager
async def on_the_web(server: Server, **options: Any) -> AsyncIterator[str]:
    """Serve over HTTP, and yield the URL."""
    sock = listening_socket("127.0.0.1", 0)
    serving = asyncio.create_task(serve_http(server.http_app(**options), sock, grace=0.1))
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def made() -> Server:
    """The server of the file."""
    names: dict[str, Any] = {"__name__": "behind"}
    exec(BEHIND, names)
    server: Server = names["server"]
    return server


async def everything(client: Client, seen: list[float]) -> None:
    """Whatever the server offers comes through."""
    assert client.instructions == "Order soup first."
    assert {tool.name for tool in await client.list_tools()} == {"order", "grow"}
    assert [one.uri for one in await client.list_resources()] == ["note://one"]
    assert (await client.read_resource("note://one")).contents[0].text == "Buy milk"
    got = await client.get_prompt("greet", {"name": "Ada"})
    assert got.messages[0].content.text == "Greet Ada."
    result = await client.call_tool(
        "order", {"dish": "soup"}, on_progress=lambda params: seen.append(params.progress)
    )
    assert result.text == "large soup"
    assert seen == [1]


@pytest.mark.parametrize("pair", [("2026-07-28", "2025-06-18"), ("2025-11-25", "2026-07-28")])
async def test_stdio_in_front_of_a_url(pair: tuple[str, str]) -> None:
    """Under different revisions in front and behind."""
    front, back = pair
    async with on_the_web(made()) as url:
        seen: list[float] = []
        async with Client(
            Stdio([*BRIDGE, url, "--revision", back]),
            revision=front,
            elicit=lambda question: {"value": "large"},
        ) as client:
            assert client.revision == front
            await everything(client, seen)


async def test_http_in_front_of_a_command(behind: Path) -> None:
    """A server over stdio is reached over HTTP, and announces its changes there."""
    command = [*BRIDGE, "--http", ":0", "--", sys.executable, str(behind)]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    try:
        assert process.stderr is not None
        said = ""
        while not said.startswith("Serving at "):  # after what the server behind says
            said = (await process.stderr.readline()).decode()
            assert said
        url = said.removeprefix("Serving at ").strip()
        seen: list[float] = []
        async with Client(Http(url), elicit=lambda question: {"value": "large"}) as client:
            await everything(client, seen)
            async with client.watch(tools=True) as changes:
                assert (await client.call_tool("grow")).text == "grown"
                await anext(changes)
                assert "late" in {tool.name for tool in await client.list_tools()}
    finally:
        process.terminate()
        await process.communicate()


async def test_a_server_that_needs_a_login(program_run: Program) -> None:
    """The bridge ends, and says how to log in; a header is passed on."""
    server = made()
    keys = ApiKeys({"ada": KEY})
    async with on_the_web(server, guard=Guard(keys)) as url:
        result = await asyncio.to_thread(program_run, "bridge", url)
        assert result.returncode == 4
        assert f"interlock auth login {url}" in result.stderr
        header = ["--header", "Authorization: Bearer $BRIDGE_KEY"]
        key = {"BRIDGE_KEY": KEY}
        async with Client(Stdio([*BRIDGE, url, *header], env=key)) as client:
            assert len(await client.list_tools()) == 2


@pytest.mark.parametrize(
    "words, message",
    [
        (["https://a.example/mcp", "--", "uvx", "x"], "Name one server"),
        (["--http", ":0"], "Name one server"),
        (["--legacy-sse", "--", "uvx", "x"], "are for URLs"),
        (["https://a.example/mcp", "--env", "A=b"], "not for a URL"),
        (["https://a.example/mcp", "--revision", "1999"], "Unknown revision"),
    ],
)
def test_wrong_usage(interlock: Command, words: list[str], message: str) -> None:
    result = interlock("bridge", *words)
    assert result.exit_code == 2
    assert message in result.output


def test_a_server_that_is_not_there(interlock: Command) -> None:
    sock = listening_socket("127.0.0.1", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
    sock.close()
    for front in ([], ["--http", ":0"]):
        result = interlock("bridge", url, *front)
        assert result.exit_code == 4
        assert "127.0.0.1" in result.output
