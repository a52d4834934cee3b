"""Lenient access to untrusted JSON: a value of the wrong type counts as absent."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from interlock.types import JSONObject


def parsed(data: bytes | str) -> Any:
    """Decode JSON. Raises ValueError for anything else, however deeply nested."""
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        raise ValueError("JSON that is too deep") from None


def object_of(value: Any, name: str = "") -> JSONObject:
    """The value, or its member `name`, if that is an object; else an empty object."""
    if name:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def list_of(value: Any, name: str = "") -> list[Any]:
    """The value, or its member `name`, if that is an array; else an empty list."""
    if name:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, list) else []


def text_of(value: Any, name: str = "") -> str:
    """The value, or its member `name`, if that is a string; else an empty string."""
    if name:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def count_of(value: Any, *names: str) -> int:
    """The first of the members that is a positive number, as an integer; 0 if there is none."""
    for name in names:
        found = object_of(value).get(name)
        if (
            isinstance(found, int | float)
            and not isinstance(found, bool)
            and math.isfinite(found)
            and found > 0
        ):
            return int(found)
    return 0


def joined(parts: Iterable[str], most: int) -> str:
    """The concatenated parts, truncated to `most` characters."""
    whole = "".join(parts)
    return whole if len(whole) <= most else whole[: most - 1] + "…"
