"""Recording over HTTP: the reverse proxy in front of servers of every revision."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from interlock import Client, Context, Server, Unreachable
from interlock.http11.client import HttpFetch
from interlock.http11.fetch import Request
from interlock.tape import HttpHead, Recorder, TapeFile
from interlock.tape.http import RecordedApp, ReverseProxy
from interlock.testing import ScriptedAnswers
from interlock.transport.http.server.serve import listening_socket, serve_http
from interlock.wire.revisions import REVISIONS


def make_server() -> Server:
    server = Server("web", "1")

    @server.tool
    async def greet(name: str, ctx: Context) -> str:
        ctx.progress(1, 2)
        return f"Hello {name}"

    @server.tool
    async def agree(ctx: Context) -> bool:
        return await ctx.confirm("Really?")

    return server


@contextlib.asynccontextmanager
async def proxied(url: str, path: Path) -> AsyncIterator[str]:
    """The URL of a proxy to a server, which records to a file."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[int] = loop.create_future()
    fetch = HttpFetch()
    with Recorder(path) as recorder:
        serving = loop.create_task(
            serve_http(
                RecordedApp(ReverseProxy(url, fetch), recorder),
                listening_socket("127.0.0.1", 0),
                grace=0,
                on_ready=lambda address: ready.set_result(address[1]),
            )
        )
        try:
            yield f"http://127.0.0.1:{await ready}/mcp"
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            await fetch.aclose()


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_sees_no_difference(revision: str, tmp_path: Path) -> None:
    """Calls, streams with progress, and questions, in every revision."""
    path = tmp_path / "web.tape"
    progress: list[float] = []
    answers = ScriptedAnswers(elicit={"Really": {"confirm": True}})

    async with (
        make_server().serve_http(port=0) as web,
        proxied(web.url, path) as url,
        Client(url, revision=revision, answers=answers) as client,
    ):
        told = await client.call_tool(
            "greet", {"name": "Ada"}, on_progress=lambda done, *_: progress.append(done)
        )
        assert told.text == "Hello Ada"
        if revision >= "2025-06-18":
            assert (await client.call_tool("agree")).text == "true"
    with TapeFile(path) as tape:
        assert tape.problems == []
        assert tape.verify() == []
        calls = [row for row in tape.rows if row.name == "greet"]
        assert [row.kind for row in calls] == ["request", "response"]
        assert calls[0].partner == calls[1].number
        assert calls[0].exchange == calls[1].exchange
        heads = [line for _, line in tape.lines() if isinstance(line, HttpHead)]
        assert {head.request.partition(" ")[0] for head in heads if head.request} >= {"POST"}
        exchanges = {head.exchange for head in heads if head.request}
        assert {head.exchange for head in heads if head.status} <= exchanges
        assert len({row.connection for row in tape.rows if row.method == "tools/call"}) == 1
        notices = [row for row in tape.rows if row.method == "notifications/progress"]
        assert len(notices) == len(progress)


async def test_two_sessions_are_two_connections(tmp_path: Path) -> None:
    path = tmp_path / "web.tape"
    async with (
        make_server().serve_http(port=0) as web,
        proxied(web.url, path) as url,
        Client(url, revision="2025-11-25") as one,
        Client(url, revision="2025-11-25") as other,
    ):
        for client in (one, other, one):
            await client.call_tool("greet", {"name": "Ada"})
    with TapeFile(path) as tape:
        calls = [row.connection for row in tape.rows if row.method == "tools/call"]
    assert calls == ["1", "1", "2", "2", "1", "1"]


async def test_a_foreign_host_is_refused(tmp_path: Path) -> None:
    """Against DNS rebinding: the server behind the proxy sees only the name of the proxy."""
    fetch = HttpFetch()
    async with make_server().serve_http(port=0) as web, proxied(web.url, tmp_path / "t") as url:
        response = await fetch(Request("POST", url, (("Host", "evil.example"),), b"{}"))
        assert response.status == 403
        assert b"is not one of this server" in await response.read(1000)
    await fetch.aclose()


async def test_a_server_that_is_away_is_a_bad_gateway(tmp_path: Path) -> None:
    sock = listening_socket("127.0.0.1", 0)
    port = sock.getsockname()[1]
    sock.close()
    fetch = HttpFetch()
    async with proxied(f"http://127.0.0.1:{port}/mcp", tmp_path / "t") as url:
        response = await fetch(Request("POST", url, (), b"{}"))
        assert response.status == 502
        await response.read(1000)
        with pytest.raises(Unreachable):
            async with Client(url) as client:
                await client.list_tools()
    await fetch.aclose()
