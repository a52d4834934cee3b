"""What the tools read, and how: pages, PDFs, data, media, pages of long documents, links, outlines,
redirects, errors, progress.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
from base64 import b64decode
from typing import Any

import pytest

from interlock import Caller, Client, McpError, Principal
from interlock_servers.fetch import FetchSettings
from interlock_servers.fetch.fetcher import WebFetcher
from interlock_servers.fetch.paging import cursor_of, place_of
from interlock_servers.fetch.tools import DocumentReader
from tests.servers.calls import done, refusal
from tests.servers.fetch.papers import pdf
from tests.servers.fetch.site import HTML, PLAIN, Site, moved, text
from tests.transport.http_peers import Talk, ok

PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ARTICLE = """<!doctype html><html lang="de-AT"><head><title> Roses
 &amp; beans </title><meta name="description" content="How to grow both."><base \
href="/garden/"></head><body>
<nav><a href="/">Home</a></nav><header><h1>Roses</h1></header><main><p>Plant them in <a \
href="spring#may">spring</a>,
<b>deep</b>.</p><p hidden>not to be seen</p><p style="display:none">nor \
this</p><script>evil()</script><datalist><option>for old ones</datalist>
<pre><code class="language-py">if x:
    y()</code></pre><table><tr><th>bed</th><th>rows</th></tr><tr><td>one</td><td>2</td></tr></table>
<h2>Beans</h2><p>Grüße <img src="data:image/png;base64,AAAA" alt="a \
bean"></p></main><footer>imprint</footer></body></html>"""


async def test_a_page_as_markdown(site: Site) -> None:
    """Headings, links made whole, code and tables; what a browser hides is hidden, and what stands
    around is left out unless it is wanted.
    """
    site.pages["/page"] = ok(ARTICLE.encode(), HTML)
    async with site.client() as client:
        result = await client.call_tool("fetch", {"url": site.url()})
        page = result.text
        spring = site.url("/garden/spring#may")
        for part in (
            "# Roses\n",
            f"[spring]({spring})",
            "**deep**",
            "```py\nif x:\n    y()\n```",
            "| bed | rows |",
            "## Beans",
            "Grüße",
            "a bean",
        ):
            assert part in page, part
        for part in ("Home", "imprint", "seen", "nor this", "evil", "base64", "for old ones"):
            assert part not in page, part
        data: Any = result.structured_content
        assert data == {
            "source": {
                "url": site.url(),
                "status": 200,
                "content_type": "text/html; charset=utf-8",
                "size": len(ARTICLE.encode()),
                "robots": "allowed",
            },
            "kind": "markdown",
            "length": len(page),
            "end": len(page),
            "title": "Roses & beans",
            "description": "How to grow both.",
            "language": "de-AT",
            "encoding": "utf-8",
        }
        whole = await text(client, site.url(), main_only=False)
        assert "Home" in whole
        assert "imprint" in whole


async def test_other_forms_of_a_page(site: Site) -> None:
    """As text, and as it is."""
    site.pages["/page"] = ok(ARTICLE.encode(), HTML)
    async with site.client() as client:
        plain = await text(client, site.url(), format="text")
        assert "**" not in plain
        assert "spring" in plain
        raw = await client.call_tool("fetch", {"url": site.url(), "format": "html"})
        data: Any = raw.structured_content
        assert (raw.text, data["kind"]) == (ARTICLE, "html")


async def test_a_page_that_stands_in_what_is_left_out(site: Site) -> None:
    """All of it is given then; one that says nothing is empty."""
    site.pages["/page"] = ok(b"<body><aside><p>all there is</p></aside></body>", HTML)
    site.pages["/empty"] = ok(b"<body><script>x</script></body>", HTML)
    site.pages["/none"] = ok(b"", PLAIN)
    async with site.client() as client:
        assert await text(client, site.url()) == "all there is\n"
        scripts = "(There is nothing, or only what scripts would put there, which are not run.)"
        for path, words in (("/empty", scripts), ("/none", "(There is nothing.)")):
            result = await client.call_tool("fetch", {"url": site.url(path)})
            assert result.text == words
            assert (result.structured_content or {})["kind"] in ("markdown", "text")


async def test_data_and_texts_as_they_are(site: Site) -> None:
    """JSON, XML, Markdown, and what says no type but is text."""
    data = json.dumps({"ü": [1, 2]}, ensure_ascii=False)
    for path, body, kind in (
        ("/json", data, "application/json"),
        ("/problem", data, "application/problem+json"),
        ("/feed", "<feed>ü</feed>", "application/atom+xml; charset=utf-8"),
        ("/picture", "<svg>ü</svg>", "image/svg+xml"),
        ("/md", "# ü\n", "text/markdown"),
        ("/vague", "ü words", "application/octet-stream"),
    ):
        site.pages[path] = ok(body.encode(), f"Content-Type: {kind}")
    async with site.client() as client:
        for path, body in (
            ("/json", data),
            ("/problem", data),
            ("/feed", "<feed>ü</feed>"),
            ("/picture", "<svg>ü</svg>"),
            ("/vague", "ü words"),
        ):
            assert await text(client, site.url(path)) == body
        assert (await done(client, "fetch", url=site.url("/md")))["kind"] == "markdown"
        assert (await done(client, "fetch", url=site.url("/json")))["kind"] == "text"


async def test_pictures_and_sound(site: Site) -> None:
    """As such, up to a size."""
    site.pages["/p"] = ok(PNG, "Content-Type: image/png")
    site.pages["/v"] = ok(PNG, "Content-Type: application/octet-stream")
    site.pages["/s"] = ok(b"OggS" + bytes(50), "Content-Type: audio/ogg")
    async with site.client(media=100) as client:
        for path, kind, mime in (
            ("/p", "image", "image/png"),
            ("/v", "image", "image/png"),
            ("/s", "audio", "audio/ogg"),
        ):
            result = await client.call_tool("fetch", {"url": site.url(path)})
            block: Any = result.content[0]
            assert (type(block).__name__.lower(), block.mime_type) == (f"{kind}content", mime)
            assert (result.structured_content or {})["kind"] == kind
            assert b64decode(block.data) == (PNG if kind == "image" else b"OggS" + bytes(50))
        picture = (await client.call_tool("fetch", {"url": site.url("/p")})).content[0]
        (content,) = (await client.read_resource(f"web://{site.url('/p')}")).contents
        assert (content.mime_type, b64decode(content.blob or "")) == ("image/png", PNG)
        assert (await client.get_prompt("fetch", {"url": site.url("/p")})).messages[
            1
        ].content == picture
    async with site.client(media=40) as client:
        assert "INTERLOCK_FETCH_MEDIA" in await refusal(client, "fetch", url=site.url("/p"))


# PDFs.


async def test_a_pdf_by_its_pages(site: Site) -> None:
    """All of them, or those that are wanted; the pages that there are not are said."""
    site.pages["/paper"] = ok(
        pdf("first", "second", "third", title="Three pages"), "Content-Type: application/pdf"
    )
    async with site.client() as client:
        result = await client.call_tool("fetch", {"url": site.url("/paper")})
        assert (
            result.text
            == "[Page 1 of 3]\n\nfirst\n\n[Page 2 of 3]\n\nsecond\n\n[Page 3 of 3]\n\nthird\n\n"
        )
        data: Any = result.structured_content
        assert (
            data["kind"],
            data["title"],
            data["pages"],
            data["first_page"],
            data["last_page"],
        ) == ("pdf", "Three pages", 3, 1, 3)
        assert (
            await text(client, site.url("/paper"), pdf_pages="2") == "[Page 2 of 3]\n\nsecond\n\n"
        )
        assert (await text(client, site.url("/paper"), pdf_pages="2-")).count("[Page") == 2
        assert "has 3 pages" in await refusal(
            client, "fetch", url=site.url("/paper"), pdf_pages="4"
        )
        assert "is not a range of pages" in await refusal(
            client, "fetch", url=site.url("/paper"), pdf_pages="all"
        )
        (message,) = (
            await client.get_prompt("fetch", {"url": site.url("/paper"), "pdf_pages": "3"})
        ).messages
        assert "third" in message.content.text  # type: ignore[union-attr]  # it is text, as this shows


async def test_pdfs_that_cannot_be_read(site: Site) -> None:
    """Broken ones and those without text, each in words."""
    site.pages["/broken"] = ok(b"%PDF-1.4 nothing more", "Content-Type: application/pdf")
    site.pages["/picture"] = ok(pdf(""), "Content-Type: application/pdf")
    async with site.client() as client:
        assert "cannot be read as a PDF" in await refusal(client, "fetch", url=site.url("/broken"))
        assert "have no text" in await refusal(client, "fetch", url=site.url("/picture"))


async def test_what_is_not_installed_is_named(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """pypdf and html-to-markdown are extras; texts can be read without them."""
    for name in ("pypdf", "html_to_markdown"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('none of it here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    site.pages["/paper"] = ok(pdf("first"), "Content-Type: application/pdf")
    site.pages["/page"] = ok(b"<p>words", HTML)
    site.pages["/text"] = ok(b"words", PLAIN)
    async with site.client() as client:
        assert "pip install 'interlock[pdf]'" in await refusal(
            client, "fetch", url=site.url("/paper")
        )
        assert "pip install 'interlock[servers]'" in await refusal(client, "fetch", url=site.url())
        assert await text(client, site.url(), format="html") == "<p>words"
        assert await text(client, site.url("/text")) == "words"
        monkeypatch.setitem(sys.modules, "protego", None)
        assert "pip install 'interlock[servers]'" in await refusal(
            client, "fetch", url=site.url("/text", "other.example")
        )


# Pages of long documents.

LONG = "".join(f"Paragraph {n} has some words and an ü.\n\n" for n in range(200))


@pytest.mark.parametrize("length", [100, 101, 999, 100_000])
async def test_pages_joined_are_the_document(site: Site, length: int) -> None:
    """Call after call with the cursor; the server is asked once, though nothing may be kept."""
    site.pages["/page"] = ok(LONG.encode(), PLAIN, "Cache-Control: no-store")
    async with site.client() as client:
        pages: list[str] = []
        cursor: dict[str, Any] = {}
        while True:
            data = await done(client, "fetch", url=site.url(), length=length, **cursor)
            pages.append(
                await text(client, site.url(), length=length, **cursor)
                if cursor
                else LONG[: data["end"]]
            )
            assert len(pages[-1]) <= length
            if "next" not in data:
                break
            cursor = {"cursor": data["next"]}
        assert "".join(pages) == LONG
        assert site.paths() == ["/page"]


async def test_a_document_that_changes_between_pages(site: Site) -> None:
    """Whoever reads it goes on in what they began with; once that is kept no longer, they are told
    that it has changed.
    """
    site.pages["/page"] = ok(LONG.encode(), PLAIN)
    async with site.client() as client:
        first = await done(client, "fetch", url=site.url(), length=1000)
        site.pages["/page"] = ok(LONG.replace("words", "verbs").encode(), PLAIN)
        assert "words" in await text(client, site.url(), length=1000, cursor=first["next"])
        assert "verbs" in await text(client, site.url(), length=1000)
        assert "words" in await text(client, site.url(), length=1000, cursor=first["next"])
    async with site.client() as another:
        assert "has changed" in await refusal(
            another, "fetch", url=site.url(), cursor=first["next"]
        )
        site.pages["/page"] = ok(LONG.encode(), PLAIN)
        assert (await done(another, "fetch", url=site.url(), cursor=first["next"]))[
            "start"
        ] == first["end"]


async def test_cursors_that_are_none(site: Site) -> None:
    """They are refused before anything is asked; one of another page is no way into this one."""
    site.pages["/page"], site.pages["/other"] = ok(LONG.encode(), PLAIN), ok(b"other", PLAIN)
    async with site.client() as client:
        assert "is not a cursor" in await refusal(client, "fetch", url=site.url(), cursor="5000")
        assert site.asked == []
        first = await done(client, "fetch", url=site.url(), length=1000)
        assert "no longer valid" in await refusal(
            client, "fetch", url=site.url("/other"), cursor=first["next"]
        )
        beyond = cursor_of(place_of(first["next"]).digest, 99_999_999)
        assert "no longer valid" in await refusal(client, "fetch", url=site.url(), cursor=beyond)
        assert len((await client.call_tool("fetch", {"url": site.url()})).content) == 1


async def test_no_page_is_larger_than_it_may_be(site: Site) -> None:
    """Whatever is asked for; and what else there is stands in words beside the page."""
    site.pages["/page"] = ok(LONG.encode(), PLAIN)
    async with site.client(page=500, largest_page=800) as client:
        result = await client.call_tool("fetch", {"url": site.url()})
        data: Any = result.structured_content
        assert data["end"] <= 500
        note: Any = result.content[1]
        assert (
            note.text == f"[Characters 0 to {data['end']} of {len(LONG):,}. Continue with "
            f"cursor={data['next']}]"
        )
        assert 500 < (await done(client, "fetch", url=site.url(), length=100_000))["end"] <= 800
        with pytest.raises(McpError, match="INTERLOCK_FETCH_LARGEST_PAGE"):
            await client.read_resource(f"web://{site.url()}")


# Links and outlines.


async def test_links_of_a_page(site: Site) -> None:
    """Each address once, those that are wanted, in pages, and only where somebody could go."""
    links = "".join(f'<a href="/n/{n}">Number {n}</a> ' for n in range(250))
    odd = (
        '<a href="mailto:a@b.c">mail</a><a href="javascript:x()">js</a><a href="#top">top</a><a '
        'href="http://[x">bad</a>'
    )
    site.pages["/page"] = ok(
        (
            f'<nav>{odd}<a href="http://other.example/x#y">Else</a></nav>{links}<a '
            'href="/n/1">again</a>'
        ).encode(),
        HTML,
    )
    site.pages["/text"] = ok(b"words", PLAIN)
    async with site.client() as client:
        first = await done(client, "fetch_links", url=site.url())
        assert (first["found"], len(first["links"]), first["next"]) == (251, 200, 200)
        assert first["links"][:2] == [
            {"text": "Else", "url": "http://other.example/x"},
            {"text": "Number 0", "url": site.url("/n/0")},
        ]
        rest = await done(client, "fetch_links", url=site.url(), start=200)
        assert (len(rest["links"]), "next" in rest) == (51, False)
        same = await done(
            client, "fetch_links", url=site.url(), containing="NUMBER 24", same_site=True
        )
        assert [link["text"] for link in same["links"]] == [
            "Number 24",
            *(f"Number 24{n}" for n in range(10)),
        ]
        assert (
            await done(client, "fetch_links", url=site.url(), containing="Else", same_site=True)
        )["links"] == []
        assert "is not an HTML page" in await refusal(client, "fetch_links", url=site.url("/text"))


async def test_a_page_with_more_links_than_are_looked_at(site: Site) -> None:
    """It is said, so that nobody takes what is not listed for what is not there."""
    site.pages["/few"] = ok(b"<a href=/x>x</a>", HTML)
    site.pages["/many"] = ok("".join(f"<a href=/{n}>n</a>" for n in range(5_001)).encode(), HTML)
    async with site.client() as client:
        for path, said in (("/few", False), ("/many", True)):
            result = await client.call_tool("fetch_links", {"url": site.url(path)})
            assert ("has too many links to read all" in result.text) == said


async def test_the_outline_of_a_page(site: Site) -> None:
    """Its headings, each with the place at which to read on."""
    body = "".join(
        f"<h2>Part {n}</h2><p>{'words ' * 50}</p><h3>Of {n}</h3><p>more</p>" for n in range(300)
    )
    site.pages["/page"] = ok(f"<title>Parts</title><h1>All</h1>{body}".encode(), HTML)
    site.pages["/text"] = ok(b"words", PLAIN)
    async with site.client() as client:
        outline = await done(client, "fetch_outline", url=site.url())
        assert (outline["title"], len(outline["sections"]), outline["complete"]) == (
            "Parts",
            500,
            False,
        )
        part = outline["sections"][9]
        assert (part["level"], part["title"]) == (2, "Part 4")
        assert (await text(client, site.url(), cursor=part["cursor"], length=100)).startswith(
            "## Part 4\n"
        )
        assert "has no headings" in await refusal(client, "fetch_outline", url=site.url("/text"))


# Redirects.


async def test_redirects_are_told(site: Site) -> None:
    """Each hop with its status, and whether it left the site; links are those of the last."""
    site.pages["/a"] = moved("/b", 301)
    site.pages["/b"] = moved(site.url("/c#part", "other.example"), 307)
    site.pages["/c"] = ok(b'<p><a href="d">on</a>', HTML)
    async with site.client() as client:
        result = await client.call_tool("fetch", {"url": site.url("/a")})
        data: Any = result.structured_content
        last = site.url("/c", "other.example")
        assert (data["source"]["url"], data["source"]["redirects"]) == (last, [
            {"url": site.url("/a"), "status": 301, "to": site.url("/b"), "elsewhere": False},
            {"url": site.url("/b"), "status": 307, "to": last, "elsewhere": True},
        ])  # fmt: skip
        assert f"[on]({site.url('/d', 'other.example')})" in result.text
        assert (
            f"[Redirects: {site.url('/a')} -> (301) {site.url('/b')} -> (307) {last}.]"
            in result.text
        )


async def test_redirects_in_letters_of_other_languages(site: Site) -> None:
    """Many sites write them as they are, in UTF-8, and nobody's browser minds."""
    site.pages["/a"] = ok(b"", "Location: /Grüße?w=日", status="302 Moved")
    site.pages["/Gr%C3%BC%C3%9Fe?w=%E6%97%A5"] = ok(b"words", PLAIN)
    async with site.client() as client:
        assert await text(client, site.url("/a")) == "words"


# What goes wrong.


@pytest.mark.parametrize(
    "answer, words",
    [
        (
            ok(b"", status="404 Not Found"),
            "site.example answered with status 404. The page does not exist.",
        ),
        (ok(b"", status="410 Gone"), "gone for good"),
        (ok(b"", status="401 Unauthorized"), "never logs in"),
        (ok(b"", status="403 Forbidden"), "open it in a browser"),
        (ok(b"", "Retry-After: 120", status="429 Too Many"), "It asks to wait 120 seconds."),
        (
            ok(b"", "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT", status="503 Busy"),
            "It asks to wait Fri, 31 Dec 1999 23:59:59 GMT.",
        ),
        (ok(b"", status="500 Oh"), "The server has an error."),
        (ok(b"", status="418 Teapot"), "There is no readable page at this address."),
        (ok(b"", status="302 Found"), "There is no readable page at this address."),
        (b"HTTP/1.1 304 Not Modified\r\n\r\n", "There is no readable page at this address."),
        (
            ok(b"PK", "Content-Type: application/zip"),
            "a file of 2 bytes of the type application/zip",
        ),
        (
            ok(b"\0\1", "Content-Type: application/octet-stream"),
            "a file of 2 bytes of the type application/octet-stream",
        ),
        (ok(b"\0\1"), "the type that nobody says"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nshort",
            "closed the connection",
        ),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "is not HTTP/1.1"),
        (ok(b"x", "Content-Encoding: br", PLAIN), "encoding 'br'"),
        (ok(b"x", "Content-Encoding: gzip, gzip", PLAIN), "encoding 'gzip, gzip'"),
        (
            ok(b"x", "Content-Encoding: gzip", "Content-Encoding: gzip", PLAIN),
            "encoding 'gzip, gzip'",
        ),
        (ok(b"x", PLAIN, *[f"X-{n}: {'y' * 4000}" for n in range(300)]), "bytes of headers"),
    ],
)
async def test_what_a_server_says_wrong(site: Site, answer: bytes, words: str) -> None:
    """Each in words for a model, with what can be done."""

    async def script(talk: Talk) -> None:
        await talk.send(answer)

    site.pages["/page"] = script
    async with site.client(robots="ignore") as client:
        assert words in await refusal(client, "fetch", url=site.url())


@pytest.mark.parametrize(
    "url, words",
    [
        ("", "is no http or https URL"),
        ("nonsense", "'nonsense' is no http or https URL"),
        ("ftp://site.example/", "Give an http or https address"),
        ("http://user:secret@site.example/", "never logs in"),
        ("http://site.example:22/", "its port is not one of a web server"),
        ("http://nowhere.example/", "was not found"),
        ("http://silent.example:{port}/", "Nothing listens"),
    ],
)
async def test_what_cannot_be_asked(site: Site, url: str, words: str) -> None:
    """It is said before or instead of any answer, and no password is repeated."""
    site.internet.names["silent.example"] = [["93.184.216.35"]]

    async def resolve(host: str, port: int) -> Any:
        return await known(host, port) if host in site.internet.names else [][0:0]

    known = site.internet.resolve
    site.internet.resolve = resolve  # type: ignore[method-assign]  # so that a name can be unknown
    async with site.client() as client:
        said = await refusal(client, "fetch", url=url.format(port=site.peer.port))
        assert words in said
        assert "secret" not in said


async def test_whoever_runs_it_says_what_may_be_asked(site: Site) -> None:
    """Only some hosts, all but some, no plain http; the words name the variable."""
    site.pages["/page"] = ok(b"words", PLAIN)
    for settings, words in (
        ({"hosts": ("*.other.example",)}, "INTERLOCK_FETCH_HOSTS"),
        ({"never": ("site.example",)}, "INTERLOCK_FETCH_NEVER"),
        ({"plain_http": False}, "Use its https address"),
    ):
        async with site.client(**settings) as client:
            assert words in await refusal(client, "fetch", url=site.url())
    async with site.client() as client:
        assert "INTERLOCK_FETCH_NETWORKS" in await refusal(
            client, "fetch", url=site.url(host="inside.example")
        )
        assert "INTERLOCK_FETCH_LOOPBACK" in await refusal(client, "fetch", url=site.peer.url)
    assert site.asked == []
    async with site.client(networks=("10.0.0.0/24",), loopback=True) as client:
        assert await text(client, site.url(host="inside.example")) == "words"
        assert await text(client, f"http://127.0.0.1:{site.peer.port}/page") == "words"


# On the way.


def listener(seen: list[tuple[float, float | None]]) -> Any:
    """Hears of progress."""
    return lambda told: seen.append((told.progress, told.total))


async def test_progress_is_told_where_the_size_is_known(site: Site) -> None:
    """In bytes of how many; not for what is packed, whose size nobody knows (`PRG-01`)."""
    body = b"words " * 100_000
    site.pages["/page"] = ok(body, PLAIN)
    site.pages["/packed"] = ok(gzip.compress(body), PLAIN, "Content-Encoding: gzip")
    async with site.client() as client:
        for path in ("/page", "/packed"):
            seen: list[tuple[float, float | None]] = []
            await client.call_tool("fetch", {"url": site.url(path)}, on_progress=listener(seen))
            if path == "/page":
                assert seen[-1] == (len(body), len(body))
                assert [size for size, _ in seen] == sorted({size for size, _ in seen})
            else:
                assert seen == []


async def test_who_gives_up_ends_the_download(site: Site) -> None:
    """The server sees its connection close at once (`CAN-01`)."""
    begun = asyncio.Event()
    over = asyncio.Event()

    async def script(talk: Talk) -> None:
        await talk.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\nbegin"
        )
        begun.set()
        await talk.gone()
        over.set()

    site.pages["/page"] = script
    async with site.client() as client:
        call = asyncio.ensure_future(client.call_tool("fetch", {"url": site.url()}))
        await begun.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        async with asyncio.timeout(10):
            await over.wait()


async def test_so_many_at_once_to_one_host_and_no_more(site: Site) -> None:
    """The others wait their turn; another host is not kept waiting."""
    running = [0]
    most = [0]
    free = asyncio.Event()

    async def script(talk: Talk) -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        await free.wait()
        running[0] -= 1
        await talk.send(ok(b"words", PLAIN))

    for n in range(6):
        site.pages[f"/{n}"] = script
    site.pages["/page"] = ok(b"words", PLAIN)
    async with site.client(robots="ignore", at_once=2) as client:
        calls = [asyncio.ensure_future(text(client, site.url(f"/{n}"))) for n in range(6)]
        assert await text(client, site.url(host="other.example")) == "words"
        free.set()
        assert await asyncio.gather(*calls) == ["words"] * 6
    assert most[0] <= 2


# The library.


async def test_the_prompt_and_the_resource(site: Site) -> None:
    """A person's page stands between marks that it cannot imitate; a resource is the page whole;
    faults are said in words.
    """
    site.pages["/page"] = ok(b"<h1>One</h1><pre>~~~~\n~~~~~</pre>", HTML)
    async with site.client() as client:
        (message,) = (await client.get_prompt("fetch", {"url": site.url()})).messages
        content: Any = message.content
        assert content.text.endswith("\n~~~~~~")
        assert "untrusted" in content.text
        (page,) = (await client.read_resource(f"web://{site.url()}")).contents
        assert (page.mime_type, page.text) == ("text/markdown", await text(client, site.url()))
        for call in (
            client.get_prompt("fetch", {"url": site.url("/gone")}),
            client.read_resource(f"web://{site.url('/gone')}"),
        ):
            with pytest.raises(McpError, match="status 404"):
                await call


async def test_addresses_are_completed(site: Site) -> None:
    """By those that were fetched before, with or without their scheme, but for what may be secret
    in them (`CMP-01`).
    """
    site.pages.update({f"/{n}": ok(b"words", PLAIN) for n in range(3)})
    site.pages["/1?key=secret"] = ok(b"words", PLAIN)
    async with site.client() as client:
        for path in ("/0", "/1?key=secret", "/2", "/0"):
            await text(client, site.url(path))
        for ref in ("web://{+url}", "fetch"):
            for typed in ("", "http://site", "site.example"):
                assert (await client.complete(ref, "url", typed)).values == [
                    site.url("/0"),
                    site.url("/2"),
                    site.url("/1"),
                ]
        assert (await client.complete("fetch", "url", "http://other")).values == []


class Asks:
    """A call of somebody, as far as the reader looks at it."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.principal = caller.principal

    def progress(self, *told: object) -> None:
        """Nothing listens."""


async def test_nobody_learns_from_the_cache_what_others_read(site: Site) -> None:
    """Each has their own, of answers and of documents; those who come without a name share one, for
    what is nobody's in particular.
    """
    site.pages["/page"] = ok(LONG.encode(), PLAIN, "Cache-Control: max-age=60")
    site.pages["/own"] = ok(b"words", PLAIN, "Cache-Control: private, max-age=60")
    server = site.server()
    async with Client(server):
        reader: Any = server.lifespan_state
        ada, eve = [
            Asks(Caller("2026-07-28", principal=Principal(issuer="i", subject=name, client="c")))
            for name in ("ada", "eve")
        ]
        stranger = Asks(Caller("2026-07-28", anonymous=True))
        for path in ("/page", "/own"):
            for who, cached in (
                (ada, False),
                (ada, True),
                (eve, False),
                (stranger, False),
                (stranger, path == "/page"),
            ):
                got, _ = await reader.got(site.url(path), who)
                assert got.cached == cached, (path, who)
        reading = await reader.read(site.url(), ada)
        digest = reading.document.digest
        assert reader.readings.get(reader.key(ada, site.url(), digest)) is reading
        assert reader.readings.get(reader.key(eve, site.url(), digest)) is None


async def test_nobody_reads_what_others_fetched(site: Site) -> None:
    """Over a network, where anybody could ask, no address is suggested."""
    settings = FetchSettings()
    reader: Any = DocumentReader(settings, WebFetcher(settings, site.fetcher(settings)))
    ada, eve = (
        Asks(Caller("2026-07-28", principal=Principal(issuer="i", subject=name, client="c")))
        for name in ("ada", "eve")
    )
    stranger = Asks(Caller("2026-07-28", anonymous=True))
    here = Asks(Caller("2026-07-28"))
    for who in (ada, stranger, here):
        reader.remember(
            who,
            (
                "https://site.example/"
                f"{who.principal.subject if who.principal else who.caller.anonymous}"
            ),
        )
    assert reader.suggested(ada, "https://") == ["https://site.example/ada"]
    assert reader.suggested(here, "https://") == ["https://site.example/False"]
    assert reader.suggested(eve, "https://") == reader.suggested(stranger, "https://") == []
