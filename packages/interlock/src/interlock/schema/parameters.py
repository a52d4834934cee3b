"""Parameters of a schema: defaults, and parameters that are sent as HTTP headers."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from .survey import BY_NAME, DATA, SchemaError

__all__ = ["defaults", "header_parameters"]

_HEADER = "x-mcp-header"
_IN_JSON = b'"x-mcp-header"'
_encode = msgspec.json.Encoder().encode
_KINDS = ("integer", "string", "boolean")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, section 5.6.2
_SAFE_INTEGER = 2**53 - 1


def header_parameters(schema: Mapping[str, Any] | bool) -> dict[str, tuple[str, ...]]:
    """Return the parameters that a tool's `inputSchema` mirrors into HTTP headers: for each token
    the path of property names.

    The header of a token is `Mcp-Param-<token>`. Raises SchemaError with the reason if an
    annotation breaks a rule; then the whole tool must not be used over HTTP (2026-07-28, "Custom
    Headers from Tool Parameters").
    """
    if not _may_have_headers(schema):
        return {}
    found: dict[str, tuple[str, ...]] = {}
    taken: set[str] = set()
    # The stack holds the subschemas still to check: their position in words, and the path of
    # property names, or None if `properties` alone does not lead there.
    stack: list[tuple[Any, str, tuple[str, ...] | None]] = [(schema, "the schema itself", ())]
    while stack:
        node, where, path = stack.pop()
        if isinstance(node, list | tuple):
            stack.extend((child, where, None) for child in node)
        if not isinstance(node, Mapping):
            continue
        if _HEADER in node:
            token = _token(node, where, path)
            if token.lower() in taken:
                raise SchemaError(
                    f"{_HEADER} {token!r} is given twice (upper and lower case are the same);"
                    " each may appear once."
                )
            taken.add(token.lower())
            found[token] = path or ()
        stack.extend(reversed(list(_next(node, where, path))))
    return found


def _may_have_headers(schema: Mapping[str, Any] | bool) -> bool:
    """Whether the annotation occurs anywhere. Most schemas have none, and need no walk."""
    try:
        return _IN_JSON in _encode(schema)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return True  # it is not plain JSON data; the walk finds what exists


def _next(
    node: Mapping[str, Any], where: str, path: tuple[str, ...] | None
) -> Iterator[tuple[Any, str, tuple[str, ...] | None]]:
    for keyword, value in node.items():
        if keyword in DATA or keyword == _HEADER:
            continue
        if keyword in BY_NAME and isinstance(value, Mapping):
            for name, child in value.items():
                onward = (*path, name) if keyword == "properties" and path is not None else None
                yield (
                    child,
                    f"the property {'.'.join(onward)!r}"
                    if onward
                    else _aside(where, keyword, path),
                    onward,
                )
        else:
            yield value, _aside(where, keyword, path), None


def _aside(where: str, keyword: str, path: tuple[str, ...] | None) -> str:
    return where if path is None else f"something under {keyword} of {where}"


def _token(node: Mapping[str, Any], where: str, path: tuple[str, ...] | None) -> str:
    token = node[_HEADER]
    kind = node.get("type")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise SchemaError(
            f"{_HEADER} {token!r:.80} on {where} is not a header token: one or more of letters,"
            " digits and !#$%&'*+-.^_`|~"
        )
    if not path:
        raise SchemaError(
            f"{_HEADER} {token!r} stands on {where}; only a property reached through `properties`"
            " alone can be a header."
        )
    if kind not in _KINDS:
        raise SchemaError(
            f"{_HEADER} {token!r} stands on {where} of type {kind!r:.80}; only integer, string"
            " and boolean can be headers."
        )
    choices = node.get("enum")
    for value in (
        node.get("const"),
        node.get("default"),
        *(choices if isinstance(choices, list | tuple) else ()),
    ):
        if isinstance(value, int) and abs(value) > _SAFE_INTEGER:
            raise SchemaError(
                f"{_HEADER} {token!r} on {where} allows {value}, which is beyond 2**53 - 1 and"
                " would not travel exactly."
            )
    return token


def defaults(schema: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of `value` in which missing properties have the defaults of a flat object
    schema (`ELI-12`).
    """
    filled = dict(value)
    properties = schema.get("properties")
    for name, node in properties.items() if isinstance(properties, Mapping) else ():
        if name not in filled and isinstance(node, Mapping) and "default" in node:
            filled[name] = copy.deepcopy(node["default"])
    return filled
