"""Requests over raw sockets that are cut short, lie, or never end: each is refused in clear words,
and the next client is served."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Callable, Iterator

import pytest

from tests.faults.web import MB, Response, Site, Wire, call, head, post, stateless, until
from tests.protocol.frames import stamped
from tests.protocol.mutations import Mutator

ADD = stateless(1, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
PING_BODY = stamped(
    1, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}, capabilities={}
)
MIRRORS = (
    "MCP-Protocol-Version: 2026-07-28",
    "Mcp-Method: tools/call",
    "Mcp-Name: add",
    "Content-Type: application/json",
)
QUICK = {"limits": {"head_seconds": 0.3, "body_seconds": 0.3, "stall_seconds": 0.4}}
NARROW = {"limits": {"body": 100_000, "bodies": 150_000}}


def chunked(*pieces: bytes, trailers: bytes = b"") -> bytes:
    """A POST whose body comes in chunks, without a length."""
    return (
        head("POST", *MIRRORS, "Transfer-Encoding: chunked")
        + b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in (*pieces, b"")[:-1])
        + (b"0\r\n" + trailers + b"\r\n")
    )


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> object:
    """A server of little patience."""
    one = Site(tmp_path_factory.mktemp("quick"), **QUICK)
    yield one
    with answered(one, ADD) as (_, response):  # whatever the tests have done to it
        assert response.json["result"]["structuredContent"] == {"result": 3}
    one.close()


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> object:
    """A server that takes small bodies only."""
    one = Site(tmp_path_factory.mktemp("narrow"), **NARROW)
    yield one
    with one.wire() as wire:  # whatever the tests have done to it
        assert wire.ask(ADD).json["result"]["structuredContent"] == {"result": 3}
    one.close()


# -- slow, half, and endless -----------------------------------------------------------------------


@contextlib.contextmanager
def answered(site: Site, data: bytes) -> Iterator[tuple[Wire, Response]]:
    """A connection that sent `data`, and the response to it.

    A server of little patience closes a connection on which nothing arrived without a word. On a
    busy machine it can do so before this process gets to send: another connection replaces it.
    """
    for _ in range(20):
        with site.wire() as wire:
            try:
                response = wire.ask(data)
            except ConnectionResetError:
                continue
            yield wire, response
            return
    raise AssertionError("the server closed 20 connections without an answer")


def test_a_client_that_writes_byte_by_byte_is_served(shared: Site) -> None:
    """However the bytes are cut."""
    with shared.wire() as wire:
        wire.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        assert wire.ask(*(ADD[n : n + 1] for n in range(len(ADD)))).json["result"][
            "structuredContent"
        ] == {"result": 3}
        assert wire.ask(*(ADD[n : n + 7] for n in range(0, len(ADD), 7))).status == 200


@pytest.mark.parametrize(
    "half", [b"P", b"POST /mcp HT", b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n", ADD[:150]]
)
def test_a_head_that_never_ends_is_given_up(quick: Site, half: bytes) -> None:
    """408, and the connection is closed."""
    with answered(quick, half) as (wire, response):
        assert response.status == 408
        assert wire.is_closed()


def test_a_head_that_never_ends_behind_a_request_is_given_up(quick: Site) -> None:
    """Also where its beginning came in one piece with a whole request."""
    with answered(quick, ADD + b"POST /mcp HTTP/1.1\r\nX-") as (wire, response):
        assert response.status == 200
        assert wire.read().status == 408
        assert wire.is_closed()


def test_a_connection_that_says_nothing_is_closed_without_a_word(quick: Site) -> None:
    """There is no request that could be answered."""
    with quick.wire() as wire:
        assert wire.is_closed()


@pytest.mark.parametrize("framing", ["Content-Length: 100", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("begun", [b"", b"5\r\n{", b"{"])
def test_a_body_that_never_ends_is_given_up(quick: Site, framing: str, begun: bytes) -> None:
    """408 with words, and the connection is closed."""
    if "Length" in framing and b"5" in begun:
        begun = b"{"
    with answered(quick, head("POST", *MIRRORS, framing) + begun) as (wire, response):
        assert (response.status, response.headers["connection"]) == (408, "close") or (
            begun == b"{" and response.status == 400
        )
        assert wire.is_closed()


def test_a_body_that_goes_on_after_its_answer_is_given_up(quick: Site) -> None:
    """A client that was answered before its body ended cannot hold the connection with the rest of
    it."""
    with answered(quick, head("GET", "Content-Length: 1000", target="/health") + b"1") as (
        wire,
        response,
    ):
        assert response.status == 200
        wire.say(b"2")
        assert wire.is_closed()


def test_half_requests_leave_nothing(quick: Site) -> None:
    """Clients that go in the middle of a head, a length or a chunk."""
    quick.value("tasks")
    before = quick.descriptors()
    tasks = quick.value("tasks")
    for cut in (1, 20, 100, len(ADD) - 1):
        for _ in range(50):
            with quick.wire() as wire:
                wire.say(ADD[:cut])
    for _ in range(50):
        with quick.wire() as wire:
            wire.say(head("POST", *MIRRORS, "Transfer-Encoding: chunked") + b"ff\r\n{")
    quick.settles(before, tasks)


# -- too large -------------------------------------------------------------------------------------


def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes(narrow: Site) -> None:
    """413, without waiting for it; a client that asks first is not told to go on."""
    with narrow.wire() as wire:
        response = wire.ask(
            head("POST", *MIRRORS, "Content-Length: 100001", "Expect: 100-continue")
        )
        assert (response.status, response.headers["connection"]) == (413, "close")
        assert "100000" in response.json["error"]["message"]


def test_a_body_that_is_too_large_is_refused_so_that_its_sender_hears_it(narrow: Site) -> None:
    """Who sends all of it before he listens gets the answer, and no reset in its place (RFC 9112,
    section 9.6)."""
    with narrow.wire() as wire:
        body = b" " * (8 * MB)
        wire.socket.sendall(head("POST", *MIRRORS, f"Content-Length: {len(body)}") + body)
        assert wire.read().status == 413
        assert wire.is_closed()


def test_a_body_in_chunks_that_is_too_large_is_refused(narrow: Site) -> None:
    """413, once it is too large, though it names no length."""
    with narrow.wire() as wire:
        assert wire.ask(chunked(*[b" " * 20_000] * 6)).status == 413
        assert wire.is_closed()
    assert narrow.ask(chunked(PING_BODY)).status == 200


def test_bodies_that_arrive_at_once_are_bounded_together(narrow: Site) -> None:
    """Each may be as large as it is, and all of them are too much: 503, and a client that comes
    later is served."""
    with narrow.wire() as first, narrow.wire() as second:
        for wire in (first, second):
            wire.say(head("POST", *MIRRORS, "Content-Length: 99000"), b" " * 98_000)
        readable, _, _ = select.select([first.socket, second.socket], [], [])
        refused, waiting = (first, second) if first.socket in readable else (second, first)
        assert refused.read().status == 503
        assert waiting.ask(b" " * 1_000).status == 400, "it was read whole, and is no JSON"


LARGE = 15 * MB
DEAR = {
    "small numbers": b"[" + b"0," * (LARGE // 2) + b"0]",
    "empty objects": b"[" + b"{}," * (LARGE // 3) + b"{}]",
    "empty messages": b"[" + b'{"jsonrpc":"2.0"},' * (LARGE // 18) + b'{"jsonrpc":"2.0"}]',
    "depth": b"[" * LARGE,
    "depth of objects": b'{"a":' * (LARGE // 5),
    "an id": b'{"jsonrpc":"2.0","method":7,"id":[' + b"[]," * (LARGE // 3) + b"[]]}",
    "a result": b'{"jsonrpc":"2.0","method":7,"result":[' + b"[]," * (LARGE // 3) + b"[]]}",
    "params": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":['
    + b"[]," * (LARGE // 3)
    + b"[]]}",
    "arguments": (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"length",'
        b'"arguments":{"text":['
    )
    + b"[]," * (LARGE // 3)
    + b"[]]}}}",
}


@pytest.mark.parametrize("dear", DEAR)
def test_a_body_costs_no_multiple_of_its_size(shared: Site, dear: str) -> None:
    """Sixteen MB of small values would be a gigabyte of objects and seconds of everybody's time,
    were they ever built."""
    with shared.wire() as wire:
        id = shared.session(wire, "2025-03-26")
        before = shared.peak()
        response = wire.ask(post(DEAR[dear], f"Mcp-Session-Id: {id}"))
        assert "error" in response.json or response.json["result"]["isError"]
        assert shared.peak() - before < 100 * MB


# -- lies about the length -------------------------------------------------------------------------

N = len(PING_BODY)
LIES = {
    "negative": ["Content-Length: -5"],
    "hexadecimal": ["Content-Length: 0x10"],
    "words": ["Content-Length: many"],
    "plus": [f"Content-Length: +{N}"],
    "empty": ["Content-Length:"],
    "two numbers": [f"Content-Length: {N}, {N}"],
    "enormous": ["Content-Length: 99999999999999999999999999"],
    "doubled": [f"Content-Length: {N}", f"Content-Length: {N}"],
    "contradicting": [f"Content-Length: {N}", "Content-Length: 5"],
    "with chunks": [f"Content-Length: {N}", "Transfer-Encoding: chunked"],
    "with chunks first": ["Transfer-Encoding: chunked", f"Content-Length: {N}"],
    "unknown coding": ["Transfer-Encoding: gzip"],
    "chunks within": ["Transfer-Encoding: chunked, identity"],
    "chunks twice": ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
    "space before the colon": [f"Content-Length : {N}"],
    "folded": ["Content-Length:", f" {N}"],
}


@pytest.mark.parametrize("lie", LIES)
def test_a_request_with_two_ends_is_refused_and_nothing_is_smuggled(shared: Site, lie: str) -> None:
    """400 (or 413), the connection is closed, and what follows on it is never a request (RFC 9112,
    section 11.2)."""
    with shared.wire() as wire:
        wire.say(
            head("POST", *MIRRORS, *LIES[lie])
            + PING_BODY
            + stateless(2, "tools/call", {"name": "open_gate"})
        )
        response = wire.read()
        assert response.status in (400, 413, 501), response
        assert wire.is_closed()


def test_a_length_that_is_too_short_makes_nonsense_of_the_rest(shared: Site) -> None:
    """Half a body is no JSON, and the other half is no request."""
    with shared.wire() as wire:
        wire.say(head("POST", *MIRRORS, f"Content-Length: {N - 10}") + PING_BODY)
        assert wire.read().status == 400
        assert wire.is_closed()


@pytest.mark.parametrize(
    "chunk",
    [b"-1\r\n", b"zz\r\n", b"5;" + b"x" * 100 + b"\n", b"ffffffffffffffffff\r\n", b"1\rx", b"1\n{"],
)
def test_chunks_that_lie_are_refused(shared: Site, chunk: bytes) -> None:
    """A size that is none, or too large to be one."""
    with shared.wire() as wire:
        wire.say(
            head("POST", *MIRRORS, "Transfer-Encoding: chunked") + chunk + b"{}\r\n0\r\n\r\n" + ADD
        )
        assert wire.read().status in (400, 413)
        assert wire.is_closed()


# -- floods of headers -----------------------------------------------------------------------------

FLOODS: dict[str, Callable[[], bytes]] = {
    "many": lambda: head("POST", *MIRRORS, *(f"X-{n}: {n}" for n in range(10_000))),
    "many, all alike": lambda: head("POST", *["a: b"] * 40_000),
    "one": lambda: head("POST", "X-Long: " + "x" * 100_000),
    "one name": lambda: head("POST", "X" * 100_000 + ": 1"),
    "target": lambda: head("POST", target="/mcp?" + "x" * 100_000),
}


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("whole", [True, False], ids=["in one piece", "in pieces"])
def test_a_head_that_is_too_large_is_refused(shared: Site, flood: str, *, whole: bool) -> None:
    """431, and the connection is closed, wherever the head is cut."""
    said = FLOODS[flood]()
    with shared.wire() as wire:
        wire.say(*([said] if whole else [said[n : n + 3000] for n in range(0, len(said), 3000)]))
        assert wire.read().status == 431
        assert wire.is_closed()


def test_a_head_without_an_end_is_refused_once_it_is_too_large(shared: Site) -> None:
    """An endless one does not get to fill the memory."""
    with shared.wire() as wire:
        before = shared.resident()
        wire.say(b"POST /mcp HTTP/1.1\r\nX: ", *[b"x" * MB] * 100)
        assert wire.read().status == 431
        assert shared.resident() - before < 16 * MB


def test_trailers_are_bounded(shared: Site) -> None:
    """What follows the last chunk is neither kept nor taken for headers of the request."""
    before = shared.resident()
    trailers = b"".join(b"X-%d: %d\r\n" % (n, n) for n in range(1_000_000))
    with shared.wire() as wire:
        wire.say(chunked(PING_BODY, trailers=trailers))
        assert wire.read().status == 200
        assert shared.resident() - before < 16 * MB
    assert (
        shared.ask(chunked(PING_BODY, trailers=b"Mcp-Name: other\r\nHost: evil.example\r\n")).status
        == 200
    )


# -- garbage, and more than one at a time ----------------------------------------------------------

GARBAGE = [
    b"\x00" * 100,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xaa" * 200,  # a TLS greeting
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET /mcp HTTP/9.9\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    b"CONNECT evil.example:80 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\x00b\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX\x7f: b\r\n\r\n",
    b"POST /\xff\xfe HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n' * 10,
]


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_is_refused(shared: Site, garbage: bytes) -> None:
    """With a status that says so; the connection is closed."""
    with shared.wire() as wire:
        assert wire.ask(garbage).status in (400, 404, 405, 505)


def test_spoiled_requests_do_not_bring_a_server_down(narrow: Site) -> None:
    """A thousand of them: each gets an answer or is hung up on, and none is answered with a fault
    of the server (`RPC-09`)."""
    spoiler = Mutator(31)
    for said in spoiler.frames(1_000):
        body = said if b"initialize" not in said else b"{"
        with narrow.wire() as wire:
            wire.say(
                post(
                    body,
                    "MCP-Protocol-Version: 2026-07-28",
                    "Mcp-Method: tools/call",
                    "Mcp-Name: add",
                )
            )
            assert wire.head().status in (200, 202, 400, 404)
    log = narrow.log()
    assert "Traceback" not in log, log[-3000:]


def test_pipelined_requests_are_answered_in_their_order(shared: Site) -> None:
    """A hundred in one piece (RFC 9112, section 9.3.2)."""
    with shared.wire() as wire:
        wire.say(
            b"".join(
                stateless(n, "tools/call", {"name": "add", "arguments": {"a": n, "b": 0}})
                for n in range(100)
            )
        )
        assert [wire.read().json["id"] for _ in range(100)] == list(range(100))


def test_a_client_that_pipelines_behind_a_stream_and_goes_leaves_nothing(
    site: Callable[..., Site],
) -> None:
    """The stream ends though another request waits behind it; else anybody could use up the streams
    of a server."""
    one = site(limits={"keep_alive": 0.1, "streams": 3})
    one.value("tasks")
    before = one.descriptors()
    tasks = one.value("tasks")
    listen = stateless(1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    for _ in range(6):
        wires = [one.wire() for _ in range(3)]
        for wire in wires:
            wire.say(listen + ADD + ADD)
            assert wire.head().status == 200
            next(wire.messages())
            wire.close()
        one.settles(before, tasks)


def test_a_call_with_another_behind_it_is_cancelled_when_its_client_goes(
    site: Callable[..., Site],
) -> None:
    """Closing the stream cancels, also where more was sent meanwhile (`HTM-14`)."""
    one = site(limits={"keep_alive": 0.1})
    with one.wire() as wire:
        wire.say(call(1, "wait_for_ever"))
        wire.head()
        next(wire.messages())
        wire.say(ADD + ADD)
    until(lambda: "ended" in one.value("happened"), "the end of the call")


def test_nonsense_behind_a_stream_does_not_stand_in_it(shared: Site) -> None:
    """No second status line in the middle of a body (response splitting); the connection ends."""
    with shared.wire() as wire:
        wire.say(
            stateless(1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        )
        wire.head()
        next(wire.messages())
        wire.say(b"\x00garbage\r\n\r\n")
        assert b"HTTP/1.1" not in wire.file.read()


def test_old_http_is_answered_and_closed(shared: Site) -> None:
    """HTTP/1.0 has no persistent connections and no chunks."""
    with shared.wire() as wire:
        assert wire.ask(ADD.replace(b"HTTP/1.1", b"HTTP/1.0", 1)).status == 200
        assert wire.is_closed()
