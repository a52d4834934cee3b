"""The HTTP client over TLS and through proxies: whom it trusts, what it says when it does not, and
what a proxy gets to see.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock import Unreachable
from interlock.http11.proxies import Proxies
from tests.transport.certificates import Authority
from tests.transport.ends import turns
from tests.transport.http_peers import (
    Script,
    Talk,
    always,
    both_loops,
    fetch_for_tests,
    get,
    ok,
    once,
    post,
    serving,
    whole,
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """One CA for all."""
    return Authority(tmp_path_factory.mktemp("ca"))


@both_loops
async def test_a_server_that_our_own_ca_vouches_for(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
):
    """Named by file, by the environment, or in a context of one's own; kept connections carry more;
    HTTP/1.1 is agreed on, and the name is told.
    """
    context = authority.server("localhost", "127.0.0.1")
    told: list[tuple[str | None, str | None]] = []

    async def script(talk: Talk) -> None:
        told.append(
            (
                names[-1] if names else None,
                talk.writer.get_extra_info("ssl_object").selected_alpn_protocol(),
            )
        )
        await always(ok(b"x" * 300_000))(talk)

    names: list[str | None] = []
    context.sni_callback = lambda sock, name, context: names.append(name)
    mine = ssl.create_default_context(cafile=authority.file)
    async with serving(script, context, "localhost") as peer:
        for ca in (authority.file, str(authority.file), mine):
            fetch = fetch_for_tests(ca=ca)
            for _ in range(3):
                assert await whole(fetch, post(peer.url, b"y" * 300_000)) == (200, b"x" * 300_000)
            await fetch.aclose()
        assert peer.opened == 3
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        fetch = fetch_for_tests()
        assert (await whole(fetch, get(peer.url)))[0] == 200
        await fetch.aclose()
        monkeypatch.delenv("SSL_CERT_FILE")
    assert told == [
        ("localhost", "http/1.1"),
        ("localhost", "http/1.1"),
        ("localhost", None),
        ("localhost", "http/1.1"),
    ]
    async with serving(always(ok()), context) as peer:
        fetch = fetch_for_tests(ca=authority.file)
        assert await whole(fetch, get(peer.url)) == (200, b"{}")  # by its address
        await fetch.aclose()


@both_loops
async def test_a_server_that_nobody_vouches_for(authority: Authority, tmp_path: Path):
    """Unknown CA, other name, out of date: refused in words that name the server and the reason,
    unless anybody is trusted.
    """
    stranger = Authority(tmp_path)
    cases = [
        (stranger.server("localhost"), "certificate that is not trusted: .*SSL_CERT_FILE"),
        (authority.server("other.example"), "not valid for 'localhost'|Hostname mismatch"),
        (authority.server("localhost", days=-1), "certificate has expired"),
    ]
    for context, words in cases:
        async with serving(always(ok()), context, "localhost") as peer:
            fetch = fetch_for_tests(ca=authority.file)
            with pytest.raises(Unreachable, match=words) as caught:
                await fetch(get(peer.url))
            assert f"https://localhost:{peer.port}" in str(caught.value)
            assert not peer.requests
            await fetch.aclose()
            trusting = fetch_for_tests(verify=False)
            assert await whole(trusting, get(peer.url)) == (200, b"{}")
            await trusting.aclose()


@both_loops
async def test_a_server_that_speaks_no_tls(authority: Authority):
    """The usual slip: https where http is spoken."""

    async def answers(talk: Talk) -> None:
        await talk.reader.read(10)
        await talk.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await talk.gone()

    async with serving(answers) as peer:
        fetch = fetch_for_tests(ca=authority.file)
        with pytest.raises(Unreachable, match="Check that the server there uses https"):
            await fetch(get(peer.url.replace("http:", "https:")))
        await fetch.aclose()

    async def closes(talk: Talk) -> None:
        await talk.reader.read(10)

    async with serving(closes) as peer:
        fetch = fetch_for_tests(ca=authority.file)
        with pytest.raises(Unreachable, match="Check that the server there uses https"):
            await fetch(get(peer.url.replace("http:", "https:")))
        await fetch.aclose()


@both_loops
async def test_tls_connections_are_closed_kept_and_cancelled_as_plain_ones(authority: Authority):
    """A kept one that the server closed is replaced; cancelling at any point leaves nothing."""
    context = authority.server("localhost")
    async with serving(once(ok()), context, "localhost") as peer:
        fetch = fetch_for_tests(ca=authority.file)
        for _ in range(3):
            assert await whole(fetch, post(peer.url)) == (200, b"{}")
        for late in (0, 1, 2, 3, 5, 8, 13, 21):
            task = asyncio.create_task(whole(fetch, post(peer.url)))
            await turns(late)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await fetch.aclose()


def proxy(
    *,
    answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n",
    to: Callable[[], int] = lambda: 0,
) -> Script:
    """A proxy: it tunnels to a port of this machine, whatever name it is asked for; requests in
    absolute form it answers itself.
    """

    async def script(talk: Talk) -> None:
        while (seen := await talk.read()) is not None:
            if not seen.line.startswith("CONNECT"):
                await talk.send(ok(b"from the proxy"))
                continue
            await talk.send(answer)
            if to():
                reader, writer = await asyncio.open_connection("127.0.0.1", to())
                await asyncio.gather(pour(talk.reader, writer), pour(reader, talk.writer))
                await writer.wait_closed()
            return

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        writer.close()

    return script


@both_loops
async def test_plain_http_through_a_proxy():
    """In absolute form, over one kept connection for all sites, with the proxy's password beside
    the site's.
    """
    async with serving(proxy()) as between:
        fetch = fetch_for_tests(
            proxies=Proxies(http=f"http://us%40r:pass@127.0.0.1:{between.port}")
        )
        for host in ("one.example", "bob:b@two.example:8080", "[2001:db8::1]"):
            assert await whole(fetch, get(f"http://{host}/a?b=c")) == (200, b"from the proxy")
        await fetch.aclose()
    assert between.opened == 1
    assert [seen.line for seen in between.requests] == [
        "GET http://one.example/a?b=c HTTP/1.1", "GET http://two.example:8080/a?b=c HTTP/1.1",
        "GET http://[2001:db8::1]/a?b=c HTTP/1.1",
    ]  # fmt: skip
    assert [seen.header("host") for seen in between.requests] == [
        "one.example",
        "two.example:8080",
        "[2001:db8::1]",
    ]
    assert {seen.header("proxy-authorization") for seen in between.requests} == {
        "Basic dXNAcjpwYXNz"
    }
    assert [seen.header("authorization") for seen in between.requests] == [
        None,
        "Basic Ym9iOmI=",
        None,
    ]


@both_loops
@pytest.mark.parametrize("secure", [False, True], ids=["http proxy", "https proxy"])
async def test_https_through_a_proxy(authority: Authority, secure: bool):
    """In a tunnel, where the proxy sees host and port only and the site sees no password of the
    proxy; kept like any other.
    """
    context = authority.server("localhost", "site.example", "127.0.0.1")
    async with (
        serving(always(ok(b"from the site")), context) as site,
        serving(proxy(to=lambda: site.port), context if secure else None) as between,
    ):
        scheme = "https" if secure else "http"
        fetch = fetch_for_tests(
            ca=authority.file,
            proxies=Proxies(https=f"{scheme}://user:pass@127.0.0.1:{between.port}"),
        )
        for _ in range(3):
            assert await whole(fetch, post("https://site.example/mcp", b"z" * 100_000)) == (
                200,
                b"from the site",
            )
        await fetch.aclose()
    assert (between.opened, site.opened, len(site.requests)) == (1, 1, 3)
    (seen,) = between.requests
    assert (seen.line, seen.header("host")) == (
        "CONNECT site.example:443 HTTP/1.1",
        "site.example:443",
    )
    assert seen.header("proxy-authorization") == "Basic dXNlcjpwYXNz"
    assert {seen.header("proxy-authorization") for seen in site.requests} == {None}


@both_loops
@pytest.mark.parametrize(
    "answer, words",
    [
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            r"would not connect to https://site.example: 407 .*Put user:password@",
        ),
        (
            b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n\r\nno",
            "would not connect to https://site.example: 502 Bad Gateway",
        ),
        (b"SSH-2.0\r\n\r\n", "does not speak HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", "sent data before a request to https://site.example"),
        (b"HTTP/1.1 200", "TLS with https://site.example failed: the connection was closed"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "TLS with https://site.example failed"),
        (b"HTTP/1.1 200 " + b"x" * 70_000, "more than 65536 bytes of headers"),
    ],
)
async def test_proxies_that_do_not_connect(authority: Authority, answer: bytes, words: str):
    """In words that name the proxy, without its password."""
    async with serving(proxy(answer=answer)) as between:
        fetch = fetch_for_tests(
            ca=authority.file, proxies=Proxies(https=f"user:secret@127.0.0.1:{between.port}")
        )
        with pytest.raises(Unreachable, match=words) as caught:
            await fetch(get("https://site.example/"))
        assert "secret" not in str(caught.value)
        await fetch.aclose()
    fetch = fetch_for_tests(ca=authority.file, proxies=Proxies(https=f"127.0.0.1:{between.port}"))
    with pytest.raises(
        Unreachable,
        match=rf"Nothing listens on http://127.0.0.1:{between.port}: .*"
        "Check that the proxy is running",
    ):
        await fetch(get("https://site.example/"))
    await fetch.aclose()


@both_loops
async def test_cancelling_in_a_tunnel_leaves_nothing(authority: Authority):
    """While the proxy is reached, asked, and TLS is agreed on."""
    context = authority.server("site.example")
    async with (
        serving(always(ok()), context) as site,
        serving(proxy(to=lambda: site.port)) as between,
    ):
        fetch = fetch_for_tests(
            ca=authority.file, proxies=Proxies(https=f"127.0.0.1:{between.port}")
        )
        for late in (0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 21):
            task = asyncio.create_task(whole(fetch, post("https://site.example/")))
            await turns(late)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert await whole(fetch, post("https://site.example/")) == (200, b"{}")
        await fetch.aclose()
