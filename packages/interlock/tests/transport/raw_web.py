"""An HTTP client of the tests' own that shows statuses, headers and bytes as they come, and servers
in this process to point it at.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
import uvicorn

from interlock import Context, McpError, Server
from interlock import types as t
from interlock.exchange import Principal
from interlock.transport.http.app import HttpApp
from interlock.transport.http.requests import PRINCIPAL
from interlock.transport.http.server.serve import listening_socket, serve_http
from interlock.wire.revisions import R3, R4
from interlock.wire.sse import Event, EventReader
from tests.protocol.frames import initialize, notification, request
from tests.protocol.offered import Offered, modern, offered

PATIENCE = 10.0


@dataclass
class Reply:
    """A whole response."""

    status: int
    headers: dict[str, str]
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)

    @property
    def code(self) -> Any:
        """The code of the JSON-RPC error in the body; None where there is none."""
        return self.json.get("error", {}).get("code") if self.body.startswith(b"{") else None

    @property
    def events(self) -> list[Event]:
        """The events of the body, which is a stream."""
        return EventReader().feed(self.body)

    @property
    def messages(self) -> list[Any]:
        """The messages of the stream."""
        return [json.loads(event.data) for event in self.events if event.data]


@dataclass
class Line:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes = b""  # of the body, as far as it was read
    _waiting: list[Event] = field(default_factory=list)
    _reading: EventReader = field(default_factory=EventReader)

    async def send(self, data: bytes) -> None:
        """Send bytes."""
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> int:
        """Read the head of a response; its status. A name that comes twice is a fault."""
        async with asyncio.timeout(PATIENCE):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *rest = head[:-4].split("\r\n")
        pairs = [
            (name.lower(), value.strip()) for name, _, value in (one.partition(":") for one in rest)
        ]
        assert len(pairs) == len(dict(pairs)), pairs
        self.status = int(line.split()[1])
        self.headers = dict(pairs)
        return self.status

    async def piece(self) -> bytes:
        """The next piece of the body; empty at its end."""
        async with asyncio.timeout(PATIENCE):
            piece = await self._piece()
        self.raw += piece
        return piece

    async def _piece(self) -> bytes:
        if self.headers.get("transfer-encoding") == "chunked":
            size = int((await self.reader.readuntil(b"\r\n")).strip(), 16)
            return (await self.reader.readexactly(size + 2))[:-2]
        length = int(self.headers.get("content-length", 0)) - len(self.raw)
        return await self.reader.readexactly(length)

    async def event(self) -> Event | None:
        """The next event of a stream; None at its end."""
        while not self._waiting:
            piece = await self.piece()
            if not piece:
                return None
            self._waiting = self._reading.feed(piece)
        return self._waiting.pop(0)

    async def message(self) -> Any:
        """The next message of a stream; None at its end. Events without data are passed over."""
        while (event := await self.event()) is not None:
            if event.data:
                return json.loads(event.data)
        return None

    async def rest(self) -> Reply:
        """The whole response, read to its end."""
        while await self.piece():
            pass
        return Reply(self.status, self.headers, self.raw)

    async def close(self) -> None:
        """Break it off."""
        self.writer.close()
        await asyncio.gather(self.writer.wait_closed(), return_exceptions=True)


class Web:
    """A server at a port of this machine, and ways to ask it."""

    def __init__(self, port: int, app: HttpApp) -> None:
        self.port = port
        self.app = app
        self._lines: list[Line] = []

    async def line(self) -> Line:
        """A connection; it is closed at the end."""
        line = Line(*await asyncio.open_connection("127.0.0.1", self.port))
        self._lines.append(line)
        return line

    async def begin(self, x: Offered, path: str = "/mcp") -> Line:
        """Send a request on a connection of its own, and read the head of the response."""
        line = await self.line()
        await line.send(written(x, path))
        await line.head()
        return line

    async def ask(self, x: Offered, path: str = "/mcp") -> Reply:
        """Send a request on a connection of its own, and read the whole response."""
        line = await self.begin(x, path)
        reply = await line.rest()
        await line.close()
        return reply

    async def greet(self, revision: str = R4, *, capabilities: Any = None) -> RawSession:
        """Open a session, and say so."""
        reply = await self.ask(offered(initialize(0, revision, capabilities)))
        assert reply.status == 200, reply
        session = RawSession(self, revision, reply.headers["mcp-session-id"])
        assert (await session.ask(notification("notifications/initialized"))).status == 202
        return session

    async def aclose(self) -> None:
        """Break every connection off."""
        for line in self._lines:
            await line.close()


@dataclass
class RawSession:
    """One session of the handshake era."""

    web: Web
    revision: str
    id: str

    def said(self, body: bytes, *, method: str = "POST", **headers: str | None) -> Offered:
        """A request of this session."""
        version = self.revision if self.revision >= R3 else None
        return offered(
            body,
            method=method,
            **{"mcp_session_id": self.id, "mcp_protocol_version": version, **headers},
        )

    async def ask(self, body: bytes, **headers: str | None) -> Reply:
        """Post a message and read the whole response."""
        return await self.web.ask(self.said(body, **headers))

    async def begin(self, body: bytes, **headers: str | None) -> Line:
        """Post a message and read the head of the response."""
        return await self.web.begin(self.said(body, **headers))

    async def listen(self, last_event: str | None = None) -> Line:
        """Open a stream with GET."""
        return await self.web.begin(
            self.said(
                b"",
                method="GET",
                accept="text/event-stream",
                content_type=None,
                last_event_id=last_event,
            )
        )

    async def end(self) -> Reply:
        """DELETE."""
        return await self.web.ask(self.said(b"", method="DELETE", content_type=None))


def written(x: Offered, path: str = "/mcp") -> bytes:
    """A request as its bytes stand on the wire; a name in `twice` is said twice."""
    body = x.body if isinstance(x.body, bytes) else json.dumps(x.body).encode()
    pairs = [*x.headers.items(), *((name, x.headers.get(name, "")) for name in x.twice)]
    if body or x.method == "POST":
        pairs.append(("content-length", str(len(body))))
    head = "".join(f"{name}: {value}\r\n" for name, value in pairs)
    return f"{x.method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


def call(
    name: str,
    arguments: dict[str, Any] | None = None,
    *,
    id: Any = 1,
    token: Any = None,
    **headers: str | None,
) -> Offered:
    """A call of a tool under the newest revision."""
    x = modern("tools/call", {"name": name, "arguments": arguments or {}}, id=id, **headers)
    if token is not None:
        x.body["params"]["_meta"]["progressToken"] = token
    return x


def listening(*, id: Any = 1, **wanted: Any) -> Offered:
    """A wish to listen under the newest revision."""
    return modern("subscriptions/listen", {"notifications": wanted}, id=id)


class Believing:
    """An endpoint behind an authorization that believes whoever says who he is."""

    def __init__(self, app: HttpApp) -> None:
        self._app = app

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection."""
        said = dict(scope.get("headers", ())).get(b"authorization")
        await self._app(
            {**scope, PRINCIPAL: Principal(subject=said.decode())} if said else scope, receive, send
        )


class House:
    """A server with a tool for everything that can happen on the way, and what its tools have
    noted.
    """

    def __init__(self, **options: Any) -> None:
        self.server = Server("house", "1", **options)
        self.began: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.ended: dict[str, asyncio.Event] = defaultdict(asyncio.Event)  # cancelled, or through
        self.cancelled: set[str] = set()
        self.go = asyncio.Event()
        server = self.server
        server.add_resource("note://one", "Buy milk")

        @server.tool
        async def add(a: int, b: int = 1) -> int:
            """Add."""
            return a + b

        @server.tool
        async def work(name: str, ctx: Context) -> str:
            """Say that it has begun, and wait for the word to go on."""
            ctx.progress(1)
            self.began[name].set()
            try:
                await self.go.wait()
                ctx.progress(2)
                return f"{name} is done"
            except asyncio.CancelledError:
                self.cancelled.add(name)
                raise
            finally:
                self.ended[name].set()

        @server.tool
        async def chatter(ctx: Context) -> str:
            """Progress and log."""
            ctx.progress(1)
            ctx.log.error("hear, hear")
            return "said"

        @server.tool
        async def ask(ctx: Context) -> str:
            """Ask for a name."""
            return f"Hello, {await ctx.elicit('Your name?', str)}!"

        @server.tool
        async def ask_there(
            region: Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})],
            ctx: Context,
        ) -> str:
            """Ask, with an argument that a header repeats."""
            return f"{await ctx.elicit('Your name?', str)} in {region}"

        @server.tool
        async def leave(ctx: Context) -> str:
            """Let the client go, and go on without it."""
            let_go = await ctx.disconnect(retry_ms=70)
            self.began["leave"].set()
            await self.go.wait()
            return "let go" if let_go else "kept"

        @server.tool
        async def touch(ctx: Context) -> str:
            """Say that things are not as they were."""
            ctx.updated("note://one")
            server.add_tool(lambda: "new", name="grown", replace=True)
            return "touched"

        @server.tool
        async def fail() -> str:
            """Fail with an error of the author's own."""
            raise McpError(4711, "Not like this.")

        @server.tool
        async def crash(ctx: Context) -> str:
            """Fail where nobody foresaw it, after something was said."""
            ctx.progress(1)
            raise McpError(t.INTERNAL_ERROR, "Oh dear.")

        kinds = {"region": "string", "count": "integer", "urgent": "boolean"}
        properties = {
            name: {"type": kind, "x-mcp-header": name.title()} for name, kind in kinds.items()
        }

        @server.tool(
            input_schema={"type": "object", "properties": properties, "required": ["region"]}
        )
        async def route(arguments: dict[str, Any]) -> str:
            """Arguments that headers repeat."""
            return str(arguments["region"])


class WebServer:
    """Which HTTP server the endpoint stands on: ours, or uvicorn, in which others mount it."""

    is_uvicorn = False


async def _on_uvicorn(app: Any, sock: socket.socket) -> None:
    """Serve an app as `uvicorn` does, until cancelled."""
    config = uvicorn.Config(
        app, log_config=None, ws="none", server_header=False, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    try:
        await server.startup(sockets=[sock])
        await server.main_loop()
    except asyncio.CancelledError:
        await app.drain(0.2)
        await server.shutdown(sockets=[sock])
    finally:
        await app.aclose()


@asynccontextmanager
async def serving(
    server: Server, *, authorized: bool = False, **options: Any
) -> AsyncIterator[Web]:
    """Serve a server on a free port; with `authorized` the Authorization header says who asks."""
    app: Any = server.http_app(**options)
    if authorized:
        app = Believing(app)
    sock = listening_socket("127.0.0.1", 0)
    web = Web(sock.getsockname()[1], app)
    task = asyncio.create_task(
        _on_uvicorn(app, sock) if WebServer.is_uvicorn else serve_http(app, sock, grace=0.2)
    )
    try:
        yield web
    finally:
        await web.aclose()
        task.cancel()
        await task


def tool(id: Any, name: str, /, *, token: Any = None, **arguments: Any) -> bytes:
    """A call of a tool."""
    return request(
        id,
        "tools/call",
        {
            "name": name,
            "arguments": arguments,
            **({} if token is None else {"_meta": {"progressToken": token}}),
        },
    )


def cancelled(id: Any) -> bytes:
    """The cancellation of a request."""
    return notification("notifications/cancelled", {"requestId": id})


async def ids(line: Line) -> list[str | None]:
    """The ids of all events of a stream, to its end."""
    found = []
    while (event := await line.event()) is not None:
        found.append(event.id)
    return found
