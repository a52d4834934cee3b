"""What the server offers: the catalogue, annotations that are true, every revision over every
road.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import REVISIONS, Client, Stdio
from interlock_servers.fetch import FetchSettings, fetch_server
from tests.servers.calls import ON_THE_COMMAND_LINE, done, refusal
from tests.servers.fetch.site import PLAIN, Site, text
from tests.servers.roads import over, serving
from tests.transport.http_peers import Seen, ok


async def test_nobody_who_uses_it_is_broken(interlock_catalogue: Any) -> None:
    """Tools, templates and prompts are those of the snapshot (`TOL-02`, `RES-02`, `PRM-02`)."""
    async with Client(fetch_server(FetchSettings())) as client:
        assert not (await interlock_catalogue(client, "fetch_catalogue.json")).breaking


async def test_every_tool_says_whose_words_it_gives() -> None:
    """Those of strangers."""
    async with Client(fetch_server(FetchSettings())) as client:
        tools = await client.list_tools()
        assert [tool.name for tool in tools] == ["fetch", "fetch_links", "fetch_outline"]
        assert [
            tool.name for tool in tools if "strangers" not in (tool.description or "").lower()
        ] == []


async def test_annotations_are_true(site: Site) -> None:
    """Read-only: nothing but GET is sent, without a body.

    Idempotent: asked twice, it says the same.
    """
    site.pages["/page"] = ok(b"<h1>One</h1><a href=/x>x</a>", "Content-Type: text/html")
    async with site.client() as client:
        for tool in await client.list_tools():
            hints: Any = tool.annotations
            assert (
                hints.read_only_hint,
                hints.idempotent_hint,
                hints.destructive_hint,
                hints.open_world_hint,
            ) == (True, True, False, True)
            first, second = [
                await client.call_tool(tool.name, {"url": site.url()}) for _ in range(2)
            ]
            assert (first.content, first.structured_content) == (
                second.content,
                second.structured_content,
            )
    assert {seen.line.partition(" ")[0] for seen in site.peer.requests} == {"GET"}
    assert not any(seen.body for seen in site.peer.requests)


@pytest.mark.matrix
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("road", ["memory", "http"])
async def test_every_revision(site: Site, revision: str, road: str) -> None:
    """Reading page by page, refusing, and the prompt, in memory and over HTTP, in all revisions."""
    site.pages["/page"] = ok(b"some words\n" * 50, PLAIN)
    async with (
        over(road, site.server(loopback=True)) as target,
        Client(target, revision=revision) as client,
    ):
        assert len(await client.list_tools()) == 3
        url = f"http://127.0.0.1:{site.peer.port}/page"
        result = await client.call_tool("fetch", {"url": url, "length": 100})
        assert str(result.content[0].text) == "some words\n" * 9  # type: ignore[union-attr]  # a page is text
        note = str(result.content[1].text)  # type: ignore[union-attr]  # and so is what stands beside it
        cursor = note.partition("cursor=")[2].rstrip("]")
        assert await text(client, url, cursor=cursor, length=100) == "some words\n" * 9
        assert "private address" in await refusal(client, "fetch", url="http://10.0.0.1/")
        (message,) = (await client.get_prompt("fetch", {"url": url})).messages
        assert "some words" in message.content.text  # type: ignore[union-attr]  # it is text


@pytest.mark.parametrize("revision", ON_THE_COMMAND_LINE)
async def test_from_the_command_line(site: Site, revision: str) -> None:
    """`interlock serve fetch` over stdio, with the settings of the environment; hosts that are
    named are the only ones.
    """
    site.pages["/page"] = lambda seen: ok(f"for {seen.header('user-agent')}".encode(), PLAIN)
    settings = {"INTERLOCK_FETCH_LOOPBACK": "1", "INTERLOCK_FETCH_USER_AGENT": "Tests/1"}
    async with Client(
        Stdio(serving("fetch", "127.0.0.1"), env=settings), revision=revision
    ) as client:
        assert await text(client, f"http://127.0.0.1:{site.peer.port}/page") == "for Tests/1"
        assert "is not among the allowed hosts" in await refusal(
            client, "fetch", url="https://example.com/"
        )


async def test_many_at_once(site: Site) -> None:
    """A hundred calls at a time, each with its own page."""

    def page(seen: Seen) -> bytes:
        return ok(seen.line.split(" ")[1].encode(), PLAIN)

    site.pages.update({f"/{n}": page for n in range(100)})
    async with site.client(at_once=8) as client:
        assert await asyncio.gather(*(text(client, site.url(f"/{n}")) for n in range(100))) == [
            f"/{n}" for n in range(100)
        ]
        assert (await done(client, "fetch", url=site.url("/1")))["length"] == 2
