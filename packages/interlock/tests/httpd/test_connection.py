"""The HTTP server from outside: framing, pipelining, limits, timeouts, and the end."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, Http, Server
from interlock.transport.http.server.connection import LOOKS, Connection, ServerState
from interlock.transport.http.server.connection_table import ConnectionTable
from interlock.transport.http.server.forwarded import TrustedProxies
from interlock.transport.http.server.limits import ConnectionLimits
from interlock.transport.http.server.serve import listening_socket, serving
from tests.transport.certificates import Authority

from .echo_server import PATIENCE, Place, request, running


class Echo:
    """An ASGI app that does what the path says."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, Any]] = []
        self.events: list[str] = []
        self.gate = asyncio.Event()
        self.began = asyncio.Event()
        self.gone = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
            return
        self.scopes.append(scope)
        await getattr(self, scope["path"][1:] or "body")(scope, receive, send)

    async def _live(self, scope: Any, receive: Any, send: Any) -> None:
        while True:
            kind = (await receive())["type"]
            self.events.append(kind)
            if kind == "lifespan.startup":
                scope["state"]["made"] = "at the start"
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return

    async def body(self, scope: Any, receive: Any, send: Any) -> None:
        """Send the body back, with a length."""
        said = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.gone.set()
                return
            said += message["body"]
            if not message["more_body"]:
                break
        head = [(b"content-length", b"%d" % len(said))]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": said})

    async def chunks(self, scope: Any, receive: Any, send: Any) -> None:
        """Three pieces, without a length."""
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for piece in (b"a", b"", b"bc"):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"d"})

    async def nothing(self, scope: Any, receive: Any, send: Any) -> None:
        """No content."""
        await send({"type": "http.response.start", "status": 204})
        await send({"type": "http.response.body"})

    async def unchanged(self, scope: Any, receive: Any, send: Any) -> None:
        """Not modified; the length is that of what is not sent."""
        head = [(b"content-length", b"5")]
        await send({"type": "http.response.start", "status": 304, "headers": head})
        await send({"type": "http.response.body", "body": b"hello"})

    async def wait(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer once the gate is open."""
        self.began.set()
        await self.gate.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"waited"})

    async def stream(self, scope: Any, receive: Any, send: Any) -> None:
        """Begin, and never end."""
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        assert (await receive())["type"] == "http.request"
        assert (await receive())["type"] == "http.disconnect"
        self.gone.set()

    async def head_only(self, scope: Any, receive: Any, send: Any) -> None:
        """Begin, and say nothing before the gate is open."""
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await self.gate.wait()
        await send({"type": "http.response.body", "body": b"late"})

    async def early(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer without reading the body."""
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"early"})

    async def fail(self, scope: Any, receive: Any, send: Any) -> None:
        """Raise."""
        raise RuntimeError("as planned")

    async def fail_late(self, scope: Any, receive: Any, send: Any) -> None:
        """Raise in the middle of a response."""
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        raise RuntimeError("as planned")

    async def quiet(self, scope: Any, receive: Any, send: Any) -> None:
        """Return without a response."""

    async def split(self, scope: Any, receive: Any, send: Any) -> None:
        """A header that would be two."""
        head = [(b"x", b"y\r\nset-cookie: z")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body"})

    async def short(self, scope: Any, receive: Any, send: Any) -> None:
        """Less than its length."""
        head = [(b"content-length", b"10")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": b"short"})

    async def flood(self, scope: Any, receive: Any, send: Any) -> None:
        """More than fits into the buffers, and whether the app had to wait."""
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(200):
            self.events.append("piece")
            await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


@pytest.fixture
async def echo() -> Echo:
    """The app."""
    return Echo()


@pytest.fixture
async def place(echo: Echo) -> AsyncIterator[Place]:
    """The app, served."""
    async with running(echo) as made:
        yield made


# -- framing ---------------------------------------------------------------------------------------


async def test_a_body_of_a_known_length(place: Place) -> None:
    """There and back, with a Date."""
    status, headers, body = await place.ask(request(method="POST", body=b"hello"))
    assert (status, headers["content-length"], body) == (200, "5", b"hello")
    assert headers["date"].endswith("GMT")
    assert "connection" not in headers


async def test_a_body_in_chunks_either_way(place: Place) -> None:
    """Chunks become one body; a response without a length gets chunks."""
    chunked = request("/", "Transfer-Encoding: chunked", method="POST")
    wire = await place.wire()
    for piece in (chunked, b"2\r\nhe\r\n", b"3;x=y\r\nllo\r\n0\r\n", b"X: y\r\n\r\n"):
        wire.say(piece)
    assert (await wire.response())[2] == b"hello"
    wire.say(request("/chunks"))
    status, headers, body = await wire.response()
    assert (status, headers["transfer-encoding"], body) == (200, "chunked", b"abcd")
    assert "content-length" not in headers


@pytest.mark.parametrize(
    "path, status, length", [("/nothing", 204, None), ("/unchanged", 304, "5")]
)
async def test_responses_without_a_body(
    place: Place, path: str, status: int, length: str | None
) -> None:
    """204 and 304 end with their head, whatever the app sends (RFC 9112, section 6.3)."""
    wire = await place.wire()
    wire.say(request(path) + request())
    found, headers, _ = await wire.response(bodyless=True)
    assert (found, headers.get("content-length")) == (status, length)
    assert "transfer-encoding" not in headers
    assert (await wire.response())[0] == 200


@pytest.mark.parametrize("path", ["/chunks", "/flood", "/"])
async def test_head_requests_have_no_body(place: Place, path: str) -> None:
    """Nothing of it stands before the next response."""
    wire = await place.wire()
    wire.say(request(path, method="HEAD") + request("/chunks"))
    assert (await wire.response(bodyless=True))[0] == 200
    assert (await wire.response())[2] == b"abcd"


async def test_http_1_0(place: Place) -> None:
    """No chunks: the body ends with the connection."""
    wire = await place.wire()
    wire.say(request("/chunks", version="1.0"))
    status, headers, body = await wire.response()
    assert (status, headers["connection"], body) == (200, "close", b"abcd")
    assert "transfer-encoding" not in headers


async def test_the_client_may_ask_to_close(place: Place, echo: Echo) -> None:
    """What it sends behind that is dropped."""
    wire = await place.wire()
    wire.say(request("/", "Connection: x, close", method="POST", body=b"a") + request("/nothing"))
    assert (await wire.response())[1]["connection"] == "close"
    assert await wire.rest() == b""
    assert len(echo.scopes) == 1


async def test_the_head_of_a_stream_does_not_wait_for_its_body(place: Place, echo: Echo) -> None:
    """A client learns at once that its request was accepted."""
    wire = await place.wire()
    wire.say(request("/head_only"))
    assert (await wire.head())[0] == 200
    echo.gate.set()
    assert await asyncio.wait_for(wire.reader.readuntil(b"0\r\n\r\n"), PATIENCE)


async def test_the_scope(place: Place, echo: Echo) -> None:
    """As ASGI 3 has it."""
    await place.ask(request("/chunks?a=%20b&c", "X: 1", "x: \t2 "))
    (scope,) = echo.scopes
    assert (scope["type"], scope["http_version"], scope["method"]) == ("http", "1.1", "GET")
    assert (scope["path"], scope["raw_path"], scope["query_string"]) == (
        "/chunks",
        b"/chunks",
        b"a=%20b&c",
    )
    assert scope["headers"] == [(b"host", b"a.example"), (b"x", b"1"), (b"x", b"2")]
    assert (scope["client"][0], scope["server"], scope["scheme"]) == (
        "127.0.0.1",
        place.address,
        "http",
    )
    assert scope["state"] == {"made": "at the start"}


async def test_100_continue(place: Place) -> None:
    """It is said when the app reads, and not where it does not."""
    wire = await place.wire()
    wire.say(request("/", "Expect: 100-continue", "Content-Length: 2", method="POST"))
    assert (await wire.head())[0] == 100
    wire.say(b"ok")
    assert (await wire.response())[2] == b"ok"
    wire.say(request("/early", "Expect: 100-continue", "Content-Length: 2", method="POST"))
    assert (await wire.response())[2] == b"early"
    wire.say(b"no" + request("/", "Expect: 100-continue", method="POST", body=b"there"))
    assert (await wire.response())[2] == b"there"


async def test_pipelined_requests_are_answered_in_order(place: Place, echo: Echo) -> None:
    """Also where the first one takes longest (RFC 9112, section 9.3.2)."""
    wire = await place.wire()
    wire.say(request("/wait") + b"".join(request(method="POST", body=b"%d" % n) for n in range(99)))
    await asyncio.wait_for(echo.began.wait(), PATIENCE)
    assert len(echo.scopes) == 1
    echo.gate.set()
    assert (await wire.response())[2] == b"waited"
    assert [(await wire.response())[2] for _ in range(99)] == [b"%d" % n for n in range(99)]


async def test_many_requests_in_one_piece(place: Place) -> None:
    """A thousand, answered one after the other without recursion."""
    wire = await place.wire()
    wire.say(request("/chunks") * 1000)
    for _ in range(1000):
        assert (await wire.response())[2] == b"abcd"


async def test_a_large_body_byte_for_byte(place: Place) -> None:
    """It waits in no buffer that has no bound, and arrives whole."""
    body = bytes(range(256)) * 20_000
    wire = await place.wire()
    wire.say(request(method="POST", body=body) + request(method="POST", body=b"next"))
    assert (await wire.response())[2] == body
    assert (await wire.response())[2] == b"next"


# -- clients that misbehave ------------------------------------------------------------------------


async def test_nonsense_is_answered_and_the_connection_closed(place: Place) -> None:
    """400, in words."""
    wire = await place.wire()
    wire.say(b"\x00\r\n\r\n")
    status, headers, body = await wire.response()
    assert (status, headers["connection"]) == (400, "close")
    assert b"Invalid HTTP request" in body
    assert await wire.rest() == b""


async def test_nonsense_behind_requests_closes_after_their_responses(
    place: Place, echo: Echo
) -> None:
    """In their order, and nothing else stands there."""
    wire = await place.wire()
    wire.say(request("/wait") + request("/chunks") + b"\x00\r\n\r\n" + request())
    await asyncio.wait_for(echo.began.wait(), PATIENCE)
    echo.gate.set()
    assert (await wire.response())[2] == b"waited"
    assert (await wire.response())[2] == b"abcd"
    assert await wire.rest() == b""


async def test_nonsense_behind_a_stream_ends_it(place: Place, echo: Echo) -> None:
    """No second status line in its body (response splitting)."""
    wire = await place.wire()
    wire.say(request("/stream"))
    await wire.head()
    wire.say(b"\x00\r\n\r\n")
    assert b"HTTP/1.1" not in await wire.rest()
    await asyncio.wait_for(echo.gone.wait(), PATIENCE)


async def test_nonsense_in_a_body_takes_the_place_of_the_response(place: Place, echo: Echo) -> None:
    """The app learns that its client has gone."""
    wire = await place.wire()
    wire.say(request("/", "Transfer-Encoding: chunked", method="POST") + b"2\r\nab\r\n")
    wire.say(b"zz\r\n")
    assert (await wire.response())[0] == 400
    assert await wire.rest() == b""


async def test_a_client_that_goes_is_noticed(place: Place, echo: Echo) -> None:
    """`http.disconnect`."""
    wire = await place.wire()
    wire.say(request("/stream"))
    await wire.head()
    wire.close()
    await asyncio.wait_for(echo.gone.wait(), PATIENCE)


async def test_a_body_that_was_not_wanted_does_not_end_the_connection(place: Place) -> None:
    """It is dropped, and the next request served."""
    wire = await place.wire()
    wire.say(request("/early", "Content-Length: 100000", method="POST"))
    assert (await wire.response())[2] == b"early"
    wire.say(b"x" * 100_000 + request("/chunks"))
    assert (await wire.response())[2] == b"abcd"


async def test_an_app_waits_for_a_client_that_does_not_read(place: Place, echo: Echo) -> None:
    """Backpressure: 20 MB do not stand in the memory of the server."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, place.address)
    reader, writer = await asyncio.open_connection(sock=sock, limit=1024)
    writer.write(request("/flood"))
    async with asyncio.timeout(PATIENCE):
        await reader.readuntil(b"\r\n\r\n")
        known = -1
        while known != len(echo.events):  # until no more is sent
            known = len(echo.events)
            for _ in range(20):
                await place.ask(request("/chunks"))
        assert known < 190
    writer.close()


# -- apps that misbehave ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/fail", "/quiet", "/split"])
async def test_an_app_without_a_response(
    place: Place, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """500, or a closed connection where nothing can be said any more; the log says why."""
    wire = await place.wire()
    wire.say(request(path))
    said = await wire.rest()
    assert said.startswith(b"HTTP/1.1 500 ") or not said
    assert b"set-cookie" not in said
    assert caplog.records


@pytest.mark.parametrize("path", ["/fail_late", "/short"])
async def test_an_app_that_ends_in_the_middle(place: Place, path: str) -> None:
    """The client sees that the response is not whole."""
    wire = await place.wire()
    wire.say(request(path))
    said = await wire.rest()
    assert said.startswith(b"HTTP/1.1 200 ")
    assert not said.endswith(b"0\r\n\r\n")


# -- limits ----------------------------------------------------------------------------------------

SLOW = ConnectionLimits(
    head_seconds=0.2, idle_seconds=0.3, stall_seconds=30, body=1000, body_seconds=0.2
)


@pytest.mark.parametrize(
    "said, status",
    [
        (b"GET / HT", 408),
        (b"GET / HTTP/1.1\r\nHost: a", 408),
        (request("/", "Content-Length: 5", method="POST") + b"abc", 408),
        (request("/", "Transfer-Encoding: chunked", method="POST") + b"3\r\nab", 408),
        (request("/", "Content-Length: 1001", method="POST"), 413),
        (request("/", "Transfer-Encoding: chunked", method="POST") + b"7d0\r\n" + b"x" * 2000, 413),
        (b"", 0),
        (request("/chunks"), 200),
    ],
)
async def test_slow_and_large_requests(echo: Echo, said: bytes, status: int) -> None:
    """Refused, and the connection is closed; one without a request is closed without a word, also
    behind a request that was answered.
    """
    async with running(echo, limits=SLOW) as place:
        wire = await place.wire()
        if said:
            wire.say(said)
            assert (await wire.response())[0] == status
        assert await wire.rest() == b""


async def test_a_client_that_does_not_read_is_given_up(echo: Echo) -> None:
    """Its connection ends, and the app with it."""
    async with running(echo, limits=ConnectionLimits(stall_seconds=0.2)) as place:
        wire = await place.wire(limit=1024)
        wire.say(request("/flood"))
        await wire.head()
        async with asyncio.timeout(PATIENCE):
            while not wire.writer.is_closing():
                wire.say(b" ")
                await asyncio.sleep(0.01)


async def _paused(connection: Connection) -> None:
    """Wait until the write buffer is full."""
    while not connection.is_paused:  # noqa: ASYNC110 - a connection tells nobody
        await asyncio.sleep(0)


async def test_a_client_that_reads_slowly_is_not_given_up(echo: Echo) -> None:
    """Slow is not stalled, also when the buffer is full at each check; who reads nothing at all is
    given up.
    """
    loop = asyncio.get_running_loop()
    limits = ConnectionLimits()
    table: ConnectionTable[Connection] = ConnectionTable(limits)
    state = ServerState(
        serving(echo),
        limits,
        loop,
        TrustedProxies(()),
        table,
        lambda request: "",
    )
    own, other = socket.socketpair()
    for each in (own, other):
        each.setblocking(False)
    with other:
        _, connection = await loop.connect_accepted_socket(lambda: Connection(state), own)
        other.send(request("/flood"))
        for _ in range(3 * LOOKS):
            await _paused(connection)
            connection.check_stalled()
            left = 300_000  # more than the buffers hold, and little of the 20 MB
            while left:
                piece = await loop.sock_recv(other, min(left, 10_000))
                assert piece, "the connection was closed"
                left -= len(piece)
        await _paused(connection)
        for _ in range(LOOKS + 1):
            assert len(table)
            connection.check_stalled()
        await asyncio.sleep(0)
        assert not len(table)
        await asyncio.gather(*state.tasks, return_exceptions=True)


async def test_connections_are_limited(echo: Echo) -> None:
    """One more takes the place of an idle one; where none is idle it is refused, with 503."""
    async with running(echo, limits=ConnectionLimits(connections=2)) as place:
        idle = await place.wire()
        busy = await place.wire()
        busy.say(request("/wait"))
        await asyncio.wait_for(echo.began.wait(), PATIENCE)
        echo.began.clear()
        more = await place.wire()
        more.say(request("/wait"))
        await asyncio.wait_for(echo.began.wait(), PATIENCE)
        assert await idle.rest() == b""
        late = await place.wire()
        assert (await late.response())[0] == 503
        assert await late.rest() == b""
        echo.gate.set()
        assert (await busy.response())[2] == b"waited"
        assert (await more.response())[2] == b"waited"


async def test_the_connections_of_one_address_are_limited(echo: Echo) -> None:
    """Whatever else is free."""
    async with running(echo, limits=ConnectionLimits(connections_per_address=1)) as place:
        wire = await place.wire()
        wire.say(request("/chunks"))
        await wire.response()
        assert (await (await place.wire()).response())[0] == 503
        wire.say(request("/chunks"))
        assert (await wire.response())[0] == 200


# -- sockets ---------------------------------------------------------------------------------------


async def test_a_unix_socket(echo: Echo, tmp_path: Path) -> None:
    """One that a process has left behind is replaced; its clients have no address."""
    listening_socket(f"unix:{tmp_path}/web.sock", 0).close()
    sock = listening_socket(f"unix:{tmp_path}/web.sock", 0)
    async with running(echo, sock, proxies=["unix"]) as place:
        assert (await place.ask(request("/chunks")))[2] == b"abcd"
        assert (echo.scopes[0]["client"], echo.scopes[0]["server"]) == (
            None,
            (f"{tmp_path}/web.sock", None),
        )
        await place.ask(request("/chunks", "X-Forwarded-For: 192.0.2.7"))
        assert echo.scopes[1]["client"] == ("192.0.2.7", 0)


def test_a_unix_socket_that_is_in_use_is_not_taken_away(tmp_path: Path) -> None:
    """The words name the path."""
    with (
        listening_socket(f"unix:{tmp_path}/web.sock", 0),
        pytest.raises(OSError, match="web.sock"),
    ):
        listening_socket(f"unix:{tmp_path}/web.sock", 0)


async def test_a_descriptor(echo: Echo) -> None:
    """As a process manager hands it over."""
    with listening_socket("127.0.0.1", 0) as made:
        sock = listening_socket(f"fd:{made.detach()}", 0)
    async with running(echo, sock) as place:
        assert (await place.ask(request("/chunks")))[2] == b"abcd"


async def test_tls(echo: Echo, tmp_path: Path) -> None:
    """HTTPS; whoever does not speak it is no matter of the server's."""
    authority = Authority(tmp_path)
    async with running(echo, tls=authority.server("127.0.0.1")) as place:
        plain = await place.wire()
        plain.say(request("/chunks"))
        assert b"200" not in await plain.rest()
        wire = await place.wire(ssl=ssl.create_default_context(cafile=authority.file))
        wire.say(request("/chunks"))
        assert (await wire.response())[2] == b"abcd"
        assert echo.scopes[0]["scheme"] == "https"


# -- proxies ---------------------------------------------------------------------------------------


async def test_forwarded_headers_of_a_named_proxy(echo: Echo) -> None:
    """The last address that is no named proxy is the client's."""
    async with running(echo, proxies=["127.0.0.0/8", "192.0.2.1"]) as place:
        chain = "X-Forwarded-For: 203.0.113.9, 198.51.100.3, 192.0.2.1"
        await place.ask(request("/chunks", chain, "X-Forwarded-Proto: https"))
        assert (echo.scopes[0]["client"], echo.scopes[0]["scheme"]) == (
            ("198.51.100.3", 0),
            "https",
        )


async def test_a_proxy_that_is_not_named(echo: Echo, caplog: pytest.LogCaptureFixture) -> None:
    """It is not believed, and one warning names the option."""
    async with running(echo) as place:
        for _ in range(3):
            await place.ask(request("/chunks", "X-Forwarded-For: 203.0.113.9"))
        assert {scope["client"][0] for scope in echo.scopes} == {"127.0.0.1"}
    (record,) = caplog.records
    assert "proxies=['127.0.0.1']" in record.getMessage()


# -- the end ---------------------------------------------------------------------------------------


async def test_the_lifespan(echo: Echo) -> None:
    """Before the first request, and after the last."""
    async with running(echo) as place:
        assert echo.events == ["lifespan.startup"]
        await place.ask(request("/chunks"))
    assert echo.events == ["lifespan.startup", "lifespan.shutdown"]


async def test_an_app_without_a_lifespan() -> None:
    """It is served all the same."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        await Echo().chunks(scope, receive, send)

    async with running(app) as place:
        assert (await place.ask(request()))[2] == b"abcd"


async def test_an_app_that_cannot_start() -> None:
    """Its words are raised."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no disk"})

    with pytest.raises(RuntimeError, match="no disk"):
        async with running(app):
            pass


async def test_the_end_waits_for_what_runs(echo: Echo) -> None:
    """An idle connection is closed, a response that is under way is completed, and says that it is
    the last one.
    """
    async with running(echo) as place:
        idle = await place.wire()
        idle.say(request("/chunks"))
        await idle.response()
        busy = await place.wire()
        busy.say(request("/wait"))
        await asyncio.wait_for(echo.began.wait(), PATIENCE)
        place.task.cancel()
        assert await idle.rest() == b""
        echo.gate.set()
        status, headers, body = await busy.response()
        assert (status, headers["connection"], body) == (200, "close", b"waited")
        assert await busy.rest() == b""
        await asyncio.wait_for(place.task, PATIENCE)


async def test_the_endpoint_over_tls(tmp_path: Path) -> None:
    """`serve_http(tls=...)` of a server; its URL says so."""
    authority = Authority(tmp_path)
    server = Server("safe")
    server.add_tool(_four, name="four")
    async with (
        server.serve_http(port=0, tls=authority.server("127.0.0.1")) as web,
        Client(Http(web.url, ca=authority.file)) as client,
    ):
        assert web.url.startswith("https://")
        assert (await client.call_tool("four")).value() == 4


async def _four() -> int:
    """Four."""
    return 4
