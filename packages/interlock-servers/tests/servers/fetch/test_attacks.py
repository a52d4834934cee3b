"""What hostile pages, names, redirects and documents try; each is stopped by a defence without
which the test fails.
"""

from __future__ import annotations

import asyncio
import gzip
import signal
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import McpError, ToolError
from interlock_servers.fetch import convert
from interlock_servers.fetch.convert import DocumentConverter
from interlock_servers.processes import Process
from tests.servers.calls import done, refusal
from tests.servers.fetch.papers import pdf
from tests.servers.fetch.site import HTML, PLAIN, Site, moved, running, text
from tests.transport.http_peers import Talk, ok
from tests.transport.internet import OTHER, PUBLIC

SECRET = ok(b"the secret of this machine", PLAIN)


Begun = asyncio.Queue[Process]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Begun:
    """The converting processes, as they begin."""
    started = convert._started
    found = Begun()

    @asynccontextmanager
    async def told(feed: bytes) -> AsyncIterator[Process]:
        async with started(feed) as process:
            found.put_nowait(process)
            yield process

    monkeypatch.setattr(convert, "_started", told)
    return found


@pytest.fixture
async def trap(site: Site) -> Site:
    """A web whose every page is a secret, where the name servers and redirects of others lead to
    it.
    """
    site.pages["/secret"] = SECRET
    return site


def nothing_got_out(site: Site) -> None:
    """Nobody but the two public addresses was connected to, and nobody was asked for the secret."""
    assert {host for host, _ in site.internet.dialled} <= {PUBLIC, OTHER}
    assert "/secret" not in site.paths()


@pytest.mark.parametrize("robots", ["ask", "ignore"])
async def test_rebinding(trap: Site, robots: Any) -> None:
    """A name that is public when it is judged and loopback when it is used: what was judged is
    connected to (SEC-14).
    """
    for second in ("127.0.0.1", "169.254.169.254", "10.0.0.7"):
        trap.internet.names["evil.example"] = [[PUBLIC], [second]]
        trap.internet.routed = [
            "127.0.0.1",
            "10.0.0.7",
            "169.254.169.254",
        ]  # nobody listens at the public one
        async with trap.client(robots=robots) as client:
            assert "Nothing listens" in await refusal(
                client, "fetch", url=trap.url("/secret", "evil.example")
            )
            assert "resolves to" in await refusal(
                client, "fetch", url=trap.url("/secret", "evil.example")
            )
    nothing_got_out(trap)


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        [PUBLIC, "127.0.0.1"],
        ["::1"],
        ["::ffff:10.0.0.7"],
        ["169.254.169.254"],
        ["64:ff9b::a00:7"],
    ],
)
async def test_names_that_lead_inside(trap: Site, addresses: list[str]) -> None:
    """One private address among its addresses is enough (SEC-14)."""
    trap.internet.names["evil.example"] = [addresses]
    async with trap.client(robots="ignore") as client:
        answered = await refusal(client, "fetch", url=trap.url("/secret", "evil.example"))
        assert "resolves to" in answered
    nothing_got_out(trap)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "a.localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433",
        "0x7f.1", "127.1", "0", "169.254.169.254",
             "[fd00:ec2::254]", "10.0.0.7", "%6cocalhost", "127.0.0.1.",
             "metadata.google.internal@127.0.0.1"]
)  # fmt: skip
async def test_addresses_of_this_machine_and_of_clouds(trap: Site, host: str) -> None:
    """In every spelling, given and redirected to (SEC-14, SEC-15)."""
    trap.internet.names.setdefault("metadata.google.internal", [["169.254.169.254"]])
    url = trap.url("/secret", host)
    trap.pages["/start"] = moved(url)
    async with trap.client(robots="ignore") as client:
        await refusal(client, "fetch", url=url)
        assert "redirects to" in await refusal(client, "fetch", url=trap.url("/start"))
        for tool in ("fetch_links", "fetch_outline"):
            await refusal(client, tool, url=url)
    nothing_got_out(trap)


@pytest.mark.parametrize(
    "to",
    [
        "http://here.example:{port}/secret",
        "http://inside.example:{port}/secret",
        "//inside.example:{port}/secret",
    ],
)
async def test_redirects_to_names_that_lead_inside(trap: Site, to: str) -> None:
    """Through another site as well; the words show the way (SEC-15)."""
    trap.pages["/start"] = moved(trap.url("/next", "other.example"))
    trap.pages["/next"] = moved(to.format(port=trap.peer.port))
    async with trap.client(robots="ignore") as client:
        said = await refusal(client, "fetch", url=trap.url("/start"))
        assert "resolves to a" in said
        assert (
            f"Redirects: {trap.url('/start')} -> (302) {trap.url('/next', 'other.example')} -> "
            "(302) http://" in said
        )
    nothing_got_out(trap)


@pytest.mark.parametrize(
    "to",
    [
        "file:///etc/passwd",
        "gopher://site.example/",
        "data:text/plain,x",
        "javascript:x",
        "http://[::1",
        "http://u:p@other.example/",
    ],
)
async def test_redirects_to_what_is_no_page(trap: Site, to: str) -> None:
    """Other schemes and broken addresses are not followed."""
    trap.pages["/start"] = moved(to)
    async with trap.client(robots="ignore") as client:
        assert "(status 302)" in await refusal(client, "fetch", url=trap.url("/start"))
    assert trap.paths() == ["/start"]


async def test_redirects_without_an_end(trap: Site) -> None:
    """They end with the number that is allowed, and are shown."""
    for n in range(30):
        trap.pages[f"/{n}"] = moved(f"/{n + 1}")
    trap.pages["/round"] = moved("/round", 301, "Cache-Control: max-age=60")
    async with trap.client(redirects=3, robots="ignore") as client:
        said = await refusal(client, "fetch", url=trap.url("/0"))
        assert "more than 3 redirects" in said
        assert said.count("(302)") == 4
        assert trap.paths() == ["/0", "/1", "/2", "/3"]
        assert "more than 3 redirects" in await refusal(client, "fetch", url=trap.url("/round"))


async def test_a_kept_redirect_is_judged_again(trap: Site) -> None:
    """Where the name that it leads to has changed since, nothing is connected to."""
    trap.internet.names["evil.example"] = [[PUBLIC], [PUBLIC], ["127.0.0.1"]]
    trap.pages["/start"] = moved(
        trap.url("/page", "evil.example"), 301, "Cache-Control: max-age=60"
    )
    trap.pages["/page"] = ok(b"words", PLAIN, "Connection: close")
    async with trap.client(robots="ignore") as client:
        for _ in range(2):
            assert await text(client, trap.url("/start")) == "words"
        assert "loopback" in await refusal(client, "fetch", url=trap.url("/start"))
    nothing_got_out(trap)


# Bombs.


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
async def test_decompression_bombs(site: Site, packing: str) -> None:
    """A few kilobytes that would be fifty megabytes: no more is unpacked than may be read
    (SEC-12).
    """
    bomb = (
        gzip.compress(bytes(50_000_000)) if packing == "gzip" else zlib.compress(bytes(50_000_000))
    )
    site.pages["/bomb"] = ok(bomb, PLAIN, f"Content-Encoding: {packing}")
    site.pages["/robots.txt"] = ok(bomb, PLAIN, f"Content-Encoding: {packing}")
    async with site.client(bytes=100_000) as client:
        assert "It has more than 97.7 KiB" in await refusal(client, "fetch", url=site.url("/bomb"))
        with pytest.raises(McpError, match="INTERLOCK_FETCH_BYTES"):
            await client.get_prompt("fetch", {"url": site.url("/bomb")})


async def test_a_body_a_little_over_the_limit(site: Site) -> None:
    """To the byte, also where robots.txt files may be longer."""
    for size in (100_000, 100_001):
        site.pages[f"/{size}"] = ok(gzip.compress(b"x" * size), PLAIN, "Content-Encoding: gzip")
    async with site.client(bytes=100_000, robots="ignore") as client:
        assert (await done(client, "fetch", url=site.url("/100000")))["length"] == 100_000
        assert "It has more than 97.7 KiB" in await refusal(
            client, "fetch", url=site.url("/100001")
        )


async def test_bodies_that_lie_or_never_end(site: Site) -> None:
    """What says that it is too large is not begun, what does not say so is ended, what drips has a
    time.
    """

    closed = asyncio.Event()

    async def large(talk: Talk) -> None:
        await talk.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 99999999999\r\n\r\n"
        )
        await talk.gone()

    async def endless(talk: Talk) -> None:
        await talk.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        gone = asyncio.ensure_future(talk.gone())
        while not gone.done():
            await talk.send(bytes(4096))
            await asyncio.wait([gone], timeout=0)

    async def silent(talk: Talk) -> None:
        await talk.gone()

    async def archive(talk: Talk) -> None:
        await talk.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\nContent-Length: "
            b"4000000000\r\n\r\nPK"
        )
        await talk.gone()
        closed.set()

    async def stopping(talk: Talk) -> None:
        await talk.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\nbegin"
        )
        await talk.gone()

    for script in (large, endless, silent, stopping, archive):
        name = script.__name__
        script.__name__ = "script"
        site.pages[f"/{name}"] = script
    async with site.client(bytes=100_000, seconds=0.5, robots="ignore") as client:
        assert "has 93.1 GiB; the limit is 97.7 KiB" in await refusal(
            client, "fetch", url=site.url("/large")
        )
        assert "more than 97.7 KiB" in await refusal(client, "fetch", url=site.url("/endless"))
        assert "a file of 3.73 GiB of the type application/zip" in await refusal(
            client, "fetch", url=site.url("/archive")
        )
        async with asyncio.timeout(10):
            await closed.wait()  # at once, and not when the server ends
        for path in ("/silent", "/stopping"):
            assert "0.5 seconds" in await refusal(client, "fetch", url=site.url(path))


SLOW = (
    "<p " + " ".join(f'a{n}="1"' for n in range(400_000)) + ">x"
)  # to read it takes the square of its length


async def test_a_page_that_takes_for_ever_to_convert(site: Site, begun: Begun) -> None:
    """It is ended when its time is over, and other calls do not notice; as it is it can be read."""
    site.pages["/slow"] = ok(SLOW.encode(), HTML)
    site.pages["/page"] = ok(b"words", PLAIN)
    async with site.client(converting=0.7) as client:
        slow = asyncio.ensure_future(refusal(client, "fetch", url=site.url("/slow")))
        await begun.get()
        assert await text(client, site.url()) == "words"
        assert not slow.done()
        assert "cannot be converted within 0.7 seconds" in await slow
        assert (await done(client, "fetch", url=site.url("/slow"), format="html"))["length"] == len(
            SLOW
        )


LIBRARY = """
import signal, sys
from types import SimpleNamespace as Some
ConversionOptions = PreprocessingOptions = Some
NOTHING = Some(document=Some(title=None, description=None, language=None))
def convert(page, options):
    return Some(content=({}), metadata=NOTHING)
"""


@pytest.mark.parametrize(
    "does, most",
    [
        ("signal.pause()", None),
        ("str(len(bytes(500 * 2**20)))", None),
        ("'x' * 6_000_000", None),
        ("str(len('x' * 50_000_000))", "50000000"),
    ],
    ids=["waits", "swells", "talks", "behaves"],
)
async def test_each_bound_of_the_converter(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, does: str, most: str | None
) -> None:
    """A library that waits without working, one that takes memory and gives it back, one that says
    too much; one that does neither.
    """
    (tmp_path / "html_to_markdown.py").write_text(LIBRARY.replace("{}", does))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    site.pages["/page"] = ok(b"<p>words", HTML)
    # Only a library that never answers reaches its time limit: a busy machine takes its time.
    converting = 2.0 if does == "signal.pause()" else 300.0
    async with site.client(converting=converting, memory=400 * 2**20) as client:
        if most is None:
            assert "cannot be converted" in await refusal(client, "fetch", url=site.url())
        else:
            assert await text(client, site.url()) == most


async def test_no_module_beside_the_converter_is_a_library(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither those of this server nor those of the folder in which it was started."""
    (tmp_path / "html_to_markdown.py").write_text(LIBRARY.replace("{}", "'\\n'.join(sys.path)"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(Path(convert.__file__).parent)
    site.pages["/page"] = ok(b"<p>words", HTML)
    async with site.client() as client:
        paths = (await text(client, site.url())).splitlines()
    assert str(tmp_path) in paths
    assert not {"", ".", str(Path(convert.__file__).parent)} & set(paths)


async def test_a_page_that_needs_too_much_memory(site: Site) -> None:
    """A few bytes that stand for a table of a million cells: the process that converts ends, and
    this one goes on.
    """
    site.pages["/wide"] = ok(b'<table><tr><td colspan="9999999">x</td></tr></table>' * 20_000, HTML)
    site.pages["/page"] = ok(b"<p>words", HTML)
    async with site.client(memory=200 * 2**20) as client:
        assert "cannot be converted within" in await refusal(client, "fetch", url=site.url("/wide"))
        assert await text(client, site.url()) == "words\n"


@pytest.mark.parametrize(
    "tag", ["<div>", "<blockquote>", "<ul><li>", "<table><tr><td>", "<b>", "<font>"]
)
async def test_nesting_without_an_end(site: Site, tag: str) -> None:
    """Fifty thousand elements in one another end no stack of ours."""
    site.pages["/deep"] = ok((tag * 50_000 + "x").encode(), HTML)
    async with site.client() as client:
        assert (await client.call_tool("fetch", {"url": site.url("/deep")})).content


@pytest.mark.parametrize(
    "content",
    [
        zlib.compress(bytes(200_000_000)),
        zlib.compress(b"(x) Tj " * 20_000_000),
        zlib.compress(b"[" * 5_000_000),
    ],
    ids=["zeros", "words", "brackets"],
)
async def test_pdfs_that_are_bombs(site: Site, content: bytes) -> None:
    """A page that unpacks to hundreds of megabytes, or never ends: bounded in memory and time."""
    site.pages["/bomb"] = ok(pdf("", packed=content), "Content-Type: application/pdf")
    site.pages["/page"] = ok(b"words", PLAIN)
    async with site.client(converting=1.0, memory=300 * 2**20) as client:
        result = await client.call_tool("fetch", {"url": site.url("/bomb")})
        assert result.is_error or "cannot be read" in result.text or len(result.text) < 300_000
        assert await text(client, site.url()) == "words"


async def test_half_characters(begun: Begun) -> None:
    """A PDF may say that a glyph is half a character, and a page can hold one: nothing that reads
    them breaks on it.
    """
    half = (
        "<</Type/CMap>> begincmap 1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfchar "
        "<41> <d800> endbfchar endcmap"
    )
    bench = DocumentConverter(30.0, 2**30)
    made = pdf("A", unicode=half.encode())
    (words,) = (await bench.of_pdf(made, 1, 1)).texts
    assert "\ud800" not in words
    assert words.strip()


async def test_who_gives_up_ends_the_conversion(site: Site, begun: Begun) -> None:
    """No process is left of a call that nobody waits for (`CAN-01`)."""
    site.pages["/slow"] = ok(SLOW.encode(), HTML)
    async with site.client() as client, asyncio.timeout(20):
        call = asyncio.ensure_future(client.call_tool("fetch", {"url": site.url("/slow")}))
        process = await begun.get()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert await process.wait() == -signal.SIGKILL


async def test_a_converter_that_is_killed(begun: Begun) -> None:
    """It is told as what it is, and the next one works."""
    bench = DocumentConverter(30.0, 2**30)
    async with asyncio.timeout(20):
        working = asyncio.ensure_future(bench.of_html(SLOW, "https://site.example/"))
        (await begun.get()).kill()
        with pytest.raises(ToolError, match="cannot be converted"):
            await working
        assert (await bench.of_html("<p>words", "https://site.example/")).text == "words\n"


async def test_the_converter_knows_nothing_of_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, begun: Begun
) -> None:
    """Nothing of the environment but where Python is, and no module of the folder in which the
    server was started.
    """
    monkeypatch.setenv("INTERLOCK_SECRET", "s3cret")
    monkeypatch.chdir(tmp_path)
    for module in ("html_to_markdown", "json"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit(9)")
    async with asyncio.timeout(20):
        working = asyncio.ensure_future(
            DocumentConverter(30.0, 2**30).of_html("<p>words", "https://site.example/")
        )
        process = await begun.get()
        assert b"s3cret" not in await asyncio.to_thread(
            Path(f"/proc/{process.pid}/environ").read_bytes
        )
        assert (await working).text == "words\n"


# What pages say.


async def test_what_nobody_sees_does_not_reach_a_model(site: Site) -> None:
    """Hidden elements, and sentences in characters that are not drawn, in the text, the title and
    the words of links.
    """
    hidden = "".join(chr(0xE0000 + ord(char)) for char in "obey")
    site.pages["/page"] = ok(
        (
            f"<title>T{hidden}</title><p>seen{hidden}\x1b[31m</p><p "
            "style='display:none'>unseen</p><a "
            f"href=/x>li{hidden}nk</a>"
        ).encode(),
        HTML,
    )
    async with site.client() as client:
        result = await client.call_tool("fetch", {"url": site.url()})
        links = await client.call_tool("fetch_links", {"url": site.url()})
        for said in (result, links):
            shown = said.text + str(said.structured_content)
            assert not {"\x1b", *hidden} & set(shown)
            assert "unseen" not in shown
        assert (result.structured_content or {})["title"] == "T"


async def test_a_page_cannot_write_headers_of_its_own(site: Site) -> None:
    """A title is a line, and does not begin the text; a type that is none is shown as such."""
    site.pages["/page"] = ok(b"<title>T\n---\n\nobey</title><p>words", HTML)
    site.pages["/type"] = ok(b"\0", "Content-Type: application/\xe2\x80\xaeevil" + "x" * 5000)
    async with site.client() as client:
        assert await text(client, site.url()) == "words\n"
        assert (await done(client, "fetch", url=site.url()))["title"] == "T --- obey"
        assert len(await refusal(client, "fetch", url=site.url("/type"))) < 500


async def test_what_a_caller_sends_ends_no_line_of_a_request(site: Site) -> None:
    """No address becomes a header, or another request."""
    async with site.client(robots="ignore") as client:
        for path in ("/a\r\nX-Evil: 1", "/a HTTP/1.1\r\n\r\nGET /secret", "/a\x00", "/a\tb"):
            assert "no http or https URL" in await refusal(client, "fetch", url=site.url(path))
    assert site.asked == []


async def test_another_site_learns_nothing_of_the_first() -> None:
    """No cookie, no referrer and no credentials go anywhere, whatever was set."""
    async with running() as site:
        site.pages["/start"] = moved(site.url("/page", "other.example"), 302, "Set-Cookie: id=1")
        site.pages["/page"] = ok(b"words", PLAIN, "Set-Cookie: id=2", "Cache-Control: no-store")
        async with site.client() as client:
            for _ in range(2):
                await text(client, site.url("/start"))
        assert {name.lower() for seen in site.peer.requests for name, _ in seen.headers} == {
            "host",
            "user-agent",
            "accept",
            "accept-encoding",
        }
