"""A client by hand for sessions of the handshake era: every request says which worker it goes
to."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from interlock.http11.client import HttpFetch
from interlock.http11.fetch import Request, Response
from interlock.http11.proxies import Proxies
from interlock.wire.revisions import R4
from interlock.wire.sse import Event, EventReader
from tests.workers.clusters import Cluster

PATIENCE = 20.0
CAPABILITIES: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}


class Stream:
    """An event stream as it comes; `events` are all that were read, `last` is the id to come back
    with."""

    def __init__(self, response: Response) -> None:
        self.response = response
        self.events: list[Event] = []
        self.last: str | None = None
        self.ended = False
        self._reader = EventReader()
        self._chunks = response.chunks()
        self._waiting: list[Event] = []

    async def next(self) -> Event | None:
        """The next event; None at the end."""
        async with asyncio.timeout(PATIENCE):
            while not self._waiting:
                chunk = await anext(self._chunks, None)
                if chunk is None:
                    self.ended = True
                    return None
                self._waiting = self._reader.feed(chunk)
        event = self._waiting.pop(0)
        self.events.append(event)
        self.last = event.id or self.last
        return event

    async def message(self) -> Any:
        """The next message; None at the end of the stream. Events that only give an id or a wait
        are passed over."""
        while (event := await self.next()) is not None:
            if event.data:
                return json.loads(event.data)
        return None

    async def messages(self) -> list[Any]:
        """All messages up to the end of the stream."""
        found = []
        while (message := await self.message()) is not None:
            found.append(message)
        return found

    async def break_off(self) -> None:
        """Lose the connection."""
        await self.response.aclose()


class RawSession:
    """One session; `id` is its id once it was opened."""

    def __init__(self, fetch: HttpFetch, cluster: Cluster, revision: str) -> None:
        self.fetch = fetch
        self.cluster = cluster
        self.revision = revision
        self.id = ""
        self._ids = itertools.count(1)

    async def open(self, worker: int, **capabilities: Any) -> Response:
        """`initialize` at a worker."""
        params = {
            "protocolVersion": self.revision,
            "capabilities": CAPABILITIES,
            "clientInfo": {"name": "raw", "version": "1"},
        }
        response = await self.send(
            worker, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        )
        if response.status == 200:
            self.id = response.headers["mcp-session-id"]
            await response.read(1 << 20)
            told = await self.send(
                worker + 1, {"jsonrpc": "2.0", "method": "notifications/initialized"}
            )
            assert told.status == 202
            await told.aclose()
        return response

    async def send(self, worker: int, message: Any, **headers: str) -> Response:
        """POST a message to a worker."""
        head = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            *self._own(headers),
        ]
        async with asyncio.timeout(PATIENCE):
            return await self.fetch(
                Request("POST", self.cluster.at(worker), tuple(head), json.dumps(message).encode())
            )

    async def begin(
        self, worker: int, method: str, params: Any = None, *, id: Any = None
    ) -> Stream:
        """A request that is answered by an event stream."""
        response = await self.send(worker, self.request(method, params, id=id))
        assert response.headers["content-type"].startswith("text/event-stream"), (
            response.status,
            await response.read(1 << 20),
        )
        return Stream(response)

    async def ask(self, worker: int, method: str, params: Any = None) -> Any:
        """A request, and the message that answers it, whichever way it comes."""
        response = await self.send(worker, self.request(method, params))
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            return (await Stream(response).messages())[-1]
        async with asyncio.timeout(PATIENCE):
            return json.loads(await response.read(1 << 20))

    async def call(self, worker: int, tool: str, /, **arguments: Any) -> Any:
        """The text that a tool gives at a worker."""
        answer = await self.ask(worker, "tools/call", {"name": tool, "arguments": arguments})
        return answer["result"]["content"][0]["text"]

    async def listen(self, worker: int, last: str | None = None) -> Stream:
        """GET at a worker."""
        response = await self.get(worker, last)
        assert response.status == 200, (response.status, await response.read(1 << 20))
        return Stream(response)

    async def get(self, worker: int, last: str | None = None) -> Response:
        """GET at a worker, whatever comes of it."""
        head = [
            ("Accept", "text/event-stream"),
            *self._own({} if last is None else {"Last-Event-ID": last}),
        ]
        async with asyncio.timeout(PATIENCE):
            return await self.fetch(Request("GET", self.cluster.at(worker), tuple(head)))

    async def delete(self, worker: int) -> int:
        """DELETE at a worker; the status."""
        response = await self.fetch(
            Request("DELETE", self.cluster.at(worker), tuple(self._own({})))
        )
        await response.aclose()
        return response.status

    def request(self, method: str, params: Any = None, *, id: Any = None) -> dict[str, Any]:
        """A request with an id of its own."""
        return {
            "jsonrpc": "2.0",
            "id": next(self._ids) if id is None else id,
            "method": method,
            "params": params or {},
        }

    def _own(self, more: dict[str, str]) -> list[tuple[str, str]]:
        session = (
            [("Mcp-Session-Id", self.id), ("Mcp-Protocol-Version", self.revision)]
            if self.id
            else []
        )
        return [*session, *more.items()]


@asynccontextmanager
async def session(
    cluster: Cluster, revision: str = R4, *, worker: int = 0
) -> AsyncIterator[RawSession]:
    """A session that was opened at a worker and confirmed at the next one; all its connections end
    with it."""
    fetch = HttpFetch(proxies=Proxies())
    made = RawSession(fetch, cluster, revision)
    try:
        assert (await made.open(worker)).status == 200
        yield made
    finally:
        await fetch.aclose()


def tool(name: str, /, **arguments: Any) -> dict[str, Any]:
    """The params of a call."""
    return {"name": name, "arguments": arguments, "_meta": {"progressToken": name}}
