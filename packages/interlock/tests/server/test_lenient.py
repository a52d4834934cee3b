"""Arguments that models write as strings: read as what was surely meant, and nothing that fits is
touched.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from interlock import Client, Context, Server
from interlock.schema import compile
from interlock.typed.lenient import coerced
from interlock.typed.signature import ArgumentsError, Signature, signature_of


@dataclasses.dataclass
class Point:
    x: int
    label: str = ""
    more: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Node:
    value: int
    next: Node | None = None


def taking(annotation: Any, *, lenient: bool = True) -> Signature:
    """The signature of a function with one parameter, `x`."""

    def function(x: Any) -> None: ...

    function.__annotations__["x"] = annotation
    return signature_of(function, context_type=Context, lenient=lenient)


def read(signature: Signature, value: Any) -> Any:
    return signature.decode(json.dumps({"x": value}).encode())["x"]


READ: list[tuple[Any, Any, Any]] = [
    # an annotation, what was sent, and what the function gets
    (int, "5", 5),
    (int, "-12", -12),
    (int, " 5 ", 5),
    (int, "5.0", 5),
    (int, "1e3", 1000),
    (int, 5.0, 5),
    (int, "12345678901234567890", 12345678901234567890),
    (float, "5", 5.0),
    (float, "-0.5", -0.5),
    (bool, "true", True),
    (bool, "False", False),
    (int | None, "null", None),
    (int | None, "7", 7),
    (int | bool, "true", True),
    (Literal[1, 2], "2", 2),
    (list[int], "[1, 2]", [1, 2]),
    (list[int], '["1", 2]', [1, 2]),
    (list[int], ["1", "2"], [1, 2]),
    (dict[str, int], '{"a": 1}', {"a": 1}),
    (dict[str, int], {"a": "1"}, {"a": 1}),
    (tuple[int, str], ["1", "2"], (1, "2")),
    (Point, '{"x": "5", "label": "7"}', Point(5, "7")),
    (Point, {"x": "5", "label": "7", "more": "[1]"}, Point(5, "7", [1])),
    (Point | None, {"x": "5"}, Point(5)),
    (list[Point], '[{"x": "1"}]', [Point(1)]),
    (Node, {"value": "1", "next": {"value": "2"}}, Node(1, Node(2))),
    (Annotated[int, Meta(ge=1)], "5", 5),
]

LEFT: list[tuple[Any, Any, str]] = [
    # an annotation, what was sent, and a piece of what is wrong with it
    (int, "five", '"five" is not of type "integer"'),
    (int, "5.5", '"5.5" is not of type "integer"'),
    (int, "", "is not of type"),
    (int, "0x10", "is not of type"),
    (int, "١", "is not of type"),
    (int, "1_000", "is not of type"),
    (int, "9" * 101, "is not of type"),
    (int, "true", "is not of type"),
    (int, True, "is not of type"),
    (int, None, "is not of type"),
    (int, "[5]", "is not of type"),
    (float, "NaN", "is not of type"),
    (float, "1e999", "is not of type"),
    (bool, "1", "is not of type"),
    (bool, "yes", "is not of type"),
    (bool, 1, "is not of type"),
    (str, 5, "is not of type"),
    (str, True, "is not of type"),
    (str, [], "is not of type"),
    (list[int], "1,2", "is not of type"),
    (list[int], "[1", "is not of type"),
    (list[int], '{"a": 1}', "is not of type"),
    (list[str], [1], "is not of type"),
    (Literal["a"], "A", "is not"),
    (Annotated[int, Meta(ge=10)], "5", "5 is less than the minimum of 10"),
    (Point, '{"x": "east"}', '$.x.x: "east" is not of type "integer"'),
]


@pytest.mark.parametrize("annotation, sent, got", READ)
def test_what_is_read_as_it_was_meant(annotation: Any, sent: Any, got: Any) -> None:
    """The value has the type of its parameter, on whatever level it stands."""
    value = read(taking(annotation), sent)
    assert (type(value), value) == (type(got), got)


@pytest.mark.parametrize("annotation, sent, words", LEFT)
def test_what_is_refused_as_ever(annotation: Any, sent: Any, words: str) -> None:
    """Where there is any doubt the model hears what is wrong."""
    with pytest.raises(ArgumentsError) as caught:
        read(taking(annotation), sent)
    assert words in str(caught.value)


@pytest.mark.parametrize("annotation, sent, got", READ)
def test_a_strict_signature_reads_strings_as_strings(annotation: Any, sent: Any, got: Any) -> None:
    """JSON Schema's own rule, that 5.0 is an integer, holds there too; the schema that is listed is
    the same.
    """
    strict = taking(annotation, lenient=False)
    assert strict.schema == taking(annotation).schema
    if sent == 5.0:
        assert read(strict, sent) == got
        return
    with pytest.raises(ArgumentsError):
        read(strict, sent)


ANNOTATIONS = [
    int,
    float,
    bool,
    str,
    Any,
    int | None,
    str | int,
    list[int],
    list[str],
    dict[str, int],
    dict[str, Any],
    Point,
    Node,
    Point | None,
    Literal["1", 1],
    Literal[1, 2],
    list[Point],
    tuple[int, str],
    str | list[int],
    float | None,
    Point | str,
]
LIKELY = st.sampled_from(["5", "5.0", "true", "False", "null", "[1]", '{"x": 1}', "", "a", '"5"'])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([5.0, 0.5]) | LIKELY,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["x", "label", "more", "value", "next"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(st.sampled_from(ANNOTATIONS), VALUES)
def test_what_fits_strictly_is_never_changed(annotation: Any, value: Any) -> None:
    """Whatever a strict signature takes, a lenient one reads as the same value of the same type."""
    try:
        strictly = read(taking(annotation, lenient=False), value)
    except ArgumentsError:
        return
    leniently = read(taking(annotation), value)
    assert (type(leniently), repr(leniently)) == (type(strictly), repr(strictly))


@given(st.sampled_from(ANNOTATIONS), VALUES)
def test_what_a_schema_allows_is_left_as_it_is(annotation: Any, value: Any) -> None:
    """Also by itself; only a float without a fraction may become the integer that it is."""
    root = taking(annotation).schema
    schema = root["properties"]["x"]
    if compile({**schema, "$defs": root.get("$defs", {})}).is_valid(value):
        assert coerced(value, schema, root) == value


@given(VALUES)
def test_a_string_parameter_gets_what_was_sent_or_nothing(value: Any) -> None:
    """What looks like a number, a list or a word of JSON stays a string."""
    try:
        assert read(taking(str), value) == value
    except ArgumentsError:
        assert not isinstance(value, str)


@given(VALUES, VALUES)
def test_any_schema_at_all_is_looked_at_without_an_exception(value: Any, schema: Any) -> None:
    """An author's own schema may hold anything, references to itself among them."""
    root = {"$defs": {"a": {"$ref": "#/$defs/a"}, "b": schema}}
    coerced(value, schema, root)
    for name in ("a", "b", "c"):
        coerced(value, {"$ref": f"#/$defs/{name}"}, root)
        coerced(value, {"anyOf": [{"$ref": f"#/$defs/{name}"}, {"type": ["integer", 5]}]}, root)


def test_a_tool_may_differ_from_its_server() -> None:
    """Either way."""

    async def add(a: int) -> int:
        return a

    for whole, own, forgives in [
        (True, None, True), (False, None, False), (True, False, False), (False, True, True)
    ]:  # fmt: skip
        server = Server("adds", lenient=whole)
        server.add_tool(add, lenient=own)
        tool = server.tools.get("add")
        assert tool is not None
        assert tool.signature.lenient is forgives


SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}


async def test_a_tool_with_its_own_schema_is_lenient_too() -> None:
    """By the same rules, and not where it is told to be strict."""
    server = Server("raw")

    def take(arguments: dict[str, Any]) -> str:
        return json.dumps(arguments)

    server.add_tool(take, name="lenient", input_schema=SCHEMA)
    server.add_tool(take, name="strict", input_schema=SCHEMA, lenient=False)
    arguments = {"n": "5", "tags": '["5"]', "other": "5"}
    async with Client(server) as client:
        result = await client.call_tool("lenient", arguments)
        assert json.loads(result.text) == {"n": 5, "tags": ["5"], "other": "5"}
        refused = await client.call_tool("strict", arguments)
        assert refused.is_error
        assert '"5" is not of type "integer"' in refused.text
        wrong = await client.call_tool("lenient", {"n": "five", "tags": "[]"})
        assert wrong.text.count("is not of type") == 1
