"""The endpoint within other people's applications: Starlette, FastAPI, a bare ASGI server, and
authorization in front of it.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

from tests.faults.web import Response, Wire, head, post, stateless, until
from tests.protocol.frames import initialize, request

# What is served is chosen by name; the port is the first line of the output.
PLACES = """
import logging, os, socket, sys, threading
from contextlib import asynccontextmanager
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from interlock import Limits, Principal, Rate, Server

logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
logging.getLogger("interlock.access").setLevel(logging.WARNING)

def make(name):
    @asynccontextmanager
    async def life(server):
        print(name, "born", file=sys.stderr, flush=True)
        yield None
        print(name, "buried", file=sys.stderr, flush=True)

    server = Server(name, lifespan=life)

    @server.tool
    async def whereabouts() -> str:
        return name

    return server

async def hello(request):
    return PlainTextResponse("hello")

def starlette():
    return Starlette(routes=[
        Route("/hello", hello),
        Mount("/deep/down", app=make("deep").http_app("/mcp")),
        Mount("/place", app=make("place").http_app()),
        Route("/routed", make("routed").http_app("/routed")),
        Mount("/", app=make("rest").http_app("/mcp", legacy_sse=True)),
    ])

def fastapi():
    app = FastAPI()
    app.mount("/api", make("api").http_app("/mcp"))

    @app.get("/hello")
    async def hello():
        return "hello"

    return app

def guarded():
    app = make("guarded").http_app("/mcp", limits=Limits(rate=Rate(per_second=0.001, burst=50)),
        legacy_sse=True)

    async def guard(scope, receive, send):
        if scope["type"] == "http":
            user = dict(scope["headers"]).get(b"x-user")
            if user:
                scope = {**scope, "interlock.principal": Principal(subject=user.decode())}
        await app(scope, receive, send)

    return guard

def broken():
    server = make("broken")

    def middleware(handler):
        async def inner(x):
            if x.method == "subscriptions/listen":
                raise RuntimeError("not today")
            return await handler(x)
        return inner

    server.use(middleware)
    return server.http_app("/mcp")

def bare():
    return make("bare").http_app("/mcp")

# A test that was killed leaves no server behind: its end of this pipe closes with it.
threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
name, *options = sys.argv[1:]
config = uvicorn.Config(globals()[name](), log_level="warning",
    **dict(option.split("=") for option in options))
uvicorn.Server(config).run(sockets=[listener])
"""


class Place:
    """A program of the above."""

    def __init__(self, folder: Path, *command: str) -> None:
        (folder / "places.py").write_text(PLACES, encoding="utf-8")
        self.told = folder / "stderr"
        with self.told.open("wb") as errors:
            program = [sys.executable, str(folder / "places.py"), *command]
            self.process = subprocess.Popen(
                program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline() or 0)
        assert self.port, self.log()

    def ask(self, said: bytes) -> Response:
        """One request on a connection of its own."""
        with Wire(self.port) as wire:
            return wire.ask(said)

    def log(self) -> str:
        """What it has written to its standard error."""
        return self.told.read_text(encoding="utf-8")

    def end(self) -> int:
        """Tell it to end; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        return code


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Any]:
    """Starts a program; all are gone after the test, and none has seen a fault."""
    made: list[Place] = []

    def start(*command: str) -> Place:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Place(folder, *command))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            one.end()
        assert "Traceback" not in one.log(), one.log()


def where(target: str, *headers: str) -> bytes:
    """Ask a server its name."""
    return stateless(
        1, "tools/call", {"name": "whereabouts", "arguments": {}}, *headers, target=target
    )


def named(response: Response) -> str:
    """The name that it gave."""
    assert response.status == 200, response
    words: str = response.json["result"]["content"][0]["text"]
    return words


def converses(one: Place, target: str) -> None:
    """A session is opened there, used, listened to and ended."""
    with Wire(one.port) as wire, Wire(one.port) as listening:
        id = wire.ask(post(initialize(0, "2025-11-25", {}), target=target)).headers[
            "mcp-session-id"
        ]
        mine = (f"Mcp-Session-Id: {id}", "MCP-Protocol-Version: 2025-11-25")
        assert wire.ask(post(request(1, "ping"), *mine, target=target)).json["result"] == {}
        listening.say(head("GET", *mine, "Accept: text/event-stream", target=target))
        assert listening.head().status == 200
        assert wire.ask(head("DELETE", *mine, target=target)).status == 204
        assert list(listening.messages()) == []


def test_mounts_in_starlette(place: Any) -> None:
    """Deep down, at a place of its own, as a route and beside everything else; no lifespan is
    passed on, and each has its own.
    """
    one = place("starlette")
    for target, name in (
        ("/deep/down/mcp", "deep"),
        ("/place/", "place"),
        ("/place/mcp", "place"),
        ("/routed", "routed"),
        ("/mcp", "rest"),
    ):
        assert named(one.ask(where(target))) == name
        converses(one, target)
    assert one.ask(head("GET", target="/hello")).body == b"hello"
    for health in ("/health", "/deep/down/health", "/place/health"):
        assert one.ask(head("GET", target=health)).json == {"status": "ok"}
        assert one.ask(head("POST", "Content-Length: 0", target=health)).status == 404
    for nowhere in (
        "/deep/mcp",
        "/deep/down",
        "/deep/down/x",
        "/place/x",
        "/routed/mcp",
        "/deep/down/mcp//",
        "//deep/down/mcp/",
    ):
        response = one.ask(where(nowhere))
        assert response.status == 404 or "mcp" not in response.headers["location"], nowhere
    for slashed, name in (("/deep/down/mcp/", "deep"), ("/place/mcp/", "place"), ("/mcp/", "rest")):
        response = one.ask(where(f"{slashed}?a=1&b=%2F"))
        assert (response.status, response.headers["location"]) == (307, "../mcp?a=1&b=%2F")
        place_of = urljoin(slashed, response.headers["location"])
        assert named(one.ask(where(place_of))) == name
    for name in ("deep", "place", "rest", "routed"):
        assert one.log().count(f"{name} born") == 1
    with Wire(one.port) as old:
        old.say(head("GET", "Accept: text/event-stream", target="/sse"))
        assert old.head().status == 200
        assert next(old.events())["data"].startswith("/messages?session=")


def test_mounts_in_fastapi(place: Any) -> None:
    """Beside its own routes."""
    one = place("fastapi")
    assert named(one.ask(where("/api/mcp"))) == "api"
    converses(one, "/api/mcp")
    assert one.ask(head("GET", target="/hello")).json == "hello"
    assert one.ask(where("/mcp")).status == 404


@pytest.mark.parametrize("lifespan", ["on", "off", "auto"])
def test_stands_alone_under_any_asgi_server(place: Any, lifespan: str) -> None:
    """With the ASGI lifespan, which enters the server's own before the first request and leaves it
    after the last, and without.
    """
    one = place("bare", f"lifespan={lifespan}")
    if lifespan != "off":
        until(lambda: "bare born" in one.log(), "the beginning")
    assert named(one.ask(where("/mcp"))) == "bare"
    converses(one, "/mcp")
    assert one.log().count("born") == 1
    one.end()
    assert one.log().count("buried") == (lifespan != "off")


def test_behind_a_proxy_that_takes_the_front_of_the_path_away(place: Any) -> None:
    """The front is not cut from paths that only begin alike."""
    one = place("bare", "root_path=/m")
    assert named(one.ask(where("/mcp"))) == "bare"
    assert one.ask(head("GET", target="/health")).status == 200
    assert one.ask(where("/cp")).status == 404


# -- principals ------------------------------------------------------------------------------------


def test_a_session_belongs_to_the_principal_that_opened_it(place: Any) -> None:
    """Nobody else can use, hear, resume or end it, and an attempt is noted; it is not even told
    that it exists (`SEC-03`, `SEC-05`).
    """
    one = place("guarded")
    with Wire(one.port) as wire:
        id = wire.ask(post(initialize(0, "2025-11-25", {}), "X-User: ada")).headers[
            "mcp-session-id"
        ]
        mine = (f"Mcp-Session-Id: {id}", "MCP-Protocol-Version: 2025-11-25")
        for user in (["X-User: eve"], []):
            for said in (
                post(request(1, "ping"), *mine, *user),
                head("GET", *mine, "Accept: text/event-stream", *user),
                head("GET", *mine, "Accept: text/event-stream", "Last-Event-ID: x.1", *user),
                head("DELETE", *mine, *user),
            ):
                refused = wire.ask(said)
                unknown = wire.ask(said.replace(id.encode(), b"0" * len(id)))
                assert refused.status == 404
                assert (refused.body, refused.headers.keys()) == (
                    unknown.body,
                    unknown.headers.keys(),
                )
        assert wire.ask(post(request(1, "ping"), *mine, "X-User: ada")).status == 200
        old = Wire(one.port)
        old.say(head("GET", "Accept: text/event-stream", "X-User: ada", target="/sse"))
        old.head()
        target = next(old.events())["data"]
        assert wire.ask(post(request(1, "ping"), "X-User: eve", target=target)).status == 404
        assert wire.ask(post(request(1, "ping"), "X-User: ada", target=target)).status == 202
        assert next(old.messages())["result"] == {}
        old.close()
    noted = [line for line in one.log().splitlines() if "another principal" in line]
    assert len(noted) == 9
    told = json.loads(noted[0].partition(" ")[2])
    assert (told["event"], told["address"], len(told["session"])) == (
        "session of another principal",
        "127.0.0.1",
        12,
    )
    assert id not in one.log()


def test_the_rate_is_counted_for_each_principal(place: Any) -> None:
    """One who asks too often does not take it from another at the same address."""
    one = place("guarded")
    with Wire(one.port) as wire:
        statuses = [wire.ask(where("/mcp", "X-User: ada")).status for _ in range(52)]
        assert statuses == [200] * 50 + [429] * 2
        assert wire.ask(where("/mcp", "X-User: eve")).status == 200
        assert wire.ask(where("/mcp")).status == 200


def test_a_stream_of_notices_that_fails_ends_and_says_so_in_the_log(tmp_path: Path) -> None:
    """A client is not left to listen to nothing for ever."""
    one = Place(tmp_path, "broken")
    with Wire(one.port) as wire, Wire(one.port) as listening:
        id = wire.ask(post(initialize(0, "2025-11-25", {}))).headers["mcp-session-id"]
        listening.say(head("GET", f"Mcp-Session-Id: {id}", "Accept: text/event-stream"))
        assert listening.head().status == 200
        assert list(listening.messages()) == []
    one.end()
    assert "the notifications of a session failed" in one.log()
    assert "RuntimeError: not today" in one.log()
