"""Types that an author may write, each with values of its own, for Hypothesis."""

from __future__ import annotations

import datetime as dt
import enum
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict
from uuid import UUID

import attrs
from hypothesis import strategies as st
from msgspec import Meta, Struct
from pydantic import BaseModel
from pydantic import Field as PydanticField

Typed = tuple[Any, st.SearchStrategy[Any]]


class Colour(enum.Enum):
    """What the sky may be."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    WORD = "word"
    NUMBER = 1.5


@dataclass
class Point:
    """A point.

    Attributes:
        x: How far east.
    """

    x: int
    y: float = 0.0
    names: list[str] = field(default_factory=list)


class Seat(TypedDict):
    row: int
    letter: Annotated[str, "A to F"]
    window: NotRequired[bool]


class Pair(NamedTuple):
    left: int
    right: str = "none"


class Weather(Struct):
    temperature: Annotated[float, Meta(description="in °C")]
    colour: Colour = Colour.BLUE


class Cat(Struct, tag="cat"):
    lives: int


class Dog(Struct, tag="dog"):
    tricks: list[str]


@attrs.define
class Box:
    width: int = attrs.field(validator=attrs.validators.ge(0))
    label: str | None = None


@dataclass
class Node:
    value: int
    inner: list[Node] = field(default_factory=list)


class Order(BaseModel):
    item: str
    count: int = PydanticField(default=1, ge=0)


ints = st.integers(-(2**53), 2**53)
floats = st.floats(allow_nan=False, allow_infinity=False)
nodes: st.SearchStrategy[Node] = st.deferred(
    lambda: st.builds(Node, ints, st.lists(nodes, max_size=2))
)

# What JSON has itself: here the schema and the decoder must agree on every JSON value there is.
PLAIN: list[Typed] = [
    (int, ints),
    (float, floats),
    (str, st.text()),
    (bool, st.booleans()),
    (None, st.none()),
    (Literal["a", "b", 3], st.sampled_from(["a", "b", 3])),
    (Colour, st.sampled_from(Colour)),
    (Level, st.sampled_from(Level)),
    (Mixed, st.sampled_from(Mixed)),
    (Point, st.builds(Point, ints, floats, st.lists(st.text(), max_size=2))),
    (
        Seat,
        st.fixed_dictionaries(
            {"row": ints, "letter": st.text()}, optional={"window": st.booleans()}
        ),
    ),
    (Pair, st.builds(Pair, ints, st.text())),
    (Weather, st.builds(Weather, floats, st.sampled_from(Colour))),
    (Cat | Dog, st.builds(Cat, ints) | st.builds(Dog, st.lists(st.text(), max_size=2))),
    (Point | Seat, st.builds(Point, ints, floats, st.lists(st.text(), max_size=2))),
    (Node, nodes),
    (Annotated[int, Meta(ge=0, lt=100)], st.integers(0, 99)),
    (Annotated[str, PydanticField(min_length=2)], st.text(min_size=2)),
]

# What JSON writes as strings or lists, where a schema can only say so much.
WRITTEN: list[Typed] = [
    (dt.date, st.dates()),
    (dt.datetime, st.datetimes(timezones=st.none() | st.just(dt.UTC))),
    (dt.time, st.times()),
    (dt.timedelta, st.timedeltas(dt.timedelta(days=-9999), dt.timedelta(days=9999))),
    (UUID, st.uuids()),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    (bytes, st.binary()),
    (
        PurePosixPath,
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])).map(
            PurePosixPath
        ),
    ),
    (ipaddress.IPv4Address, st.ip_addresses(v=4)),
    (set[int], st.sets(ints)),
    (frozenset[str], st.frozensets(st.text())),
    (Box, st.builds(Box, st.integers(0, 2**53), st.none() | st.text())),
    (dt.date | str, st.dates()),
    (Order, st.builds(Order, item=st.text(), count=st.integers(0, 2**53))),
]


def _grown(typed: Typed) -> st.SearchStrategy[Typed]:
    """Types that are made of one type."""
    kind, values = typed
    forms: list[Typed] = [
        (list[kind], st.lists(values, max_size=3)),
        (dict[str, kind], st.dictionaries(st.text(), values, max_size=3)),
        (tuple[kind, int], st.tuples(values, ints)),
        (tuple[kind, ...], st.lists(values, max_size=3).map(tuple)),
        (kind | None if kind is not None else Any, values | st.none()),
    ]
    return st.sampled_from(forms)


def typed(*kinds: Typed) -> st.SearchStrategy[Typed]:
    """A type, or one that is made of it, with its values."""
    return st.recursive(st.sampled_from(kinds), lambda inner: inner.flatmap(_grown), max_leaves=3)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | ints
    | floats
    | st.sampled_from(["a", "red", "word"])
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["x", "row", "type", "a"]) | st.text(max_size=3), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@st.composite
def spoilt(draw: Callable[[st.SearchStrategy[Any]], Any], value: Any) -> Any:
    """JSON data with one part of it replaced or left out, so that it nearly is what it was."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        rest = {name: item for name, item in value.items() if name != key}
        return rest if draw(st.booleans()) else {**rest, key: draw(spoilt(value[key]))}
    if isinstance(value, list) and value and draw(st.booleans()):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], draw(spoilt(value[place])), *value[place + 1 :]]
    return draw(json_values)
