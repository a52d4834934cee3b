"""Merges two schemas that both must hold, and walks over subschemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from interlock.types import JSONObject

from .lenient_json import list_of, object_of

# Keywords that have a meaning only together: if both schemas have some of a group, all of the group
# are taken from the first.
_TOGETHER = (
    frozenset({"if", "then", "else"}),
    frozenset({"contains", "minContains", "maxContains"}),
    frozenset({"prefixItems", "items", "additionalItems"}),
)
_UNSEEN = (
    "unevaluatedProperties",
    "unevaluatedItems",
)  # what they forbid depends on all other keywords of the schema
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_VALUES = frozenset({"enum", "const", "default", "examples", "required", "dependentRequired"})


def both(one: JSONObject, other: JSONObject) -> JSONObject:
    """A schema that accepts everything that both accept, and perhaps more. If both have a keyword,
    that of the first is used.
    """
    merged = dict(one)
    for keyword, value in other.items():
        if keyword in ("properties", "patternProperties") and isinstance(value, dict):
            merged[keyword] = {**value, **object_of(one, keyword)}
        elif keyword == "required" and isinstance(value, list):
            merged[keyword] = list(dict.fromkeys([*list_of(one, keyword), *value]))
        elif keyword not in merged and not any(
            keyword in group and group & one.keys() for group in _TOGETHER
        ):
            merged[keyword] = value
    for keyword in _UNSEEN:
        merged.pop(keyword, None)
    return merged


def subschemas(schema: Any) -> Iterator[JSONObject]:
    """The schema and all object schemas in it, from the outside in. Values such as `default` are
    not searched.
    """
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            yield part
            for keyword, value in part.items():
                if keyword in _MAPS:
                    waiting += object_of(value).values()
                elif keyword not in _VALUES:
                    waiting.append(value)
