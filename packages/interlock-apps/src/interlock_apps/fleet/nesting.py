"""The nesting limit: deeply nested data from a server would exhaust the stack."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

MOST_LEVELS: Final = 100
"""Levels of lists and objects in one value.

An honest schema, argument or result has less than a tenth of it.
"""


def too_deep(value: Any, most: int = MOST_LEVELS) -> bool:
    """Whether a value of JSON, or of records that contain JSON, is nested too deeply."""
    level = [value]
    for _ in range(most + 1):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    found: Iterable[Any] = ()
    if isinstance(value, dict):
        found = value.values()
    elif isinstance(value, list | tuple):
        found = value
    elif isinstance(value, Struct):
        found = (getattr(value, name) for name in value.__struct_fields__)
    return [each for each in found if isinstance(each, dict | list | tuple | Struct)]
