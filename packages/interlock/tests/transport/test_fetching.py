"""Answers of every kind: what the HTTP client makes of heads, lengths, chunks, early ends and
nonsense, from servers that are told each byte.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import ProtocolError, Unreachable
from interlock.http11.fetch import Request
from tests.transport.http_peers import (
    LOOPS,
    Talk,
    always,
    both_loops,
    fetch_for_tests,
    get,
    ok,
    once,
    post,
    serving,
    tidily,
    whole,
)


@both_loops
async def test_a_request_as_it_goes_out_and_its_answer():
    """Head and body in one, our own headers once each, the caller's as they were given; names of
    the answer in lower case, joined.
    """
    async with serving(
        always(ok(b'{"a":1}', "Content-Type: application/json", "X-Two:  a ", "x-two: b"))
    ) as peer:
        fetch = fetch_for_tests(agent="test/1")
        answer = await fetch(
            post(
                f"{peer.url}?q=ü#part",
                b"body",
                ("Accept", "text/event-stream"),
                ("DPoP", "x"),
                ("Two", "1"),
                ("Two", "2"),
            )
        )
        assert (answer.status, await answer.read(100)) == (200, b'{"a":1}')
        assert answer.headers == {
            "content-type": "application/json",
            "x-two": "a, b",
            "content-length": "7",
        }
        await fetch.aclose()
    (seen,) = peer.requests
    assert seen.line == "POST /mcp?q=%C3%BC HTTP/1.1"
    assert seen.body == b"body"
    assert seen.headers == [
        ("Host", f"127.0.0.1:{peer.port}"), ("Accept-Encoding", "identity"),
            ("User-Agent", "test/1"),
        ("Accept", "text/event-stream"), ("DPoP", "x"), ("Two", "1"), ("Two", "2"),
            ("Content-Length", "4"),
    ]  # fmt: skip


@both_loops
async def test_the_callers_headers_come_before_ours():
    """Host, Authorization, User-Agent and Accept-Encoding are written once; user and password of
    the URL only where nothing else is said.
    """
    async with serving(always(ok())) as peer:
        fetch = fetch_for_tests()
        with_user = peer.url.replace("//", "//ann%40x:s%3Acret@")
        await whole(fetch, get(with_user))
        await whole(
            fetch,
            get(
                with_user,
                ("authorization", "Bearer t"),
                ("host", "other"),
                ("user-agent", "me"),
                ("ACCEPT-ENCODING", "gzip"),
            ),
        )
        await fetch.aclose()
    one, other = peer.requests
    assert one.line == "GET /mcp HTTP/1.1"
    assert one.header("authorization") == "Basic YW5uQHg6czpjcmV0"
    assert one.header("content-length") is None
    assert [
        other.header(name) for name in ("authorization", "host", "user-agent", "accept-encoding")
    ] == [
        "Bearer t",
        "other",
        "me",
        "gzip",
    ]


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
SOUND = {
    "a length": (ok(b"hello"), b"hello", True),
    "no body": (ok(b""), b"", True),
    "chunks": (CHUNKED + b"2\r\nhe\r\n3;ext=1\r\nllo\r\n0\r\n\r\n", b"hello", True),
    "chunks with trailers": (
        CHUNKED + b"5\r\nhello\r\n0\r\nX-Sum: 1\r\nX-Other: 9\r\n\r\n",
        b"hello",
        True,
    ),
    "until it closes": (HEAD + b"\r\nhello", b"hello", False),
    "Connection: close": (
        HEAD + b"Connection: close\r\nContent-Length: 5\r\n\r\nhello",
        b"hello",
        False,
    ),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello", False),
    "interim answers": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        + ok(b"hello"),
        b"hello",
        True,
    ),
    "no reason": (b"HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\nhello", b"hello", True),
    "an offer to upgrade": (ok(b"hello", "Upgrade: h2c", "Connection: upgrade"), b"hello", True),
    "garbage behind it": (ok(b"hello") + b"garbage", b"hello", False),
    "an answer to no request behind it": (ok(b"hello") + ok(b"evil"), b"hello", False),
}


@both_loops
@pytest.mark.parametrize("way", ["whole", "pieces"])
@pytest.mark.parametrize("cut", [0, 1])
@pytest.mark.parametrize("bytes_, body, kept", SOUND.values(), ids=SOUND)
async def test_bodies(bytes_: bytes, body: bytes, kept: bool, cut: int, way: str):
    """However the body ends and however the bytes come; a connection carries the next request only
    where nothing is wrong with it.
    """
    excess = body in bytes_ and not bytes_.endswith(
        (body, b"\r\n")
    )  # comes with the answer, or nobody can tell whose answer it is
    pieces = [bytes_[n : n + 1] for n in range(len(bytes_))] if cut and not excess else [bytes_]

    async def script(talk: Talk) -> None:
        while await talk.read() is not None:
            for piece in pieces:
                await talk.send(piece)
                await asyncio.sleep(0)
            if not kept:
                return

    async with serving(script) as peer:
        fetch = fetch_for_tests()
        for _ in range(2):
            answer = await fetch(post(peer.url))
            assert answer.status == 200
            read = (
                await answer.read(100)
                if way == "whole"
                else b"".join([piece async for piece in answer.chunks()])
            )
            assert read == body
        await fetch.aclose()
    assert len(peer.requests) == 2
    assert peer.opened == (1 if kept else 2)


@both_loops
async def test_answers_without_a_body():
    """To HEAD, and with 204 and 304, whatever length they name; the connection goes on."""

    async def script(talk: Talk) -> None:
        while (seen := await talk.read()) is not None:
            status = seen.line.split()[1].strip("/")
            length = "" if status == "204" else "Content-Length: 50\r\n"
            await talk.send(f"HTTP/1.1 {status} x\r\n{length}\r\n".encode())

    async with serving(script) as peer:
        fetch = fetch_for_tests()
        base = peer.url.removesuffix("/mcp")
        for method, status in (
            ("HEAD", 200),
            ("GET", 204),
            ("HEAD", 404),
            ("GET", 304),
            ("HEAD", 200),
            ("DELETE", 204),
        ):
            answer = await fetch(Request(method, f"{base}/{status}"))
            assert (answer.status, await answer.read(10)) == (status, b"")
        await fetch.aclose()
    assert peer.opened == 1


@both_loops
async def test_redirects_and_errors_are_answers():
    """Nothing is followed, nothing is raised."""
    async with serving(
        always(ok(b"x", "Location: /elsewhere", "Retry-After: 3", status="307 Temporary Redirect"))
    ) as peer:
        fetch = fetch_for_tests()
        answer = await fetch(post(peer.url))
        assert (answer.status, answer.headers["location"], await answer.read(10)) == (
            307,
            "/elsewhere",
            b"x",
        )
        await fetch.aclose()
    assert len(peer.requests) == 1


BROKEN_HEADS = {
    "nothing": (b"", "closed the connection before it answered"),
    "half a line": (b"HTTP/1.1 200", "in the middle of its answer"),
    "half a head": (b"HTTP/1.1 200 OK\r\nContent-Le", "in the middle of its answer"),
    "an interim answer and no other": (
        b"HTTP/1.1 100 Continue\r\n\r\n",
        "in the middle of its answer",
    ),
    "another protocol": (b"SSH-2.0-OpenSSH_9.2\r\n", "not HTTP/1.1"),
    "no status": (b"HTTP/1.1 abc OK\r\n\r\n", "not HTTP/1.1"),
    "two lengths": (HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "not HTTP/1.1"),
    "a length that is none": (HEAD + b"Content-Length: five\r\n\r\nhello", "not HTTP/1.1"),
    "a length and chunks": (
        HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "not HTTP/1.1",
    ),
    "a switch of protocols": (
        b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "without being asked",
    ),
    "a line in a header": (HEAD + b"A: b\nnonsense\r\n\r\n", "not HTTP/1.1"),
}


@both_loops
@pytest.mark.parametrize("bytes_, words", BROKEN_HEADS.values(), ids=BROKEN_HEADS)
async def test_heads_that_are_none(bytes_: bytes, words: str):
    """Unreachable, in words that name the server; sent once, as the connection was new."""
    async with serving(once(bytes_)) as peer:
        fetch = fetch_for_tests()
        with pytest.raises(Unreachable, match=words) as caught:
            await fetch(post(peer.url))
        assert f"http://127.0.0.1:{peer.port}" in str(caught.value)
        await fetch.aclose()
    assert len(peer.requests) == 1


async def collect(pieces: AsyncIterator[bytes], into: list[bytes]) -> None:
    """All pieces, as far as they come."""
    async for piece in pieces:
        into.append(piece)


BROKEN_BODIES = {
    "a length that lies": (
        HEAD + b"Content-Length: 10\r\n\r\nhello",
        "in the middle of its answer",
    ),
    "chunks without an end": (CHUNKED + b"5\r\nhello\r\n", "in the middle of its answer"),
    "a chunk that lies": (CHUNKED + b"9\r\nhello", "in the middle of its answer"),
    "a chunk of no size": (CHUNKED + b"5\r\nhello\r\nxyz\r\n", "not HTTP/1.1"),
}


@both_loops
@pytest.mark.parametrize("way", ["whole", "pieces"])
@pytest.mark.parametrize("bytes_, words", BROKEN_BODIES.values(), ids=BROKEN_BODIES)
async def test_bodies_that_break_off(bytes_: bytes, words: str, way: str):
    """The head came, so the answer is there; reading it raises, and what came before the end is
    given where it is read in pieces.
    """
    head, _, rest = bytes_.partition(b"\r\n\r\n")
    told = asyncio.Event()

    async def script(talk: Talk) -> None:
        await talk.read()
        await talk.send(head + b"\r\n\r\n")
        await told.wait()
        await talk.send(rest)

    async with serving(script) as peer:
        fetch = fetch_for_tests()
        answer = await fetch(post(peer.url))
        told.set()
        got: list[bytes] = []
        with pytest.raises(Unreachable, match=words):
            await (answer.read(1000) if way == "whole" else collect(answer.chunks(), got))
        assert b"".join(got) == (b"" if way == "whole" else b"hello")
        await answer.aclose()
        await fetch.aclose()


@both_loops
@pytest.mark.parametrize(
    "filler",
    [b"A: b\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"A" * 1000],
    ids=["headers", "interim answers", "one long name"],
)
async def test_a_head_without_end_is_given_up(filler: bytes):
    """256 KiB is enough for any head."""

    async def script(talk: Talk) -> None:
        await talk.read()
        await talk.send(
            b"" if filler.startswith(b"HTTP") else HEAD, *[filler * (65536 // len(filler))] * 6
        )
        await talk.gone()

    async with serving(script) as peer:
        fetch = fetch_for_tests()
        with pytest.raises(Unreachable, match="more than 262144 bytes of headers"):
            await fetch(post(peer.url))
        await fetch.aclose()


@both_loops
@pytest.mark.parametrize("framed", ["a length", "chunks"])
async def test_a_body_over_the_limit_is_given_up(framed: str):
    """ProtocolError, and the rest is not read: its connection is closed."""
    head = (
        HEAD + b"Content-Length: 1000000000\r\n\r\n"
        if framed == "a length"
        else CHUNKED + b"3b9aca00\r\n"
    )

    async def script(talk: Talk) -> None:
        await talk.read()
        await talk.send(head, b"x" * 2000)
        await talk.gone()

    async with serving(script) as peer:
        fetch = fetch_for_tests()
        answer = await fetch(post(peer.url))
        with pytest.raises(ProtocolError, match="more than 1000 bytes"):
            await answer.read(1000)
        await fetch.aclose()
        async with serving(always(ok(b"x" * 1001))) as other:
            fetch = fetch_for_tests()
            with pytest.raises(ProtocolError, match="more than 1000 bytes"):
                await whole(fetch, post(other.url), 1000)
            assert await whole(fetch, post(other.url), 1001) == (200, b"x" * 1001)
            await fetch.aclose()
        assert other.opened == 1  # the whole answer had come, so the connection is sound


@both_loops
async def test_pieces_come_as_they_are_sent():
    """Each before the server sends the next: what an event stream needs."""
    turn: asyncio.Queue[None] = asyncio.Queue()

    async def script(talk: Talk) -> None:
        await talk.read()
        await talk.send(CHUNKED)
        for n in range(5):
            await turn.get()
            await talk.send(b"7\r\npiece %d\r\n" % n)
        await talk.send(b"0\r\n\r\n")
        await talk.gone()

    async with serving(script) as peer:
        fetch = fetch_for_tests()
        answer = await fetch(get(peer.url))
        pieces = answer.chunks()
        for n in range(5):
            turn.put_nowait(None)
            assert await anext(pieces) == b"piece %d" % n
        assert await anext(pieces, None) is None
        assert await anext(pieces, None) is None
        with pytest.raises(RuntimeError, match="read before"):
            answer.chunks()
        await fetch.aclose()


@both_loops
@pytest.mark.parametrize("way", ["whole", "pieces"])
async def test_a_server_waits_for_a_reader_that_does_not_read(way: str):
    """Of 64 MiB only what the systems between hold comes before the body is read; then all of
    it.
    """
    size = 64 << 20
    sent = 0
    stuck = asyncio.Event()

    async def script(talk: Talk) -> None:
        nonlocal sent
        await talk.read()
        talk.writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % size)
        while sent < size:
            talk.writer.write(b"x" * 65536)
            sent += 65536
            try:
                async with asyncio.timeout(0.2):
                    await talk.writer.drain()
            except TimeoutError:
                stuck.set()
                await talk.writer.drain()
        await talk.gone()

    async with serving(script) as peer:
        fetch = fetch_for_tests()
        answer = await fetch(post(peer.url))
        await stuck.wait()
        assert sent < size // 2
        if way == "whole":
            assert len(await answer.read(size)) == size
        else:
            pieces = [len(piece) async for piece in answer.chunks()]
            assert sum(pieces) == size
            assert max(pieces) < 4 << 20
        await fetch.aclose()


RAW = zlib.compressobj(wbits=-15)
DEFLATED = RAW.compress(b"hello " * 1000) + RAW.flush()
ENCODED = {
    "gzip": gzip.compress(b"hello " * 1000, mtime=0),
    "x-gzip": gzip.compress(b"hello " * 500, mtime=0) + gzip.compress(b"hello " * 500, mtime=0),
    "GZIP": gzip.compress(b"hello " * 1000, mtime=0),
    "deflate": zlib.compress(b"hello " * 1000),
    "deflate ": DEFLATED,
    "identity": b"hello " * 1000,
}


@both_loops
@pytest.mark.parametrize("way", ["whole", "pieces", "one by one"])
@pytest.mark.parametrize("encoding, body", ENCODED.items(), ids=ENCODED)
async def test_bodies_that_come_compressed(encoding: str, body: bytes, way: str):
    """Though nobody asked for it: in one, in several members, and with and without the wrapping."""
    async with serving(always(ok(body, f"Content-Encoding: {encoding}"))) as peer:
        fetch = fetch_for_tests()
        answer = await fetch(post(peer.url))
        if way == "whole":
            assert await answer.read(6000) == b"hello " * 1000
        elif way == "pieces":
            assert b"".join([piece async for piece in answer.chunks()]) == b"hello " * 1000
        else:
            answer._parts = [bytes([byte]) for part in answer._parts for byte in part]
            assert b"".join([piece async for piece in answer.chunks()]) == b"hello " * 1000
        await fetch.aclose()


@both_loops
@pytest.mark.parametrize("size", [1 << 20, (1 << 20) + 100, (2 << 20) + 3])
async def test_compressed_bodies_are_whole_where_a_piece_ends(size: int):
    """The last bytes may wait inside the decoder when all that was compressed has gone in."""
    packer = zlib.compressobj(wbits=-15)
    body = packer.compress(bytes(size)) + packer.flush()
    async with serving(always(ok(body, "Content-Encoding: deflate"))) as peer:
        fetch = fetch_for_tests()
        assert (await whole(fetch, post(peer.url), size))[1] == bytes(size)
        pieces: list[bytes] = []
        await collect((await fetch(post(peer.url))).chunks(), pieces)
        assert b"".join(pieces) == bytes(size)
        await fetch.aclose()


@both_loops
async def test_a_bomb_does_not_go_off():
    """A hundred KB that would be a hundred MB: refused at the limit; in pieces, each is bounded."""
    bomb = gzip.compress(bytes(100 << 20), mtime=0)
    async with serving(always(ok(bomb, "Content-Encoding: gzip"))) as peer:
        fetch = fetch_for_tests()
        with pytest.raises(ProtocolError, match="more than 5000000 bytes"):
            await whole(fetch, post(peer.url), 5_000_000)
        answer = await fetch(post(peer.url))
        total = 0
        async for piece in answer.chunks():
            assert len(piece) <= 1 << 20
            total += len(piece)
        assert total == 100 << 20
        await fetch.aclose()


@both_loops
@pytest.mark.parametrize(
    "encoding, body, words",
    [
        ("br", b"xyz", "the encoding 'br', which was not asked for"),
        ("gzip, gzip", b"xyz", "not asked for"),
        ("gzip", b"not gzip at all", "is broken"),
        ("gzip", gzip.compress(b"hello", mtime=0)[:-1], "ends too early"),
        ("deflate", b"\xff\xff\xff", "is broken"),
        ("deflate", b"x", "ends too early"),
    ],
)
async def test_bodies_that_cannot_be_taken_apart(encoding: str, body: bytes, words: str):
    """ProtocolError in either way of reading; no connection is lost to it."""
    async with serving(always(ok(body, f"Content-Encoding: {encoding}"))) as peer:
        fetch = fetch_for_tests()
        for _ in range(2):
            with pytest.raises(ProtocolError, match=words):
                await whole(fetch, post(peer.url))
            with pytest.raises(ProtocolError, match=words):
                async for _ in (await fetch(post(peer.url))).chunks():
                    pass
        await fetch.aclose()
    assert peer.opened == 1


mutations = st.lists(
    st.tuples(
        st.integers(0, 200),
        st.integers(0, 3),
        st.sampled_from([b"\r", b"\n", b"0", b":", b" ", b"\0", b"\xff", b"HTTP/1.1 "]),
    ),
    max_size=4,
)


@pytest.mark.parametrize("loop", LOOPS)
@given(
    start=st.sampled_from([answer for answer, _, _ in SOUND.values()]),
    changes=mutations,
    way=st.booleans(),
)
def test_whatever_comes_is_an_answer_or_unreachable(
    loop: str, start: bytes, changes: list[tuple[int, int, bytes]], way: bool
):
    """Answers with bytes taken out and put in: never another error, never a wait without end, and
    nothing left behind.
    """
    for place, out, into in changes:
        start = start[: place % (len(start) + 1)] + into + start[place % (len(start) + 1) + out :]

    async def ask() -> None:
        async with serving(once(start)) as peer:
            fetch = fetch_for_tests()
            with contextlib.suppress(Unreachable, ProtocolError):
                answer = await fetch(post(peer.url))
                assert 200 <= answer.status <= 999
                await (answer.read(1000) if way else collect(answer.chunks(), []))
            await fetch.aclose()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(tidily(ask()))


@both_loops
async def test_large_bodies_both_ways():
    """A megabyte goes and a megabyte comes back."""
    body = bytes(range(256)) * 4096

    async def script(talk: Talk) -> None:
        while (seen := await talk.read()) is not None:
            await talk.send(ok(seen.body))

    async with serving(script) as peer:
        fetch = fetch_for_tests()
        for _ in range(3):
            assert await whole(fetch, post(peer.url, body), len(body)) == (200, body)
        await fetch.aclose()
    assert peer.opened == 1


@both_loops
async def test_an_answer_before_the_request_has_gone_out():
    """A server that refuses a large body at once: its answer counts, its connection is not used
    again.
    """

    async def script(talk: Talk) -> None:
        await talk.reader.readuntil(b"\r\n\r\n")
        await talk.send(ok(b"too large", status="413 Content Too Large"))
        await talk.gone()

    async with serving(script) as peer:
        fetch = fetch_for_tests()
        for _ in range(2):
            assert await whole(fetch, post(peer.url, bytes(32 << 20))) == (413, b"too large")
        await fetch.aclose()
    assert peer.opened == 2


def test_without_the_extra_one_line_says_what_is_missing():
    """And how to get it."""
    program = "import sys; sys.modules['httptools'] = None; import interlock.http11.client"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert found.returncode == 1
    assert "ImportError: HTTP needs httptools" in found.stderr.splitlines()[-1]
    assert "pip install 'interlock[http]'" in found.stderr.splitlines()[-1]
