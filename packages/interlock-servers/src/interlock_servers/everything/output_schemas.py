"""Output schemas: objects, and since 2026-07-28 arrays and single values.

Revisions before 2026-07-28 allow only objects: other schemas and their data are not sent to them.
The two oldest have no structured content, so the data follows the text as another text.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from interlock import Server, ToolResult

from .state import PURE

SEASONS = ("winter", "spring", "summer", "autumn")
TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/person"}},
    "required": ["root"],
    "$defs": {
        "person": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/person"}},
            },
            "required": ["name", "children"],
            "additionalProperties": False,
        }
    },
}
SHAPE = {
    "type": "object",
    "oneOf": [
        {
            "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
            "required": ["kind", "radius"],
        },
        {
            "properties": {"kind": {"const": "square"}, "side": {"type": "number"}},
            "required": ["kind", "side"],
        },
    ],
}
Size = Annotated[float, Meta(gt=0, description="How large it is.")]


async def list_primes(
    most: Annotated[int, Meta(ge=2, le=1000, description="The last number to look at.")] = 20,
) -> ToolResult[list[int]]:
    """Give an array: the prime numbers up to a number."""
    primes = [n for n in range(2, most + 1) if all(n % d for d in range(2, int(n**0.5) + 1))]
    return ToolResult(primes, ", ".join(map(str, primes)))


async def name_season(
    month: Annotated[int, Meta(ge=1, le=12, description="Of the year, in the northern half.")],
) -> ToolResult[str]:
    """Give one of a few strings: the season of a month."""
    season = SEASONS[month % 12 // 3]
    return ToolResult(season, f"{season.title()}.")


async def halve(number: Annotated[float, "Any number."]) -> ToolResult[float]:
    """Give a number: the half of another one."""
    return ToolResult(number / 2, f"{number / 2:g}")


async def is_leap_year(
    year: Annotated[int, Meta(ge=1, le=9999, description="Of the common calendar.")],
) -> ToolResult[bool]:
    """Give true or false: whether a year has 366 days."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return ToolResult(leap, f"{year} has {366 if leap else 365} days.")


async def middle_name(name: Annotated[str, "A whole name."]) -> ToolResult[str | None]:
    """Give a string or null: what stands between the first and the last name."""
    middle = " ".join(name.split()[1:-1]) or None
    return ToolResult(middle, middle or "There is none.")


async def draw_shape(
    kind: Annotated[Literal["circle", "square"], "Which one."], size: Size = 1.0
) -> ToolResult[dict[str, Any]]:
    """Give an object of one of two kinds, which its member `kind` tells apart."""
    shape: dict[str, Any] = {"kind": kind, "radius" if kind == "circle" else "side": size}
    return ToolResult(shape, f"A {kind} of {size:g}.")


async def draw_tree(
    depth: Annotated[
        int, Meta(ge=0, le=5, description="How many generations come after the first.")
    ] = 2,
) -> ToolResult[dict[str, Any]]:
    """Give an object that holds others of its kind: a family, by a schema with references to
    itself.
    """

    def person(name: str, left: int) -> dict[str, Any]:
        return {
            "name": name,
            "children": [person(f"{name}{n}", left - 1) for n in (1, 2)] if left else [],
        }

    return ToolResult({"root": person("A", depth)}, f"A family of {2 ** (depth + 1) - 1}.")


OUTPUTS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "list_primes": (
        list_primes,
        "An array",
        {"type": "array", "items": {"type": "integer", "minimum": 2}, "uniqueItems": True},
    ),
    "name_season": (name_season, "One of a few strings", {"type": "string", "enum": list(SEASONS)}),
    "halve": (halve, "A number", {"type": "number"}),
    "is_leap_year": (is_leap_year, "True or false", {"type": "boolean"}),
    "middle_name": (middle_name, "A string or null", {"type": ["string", "null"]}),
    "draw_shape": (draw_shape, "One of two kinds", SHAPE),
    "draw_tree": (draw_tree, "A tree", TREE),
}
"""Tool -> its function, its title and its output schema."""


def add_outputs(server: Server) -> None:
    """Give a server the tools of this file."""
    for function, title, schema in OUTPUTS.values():
        server.tool(title=title, annotations=PURE, output_schema=schema)(function)
