"""Resolves references inside a JSON Schema, and none outside of it (`JSC-05`)."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from interlock.types import JSONObject

_DEEPEST = 200


def resolve(root: JSONObject, reference: Any) -> Any:
    """The target of a reference inside the schema.

    None if it points outside the schema or has no target.
    """
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    if reference == "#":
        return root
    fragment = unquote(reference[1:])
    if not fragment.startswith("/"):
        return _anchored(root, fragment, 0)
    found: Any = root
    for step in fragment[1:].split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and step in found:
            found = found[step]
        elif (
            isinstance(found, list) and step.isdigit() and len(step) < 9 and int(step) < len(found)
        ):
            found = found[int(step)]
        else:
            return None
    return found


def _anchored(schema: Any, name: str, depth: int) -> Any:
    if depth > _DEEPEST:
        return None
    if isinstance(schema, dict):
        if name in (schema.get("$anchor"), schema.get("$dynamicAnchor")):
            return schema
        parts: Any = schema.values()
    elif isinstance(schema, list):
        parts = schema
    else:
        return None
    return next(
        (found for part in parts if (found := _anchored(part, name, depth + 1)) is not None), None
    )


def dangling(root: JSONObject) -> bool:
    """Whether a reference has no target in the schema."""
    waiting: list[Any] = [root]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            for keyword in ("$ref", "$dynamicRef"):
                if isinstance(part.get(keyword), str) and not isinstance(
                    resolve(root, part[keyword]), dict | bool
                ):
                    return True
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return False
