"""Strings read as the types of a function's parameters: the arguments of prompts, the variables of
templates.
"""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct
from pydantic import BaseModel, Field

from interlock import Context, McpError
from interlock import types as t
from interlock.typed.string_arguments import Strings


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: int
    y: int = 0


class Seat(TypedDict):
    row: int


class Order(BaseModel):
    item: str
    count: int = 1


class Place(Struct):
    city: str


def taking(annotation: Any, default: Any = ...) -> Strings:
    """What reads the one parameter `value` of this type."""

    def function(value: Any = default) -> None: ...

    def function_without(value: Any) -> None: ...

    chosen: Callable[..., None] = function_without if default is ... else function
    chosen.__annotations__ = {"value": annotation}
    return Strings(chosen, Context)


def value_of(annotation: Any, text: Any) -> Any:
    return taking(annotation).read({"value": text})["value"]


@pytest.mark.parametrize(
    "annotation, text, value",
    [
        (str, "5", "5"),
        (Any, "5", "5"),
        (str, "", ""),
        (int, "5", 5),
        (int, "-5", -5),
        (float, "1.5", 1.5),
        (float, "2", 2.0),
        (bool, "true", True),
        (bool, "False", False),
        (int | None, "5", 5),
        (int | None, "null", None),
        (str | None, "null", "null"),
        (int | str, "5", "5"),
        (int | bool, "5", 5),
        (int | bool, "true", True),
        (dt.date, "2026-07-28", dt.date(2026, 7, 28)),
        (dt.date | None, "2026-07-28", dt.date(2026, 7, 28)),
        (dt.date | str, "tomorrow", "tomorrow"),
        (list[int], "[1, 2]", [1, 2]),
        (list[str], '["a", "b"]', ["a", "b"]),
        (list[str], ["a", "b"], ["a", "b"]),
        (list[int], ["1", "2"], [1, 2]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (dict[str, int], {"a": "1"}, {"a": 1}),
        (Point, '{"x": 1}', Point(1)),
        (Seat, '{"row": 7}', {"row": 7}),
        (Place, '{"city": "Ulm"}', Place("Ulm")),
        (Order, '{"item": "tea", "count": 2}', Order(item="tea", count=2)),
        (list[Point], '[{"x": 1}, {"x": 2, "y": 3}]', [Point(1), Point(2, 3)]),
        (Literal["a", "b"], "b", "b"),
        (Literal[1, 2], "2", 2),
        (Colour, "blue", Colour.BLUE),
        (Colour | None, "blue", Colour.BLUE),
        (Level, "2", Level.HIGH),
        (Path, "/tmp/a", Path("/tmp/a")),
        (Annotated[int, Meta(ge=1)], "1", 1),
        (Annotated[int, Field(ge=1)], "1", 1),
        (Annotated[str, Meta(pattern="^a+$")], "aa", "aa"),
    ],
)
def test_strings_become_what_they_are_to_be(annotation: Any, text: Any, value: Any):
    """Numbers, dates and choices by their words; lists and objects as JSON, or as an exploded
    variable brings them.
    """
    assert value_of(annotation, text) == value
    assert type(value_of(annotation, text)) is type(value)


@pytest.mark.parametrize(
    "annotation, text, words",
    [
        (int, "five", "Expected `int`"),
        (int, "", "Expected `int`"),
        (int, "1_0", "Expected `int`"),
        (bool, "perhaps", "Expected `bool`"),
        (dt.date, "tomorrow", "RFC3339"),
        (list[int], '[1, "two"]', r"Expected `int`, got `str` - at `\$\[1\]`"),
        (list[int], "1, 2", "Expected `array`"),
        (Point, '{"y": 1}', "missing required field `x`"),
        (Point, "{", "JSON is malformed|truncated|Expected `object`|Input data"),
        (Order, '{"item": 5}', "valid string"),
        (Order, "tea", "valid dictionary|object"),
        (Literal["a", "b"], "c", "Invalid enum value 'c'"),
        (Colour, "green", "Invalid enum value 'green'"),
        (Annotated[int, Meta(ge=1)], "0", ">= 1"),
        (Annotated[int, Field(ge=1)], "0", ">= 1"),
        (Annotated[str, Meta(pattern="^a+$")], "b", "regex"),
    ],
)
def test_strings_that_do_not_fit(annotation: Any, text: str, words: str):
    """The error -32602 names the argument and says what was expected; limits of an annotation count
    (`PRM-02`, `PRM-07`).
    """
    with pytest.raises(McpError, match=f"Argument value does not fit: .*({words})") as caught:
        value_of(annotation, text)
    assert caught.value.code == t.INVALID_PARAMS


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(json_values) | st.dictionaries(st.text(), json_values))
def test_lists_and_objects_travel_as_json(value: Any):
    """Whatever JSON is in them."""
    assert (
        value_of(
            list[Any] if isinstance(value, list) else dict[str, Any],
            msgspec.json.encode(value).decode(),
        )
        == value
    )


@given(
    st.one_of(
        st.integers(),
        st.floats(allow_nan=False),
        st.dates(),
        st.datetimes(),
        st.uuids(),
        st.decimals(allow_nan=False, allow_infinity=False),
    )
)
def test_plain_values_travel_as_words(value: Any):
    """Written as one writes it, every number and date is read as itself."""
    words = value.isoformat() if isinstance(value, dt.date) else str(value)
    assert value_of(type(value), words) == value


@given(
    st.text(),
    st.sampled_from([int, bool, list[int], Point, Order, Colour, int | None, Path, dt.date | int]),
)
def test_no_string_does_more_than_not_fit(text: str, annotation: Any):
    """Whatever a client writes, it is a value or the error -32602."""
    try:
        value_of(annotation, text)
    except McpError as bad:
        code = bad.code
    else:
        code = t.INVALID_PARAMS
    assert code == t.INVALID_PARAMS


def prompt(
    topic: str,
    length: int = 3,
    *,
    tone: Annotated[Colour | None, "How it sounds."] = None,
    ctx: Context | None = None,
) -> None:
    """Write.

    Args:
        topic: What about.
        length: How many lines.
    """


def test_what_is_listed():
    """Name, words and whether it is required, in the function's order; the Context is not an
    argument.
    """
    strings = Strings(prompt, Context)
    assert strings.arguments == [
        t.PromptArgument(name="topic", description="What about.", required=True),
        t.PromptArgument(name="length", description="How many lines.", required=False),
        t.PromptArgument(name="tone", description="How it sounds.", required=False),
    ]
    assert strings.context == "ctx"
    assert (strings.names, strings.required) == ({"topic", "length", "tone"}, {"topic"})
    assert strings.choices == {"tone": ["red", "blue"]}


def test_missing_and_unknown_arguments():
    """The error -32602 names them, all at once and in order (`PRM-02`)."""
    strings = Strings(prompt, Context)
    assert strings.read({"topic": "tea"}) == {"topic": "tea"}

    def two(a: str, b: str, c: str = "") -> None: ...

    def nothing(ctx: Context) -> None: ...

    for function, arguments, words in [
        (prompt, {}, "Missing required argument: topic"),
        (two, {"c": ""}, "Missing required arguments: a, b"),
        (
            prompt,
            {"topic": "tea", "mood": "x"},
            r"Unknown argument: mood \(known: topic, length, tone\)",
        ),
        (prompt, {"topic": "tea", "ctx": "x"}, r"Unknown argument: ctx \("),
        (two, {"a": "", "b": "", "d": "", "e": ""}, r"Unknown arguments: d, e \(known: a, b, c\)"),
        (nothing, {"a": ""}, r"Unknown argument: a \(known: none\)"),
    ]:
        with pytest.raises(McpError, match=words) as caught:
            Strings(function, Context).read(arguments)
        assert caught.value.code == t.INVALID_PARAMS


@pytest.mark.parametrize(
    "annotation, choices",
    [
        (Literal["a", "b"], ["a", "b"]),
        (Literal["a", "b"] | None, ["a", "b"]),
        (Annotated[Literal["a", "b"], "one of two"], ["a", "b"]),
        (Colour, ["red", "blue"]),
        (Colour | Literal["none"], ["red", "blue", "none"]),
        (bool, ["true", "false"]),
        (Literal["a"] | int, None),
        (Level, None),
        (str, None),
    ],
)
def test_choices(annotation: Any, choices: list[str] | None):
    """What a Literal, an Enum or a bool allows can be suggested; a union only where all its members
    say what they allow.
    """
    assert taking(annotation).choices.get("value") == choices


class Opaque:
    """A class that nothing can be read as."""


def positional(value: str, /) -> None: ...
def several(*values: str) -> None: ...
def keywords(**values: str) -> None: ...
def unreadable(value: NoSuchType) -> None: ...  # noqa: F821 - such a name is what this is about
def opaque(value: Opaque) -> None: ...


@pytest.mark.parametrize(
    "function, words",
    [
        (positional, "parameter 'value' of .* cannot be given by name; use plain parameters"),
        (several, "parameter 'values' of .* cannot be given by name"),
        (keywords, "parameter 'values' of .* cannot be given by name"),
        (
            unreadable,
            "parameter 'value' of unreadable is annotated 'NoSuchType', which cannot be read:"
            " name 'NoSuchType' is not defined",
        ),
        (opaque, "parameter 'value' of opaque cannot be used: "),
    ],
)
def test_functions_that_cannot_be_called_with_strings(function: Any, words: str):
    """It is said when the function is taken in, not when the first client comes."""
    with pytest.raises(TypeError, match=words):
        Strings(function, Context)


def test_defaults_are_left_to_the_function():
    """What is not given is not passed, so the function's own default stands."""
    assert taking(int, 5).read({}) == {}
    assert taking(int, 5).arguments[0].required is False


def test_titles_of_arguments():
    """A title that the annotation has is listed, as for the parameters of tools (`PRM-02`)."""

    def titled(
        code: Annotated[str, msgspec.Meta(title="Code", description="What to read.")],
        plain: str = "",
    ) -> None: ...

    assert Strings(titled, Context).arguments == [
        t.PromptArgument(name="code", title="Code", description="What to read.", required=True),
        t.PromptArgument(name="plain", required=False),
    ]
