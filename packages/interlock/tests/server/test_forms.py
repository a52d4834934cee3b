"""Forms: from types to flat schemas, from answers to values, and what a form refuses to ask for."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal, NamedTuple, TypedDict

import msgspec
import pydantic
import pytest

from interlock import McpError
from interlock.typed.forms import form


class Meal(Enum):
    """What there is to eat."""

    FISH = "fish"
    SOUP = "soup"


@dataclass
class Seat:
    """A seat."""

    row: Annotated[int, msgspec.Meta(ge=1, le=40, description="the row")]
    letter: str = "A"
    window: bool = False
    meal: Meal | None = None


class Contact(TypedDict):
    """How to reach somebody."""

    mail: Annotated[str, "where to write to"]


class Trip(pydantic.BaseModel):
    """A trip."""

    city: str = pydantic.Field(description="where to", min_length=2)
    nights: int = pydantic.Field(default=3, ge=1)


class Pair(NamedTuple):
    """Two, by name."""

    first: str
    second: int = 2


class Tags(msgspec.Struct):
    """Some of a few."""

    tags: list[Literal["a", "b"]]


@pytest.mark.parametrize(
    "kind, answer, value",
    [
        (Contact, {"mail": "x@example.org"}, {"mail": "x@example.org"}),
        (Trip, {"city": "Rome"}, Trip(city="Rome", nights=3)),
        (Tags, {"tags": ["b"]}, Tags(["b"])),
        (Pair, {"first": "a"}, Pair("a", 2)),
        (str, {"value": "yes"}, "yes"),
        (int, {"value": 4}, 4),
        (bool, {"value": True}, True),
        (Meal, {"value": "soup"}, Meal.SOUP),
        (Literal["x", "y"], {"value": "y"}, "y"),
        ({"properties": {"n": {"type": "integer"}}, "required": ["n"]}, {"n": 1}, {"n": 1}),
    ],
)
def test_an_answer_becomes_a_value_of_the_type(kind, answer, value):
    """`ELI-06`, `ELI-35`: what was asked for as a type comes back as one."""
    assert form(kind).read(answer) == value


def test_a_class_becomes_a_flat_schema():
    """`ELI-06`, `ELI-08`, `ELI-10`: primitives with their limits and words, choices by enum,
    optional fields not required.
    """
    assert form(Seat).schema["properties"]["row"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 40,
        "description": "the row",
    }
    assert form(Seat).schema["properties"]["meal"]["enum"] == ["fish", "soup"]
    assert form(Seat).schema["required"] == ["row"]
    assert form(Trip).schema["properties"]["city"] == {
        "type": "string",
        "minLength": 2,
        "description": "where to",
    }
    assert form(Trip).schema["properties"]["nights"]["default"] == 3
    assert form(Contact).schema["properties"]["mail"] == {
        "type": "string",
        "description": "where to write to",
    }
    assert form(Tags).schema["properties"]["tags"] == {
        "type": "array",
        "items": {"type": "string", "enum": ["a", "b"]},
    }
    assert "$defs" not in str([form(kind).schema for kind in (Seat, Trip, Contact, Tags, Meal)])


@pytest.mark.parametrize(
    "kind, answer",
    [
        (Trip, {"city": "R"}),
        (Trip, {}),
        (Contact, {"mail": 3}),
        (int, {}),
        (int, {"value": "4"}),
        (Meal, {"value": "beef"}),
        (Tags, None),
    ],
)
def test_an_answer_that_does_not_fit_is_an_error(kind, answer):
    """`MRT-20`, `ELI-35`: an error of the protocol, never a value that the type forbids."""
    with pytest.raises(McpError) as caught:
        form(kind).read(answer)
    assert caught.value.code == -32602


class Nested(msgspec.Struct):
    """Not flat."""

    seat: Seat


class Numbers(msgspec.Struct):
    """A list that is no choice."""

    numbers: list[int]


@pytest.mark.parametrize("kind", [Nested, Numbers, list[str], dict[str, int], int | str])
def test_what_is_not_flat_is_refused(kind):
    """`ELI-06`: a form has primitive fields only, and the author hears of it when the question is
    made.
    """
    with pytest.raises(TypeError, match="form cannot ask"):
        form(kind)


CODE = {"type": "string", "pattern": "^[0-9]{4}$"}
PATTERNS = {
    "a type": (Annotated[str, msgspec.Meta(pattern="^[0-9]{4}$")], "value"),
    "a schema": ({"properties": {"code": CODE}, "required": ["code"]}, "code"),
}


@pytest.mark.parametrize("kind, name", PATTERNS.values(), ids=PATTERNS)
def test_a_pattern_is_checked_and_not_sent(kind, name):
    """`X-06`: strict clients refuse a form with `pattern`, which no schema of the protocol has; the
    answer has to match it.
    """
    asked = form(kind)
    assert asked.schema["properties"] == {name: {"type": "string"}}
    assert "1234" in str(asked.read({name: "1234"}))
    with pytest.raises(McpError, match="does not fit the form"):
        asked.read({name: "12345"})


def test_a_number_may_be_a_fraction():
    """`JSC-10`, `ELI-09`: bounds, defaults and answers of a number, though a published schema wants
    integers.
    """
    kind = Annotated[float, msgspec.Meta(ge=0.5, le=2.5)]
    asked = form(kind)
    assert asked.schema["properties"]["value"] == {
        "type": "number",
        "minimum": 0.5,
        "maximum": 2.5,
    }
    assert asked.read({"value": 1.25}) == 1.25
    by_hand = form({"properties": {"x": {"type": "number", "minimum": 0.5, "default": 0.75}}})
    assert by_hand.read({"x": 1.5}) == {"x": 1.5}
    with pytest.raises(McpError):
        by_hand.read({"x": 0.25})


FIELDS = {
    "password": True,
    "new_password": True,
    "apiKey": True,
    "credit-card": True,
    "client_secret": True,
    "passwords_changed": False,
    "keyboard": False,
    "token_count": False,
    "secretary": False,
}


@pytest.mark.parametrize("name, told", FIELDS.items())
def test_an_author_whose_form_asks_for_a_secret_is_told(name, told, caplog):
    """`ELI-15`, `ELI-16`: it belongs on a page, to which a question in URL mode leads."""
    with caplog.at_level(logging.WARNING, "interlock.server"):
        form({"properties": {name: {"type": "string"}}})
    assert ("must not ask for secrets" in caplog.text) is told
    assert ("ctx.elicit_url" in caplog.text) is told
