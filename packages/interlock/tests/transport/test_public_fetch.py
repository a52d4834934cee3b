"""The guarded fetcher on the wire: it connects to what it judged and to nothing else, reads within
bounds, and goes nowhere it is sent.
"""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from interlock import ProtocolError, TimedOut, Unreachable
from interlock.http11.fetch import ConnectionLost, Request
from interlock.http11.proxies import Proxies
from interlock.http11.safe_fetch import BlockedAddress, SafeFetch
from tests.transport.certificates import Authority
from tests.transport.http_peers import (
    Script,
    Talk,
    always,
    both_loops,
    get,
    ok,
    once,
    post,
    serving,
    whole,
)
from tests.transport.internet import OTHER, PUBLIC, SIX, Internet

LIMIT = 10_000


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """One CA for all."""
    return Authority(tmp_path_factory.mktemp("ca"))


def here(**settings: Any) -> SafeFetch:
    """One for development, that does not look at the environment."""
    return SafeFetch(**{"loopback": True, "proxies": Proxies(), "limit": LIMIT, **settings})


# What it connects to.


async def test_a_document_of_the_public_internet(authority: Authority):
    """The name is resolved once; TLS and Host speak of the name, the connection is to the address
    (SEC-14).
    """
    context = authority.server("auth.example")
    names: list[str | None] = []
    context.sni_callback = lambda sock, name, context: names.append(name)
    internet = Internet({"auth.example": [[PUBLIC]]})
    fetch = internet.fetch(ca=authority.file)
    async with serving(always(ok(b"{}")), context, "auth.example") as peer:
        for _ in range(2):
            assert await whole(fetch, get(peer.url, ("Accept", "application/json"))) == (200, b"{}")
        await fetch.aclose()
    assert (internet.asked, internet.dialled, names) == (
        ["auth.example"],
        [(PUBLIC, peer.port)],
        ["auth.example"],
    )
    assert [seen.header("host") for seen in peer.requests] == [f"auth.example:{peer.port}"] * 2
    assert [seen.header("accept") for seen in peer.requests] == ["application/json"] * 2


async def test_a_certificate_must_be_of_the_name_and_not_of_the_address(authority: Authority):
    """Whoever has the address cannot answer for the name: nothing of the request is sent
    (SEC-14).
    """
    for names in (("other.example",), (PUBLIC,)):
        internet = Internet({"auth.example": [[PUBLIC]]})
        fetch = internet.fetch(ca=authority.file)
        async with serving(always(ok()), authority.server(*names), "auth.example") as peer:
            with pytest.raises(Unreachable, match="certificate that is not trusted"):
                await fetch(get(peer.url))
            await fetch.aclose()
        assert internet.dialled == [(PUBLIC, peer.port)]
        assert not peer.requests


async def test_rebinding_between_check_and_connect(authority: Authority):
    """First public, then loopback: what was judged is dialled, the second answer is judged anew,
    and the victim sees no connection (SEC-14).
    """
    async with serving(
        always(ok(b"secret")), authority.server("evil.example"), "evil.example"
    ) as victim:
        internet = Internet({"evil.example": [[PUBLIC], ["127.0.0.1"]]}, routed=["127.0.0.1"])
        fetch = internet.fetch(ca=authority.file)
        with pytest.raises(Unreachable, match="Nothing listens"):
            await fetch(get(victim.url))
        assert (internet.asked, internet.dialled) == (["evil.example"], [(PUBLIC, victim.port)])
        with pytest.raises(BlockedAddress, match="resolves to a loopback address"):
            await fetch(get(victim.url))
        assert len(internet.dialled) == 1
        await fetch.aclose()
    assert victim.opened == 0


async def test_rebinding_in_development(authority: Authority):
    """With loopback=True a name of the outside leads here neither at once nor later (SEC-13,
    SEC-14).
    """
    async with serving(
        always(ok(b"secret")), authority.server("evil.example"), "evil.example"
    ) as victim:
        internet = Internet(
            {"evil.example": [["127.0.0.1", PUBLIC], ["::1"], ["127.0.0.1"]]},
            routed=["127.0.0.1", "::1"],
        )
        fetch = internet.fetch(ca=authority.file, loopback=True)
        for url in (victim.url, victim.url, victim.url.replace("https:", "http:"), victim.url):
            with pytest.raises(BlockedAddress):
                await fetch(get(url))
        await fetch.aclose()
    assert (victim.opened, internet.dialled) == (0, [])


@both_loops
async def test_this_machine_in_development(authority: Authority):
    """By http and https, by name and address; the next address is tried where nobody listens at the
    first; else it is refused (SEC-13).
    """

    async def resolve(host: str, port: int) -> list[str]:
        return ["::1", "127.0.0.1"]

    fetch = here(resolve=resolve, ca=authority.file)
    strict = here(loopback=False)
    for tls, name in (
        (None, "localhost"),
        (None, "127.0.0.1"),
        (authority.server("a.localhost"), "a.localhost"),
    ):
        async with serving(once(ok(b"{}")), tls, name) as peer:
            assert await whole(fetch, get(peer.url)) == (200, b"{}")
            with pytest.raises(BlockedAddress, match="this machine itself.* loopback=True"):
                await strict(get(peer.url))
        assert peer.opened == 1
    await fetch.aclose()
    await strict.aclose()


async def test_the_next_address_where_the_first_does_not_answer(authority: Authority):
    """All were judged; the last one's misfortune is told. A certificate that is wrong at one is not
    tried for elsewhere.
    """
    async with serving(always(ok(b"{}")), authority.server("auth.example"), "auth.example") as peer:
        internet = Internet({"auth.example": [[SIX, PUBLIC, OTHER, SIX]]}, routed=[OTHER])
        fetch = internet.fetch(ca=authority.file)
        assert await whole(fetch, get(peer.url)) == (200, b"{}")
        assert internet.dialled == [(SIX, peer.port), (PUBLIC, peer.port), (OTHER, peer.port)]
        await fetch.aclose()
    async with serving(always(ok()), authority.server("other.example"), "auth.example") as peer:
        internet = Internet({"auth.example": [[PUBLIC, OTHER]]})
        fetch = internet.fetch(ca=authority.file)
        with pytest.raises(Unreachable, match="not trusted"):
            await fetch(get(peer.url))
        assert internet.dialled == [(PUBLIC, peer.port)]
        await fetch.aclose()


# What it reads.


async def drip(talk: Talk) -> None:
    """A body without an end, a byte at a time, as long as anybody reads it."""
    await talk.read()
    await talk.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    reading = asyncio.ensure_future(talk.gone())
    while not reading.done():
        await talk.send(b"1\r\nx\r\n")
        await asyncio.wait([reading], timeout=0.01)


async def flood(talk: Talk) -> None:
    """A body without an end, as fast as it is read."""
    await talk.read()
    await talk.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    reading = asyncio.ensure_future(talk.gone())
    while not reading.done():
        await talk.send(b"1000\r\n" + bytes(0x1000) + b"\r\n")
        await asyncio.wait([reading], timeout=0)


async def silent(talk: Talk) -> None:
    """A server that never answers."""
    await talk.gone()


async def interim(talk: Talk) -> None:
    """A head that never comes, though something does all the time."""
    await talk.read()
    reading = asyncio.ensure_future(talk.gone())
    while not reading.done():
        await talk.send(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await asyncio.wait([reading], timeout=0.01)


async def read(fetch: SafeFetch, url: str) -> bytes:
    """The body at once, with a limit of the caller's that is far higher."""
    return (await whole(fetch, get(url), 1 << 30))[1]


async def pieces(fetch: SafeFetch, url: str) -> bytes:
    """The body in pieces."""
    return b"".join([piece async for piece in (await fetch(get(url))).chunks()])


WAYS = pytest.mark.parametrize("way", [read, pieces])
Way = Callable[[SafeFetch, str], Awaitable[bytes]]
BOMB = gzip.compress(bytes(50_000_000))
LARGE: dict[str, Script] = {
    "with a length": always(ok(bytes(LIMIT + 1))),
    "with a length that is a lie": once(
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", bytes(LIMIT + 1), then_wait=True
    ),
    "up to the end of the connection": once(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(LIMIT + 1)),
    "without an end": flood,
    "a bomb": always(ok(zlib.compress(bytes(50_000_000))[:LIMIT], "Content-Encoding: deflate")),
    "a bomb in a few bytes": always(ok(gzip.compress(bytes(LIMIT + 1)), "Content-Encoding: gzip")),
    "a bomb in pieces": once(
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", BOMB[:3000], BOMB[3000:]
    ),
}


@WAYS
@pytest.mark.parametrize("script", LARGE.values(), ids=LARGE)
@both_loops
async def test_a_body_over_the_limit(script: Script, way: Way):
    """It ends at the limit, whatever was said of its length and however small it was packed; the
    caller's own limit cannot raise it (SEC-12).
    """
    fetch = here()
    async with serving(script) as peer:
        with pytest.raises(ProtocolError, match=f"more than {LIMIT} bytes"):
            await way(fetch, peer.url)
        await fetch.aclose()


@WAYS
@both_loops
async def test_a_body_within_the_limit(way: Way):
    """Up to the last byte, plain, packed and in many small packings; the caller's limit counts
    where it is lower.
    """
    body = bytes(range(100)) * (LIMIT // 100)
    many = b"".join(gzip.compress(body[n : n + 5]) for n in range(0, LIMIT, 5))
    fetch = here()
    for answer in (ok(body), ok(gzip.compress(body), "Content-Encoding: gzip")):
        async with serving(once(answer)) as peer:
            assert await way(fetch, peer.url) == body
    await fetch.aclose()
    fetch = here(limit=len(many))
    async with serving(always(ok(many, "Content-Encoding: gzip"))) as peer:
        assert await way(fetch, peer.url) == body
        with pytest.raises(ProtocolError, match="more than 99 bytes"):
            await (await fetch(get(peer.url))).read(99)
        await fetch.aclose()


@WAYS
@pytest.mark.parametrize(
    "script",
    [silent, interim, drip, once(ok(b"{}")[:-1], then_wait=True)],
    ids=["silent", "interim", "drip", "short"],
)
@both_loops
async def test_an_answer_that_does_not_end(script: Script, way: Way):
    """The time is for all of it, so that a byte now and then wins nothing; the connection is closed
    (SEC-12).
    """
    fetch = here(seconds=0.2)
    async with serving(script) as peer:
        with pytest.raises(
            TimedOut,
            match=rf"http://127.0.0.1:{peer.port} did not answer to the end within 0.2 seconds",
        ):
            await way(fetch, peer.url)
        await fetch.aclose()


@both_loops
async def test_a_name_server_that_does_not_answer():
    """Its time counts too."""

    async def resolve(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    fetch = SafeFetch(seconds=0.05, resolve=resolve, proxies=Proxies())
    with pytest.raises(TimedOut, match=r"https://a.example"):
        await fetch(get("https://a.example/"))
    await fetch.aclose()


@both_loops
async def test_an_answer_that_breaks_off():
    """As with any Fetch."""
    fetch = here()
    async with serving(once(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort")) as peer:
        for way in (read, pieces):
            with pytest.raises(ConnectionLost):
                await way(fetch, peer.url)
        await fetch.aclose()


# Where it is sent.


def moved(to: str, status: int = 302) -> bytes:
    """A redirect."""
    return ok(b"elsewhere", f"Location: {to}", status=f"{status} Moved")


def redirecting(to: str, status: int = 302) -> Script:
    """A server that redirects, to where "{port}" may stand for its own."""

    async def script(talk: Talk) -> None:
        await always(moved(to.format(port=talk.peer.port), status))(talk)

    return script


TARGETS = {
    "/other": "https://auth.example:{port}/other",
    "https://auth.example:{port}/mcp": "https://auth.example:{port}/mcp",
    "https://127.0.0.1:{port}/": "https://127.0.0.1:{port}/",
    "http://169.254.169.254/latest/meta-data/": "http://169.254.169.254/latest/meta-data/",
    "https://[fd00:ec2::254]/": "https://[fd00:ec2::254]/",
    "http://auth.example:{port}/": "http://auth.example:{port}/",
    "//10.0.0.1/": "https://10.0.0.1/",
    "https://inside.example:{port}/": "https://inside.example:{port}/",
    "file:///etc/passwd": "file:///etc/passwd",
    "javascript:alert(1)": "javascript:alert(1)",
    "https://2130706433/": "https://2130706433/",
    "https://[::1": "https://[::1",
    "https://user:s3cret@other.example/?code=s3cret": "https://other.example/",
}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("target", TARGETS)
async def test_redirects_are_not_followed(authority: Authority, target: str, status: int):
    """Each is refused, and named without what may be secret in it; nothing but the first request is
    sent (SEC-15).
    """
    async with serving(
        redirecting(target, status), authority.server("auth.example"), "auth.example"
    ) as peer:
        internet = Internet({"auth.example": [[PUBLIC]]})
        fetch = internet.fetch(ca=authority.file)
        with pytest.raises(BlockedAddress) as caught:
            await fetch(get(peer.url))
        await fetch.aclose()
    assert (
        f"redirects to {TARGETS[target].format(port=peer.port)!r} (status {status}), which is not "
        "followed" in str(caught.value)
    )
    assert "s3cret" not in str(caught.value)
    assert caught.value.status == status
    assert (len(peer.requests), internet.asked, internet.dialled) == (
        1,
        ["auth.example"],
        [(PUBLIC, peer.port)],
    )


@pytest.mark.parametrize(
    "target", [target for target in TARGETS if target not in list(TARGETS)[:2]]
)
async def test_each_hop_is_judged_anew(authority: Authority, target: str):
    """Where redirects are followed, they lead to nothing that could not be asked at once, nor from
    https to http (SEC-15, SEC-13).
    """
    async with serving(
        redirecting(target), authority.server("auth.example"), "auth.example"
    ) as peer:
        for loopback in (False, True):
            internet = Internet(
                {"auth.example": [[PUBLIC]], "inside.example": [["127.0.0.1"]]},
                routed=[PUBLIC, "127.0.0.1"],
            )
            fetch = internet.fetch(ca=authority.file, most_redirects=5, loopback=loopback)
            with pytest.raises(BlockedAddress):
                await fetch(get(peer.url))
            await fetch.aclose()
            assert internet.dialled == [(PUBLIC, peer.port)]
    assert len(peer.requests) == 2


async def test_redirects_that_are_followed(authority: Authority):
    """As many as were allowed, of GET and HEAD; another site gets no header but Accept; the name
    there is resolved and pinned too (SEC-15).
    """

    async def script(talk: Talk) -> None:
        while (seen := await talk.read()) is not None:
            path = seen.line.split(" ")[1]
            to = f"https://other.example:{talk.peer.port}/c" if path == "/b" else "/b"
            if path == "/c":
                await talk.send(ok(b"here"))
            elif seen.line.startswith("HEAD"):
                await talk.send(moved(to).removesuffix(b"elsewhere"))
            else:
                await talk.send(moved(to))

    headers = (
        ("Accept", "application/json"),
        ("Authorization", "Bearer s3cret"),
        ("DPoP", "s3cret"),
    )
    async with serving(
        script, authority.server("auth.example", "other.example"), "auth.example"
    ) as peer:
        internet = Internet({"auth.example": [[PUBLIC]], "other.example": [[OTHER]]})
        fetch = internet.fetch(ca=authority.file, most_redirects=2)
        short = internet.fetch(ca=authority.file, most_redirects=1)
        first = peer.url.replace("/mcp", "/a")
        assert await whole(fetch, get(first, *headers)) == (200, b"here")
        assert [seen.line.split(" ")[1] for seen in peer.requests] == ["/a", "/b", "/c"]
        assert [seen.header("authorization") for seen in peer.requests] == [
            "Bearer s3cret",
            "Bearer s3cret",
            None,
        ]
        assert [(seen.header("accept"), seen.header("dpop")) for seen in peer.requests][2] == (
            "application/json",
            None,
        )
        assert {host for host, _ in internet.dialled} == {PUBLIC, OTHER}
        with pytest.raises(
            BlockedAddress, match="redirects to 'https://other.example:.*/c'.* exceeds the limit"
        ):
            await short(get(first))
        for request in (post(first), Request("DELETE", first)):
            with pytest.raises(BlockedAddress, match="redirects to"):
                await fetch(request)
        await fetch.aclose()
        await short.aclose()


@both_loops
async def test_redirects_that_lead_round_and_round():
    """End with the number that was allowed; those within this machine may be followed in
    development.
    """
    fetch = here(most_redirects=3)
    async with serving(always(moved("/again"))) as peer:
        with pytest.raises(BlockedAddress, match="exceeds the limit"):
            await fetch(get(peer.url))
        await fetch.aclose()
    assert len(peer.requests) == 4


@both_loops
async def test_no_redirect_from_https_to_http(authority: Authority):
    """Not even within this machine, where http alone could be asked (SEC-13, SEC-15)."""
    fetch = here(most_redirects=1, ca=authority.file)
    async with (
        serving(always(ok())) as plain,
        serving(
            redirecting(f"http://127.0.0.1:{plain.port}/"), authority.server("127.0.0.1")
        ) as peer,
    ):
        with pytest.raises(BlockedAddress, match="less secure than the original address"):
            await fetch(get(peer.url))
        await fetch.aclose()
    assert plain.opened == 0


@both_loops
async def test_what_is_no_redirect():
    """Statuses of other meanings, and one without a place to go, are answers."""
    for answer in (
        moved("/x", 300),
        moved("/x", 201),
        moved("/x", 305),
        b"HTTP/1.1 304 Not Modified\r\nLocation: /x\r\n\r\n",
        ok(status="302 Found"),
    ):
        fetch = here()
        async with serving(always(answer)) as peer:
            assert (await whole(fetch, get(peer.url)))[0] in (300, 201, 305, 304, 302)
            await fetch.aclose()


# What may be asked for besides: plain http, and redirects that are given.


async def test_plain_http_where_it_is_allowed():
    """Public hosts by http as well, each address judged and pinned as ever; not unless it is said
    (SEC-13, SEC-14).
    """
    internet = Internet(
        {
            "old.example": [[PUBLIC]],
            "inside.example": [["10.0.0.7"]],
            "rebound.example": [[PUBLIC], ["127.0.0.1"]],
        }
    )
    fetch = internet.fetch(plain=True)
    strict = internet.fetch()
    async with serving(once(ok(b"hello")), name="old.example") as peer:
        with pytest.raises(BlockedAddress, match="only https is encrypted in transit") as caught:
            await strict(get(peer.url))
        assert (caught.value.rule, caught.value.advice) == ("plain", "Use its https address.")
        assert await whole(fetch, get(peer.url)) == (200, b"hello")
        assert internet.dialled == [(PUBLIC, peer.port)]
        for url, rule in (
            ("http://inside.example/", "address"),
            ("http://169.254.169.254/latest/meta-data/", "metadata"),
            ("http://[::ffff:169.254.169.254]/", "metadata"),
            ("http://127.0.0.1/", "here"),
            ("http://10.0.0.1/", "address"),
            ("http://old.example:25/", "port"),
            ("http://old.example:443/", "port"),
            ("http://0x7f.1/", "name"),
            ("ftp://old.example/", "url"),
        ):
            with pytest.raises(BlockedAddress) as caught:
                await fetch(get(url))
            assert caught.value.rule == rule, url
            assert str(caught.value).startswith(caught.value.words)
        rebound = f"http://rebound.example:{peer.port}/"
        assert await whole(fetch, get(rebound)) == (200, b"hello")
        with pytest.raises(BlockedAddress, match="loopback"):
            await fetch(get(rebound))
        assert {host for host, _ in internet.dialled} == {PUBLIC}
        await fetch.aclose()
        await strict.aclose()


@pytest.mark.parametrize(
    "target",
    ["http://10.0.0.1/", "http://localhost/", "http://169.254.169.254/", "https://inside.example/"],
)
async def test_redirects_of_plain_http_are_judged(target: str):
    """An http page leads inside no more than an https page does (SEC-15)."""
    async with serving(redirecting(target), name="old.example") as peer:
        internet = Internet(
            {"old.example": [[PUBLIC]], "inside.example": [["127.0.0.1"]]},
            routed=[PUBLIC, "127.0.0.1"],
        )
        fetch = internet.fetch(plain=True, most_redirects=3)
        with pytest.raises(BlockedAddress):
            await fetch(get(peer.url))
        await fetch.aclose()
        assert internet.dialled == [(PUBLIC, peer.port)]


async def test_redirects_that_are_given(authority: Authority):
    """Who follows them by hand gets the answer, and for each hop the judgement that is made of
    those that are followed (SEC-15).
    """
    async with serving(redirecting("/b"), authority.server("auth.example"), "auth.example") as peer:
        internet = Internet({"auth.example": [[PUBLIC]]})
        fetch = internet.fetch(ca=authority.file, give_redirects=True, plain=True)
        request = get(peer.url, ("Accept", "text/html"), ("Authorization", "Bearer s3cret"))
        answer = await fetch(request)
        assert (answer.status, answer.headers["location"]) == (302, "/b")
        await answer.aclose()
        same = fetch.onward(request, 302, "/b")
        other = fetch.onward(request, 302, "https://other.example/c")
        assert (same.url, same.headers) == (peer.url.replace("/mcp", "/b"), request.headers)
        assert (other.url, other.headers) == ("https://other.example/c", (("Accept", "text/html"),))
        for target in (
            "http://auth.example/",
            "https://127.0.0.1/",
            "https://10.0.0.1/",
            "https://user@other.example/",
        ):
            with pytest.raises(BlockedAddress, match="redirects to") as caught:
                fetch.onward(request, 301, target)
            assert caught.value.status == 301
        for target in (
            "https://127.0.0.1/",
            "https://10.0.0.1/",
            "https://user@other.example/",
            "nothing",
        ):
            with pytest.raises(BlockedAddress):
                fetch.examine(target)
        fetch.examine("http://auth.example/")
        await fetch.aclose()


async def test_hosts_that_are_never_asked():
    """By name, by all below a name and by address; also where a redirect leads to them, and where
    `hosts` would have them.
    """
    fetch = here(
        never=["ads.example", "*.tracker.example", "8.8.8.8"], hosts=["*.example", "8.8.8.8"]
    )
    for url in (
        "https://ads.example/",
        "https://ADS.example./",
        "https://a.tracker.example/",
        "https://8.8.8.8/",
    ):
        with pytest.raises(BlockedAddress, match="never contacted") as caught:
            await fetch(get(url))
        assert caught.value.rule == "never"
    with pytest.raises(BlockedAddress, match="never contacted"):
        fetch.onward(get("https://fine.example/"), 302, "https://ads.example/")
    await fetch.aclose()


@pytest.mark.parametrize(
    "never, url",
    [
        ("8.8.4.4", "https://[::ffff:8.8.4.4]/"),
        ("8.8.4.4", "https://[64:ff9b::8.8.4.4]/"),
        ("8.8.4.4", "https://other.example/"),
        ("::ffff:8.8.4.4", "https://8.8.4.4/"),
        ("2606:4700::1111", "https://[2606:4700:0:0:0:0:0:1111]/"),
        ("2606:4700:0::1111", "https://[2606:4700::1111]/"),
        ("bücher.example", "https://xn--bcher-kva.example/"),
        ("ads.example", "https://ａds。example./"),
    ],
)
async def test_one_host_in_several_spellings(never: str, url: str):
    """An address that is never asked is not asked in another of its forms, nor by a name that leads
    to it; and so with names.
    """
    internet = Internet({"other.example": [["8.8.4.4"]]})
    fetch = internet.fetch(never=[never])
    with pytest.raises(BlockedAddress, match="never contacted") as caught:
        await fetch(get(url))
    assert (caught.value.rule, internet.dialled) == ("never", [])
    await fetch.aclose()
    allowed = internet.fetch(hosts=[never])
    if "other" not in url:
        allowed.examine(url)
    await allowed.aclose()


async def test_plain_http_through_a_proxy_that_stands_inside():
    """The proxy of http has no tunnel, so it is connected to itself: it may stand inside, and is
    never asked for as a page of its own.
    """

    async def resolve(host: str, port: int) -> list[str]:
        return ["10.9.9.9"] if host == "proxy.corp" else [PUBLIC]

    async with serving(once(ok(b"through"))) as peer:
        proxy = f"http://127.0.0.1:{peer.port}"
        fetch = SafeFetch(plain=True, resolve=resolve, proxies=Proxies(http=proxy))
        assert await whole(fetch, get("http://old.example/page")) == (200, b"through")
        assert peer.requests[0].line == "GET http://old.example/page HTTP/1.1"
        for url in (proxy, "http://intranet/", "http://10.0.0.1/"):
            with pytest.raises(BlockedAddress):
                await fetch(get(url))
        await fetch.aclose()
    fetch = SafeFetch(
        plain=True,
        resolve=resolve,
        proxies=Proxies(http="http://proxy.corp:3128", but_for="proxy.corp"),
    )
    with pytest.raises(BlockedAddress, match="the proxy itself"):
        await fetch(get("http://proxy.corp:3128/"))
    await fetch.aclose()
