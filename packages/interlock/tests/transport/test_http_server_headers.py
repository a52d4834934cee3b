"""What the endpoint refuses under the newest revision and in which order, and headers that repeat
the body, over a real socket.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from interlock import types as t
from interlock.wire.revisions import R4
from tests.protocol.frames import KEY, request
from tests.protocol.offered import Offered, Spoil, modern
from tests.transport.raw_web import House, Web, call, serving, written

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.usefixtures("web_server"),
]

JSON = "application/json"
EVENTS = "text/event-stream"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web(web_server: str) -> AsyncIterator[Web]:
    """A server for the tests that leave nothing behind."""
    async with serving(House().server) as shared:
        yield shared


# -- the ladder ------------------------------------------------------------------------------------


def put_meta(key: str, value: Any) -> Spoil:
    def spoil(x: Offered) -> None:
        x.body["params"]["_meta"][KEY + key] = value

    return spoil


def drop_meta(key: str) -> Spoil:
    def spoil(x: Offered) -> None:
        x.body["params"]["_meta"].pop(KEY + key, None)

    return spoil


def unknown_revision(x: Offered) -> None:
    x.body["params"]["_meta"][KEY + "protocolVersion"] = x.headers["mcp-protocol-version"] = (
        "2099-01-01"
    )


def unknown_method(x: Offered) -> None:
    x.body["method"] = x.headers["mcp-method"] = "no/such"


def put_header(name: str, value: str) -> Spoil:
    def spoil(x: Offered) -> None:
        x.headers[name] = value

    return spoil


RUNGS: dict[str, tuple[Spoil, int, int]] = {
    "a stranger's host": (put_header("host", "evil.example"), 403, t.INVALID_REQUEST),
    "no JSON by its type": (put_header("content-type", "text/plain"), 415, t.INVALID_REQUEST),
    "an answer that cannot be given": (put_header("accept", "image/png"), 406, t.INVALID_REQUEST),
    "no revision": (drop_meta("protocolVersion"), 400, t.INVALID_PARAMS),
    "no capabilities": (drop_meta("clientCapabilities"), 400, t.INVALID_PARAMS),
    "another method in the header": (
        put_header("mcp-method", "tools/list"),
        400,
        t.HEADER_MISMATCH,
    ),
    "an unknown revision": (unknown_revision, 400, t.UNSUPPORTED_PROTOCOL_VERSION),
    "an unknown method": (unknown_method, 404, t.METHOD_NOT_FOUND),
    "another argument in its header": (
        put_header("mcp-param-region", "moon"),
        400,
        t.HEADER_MISMATCH,
    ),
    "no capability to answer": (
        put_meta("clientCapabilities", {}),
        400,
        t.MISSING_CLIENT_CAPABILITY,
    ),
}


@pytest.mark.parametrize("rung", RUNGS)
async def test_the_order_of_refusals(web: Web, rung: str):
    """With everything wrong from one rung on, the refusal is that rung's: plain JSON, its status,
    the request's id (`HTM-24`, `HDR-06`, `CFQ-01`, `CFQ-03`, `STA-19`).
    """
    x = call("ask_there", {"region": "here"}, id="seven", mcp_param_region="here")
    rungs = list(RUNGS)
    for later in reversed(rungs[rungs.index(rung) :]):
        if not (later == "an unknown method" and rung == "another method in the header"):
            RUNGS[later][0](x)
    RUNGS[rung][0](x)
    reply = await web.ask(x)
    assert (reply.status, reply.code) == RUNGS[rung][1:], reply
    assert reply.headers["content-type"] == JSON
    assert reply.json.get("id") == ("seven" if rungs.index(rung) > 2 else None)


async def test_errors_whose_status_nobody_named_are_200(web: Web):
    """An author's own, an unknown tool, wrong arguments: the body says it all (`X-14`)."""
    for x, code in (
        (call("fail"), 4711),
        (call("nobody"), t.INVALID_PARAMS),
        (modern("resources/read", {"uri": "note://none"}), t.INVALID_PARAMS),
    ):
        reply = await web.ask(x)
        assert (reply.status, reply.code, reply.headers["content-type"]) == (200, code, JSON)


async def test_an_error_after_the_stream_has_begun_rides_in_it(web: Web):
    """The status was said by then (`HTM-24`)."""
    reply = await web.ask(call("crash", token=1))
    assert (reply.status, reply.headers["content-type"]) == (200, EVENTS)
    assert reply.messages[-1]["error"] == {"code": t.INTERNAL_ERROR, "message": "Oh dear."}


# -- headers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["MCP-Protocol-Version", "Mcp-Method", "mcp-name", "Mcp-Param-Region", "Host"]
)
async def test_headers_that_decide_come_once(web: Web, name: str):
    """Two of them are refused though both say the same, in whatever case their names are
    (`HDR-11`).
    """
    x = call("route", {"region": "here"}, mcp_param_region="here")
    assert (await web.ask(x)).status == 200
    x.headers = {name.title(): value for name, value in x.headers.items()}
    assert (await web.ask(x)).status == 200  # `HDR-07`
    value = {key.lower(): value for key, value in x.headers.items()}[name.lower()]
    line = await web.line()
    await line.send(written(x).replace(b"\r\n\r\n", f"\r\n{name}: {value}\r\n\r\n".encode(), 1))
    await line.head()
    reply = await line.rest()
    assert (reply.status, reply.code) == (400, t.HEADER_MISMATCH) or name == "Host"
    assert reply.status == 400


async def test_an_accept_header_on_several_lines(web: Web):
    """Is one list, as RFC 9110 has it."""
    x = call("chatter", token=1, accept=None)
    for first, second in ((EVENTS, JSON), (JSON, EVENTS)):
        line = await web.line()
        await line.send(
            written(x).replace(
                b"\r\n\r\n", f"\r\naccept: {first}\r\nAccept: {second}\r\n\r\n".encode(), 1
            )
        )
        assert await line.head() == 200
        assert line.headers["content-type"] == EVENTS
        assert len((await line.rest()).messages) == 2


async def test_a_client_that_takes_only_json(web: Web):
    """Gets the response alone."""
    reply = await web.ask(call("chatter", token=1, accept=JSON))
    assert reply.headers["content-type"] == JSON
    assert reply.json["result"]["content"][0]["text"] == "said"


MIRRORED: dict[str, tuple[dict[str, Any], dict[str, str], bool]] = {
    "all": (
        {"region": "here", "count": 42, "urgent": True},
        {"region": "here", "count": "42", "urgent": "true"},
        True,
    ),
    "an integer with a fraction of nothing": (
        {"region": "x", "count": 42},
        {"region": "x", "count": "42.0"},
        True,
    ),  # `XMH-21`
    "a fraction of nothing in the body": (
        {"region": "x", "count": 42.0},
        {"region": "x", "count": "42"},
        True,
    ),
    "another integer": ({"region": "x", "count": 42}, {"region": "x", "count": "43"}, False),
    "an integer in words": (
        {"region": "x", "count": 42},
        {"region": "x", "count": "forty-two"},
        False,
    ),
    "an integer in hex": ({"region": "x", "count": 42}, {"region": "x", "count": "0x2a"}, False),
    "a negative integer": ({"region": "x", "count": -7}, {"region": "x", "count": "-7"}, True),
    "the largest safe integer": (
        {"region": "x", "count": 2**53 - 1},
        {"region": "x", "count": str(2**53 - 1)},
        True,
    ),
    "an absent argument": ({"region": "x"}, {"region": "x"}, True),
    "a null": ({"region": "x", "count": None}, {"region": "x"}, True),
    "a header for a null": ({"region": "x", "count": None}, {"region": "x", "count": "1"}, False),
    "a header for nothing": ({"region": "x"}, {"region": "x", "count": "1"}, False),
    "a missing header": ({"region": "x", "count": 1}, {"region": "x"}, False),
    "an empty string": ({"region": ""}, {"region": ""}, True),
    "a missing header for an empty string": ({"region": ""}, {}, False),
    "a boolean in capitals": (
        {"region": "x", "urgent": True},
        {"region": "x", "urgent": "True"},
        False,
    ),
    "base64": ({"region": "wörter"}, {"region": "=?base64?d8O2cnRlcg==?="}, True),
    "base64 of something else": ({"region": "wörter"}, {"region": "=?base64?d29ydA==?="}, False),
    "base64 that is none": ({"region": "wörter"}, {"region": "=?base64?d8O2cnRlcg?="}, False),
    "half a mark is text": ({"region": "=?base64?x"}, {"region": "=?base64?x"}, True),
    "a mark in capitals is text": (
        {"region": "=?BASE64?eA==?="},
        {"region": "=?BASE64?eA==?="},
        True,
    ),
    "raw UTF-8": ({"region": "wörter"}, {"region": "wörter"}, False),
    "headers that nobody knows": ({"region": "x"}, {"region": "x", "other": "1"}, True),
}


@pytest.mark.parametrize("case", MIRRORED)
async def test_headers_that_repeat_arguments(web: Web, case: str):
    """They say what the arguments say, as numbers where those are numbers (`XMH-01`, `XMH-17`,
    `XMH-19`, `XMH-20`, `XMH-21`, `HDR-14`).
    """
    arguments, headers, good = MIRRORED[case]
    reply = await web.ask(
        call("route", arguments, **{f"mcp_param_{name}": value for name, value in headers.items()})
    )
    tools = {
        tool["name"]: tool for tool in (await web.ask(modern("tools/list"))).json["result"]["tools"]
    }
    assert tools["route"]["inputSchema"]["properties"]["region"]["x-mcp-header"] == "Region"
    assert (reply.status, reply.code) == ((200, None) if good else (400, t.HEADER_MISMATCH)), reply


@pytest.mark.parametrize(
    "schema",
    [
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"a": {"type": "string", "x-mcp-header": "A"}},
            },
        },
        {"anyOf": [{"type": "string", "x-mcp-header": "A"}]},
        {
            "type": "object",
            "properties": {"deep": {"oneOf": [{"type": "string", "x-mcp-header": "A"}]}},
        },
        {"type": "number", "x-mcp-header": "A"},
        {"type": "string", "x-mcp-header": ""},
        {"type": "string", "x-mcp-header": "a b"},
        {"type": "string", "x-mcp-header": "a\r\nb"},
    ],
)
async def test_annotations_that_clients_would_have_to_drop_are_refused_at_home(schema: Any):
    """An author learns of it when the tool is added, not from users who miss it (`XMH-02`,
    `XMH-04`, `XMH-05`).
    """
    server = House().server
    with pytest.raises(ValueError, match="x-mcp-header"):
        server.add_tool(
            lambda arguments: "never",
            name="never",
            input_schema={"type": "object", "properties": {"a": schema}},
        )


async def test_the_older_revisions_know_nothing_of_headers_that_repeat_arguments(web: Web):
    """There they are neither wanted nor looked at."""
    session = await web.greet(R4)
    body = request(1, "tools/call", {"name": "route", "arguments": {"region": "here"}})
    for headers in ({}, {"mcp_param_region": "there"}):
        assert (await session.ask(body, **headers)).json["result"]["content"][0]["text"] == "here"
