"""Calls one by one and side by side: what is sent, what comes back, and what goes around them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec import Raw

from interlock import (
    AnyResult,
    Client,
    Exchange,
    Handler,
    McpError,
    Middleware,
    ProtocolError,
    RawResult,
    Server,
    ToolError,
)
from interlock import types as t
from interlock.wire.revisions import METHODS, NEWEST, R4, Side
from tests.client.peers import KEY, SECONDS, SILENCE, ByHand, Peer, complete, text

BOTH = pytest.mark.parametrize("revision", [R4, NEWEST])


def said(message: dict[str, Any]) -> dict[str, Any]:
    """The params of a message without what every request says."""
    params = dict(message["params"])
    meta = {key: value for key, value in params.pop("_meta", {}).items() if not key.startswith(KEY)}
    return {**params, **({"_meta": meta} if meta else {})}


# -- what is sent ---------------------------------------------------------------------------------

SENT: dict[str, tuple[Any, str, dict[str, Any]]] = {
    # a use of the client, the method, and the params
    "a tool": (
        lambda c: c.call_tool("x", {"a": 1}),
        "tools/call",
        {"name": "x", "arguments": {"a": 1}},
    ),
    "a tool without arguments": (
        lambda c: c.call_tool("x"),
        "tools/call",
        {"name": "x", "arguments": {}},
    ),
    "a tool with empty arguments": (
        lambda c: c.call_tool("x", {}),
        "tools/call",
        {"name": "x", "arguments": {}},
    ),
    "a tool with meta": (
        lambda c: c.call_tool("x", meta={"a/b": [1]}),
        "tools/call",
        {"name": "x", "arguments": {}, "_meta": {"a/b": [1]}},
    ),
    "a resource": (
        lambda c: c.read_resource("x:y", meta={"n": 1}),
        "resources/read",
        {"uri": "x:y", "_meta": {"n": 1}},
    ),
    "a prompt": (
        lambda c: c.get_prompt("x"),
        "prompts/get",
        {"name": "x", "arguments": {}},
    ),
    "a prompt with meta": (
        lambda c: c.get_prompt("x", {}, meta={"n": 1}),
        "prompts/get",
        {"name": "x", "arguments": {}, "_meta": {"n": 1}},
    ),
    "completion of a prompt": (
        lambda c: c.complete("city", "name", "Pa"),
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "city"},
            "argument": {"name": "name", "value": "Pa"},
        },
    ),
    "completion of a template": (
        lambda c: c.complete("x://{name}", "name"),
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "x://{name}"},
            "argument": {"name": "name", "value": ""},
        },
    ),
    "completion with what is known": (
        lambda c: c.complete("city", "name", arguments={"land": "France"}),
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "city"},
            "argument": {"name": "name", "value": ""},
            "context": {"arguments": {"land": "France"}},
        },
    ),
    "completion of a ref": (
        lambda c: c.complete(t.ResourceTemplateReference(uri="mail:{x}"), "x"),
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "mail:{x}"},
            "argument": {"name": "x", "value": ""},
        },
    ),
    "a page": (
        lambda c: c.request("tools/list", t.ListToolsRequestParams(cursor="2")),
        "tools/list",
        {"cursor": "2"},
    ),
}
ANSWERS = {
    "tools/call": text(),
    "resources/read": complete(contents=[]),
    "prompts/get": complete(messages=[]),
    "completion/complete": complete(completion={"values": ["Paris"], "total": 1, "hasMore": False}),
    "tools/list": complete(tools=[]),
}


@BOTH
@pytest.mark.parametrize("use, method, params", SENT.values(), ids=SENT)
async def test_what_is_sent(use: Any, method: str, params: dict[str, Any], revision: str):
    async with Peer(ANSWERS, revision) as peer, Client(peer.channel) as client:
        await use(client)
        assert said(peer.all(method)[0]) == params


async def test_meta_beside_what_every_request_says():
    """One `_meta` holds all of it (`STA-01`)."""
    async with Peer(ANSWERS) as peer, Client(peer.channel) as client:
        await client.call_tool(
            "x",
            meta={"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
            on_progress=print,
        )
        meta = peer.all("tools/call")[0]["params"]["_meta"]
    assert set(meta) == {
        f"{KEY}protocolVersion",
        f"{KEY}clientInfo",
        f"{KEY}clientCapabilities",
        "progressToken",
        "traceparent",
    }


VALUES: dict[str, tuple[Any, str]] = {
    "text": ("a b", "a b"),
    "empty": ("", ""),
    "a number": (7, "7"),
    "a fraction": (0.5, "0.5"),
    "yes": (True, "true"),
    "nothing": (None, "null"),
    "a list": ([1, "a"], '[1,"a"]'),
    "an object": ({"ü": {"b": None}}, '{"ü":{"b":null}}'),
    "text that looks like JSON": ("[1]", "[1]"),
}


@pytest.mark.parametrize("value, words", VALUES.values(), ids=VALUES)
async def test_arguments_of_a_prompt_are_text(value: Any, words: str):
    """What is none is sent as its JSON (`PRM-05`)."""
    async with Peer(ANSWERS) as peer, Client(peer.channel) as client:
        await client.get_prompt("x", {"v": value})
        assert said(peer.all("prompts/get")[0])["arguments"] == {"v": words}


async def test_a_prompt_that_reads_them():
    """The server's function gets the values back."""
    server = Server("prompts")

    @server.prompt
    async def plan(days: int, stops: list[str], sure: bool, note: str) -> str:
        return json.dumps([days, stops, sure, note])

    async with Client(server) as client:
        result = await client.get_prompt(
            "plan", {"days": 3, "stops": ["Rome"], "sure": True, "note": "[x]"}
        )
    assert isinstance(result.messages[0].content, t.TextContent)
    assert json.loads(result.messages[0].content.text) == [3, ["Rome"], True, "[x]"]


async def test_arguments_that_are_no_json():
    """An error of the caller's, before anything is sent; the client goes on."""
    async with Peer(ANSWERS) as peer, Client(peer.channel) as client:
        with pytest.raises(TypeError):
            await client.call_tool("x", {"a": object()})
        assert (await client.call_tool("x")).text == "done"
        assert peer.count("tools/call") == 1


# -- what comes back ------------------------------------------------------------------------------


async def test_results():
    """A tool that failed is a result, until its value is wanted."""
    structured = text("{}", structuredContent={"result": [1]})
    answers = [
        text("words"),
        structured,
        text("no", isError=True),
        complete(content=[], isError=True),
    ]
    async with Peer({"tools/call": answers}) as peer, Client(peer.channel) as client:
        assert (await client.call_tool("x")).value() == "words"
        assert (await client.call_tool("x")).value() == [1]
        for words in ("no", "failed"):
            result = await client.call_tool("x")
            assert result.is_error
            with pytest.raises(ToolError, match=words):
                result.value()


async def test_completion_comes_as_it_is():
    async with Peer(ANSWERS) as peer, Client(peer.channel) as client:
        assert await client.complete("city", "name", "Pa") == t.Completion(
            values=["Paris"], total=1, has_more=False
        )


ERRORS = [
    McpError(-32601, "Method not found", None),
    McpError(-32602, "Unknown tool: x", {"uri": "x:y"}),
    McpError(-32002, "Resource not found", {"uri": "x:y"}),
    McpError(4711, "Not like this", ["why", {"because": None}]),
    McpError(-32603, "", 0),
]


@BOTH
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: str(error.code))
async def test_errors_come_as_they_are(error: McpError, revision: str):
    """With code, message and data; no code is given a meaning of its own (`ERR-05`, `ERR-13`,
    `ERR-22`, `RPC-07`).
    """
    on = dict.fromkeys(
        ("tools/call", "resources/read", "prompts/get", "completion/complete", "tools/list"), error
    )
    async with Peer(on, revision) as peer, Client(peer.channel) as client:
        for use, _, _ in SENT.values():
            with pytest.raises(McpError) as caught:
                await use(client)
            assert (caught.value.code, caught.value.message, caught.value.data) == (
                error.code,
                error.message,
                error.data,
            )
            assert str(error.code) in str(caught.value)


BROKEN: dict[str, dict[str, Any]] = {
    "neither result nor error": {},
    "both": {"result": text(), "error": {"code": 1, "message": "x"}},
    "a result that is none": {"result": [1]},
    "a result of another kind": {"result": complete(tools=[])},
    "content of no kind": {"result": complete(content="words")},
    "an error without sense": {"error": "no"},
    "an error without a code": {"error": {"message": "no"}},
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
async def test_answers_that_cannot_be_read(answer: dict[str, Any]):
    """They end the call with one of our errors, and no other call (`RPC-06`, `RPC-07`)."""
    async with Peer({"tools/call": SILENCE}) as peer, Client(peer.channel) as client:
        call = asyncio.create_task(client.call_tool("x"))
        peer.say(id=(await peer.until("tools/call"))["id"], **answer)
        with pytest.raises((ProtocolError, McpError)):
            await call
        peer.on["tools/call"] = text()
        assert (await client.call_tool("x")).text == "done"


def giving(result: AnyResult) -> ByHand:
    """A transport whose every answer is this one."""

    async def answer(x: Exchange) -> AnyResult:
        return result

    return ByHand(answer)


@pytest.mark.parametrize(
    "result", [t.ListToolsResult(tools=[]), RawResult(b"{}")], ids=["another result", "bytes"]
)
async def test_a_transport_that_gives_something_else(result: AnyResult):
    """A result of another method, or bytes, is no answer."""
    async with Client(giving(result)) as client:
        with pytest.raises(ProtocolError, match="tools/call"):
            await client.call_tool("x")


async def test_bytes_of_a_transport_are_passed_on():
    """Whoever forwards an exchange need not know what is in the result."""
    given = RawResult(b"{}")
    async with Client(giving(given)) as client:
        x = Exchange("tools/call", t.CallToolRequestParams(name="x"), client.caller)
        assert await client.send(x) is given


# -- any request ----------------------------------------------------------------------------------

NO_REQUESTS = [
    m for m, row in METHODS.items() if row.result is None or row.sender is Side.SERVER
] + ["house/unknown", "", "tools"]


@pytest.mark.parametrize("method", NO_REQUESTS)
async def test_what_is_no_request_of_a_client(method: str):
    transport = ByHand()
    async with Client(transport) as client:
        with pytest.raises(ValueError, match="is not a request that a client sends"):
            await client.request(method, t.Params())
    assert transport.seen == []


@pytest.mark.parametrize(
    "revision, method",
    [
        (NEWEST, "ping"),
        (NEWEST, "logging/setLevel"),
        (NEWEST, "resources/subscribe"),
        (R4, "server/discover"),
    ],
)
async def test_requests_of_the_other_era(revision: str, method: str):
    """They are sent if one insists, and the server says what it thinks of them (`CFQ-02`)."""
    params = {
        "logging/setLevel": t.SetLevelRequestParams(level="info"),
        "resources/subscribe": t.SubscribeRequestParams(uri="x:y"),
    }
    async with Client(Server("house"), revision=revision) as client:
        with pytest.raises(McpError) as caught:
            await client.request(method, params.get(method, t.Params()))
        assert caught.value.code == t.METHOD_NOT_FOUND


async def test_send_is_the_one_shape():
    """An exchange made by hand goes the way of all others: the client can stand where a handler
    stands.
    """
    server = Server("house")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    async with Client(server) as client:
        x = Exchange(
            "tools/call",
            t.CallToolRequestParams(name="add", arguments=Raw(b'{"a":1,"b":2}')),
            client.caller,
        )
        result = await client.send(x)
        assert isinstance(result, t.CallToolResult)
        assert result.value() == 3


# -- middleware -----------------------------------------------------------------------------------


def noting(name: str, notes: list[str]) -> Middleware:
    def layer(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            notes.append(f"{name} in")
            try:
                return await handler(x)
            finally:
                notes.append(f"{name} out")

        return handle

    return layer


async def test_middleware_stands_in_order():
    """The first one outermost, around every exchange, and once for a call that has rounds."""
    notes: list[str] = []
    transport = ByHand()

    async def answer(x: Exchange) -> AnyResult:
        notes.append(x.method)
        if x.method == "tools/call" and x.params.request_state is None:
            return t.InputRequiredResult(result_type="input_required", request_state="s")
        return t.CallToolResult(content=[])

    transport = ByHand(answer)
    async with Client(
        transport, middleware=[noting("outer", notes), noting("inner", notes)]
    ) as client:
        await client.call_tool("x")
    assert notes == ["outer in", "inner in", "tools/call", "tools/call", "inner out", "outer out"]


async def test_middleware_that_answers_itself():
    """Nothing is sent; what is further in does not hear of it."""
    notes: list[str] = []
    transport = ByHand()

    def short(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            return t.CallToolResult(content=[t.TextContent("from here")])

        return handle

    async with Client(
        transport, middleware=[noting("outer", notes), short, noting("inner", notes)]
    ) as client:
        assert (await client.call_tool("x")).text == "from here"
    assert (notes, transport.seen) == (["outer in", "outer out"], [])


async def test_middleware_that_changes_and_refuses():
    """What it sends is what goes out, what it raises is what the caller gets."""

    def guard(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.params.name == "forbidden":
                raise McpError(-1, "not this one")
            x.params = t.CallToolRequestParams(
                name=f"shop.{x.params.name}", arguments=x.params.arguments
            )
            return await handler(x)

        return handle

    async with Peer(ANSWERS) as peer, Client(peer.channel, middleware=[guard]) as client:
        await client.call_tool("buy", {"a": 1})
        with pytest.raises(McpError, match="not this one"):
            await client.call_tool("forbidden")
        assert [said(message) for message in peer.all("tools/call")] == [
            {"name": "shop.buy", "arguments": {"a": 1}}
        ]


# -- side by side ---------------------------------------------------------------------------------


@BOTH
async def test_use_from_many_tasks(revision: str):
    """Each gets its own answer, in whatever order they come (`RPC-05`)."""
    async with Peer({"tools/call": SILENCE}, revision) as peer, Client(peer.channel) as client:
        calls = [asyncio.create_task(client.call_tool("echo", {"n": n})) for n in range(100)]
        await peer.until("tools/call", 100)
        for message in sorted(
            peer.all("tools/call"), key=lambda m: m["params"]["arguments"]["n"] * 37 % 100
        ):
            peer.say(id=message["id"], result=text(str(message["params"]["arguments"]["n"])))
        assert [(await call).text for call in calls] == [str(n) for n in range(100)]
        ids = [message["id"] for message in peer.received if "id" in message]
        assert len(set(ids)) == len(ids)


async def test_one_that_is_cancelled_among_others():
    """The server is told which, and the others go on (`CAN-01`, `CAN-08`)."""
    async with Peer({"tools/call": SILENCE}) as peer, Client(peer.channel) as client:
        calls = [asyncio.create_task(client.call_tool("x", {"n": n})) for n in range(3)]
        await peer.until("tools/call", 3)
        ids = {
            message["params"]["arguments"]["n"]: message["id"] for message in peer.all("tools/call")
        }
        calls[1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await calls[1]
        cancelled = await peer.until("notifications/cancelled")
        assert cancelled["params"]["requestId"] == ids[1]
        for n, id in ids.items():
            peer.say(id=id, result=text(str(n)))
        async with asyncio.timeout(SECONDS):
            assert [(await calls[n]).text for n in (0, 2)] == ["0", "2"]
        assert peer.count("notifications/cancelled") == 1
