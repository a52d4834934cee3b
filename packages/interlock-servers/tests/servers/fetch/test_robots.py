"""robots.txt: which rules are for whom, what they forbid (RFC 9309), and what becomes of calls that
a model makes on its own.
"""

from __future__ import annotations

import asyncio

import pytest

from interlock_servers.fetch.robots import MOST, RobotsRules, lines_for
from tests.servers.calls import done, refusal
from tests.servers.fetch.site import PLAIN, Site, moved, text
from tests.transport.http_peers import Talk, ok

TOKEN = "InterlockFetch"


@pytest.mark.parametrize(
    "robots, path, line",
    [
        ("", "/a", None),
        ("User-agent: *\nDisallow:\n", "/a", None),
        ("User-agent: *\nDisallow: /\n", "/a", 2),
        ("Disallow: /\n", "/a", None),
        ("User-agent: other\nDisallow: /\n", "/a", None),
        ("User-agent: interlockfetch\nDisallow: /a\n\nUser-agent: *\nDisallow: /\n", "/b", None),
        ("User-agent: *\nDisallow: /\n\nUser-agent: InterlockFetch/1.0\nDisallow: /a\n", "/a", 5),
        ("User-agent: InterlockFetch\nUser-agent: other\nDisallow: /a", "/a", 3),
        (
            "User-agent: InterlockFetch\nDisallow: /x\nUser-agent: InterlockFetch\nDisallow: /a",
            "/a",
            4,
        ),
        ("User-agent: InterlockFetch\nSitemap: /s\nUser-agent: other\nDisallow: /a", "/a", 4),
        ("User-agent: InterlockFetch\n\nUser-agent: *\nDisallow: /\nAllow: /a", "/a", None),
        ("user-AGENT:*\r\nDISALLOW:/a # because\r\n", "/a", 2),
        ("\ufeffUser-agent: *\nDisallow: /a", "/ab", 2),
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", None),
        ("User-agent: *\nAllow: /a\nDisallow: /a", "/a", None),
        ("User-agent: *\nDisallow: /a/\nDisallow: /a/b\nAllow: /", "/a/b", 3),
        ("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf", 2),
        ("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf?z", None),
        ("User-agent: *\nDisallow: /*?session=", "/x?session=1", 2),
        ("User-agent: *\nDisallow: /%7Ejoe/", "/~joe/x", 2),
        ("User-agent: *\nDisallow: /ü", "/%C3%BC", 2),
        ("User-agent: *\nDisallow: /A", "/a", None),
        ("User-agent: *\nDisallow: /robots.txt", "/robots.txt", None),
        ("User-agent: Interlock\nDisallow: /", "/a", None),
        ("<html>User-agent: *\nnothing to see</html>", "/a", None),
        ("User-agent: *\nDisallow: /" + "a*" * 200 + "b", "/" + "a" * 2000, None),
    ],
)
def test_rules(robots: str, path: str, line: int | None) -> None:
    """The group that names us or else that for all, the longest rule, wildcards, encodings; the
    line that forbids is named.
    """
    found = RobotsRules(robots, TOKEN).forbids(f"https://site.example{path}")
    assert (found.number if found else None) == line


def test_a_file_with_many_groups_costs_no_more_than_its_length() -> None:
    """Every rule of twenty thousand names is read once, and only ours is kept."""
    names = "".join(f"User-agent: bot{n}\n" for n in range(20_000))
    rules = "".join(f"Disallow: /{n}\n" for n in range(20_000))
    assert lines_for(names + names + rules, TOKEN) == []
    ours = lines_for(f"{names}User-agent: {TOKEN}\n{rules}", TOKEN)
    assert (len(ours), ours[-1].number) == (20_000, 40_001)


# Through the server.


async def test_a_page_that_is_forbidden(site: Site) -> None:
    """It is not asked for; who it is that forbids it and what a person can do is said.

    The prompt is that person's.
    """
    site.pages["/robots.txt"] = ok(b"User-agent: *\nDisallow: /private\n", PLAIN)
    site.pages["/private/x"] = ok(b"for people", PLAIN)
    site.pages["/page"] = ok(b"for all", PLAIN)
    async with site.client() as client:
        for tool in ("fetch", "fetch_links", "fetch_outline"):
            said = await refusal(client, tool, url=site.url("/private/x"))
            assert f"{site.url('')}/robots.txt does not allow automated access" in said
            assert "line 2, 'Disallow: /private'" in said
            assert "prompt `fetch`" in said
        for around in ("/./private/x", "/a/../private/x", "/a/%2e%2E/private/x", "/%70rivate/x"):
            assert "does not allow" in await refusal(client, "fetch", url=site.url(around))
        assert site.paths() == []
        assert (await done(client, "fetch", url=site.url()))["source"]["robots"] == "allowed"
        (message,) = (await client.get_prompt("fetch", {"url": site.url("/private/x")})).messages
        assert "for people" in message.content.text  # type: ignore[union-attr]  # it is text, as this shows
        with pytest.raises(Exception, match="does not allow"):
            await client.read_resource(f"web://{site.url('/private/x')}")
    async with site.client(robots="ignore") as client:
        assert (await done(client, "fetch", url=site.url("/private/x")))["source"][
            "robots"
        ] == "ignored"


async def test_it_is_asked_once(site: Site) -> None:
    """For a site, whatever its pages; another host, or port, has its own.

    It is asked by the name that its rules are for.
    """
    site.pages["/page"] = ok(b"words", PLAIN)
    async with site.client(user_agent="MyReader/2.0") as client:
        for host in ("site.example", "site.example", "other.example"):
            await text(client, site.url(host=host))
    assert [host for host, path in site.asked if path == "/robots.txt"] == [
        "site.example",
        "other.example",
    ]
    assert site.header("user-agent") == "MyReader/2.0"


async def test_where_a_redirect_leads_is_asked_about_too(site: Site) -> None:
    """The site that the page is on at the end has a word in it."""
    site.pages["/robots.txt"] = lambda seen: ok(
        b"User-agent: *\nDisallow: /page"
        if (seen.header("host") or "").startswith("other")
        else b"",
        PLAIN,
    )
    site.pages["/start"] = moved(site.url(host="other.example"))
    site.pages["/page"] = ok(b"words", PLAIN)
    async with site.client() as client:
        assert "http://other.example" in await refusal(client, "fetch", url=site.url("/start"))
    assert site.paths() == ["/start"]


@pytest.mark.parametrize(
    "robots, refused",
    [
        (ok(b"", status="404 Not Found"), None),
        (ok(b"", status="403 Forbidden"), None),
        (ok(b"", status="401 Unauthorized"), None),
        (ok(b"", status="500 Oh"), "status 500"),
        (ok(b"", status="503 Busy"), "status 503"),
        (ok(b"", status="429 Slowly"), "status 429"),
        (moved("/other.txt"), "line 2"),
        (moved("http://inside.example/robots.txt"), None),
        (moved("http://10.0.0.1/robots.txt"), "redirects to a blocked address"),
        (moved("/robots.txt"), None),
    ],
)
async def test_a_file_that_cannot_be_had(site: Site, robots: bytes, refused: str | None) -> None:
    """One that is not there allows everything, one that cannot be read nothing, redirects are
    followed five times (RFC 9309, 2.3.1).
    """
    site.pages["/robots.txt"] = robots
    site.pages["/other.txt"] = ok(b"User-agent: *\nDisallow: /page", PLAIN)
    site.pages["/page"] = ok(b"words", PLAIN)
    async with site.client() as client:
        if b"inside" in robots:
            assert "resolves to a private address" in await refusal(client, "fetch", url=site.url())
        elif refused is None:
            assert await text(client, site.url()) == "words"
        else:
            assert refused in await refusal(client, "fetch", url=site.url())
            assert "/page" not in site.paths()
    assert len(site.asked) - len(site.paths()) <= 6


async def test_of_many_at_once_one_reads_it(site: Site) -> None:
    """For all of them, also where it comes late."""
    waiting = asyncio.Event()
    free = asyncio.Event()

    async def script(talk: Talk) -> None:
        waiting.set()
        await free.wait()
        await talk.send(ok(b"", PLAIN))

    site.pages["/robots.txt"] = script
    site.pages["/page"] = ok(b"words", PLAIN)
    async with site.client() as client:
        calls = [asyncio.ensure_future(text(client, site.url())) for _ in range(20)]
        await waiting.wait()
        calls.pop().cancel()
        calls.pop(0).cancel()  # the one that reads it: another takes that over
        free.set()
        assert await asyncio.gather(*calls) == ["words"] * 18
    assert len(site.asked) - len(site.paths()) <= 2


@pytest.mark.parametrize(
    "robots, words",
    [
        (
            ok(b"x", "Content-Encoding: br"),
            "/robots.txt could not be read (the answer came in the encoding 'br'",
        ),
        (
            ok(b"x", "Content-Encoding: gzip"),
            "/robots.txt could not be read (the answer's compressed data",
        ),
        (
            moved("http://silent.example/robots.txt"),
            "/robots.txt could not be read (it redirects to http://silent.example/robots.txt.",
        ),
    ],
)
async def test_a_file_that_is_broken_is_named(site: Site, robots: bytes, words: str) -> None:
    """It is robots.txt that is at fault, and not the page; nothing is fetched (RFC 9309,
    2.3.1.4).
    """
    site.internet.names["silent.example"] = [["93.184.216.35"]]
    site.pages["/robots.txt"] = robots
    site.pages["/page"] = ok(b"words", PLAIN)
    async with site.client() as client:
        assert words in await refusal(client, "fetch", url=site.url())
    assert site.paths() == []


async def test_only_so_much_of_it_is_read(site: Site) -> None:
    """What stands behind 500 KiB is not, and a line that is cut says nothing (RFC 9309, 2.5)."""
    head = b"User-agent: *\nDisallow: /no\n"
    site.pages["/robots.txt"] = ok(
        head + b"#" * (MOST - len(head) - 10) + b"\nDisallow: /page\n", PLAIN
    )
    site.pages["/page"] = ok(b"words", PLAIN)
    async with site.client() as client:
        assert await text(client, site.url()) == "words"
        assert await refusal(client, "fetch", url=site.url("/no"))
