"""What a client's HTTP requests say in their heads, in each revision; and the arguments that
headers repeat.
"""

from __future__ import annotations

import base64
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Http, McpError, ProtocolError, Unreachable
from interlock.wire.http import argument_value, decode_value
from tests.transport.http_peers import both_loops
from tests.transport.scripted_server import (  # fmt: skip
    HANDSHAKES,
    R3,
    R4,
    R5,
    REVISIONS,
    SESSION,
    Asked,
    ScriptedServer,
    begun,
    client_of,
    event,
    listed,
    result,
    scripted,
    talking,
    tool,
)

BOTH = "application/json, text/event-stream"


def head(asked: Asked) -> dict[str, str]:
    """The headers that the protocol knows."""
    known = ("content-type", "accept", "last-event-id")
    return {
        name.lower(): value
        for name, value in asked.seen.headers
        if name.lower() in known or name.lower().startswith("mcp-")
    }


@both_loops
async def test_the_stateless_era() -> None:
    """Each POST says its revision, its method and what it names, as its body does; never a session
    (`HTM-02`, `HTM-03`, `HTM-04`, `HDR-01`, `HDR-03`, `HDR-04`).
    """
    async with talking(R5) as (server, client):
        for work, given in (
            (client.list_tools, ()),
            (client.call_tool, ("add",)),
            (client.get_prompt, ("greet",)),
            (client.read_resource, ("note://board",)),
            (client.complete, ("greet", "name")),
        ):
            doing = begun(work(*given))
            asked = await server.next()
            expected = {
                "content-type": "application/json", "accept": BOTH, "mcp-protocol-version": R5,
                "mcp-method": asked.method,
            }  # fmt: skip
            assert head(asked) == expected | ({"mcp-name": given[0]} if len(given) == 1 else {})
            assert asked.params["_meta"]["io.modelcontextprotocol/protocolVersion"] == R5
            assert isinstance(asked.body, dict)
            assert (asked.verb, asked.path) == ("POST", "/mcp")
            await asked.fails(-32603, "enough", status="400 Bad Request")
            with pytest.raises(McpError, match="enough"):
                await doing
        discover = server.all[0]
        assert head(discover)["mcp-method"] == "server/discover"


@pytest.mark.parametrize("revision", HANDSHAKES)
@both_loops
async def test_the_handshake_era(revision: str) -> None:
    """The session on every later request, its revision too from 2025-06-18 on; on `initialize`
    neither.

    `HTL-02` to `HTL-05`, `HTL-24`, `HTL-40`, `HTL-47`, `HTL-48`.
    """
    async with talking(revision) as (server, client):
        doing = begun(client.call_tool("add", {"a": 1}))
        call = await server.next("tools/call")
        await call.gives(result())
        await doing
        client.roots_changed()
    version = {"mcp-protocol-version": revision} if revision >= R3 else {}
    by_key = {asked.key: head(asked) for asked in server.all}
    post = {"content-type": "application/json", "accept": BOTH}
    assert by_key == {
        "initialize": post,
        "notifications/initialized": {**post, **version, "mcp-session-id": SESSION},
        "GET": {"accept": "text/event-stream", **version, "mcp-session-id": SESSION},
        "tools/call": {**post, **version, "mcp-session-id": SESSION},
        "DELETE": {"accept": "text/event-stream", **version, "mcp-session-id": SESSION},
    }
    assert all(isinstance(asked.body, dict) for asked in server.all)


@both_loops
async def test_the_revision_that_was_agreed_on_is_said() -> None:
    """The server chose an older one: that is what the header says from then on (`HTL-48`)."""
    async with scripted() as server:
        server.on["server/discover"] = lambda asked: asked.says("400 Bad Request")
        told = {
            "protocolVersion": R3,
            "capabilities": {},
            "serverInfo": {"name": "old", "version": "1"},
        }
        server.on["initialize"] = lambda asked: asked.gives(told)
        async with client_of(server.url) as client:
            assert client.revision == R3
        assert [head(asked).get("mcp-protocol-version") for asked in server.all[2:]] == [R3, R3]
        assert [asked.key for asked in server.all[2:]] == [
            "notifications/initialized",
            "GET",
        ]  # and no DELETE without a session


@pytest.mark.parametrize("revision", REVISIONS)
@both_loops
async def test_the_headers_of_the_user(revision: str) -> None:
    """They and the token are on every request; what the protocol fills in is not theirs to say
    twice.
    """
    own = {
        "X-Tenant": "Zürich".encode().decode("latin-1"),
        "Accept": "*/*",
        "mcp-method": "ping",
        "Mcp-Session-Id": "stolen",
    }
    async with talking(revision, headers=own, token="t0k") as (server, client):
        doing = begun(client.call_tool("add"))
        await (await server.next()).gives(result())
        await doing
    for asked in server.all:
        assert asked.header("authorization") == "Bearer t0k"
        assert asked.header("x-tenant") == own["X-Tenant"]
        assert asked.header("accept") in (BOTH, "text/event-stream")
        assert asked.header("mcp-method") in (None, asked.method)
        assert asked.header("mcp-session-id") in (None, SESSION)


@pytest.mark.parametrize(
    "headers, token",
    [
        ({"X": "a\nb"}, None),
        ({"X": "a\r\nEvil: 1"}, None),
        ({}, "t0k\n"),
        ({"X": "“quoted”"}, None),
    ],
)
def test_headers_that_cannot_be_sent(headers: dict[str, str], token: str | None) -> None:
    """A line's end in a token that was read from a file is found at once, and its value is not
    shown.
    """
    with pytest.raises(ValueError, match="line's end") as caught:
        Http("http://127.0.0.1:1/", headers=headers, token=token)
    assert "t0k" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["", "/mcp", "ftp://host/", "http://", "host:80/mcp", "https:///mcp"]
)
def test_what_is_no_address(url: str) -> None:
    """Said when the transport is made, with what it should be like."""
    with pytest.raises(ValueError, match="http://host/path"):
        Http(url)


NAMES = [
    "plain",
    "with space",
    "ünïcode",
    " around ",
    "tab\tinside",
    "=?base64?Zm9v?=",
    "=?base64?half",
    "a,b;c=d",
    "\U0001f388",
    "line\nend",
    "",
]


@pytest.mark.parametrize("name", NAMES)
@both_loops
async def test_names_that_a_header_cannot_hold(name: str) -> None:
    """`Mcp-Name` is in base64 where it must be, and says the same as the body (`HDR-04`,
    `HDR-09`).
    """
    async with talking(R5) as (server, client):
        for work, field in (
            (client.call_tool, "name"),
            (client.get_prompt, "name"),
            (client.read_resource, "uri"),
        ):
            doing = begun(work(name))
            asked = await server.next()
            said = asked.header("mcp-name")
            assert said is not None
            assert decode_value(said) == name == asked.params[field]
            assert (said == name) == (
                name in ("plain", "with space", "=?base64?half", "a,b;c=d", "")
            )
            await asked.fails(-32602, "no")
            with pytest.raises(McpError):
                await doing


# -- arguments that headers repeat -----------------------------------------------------------------

SCHEMA: dict[str, Any] = {
    "region": {"type": "string", "x-mcp-header": "Region"},
    "count": {"type": "integer", "x-mcp-header": "Count"},
    "fast": {"type": "boolean", "x-mcp-header": "Fast"},
    "deep": {"type": "object", "properties": {"er": {"type": "string", "x-mcp-header": "Deep-Er"}}},
    "other": {"type": "string"},
}


def b64(text: str) -> str:
    """The base64 form of a header's value."""
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


MIRRORED: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"region": "eu-west"}, {"region": "eu-west"}),
    ({"region": ""}, {"region": ""}),
    ({"region": None}, {}),
    ({}, {}),
    ({"other": "secret"}, {}),
    ({"count": 42}, {"count": "42"}),
    ({"count": -(2**53) + 1}, {"count": "-9007199254740991"}),
    ({"count": 0, "fast": False}, {"count": "0", "fast": "false"}),
    ({"fast": True}, {"fast": "true"}),
    ({"deep": {"er": "x"}}, {"deep-er": "x"}),
    ({"deep": {}}, {}),
    ({"deep": "no object"}, {}),
    ({"region": "Zürich"}, {"region": b64("Zürich")}),
    ({"region": " eu"}, {"region": b64(" eu")}),
    ({"region": "eu\t"}, {"region": b64("eu\t")}),
    ({"region": "a\r\nEvil: 1"}, {"region": b64("a\r\nEvil: 1")}),
    ({"region": "=?base64?ZXU=?="}, {"region": b64("=?base64?ZXU=?=")}),
    ({"region": "=?BASE64?ZXU=?="}, {"region": "=?BASE64?ZXU=?="}),
    ({"region": "=?base64?ZXU="}, {"region": "=?base64?ZXU="}),
    (
        {"region": "eu", "count": 1, "fast": True, "deep": {"er": "e"}},
        {"region": "eu", "count": "1", "fast": "true", "deep-er": "e"},
    ),
]


async def known(server: ScriptedServer, client: Any, *tools: dict[str, Any]) -> list[str]:
    """List the tools; the names of those that the client shows."""
    doing = begun(client.list_tools())
    await (await server.next("tools/list")).gives(listed(*tools))
    return [one.name for one in await doing]


def repeated(asked: Asked) -> dict[str, str]:
    """The headers that repeat arguments."""
    return {
        name.lower()[10:]: value
        for name, value in asked.seen.headers
        if name.lower().startswith("mcp-param-")
    }


@both_loops
async def test_arguments_are_repeated_in_headers() -> None:
    """Every form of a value, and every way of not being there (`XMH-07`, `XMH-11` to `XMH-17`)."""
    async with talking(R5) as (server, client):
        assert await known(server, client, tool("act", SCHEMA)) == ["act"]
        for arguments, expected in MIRRORED:
            doing = begun(client.call_tool("act", arguments))
            asked = await server.next("tools/call")
            assert repeated(asked) == expected, arguments
            assert asked.params.get("arguments", {}) == arguments
            await asked.gives(result())
            await doing


@given(st.text(max_size=40))
def test_any_text_survives_its_header(text: str) -> None:
    """What a header says is what the argument is, however odd (`XMH-14`, `XMH-15`, `XMH-16`)."""
    said = argument_value(text)
    assert said is not None
    assert decode_value(said) == text
    assert said.isascii()
    assert said == said.strip()
    assert said.isprintable()


BROKEN: dict[str, dict[str, Any]] = {
    "no token": {"a": {"type": "string", "x-mcp-header": ""}},
    "a space": {"a": {"type": "string", "x-mcp-header": "My Region"}},
    "a colon": {"a": {"type": "string", "x-mcp-header": "Region:"}},
    "a line's end": {"a": {"type": "string", "x-mcp-header": "Region\r\nEvil: 1"}},
    "no string": {"a": {"type": "string", "x-mcp-header": 7}},
    "twice": {
        "a": {"type": "string", "x-mcp-header": "Region"},
        "b": {"type": "string", "x-mcp-header": "REGION"},
    },
    "a number": {"a": {"type": "number", "x-mcp-header": "Region"}},
    "an object": {"a": {"type": "object", "x-mcp-header": "Region"}},
    "within an array": {
        "a": {"type": "array", "items": {"type": "string", "x-mcp-header": "Region"}}
    },
    "within anyOf": {"a": {"anyOf": [{"type": "string", "x-mcp-header": "Region"}]}},
    **{
        f"within {key}": {"a": {key: [{"type": "string", "x-mcp-header": "Region"}]}}
        for key in ("oneOf", "allOf", "prefixItems")
    },
    **{
        f"within {key}": {
            "a": {key: {"properties": {"b": {"type": "string", "x-mcp-header": "Region"}}}}
        }
        for key in ("not", "if", "then", "else", "contains", "additionalProperties")
    },
    "within $defs": {
        "a": {
            "$defs": {"b": {"type": "string", "x-mcp-header": "Region"}},
            "$ref": "#/properties/a/$defs/b",
        }
    },
}


@pytest.mark.parametrize("why", BROKEN)
async def test_tools_with_broken_annotations_are_left_out(
    why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """That tool is, the others are not; the log says which and why (`XMH-02` to `XMH-05`, `XMH-08`,
    `XMH-09`).
    """
    async with talking(R5) as (server, client):
        with caplog.at_level(logging.WARNING, "interlock.client"):
            assert await known(
                server, client, tool("good", SCHEMA), tool("bad", BROKEN[why]), tool("plain")
            ) == ["good", "plain"]
    (line,) = [record.getMessage() for record in caplog.records]
    assert "'bad' is left out: " in line
    assert "\n" not in line


@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_older_revisions_know_nothing_of_it(revision: str) -> None:
    """There no tool is left out, and no argument repeated."""
    async with talking(revision) as (server, client):
        assert await known(server, client, tool("good", SCHEMA), tool("bad", BROKEN["twice"])) == [
            "good",
            "bad",
        ]
        doing = begun(client.call_tool("good", {"region": "eu"}))
        asked = await server.next("tools/call")
        assert repeated(asked) == {}
        await asked.gives(result())
        await doing


MISMATCH = (-32020, "Missing header Mcp-Param-Region", None, "400 Bad Request")


@both_loops
async def test_the_schema_is_not_known() -> None:
    """The call is made without headers; refused with -32020 the tools are listed, all pages, and it
    is made again with them (`XMH-18`).
    """
    async with talking(R5) as (server, client):
        doing = begun(client.call_tool("act", {"region": "eu"}))
        first = await server.next("tools/call")
        assert repeated(first) == {}
        await first.fails(*MISMATCH)
        await (await server.next("tools/list")).gives(listed(tool("else"), nextCursor="2"))
        page = await server.next("tools/list")
        assert page.params["cursor"] == "2"
        await page.gives(listed(tool("act", SCHEMA)))
        again = await server.next("tools/call")
        assert repeated(again) == {"region": "eu"}
        assert again.id != first.id
        await again.gives(result("there"))
        assert (await doing).text == "there"


@both_loops
async def test_the_schema_has_changed() -> None:
    """What was known is out of date: the same, and only once (`XMH-18`)."""
    async with talking(R5) as (server, client):
        await known(server, client, tool("act", SCHEMA))
        renamed = {"region": {"type": "string", "x-mcp-header": "Place"}}
        doing = begun(client.call_tool("act", {"region": "eu"}))
        await (await server.next("tools/call")).fails(*MISMATCH)
        await (await server.next("tools/list")).gives(listed(tool("act", renamed)))
        again = await server.next("tools/call")
        assert repeated(again) == {"place": "eu"}
        await again.fails(*MISMATCH)
        with pytest.raises(McpError) as caught:
            await doing
        assert caught.value.code == -32020


@both_loops
async def test_the_schema_is_as_it_was() -> None:
    """The list says nothing new: the server's error is raised, and the call is not made again."""
    async with talking(R5) as (server, client):
        await known(server, client, tool("act", SCHEMA))
        doing = begun(client.call_tool("act", {"region": "eu"}))
        await (await server.next("tools/call")).fails(*MISMATCH)
        await (await server.next("tools/list")).gives(listed(tool("act", SCHEMA)))
        with pytest.raises(McpError) as caught:
            await doing
        assert caught.value.code == -32020
        assert server.count("tools/call") == 1


# -- the session's id ------------------------------------------------------------------------------

IDS = ["x", "!~", "0" * 500, "a=b;c", "eyJhbGciOi.J9.x-_"]


@pytest.mark.parametrize("id", IDS)
@both_loops
async def test_any_good_session_id_is_sent_back(id: str) -> None:
    """Byte by byte (`HTL-38`, `HTL-40`)."""
    async with talking(R4, session=id) as (server, _client):
        pass
    assert [asked.header("mcp-session-id") for asked in server.all] == [None, id, id, id]


@pytest.mark.parametrize("id", ["", "a b", "tab\there", "ü".encode().decode("latin-1"), "a, b"])
@both_loops
async def test_bad_session_ids(id: str) -> None:
    """One that may not be is an error of the server, in words; it is never sent (`HTL-38`)."""
    async with scripted(session=id) as server:
        with pytest.raises((ProtocolError, McpError), match="session id"):
            await client_of(server.url, R4).open()
        assert all(asked.header("mcp-session-id") is None for asked in server.all)


async def test_session_ids_and_tokens_are_told_to_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Neither logs nor errors hold them, nor what stands in the query of the address (`HTL-46`)."""
    secrets = (SESSION, "t0k", "s3cret")
    with caplog.at_level(logging.DEBUG, "interlock"):
        async with (
            scripted() as server,
            client_of(f"{server.url}?key=s3cret", R4, token="t0k") as client,
        ):
            server.on["GET"] = lambda asked: asked.breaks()
            words = []
            for way in ("refused", "sent away", "broken", "broken on the way"):
                doing = begun(client.call_tool("act"))
                asked = await server.next("tools/call")
                match way:
                    case "refused":
                        await asked.says("500 Oh no")
                    case "sent away":
                        await asked.says(
                            "307 Over there", b"", "Location: http://127.0.0.2/?key=s3cret"
                        )
                    case "broken on the way":
                        await asked.streams(event({"jsonrpc": "2.0"}, id="1"))
                await asked.breaks()
                with pytest.raises(Unreachable) as caught:
                    await doing
                words.append(str(caught.value))
            client.roots_changed()
    for text in [*words, caplog.text]:
        assert not any(secret in text for secret in secrets), text
