"""A tool's result as plain data, and as a value of a type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pydantic
import pytest
from msgspec import UNSET

from interlock import CallToolResult, ProtocolError, TextContent, ToolError


@dataclass
class Seat:
    """A seat."""

    row: int
    letter: str = "A"


class Model(pydantic.BaseModel):
    """The same as a pydantic model."""

    row: int


def result(data: Any, text: str = "text", **more: Any) -> CallToolResult:
    """What a tool might have given."""
    return CallToolResult(content=[TextContent(text)], structured_content=data, **more)


@pytest.mark.parametrize(
    "data, kind, value",
    [
        (UNSET, None, "text"),
        (UNSET, str, "text"),
        ({"result": 3}, None, 3),
        ({"result": 3}, int, 3),
        ({"result": [{"row": 1}]}, list[Seat], [Seat(1)]),
        ({"row": 1, "letter": "C"}, None, {"row": 1, "letter": "C"}),
        ({"row": 1, "letter": "C"}, Seat, Seat(1, "C")),
        ({"row": 1}, Model, Model(row=1)),
    ],
)
def test_a_result_as_data_and_as_a_type(data, kind, value):
    """Structured content, unwrapped where it is wrapped, else the text; decoded into the type that
    is asked for.
    """
    assert (result(data).value() if kind is None else result(data).value(kind)) == value


@pytest.mark.parametrize("kind", [int, Seat, Model, list[Seat]])
def test_a_result_that_is_not_of_the_type(kind):
    """It is the peer's fault, and named as that."""
    with pytest.raises(ProtocolError, match="does not fit the requested type"):
        result({"row": "first"}).value(kind)


def test_a_failure_is_raised_with_its_words():
    """`TOL-15`: whoever wants the value hears why there is none."""
    with pytest.raises(ToolError, match="no seats left"):
        result(UNSET, "no seats left", is_error=True).value(Seat)
