"""Extensions: their ids, what is advertised of them, and that their methods are served like those of the core, in both eras."""

from __future__ import annotations

import re
from typing import Any

import pytest

from interlock import Client, Extension, McpError, Server
from interlock import types as t
from interlock.exchange import AnyResult, Exchange, Handler
from tests.server.by_hand import R4, text
from tests.server.wire import Peer


class GreetParams(t.Params, frozen=True, kw_only=True):
    """Params of the method that these tests bring along."""

    name: str


class GreetResult(t.Result, frozen=True, kw_only=True):
    """Its result."""

    greeting: str


async def greet(x: Exchange) -> AnyResult:
    return GreetResult(greeting=f"Hello, {x.params.name}! ({x.caller.revision})")


def greeting(**options: Any) -> Extension:
    return Extension("com.example/greet", methods={"greet/now": (GreetParams, greet)}, **options)


@pytest.mark.parametrize(
    "id",
    ["com.example/greet", "example/a", "a.b-c.d9/x_y.z-0", "io.modelcontextprotocol/ui", "a/1"],
)
def test_ids(id: str):
    """A prefix of labels with dots between, a slash, and a name (`EXT-02`)."""
    assert Extension(id).id == id


@pytest.mark.parametrize(
    "id",
    [
        "greet",
        "/greet",
        "com.example/",
        "com..example/a",
        "9com/a",
        "com-/a",
        "-com/a",
        "com.example/-a",
        "com.example/a-",
        "a/b/c",
        "a b/c",
        "a/b\n",
        "",
    ],
)
def test_ids_that_are_none(id: str):
    """Without a prefix, or not of the form that keys of `_meta` have (`EXT-02`)."""
    with pytest.raises(
        ValueError,
        match="is no extension id: it needs a prefix and a name, as in 'com.example/name'",
    ):
        Extension(id)


@pytest.mark.parametrize("revision", [R4, "2026-07-28"])
async def test_what_is_advertised(revision: str):
    """The settings under the id, `{}` where there are none; nothing where the server was given no extension (`EXT-01`, `EXT-05`, `EXT-08`)."""
    async with Client(Server("plain"), revision=revision) as client:
        assert client.server_capabilities.extensions is None
    extensions = [greeting(), Extension("com.example/other", settings={"mimeTypes": ["text/html"]})]
    async with Client(Server("extended", extensions=extensions), revision=revision) as client:
        assert client.server_capabilities.extensions == {
            "com.example/greet": {},
            "com.example/other": {"mimeTypes": ["text/html"]},
        }


@pytest.mark.parametrize("revision", [R4, "2026-07-28"])
async def test_methods_of_extensions(revision: str):
    """They are served in both eras, their params are read as their type, and nobody else serves them (`EXT-03`)."""
    peer = await Peer.of(Server("extended", extensions=[greeting()]), revision)
    answer = await peer.ask("greet/now", {"name": "Ada"})
    assert answer["result"]["greeting"] == f"Hello, Ada! ({revision})"
    assert (await peer.ask("greet/now", {"name": 5}))["error"]["code"] == t.INVALID_PARAMS
    assert (await peer.ask("greet/never", {"name": "Ada"}))["error"]["code"] == t.METHOD_NOT_FOUND
    await peer.aclose()
    plain = await Peer.of(Server("plain"), revision)
    assert (await plain.ask("greet/now", {"name": "Ada"}))["error"]["code"] == t.METHOD_NOT_FOUND
    await plain.aclose()


async def test_middleware_of_extensions():
    """It goes around all handlers, inside of the server's own."""
    order: list[str] = []

    def noting(name: str) -> Any:
        def layer(handler: Handler) -> Handler:
            async def handle(x: Exchange) -> AnyResult:
                order.append(name)
                return await handler(x)

            return handle

        return layer

    server = Server(
        "extended",
        middleware=[noting("server")],
        extensions=[greeting(middleware=[noting("extension")])],
    )
    server.use(noting("later"))

    @server.tool
    async def do() -> str:
        return "done"

    assert await text(server, "do") == "done"
    assert order == ["server", "extension", "later"]


def test_names_that_are_taken():
    """An extension cannot stand in for the core, nor for another one, nor for itself."""
    with pytest.raises(
        ValueError,
        match=r"the extension com.example/greet cannot have the method tools/call, which is taken already",
    ):
        Server(
            "extended",
            extensions=[
                Extension("com.example/greet", methods={"tools/call": (GreetParams, greet)})
            ],
        )
    with pytest.raises(
        ValueError, match=r"the extension com.example/other cannot have the method greet/now"
    ):
        Server(
            "extended",
            extensions=[
                greeting(),
                Extension("com.example/other", methods={"greet/now": (GreetParams, greet)}),
            ],
        )
    with pytest.raises(ValueError, match="com.example/greet is given twice"):
        Server("extended", extensions=[greeting(), Extension("com.example/greet")])


async def test_errors_of_extensions():
    """An McpError is sent as it is; what nobody foresaw is an internal error that tells nothing of the inside (`ERR-20`)."""

    async def refuse(x: Exchange) -> AnyResult:
        raise McpError(-32099, "Not today.", {"until": "tomorrow"})

    async def crash(x: Exchange) -> AnyResult:
        raise LookupError("the secret word")

    methods = {"greet/refuse": (t.Params, refuse), "greet/crash": (t.Params, crash)}
    peer = await Peer.of(
        Server("extended", extensions=[Extension("com.example/greet", methods=methods)])
    )
    assert (await peer.ask("greet/refuse"))["error"] == {
        "code": -32099,
        "message": "Not today.",
        "data": {"until": "tomorrow"},
    }
    error = (await peer.ask("greet/crash"))["error"]
    assert error["code"] == t.INTERNAL_ERROR
    assert re.fullmatch(r"Internal error \(reference [0-9a-f]{8}\)", error["message"])
    await peer.aclose()
