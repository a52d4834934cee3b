"""OpenApi against servers: over HTTP, in process, mounted, searched, and attacked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI, Header, HTTPException
from msgspec.structs import replace
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException as StarletteError
from starlette.requests import Request as StarletteRequest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.schemas import SchemaGenerator

from interlock import (
    Client,
    Http,
    McpError,
    OpenApi,
    OpenApiError,
    Request,
    Server,
    TimedOut,
    ToolError,
    listening_socket,
    serve_http,
)
from interlock.http11.fetch import Response
from interlock.server.sources.openapi.sending import redirected
from interlock.typed.signature import ArgumentsError

Answer = Callable[[dict[str, Any], bytes], Awaitable[tuple[int, dict[str, str], bytes]]]


class Api:
    """An HTTP server that records its requests, and answers by a function."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.url = ""
        self.seen: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise RuntimeError("no lifespan")
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        query = scope["query_string"].decode()
        request = {
            "line": f"{scope['method']} {scope['raw_path'].decode()}{'?' if query else ''}{query}",
            "headers": {name.decode(): value.decode() for name, value in scope["headers"]},
            "body": body,
        }
        self.seen.append(request)
        status, headers, content = await self._answer(request, body)
        lines = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": lines})
        await send({"type": "http.response.body", "body": content})


@asynccontextmanager
async def running(answer: Answer) -> AsyncIterator[Api]:
    """A server on a port of its own."""
    api = Api(answer)
    sock = listening_socket("127.0.0.1", 0)
    api.url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    serving = asyncio.create_task(serve_http(api, sock, grace=0.1))
    try:
        yield api
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def document(**paths: Any) -> dict[str, Any]:
    """A document with an operation for each name, at the path of that name."""
    made = {
        f"/{name}": {
            given.get("method", "get"): {
                "operationId": name,
                "responses": {"200": {"description": ""}},
                **{key: value for key, value in given.items() if key != "method"},
            }
        }
        for name, given in paths.items()
    }
    return {"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}, "paths": made}


def query(name: str, kind: str = "string") -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": kind}}


async def echo(request: dict[str, Any], body: bytes) -> tuple[int, dict[str, str], bytes]:
    return 200, {"content-type": "application/json"}, json.dumps(request["line"]).encode()


JSON = {"content-type": "application/json"}


async def test_over_http_and_mounted() -> None:
    """The whole way: client, server, source, HTTP. The caller's token stays where it is."""
    async with running(echo) as upstream:
        api = OpenApi(
            document(search={"parameters": [query("q"), query("n", "integer")]}),
            base=upstream.url,
            headers={"X-Ours": "yes"},
        )
        front = Server("front")
        front.mount(api, prefix="shop")
        sock = listening_socket("127.0.0.1", 0)
        serving = asyncio.create_task(serve_http(front.http_app(), sock, grace=0.1))
        target = Http(
            f"http://127.0.0.1:{sock.getsockname()[1]}/mcp",
            headers={"Authorization": "Bearer of-the-caller", "Cookie": "sid=1"},
        )
        try:
            async with Client(target) as client:
                (tool,) = await client.list_tools()
                result = await client.call_tool(tool.name, {"q": "a b", "n": "3"})
                assert result.text == '"GET /search?q=a%20b&n=3"'
                wrong = await client.call_tool(tool.name, {"n": "many"})
                assert wrong.is_error
                assert "$.n" in wrong.text
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
        (seen,) = upstream.seen
        assert seen["headers"]["x-ours"] == "yes"
        assert not seen["headers"].keys() & {"authorization", "cookie"}
        assert b"of-the-caller" not in json.dumps(seen["headers"]).encode()


async def test_errors_of_the_api() -> None:
    """An error is a result with the words of the API, and how long to wait."""

    async def refuse(request: dict[str, Any], body: bytes) -> tuple[int, dict[str, str], bytes]:
        return 429, {**JSON, "retry-after": "20"}, b'{"message": "Slow down."}'

    async with running(refuse) as upstream:
        server = Server("s")
        server.mount(OpenApi(document(a={}), base=upstream.url))
        async with Client(server) as client:
            result = await client.call_tool("a")
            assert result.is_error
            assert result.text == (
                "The API answered 429 Too Many Requests: Slow down. Try again in 20 seconds."
            )


async def test_an_api_that_is_not_there() -> None:
    sock = listening_socket("127.0.0.1", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    sock.close()
    server = Server("s")
    server.mount(OpenApi(document(a={}), base=url))
    async with Client(server) as client:
        result = await client.call_tool("a")
        assert result.is_error
        assert "127.0.0.1" in result.text


async def test_an_api_that_is_slow() -> None:
    forever = asyncio.Event()

    async def wait(request: dict[str, Any], body: bytes) -> tuple[int, dict[str, str], bytes]:
        await forever.wait()
        return 200, {}, b""

    async with running(wait) as upstream:
        async with OpenApi(document(a={}), base=upstream.url, timeout=0.05) as api:
            with pytest.raises(TimedOut, match="within 0.05 seconds"):
                await api.call("a")
        forever.set()


async def test_an_answer_that_is_too_large() -> None:
    async def much(request: dict[str, Any], body: bytes) -> tuple[int, dict[str, str], bytes]:
        return 200, {"content-type": "text/plain"}, b"x" * 2000

    async with (
        running(much) as upstream,
        OpenApi(document(a={}), base=upstream.url, limit=1000) as api,
    ):
        with pytest.raises(ToolError, match="Ask for less"):
            await api.call("a")


async def test_redirects_stay_on_the_host() -> None:
    async with running(echo) as other:

        async def turn(request: dict[str, Any], body: bytes) -> tuple[int, dict[str, str], bytes]:
            if request["line"] == "GET /near":
                return 302, {"location": "/there?x=1"}, b""
            if request["line"] == "GET /loop":
                return 302, {"location": "/loop"}, b""
            if request["line"] == "GET /far":
                return 307, {"location": f"{other.url}/there"}, b""
            return await echo(request, body)

        async with (
            running(turn) as upstream,
            OpenApi(document(near={}, far={}, loop={}), base=upstream.url, auth="tok") as api,
        ):
            assert (await api.call("near")).text == '"GET /there?x=1"'
            with pytest.raises(ToolError, match="another host"):
                await api.call("far")
            with pytest.raises(ToolError, match="more than 5 redirects"):
                await api.call("loop")
        assert other.seen == []


@pytest.mark.parametrize(
    "method, status, url, location, made",
    [
        ("GET", 301, "http://a.example/x", "/y#z", ("GET", "http://a.example/y")),
        ("GET", 308, "http://a.example/x", "https://a.example/x", ("GET", "https://a.example/x")),
        ("POST", 303, "http://a.example/x", "y", ("GET", "http://a.example/y")),
        ("POST", 307, "http://a.example/x", "y", ("POST", "http://a.example/y")),
        ("POST", 302, "http://a.example/x", "y", "writes"),
        ("GET", 301, "https://a.example/x", "http://a.example/x", "another host"),
        ("GET", 301, "https://a.example/x", "https://a.example:8443/x", "another host"),
        ("GET", 301, "https://a.example/x", "https://b.example/x", "another host"),
        ("GET", 301, "https://a.example/x", "https://u@a.example/x", "another host"),
        ("GET", 301, "https://a.example/x", "file:///etc/passwd", "another host"),
        ("GET", 301, "https://a.example/x", "https://[bad", "another host"),
    ],
)
def test_where_redirects_lead(
    method: str, status: int, url: str, location: str, made: tuple[str, str] | str
) -> None:
    request = Request(method, url, (("Content-Type", "x"),), b"body")
    if isinstance(made, str):
        with pytest.raises(ToolError, match=made):
            redirected(request, status, location)
        return
    after = redirected(request, status, location)
    assert (after.method, after.url) == made
    assert bool(after.body) == (status != 303 or method == "GET")


async def test_pages_are_followed_as_far_as_wanted() -> None:
    async def page(request: dict[str, Any], body: bytes) -> tuple[int, dict[str, str], bytes]:
        number = int(request["line"].partition("page=")[2] or 1)
        link = {"link": f'</list?page={number + 1}>; rel="next"'} if number < 4 else {}
        return 200, {**JSON, **link}, json.dumps([number]).encode()

    found = document(list={"parameters": [query("page", "integer")]})
    async with running(page) as upstream:
        async with OpenApi(found, base=upstream.url) as api:
            one = await api.call("list", {"page": 2})
            assert [block.text for block in one.content] == [
                "[2]",
                'There is more: call again with {"page":3} added.',
            ]
        async with OpenApi(found, base=upstream.url, pages=3) as api:
            three = await api.call("list")
            assert three.content[0].text == "[1,2,3]"
            assert '{"page":4}' in three.content[1].text
        async with OpenApi(found, base=upstream.url, pages=9) as api:
            whole = await api.call("list")
            assert [block.text for block in whole.content] == ["[1,2,3,4]"]


class Rotating:
    """An authorizer whose token changes when the API rejects it."""

    def __init__(self) -> None:
        self.number = 1

    def to(self, url: str) -> Rotating:
        return self

    async def sign(self, request: Request) -> Request:
        authorization = ("Authorization", f"Bearer {self.number}")
        return replace(request, headers=(*request.headers, authorization))

    async def handle_response(self, request: Request, response: Response, tries: int) -> bool:
        if response.status != 401 or tries > 2:
            return False
        self.number += 1
        return True


async def test_an_authorizer_gets_new_tokens() -> None:
    async def check(request: dict[str, Any], body: bytes) -> tuple[int, dict[str, str], bytes]:
        return (200 if request["headers"]["authorization"] == "Bearer 2" else 401), JSON, b"1"

    async with (
        running(check) as upstream,
        OpenApi(document(a={}), base=upstream.url, auth=Rotating()) as api,
    ):
        assert (await api.call("a")).text == "1"


async def test_large_documents_are_searched() -> None:
    """Two tools, and the operations behind them."""
    names = ["list_orders", "create_order", "delete_order", "list_customers"]
    names += [f"other_{n}" for n in range(40)]
    body = {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {"amount": {"type": "integer"}},
                    "required": ["amount"],
                }
            }
        },
    }
    paths: dict[str, Any] = {name: {"summary": name.replace("_", " ")} for name in names}
    paths["create_order"] |= {"method": "post", "requestBody": body}
    async with running(echo) as upstream:
        server = Server("s")
        server.mount(OpenApi(document(**paths), base=upstream.url))
        async with Client(server) as client:
            tools = await client.list_tools()
            assert [tool.name for tool in tools] == ["search_operations", "call_operation"]
            found = await client.call_tool("search_operations", {"query": "new orders: create"})
            best = json.loads(found.text)[0]
            assert best["operation"] == "create_order"
            assert best["request"] == "POST /create_order"
            assert best["inputSchema"]["required"] == ["amount"]
            exact = await client.call_tool("search_operations", {"query": "delete_order"})
            assert len(json.loads(exact.text)) == 1
            nothing = await client.call_tool("search_operations", {"query": "zebra"})
            assert nothing.is_error
            call = {"operation": "create_order", "arguments": {"amount": 3}}
            assert (await client.call_tool("call_operation", call)).text == '"POST /create_order"'
            assert json.loads(upstream.seen[-1]["body"]) == {"amount": 3}
            wrong = {"operation": "create_order", "arguments": {"amount": "many"}}
            assert "$.amount" in (await client.call_tool("call_operation", wrong)).text
            near = await client.call_tool("call_operation", {"operation": "create_ordr"})
            assert near.is_error
            assert "Did you mean create_order?" in near.text


async def test_direct_calls() -> None:
    """A source can be used without a server."""
    async with running(echo) as upstream, OpenApi(document(a={}), base=upstream.url) as api:
        assert (await api.call("a")).text == '"GET /a"'
        with pytest.raises(McpError, match="Unknown tool: b"):
            await api.call("b")
        with pytest.raises(ArgumentsError):
            await api.call("a", {"x": 1})


# -- apps in this process --------------------------------------------------------------------------


class Order(BaseModel):
    dish: str
    number: int = 1


def shop() -> FastAPI:
    """A FastAPI app."""
    app = FastAPI(title="Shop")

    @app.post("/orders/{table}", operation_id="order")
    async def order(table: int, order: Order, x_key: str = Header()) -> dict[str, Any]:
        return {"table": table, "dish": order.dish, "number": order.number, "key": x_key}

    @app.get("/orders/{table}", operation_id="show")
    async def show(table: int) -> Order:
        if table > 9:
            raise HTTPException(404, "There is no such table.")
        return Order(dish="soup")

    @app.get("/crash", operation_id="crash")
    async def crash() -> None:
        raise ValueError("a secret")

    return app


async def test_a_fastapi_app_in_process() -> None:
    """It is its own document; validation errors and crashes are results."""
    server = Server("s")
    server.mount(OpenApi(shop(), headers={"X-Key": "k"}))
    async with Client(server) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert set(tools) == {"order", "show", "crash"}
        assert list(tools["order"].input_schema["properties"]) == ["table", "dish", "number"]
        made = await client.call_tool("order", {"table": 3, "dish": "soup"})
        assert json.loads(made.text) == {"table": 3, "dish": "soup", "number": 1, "key": "k"}
        shown = await client.call_tool("show", {"table": 1})
        assert shown.structured_content == {"dish": "soup", "number": 1}
        missing = await client.call_tool("show", {"table": 10})
        assert missing.text == "The API answered 404 Not Found: There is no such table."
        crashed = await client.call_tool("crash")
        assert crashed.is_error
        assert "secret" not in crashed.text


async def test_the_lifespan_of_an_app_is_that_of_the_source() -> None:
    events: list[str] = []

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, str]]:
        events.append("start")
        yield {"state": "kept"}
        events.append("end")

    app = FastAPI(lifespan=lifespan)

    @app.get("/a", operation_id="a")
    async def a() -> str:
        return "b"

    api = OpenApi(app)
    for _ in range(2):
        async with api:
            assert (await api.call("a")).structured_content == {"result": "b"}
    assert events == ["start", "end"] * 2


async def test_a_starlette_app_in_process() -> None:
    """Its document comes from the docstrings of its routes, as Starlette's own generator makes
    it."""

    async def show(request: StarletteRequest) -> JSONResponse:
        """
        operationId: show
        parameters:
          - {name: table, in: path, required: true, schema: {type: integer}}
        responses:
          200:
            description: The order.
            content:
              application/json:
                schema: {type: object, properties: {dish: {type: string}}}
        """
        if request.path_params["table"] > 9:
            raise StarletteError(404, "There is no such table.")
        return JSONResponse({"dish": "soup", "host": request.headers["host"]})

    app = Starlette(routes=[Route("/orders/{table:int}", show)])
    about = {"openapi": "3.0.0", "info": {"title": "Shop", "version": "1"}}
    described = SchemaGenerator(about).get_schema(routes=app.routes)
    server = Server("s")
    server.mount(OpenApi(described, app=app))
    async with Client(server) as client:
        assert [tool.name for tool in await client.list_tools()] == ["show"]
        shown = await client.call_tool("show", {"table": 1})
        assert json.loads(shown.text) == {"dish": "soup", "host": "localhost"}
        missing = await client.call_tool("show", {"table": 10})
        assert missing.is_error
        assert "There is no such table." in missing.text


def test_an_app_without_a_document() -> None:
    with pytest.raises(OpenApiError, match="give the document, and app="):
        OpenApi(Api(echo))


async def test_an_app_with_a_document_of_its_own() -> None:
    api = Api(echo)
    async with OpenApi(document(a={}), app=api, base="http://shop.internal/v2") as source:
        assert (await source.call("a")).text == '"GET /v2/a"'
    assert api.seen[0]["headers"]["host"] == "shop.internal"
