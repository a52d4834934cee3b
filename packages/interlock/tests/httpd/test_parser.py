"""The strict request parser: every attack of request smuggling is refused, however the bytes are
cut, and no bytes are seen otherwise than by a second parser (h11).
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.transport.http.server.limits import ConnectionLimits

from .requests_seen import Seen, of_h11, ours

HOST = b"Host: a.example\r\n"
POST = b"POST /mcp HTTP/1.1\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
NEXT = b"GET /smuggled HTTP/1.1\r\n" + HOST + b"\r\n"


def cuts(data: bytes) -> list[list[bytes]]:
    """The bytes in one piece, one by one, and cut once at every place."""
    return [
        [data],
        [data[n : n + 1] for n in range(len(data))],
        *([data[:n], data[n:]] for n in range(1, len(data))),
    ]


GOOD: dict[str, tuple[bytes, list[tuple[str, bytes, bytes]]]] = {
    "a request without a body": (NEXT, [("GET", b"/smuggled", b"")]),
    "a body of a known length": (
        POST + b"Content-Length: 5\r\n\r\nhello" + NEXT,
        [("POST", b"/mcp", b"hello"), ("GET", b"/smuggled", b"")],
    ),
    "an empty body": (
        POST + b"Content-Length: 0\r\n\r\n" + NEXT,
        [("POST", b"/mcp", b""), ("GET", b"/smuggled", b"")],
    ),
    "an empty line in a body": (
        POST + b"Content-Length: 10\r\n\r\nab\r\n\r\ncd\r\n" + NEXT,
        [("POST", b"/mcp", b"ab\r\n\r\ncd\r\n"), ("GET", b"/smuggled", b"")],
    ),
    "chunks": (
        CHUNKED + b"5\r\nhello\r\n8\r\n\r\n\r\n\r\n\r\n\r\n0\r\n\r\n" + NEXT,
        [("POST", b"/mcp", b"hello\r\n\r\n\r\n\r\n"), ("GET", b"/smuggled", b"")],
    ),
    "chunk extensions": (
        CHUNKED + b'5;a=b;c="d"\r\nhello\r\n0;e\r\n\r\n' + NEXT,
        [("POST", b"/mcp", b"hello"), ("GET", b"/smuggled", b"")],
    ),
    "trailers": (
        CHUNKED + b"5\r\nhello\r\n0\r\nHost: evil.example\r\nX: y\r\n\r\n" + NEXT,
        [("POST", b"/mcp", b"hello"), ("GET", b"/smuggled", b"")],
    ),
    "an upgrade, which is ignored": (
        POST
        + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n"
        + b"Content-Length: 5\r\n\r\nhello"
        + NEXT,
        [("POST", b"/mcp", b"hello"), ("GET", b"/smuggled", b"")],
    ),
    "an upgrade without a body": (
        b"GET / HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + NEXT,
        [("GET", b"/", b""), ("GET", b"/smuggled", b"")],
    ),
    "an absolute target of the same host": (
        b"GET http://A.example:80/x?y HTTP/1.1\r\n" + HOST + b"\r\n",
        [("GET", b"/x?y", b"")],
    ),
    "HTTP/1.0": (b"GET /old HTTP/1.0\r\n\r\n", [("GET", b"/old", b"")]),
    "the end of the connection was asked for": (
        POST + b"Connection: foo, Close\r\nContent-Length: 5\r\n\r\nhello" + NEXT,
        [("POST", b"/mcp", b"hello")],
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_requests_are_seen_however_they_are_cut(name: str) -> None:
    """The same requests, with what pipelining puts behind them (RFC 9112, section 9.3.2)."""
    data, expected = GOOD[name]
    for pieces in cuts(data):
        seen, status, _ = ours(pieces)
        assert status == 0
        assert [(one.method, one.target, one.body) for one in seen] == expected
        assert all(one.whole for one in seen)


BAD: dict[str, tuple[bytes, int]] = {
    "a length and chunks": (
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "chunks and a length": (
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        400,
    ),
    "two lengths": (POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
    "the same length twice": (POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400),
    "lengths in a list": (POST + b"Content-Length: 5, 5\r\n\r\nhello", 400),
    "a signed length": (POST + b"Content-Length: +5\r\n\r\nhello", 400),
    "a negative length": (POST + b"Content-Length: -5\r\n\r\nhello", 400),
    "a hexadecimal length": (POST + b"Content-Length: 0x5\r\n\r\nhello", 400),
    "a length with an underscore": (POST + b"Content-Length: 1_0\r\n\r\nhellohello", 400),
    "an empty length": (POST + b"Content-Length: \r\n\r\n", 400),
    "an enormous length": (POST + b"Content-Length: 99999999999999999999\r\n\r\n", 400),
    "a bare LF after the request line": (b"GET / HTTP/1.1\n" + HOST + b"\r\n", 400),
    "a bare LF after a header": (b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", 400),
    "a bare LF as the empty line": (b"GET / HTTP/1.1\r\n" + HOST + b"\n" + NEXT, 400),
    "a bare CR in a header": (b"GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n", 400),
    "two CRs": (b"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", 400),
    "a folded line": (b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n z\r\n\r\n", 400),
    "a folded empty value": (b"GET / HTTP/1.1\r\n" + HOST + b"X:\r\n z\r\n\r\n", 400),
    "a folded length": (POST + b"Content-Length:\r\n 5\r\n\r\nhello", 400),
    "a folded first line": (b"GET / HTTP/1.1\r\n X: y\r\n" + HOST + b"\r\n", 400),
    "a space before the colon": (POST + b"Content-Length : 5\r\n\r\nhello", 400),
    "a tab before the colon": (POST + b"Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n", 400),
    "a name with a space": (POST + b"Content Length: 5\r\n\r\nhello", 400),
    "an empty name": (POST + b": x\r\n\r\n", 400),
    "a line without a colon": (POST + b"chunked\r\n\r\n", 400),
    "a name beyond ASCII": (POST + b"X\xff: y\r\n\r\n", 400),
    "a NUL in a value": (POST + b"X: \x00\r\n\r\n", 400),
    "a control character in a value": (POST + b"X: a\x0bb\r\n\r\n", 400),
    "a coding after chunked": (POST + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 400),
    "a coding before chunked": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "an empty coding before chunked": (
        POST + b"Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n",
        501,
    ),
    "an unknown coding": (POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    "no coding": (POST + b"Transfer-Encoding: identity\r\n\r\n", 501),
    "chunked twice": (
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "chunks in HTTP/1.0": (
        b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + NEXT,
        400,
    ),
    "two hosts": (b"GET / HTTP/1.1\r\n" + HOST + b"Host: evil.example\r\n\r\n", 400),
    "the same host twice": (b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "an absolute target of another host": (
        b"GET http://evil.example/ HTTP/1.1\r\n" + HOST + b"\r\n",
        400,
    ),
    "an absolute target with a user": (
        b"GET http://a.example@evil.example/ HTTP/1.1\r\n" + HOST + b"\r\n",
        400,
    ),
    "a target of a tunnel": (b"CONNECT a.example:80 HTTP/1.1\r\n" + HOST + b"\r\n" + NEXT, 400),
    "a target without a slash": (b"GET a.example HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "the target of a server": (b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a fragment": (b"GET /#x HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a target beyond ASCII": (b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "two spaces before the target": (b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "two spaces after the target": (b"GET /  HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a space after the version": (b"GET / HTTP/1.1 \r\n" + HOST + b"\r\n", 400),
    "a tab in the request line": (b"GET\t/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "an empty line before the request": (b"\r\n" + NEXT, 400),
    "HTTP/0.9": (b"GET /\r\n\r\n", 400),
    "HTTP/0.9 by its number": (b"GET / HTTP/0.9\r\n" + HOST + b"\r\n", 505),
    "HTTP/2": (b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", 505),
    "another protocol": (b"GET / RTSP/1.1\r\n" + HOST + b"\r\n", 400),
    "an unknown expectation": (POST + b"Expect: 200-ok\r\n\r\n", 417),
    "a chunk size that is none": (CHUNKED + b"zz\r\nhello\r\n0\r\n\r\n", 400),
    "a negative chunk size": (CHUNKED + b"-1\r\nhello\r\n0\r\n\r\n", 400),
    "a chunk size with a prefix": (CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n", 400),
    "a space before a chunk size": (CHUNKED + b" 5\r\nhello\r\n0\r\n\r\n", 400),
    "a space after a chunk size": (CHUNKED + b"5 \r\nhello\r\n0\r\n\r\n", 400),
    "an enormous chunk size": (CHUNKED + b"ffffffffffffffffff\r\nhello\r\n0\r\n\r\n", 400),
    "a bare LF after a chunk size": (CHUNKED + b"5\nhello\r\n0\r\n\r\n", 400),
    "a bare LF after a chunk": (CHUNKED + b"5\r\nhello\n0\r\n\r\n", 400),
    "a chunk that goes on": (CHUNKED + b"5\r\nhello!\r\n0\r\n\r\n", 400),
    "a bare LF in an extension": (CHUNKED + b"5;a\nhello\r\n0\r\n\r\n", 400),
    "a bare CR in an extension": (CHUNKED + b"5;a\rb\r\nhello\r\n0\r\n\r\n", 400),
    "a line end in a quoted extension": (CHUNKED + b'5;a="b\r\n"\r\nhello\r\n0\r\n\r\n', 400),
    "a folded trailer": (CHUNKED + b"0\r\nX: y\r\n z\r\n\r\n", 400),
    "a length as a trailer": (CHUNKED + b"0\r\nContent-Length: 5\r\n\r\n", 400),
    "a bare LF in trailers": (CHUNKED + b"0\r\nX: y\n\r\n", 400),
    "an upgrade with chunks": (
        POST
        + b"Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "a greeting of TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "no HTTP at all": (b'{"jsonrpc":"2.0"}\n', 400),
}


@pytest.mark.parametrize("name", BAD)
def test_ambiguous_requests_are_refused(name: str) -> None:
    """However they are cut, and nothing that follows is a request (RFC 9112, sections 3, 5, 6, 7
    and 11.2).
    """
    data, expected = BAD[name]
    for pieces in cuts(data):
        seen, status, _ = ours([*pieces, NEXT])
        assert status == expected
        assert not any(one.whole for one in seen)


@pytest.mark.parametrize(
    "data, limits, status",
    [
        (POST + b"X: " + b"x" * 100 + b"\r\n\r\n", ConnectionLimits(head=100), 431),
        (POST + b"X: " + b"x" * 100, ConnectionLimits(head=100), 431),
        (POST + b"X: y\r\n" * 3 + b"\r\n", ConnectionLimits(headers=3), 431),
        (POST + b"X: y\r\n" * 3 + b"\r\n", ConnectionLimits(headers=4), 0),
        (
            b"GET /" + b"x" * 20 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
            ConnectionLimits(target=20),
            414,
        ),
        (b"GET /" + b"x" * 19 + b" HTTP/1.1\r\n" + HOST + b"\r\n", ConnectionLimits(target=20), 0),
    ],
)
def test_heads_are_limited(data: bytes, limits: ConnectionLimits, status: int) -> None:
    """In bytes, in headers, and the target in bytes; however they are cut."""
    for pieces in cuts(data):
        assert ours(pieces, limits)[1] == status


# -- beside a second parser ------------------------------------------------------------------------

# h11 takes a list of equal lengths, and bounds chunk sizes to 20 digits.
PARTS = [
    b"GET / HTTP/1.1\r\n",
    b"POST /mcp HTTP/1.1\r\n",
    b"POST /mcp HTTP/1.0\r\n",
    HOST,
    b"Host:a\r\n",
    b"\r\n",
    b"\n",
    b"\r",
    b"Content-Length: 5\r\n",
    b"content-length:0\r\n",
    b"Content-Length: 5, 5\r\n",
    b"Content-Length: 05 \r\n",
    b"Content-Length: 3\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"transfer-encoding:Chunked\r\n",
    b"Transfer-Encoding: identity\r\n",
    b"Transfer-Encoding : chunked\r\n",
    b"Connection: close\r\n",
    b"Connection: keep-alive\r\n",
    b"X: y\r\n",
    b" folded\r\n",
    b"X:\t z \t\r\n",
    b"X: \xe9\r\n",
    b"Expect: 100-continue\r\n",
    b"Upgrade: h2c\r\nConnection: upgrade\r\n",
    b"hello",
    b"5\r\nhello\r\n",
    b"0\r\n\r\n",
    b"5;a=b\r\nhello\r\n",
    b"0\r\nT: u\r\n\r\n",
    b"3\nabc\n",
    b"a",
    b" ",
    b"\x00",
    b"0",
    b";",
    b":",
]


def compare(data: bytes) -> tuple[int, int]:
    """Hold both parsers to each other. How many requests both saw, and whether both refused."""
    mine, status, _ = ours([data])
    theirs, refused = of_h11(data)
    for one, other in zip(mine, theirs, strict=False):
        assert one == other or not (one.whole and other.whole), (data, one, other)
        assert (one.method, one.target, one.headers) == (other.method, other.target, other.headers)
        if one.whole != other.whole:
            # ours has the end: then h11 has it too, or refuses what follows the last chunk
            assert not one.whole or refused, (data, one, other)
    # what h11 refuses we refuse, and we see no request where h11 sees none
    assert len(mine) <= len(theirs), (data, mine, theirs)
    if refused and not status:
        # h11 refuses at once what we refuse once its line has come whole, or drop behind a close
        again, late, sink = ours([data, b"\r\n\r\n\x00\r\n\r\n"])
        closed = bool(sink.heads) and not sink.heads[-1].keep_alive and again[-1].whole
        assert late or closed, data
    return sum(one.whole for one in mine), int(bool(status and refused))


@given(st.lists(st.sampled_from(PARTS), max_size=14))
def test_put_together_from_parts(parts: list[bytes]) -> None:
    """Requests put together from lines that belong together, and that do not."""
    compare(b"".join(parts))


def mutated(turn: random.Random) -> bytes:
    """One or two good requests, with a few bytes changed, dropped, doubled or put in."""
    data = bytearray(
        b"".join(turn.choice([*(good for good, _ in GOOD.values()), NEXT]) for _ in range(2))
    )
    for _ in range(turn.randint(0, 4)):
        place = turn.randrange(len(data))
        match turn.randrange(5):
            case 0:
                data[place] = turn.choice(b"\r\n\t :;,0159afxX\x00\x7f\xff")
            case 1:
                del data[place : place + turn.choice((1, 1, 2, 5))]
            case 2:
                data[place:place] = data[place : place + turn.randint(1, 20)]
            case 3:
                data[place:place] = turn.choice(PARTS)
            case _:
                data[place:place] = bytes([turn.randrange(256)])
        if not data:
            return b""
    return bytes(data)


def storm(seed: int, number: int) -> tuple[int, int]:
    """So many spoiled requests, in one piece and in pieces; how many were seen and refused."""
    turn = random.Random(seed)
    seen = refused = 0
    for _ in range(number):
        data = mutated(turn)
        if b"ttp://" in data:
            continue  # h11 leaves an absolute target as it is
        if any(len(run) > 15 for run in data.lower().split(b"\r\n") if run.strip(b"0") == b""):
            continue
        one, other = compare(data)
        seen += one
        refused += other
        if not data:
            continue
        places = sorted(turn.sample(range(len(data) + 1), min(3, len(data))))
        pieces = [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]
        in_pieces = ours([piece for piece in pieces if piece])
        in_one = ours([data])
        assert in_pieces[1] == in_one[1], data
        whole: list[list[Seen]] = [
            [x for x in found[0] if x.whole] for found in (in_pieces, in_one)
        ]
        assert whole[0] == whole[1], data
    return seen, refused


def test_spoiled_requests_are_seen_by_two_parsers_alike() -> None:
    """Whatever both accept is the same requests; what h11 refuses is refused."""
    seen, refused = storm(1, 2_500)
    assert seen > 800
    assert refused > 200


@pytest.mark.slow
@pytest.mark.endurance(seconds=4)
@pytest.mark.parametrize("seed", range(2, 5))
def test_many_spoiled_requests_are_seen_by_two_parsers_alike(seed: int) -> None:
    """The long round."""
    storm(seed, 20_000)
