"""Tools whose arguments are described by a schema of the author's: what is checked, how it is
handed on, what is refused.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from interlock import Context, Server
from interlock.typed.raw_schema import RawSignature
from interlock.typed.signature import ArgumentsError
from tests.server.by_hand import call, listed, text

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1},
        "via": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["city"],
    "additionalProperties": False,
}


async def test_the_schema_is_listed_and_the_dict_handed_on():
    """As the author wrote it, in both cases; the function may be plain or async, and take a Context
    (`TOL-02`).
    """
    server = Server("raw")
    seen: list[Any] = []

    @server.tool(input_schema=SCHEMA)
    async def plan(arguments: dict[str, Any], ctx: Context) -> str:
        seen.append((arguments, ctx.caller.revision))
        return arguments["city"]

    @server.tool(input_schema=SCHEMA)
    def plan_slowly(arguments: dict[str, Any]) -> str:
        return arguments["city"]

    assert [tool["inputSchema"] for tool in (await listed(server, "tools/list"))["tools"]] == [
        SCHEMA,
        SCHEMA,
    ]
    arguments = {"city": "Ulm", "via": ["Bonn"]}
    assert await text(server, "plan", arguments) == "Ulm"
    assert await text(server, "plan_slowly", arguments) == "Ulm"
    assert seen == [(arguments, "2026-07-28")]
    await server.aclose()


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({}, "'city' is a required property|city"),
        ({"city": 5}, r"\$\.city: "),
        ({"city": "Ulm", "days": 0}, r"\$\.days: "),
        ({"city": "Ulm", "via": ["Bonn", 5]}, r"\$\.via\.1: "),
        ({"city": "Ulm", "country": "D"}, "country"),
        ([], r"^Invalid arguments for tool plan: \$: "),
    ],
)
async def test_arguments_that_do_not_fit(arguments: Any, words: str):
    """Words for the model, that say where (`TOL-16`)."""
    server = Server("raw")

    @server.tool(input_schema=SCHEMA)
    async def plan(arguments: dict[str, Any]) -> str:
        raise AssertionError("this is never reached")

    result = await call(server, "plan", arguments)
    assert result.is_error
    assert result.text.startswith("Invalid arguments for tool plan: ")
    assert re.search(words, result.text), result.text


async def test_no_arguments_at_all():
    """A call without arguments is one with none of them."""
    server = Server("raw")

    @server.tool(input_schema={"type": "object"})
    async def count(arguments: dict[str, Any]) -> int:
        return len(arguments)

    assert await text(server, "count") == "0"


@pytest.mark.parametrize("raw", [b"{", b'{"city": "\xff"}', b"[" * 100_000, b""])
def test_arguments_that_are_no_json(raw: bytes):
    """No JSON, no UTF-8, or nested too deeply."""
    signature = RawSignature(lambda arguments: None, SCHEMA, Context)
    with pytest.raises(ArgumentsError, match="not valid JSON"):
        signature.decode(Raw(raw))


@pytest.mark.parametrize(
    "schema, words",
    [
        ({}, '"type": "object"'),
        ({"type": "array"}, '"type": "object"'),
        ({"type": ["object", "null"]}, '"type": "object"'),
        ({"type": "object", "properties": {"a": {"type": "strange"}}}, "cannot be used"),
        ({"type": "object", "$ref": "https://example.com/schema"}, "cannot be used"),
    ],
)
def test_schemas_that_cannot_be_used(schema: dict[str, Any], words: str):
    """Refused when the tool is made (`TOL-03`)."""
    with pytest.raises(ValueError, match=words):
        RawSignature(lambda arguments: None, schema, Context)


def with_two(a: Any, b: Any) -> None: ...
def with_none() -> None: ...
def with_context_only(ctx: Context) -> None: ...
def with_many(*arguments: Any) -> None: ...
def with_keywords(**arguments: Any) -> None: ...
def with_position(arguments: Any, /) -> None: ...


@pytest.mark.parametrize(
    "function, taken",
    [
        (with_two, "not a: .*, b: "),
        (with_none, "not nothing"),
        (with_context_only, "not nothing"),
        (with_many, r"not \*arguments"),
        (with_keywords, r"not \*\*arguments"),
        (with_position, "not arguments"),
    ],
)
def test_functions_that_cannot_take_the_dict(function: Any, taken: str):
    """One plain parameter it must be, beside a Context."""
    with pytest.raises(
        TypeError, match=f"takes the arguments as one dict, in one plain parameter, {taken}"
    ):
        RawSignature(function, SCHEMA, Context)


def test_the_authors_schema_is_not_changed():
    """What is listed is a copy; the author's dict stays as it was."""
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "string"}},
    }
    before = msgspec.json.encode(schema)
    signature = RawSignature(lambda arguments: None, schema, Context)
    assert signature.decode(b'{"a": "x"}') == {"arguments": {"a": "x"}}
    assert msgspec.json.encode(schema) == before
