"""What may be kept of the web, how long it holds and how it is asked about again: RFC 9111 as
tables, and through the server.
"""

from __future__ import annotations

from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import pytest

from interlock import Client
from interlock_servers.fetch import FetchSettings
from interlock_servers.fetch.fetcher import WebFetcher
from interlock_servers.fetch.http_cache import (
    CachedResponse,
    age,
    conditions,
    directives,
    holds_in_need,
    is_for,
    is_fresh,
    lifetime,
    may_keep,
    renewed,
)
from tests.servers.calls import done, refusal
from tests.servers.fetch.site import PLAIN, Site, moved, text
from tests.transport.http_peers import Seen, ok
from tests.transport.internet import PUBLIC

NOW = 1_700_000_000.0
_DATE = formatdate(NOW, usegmt=True)


def kept(
    status: int = 200, asked_with: dict[str, str] | None = None, **headers: str
) -> CachedResponse:
    """An answer that was asked for and came at NOW."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return CachedResponse("https://site.example/", status, named, b"", asked_with or {}, NOW, NOW)


@pytest.mark.parametrize(
    "status, headers, may",
    [
        (200, {}, True),
        (200, {"cache-control": "no-store"}, False),
        (200, {"cache-control": "max-age=60, No-Store"}, False),
        (200, {"cache-control": "private, max-age=60"}, True),
        (200, {"cache-control": "no-cache"}, True),
        (200, {"vary": "*"}, False),
        (200, {"vary": "accept, *"}, False),
        (301, {}, True),
        (302, {}, False),
        (302, {"cache-control": "max-age=60"}, True),
        (307, {"expires": _DATE}, True),
        (404, {}, True),
        (206, {"cache-control": "max-age=60"}, False),
        (500, {"cache-control": "max-age=60"}, False),
        (304, {"cache-control": "max-age=60"}, False),
    ],
)
def test_what_may_be_kept(status: int, headers: dict[str, str], may: bool) -> None:
    """RFC 9111, 3."""
    assert may_keep(status, headers) == may


@pytest.mark.parametrize(
    "one, seconds",
    [
        (kept(cache_control="max-age=60"), 60),
        (kept(cache_control='max-age="60"'), 60),
        (kept(cache_control="max-age=60, s-maxage=5"), 60),
        (kept(cache_control="max-age=60", expires=_DATE), 60),
        (kept(cache_control="max-age=60, max-age=61"), 0),
        (kept(cache_control="max-age=60, max-age=60"), 60),
        (kept(cache_control="max-age=soon"), 0),
        (kept(cache_control="max-age=-1"), 0),
        (kept(cache_control="max-age=99999999999999999999"), 2**31),
        (kept(cache_control="MAX-AGE = 60"), 60),
        (kept(date=_DATE, expires=formatdate(NOW + 90, usegmt=True)), 90),
        (kept(date=_DATE, expires=formatdate(NOW - 90, usegmt=True)), 0),
        (kept(expires=formatdate(NOW + 90, usegmt=True)), 90),
        (kept(date=_DATE, expires="0"), 0),
        (kept(date=_DATE, expires="-1", last_modified=formatdate(NOW - 1000, usegmt=True)), 0),
        (kept(date=_DATE, last_modified=formatdate(NOW - 1000, usegmt=True)), 100),
        (kept(date=_DATE, last_modified=formatdate(NOW - 10**9, usegmt=True)), 86_400),
        (kept(date=_DATE, last_modified=formatdate(NOW + 1000, usegmt=True)), 0),
        (kept(302, date=_DATE, last_modified=formatdate(NOW - 1000, usegmt=True)), 0),
        (kept(date=_DATE, last_modified="Mon, 99 Foo 99999 99:99:99"), 0),
        (kept(), 0),
    ],
)
def test_how_long_it_is_fresh(one: CachedResponse, seconds: float) -> None:
    """RFC 9111, 4.2.1 and 4.2.2: what is said counts before what is guessed, and what cannot be
    read is stale.
    """
    assert lifetime(one) == seconds


@pytest.mark.parametrize(
    "headers, asked, came, now, seconds",
    [
        ({}, 0, 0, 7, 7),
        ({"age": "30"}, 0, 0, 7, 37),
        ({"age": "30"}, 0, 5, 7, 37),
        ({"age": "30, 99"}, 0, 0, 0, 30),
        ({"age": "old"}, 0, 0, 7, 7),
        ({"date": formatdate(NOW - 40, usegmt=True), "age": "30"}, 0, 0, 7, 47),
        ({"date": formatdate(NOW + 40, usegmt=True)}, 0, 0, 7, 7),
        ({}, 0, 10, 5, 10),
    ],
)
def test_how_old_it_is(
    headers: dict[str, str], asked: float, came: float, now: float, seconds: float
) -> None:
    """RFC 9111, 4.2.3: the age that is said, the date and the time on the way; clocks that go wrong
    make nothing younger.
    """
    assert (
        age(CachedResponse("", 200, headers, b"", {}, NOW + asked, NOW + came), NOW + now)
        == seconds
    )


def test_fresh_stale_and_in_need() -> None:
    """A minute is a minute; no-cache is asked about always; a failing server is covered only where
    it allowed that.
    """
    one = kept(cache_control="max-age=60")
    assert (is_fresh(one, NOW + 59), is_fresh(one, NOW + 60)) == (True, False)
    assert not is_fresh(kept(cache_control="no-cache, max-age=60"), NOW)
    assert not holds_in_need(one, NOW + 61)
    need = "max-age=60, stale-if-error=30"
    assert (
        holds_in_need(kept(cache_control=need), NOW + 89),
        holds_in_need(kept(cache_control=need), NOW + 90),
    ) == (True, False)
    for hard in ("must-revalidate", "no-cache"):
        assert not holds_in_need(kept(cache_control=f"{need}, {hard}"), NOW + 61)


def test_for_which_request_it_is() -> None:
    """RFC 9111, 4.1: the headers that it varies by have to be the same, missing ones too."""
    one = kept(asked_with={"accept": "text/html"}, vary="Accept, X-Other")
    assert is_for(one, {"accept": "text/html"})
    assert not is_for(one, {"accept": "text/plain"})
    assert not is_for(one, {"accept": "text/html", "x-other": "1"})
    assert not is_for(one, {})


def test_asking_again() -> None:
    """RFC 9111, 3.2 and 4.3.1: by tag and by date; a 304 brings new headers, and neither length nor
    packing.
    """
    one = kept(
        etag='W/"1"', last_modified=_DATE, content_type="text/html", cache_control="max-age=1"
    )
    assert conditions(one) == {"if-none-match": 'W/"1"', "if-modified-since": _DATE}
    assert conditions(kept()) == conditions(kept(etag="\x80", last_modified="\x01")) == {}
    new = renewed(
        one,
        {"cache-control": "max-age=9", "content-length": "0", "content-encoding": "gzip"},
        NOW + 5,
        NOW + 6,
    )
    assert new.headers == {**one.headers, "cache-control": "max-age=9"}
    assert (new.asked, new.came, new.body) == (NOW + 5, NOW + 6, one.body)


def test_directives_are_read() -> None:
    """Quotes, cases and commas in them."""
    assert directives({"cache-control": 'Private="a, max-age=5", max-age=1,, no-cache ,x=y'}) == {
        "private": "a, max-age=5", "max-age": "1", "no-cache": "", "x": "y"}  # fmt: skip


# Through the server.


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets time go on for the cache."""
    now = [NOW]
    was = WebFetcher.__init__
    monkeypatch.setattr(
        WebFetcher,
        "__init__",
        lambda self, settings, fetch: was(self, settings, fetch, lambda: now[0]),
    )

    def later(seconds: float) -> None:
        now[0] += seconds

    return later


async def test_what_holds_is_not_asked_for_again(
    site: Site, clock: Callable[[float], None]
) -> None:
    """Until it is a minute old; who wants it fresh gets it so; how old it is is said."""
    site.pages["/page"] = ok(b"words", PLAIN, "Cache-Control: max-age=60")
    async with site.client() as client:
        first = await done(client, "fetch", url=site.url())
        clock(59)
        second = await done(client, "fetch", url=f"{site.url()}#part")
        assert site.paths() == ["/page"]
        assert "cached" not in first["source"]
        assert (second["source"]["cached"], second["source"]["age"]) == (True, 59)
        await done(client, "fetch", url=site.url(), fresh=True)
        assert (site.paths(), site.header("cache-control")) == (["/page"] * 2, "no-cache")
        clock(61)
        await done(client, "fetch", url=site.url())
        assert site.paths() == ["/page"] * 3


async def test_what_has_not_changed_is_not_sent_again(
    site: Site, clock: Callable[[float], None]
) -> None:
    """By its tag; a 304 makes it hold again, and another tag brings another page."""
    tags = ["1"]

    def page(seen: Seen) -> bytes:
        if seen.header("if-none-match") == f'"{tags[-1]}"':
            return b"HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\n\r\n"
        return ok(
            f"version {tags[-1]}".encode(),
            PLAIN,
            f'ETag: "{tags[-1]}"',
            "Cache-Control: max-age=10",
        )

    site.pages["/page"] = page
    async with site.client() as client:
        assert await text(client, site.url()) == "version 1"
        clock(11)
        again = await done(client, "fetch", url=site.url())
        assert (again["source"]["cached"], again["source"]["status"], again["source"]["size"]) == (
            True,
            200,
            9,
        )
        clock(59)
        assert await text(client, site.url()) == "version 1"
        assert len(site.paths()) == 2
        clock(2)
        tags.append("2")
        assert await text(client, site.url()) == "version 2"


@pytest.mark.parametrize("failing", [ok(b"", status="503 Busy"), None])
async def test_a_server_that_fails_may_be_covered(
    site: Site, clock: Callable[[float], None], failing: bytes | None
) -> None:
    """By what it said before, where it allowed that and for as long; and it is said."""
    site.pages["/page"] = ok(b"words", PLAIN, "Cache-Control: max-age=10, stale-if-error=100")
    site.pages["/hard"] = ok(b"words", PLAIN, "Cache-Control: max-age=10")
    async with site.client(robots="ignore") as client:
        for path in ("/page", "/hard"):
            assert await text(client, site.url(path)) == "words"
        clock(60)
        if failing is None:
            site.internet.routed = []
        for path in ("/page", "/hard"):
            site.pages[path] = failing or _closing
        result = await client.call_tool("fetch", {"url": site.url()})
        data: Any = result.structured_content
        assert data["source"]["stale"] is True
        assert "The server fails now; this is its answer from 60 seconds ago." in result.text
        assert await refusal(client, "fetch", url=site.url("/hard"))
        clock(60)
        assert await refusal(client, "fetch", url=site.url())


async def _closing(talk: Any) -> None:
    """A connection that ends without an answer."""


_closing.__name__ = "script"


async def test_what_must_not_be_kept_is_not(site: Site) -> None:
    """no-store, Vary: *, and what says nothing at all is asked for each time."""
    site.pages.update({
        "/a": ok(b"words", PLAIN, "Cache-Control: no-store, max-age=60"),
        "/b": ok(b"words", PLAIN, "Cache-Control: max-age=60", "Vary: *"),
        "/c": ok(b"words", PLAIN),
    })  # fmt: skip
    async with site.client() as client:
        for path in ("/a", "/b", "/c"):
            await text(client, site.url(path))
            await text(client, site.url(path))
    assert site.paths() == ["/a", "/a", "/b", "/b", "/c", "/c"]


async def test_what_varies_is_for_the_same_request_only(site: Site) -> None:
    """What came for a request that was to pass the cache by is not for one that is not, where the
    server says so.
    """
    site.pages["/page"] = ok(b"words", PLAIN, "Cache-Control: max-age=60", "Vary: Cache-Control")
    async with site.client() as client:
        for fresh, asked in ((True, 1), (False, 2), (False, 2)):
            await text(client, site.url(), fresh=fresh)
            assert len(site.paths()) == asked


async def test_what_is_forbidden_is_not_covered(site: Site, clock: Callable[[float], None]) -> None:
    """A site that may not be asked any more is no server that fails."""
    site.internet.names["moving.example"] = [[PUBLIC], ["10.0.0.7"]]
    site.pages["/page"] = ok(
        b"words", PLAIN, "Cache-Control: max-age=10, stale-if-error=100", "Connection: close"
    )
    async with site.client(robots="ignore") as client:
        assert await text(client, site.url(host="moving.example")) == "words"
        clock(60)
        assert "private address" in await refusal(
            client, "fetch", url=site.url(host="moving.example")
        )


async def test_redirects_are_kept_where_they_may_be(site: Site) -> None:
    """One for ever with a time, one for now not; the hops are told all the same, and each is judged
    each time.
    """
    site.pages.update({
        "/old": moved("/page", 301, "Cache-Control: max-age=60"),
        "/now": moved("/page", 302),
        "/page": ok(b"words", PLAIN, "Cache-Control: max-age=60"),
    })  # fmt: skip
    async with site.client() as client:
        for path in ("/old", "/now"):
            for _ in range(2):
                assert (
                    len((await done(client, "fetch", url=site.url(path)))["source"]["redirects"])
                    == 1
                )
    assert site.paths() == ["/old", "/page", "/now", "/now"]


async def test_the_cache_has_bounds(site: Site) -> None:
    """In number and in bytes: what was not asked for longest is asked for again."""
    for n in range(4):
        site.pages[f"/{n}"] = ok(b"x" * 1000, PLAIN, "Cache-Control: max-age=60")
    for settings in (FetchSettings(kept=2), FetchSettings(kept_bytes=4000)):
        site.asked.clear()
        async with Client(_server(site, settings)) as client:
            for n in (0, 1, 2, 2, 0):
                await text(client, site.url(f"/{n}"))
        assert site.paths() == ["/0", "/1", "/2", "/0"]


def _server(site: Site, settings: FetchSettings) -> Any:
    return site.server(kept=settings.kept, kept_bytes=settings.kept_bytes)
