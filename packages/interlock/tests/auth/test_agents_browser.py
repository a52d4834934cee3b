"""Log-in with a browser: real sockets for the browser that comes back, and for those who would like
to be it.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from interlock import types as t
from interlock.auth.agents import Browser
from interlock.auth.agents.browser import open_browser
from interlock.auth.agents.redirect_listener import ARRIVED, RedirectListener, query_of
from interlock.auth.oauth.errors import Unauthorized
from interlock.auth.oauth.steps import ShowCode
from tests.ports import free_port

URL = "https://as.example/authorize?client_id=c&state=right"


async def probe(redirect_uri: str, request: str | bytes, *, host: str | None = None) -> bytes:
    """Send a request, or the query of one, to where a redirect URI leads; what comes back."""
    parts = urlsplit(redirect_uri)
    if isinstance(request, str):
        request = (
            f"GET {parts.path}?{request} HTTP/1.1\r\nHost: {host or parts.netloc}\r\nAccept: "
            "text/html\r\n\r\n"
        ).encode()
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        writer.write(request)
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


@asynccontextmanager
async def visiting(
    browser: Browser, url: str = URL
) -> AsyncIterator[tuple[str, asyncio.Task[str]]]:
    """The redirect URI and the visit, which has begun; everything is closed and gone at the end."""
    threads = set(threading.enumerate())
    redirect_uri = await browser.listen(())
    visit = asyncio.create_task(browser.visit(url, redirect_uri))
    await asyncio.sleep(0)
    try:
        yield redirect_uri, visit
    finally:
        visit.cancel()
        await asyncio.gather(visit, return_exceptions=True)
        await browser.aclose()
        await browser.aclose()
    with pytest.raises(OSError, match="refused|Connect call failed"):
        await asyncio.open_connection(urlsplit(redirect_uri).hostname, urlsplit(redirect_uri).port)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    for thread in set(threading.enumerate()) - threads:
        await asyncio.to_thread(thread.join, 10)
        assert not thread.is_alive() or thread.name.startswith("asyncio")


def a_browser(**options) -> Browser:
    """A Browser that opens none, and says nothing."""
    return Browser(**{"open": lambda url: True, "say": lambda line: None, **options})


async def test_a_log_in_ends_with_the_query_string_that_the_browser_brought():
    """`AUT-13`, `AUT-14`: the redirect URI is the address of this machine, and what comes back is
    left for the dance to judge.
    """
    opened: asyncio.Queue[str] = asyncio.Queue()
    said: list[str] = []
    loop = asyncio.get_running_loop()
    browser = Browser(
        open=lambda url: loop.call_soon_threadsafe(opened.put_nowait, url), say=said.append
    )
    async with visiting(browser) as (redirect_uri, visit):
        assert urlsplit(redirect_uri).hostname == "127.0.0.1"
        assert urlsplit(redirect_uri).path == "/callback"
        assert await opened.get() == URL
        assert said == [f"To log in, visit {URL}"]
        page = await probe(redirect_uri, "code=a%20b&state=right&iss=https%3A%2F%2Fas.example")
        assert await visit == "code=a%20b&state=right&iss=https%3A%2F%2Fas.example"
        assert page == ARRIVED


async def test_a_page_says_nothing_of_the_request_and_lets_nothing_happen_in_it():
    """The answer page: no store, no referrer, no script, no frame, and no word of whoever asked."""
    async with visiting(a_browser()) as (redirect_uri, visit):
        words = (
            "error=%3Cscript%3Ealert(1)%3C/script%3E&"
            "error_description=pwned%0d%0aSet-Cookie:%20a=b&state=right"
        )
        page = (await probe(redirect_uri, words)).decode()
        assert await visit == words
    head, _, html = page.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 OK\r\n")
    for line in (
        "Cache-Control: no-store",
        "Referrer-Policy: no-referrer",
        "X-Frame-Options: DENY",
        "Connection: close",
    ):
        assert line in head.split("\r\n")
    assert "default-src 'none'; style-src 'sha256-" in head
    assert "frame-ancestors 'none'" in head
    assert not {"pwned", "alert", "Set-Cookie", "right"} & set(page.replace("<", " ").split())
    assert "may close this window" in html
    assert "prefers-color-scheme: dark" in html
    assert "<script" not in html


STRANGERS: dict[str, Callable[[str], str | bytes]] = {
    "another state": lambda place: "code=evil&state=wrong",
    "no state": lambda place: "code=evil",
    "an error with another state": lambda place: "error=access_denied&state=wrong",
    "an error without state": lambda place: "error=access_denied",
    "neither code nor error": lambda place: "state=right",
    "an empty code": lambda place: "code=&state=right",
    "no query": lambda place: "",
    "too many fields": lambda place: "&".join(["a=b"] * 200) + "&code=evil&state=right",
    "another path": lambda place: f"GET /favicon.ico HTTP/1.1\r\nHost: {place}\r\n\r\n".encode(),
    "a longer path": lambda place: (
        f"GET /callback/x?code=evil&state=right HTTP/1.1\r\nHost: {place}\r\n\r\n".encode()
    ),
    "POST": lambda place: (
        f"POST /callback?code=evil&state=right HTTP/1.1\r\nHost: {place}\r\nContent-Length: "
        "0\r\n\r\n".encode()
    ),
    "HEAD": lambda place: (
        f"HEAD /callback?code=evil&state=right HTTP/1.1\r\nHost: {place}\r\n\r\n".encode()
    ),
    "an absolute target": lambda place: (
        f"GET http://{place}/callback?code=evil&state=right HTTP/1.1\r\nHost: {place}\r\n\r\n"
    ).encode(),
    "a foreign host": lambda place: (
        b"GET /callback?code=evil&state=right HTTP/1.1\r\nHost: rebound.example\r\n\r\n"
    ),
    "a foreign host at this port": lambda place: (
        "GET /callback?code=evil&state=right HTTP/1.1\r\nHost: "
        f"rebound.example:{place.rpartition(':')[2]}\r\n\r\n".encode()
    ),
    "two hosts": lambda place: (
        f"GET /callback?code=evil&state=right HTTP/1.1\r\nHost: {place}\r\nHost: x.example\r\n\r\n"
    ).encode(),
    "no host": lambda place: b"GET /callback?code=evil&state=right HTTP/1.1\r\nAccept: */*\r\n\r\n",
    "a folded header": lambda place: (
        f"GET /callback?code=evil&state=right HTTP/1.1\r\nHost: {place}\r\n x: y\r\n\r\n".encode()
    ),
    "a bare line feed": lambda place: (
        f"GET /callback?code=evil&state=right HTTP/1.1\r\nHost: {place}\nX: y\r\n\r\n".encode()
    ),
    "a null byte": lambda place: (
        f"GET /callback?code=evil&state=right HTTP/1.1\r\nHost: {place}\r\nX: \0\r\n\r\n".encode()
    ),
    "a space in the target": lambda place: (
        f"GET /callback?code=evil&state=right x HTTP/1.1\r\nHost: {place}\r\n\r\n".encode()
    ),
    "TLS": lambda place: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
}


@pytest.mark.parametrize("stranger", STRANGERS)
async def test_whoever_knocks_first_cannot_end_a_log_in(stranger):
    """DNS rebinding, a forged state, a stray fetch: each is turned away, and the right answer still
    counts (`AUT-13`).
    """
    async with visiting(a_browser()) as (redirect_uri, visit):
        page = await probe(redirect_uri, STRANGERS[stranger](urlsplit(redirect_uri).netloc))
        assert page.startswith((b"HTTP/1.1 404 ", b"HTTP/1.1 400 "))
        assert b"evil" not in page
        assert not visit.done()
        assert await probe(redirect_uri, "code=good&state=right") == ARRIVED
        assert await visit == "code=good&state=right"


async def test_a_flood_of_wrong_states_does_not_block_the_right_one():
    """An attacker's page that asks a hundred times is told a hundred times that this is another
    log-in's.
    """
    async with visiting(a_browser()) as (redirect_uri, visit):
        pages = await asyncio.gather(
            *(probe(redirect_uri, f"code=evil&state=guess{n}") for n in range(100))
        )
        assert {page.split(b"\r\n", 1)[0] for page in pages if page} == {
            b"HTTP/1.1 400 Bad Request"
        }
        await probe(redirect_uri, "code=good&state=right")
        assert await visit == "code=good&state=right"


async def test_clients_that_stand_still_keep_nobody_out():
    """A hundred connections that never finish their request:
    the one that does is answered at once."""
    async with visiting(a_browser()) as (redirect_uri, visit):
        parts = urlsplit(redirect_uri)
        slow = [await asyncio.open_connection(parts.hostname, parts.port) for _ in range(100)]
        for _, writer in slow:
            writer.write(b"GET /callback?code=evil&sta")
        assert await probe(redirect_uri, "code=good&state=right") == ARRIVED
        assert await visit == "code=good&state=right"
        for _, writer in slow:
            writer.transport.abort()


async def test_of_too_many_clients_the_eldest_has_to_go():
    """No more than 32 connections are held, however long they may stand."""
    landing = RedirectListener("/callback", patience=3600)
    await landing.open("127.0.0.1", 0)
    crowd = [await asyncio.open_connection("127.0.0.1", landing.port) for _ in range(40)]
    try:
        for reader, _ in crowd[:8]:
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
    finally:
        await landing.aclose()
        for _, writer in crowd:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def test_a_client_that_stands_still_is_left_standing():
    """The head has to come within the patience of the listener."""
    landing = RedirectListener("/callback", patience=0)
    await landing.open("127.0.0.1", 0)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", landing.port)
        writer.write(b"GET /callback?code=a")
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()
    finally:
        await landing.aclose()


async def test_a_huge_head_is_refused():
    """A head of over 32 KiB is not read to its end."""
    async with visiting(a_browser()) as (redirect_uri, visit):
        page = await probe(redirect_uri, "code=" + "x" * 200_000 + "&state=right")
        assert (
            page.startswith(b"HTTP/1.1 431 ") or page == b""
        )  # the rest of the request may have broken the connection
        assert not visit.done()
        await probe(redirect_uri, "code=" + "x" * 12_000 + "&state=right")
        assert len(await visit) == len("code=&state=right") + 12_000


async def test_the_second_answer_is_told_that_it_is_late():
    """Only the first counts, and who comes again, by reloading, gets a page all the same."""
    async with visiting(a_browser()) as (redirect_uri, visit):
        await probe(redirect_uri, "code=first&state=right")
        again = await probe(redirect_uri, "code=second&state=right")
        assert again.startswith(b"HTTP/1.1 200 ")
        assert b"This log-in is over" in again
        assert await visit == "code=first&state=right"


async def test_each_name_of_this_machine_will_do():
    """A browser may say localhost, in any case, for the same listener."""
    async with visiting(a_browser()) as (redirect_uri, visit):
        await probe(
            redirect_uri, "code=c&state=right", host=f"LocalHost:{urlsplit(redirect_uri).port}"
        )
        assert await visit == "code=c&state=right"


async def test_nobody_came_in_time():
    """After the seconds are over there are words, and what to do."""
    browser = a_browser(seconds=0)
    redirect_uri = await browser.listen(())
    try:
        with pytest.raises(t.TimedOut, match="Nobody logged in within 0 seconds.*Try again"):
            await browser.visit(URL, redirect_uri)
        assert b"This log-in is over" in await probe(redirect_uri, "code=late&state=right")
    finally:
        await browser.aclose()


NOT_TO_BE_VISITED = [
    "javascript:alert(1)",
    "file:///etc/passwd",
    "data:text/html,x",
    "vbscript:x",
    "http://as.example/authorize?state=s",
    "https://user:pw@as.example/",
    "https://as.example/\nSet-Cookie:x",
    "https://as.example/\x1b]0;x\x07",
    "https://as.example/ --new-window",
    "https://as.example/`id`",
    'https://as.example/"&calc.exe',
    "--app=https://as.example",
    "//as.example/",
    "https://",
    "",
]


@pytest.mark.parametrize("url", NOT_TO_BE_VISITED)
async def test_only_https_and_loopback_addresses_are_opened(url):
    """`SEC-20`, `SEC-21`, `SEC-22`, `SEC-13`: anything else is neither opened nor said."""
    done: list[str] = []
    browser = Browser(open=done.append, say=done.append)
    redirect_uri = await browser.listen(())
    try:
        with pytest.raises(Unauthorized):
            await browser.visit(url, redirect_uri)
        with pytest.raises(Unauthorized):
            await browser.show_code(ShowCode("ABCD", url, None, 60))
        with pytest.raises(Unauthorized):
            await browser.show_code(ShowCode("ABCD", "https://as.example/device", url or "x", 60))
    finally:
        await browser.aclose()
    assert done == []


@pytest.mark.skipif(sys.platform == "win32", reason="a script as a browser is of Unix")
@pytest.mark.parametrize(
    "url",
    [
        "https://as.example/a?x=$(touch%20pwned)&y=;touch${IFS}pwned&z='",
        "http://127.0.0.1:1/?a=%s&b=1",
        "https://as.example/?a=%20%action",
    ],
)
def test_a_browser_is_opened_without_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
):
    """`SEC-22`: the address arrives as one argument, whatever is in it, and what the browser prints
    goes nowhere.
    """
    script = tmp_path / "browser"
    seen = tmp_path / "seen"
    script.write_text(
        f"#!{sys.executable}\nimport sys\nopen({str(seen)!r}, "
        "'w').write('|'.join(sys.argv[1:]))\nprint('noise')\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("BROWSER", f"{script} %s")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "webbrowser.py").write_text(
        "raise SystemExit(0)"
    )  # what lies in the folder where we are started is not run
    assert open_browser(url) is True
    assert seen.read_text().replace("%ACtion", "%action") == url
    assert not (tmp_path / "pwned").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there is always a browser")
def test_where_there_is_no_browser_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An empty machine has no browser to open."""
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert open_browser("https://as.example/") is (os.uname().sysname == "Darwin")


def _breaks(url: str) -> bool:
    raise OSError("no such browser")


@pytest.mark.parametrize("opener", [_breaks, lambda url: False], ids=["breaks", "finds none"])
async def test_a_browser_that_cannot_be_opened_leaves_the_address_to_the_person(opener):
    """The log-in goes on: the person opens the address themselves."""
    told = asyncio.Event()
    browser = Browser(
        open=opener, say=lambda line: told.set() if "Open the address yourself" in line else None
    )
    async with visiting(browser) as (redirect_uri, visit):
        await told.wait()
        await probe(redirect_uri, "code=c&state=right")
        assert await visit == "code=c&state=right"


async def test_a_port_that_is_registered_is_taken_again():
    """`AUT-14`: of the preferred redirect URIs the first that can be had.

    One whose port is taken is passed over.
    """
    holder = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    taken = holder.sockets[0].getsockname()[1]
    free = free_port()
    known = [
        "https://app.example/callback",
        f"http://127.0.0.1:{taken}/callback",
        "http://127.0.0.1:x/",
        f"http://127.0.0.1:{free}/back",
    ]
    browser = a_browser()
    try:
        assert await browser.listen(known) == known[-1]
        visit = asyncio.create_task(browser.visit(URL, known[-1]))
        await asyncio.sleep(0)
        assert await probe(known[-1], "code=c&state=right") == ARRIVED
        assert await visit == "code=c&state=right"
    finally:
        await browser.aclose()
        holder.close()
        await holder.wait_closed()


async def test_a_redirect_uri_that_was_registered_before_is_the_only_one():
    """`AUR-11`: host, port and path are those that the client was registered with.

    Where they cannot be had, that is said.
    """
    fixed = f"http://localhost:{free_port()}/oauth/back"
    browser = a_browser(redirect_uri=fixed)
    other = a_browser(redirect_uri=fixed)
    try:
        assert await browser.listen(["http://127.0.0.1:1/callback"]) == fixed
        with pytest.raises(Unauthorized, match="cannot listen on http://localhost") as refused:
            await other.listen(())
        assert "Stop the program that uses this port" in str(refused.value)
        visit = asyncio.create_task(browser.visit(URL, fixed))
        await asyncio.sleep(0)
        await probe(fixed, "code=c&state=right")
        assert await visit == "code=c&state=right"
    finally:
        await browser.aclose()
        await other.aclose()


async def test_a_public_redirect_uri_may_lead_here_by_other_ways():
    """An https redirect URI is the user's to forward; requests then come under its name."""
    port = free_port()
    browser = a_browser(redirect_uri="https://tunnel.example/back", port=port)
    try:
        assert await browser.listen(()) == "https://tunnel.example/back"
        visit = asyncio.create_task(browser.visit(URL, "https://tunnel.example/back"))
        await asyncio.sleep(0)
        await probe(f"http://127.0.0.1:{port}/back", "code=c&state=right", host="tunnel.example")
        assert await visit == "code=c&state=right"
    finally:
        await browser.aclose()


@pytest.mark.parametrize(
    "uri",
    [
        "http://app.example/callback",
        "myapp:/callback",
        "javascript:x",
        "https://",
        "http://127.0.0.1/#x",
    ],
)
def test_a_redirect_uri_is_https_or_of_this_machine(uri):
    """`AUT-11`: nothing else is taken."""
    with pytest.raises(ValueError, match="cannot be a redirect URI"):
        Browser(redirect_uri=uri)


async def test_a_code_for_another_device_is_shown_and_its_page_opened():
    """RFC 8628, 3.3: code and address are shown, and the complete address is opened.

    Nothing in the code steers a terminal.
    """
    opened: asyncio.Queue[str] = asyncio.Queue()
    said: list[str] = []
    loop = asyncio.get_running_loop()
    browser = Browser(
        open=lambda url: loop.call_soon_threadsafe(opened.put_nowait, url), say=said.append
    )
    await browser.show_code(
        ShowCode(
            "WDJB\x1b[2J", "https://as.example/device", "https://as.example/device?code=WDJB", 600
        )
    )
    assert await opened.get() == "https://as.example/device?code=WDJB"
    assert "https://as.example/device on any device, and enter the code WDJB?[2J" in said[0]
    assert said[-1] == "It is valid for 10 minutes."


async def test_a_visit_needs_a_listener():
    """A visit before there is anybody to come back to is a fault of the caller."""
    with pytest.raises(RuntimeError, match="follows listen"):
        await a_browser().visit(URL, "http://127.0.0.1:1/callback")


@pytest.mark.parametrize(
    "head, query",
    [
        (b"GET /cb?code=c HTTP/1.1\r\nHost: h\r\n\r\n", "code=c"),
        (b"GET /cb?code=c HTTP/1.0\r\nHOST:h\r\n\r\n", "code=c"),
        (b"GET /cb HTTP/1.1\r\nHost: \tH \r\n\r\n", ""),
        (b"GET /cb?a?b=c HTTP/1.1\r\nhost: h\r\n\r\n", "a?b=c"),
        (b"GET /CB?code=c HTTP/1.1\r\nHost: h\r\n\r\n", None),
        (b"GET /cb?code=c HTTP/2.0\r\nHost: h\r\n\r\n", None),
        (b"get /cb?code=c HTTP/1.1\r\nHost: h\r\n\r\n", None),
        (b"GET /cb?code=\xff HTTP/1.1\r\nHost: h\r\n\r\n", None),
        (b"GET /cb?code=c HTTP/1.1\r\nHost : h\r\n\r\n", None),
        (b"\r\n\r\n", None),
    ],
)
def test_a_request_is_read_to_the_letter(head, query):
    """What is not exactly a GET of the path with the right Host is nothing."""
    assert query_of(head, "/cb", {"h"}) == query
