"""A web of the tests' own: hosts with public and with private addresses, which all lead to one
server on loopback.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from interlock import Client, SafeFetch, Server
from interlock_servers.fetch import FetchSettings, fetch_server, fetcher_of
from tests.transport.http_peers import Peer, Seen, Talk, ok, serving
from tests.transport.internet import OTHER, PUBLIC, Internet

Answer = bytes | Callable[[Seen], bytes] | Callable[[Talk], Awaitable[None]]
NAMES = {
    "site.example": [[PUBLIC]],
    "other.example": [[OTHER]],
    "inside.example": [["10.0.0.7"]],
    "here.example": [["127.0.0.1"]],
}
HTML = "Content-Type: text/html; charset=utf-8"
PLAIN = "Content-Type: text/plain"


def moved(to: str, status: int = 302, *headers: str) -> bytes:
    """A redirect."""
    return ok(b"", f"Location: {to}", *headers, status=f"{status} Moved")


@dataclass
class Site:
    """What answers at all addresses, and what it was asked.

    Whoever connects to loopback, or inside, reaches it as well.
    """

    peer: Peer
    internet: Internet
    pages: dict[str, Answer] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)  # host and path

    def url(self, path: str = "/page", host: str = "site.example") -> str:
        """The address of a page."""
        return f"http://{host}:{self.peer.port}{path}"

    def paths(self) -> list[str]:
        """What was asked for, but for robots.txt."""
        return [path for _, path in self.asked if path != "/robots.txt"]

    def header(self, name: str) -> str | None:
        """A header of the last request."""
        return self.peer.requests[-1].header(name)

    def fetcher(self, settings: FetchSettings) -> SafeFetch:
        """What the server goes out with: the settings' rules, in this web."""
        made = fetcher_of(settings)
        return self.internet.fetch(
            plain=made.plain,
            loopback=made.loopback,
            limit=made.limit,
            seconds=made.seconds,
            give_redirects=True,
            hosts=settings.hosts or None,
            never=settings.never,
            networks=settings.networks,
        )

    def server(self, **settings: Any) -> Server:
        """A server in this web."""
        return fetch_server(FetchSettings(**settings), self.fetcher)

    @asynccontextmanager
    async def client(self, **settings: Any) -> AsyncIterator[Client]:
        """A client of such a server, which checks results against their schemas."""
        async with Client(self.server(**settings)) as client:
            await client.list_tools()
            yield client


@asynccontextmanager
async def running() -> AsyncIterator[Site]:
    """A web that is there until its user is done with it."""
    internet = Internet(NAMES, routed=[PUBLIC, OTHER, "10.0.0.7", "127.0.0.1", "169.254.169.254"])
    made: list[Site] = []

    async def script(talk: Talk) -> None:
        while (seen := await talk.read()) is not None:
            path = seen.line.split(" ")[1]
            made[0].asked.append(((seen.header("host") or "").partition(":")[0], path))
            answer: Any = made[0].pages.get(path)
            if answer is None:
                await talk.send(ok(b"", status="404 Not Found"))
            elif isinstance(answer, bytes):
                await talk.send(answer)
            elif isinstance(given := answer(seen if answer.__name__ != "script" else talk), bytes):
                await talk.send(given)
            else:
                await given
                return

    async with serving(script) as peer:
        made.append(Site(peer, internet))
        yield made[0]


async def text(client: Client, url: str, **arguments: Any) -> str:
    """The page alone, without what stands beside it."""
    result = await client.call_tool("fetch", {"url": url, **arguments})
    assert not result.is_error, result.text
    block: Any = result.content[0]
    return str(block.text)
