"""A server whose requests a test takes one by one and answers as it likes, byte by byte where it
matters; and clients that talk to it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from interlock import Client, Http
from interlock.http11.proxies import Proxies
from tests.transport.http_peers import PATIENCE, Seen, Talk, serving

R1, R2, R3, R4, R5 = REVISIONS = (
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
)
HANDSHAKES = REVISIONS[:4]
JSON = "Content-Type: application/json"
SESSION = "session-1"
ALL = {
    "tools": {"listChanged": True},
    "prompts": {},
    "resources": {"subscribe": True},
    "logging": {},
}
INFO = {"name": "scripted", "version": "1"}


def result(text: str = "done") -> dict[str, Any]:
    """The result of a tool in either era."""
    return {"resultType": "complete", "content": [{"type": "text", "text": text}]}


def listed(*tools: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A page of tools, which nobody should keep."""
    return {
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "tools": list(tools),
        **more,
    }


def tool(name: str, schema: dict[str, Any] | None = None, **annotations: bool) -> dict[str, Any]:
    """A tool as a list has it."""
    return {
        "name": name,
        "inputSchema": {"type": "object", "properties": schema or {}},
        "annotations": annotations,
    }


def event(
    message: dict[str, Any] | None = None, *, id: str | None = None, retry: int | None = None
) -> bytes:
    """An event; without a message it has empty data, as a priming event does."""
    head = (f"id: {id}\n" if id is not None else "") + (
        f"retry: {retry}\n" if retry is not None else ""
    )
    return f"{head}data: {json.dumps(message) if message is not None else ''}\n\n".encode()


class Asked:
    """One request that has come, to be answered."""

    def __init__(self, talk: Talk, seen: Seen) -> None:
        self._talk = talk
        self.seen = seen
        self.verb, self.path = seen.line.split(" ")[:2]
        self.body: Any = json.loads(seen.body) if seen.body else {}
        self.method: str = self.body.get("method", "") if isinstance(self.body, dict) else ""
        self.id = self.body.get("id") if isinstance(self.body, dict) else None
        self.params: dict[str, Any] = (
            self.body.get("params", {}) if isinstance(self.body, dict) else {}
        )
        self.over = asyncio.Event()
        self.broken = False

    @property
    def key(self) -> str:
        """What decides who answers: the method of the message, "response", or the verb
        where there is no message.
        """
        return self.method or ("response" if self.seen.body else self.verb)

    def header(self, name: str) -> str | None:
        """The value of the one header of a name."""
        return self.seen.header(name.lower())

    def names(self) -> list[str]:
        """The names of all headers, in lower case."""
        return [name.lower() for name, _ in self.seen.headers]

    async def says(self, status: str, body: bytes = b"", *headers: str) -> None:
        """A whole answer."""
        lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", ""]
        await self._talk.send("\r\n".join(lines).encode() + body)
        self.over.set()

    async def gives(self, result: dict[str, Any], *headers: str) -> None:
        """A result as JSON."""
        await self.says("200 OK", json.dumps(self.response(result)).encode(), JSON, *headers)

    async def fails(
        self, code: int, message: str, data: Any = None, status: str = "200 OK"
    ) -> None:
        """A JSON-RPC error."""
        error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        await self.says(
            status, json.dumps({"jsonrpc": "2.0", "id": self.id, "error": error}).encode(), JSON
        )

    async def taken(self) -> None:
        """202."""
        await self.says("202 Accepted")

    def response(self, result: dict[str, Any]) -> dict[str, Any]:
        """The message that answers this one."""
        return {"jsonrpc": "2.0", "id": self.id, "result": result}

    async def streams(self, *events: bytes, headers: tuple[str, ...] = ()) -> None:
        """Begin an event stream."""
        lines = [
            "HTTP/1.1 200 OK",
            "Content-Type: text/event-stream",
            "Transfer-Encoding: chunked",
            *headers,
            "",
            "",
        ]
        await self._talk.send("\r\n".join(lines).encode())
        await self.sends(*events)

    async def sends(self, *pieces: bytes) -> None:
        """More of the stream."""
        for piece in pieces:
            await self._talk.send(b"%x\r\n%b\r\n" % (len(piece), piece))

    async def ends(self, *pieces: bytes) -> None:
        """The rest of the stream, and its end in good order."""
        await self.sends(*pieces)
        await self._talk.send(b"0\r\n\r\n")
        self.over.set()

    async def breaks(self, *raw: bytes) -> None:
        """Break the connection, after some bytes as they are."""
        self.broken = True
        await self._talk.send(*raw)
        self._talk.writer.transport.abort()
        self.over.set()

    async def hung_up(self) -> None:
        """Wait until the client has closed the connection."""
        await self._talk.gone()
        self.over.set()


Answer = Callable[[Asked], Awaitable[None]]


class ScriptedServer:
    """What has come; `on` answers by itself what it has a key for, the rest waits for `next`."""

    def __init__(self, session: str | None = SESSION) -> None:
        self.url = ""
        self.port = 0
        self.all: list[Asked] = []
        self.session = session
        self.capabilities: dict[str, Any] = ALL
        self.on: dict[str, Answer] = {
            "server/discover": self.is_discovered,
            "initialize": self.is_greeted,
            "notifications/initialized": Asked.taken,
            "GET": lambda asked: asked.says("405 Method Not Allowed"),
            "DELETE": lambda asked: asked.says("200 OK"),
        }
        self._waiting: asyncio.Queue[Asked] = asyncio.Queue()

    async def is_discovered(self, asked: Asked) -> None:
        """An ordinary answer to `server/discover`."""
        await asked.gives(
            {
                "resultType": "complete", "supportedVersions": [R5],
                "capabilities": self.capabilities, "ttlMs": 0, "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": INFO},
            }
        )  # fmt: skip

    async def is_greeted(self, asked: Asked) -> None:
        """An ordinary answer to `initialize`."""
        told = {
            "protocolVersion": asked.params["protocolVersion"],
            "capabilities": self.capabilities,
            "serverInfo": INFO,
        }
        await asked.gives(
            told, *([f"Mcp-Session-Id: {self.session}"] if self.session is not None else [])
        )

    async def __call__(self, talk: Talk) -> None:
        while (seen := await talk.read()) is not None:
            asked = Asked(talk, seen)
            self.all.append(asked)
            if asked.key in self.on:
                await self.on[asked.key](asked)
            else:
                self._waiting.put_nowait(asked)
                await asked.over.wait()

    async def next(self, key: str | None = None) -> Asked:
        """The next request that nobody answers by itself."""
        asked = await self._waiting.get()
        assert key is None or asked.key == key, (asked.key, asked.seen)
        return asked

    def keys(self) -> list[str]:
        """What has come so far."""
        return [asked.key for asked in self.all]

    def count(self, key: str) -> int:
        """How often something came."""
        return self.keys().count(key)


class Waits:
    """What a client asked to wait; it does not."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        await asyncio.sleep(0)


@asynccontextmanager
async def scripted(session: str | None = SESSION) -> AsyncIterator[ScriptedServer]:
    """A scripted server on a free port. At the end every connection must be closed."""
    one = ScriptedServer(session)
    async with asyncio.timeout(PATIENCE), serving(one) as peer:
        one.url = peer.url
        one.port = peer.port
        yield one


def client_of(url: str, revision: str | None = None, **options: Any) -> Client:
    """A client that looks at no proxies and waits for nothing; `options` are those of Http, or of
    Client where it has them.
    """
    own = {
        key: options.pop(key)
        for key in ("timeout", "elicit", "on_log", "on_notification", "log_level", "settings")
        if key in options
    }
    web = options if "fetch" in options else {"proxies": Proxies(), **options}
    return Client(Http(url, **{"sleep": Waits(), **web}), revision=revision, **own)


@asynccontextmanager
async def talking(
    revision: str, session: str | None = SESSION, **options: Any
) -> AsyncIterator[tuple[ScriptedServer, Client]]:
    """A scripted server and an open client, which is closed before the server."""
    async with scripted(session) as one, client_of(one.url, revision, **options) as client:
        yield one, client


def begun(work: Any) -> asyncio.Task[Any]:
    """Start something that waits for the test; what comes of it is only looked at where the test
    does so.
    """
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task
