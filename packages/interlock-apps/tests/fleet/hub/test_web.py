"""Servers over HTTP: reached, lost, begun again, and asking who comes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from interlock import Request, Response, Server, Unreachable
from interlock.configs import Entry
from interlock.transport.http.server.serve import listening_socket, serve_http
from interlock.transport.sockets import listen
from interlock_apps.fleet.hub import HubLimits
from tests.auth.served import serving
from tests.fleet.hub.keeping import kept, turns
from tests.ports import free_port


def shop(revisions: Any = None) -> Server:
    """A server whose tools can change."""
    server = Server("shop", **({"revisions": revisions} if revisions else {}))

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return server


@contextlib.asynccontextmanager
async def on_the_web(server: Server, port: int, **options: Any) -> AsyncIterator[str]:
    """A server on a port of loopback, for as long as the block lasts."""
    task = asyncio.ensure_future(
        serve_http(server.http_app(**options), listening_socket("127.0.0.1", port), grace=0.1)
    )
    try:
        yield f"http://127.0.0.1:{port}{'/sse' if options.get('legacy_sse') else '/mcp'}"
    finally:
        task.cancel()
        await asyncio.wait({task})


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_server_that_goes_and_comes(revision: str) -> None:
    """It is found out by the first request that fails; it is up again once it is there."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    async with (
        contextlib.AsyncExitStack() as stack,
        kept(Entry(id="a", url=url), limits=HubLimits(ping=None, acknowledge=0)) as one,
    ):
        assert one["a"].state == "down"
        assert str(port) in one["a"].words
        async with on_the_web(shop(revision), port):
            await one.clock.advance(0.5)
            await one.received.state("a", "up")
            assert one["a"].revision == revision
            assert (await one["a"].call("add", {"a": 1, "b": 2})).text == "3"
        with pytest.raises(Unreachable):
            await one["a"].call("add", {"a": 1, "b": 2})
        await one.received.state("a", "down", 2)
        await stack.enter_async_context(on_the_web(shop(revision), port))
        await one.clock.advance(1)
        await one.received.state("a", "up", 2)
        assert (await one["a"].call("add", {"a": 1, "b": 2})).text == "3"
        await one.hub.aclose()


async def test_changes_over_http() -> None:
    """A tool that comes is seen."""
    server = shop()
    port = free_port()
    async with on_the_web(server, port) as url, kept(Entry(id="a", url=url)) as one:
        assert [tool.name for tool in one["a"].tools] == ["add"]

        @server.tool
        async def more() -> None:
            pass

        await one.received.until(lambda: one.received.changed[-1] == ("a", ["add", "more"]))


async def test_the_older_transport() -> None:
    """Where the entry says so (`ERA-11`)."""
    async with (
        on_the_web(shop("2024-11-05"), free_port(), legacy_sse=True) as url,
        kept(Entry(id="a", url=url, legacy_sse=True)) as one,
    ):
        assert one["a"].revision == "2024-11-05"
        assert (await one["a"].call("add", {"a": 1, "b": 2})).text == "3"
        await one.hub.aclose()


class Door:
    """An app that lets in who has the word, and says no in words that hold what it got."""

    def __init__(self, app: Any, word: str) -> None:
        self.app = app
        self.word = word

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if (
            scope["type"] == "http"
            and dict(scope["headers"]).get(b"authorization") != f"Bearer {self.word}".encode()
        ):
            got = dict(scope["headers"]).get(b"authorization", b"nothing")
            await send(
                {
                    "type": "http.response.start",
                    "status": 401,
                    "headers": [(b"content-type", b"text/plain")],
                }
            )
            await send({"type": "http.response.body", "body": b"not " + got})
            return
        await self.app(scope, receive, send)


class Signs:
    """Authorizes with a word that it is given."""

    def __init__(self, word: str) -> None:
        self.word = word

    def to(self, url: str) -> Signs:
        return self

    async def sign(self, request: Request) -> Request:
        return Request(
            request.method,
            request.url,
            (*request.headers, ("authorization", f"Bearer {self.word}")),
            request.body,
            request.again,
            request.aside,
        )

    async def handle_response(self, request: Request, response: Response, tries: int) -> bool:
        return False


async def test_a_server_that_asks_who_comes() -> None:
    """It is down, with words about what to do and without the secret; headers and an authorizer
    open the door.
    """
    async with serving(lambda url: Door(shop().http_app(), "sesame")) as url:
        await _knocked(f"{url}/mcp")


async def _knocked(url: str) -> None:
    entries = [
        Entry(
            id="wrong",
            url=url,
            headers={"Authorization": "Bearer barley"},
            secrets=frozenset({"barley"}),
        ),
        Entry(id="nothing", url=url),
        Entry(id="header", url=url, headers={"Authorization": "Bearer sesame"}),
        Entry(id="signed", url=url),
    ]
    async with kept(
        *entries, auth=lambda entry: Signs("sesame") if entry.id == "signed" else None
    ) as one:
        assert [link.state for link in one.hub.servers.values()] == ["down", "down", "up", "up"]
        for id in ("wrong", "nothing"):
            assert "401" in one[id].words
            assert "log in" in one[id].words
        assert "barley" not in one["wrong"].words


@pytest.mark.parametrize(
    "url",
    ["ftp://x/", "unix://host/x", "unix:", "tcp://127.0.0.1", "http://", "tcp://127.0.0.1:sesame"],
)
async def test_an_address_that_leads_nowhere(url: str) -> None:
    """It is down like any other, and the rest is up."""
    async with kept(
        Entry(id="a", url=url, secrets=frozenset({"sesame"})), Entry(id="b"), servers={"b": shop()}
    ) as one:
        assert (one["a"].state, one["b"].state) == ("down", "up")
        assert "Retrying in" in one["a"].words
        assert "sesame" not in one["a"].words


@pytest.mark.parametrize("kind", ["unix", "tcp"])
async def test_a_server_that_listens_at_a_socket(kind: str, tmp_path: Any) -> None:
    """It is down when it has gone, found out while nobody asks."""
    port = free_port()
    url = f"tcp://127.0.0.1:{port}" if kind == "tcp" else f"unix://{tmp_path / 's'}"
    task = asyncio.ensure_future(
        listen(("127.0.0.1", port) if kind == "tcp" else tmp_path / "s", shop().serve)
    )
    await turns()
    async with kept(Entry(id="a", url=url)) as one:
        assert (await one["a"].call("add", {"a": 1, "b": 2})).text == "3"
        task.cancel()
        await asyncio.wait({task})
        assert "closed the connection" in (await one.received.state("a", "down")).words
