"""Arguments that HTTP headers repeat: what counts as the same, what is refused, and when nothing is
looked at.
"""

from __future__ import annotations

import base64
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Raw

from interlock import McpError, Server
from interlock import types as t
from interlock.exchange import ExchangeTransport
from interlock.server.calls.header_parameters import check_mirrors
from tests.server.by_hand import call


class Mirrored(ExchangeTransport):
    """A transport whose headers repeat arguments."""

    __slots__ = ("_headers",)

    def __init__(self, headers: dict[str, str]) -> None:
        self._headers = headers

    @property
    def mirrored(self) -> dict[str, str]:
        return self._headers


MIRRORS = {"Tenant": ("tenant",), "Deep": ("outer", "inner")}


def sealed(text: str) -> str:
    """A value in the form for what a header cannot hold as it is."""
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def check(headers: dict[str, str], arguments: Any) -> None:
    check_mirrors(
        MIRRORS,
        {f"mcp-param-{name}": value for name, value in headers.items()},
        Raw(msgspec.json.encode(arguments)),
    )


@pytest.mark.parametrize(
    "value, header",
    [
        ("acme", "acme"),
        ("acme", " \tacme \t"),
        ("two words", "two words"),
        ("", ""),
        ("a\tb", "a\tb"),
        ("acme", sealed("acme")),
        ("zürich", sealed("zürich")),
        ("", sealed("")),
        (" edge ", sealed(" edge ")),
        (sealed("acme"), sealed(sealed("acme"))),
        ("=?base64?half", "=?base64?half"),
        ("half?=", "half?="),
        ("=?base64?=", "=?base64?="),
        ("=?BASE64?YQ==?=", "=?BASE64?YQ==?="),
        ("true", "true"),
        ("42", "42"),
        (True, "true"),
        (False, "false"),
        (42, "42"),
        (42, "42.0"),
        (42, "042"),
        (42.0, "42"),
        (42.0, "42.000"),
        (-7, "-7"),
        (0, "-0"),
        (9007199254740991, "9007199254740991"),
        (42, sealed("42")),
    ],
)
def test_the_same_on_both_sides(value: Any, header: str):
    """Strings by their characters, numbers by their value, with space around the header left out
    (`XMH-17`, `XMH-21`, `HDR-08`, `HDR-10`).
    """
    check({"tenant": header}, {"tenant": value})


@pytest.mark.parametrize(
    "value, header",
    [
        ("acme", "Acme"),
        ("acme", "acme2"),
        ("acme", ""),
        ("", "acme"),
        ("acme", sealed("acme ")),
        (True, "True"),
        (True, "1"),
        (1, "true"),
        (42, "43"),
        (42, "42.5"),
        (42, "4_2"),
        (42, "+42"),
        (42, "4.2e1"),
        (42, "42."),
        (42, "0x2a"),
        (42, ""),
        (42, "nan"),
        (42, "four"),
        (9007199254740992, "9007199254740993"),
        ({"a": 1}, '{"a":1}'),
        (["a"], "a"),
    ],
)
def test_what_differs_is_refused(value: Any, header: str):
    """With the error -32020 and the name of the header (`XMH-19`, `HDR-07`)."""
    with pytest.raises(
        McpError,
        match=r"Header mismatch: the header Mcp-Param-Tenant differs from the argument tenant",
    ) as caught:
        check({"tenant": header}, {"tenant": value})
    assert caught.value.code == t.HEADER_MISMATCH == -32020


@pytest.mark.parametrize(
    "header, words",
    [
        ("zürich", "characters that a header cannot have"),
        ("a\x00b", "characters that a header cannot have"),
        ("=?base64?a?=", "not valid base64"),
        ("=?base64?YQ=?=", "not valid base64"),
        ("=?base64?Y Q==?=", "not valid base64"),
        ("=?base64?_-8=?=", "not valid base64"),
        ("=?base64?/w==?=", "not valid base64 of UTF-8"),
    ],
)
def test_headers_that_cannot_be_read(header: str, words: str):
    """Invalid characters and undecodable base64 are refused (`XMH-19`)."""
    with pytest.raises(McpError, match=words) as caught:
        check({"tenant": header}, {"tenant": "anything"})
    assert caught.value.code == t.HEADER_MISMATCH


def test_what_is_there_on_one_side_only():
    """An argument needs its header; a header needs an argument; what is absent or null needs none
    (`XMH-19`, `XMH-20`).
    """
    check({}, {})
    check({}, {"tenant": None, "outer": None})
    check({}, {"outer": {"other": 1}})
    with pytest.raises(McpError, match="the header Mcp-Param-Tenant is missing"):
        check({}, {"tenant": ""})
    with pytest.raises(McpError, match="the header Mcp-Param-Tenant has no argument tenant"):
        check({"tenant": "acme"}, {"tenant": None})
    with pytest.raises(McpError, match=r"the header Mcp-Param-Deep has no argument outer\.inner"):
        check({"deep": "x"}, {"outer": ["inner"]})


def test_arguments_that_are_no_json_are_left_to_their_reader():
    """Who reads the arguments says what is wrong with them."""
    check_mirrors(MIRRORS, {}, Raw(b"{"))


@given(st.text(), st.text())
def test_every_string_travels(value: str, other: str):
    """Written as a client writes it, any string is found to be the same, and any other one is not
    (`XMH-14`, `XMH-15`, `XMH-16`).
    """
    plain = (
        all(" " <= c <= "~" for c in value)
        and value == value.strip(" \t")
        and not value.startswith("=?base64?")
    )
    header = value if plain else sealed(value)
    check({"tenant": header}, {"tenant": value})
    if other != value:
        with pytest.raises(McpError):
            check({"tenant": header}, {"tenant": other})


@given(st.integers(-(2**53) + 1, 2**53 - 1), st.integers(-(2**53) + 1, 2**53 - 1))
def test_every_whole_number_travels(value: int, other: int):
    """Numbers are the same where they are exactly the same (`XMH-21`)."""
    for header in (str(value), f"{value}.0"):
        check({"tenant": header}, {"tenant": value})
        if other != value:
            with pytest.raises(McpError):
                check({"tenant": header}, {"tenant": other})


Tenant = Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Tenant"})]


async def test_the_tool_handler_looks_where_there_are_headers():
    """Over HTTP the mirrors are checked before the tool runs; where an exchange has no headers
    there is nothing to check (`XMH-19`).
    """
    server = Server("mirrors")
    ran: list[str] = []

    @server.tool
    async def visit(tenant: Tenant, city: str = "Ulm") -> str:
        ran.append(tenant)
        return f"{tenant} {city}"

    (tool,) = server.tools
    assert tool.listing.input_schema["properties"]["tenant"] == {
        "type": "string",
        "x-mcp-header": "Tenant",
    }
    assert (
        await call(
            server, "visit", {"tenant": "acme"}, transport=Mirrored({"mcp-param-tenant": "acme"})
        )
    ).text == "acme Ulm"
    assert (await call(server, "visit", {"tenant": "acme"})).text == "acme Ulm"
    for headers in ({}, {"mcp-param-tenant": "other"}):
        with pytest.raises(McpError, match="Mcp-Param-Tenant"):
            await call(server, "visit", {"tenant": "acme"}, transport=Mirrored(headers))
    with pytest.raises(
        McpError, match="has no argument tenant"
    ):  # though an argument is missing, too
        await call(server, "visit", {}, transport=Mirrored({"mcp-param-tenant": "acme"}))
    assert ran == ["acme", "acme"]


async def test_mirrors_of_a_schema_written_by_hand():
    """Nested properties are reached by their path; headers that no tool asks for are let through
    (`XMH-11`, `HDR-14`).
    """
    server = Server("mirrors")
    inner = {
        "type": "object",
        "properties": {"region": {"type": "integer", "x-mcp-header": "Region"}},
    }

    @server.tool(input_schema={"type": "object", "properties": {"place": inner}})
    async def visit(arguments: dict[str, Any]) -> str:
        return str(arguments["place"]["region"])

    place = {"place": {"region": 7}}
    assert (
        await call(
            server,
            "visit",
            place,
            transport=Mirrored({"mcp-param-region": "7.0", "mcp-param-other": "?"}),
        )
    ).text == "7"
    with pytest.raises(McpError, match=r"differs from the argument place\.region"):
        await call(server, "visit", place, transport=Mirrored({"mcp-param-region": "8"}))


@pytest.mark.parametrize(
    "schema, words",
    [
        ({"type": "number", "x-mcp-header": "A"}, "only integer, string and boolean"),
        ({"type": "string", "x-mcp-header": "A B"}, "not a header token"),
        (
            {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}},
            "through `properties` alone",
        ),
    ],
)
def test_annotations_that_cannot_be(schema: dict[str, Any], words: str):
    """A tool that no HTTP client could call is refused when it is made (`XMH-02`, `XMH-04`,
    `XMH-05`).
    """
    with pytest.raises(
        ValueError, match=f"the input schema of tool 'visit' cannot be used: .*{words}"
    ):

        @Server("mirrors").tool(input_schema={"type": "object", "properties": {"a": schema}})
        async def visit(arguments: dict[str, Any]) -> None: ...
