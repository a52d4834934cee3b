"""Functions as tools' input: what the schema says, what the decoder takes, and what is said of
arguments that do not fit.
"""

from __future__ import annotations

import datetime as dt
import functools
import subprocess
import sys
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, NewType, TypedDict, TypeVar

import annotated_types as at
import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import Meta, Raw, Struct
from pydantic import BaseModel, BeforeValidator, Field

from interlock.schema import compile
from interlock.typed.adapters import enc_hook
from interlock.typed.signature import ArgumentsError, Signature, signature_of
from interlock.typed.type_hints import doc_of
from tests.server.shapes import (
    PLAIN,
    WRITTEN,
    Box,
    Cat,
    Colour,
    Dog,
    Node,
    Order,
    Point,
    Seat,
    Typed,
    Weather,
    json_values,
    spoilt,
    typed,
)

if TYPE_CHECKING:
    from nowhere import Nothing  # type: ignore[import-not-found] # a name that only type checkers see

State = TypeVar("State")


class Context(Generic[State]):
    """Stands for the server's Context."""


def sign(function: Callable[..., Any], **words: str) -> Signature:
    return signature_of(function, context_type=Context, description_of=words)


def taking(annotation: Any, **defaults: Any) -> Signature:
    """The signature of a function of one parameter, `x`."""

    def function(x: Any) -> None: ...

    function.__annotations__ = {"x": annotation}
    if defaults:
        function.__defaults__ = (defaults["default"],)
    return sign(function)


def property_of(annotation: Any, **defaults: Any) -> Any:
    schema = taking(annotation, **defaults).schema
    return schema["properties"]["x"]


def json(value: Any) -> bytes:
    return msgspec.json.encode(value, enc_hook=enc_hook)


def refused(signature: Signature, arguments: Any) -> list[str]:
    with pytest.raises(ArgumentsError) as caught:
        signature.decode(json(arguments))
    assert str(caught.value) == "; ".join(caught.value.problems)
    return list(caught.value.problems)


# The schema.


async def add(a: int, b: int = 2) -> int:
    return a + b


def test_a_small_function() -> None:
    """The whole schema, words of the docstring included; names in the order of the parameters
    (`TOL-02`).
    """
    signature = sign(add, a="The first.")
    assert signature.schema == {
        "type": "object",
        "properties": {
            "a": {"description": "The first.", "type": "integer"},
            "b": {"type": "integer", "default": 2},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert (signature.names, signature.context) == (("a", "b"), None)
    assert list(signature.schema["properties"]) == ["a", "b"]


def test_no_parameters() -> None:
    """A tool without parameters takes an object without properties (`TOL-03`)."""
    signature = sign(lambda: None)
    assert signature.schema == {"type": "object", "additionalProperties": False}
    assert signature.decode(b"{}") == signature.decode(b"null") == {}


UserId = NewType("UserId", int)


class Ticket(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "annotation, expected",
    [
        (str, {"type": "string"}),
        (Any, {}),
        (object, {}),
        (UserId, {"type": "integer"}),
        (Ticket, {"type": "string"}),
        (TypeVar("T"), {}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Literal["slow", "fast"], {"type": "string", "enum": ["slow", "fast"]}),
        (Literal[Colour.RED, 1], {"enum": ["red", 1]}),
        (
            Colour,
            {"description": "What the sky may be.", "type": "string", "enum": ["red", "blue"]},
        ),
        (Path | str, {"type": "string"}),
        (list[Path], {"type": "array", "items": {"type": "string"}}),
        (list[Any], {"type": "array", "items": {}}),
        (list, {"type": "array", "items": {}}),
        (set[Any], {"type": "array", "items": {}, "uniqueItems": True}),
        (Iterable[int], {"type": "array", "items": {"type": "integer"}}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "items": False,
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (
            dict[int, str],
            {
                "type": "object",
                "propertyNames": {"pattern": "^-?[0-9]+$"},
                "additionalProperties": {"type": "string"},
            },
        ),
        (
            dict[Literal["a"], int],
            {
                "type": "object",
                "propertyNames": {"enum": ["a"]},
                "additionalProperties": {"type": "integer"},
            },
        ),
        (bytes, {"type": "string", "contentEncoding": "base64"}),
        (dt.datetime, {"type": "string", "format": "date-time"}),
        (dt.timedelta, {"type": "string", "format": "duration"}),
        (dt.date | str, {"anyOf": [{"type": "string", "format": "date"}, {"type": "string"}]}),
        (Decimal, {"anyOf": [{"type": "number"}, {"type": "string"}]}),
        (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
        (
            Annotated[int, Meta(ge=1, description="d", title="T")],
            {"type": "integer", "minimum": 1, "description": "d", "title": "T"},
        ),
        (
            Annotated[int | None, Meta(ge=1)],
            {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
        ),
        (
            Annotated[int | None, Field(ge=1, title="t")],
            {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "title": "t"},
        ),
        (
            Annotated[str, Field(pattern="^a", max_length=9)],
            {"type": "string", "pattern": "^a", "maxLength": 9},
        ),
        (Annotated[str, Field(examples=["ab"])], {"type": "string", "examples": ["ab"]}),
        (
            Annotated[float, at.Interval(gt=0, le=1)],
            {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        ),
        (
            list[Annotated[str, at.Len(0, 3)]],
            {"type": "array", "items": {"type": "string", "maxLength": 3}},
        ),
        (Annotated[dt.datetime, at.Timezone(None)], {"type": "string"}),
        (
            Annotated[Decimal, Field(gt=0)],
            {"anyOf": [{"exclusiveMinimum": 0.0, "type": "number"}, {"type": "string"}]},
        ),
        (
            Cat | Dog,
            {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"type": {"const": "cat"}, "lives": {"type": "integer"}},
                        "required": ["type", "lives"],
                    },
                    {
                        "type": "object",
                        "properties": {
                            "type": {"const": "dog"},
                            "tricks": {"type": "array", "items": {"type": "string"}},
                        },
                        "required": ["type", "tricks"],
                    },
                ]
            },
        ),
        (
            Point,
            {
                "description": "A point.",
                "type": "object",
                "properties": {
                    "x": {"description": "How far east.", "type": "integer"},
                    "y": {"type": "number", "default": 0.0},
                    "names": {"type": "array", "items": {"type": "string"}, "default": []},
                },
                "required": ["x"],
            },
        ),
        (
            Seat,
            {
                "type": "object",
                "properties": {
                    "row": {"type": "integer"},
                    "letter": {"description": "A to F", "type": "string"},
                    "window": {"type": "boolean"},
                },
                "required": ["row", "letter"],
            },
        ),
        (
            Weather,
            {
                "type": "object",
                "properties": {
                    "temperature": {"description": "in °C", "type": "number"},
                    "colour": {
                        "description": "What the sky may be.",
                        "type": "string",
                        "enum": ["red", "blue"],
                        "default": "blue",
                    },
                },
                "required": ["temperature"],
            },
        ),
        (
            Box,
            {
                "type": "object",
                "properties": {
                    "width": {"type": "integer"},
                    "label": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                },
                "required": ["width"],
            },
        ),
        (
            Order,
            {
                "type": "object",
                "properties": {
                    "item": {"type": "string"},
                    "count": {"type": "integer", "minimum": 0, "default": 1},
                },
                "required": ["item"],
            },
        ),
    ],
)
def test_types(annotation: Any, expected: dict[str, Any]) -> None:
    """Each type as a model is to see it, without titles that only repeat a name."""
    assert property_of(annotation) == expected


def test_definitions_are_for_what_is_used_twice_or_contains_itself() -> None:
    """Anything else stands where it is used; the same schema comes out every time."""

    def function(
        a: Point, b: list[Point], c: Node, d: Seat, e: Order, f: Order | None = None
    ) -> None: ...

    schema = sign(function).schema
    assert list(schema["$defs"]) == ["Node", "Order", "Point"]
    assert schema["properties"]["a"] == {"$ref": "#/$defs/Point"}
    assert schema["$defs"]["Node"]["properties"]["inner"]["items"] == {"$ref": "#/$defs/Node"}
    assert schema["properties"]["d"]["type"] == "object"
    assert json(sign(function).schema) == json(schema)


def test_classes_of_one_name() -> None:
    """Two classes may have the same name, and one of them may be pydantic's."""

    def others() -> tuple[type, type]:
        class Point(TypedDict):
            z: int

        class Order(BaseModel):
            z: int

        return Point, Order

    def function(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> None: ...

    point, order = others()
    kinds = (Point, Point, point, point, Order, list[Order], order, list[order])
    function.__annotations__ = dict(zip("abcdefgh", kinds, strict=True))
    schema = sign(function).schema
    assert sorted(schema["$defs"]) == ["Order", "Order_2", "Point", "Point_2"]
    assert (schema["properties"]["d"], schema["properties"]["h"]["items"]) == (
        {"$ref": "#/$defs/Point_2"},
        {"$ref": "#/$defs/Order_2"},
    )
    assert schema["$defs"]["Order_2"]["properties"] == {"z": {"type": "integer"}}


def test_descriptions_and_headers() -> None:
    """An annotation's words go before the docstring's; further keywords of a schema survive, on any
    kind of type (`XMH-01`).
    """

    def function(
        region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})],
        zone: Annotated[Colour, "The zone."],
        order: Annotated[
            Order, Meta(description="An order.", extra_json_schema={"x-mcp-header": "Order"})
        ],
        seat: Seat,
    ) -> None: ...

    properties = sign(function, region="A region.", zone="Not this.", seat="A seat.").schema[
        "properties"
    ]
    assert properties["region"] == {
        "description": "A region.",
        "type": "string",
        "x-mcp-header": "Region",
    }
    assert properties["zone"]["description"] == "The zone."
    assert (properties["order"]["description"], properties["order"]["x-mcp-header"]) == (
        "An order.",
        "Order",
    )
    assert properties["seat"]["description"] == "A seat."


@pytest.mark.parametrize(
    "default, shown",
    [
        (3, 3),
        (None, None),
        (Colour.RED, "red"),
        ([1], [1]),
        (Point(1), {"x": 1, "y": 0.0, "names": []}),
        (Order(item="a"), {"item": "a", "count": 1}),
        (dt.date(2026, 7, 28), "2026-07-28"),
    ],
)
def test_defaults_that_json_can_say(default: Any, shown: Any) -> None:
    """They stand in the schema, and an absent argument is the very object that the function has as
    its default.
    """
    signature = taking(Any, default=default)
    assert signature.schema["properties"]["x"] == {"default": shown}
    assert "required" not in signature.schema
    assert signature.decode(b"{}")["x"] is default


@pytest.mark.parametrize("default", [float("nan"), object(), {(1, 2): 3}])
def test_defaults_that_json_cannot_say(default: Any) -> None:
    """They are not shown, and hold all the same."""
    signature = taking(Any, default=default)
    assert signature.schema["properties"]["x"] == {}
    assert signature.decode(b"{}")["x"] is default


def test_none_as_a_default_allows_null() -> None:
    """`x: int = None` means `int | None`, as people write it."""
    signature = taking(int, default=None)
    assert signature.schema["properties"]["x"]["anyOf"][1] == {"type": "null"}
    assert signature.decode(b'{"x":null}') == {"x": None}


def test_pydantic_fields_as_defaults() -> None:
    """`x: int = Field(...)`: limits, words, alias, default and factory are what they are with
    pydantic.
    """

    def function(
        a: int = Field(ge=1, alias="from"),
        b: int = Field(5, description="d"),
        c: list[int] = Field(default_factory=lambda: [1]),  # noqa: B008 # people write it so, for pydantic makes it right
    ) -> None: ...

    signature = sign(function)
    assert signature.schema["properties"] == {
        "from": {"type": "integer", "minimum": 1},
        "b": {"type": "integer", "description": "d", "default": 5},
        "c": {"type": "array", "items": {"type": "integer"}},
    }
    assert (signature.schema["required"], signature.names) == (["from"], ("from", "b", "c"))
    assert signature.decode(b'{"from":2}') == {"a": 2, "b": 5, "c": [1]}
    assert refused(signature, {"a": 2})[0] == "$.a: unknown; the arguments are: from, b, c"


# The Context, and the kinds of functions.


def test_the_context_is_found_and_hidden() -> None:
    """However it is annotated; it is never an argument, not even through `**kwargs`."""

    def plain(ctx: Context) -> None: ...
    def of_state(ctx: Context[int], a: int) -> None: ...
    def optional(a: int, *, ctx: Context[int] | None = None) -> None: ...
    def annotated(c: Annotated[Context, "x"], **rest: Any) -> None: ...
    def without(ctx: int) -> None: ...

    assert [sign(f).context for f in (plain, of_state, optional, annotated, without)] == [
        "ctx",
        "ctx",
        "ctx",
        "c",
        None,
    ]
    assert [sign(f).names for f in (plain, of_state, optional, annotated)] == [
        (),
        ("a",),
        ("a",),
        (),
    ]
    assert refused(sign(annotated), {"c": 1}) == ["$.c: unknown; there are none"]
    assert refused(sign(of_state), {"a": 1, "ctx": {}}) == ["$.ctx: unknown; the arguments are: a"]


def test_a_context_that_only_type_checkers_import() -> None:
    """The text `Context` is enough where the module does not know the name; a module's own class of
    that name is another.
    """
    source = "from __future__ import annotations\ndef tool(ctx: Context[int] | None, a: int): ..."
    names: dict[str, Any] = {}
    exec(source, names)
    assert sign(names["tool"]).context == "ctx"
    exec(source.replace("tool(", "tool(b: Nowhere, "), names)
    with pytest.raises(
        TypeError, match="'Nowhere', which cannot be read here: name 'Nowhere' is not defined"
    ):
        sign(names["tool"])
    names["Context"] = list
    exec(source, names)
    assert (sign(names["tool"]).context, sign(names["tool"]).names) == (None, ("ctx", "a"))


def test_classes_of_a_function_that_runs() -> None:
    """A string annotation may name what stands beside the function, here in this very test."""

    class Row(TypedDict):
        z: int

    def function(row: Row, rows: list[Row]) -> None: ...

    assert sign(function).decode(b'{"row":{"z":1},"rows":[]}') == {"row": {"z": 1}, "rows": []}


class Desk:
    def method(self, a: int, *, b: str = "") -> None: ...

    @staticmethod
    def static(a: int) -> None: ...

    @classmethod
    def of_class(cls, a: int) -> None: ...

    def __call__(self, a: int) -> None: ...


class Made:
    def __init__(self, a: int) -> None: ...


def test_whatever_can_be_called() -> None:
    """Methods, static and class methods, callable objects, classes, partials and wrapped
    functions.
    """
    wrapped = functools.wraps(add)(lambda *args, **kwargs: add(*args, **kwargs))
    callables = [
        Desk().method,
        Desk.static,
        Desk().static,
        Desk.of_class,
        Desk(),
        Made,
        functools.partial(add, b=3),
        wrapped,
    ]
    for function in callables:
        signature = sign(function)
        assert signature.schema["properties"]["a"] == {"type": "integer"}
        assert signature.decode(b'{"a":1}')["a"] == 1


def test_what_a_partial_binds_is_the_authors() -> None:
    """Bound arguments are neither shown nor taken, by position or by name."""

    def function(secret: str, a: int, **rest: Any) -> None: ...

    for bound in (functools.partial(function, "s"), functools.partial(function, secret="s")):
        assert sign(bound).names == ("a",)
    assert refused(sign(functools.partial(function, secret="s")), {"a": 1, "secret": "x"}) == [
        "$.secret: unknown; the arguments are: a"
    ]


def test_the_docstring_of_whatever_can_be_called() -> None:
    """That which the author wrote, and not that of what it is wrapped in."""

    class Silent:
        """The class."""

        def __call__(self) -> None: ...

    class Outspoken(Silent):
        def __call__(self) -> None:
            """The call."""

    def function() -> None:
        """The function."""

    wrapped = functools.partial(functools.partial(function))
    assert [
        doc_of(f) for f in (function, wrapped, Silent(), Outspoken(), Silent, lambda: None)
    ] == [
        *("The function.", "The function.", "The class.", "The call.", "The class.", None),
    ]


def test_rest_arguments() -> None:
    """`**kwargs` takes what is not named, of its type, and says so in the schema."""

    def function(a: int, **rest: float) -> None: ...

    signature = sign(function)
    assert signature.schema["additionalProperties"] == {"type": "number"}
    assert signature.decode(b'{"b":1.5,"a":1,"c":2}') == {"a": 1, "b": 1.5, "c": 2.0}
    assert refused(signature, {"a": "x", "b": "y"}) == [
        '$.a: "x" is not of type "integer"',
        '$.b: "y" is not of type "number"',
    ]


class Limited(TypedDict):
    x: Annotated[int, at.Gt(0)]


def unreadable(a: Nothing) -> None: ...
def positional(a: int, /) -> None: ...
def starred(*a: int) -> None: ...
def twice(a: Context, b: Context) -> None: ...
def aliased(a: int, b: Annotated[int, Field(alias="a")]) -> None: ...


@pytest.mark.parametrize(
    "function, words",
    [
        (
            unreadable,
            "unreadable: the parameter 'a' is annotated 'Nothing', which cannot be read here:"
            " name 'Nothing' is not defined",
        ),
        (positional, "positional only"),
        (starred, "take a list"),
        (twice, "second Context"),
        (aliased, "another one is called 'a' too"),
        (Desk.method, "Desk.method: the parameter 'self' is that of a method which is not bound"),
        (max, "max cannot be called with arguments by name"),
    ],
)
def test_functions_that_cannot_be_tools(function: Any, words: str) -> None:
    """The sentence names the function and the parameter, and says why."""
    with pytest.raises(TypeError, match=words):
        sign(function)


@pytest.mark.parametrize(
    "annotation, words",
    [
        (complex, "complex is not a type that JSON can be read as"),
        (list[complex], "complex is not a type"),
        (Callable[[], int], "not a type"),
        (Annotated[str, at.Predicate(str.islower)], "cannot be said in a schema"),
        (Annotated[str, Meta(ge=1)], "`ge`"),
        (Annotated[str | bool, Meta(ge=1)], "ge cannot be set on any member"),
        (Limited, "inside a class limits are written as msgspec.Meta"),
    ],
)
def test_types_that_cannot_be_read(annotation: Any, words: str) -> None:
    """A limit that nobody would look at is refused, and so is a type that JSON does not have."""
    with pytest.raises(TypeError, match=words):
        taking(annotation)


# Arguments.


@given(typed(*PLAIN, *WRITTEN).flatmap(lambda pair: st.tuples(st.just(pair[0]), pair[1])))
def test_what_is_written_is_read_back(case: tuple[Any, Any]) -> None:
    """Any value of any type comes through JSON as itself, and its JSON is valid under the schema,
    which is valid too (`JSC-04`).
    """
    annotation, value = case
    signature = taking(annotation)
    raw = json({"x": value})
    assert signature.decode(raw) == signature.decode(Raw(raw)) == {"x": value}
    assert compile(signature.schema, formats=False).check(msgspec.json.decode(raw)) == []


def _anything_near(pair: Typed) -> st.SearchStrategy[tuple[Any, Any]]:
    annotation, values = pair
    plain = values.map(lambda value: msgspec.json.decode(json(value)))
    return st.tuples(st.just(annotation), json_values | plain | plain.flatmap(spoilt))


def _beyond(data: Any) -> bool:
    """Whether a float is in there that may stand for several whole numbers."""
    if isinstance(data, float):
        return abs(data) >= 2**53
    if isinstance(data, dict):
        inner = data.values()
    elif isinstance(data, list):
        inner = data
    else:
        inner = ()
    return any(_beyond(item) for item in inner)


@given(typed(*PLAIN).flatmap(_anything_near))
def test_schema_and_decoder_agree(case: tuple[Any, Any]) -> None:
    """Of any JSON, the decoder takes what is valid under the schema and nothing else.

    But for an object or a list in a string, which it forgives, and for whole numbers written as
    floats beyond 2 to the 53rd, which it refuses: what number was meant is lost by then.
    """
    annotation, data = case
    assume(not _beyond(data))
    signature = taking(annotation)
    valid = compile(signature.schema).is_valid({"x": data})
    try:
        signature.decode(json({"x": data}))
    except ArgumentsError:
        assert not valid
    else:
        assert valid or (
            isinstance(data, str)
            and compile(signature.schema).is_valid({"x": msgspec.json.decode(data)})
        )


@given(st.binary(max_size=40) | st.text(alphabet='{}[]":,ab1.5 null', max_size=30).map(str.encode))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    """Nothing but ArgumentsError is raised, for whatever bytes."""
    try:
        outcome = sign(add).decode(raw).keys() == {"a", "b"}
    except ArgumentsError as bad:
        outcome = all(problem.startswith("$") for problem in bad.problems)
    assert outcome


def test_all_problems_are_told_at_once() -> None:
    """What is unknown, what is missing, and each thing that is wrong, with its place (`TOL-23`)."""

    def function(
        city: str,
        days: Annotated[int, Meta(ge=1)],
        point: Point,
        tags: list[int],
        order: Order,
        when: dt.date,
    ) -> None: ...

    arguments = {
        "citty": "Bonn",
        "days": 0,
        "point": {"x": "one", "y": []},
        "tags": [1, "b", 2, None],
        "order": {"count": -1},
        "when": "soon",
    }
    problems = refused(sign(function), arguments)
    places = (
        "$.citty $.city $.days $.point.x $.point.y $.tags[1] $.tags[3] $.order.item $.order.count"
        " $.when"
    )
    assert " ".join(problem.partition(":")[0] for problem in problems) == places
    assert problems[:4] == [
        "$.citty: unknown; the arguments are: city, days, point, tags, order, when",
        "$.city: required, but missing",
        "$.days: 0 is less than the minimum of 1",
        '$.point.x: "one" is not of type "integer"',
    ]
    assert problems[7] == "$.order.item: Field required"


class Even(Struct):
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("the number must be even")


def _not_seven(value: Any) -> Any:
    if value == 7:
        raise ValueError("not seven")
    return value


@pytest.mark.parametrize(
    "annotation, value, problem",
    [
        (int, "five", '$.x: "five" is not of type "integer"'),
        (int, True, '$.x: true is not of type "integer"'),
        (int, 2.5, '$.x: 2.5 is not of type "integer"'),
        (str, 5, '$.x: 5 is not of type "string"'),
        (bool, 1, '$.x: 1 is not of type "boolean"'),
        (int | str | None, [], "$.x: expected `int | str | null`, got `array`"),
        (dt.date | int, "soon", "$.x: invalid RFC3339 encoded date"),
        (Point | Seat, {"x": "1"}, "$.x: Expected one of: Point, Seat"),
        (Literal["a", "b"], "c", '$.x: "c" is not one of "a" or "b"'),
        (list[Even], [{"number": 2}, {"number": 3}], "$.x[1]: the number must be even"),
        (Box, {"width": -1}, "$.x: 'width' must be >= 0: -1"),
        (Annotated[int, BeforeValidator(_not_seven)], 7, "$.x: Value error, not seven"),
        (dict[str, int], {"a.b": "c"}, '$.x.a.b: "c" is not of type "integer"'),
    ],
)
def test_what_is_wrong(annotation: Any, value: Any, problem: str) -> None:
    """JSON's types are held to: no "five" for 5, no 1 for true; the author's own checks speak for
    themselves.
    """
    assert [told.lower() for told in refused(taking(annotation), {"x": value})] == [problem.lower()]


@pytest.mark.parametrize(
    "raw, words",
    [
        (b"[]", "must be a JSON object"),
        (b'"{}"', "must be a JSON object"),
        (b"{", "not valid JSON"),
        (b"", "not valid JSON"),
        (b'{"a":' + b"[" * 100_000, "nested too deeply"),
        (b'{"a":"\xff"}', "$.b: required"),
    ],
)
def test_arguments_that_are_none(raw: bytes, words: str) -> None:
    """Bytes that are no JSON object at all are called that."""

    def function(a: Any, b: int) -> None: ...

    with pytest.raises(ArgumentsError) as caught:
        sign(function).decode(raw)
    assert words in str(caught.value)


def test_problems_are_bounded() -> None:
    """Arguments made to have thousands of problems are told of twenty."""
    for annotation in (list[int], list[Order]):
        problems = refused(taking(annotation), {"x": ["?"] * 5000})
        assert len(problems) <= 21
    assert problems[-1] == "and 4980 more"
    unknown = refused(sign(add), {"a": 1, "x" * 5000: 1, **dict.fromkeys(map(str, range(1000)))})
    assert len(unknown) == 1
    assert len(unknown[0]) < 1100


@pytest.mark.parametrize(
    "annotation, given, expected",
    [
        (list[int], "[1, 2]", [1, 2]),
        (list[int] | None, " [1]", [1]),
        (Point, '{"x": 1}', Point(1)),
        (Order, '{"item": "a"}', Order(item="a")),
        (dict[str, Any], "{}", {}),
        (int, 5.0, 5),
        (list[int], [1.0, 2], [1, 2]),
        (Point, '{"x": 1.0}', Point(1)),
        (list[int], "[1.0]", [1]),
    ],
)
def test_what_models_get_wrong_without_doubt(annotation: Any, given: Any, expected: Any) -> None:
    """JSON in a string for an object or a list, and 5.0 for 5, are read as what was meant."""
    assert taking(annotation).decode(json({"x": given})) == {"x": expected}


@pytest.mark.parametrize(
    "annotation, given",
    [(str, "[1]"), (Any, '{"x": 1}'), (str | list[int], "[1]"), (float, 5.0), (Any, 5.0)],
)
def test_what_fits_is_left_alone(annotation: Any, given: Any) -> None:
    """A string that is meant to be one stays one, whatever it looks like."""
    read = taking(annotation).decode(json({"x": given}))["x"]
    assert (type(read), read) == (type(given), given)


def test_a_mended_argument_leaves_its_neighbours_alone() -> None:
    """Only what did not fit is read anew."""

    def function(text: str, number: Any, items: list[int]) -> None: ...

    arguments = {"text": "[1]", "number": 5.0, "items": "[1]"}
    assert sign(function).decode(json(arguments)) == {"text": "[1]", "number": 5.0, "items": [1]}
    assert isinstance(sign(function).decode(json(arguments))["number"], float)


def test_problems_inside_a_string_are_told_of_what_was_meant() -> None:
    """The place is the one inside the object, not the string around it."""
    assert refused(taking(Point), {"x": '{"x": "east"}'}) == [
        '$.x.x: "east" is not of type "integer"'
    ]


def test_a_choice_prefers_the_member_that_knows_the_keys() -> None:
    """Of two classes that both fit, the one is taken that leaves nothing out."""

    class Wide(Struct):
        x: int = 0

    class Long(Struct):
        x: int = 0
        y: int = 0

    def function(shape: Wide | Long) -> None: ...

    signature = sign(function)
    assert isinstance(signature.decode(b'{"shape":{"x":1}}')["shape"], Wide)
    assert isinstance(signature.decode(b'{"shape":{"x":1,"y":2}}')["shape"], Long)
    assert isinstance(signature.decode(b'{"shape":{"x":1,"y":2,"z":3}}')["shape"], Long)


class Shelf(Struct):
    orders: Annotated[list[Order], Meta(max_length=1)]


def test_models_inside_what_msgspec_reads() -> None:
    """A Struct may hold pydantic models; msgspec's limits around a model are kept."""
    assert taking(Shelf).decode(b'{"x":{"orders":[{"item":"a"}]}}') == {
        "x": Shelf([Order(item="a")])
    }
    assert "orders" in refused(taking(Shelf), {"x": {"orders": [{"item": "a"}, {"item": "b"}]}})[0]
    assert refused(taking(Annotated[list[Order], Meta(min_length=1)]), {"x": []}) == [
        "$.x: the list has less than 1 item"
    ]


def test_pydantic_is_not_loaded_for_others() -> None:
    """Schemas, values and complaints of types that are not pydantic's do without it."""
    program = """
import sys, dataclasses, typing, pathlib, msgspec
from interlock.typed.type_hints import doc_of
from interlock.typed.signature import signature_of, ArgumentsError
@dataclasses.dataclass
class Point: x: typing.Annotated[int, msgspec.Meta(ge=0)]
def tool(a: Point | None, b: list[pathlib.Path],
    c: Point | typing.NamedTuple("Pair", [("x", int)])): ...
signature = signature_of(tool, context_type=type("Context", (), {}))
assert signature.decode(b'{"a":{"x":1},"b":["/"],"c":[1]}')["c"] == (1,)
try: signature.decode(b'{"a":1}')
except ArgumentsError: print("pydantic" in sys.modules, "annotated_types" in sys.modules)
"""
    assert (
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
        == "False False\n"
    )
