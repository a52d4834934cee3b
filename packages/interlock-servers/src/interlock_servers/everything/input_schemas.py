"""Input schemas: one tool for each topic of JSON Schema, which returns its arguments."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from interlock import Server, ToolResult

from .schemas import DIALECTS, VARIANTS
from .state import PURE

Code = Annotated[
    str, Meta(pattern="^[A-Z]{3}$", description="Three capital letters.", examples=["EUR"])
]


@dataclass
class ReceivedArguments:
    """The arguments as they were received."""

    arguments: dict[str, Any]


def taker(
    name: str, words: str
) -> Callable[..., Coroutine[Any, Any, ToolResult[ReceivedArguments]]]:
    """Create a function that accepts what a schema allows."""

    async def take(arguments: dict[str, Any]) -> ToolResult[ReceivedArguments]:
        return ToolResult(
            ReceivedArguments(arguments), f"Taken: {', '.join(arguments) or 'nothing'}."
        )

    take.__name__ = name
    take.__doc__ = words
    return take


async def convert(arguments: dict[str, float]) -> str:
    """Convert a temperature; its schema says what Python's types cannot: one of the two, not
    both.
    """
    if "celsius" in arguments:
        return f"{arguments['celsius'] * 9 / 5 + 32:g} °F"
    return f"{(arguments['fahrenheit'] - 32) * 5 / 9:g} °C"


TEMPERATURE: dict[str, Any] = {
    "type": "object",
    "properties": {"celsius": {"type": "number"}, "fahrenheit": {"type": "number"}},
    "oneOf": [{"required": ["celsius"]}, {"required": ["fahrenheit"]}],
    "additionalProperties": False,
}


@dataclass
class Item:
    """One item of an order."""

    name: Annotated[str, Meta(min_length=1, max_length=80)]
    count: Annotated[int, Meta(ge=1, le=99)] = 1


@dataclass
class Order:
    """An order as Python types, from which the schema is generated."""

    items: Annotated[list[Item], Meta(min_length=1, max_length=20)]
    currency: Code = "EUR"
    speed: Literal["normal", "express"] = "normal"
    until: date | None = None
    sent: datetime | None = None
    number: UUID | None = None
    notes: dict[str, str] = field(default_factory=dict)
    place: tuple[float, float] | str = "home"


async def take_types(order: Annotated[Order, "What is ordered."]) -> ToolResult[ReceivedArguments]:
    """Take what Python's types say: a class, a list, choices, a date, a time, a UUID, a mapping, a
    pair or a string.
    """
    count = sum(item.count for item in order.items)
    return ToolResult(
        ReceivedArguments({"order": msgspec.to_builtins(order)}), f"{count} ordered, {order.speed}."
    )


async def mirror(arguments: dict[str, Any]) -> ToolResult[ReceivedArguments]:
    """Take arguments that clients over HTTP repeat in headers, so that what stands between can
    route by them.
    """
    return ToolResult(ReceivedArguments(arguments), f"Taken: {', '.join(arguments) or 'nothing'}.")


MIRRORED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {
            "type": "string",
            "description": "Where, as in eu-west.",
            "x-mcp-header": "Region",
        },
        "shard": {
            "type": "integer",
            "description": "Which part.",
            "minimum": 0,
            "maximum": 1000,
            "x-mcp-header": "Shard",
        },
        "urgent": {
            "type": "boolean",
            "description": "Whether it has to be soon.",
            "x-mcp-header": "Urgent",
        },
        "customer": {
            "type": "object",
            "description": "For whom.",
            "properties": {
                "tier": {"type": "string", "enum": ["free", "paid"], "x-mcp-header": "Tier"}
            },
        },
    },
    "required": ["region"],
}


def add_taking(server: Server) -> None:
    """Give a server the tools of this file."""
    server.tool(title="Convert a temperature", annotations=PURE, input_schema=TEMPERATURE)(convert)
    server.tool(title="Types of Python", annotations=PURE)(take_types)
    server.tool(title="Arguments in headers", annotations=PURE, input_schema=MIRRORED)(mirror)
    for name, variant in {**VARIANTS, **DIALECTS}.items():
        server.tool(title=variant.title, annotations=PURE, input_schema=variant.schema)(
            taker(name, variant.words)
        )
