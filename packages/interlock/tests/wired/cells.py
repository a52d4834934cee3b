"""The cells of the matrix: a way to the server, a revision, and how questions are asked."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlock import Client, ClientTransport, Stdio
from interlock.exchange import AnyResult, Exchange, Handler
from interlock.tape import Tape
from interlock.testing import ScriptedAnswers
from interlock.transport.http.client.transport import Http
from interlock.transport.http.limits import Limits
from interlock.transport.http.server.serve import listening_socket, serve_http
from interlock.wire.revisions import HANDSHAKE_REVISIONS, REVISIONS
from tests.wired.official import AT_HAND, Judge
from tests.wired.server import make_server

TRANSPORTS = ("memory", "stdio", "http", "sse")
MOST_CALLS = 100
TOP = Path(__file__).parents[4]


class Place(NamedTuple):
    """Where a cell stands in the matrix."""

    transport: str
    revision: str
    suspend: bool

    def __str__(self) -> str:
        return f"{self.transport}-{self.revision}-{'suspended' if self.suspend else 'replayed'}"


PLACES = [
    Place(transport, revision, suspend)
    for revision in REVISIONS
    for suspend in (True, False)
    for transport in TRANSPORTS
    # The older transport of two endpoints has sessions and nothing else, so the newest revision
    # cannot be spoken over it. Streamable HTTP is younger than 2024-11-05, but that is spoken over
    # it all the same, by our peers too.
    if transport != "sse" or revision in HANDSHAKE_REVISIONS
]


def _only(places: list[Place]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("whole_cell", places, indirect=True, ids=str, scope="session")


def since(revision: str) -> pytest.MarkDecorator:
    """For tests of what a revision brought: its cells and the later ones."""
    return _only([place for place in PLACES if place.revision >= revision])


def between(first: str, end: str) -> pytest.MarkDecorator:
    """For tests of what came and went: the cells from one revision on, before another."""
    return _only([place for place in PLACES if first <= place.revision < end])


def before(revision: str) -> pytest.MarkDecorator:
    """For tests of what an older peer gets in its place: the cells before a revision."""
    return _only([place for place in PLACES if place.revision < revision])


class Cell:
    """One server and its client, both taped; `bare` is a second client, with nobody to answer
    questions."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.transport, self.revision, self.suspend = place
        self.handshake = self.revision in HANDSHAKE_REVISIONS
        self.closes = (
            self.transport == "http" and not self.handshake
        )  # a request is cancelled by closing its response stream (`HTM-14`)
        self._servers: list[asyncio.Task[None]] = []
        self.tape = Tape()
        self.client = self._client(
            answers=ScriptedAnswers(elicit={}, sample={}, roots=[]), middleware=[self._noting]
        )
        self._judges: dict[int, Judge] = {}
        self._tapes = [self.tape]
        self._judged: dict[int, int] = {}
        self.seen: list[str] = []  # what the client's middleware has seen
        self._bare: Client | None = None
        # the sender whose messages are not judged in this test, because they are wrong on purpose
        self.excused = ""

    def road(self, tape: Tape) -> ClientTransport:
        """A new transport to a server of this cell's kind."""
        if self.transport == "memory":
            return make_server(suspend=self.suspend).transport(tap=tape.record)
        if self.transport in ("http", "sse"):
            return Http(self._serve(), tap=tape.record, legacy_sse=self.transport == "sse")
        arguments = [] if self.suspend else ["--replayed"]
        return Stdio(
            [sys.executable, "-m", "tests.wired.server", *arguments], cwd=TOP, tap=tape.record
        )

    def _serve(self) -> str:
        """Serve a server of this cell's kind on a free port, until the cell is closed; its
        address."""
        legacy = self.transport == "sse"
        app = make_server(suspend=self.suspend).http_app(
            legacy_sse=legacy, limits=Limits(calls=MOST_CALLS, share=1, queue=0)
        )
        sock = listening_socket("127.0.0.1", 0)
        port = sock.getsockname()[1]
        self._servers.append(
            asyncio.get_running_loop().create_task(serve_http(app, sock, grace=1.0))
        )
        return f"http://127.0.0.1:{port}{'/sse' if legacy else '/mcp'}"

    def _client(self, tape: Tape | None = None, **options: Any) -> Client:
        return Client(
            self.road(tape or self.tape),
            revision=self.revision,
            log_level=None,
            timeout=20,
            **options,
        )

    def _noting(self, handler: Handler) -> Handler:
        """Middleware of the client: notes the methods that go out."""

        async def handle(x: Exchange) -> AnyResult:
            self.seen.append(x.method)
            return await handler(x)

        return handle

    async def bare(self) -> Client:
        """A client that declares nothing."""
        if self._bare is None:
            tape = Tape()
            self._tapes.append(tape)
            self._bare = self._client(tape)
            await self._bare.open()
        return self._bare

    async def aclose(self) -> None:
        """Close both clients, and the servers that run in this process."""
        for client in (self.client, self._bare):
            if client is not None:
                await client.aclose()
        for task in self._servers:
            task.cancel()
        await asyncio.gather(*self._servers)

    def problems(self) -> list[str]:
        """What the official schema of the revision has against the messages since the last look."""
        excused = self.excused
        self.excused = ""
        if not AT_HAND:
            return []
        found: list[str] = []
        for tape in self._tapes:
            judge = self._judges.setdefault(id(tape), Judge(self.revision))
            seen = self._judged.get(id(tape), 0)
            for line in tape.lines[seen:]:
                problems = list(
                    judge.problems(line)
                )  # also where nobody wants to know them: the judge follows the conversation
                if line.sender != excused:
                    found += [f"{problem}\n    {str(line)[:600]}" for problem in problems]
            self._judged[id(tape)] = len(tape.lines)
        return found

    def since(self, start: int) -> Tape:
        """The messages from a place on."""
        return Tape(self.tape.lines[start:])
