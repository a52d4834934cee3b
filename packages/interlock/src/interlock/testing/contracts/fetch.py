"""Contract check of a Fetch (an HTTP client), against a server on loopback."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from ... import types as t
from ...http11.fetch import ConnectionLost, Fetch, Request, Response
from .promises import promise_of, require, within

MakeFetch = Callable[[], Awaitable[Fetch]]

_LIMIT = 1 << 24
_CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


async def check_fetch(
    make_fetch: MakeFetch, *, patience: float = 20.0, refuses_redirects: bool = False
) -> None:
    """Check that HTTP clients keep the contract of `interlock.http11.fetch.Fetch`.

    Args:
        make_fetch: Makes a fresh client, which must reach servers on 127.0.0.1 without a proxy.
        patience: Seconds that each step waits.
        refuses_redirects: Whether it raises Unreachable for redirects, with their status, instead
            of returning them.

    Raises:
        AssertionError: A promise is broken; the message names it.
    """
    redirected = _refuses_redirects if refuses_redirects else _follows_nothing
    for step in (
        _sends,
        _gives,
        redirected,
        _reads_large,
        _reads_pieces,
        _bounds,
        _says_breaks,
        _says_nonsense,
        _says_nobody,
        _repeats,
        _sends_once,
        _refuses,
        _closes,
        _cancels,
        _ends,
    ):
        fetch = await make_fetch()
        try:
            async with (
                within(patience, "an HTTP client", promise_of(step)),
                _serving() as server,
            ):
                await step(fetch, server)
                await fetch.aclose()
        finally:
            await fetch.aclose()


class _Server:
    """A test server; the path of a request chooses the response.

    `gone` counts connections that the client closed early.
    """

    def __init__(self) -> None:
        self.url = ""
        self.seen: list[tuple[str, dict[str, list[str]], bytes]] = []
        self.asked = asyncio.Event()
        self.go = asyncio.Event()
        self.gone = asyncio.Event()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; return whether another may follow."""
        first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")[:-4].split("\r\n")
        headers: dict[str, list[str]] = {}
        for name, _, value in (line.partition(":") for line in rest):
            headers.setdefault(name.lower(), []).append(value.strip())
        body = await reader.readexactly(int(headers.get("content-length", ["0"])[0]))
        self.seen.append((first, headers, body))
        self.asked.set()
        match first.split(" ")[1].partition("?")[0]:
            case "/echo":
                writer.write(
                    b"HTTP/1.1 201 Made\r\nX-Two: a\r\nx-tWO: b\r\nContent-Length: %d\r\n\r\n"
                    % len(body)
                    + body
                )
            case "/moved":
                writer.write(
                    b"HTTP/1.1 307 Moved\r\nLocation: /echo\r\nContent-Length: 4\r\n\r\ngone"
                )
            case "/none":
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            case "/pieces":
                await self._pieces(writer)
            case "/short":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
                await self.go.wait()
                return False
            case "/nothing":
                return False
            case "/half":
                writer.write(b"HTTP/1.1 20")
                return False
            case "/nonsense":
                writer.write(b"220 mail.example ESMTP\r\n")
                return False
            case "/last":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlast")
                return False
            case "/head":
                writer.write(_CHUNKED + b"2\r\nok\r\n")
                await self._hang(reader)
            case _:
                await self._hang(reader)
        await writer.drain()
        return True

    async def _pieces(self, writer: asyncio.StreamWriter) -> None:
        writer.write(_CHUNKED)
        for n in range(3):
            writer.write(b"7\r\npiece %d\r\n" % n)
            await self.go.wait()
            self.go.clear()
        writer.write(b"0\r\n\r\n")

    async def _hang(self, reader: asyncio.StreamReader) -> None:
        try:
            while await reader.read(4096):
                pass
        finally:
            self.gone.set()
        raise ConnectionError


@asynccontextmanager
async def _serving() -> AsyncIterator[_Server]:
    server = _Server()
    running = set[asyncio.Task[None]]()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(server.talk(reader, writer))
        running.add(task)
        task.add_done_callback(running.discard)

    listening = await asyncio.start_server(talk, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _sends(fetch: Fetch, server: _Server) -> None:
    """a request is sent with its method, path, headers and body unchanged"""
    headers = (
        ("Content-Type", "application/json"),
        ("Mcp-Name", "=?base64?w7w=?="),
        ("X-Two", "1"),
        ("X-Two", "2"),
    )
    for method, body in (("POST", b'{"a":1}'), ("GET", b""), ("DELETE", b""), ("POST", b"")):
        response = await fetch(Request(method, f"{server.url}/echo?q=%C3%BC", headers, body))
        await response.aclose()
        (first, seen, came) = server.seen[-1]
        require(
            first.startswith(f"{method} /echo?q=%C3%BC HTTP/1."), f"the request line is {first!r}"
        )
        require(came == body, f"the body {body!r} arrived as {came!r}")
        for name in ("Content-Type", "Mcp-Name"):
            given = [value for own, value in headers if own == name]
            require(
                seen.get(name.lower()) == given,
                f"the header {name} arrived as {seen.get(name.lower())}, not as {given}",
            )
        require(
            ", ".join(seen.get("x-two", [])) == "1, 2",
            f"two headers of one name arrived as {seen.get('x-two')}",
        )
        require(len(seen.get("host", [])) == 1, f"there must be one Host, not {seen.get('host')}")


async def _gives(fetch: Fetch, server: _Server) -> None:
    """a response has its status, its body, and its headers by lower-case names, with repeated
    headers joined
    """
    response = await fetch(Request("POST", f"{server.url}/echo", (), b"body"))
    require(response.status == 201, f"the status was 201, not {response.status}")
    require(
        response.headers.get("x-two") == "a, b",
        f"two headers of one name are {response.headers.get('x-two')!r}",
    )
    require((got := await response.read(_LIMIT)) == b"body", f"the body is {got!r}")
    response = await fetch(Request("POST", f"{server.url}/none"))
    require((response.status, await response.read(0)) == (204, b""), "a 204 has no body")


async def _follows_nothing(fetch: Fetch, server: _Server) -> None:
    """a redirect is returned like any other response, and not followed"""
    response = await fetch(Request("POST", f"{server.url}/moved"))
    await response.aclose()
    require(
        response.status == 307 and response.headers.get("location") == "/echo",
        f"the status is {response.status}",
    )
    require(len(server.seen) == 1, "it asked again by itself")


async def _refuses_redirects(fetch: Fetch, server: _Server) -> None:
    """a redirect raises Unreachable with its status, and is not followed"""
    bad = await _raises(t.Unreachable, fetch(Request("POST", f"{server.url}/moved")), "a redirect")
    require(
        isinstance(bad, t.Unreachable) and bad.status == 307,
        f"the error does not have the status 307: {bad!r}",
    )
    require(len(server.seen) == 1, "it asked again by itself")


async def _reads_large(fetch: Fetch, server: _Server) -> None:
    """bodies of a megabyte arrive whole, and each concurrent request gets its own response"""
    body = bytes(range(256)) * 4096
    got = await (await fetch(Request("POST", f"{server.url}/echo", (), body))).read(len(body))
    require(got == body, f"{len(got)} bytes of {len(body)} arrived, or they were changed")

    async def one(n: int) -> bytes:
        return await (await fetch(Request("POST", f"{server.url}/echo", (), b"%d" % n))).read(
            _LIMIT
        )

    answers = await asyncio.gather(*(one(n) for n in range(32)))
    require(answers == [b"%d" % n for n in range(32)], f"the responses were {answers}")


async def _reads_pieces(fetch: Fetch, server: _Server) -> None:
    """a body arrives piece by piece, each before the next is sent, and ends"""
    pieces = (await fetch(Request("GET", f"{server.url}/pieces"))).chunks()
    for n in range(3):
        got = b""
        while len(got) < 7:
            got += await anext(pieces)
        require(got == b"piece %d" % n, f"piece {n} is {got!r}")
        server.go.set()
    require(await anext(pieces, None) is None, "there is a piece after the end")


async def _bounds(fetch: Fetch, server: _Server) -> None:
    """a body of exactly the limit is read, and one of a byte more raises ProtocolError"""
    for size in (1000, 300_000):
        request = Request("POST", f"{server.url}/echo", (), bytes(size))
        require(
            len(await (await fetch(request)).read(size)) == size,
            f"{size} bytes of {size} are within the limit",
        )
        await _raises(
            t.ProtocolError,
            (await fetch(request)).read(size - 1),
            f"{size} bytes where {size - 1} are allowed",
        )


async def _says_breaks(fetch: Fetch, server: _Server) -> None:
    """a broken connection raises ConnectionLost, in the head and in the body, after the pieces that
    arrived before it
    """
    await _raises(ConnectionLost, fetch(Request("POST", f"{server.url}/half")), "half a head")
    responses = [await fetch(Request("POST", f"{server.url}/short")) for _ in range(2)]
    server.go.set()
    await _raises(
        ConnectionLost, responses[0].read(_LIMIT), "a body that ends too early, read whole"
    )
    got: list[bytes] = []
    await _raises(
        ConnectionLost, _collect(responses[1], got), "a body that ends too early, read in pieces"
    )
    require(b"".join(got) == b"short", f"the pieces before the break are {got}")


async def _says_nonsense(fetch: Fetch, server: _Server) -> None:
    """a response that is not HTTP raises Unreachable"""
    await _raises(
        t.Unreachable,
        fetch(Request("POST", f"{server.url}/nonsense")),
        "the greeting of a mail server",
    )


async def _says_nobody(fetch: Fetch, server: _Server) -> None:
    """a port without a server raises Unreachable with a message, and not ConnectionLost, because
    nothing was sent
    """
    closed = await asyncio.start_server(server.talk, "127.0.0.1", 0)
    port = closed.sockets[0].getsockname()[1]
    closed.close()
    await closed.wait_closed()
    bad = await _raises(
        t.Unreachable,
        fetch(Request("POST", f"http://127.0.0.1:{port}/")),
        "a port without a server",
    )
    require(
        not isinstance(bad, ConnectionLost),
        "it raised ConnectionLost, which says that the request may have been sent",
    )
    require(bool(str(bad).strip()), "the error has no message")


async def _repeats(fetch: Fetch, server: _Server) -> None:
    """a request that may be repeated succeeds if the server has closed the pooled connection"""
    for _ in range(4):
        got = await (await fetch(Request("POST", f"{server.url}/last", again=True))).read(_LIMIT)
        require(got == b"last", f"the body is {got!r}")
    require(len(server.seen) == 4, f"four requests arrived as {len(server.seen)}")


async def _sends_once(fetch: Fetch, server: _Server) -> None:
    """a request that must not be repeated raises ConnectionLost if the server closes without a
    response, on new and pooled connections, and is not sent again
    """
    for _ in range(2):
        await (await fetch(Request("POST", f"{server.url}/echo"))).read(_LIMIT)
        await _raises(
            ConnectionLost,
            fetch(Request("POST", f"{server.url}/nothing")),
            "a request that the server swallowed",
        )
    came = [first.split(" ")[1] for first, _, _ in server.seen]
    require(came == ["/echo", "/nothing"] * 2, f"the server received {came}")


async def _refuses(fetch: Fetch, server: _Server) -> None:
    """a header that contains a line break raises ValueError, and nothing is sent"""
    for name, value in (
        ("A", "b\r\nC: d"),
        ("A", "b\nC: d"),
        ("A\r\nC: d\r\nE", "f"),
        ("A", "b\0"),
    ):
        await _raises(
            ValueError,
            fetch(Request("POST", f"{server.url}/echo", ((name, value),))),
            f"the header {name!r}: {value!r}",
        )
    require(not server.seen, f"a request was sent: {server.seen}")


async def _closes(fetch: Fetch, server: _Server) -> None:
    """closing a response before its end closes the connection"""
    response = await fetch(Request("GET", f"{server.url}/head"))
    pieces = response.chunks()
    require(await anext(pieces) == b"ok", "the first piece did not arrive")
    await response.aclose()
    await server.gone.wait()


async def _cancels(fetch: Fetch, server: _Server) -> None:
    """cancelling a request closes its connection, in the head and in the body, and affects no other
    request
    """
    for path in ("/never", "/head"):
        server.asked.clear()
        server.gone.clear()
        task = asyncio.ensure_future(_read(fetch, Request("POST", f"{server.url}{path}")))
        await server.asked.wait()
        task.cancel()
        await asyncio.wait([task])
        require(task.cancelled(), "the task is not cancelled")
        await server.gone.wait()
    require(
        await _read(fetch, Request("POST", f"{server.url}/echo", (), b"on")) == b"on",
        "a request after a cancelled one failed",
    )


async def _ends(fetch: Fetch, server: _Server) -> None:
    """closing the client ends running requests with Unreachable, and it can be closed twice"""
    task = asyncio.ensure_future(_read(fetch, Request("POST", f"{server.url}/never")))
    await server.asked.wait()
    await fetch.aclose()
    await _raises(t.Unreachable, task, "a running request")
    await server.gone.wait()
    await fetch.aclose()


async def _read(fetch: Fetch, request: Request) -> bytes:
    return await (await fetch(request)).read(_LIMIT)


async def _collect(response: Response, into: list[bytes]) -> None:
    async for piece in response.chunks():
        into.append(piece)


async def _raises(kind: type[Exception], doing: Awaitable[object], what: str) -> Exception:
    try:
        await doing
    except kind as bad:
        return bad
    except Exception as bad:
        raise AssertionError(f"{what} raised {bad!r} instead of {kind.__name__}") from bad
    raise AssertionError(f"{what} did not raise {kind.__name__}")
