"""Lenient arguments: JSON values that a model wrote as strings, read as the type of the schema."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..wire.jsonrpc import READ_ERRORS

_number = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?").fullmatch
_whole_number = re.compile(r"-?(?:0|[1-9][0-9]*)").fullmatch
_decode = msgspec.json.Decoder().decode
_LONGEST_NUMBER = 100  # characters
_DEEPEST = 64  # levels of values, and consecutive references
_MOST_BRANCHES = 100
_WHOLE = 2.0**53  # above it, a float cannot represent every integer
_TYPES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    type(None): "null",
    list: "array",
    dict: "object",
}
_WORDS: Mapping[str, tuple[str, Any]] = {
    "true": ("boolean", True),
    "false": ("boolean", False),
    "null": ("null", None),
}


def coerced(value: Any, schema: Any, root: Mapping[str, Any], *, strings: bool = True) -> Any:
    """Return the value that the model surely meant, if the schema does not allow the given one;
    else the value itself.

    A string becomes a number, a boolean, null, a list or an object, if the schema allows that type
    and no string (only with `strings`). A float without a fraction becomes an integer, if the
    schema allows no other number. A value whose type the schema allows is never changed.

    Args:
        value: JSON data.
        schema: The schema of the value.
        root: The whole schema, for its `$defs`.
        strings: Whether strings are converted.
    """
    return _coerced(value, schema, root, strings, _DEEPEST)


def _coerced(value: Any, schema: Any, root: Mapping[str, Any], strings: bool, left: int) -> Any:
    if left == 0:
        return value
    if isinstance(value, str) and strings:
        value = _read(value, _allowed(schema, root))
    elif isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE:
        allowed = _allowed(schema, root)
        if allowed is not None and "integer" in allowed and "number" not in allowed:
            return int(value)
    if isinstance(value, dict):
        branch = _only(schema, root, "object")
        return value if branch is None else _object(value, branch, root, strings, left)
    if isinstance(value, list):
        branch = _only(schema, root, "array")
        return value if branch is None else _list(value, branch, root, strings, left)
    return value


def _object(
    value: dict[str, Any],
    schema: Mapping[str, Any],
    root: Mapping[str, Any],
    strings: bool,
    left: int,
) -> dict[str, Any]:
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    return {
        key: _coerced(item, properties.get(key, others), root, strings, left - 1)
        for key, item in value.items()
    }


def _list(
    value: list[Any], schema: Mapping[str, Any], root: Mapping[str, Any], strings: bool, left: int
) -> list[Any]:
    first = schema.get("prefixItems", ())
    others = schema.get("items", True)
    return [
        _coerced(item, first[n] if n < len(first) else others, root, strings, left - 1)
        for n, item in enumerate(value)
    ]


def _read(text: str, allowed: frozenset[str] | None) -> Any:
    """The JSON value in a string, if the schema allows its type and no string."""
    if allowed is None or "string" in allowed:
        return text
    short = text.strip()
    if short[:1] in ("{", "["):
        try:
            value = _decode(short.encode())
        except (*READ_ERRORS, UnicodeEncodeError):
            return text
        return value if _TYPES[type(value)] in allowed else text
    kind, value = _WORDS.get(short.lower(), ("", None))
    if kind:
        return value if kind in allowed else text
    if len(short) > _LONGEST_NUMBER or not _number(short):
        return text
    if _whole_number(short) and not allowed.isdisjoint({"integer", "number"}):
        return int(short)
    number = float(short)
    if "number" in allowed and math.isfinite(number):
        return number
    return int(number) if _is_whole(number) and "integer" in allowed else text


def _is_whole(number: float) -> bool:
    return number.is_integer() and abs(number) < _WHOLE


def _allowed(schema: Any, root: Mapping[str, Any]) -> frozenset[str] | None:
    """The JSON types that a schema allows; None if it allows all, or does not say."""
    kinds: set[str] = set()
    for branch in _branches(schema, root, [_MOST_BRANCHES]):
        if branch is None:
            return None
        said = branch.get("type")
        values = branch.get("enum", [branch["const"]] if "const" in branch else None)
        if values is not None:
            kinds.update(_TYPES[type(value)] for value in values if type(value) in _TYPES)
        elif isinstance(said, str):
            kinds.add(said)
        elif isinstance(said, list):
            kinds.update(kind for kind in said if isinstance(kind, str))
        else:
            return None
    return frozenset(kinds)


def _only(schema: Any, root: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """The only branch of a schema for objects, or for lists; None if there are none or several."""
    found: list[Mapping[str, Any]] = []
    for branch in _branches(schema, root, [_MOST_BRANCHES]):
        said = branch.get("type") if branch is not None else None
        if branch is None or said is None:
            return None
        if said == kind or (isinstance(said, list) and kind in said):
            found.append(branch)
    return found[0] if len(found) == 1 else None


def _branches(
    schema: Any, root: Mapping[str, Any], left: list[int]
) -> Iterator[Mapping[str, Any] | None]:
    """The alternatives of a schema, with references resolved; None for one that is not
    supported.
    """
    left[0] -= 1
    if not isinstance(schema, Mapping) or left[0] < 0:
        yield None
        return
    if "$ref" in schema:
        yield from _branches(_definition(schema["$ref"], root), root, left)
        return
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            for branch in schema[key]:
                yield from _branches(branch, root, left)
            return
    if "allOf" in schema:
        parts = schema["allOf"]
        one = parts[0] if isinstance(parts, list) and len(parts) == 1 else None
        yield from _branches(one, root, left)
        return
    yield schema


def _definition(reference: Any, root: Mapping[str, Any]) -> Any:
    """The schema that a reference into `$defs` points to; None for any other reference."""
    if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
        return None
    name = reference.removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~")
    definitions = root.get("$defs", {})
    return definitions.get(name) if isinstance(definitions, Mapping) else None
