"""HTTP routes of the author beside the endpoint: what they answer, what guards them, and where they
may not be.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from interlock import Client, HttpResponse, Limits, Rate, Server
from interlock.transport.http.routes import HttpResponse as Response
from tests.protocol.offered import Offered, offered
from tests.transport.doorman import Doorman
from tests.transport.raw_web import Reply, Web, call


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with what it was asked."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    principal = scope.get("interlock.principal")
    said = {
        "method": scope["method"],
        "path": scope["path"],
        "root": scope.get("root_path", ""),
        "body": body.decode(),
        "who": principal.subject if principal is not None else None,
    }
    await HttpResponse(said)(scope, receive, send)


def site() -> Server:
    """A server with routes of every kind."""
    server = Server("site")

    @server.tool
    async def hello() -> str:
        return "hello"

    server.route("/")(HttpResponse("welcome"))
    server.route("/status", methods=["GET"])(HttpResponse({"open": True}))
    server.route("/hook", methods=["post"])(echo)
    server.route("/any")(echo)
    server.route("/pages/")(echo)
    server.route("/pages/deep/")(HttpResponse("deep"))
    return server


@asynccontextmanager
async def served(server: Server, **options: Any) -> AsyncIterator[Web]:
    """The server at a free port."""
    async with asyncio.timeout(60), server.serve_http(port=0, **options) as http:
        web = Web(http.port, None)  # type: ignore[arg-type]  # the app is the server's own here
        yield web
        await web.aclose()


def asked(method: str = "GET", body: bytes = b"", **headers: str | None) -> Offered:
    """A request for a page."""
    return offered(body, method=method, **{"content_type": None, "accept": None, **headers})


ANSWERS: dict[str, tuple[str, str, int, Any]] = {
    "home": ("GET", "/", 200, "welcome"),
    "status": ("GET", "/status", 200, {"open": True}),
    "status with a query": ("GET", "/status?x=1", 200, {"open": True}),
    "another method": ("POST", "/status", 405, "Method not allowed\n"),
    "hook": ("POST", "/hook", 200, {"path": "/hook", "body": "x"}),
    "any method": ("DELETE", "/any", 200, {"method": "DELETE"}),
    "beneath": ("GET", "/pages/a/b", 200, {"path": "/pages/a/b", "root": "/pages"}),
    "the prefix itself": ("GET", "/pages/", 200, {"path": "/pages/", "root": "/pages"}),
    "without its slash": ("GET", "/pages", 200, {"path": "/pages", "root": "/pages"}),
    "the longest prefix": ("GET", "/pages/deep/x", 200, "deep"),
    "beside a prefix": ("GET", "/pagesx", 404, None),
    "unknown": ("GET", "/unknown", 404, None),
    "health": ("GET", "/health", 200, {"status": "ok"}),
}


async def test_routes_answer_beside_the_endpoint() -> None:
    """Exactly, or for all that lies beneath; the endpoint and the health check are as ever."""
    async with served(site()) as web:
        for case, (method, path, status, expected) in ANSWERS.items():
            reply = await web.ask(asked(method, b"x" if method == "POST" else b""), path)
            assert reply.status == status, case
            if isinstance(expected, dict):
                assert {name: reply.json[name] for name in expected} == expected, case
            elif expected is not None:
                assert reply.body.decode() == expected, case
        assert (await web.ask(asked("POST", b"{}"), "/status")).headers["allow"] == "GET, HEAD"
        async with Client(f"http://127.0.0.1:{web.port}/mcp") as client:
            assert (await client.call_tool("hello")).text == "hello"


def test_routes_of_a_mounted_app() -> None:
    """`http_app()` brings its routes with it, wherever it is mounted."""
    app = Starlette(routes=[Mount("/tools", site().http_app())])
    with TestClient(app, base_url="http://localhost") as browser:
        assert browser.get("/tools/status").json() == {"open": True}
        assert browser.get("/tools/pages/x").json()["root"] == "/tools/pages"
        assert browser.head("/tools/status").content == b""


async def test_an_app_of_a_framework_as_a_route() -> None:
    """What lies beneath the path is the framework's to route."""

    async def page(request: Any) -> PlainTextResponse:
        return PlainTextResponse(f"page {request.path_params['name']}")

    server = Server("framed")
    server.route("/site/")(Starlette(routes=[Route("/pages/{name}", page)]))
    async with served(server) as web:
        assert (await web.ask(asked(), "/site/pages/one")).body == b"page one"
        assert (await web.ask(asked(), "/site/nothing")).status == 404


async def test_no_page_elsewhere_reaches_a_route() -> None:
    """The checks against DNS rebinding hold for routes too (`SEC-01`)."""
    async with served(site(), hosts=["shop.example"], origins=["https://app.example"]) as web:
        for headers, status in (
            ({"host": "evil.example"}, 403),
            ({"host": "shop.example"}, 200),
            ({"origin": "https://evil.example"}, 403),
            ({"origin": "https://app.example"}, 200),
        ):
            assert (await web.ask(asked(**headers), "/status")).status == status, headers


def guarded_site() -> Server:
    """A server with a route for everybody and one for those who show a token."""
    server = Server("guarded")
    server.route("/open")(echo)
    server.route("/closed", guarded=True)(echo)
    server.route("/closed-pages/", guarded=True)(echo)
    return server


async def test_a_guard_stands_only_before_routes_that_want_it() -> None:
    """The others are reached by anyone; the principal is in the scope behind the guard."""
    async with served(guarded_site(), guard=Doorman()) as web:
        reply = await web.ask(asked(), "/open")
        assert (reply.status, reply.json["who"]) == (200, None)
        for path in ("/closed", "/closed-pages/x", "/closed-pages"):
            assert (await web.ask(asked(), path)).status == 401
            reply = await web.ask(asked(x_who="ada"), path)
            assert (reply.status, reply.json["who"]) == (200, "ada")
        assert (await web.ask(call("hello"))).status == 401


def test_a_route_that_wants_a_guard_is_not_served_without_one() -> None:
    """It would be open to anyone."""
    with pytest.raises(ValueError, match="/closed.*want the guard"):
        guarded_site().http_app()


async def test_the_bounds_of_the_endpoint_hold_for_routes() -> None:
    """The size of a body, said or not, and the rate."""
    async with served(site(), limits=Limits(body=100)) as web:
        assert (await web.ask(asked("POST", b"x" * 100), "/hook")).status == 200
        assert (await web.ask(asked("POST", b"x" * 101), "/hook")).status == 413
        line = await web.line()
        await line.send(
            b"POST /hook HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n"
            + b"60\r\n"
            + b"x" * 0x60
            + b"\r\n60\r\n"
            + b"x" * 0x60
            + b"\r\n0\r\n\r\n"
        )
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError, AssertionError)):
            assert await line.head() != 500
    async with served(site(), limits=Limits(rate=Rate(per_second=0.001, burst=2))) as web:
        statuses = [(await web.ask(asked(), "/status")).status for _ in range(3)]
        assert statuses == [200, 200, 429]


@pytest.mark.parametrize(
    "path",
    [
        "/mcp",
        "/mcp/",
        "/mcp/more",
        "/health",
        "/health/",
        "/.well-known/",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/openid-configuration",
        "status",
        "//status",
        "/status?x=1",
        "",
    ],
)
def test_paths_that_a_route_cannot_have(path: str) -> None:
    """Those of the server, and those that are none."""
    with pytest.raises(ValueError, match="in the way of|begins with a slash"):
        Server("strict").route(path)(echo)


def test_a_path_is_taken_once() -> None:
    """By a route, or by an endpoint of another path or transport."""
    server = site()
    with pytest.raises(ValueError, match="a route '/status' already"):
        server.route("/status")(echo)
    for options in ({"path": "/status"}, {"path": "/pages/mcp"}, {"path": "/"}):
        with pytest.raises(ValueError, match="in the way of"):
            site().http_app(**options)  # type: ignore[arg-type]  # one of its options
    other = Server("old")
    other.route("/sse")(echo)
    with pytest.raises(ValueError, match="in the way of '/sse'"):
        other.http_app(legacy_sse=True)


def test_a_route_cannot_come_too_late() -> None:
    """An app that is served already would not have it."""
    server = site()
    server.http_app()
    with pytest.raises(RuntimeError, match="before the server serves HTTP"):
        server.route("/late")(echo)


def test_what_is_no_route() -> None:
    """Methods that are a string, none at all, and what cannot be called."""
    server = Server("strict")
    with pytest.raises(TypeError, match=r"\['GET'\]"):
        server.route("/a", methods="GET")(echo)
    with pytest.raises(ValueError, match="one method at least"):
        server.route("/a", methods=[])(echo)
    with pytest.raises(TypeError, match="ASGI app"):
        server.route("/a")("text")  # type: ignore[type-var]  # on purpose


RESPONSES: dict[str, tuple[Response, int, str | None, bytes]] = {
    "text": (Response("é"), 200, "text/plain; charset=utf-8", "é".encode()),
    "bytes": (Response(b"\x00"), 200, "application/octet-stream", b"\x00"),
    "json": (Response([1, {"a": None}]), 200, "application/json", b'[1,{"a":null}]'),
    "status": (Response("no", 410), 410, "text/plain; charset=utf-8", b"no"),
    "type": (Response("<p>", content_type="text/html"), 200, "text/html", b"<p>"),
    "header": (Response("x", headers={"Content-Type": "text/css"}), 200, "text/css", b"x"),
    "empty": (Response(status=204), 204, None, b""),
}


@pytest.mark.parametrize("case", RESPONSES)
async def test_responses(case: str) -> None:
    """Text, bytes, JSON, another status, another type, further headers, nothing; the length is said
    where there is one.
    """
    response, status, kind, body = RESPONSES[case]
    server = Server("responding")
    server.route("/x")(response)
    async with served(server) as web:
        reply: Reply = await web.ask(asked(), "/x")
        assert (reply.status, reply.headers.get("content-type"), reply.body) == (status, kind, body)
        line = await web.line()
        await line.send(b"HEAD /x HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        assert await line.head() == status
        assert await line.reader.read() == b""
