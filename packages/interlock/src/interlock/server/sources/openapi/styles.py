"""Parameter serialization: the styles of OpenAPI for values in paths, queries, headers and cookies.

The styles are those of URI templates (RFC 6570), with `deepObject` and two separators besides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec

from .operations import ApiParameter

_encode = msgspec.json.Encoder().encode
# Reserved characters that stay in a query; the others would end a value or the query.
_RESERVED = ":/?@!$'()*,;"
_SEPARATORS = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}


def path_text(parameter: ApiParameter, value: Any) -> str:
    """Return a value as part of a path, percent-encoded.

    Args:
        parameter: The parameter.
        value: The argument: JSON data.
    """
    if parameter.is_json:
        return escaped(_json(value))
    style = parameter.style
    name = escaped(parameter.name)
    if style == "matrix":
        return _matrix(name, value, explode=parameter.explode)
    between = "." if style == "label" and parameter.explode else ","
    text = _joined(value, between, explode=parameter.explode)
    return f".{text}" if style == "label" else text


def _matrix(name: str, value: Any, *, explode: bool) -> str:
    if explode and isinstance(value, list):
        return "".join(f";{name}={escaped(plain(item))}" for item in value)
    if explode and isinstance(value, dict):
        return "".join(f";{escaped(key)}={escaped(plain(item))}" for key, item in value.items())
    text = _joined(value, ",", explode=False)
    return f";{name}={text}" if text else f";{name}"


def _joined(value: Any, between: str, *, explode: bool) -> str:
    if isinstance(value, list):
        return between.join(escaped(plain(item)) for item in value)
    if isinstance(value, dict):
        members = ((escaped(key), escaped(plain(item))) for key, item in value.items())
        if explode:
            return between.join(f"{key}={item}" for key, item in members)
        return between.join(f"{key},{item}" for key, item in members)
    return escaped(plain(value))


def query_pairs(parameter: ApiParameter, value: Any) -> Iterator[str]:
    """Return the pairs `name=value` of a query, percent-encoded; none for an empty array."""
    name = escaped(parameter.name)
    safe = _RESERVED if parameter.reserved else ""
    if parameter.is_json:
        return iter((f"{name}={escaped(_json(value), safe)}",))
    return form_pairs(name, value, parameter.style, safe, explode=parameter.explode)


def form_pairs(
    name: str, value: Any, style: str, safe: str = "", *, explode: bool
) -> Iterator[str]:
    """Return the pairs of one value in a query or a form, percent-encoded.

    Args:
        name: The name, percent-encoded.
        value: JSON data.
        style: "form", "spaceDelimited", "pipeDelimited" or "deepObject".
        safe: Reserved characters that stay as they are.
        explode: Whether each item or member is a pair of its own.
    """
    if style == "deepObject" and isinstance(value, dict | list):
        yield from _deep(name, value, safe)
    elif isinstance(value, list) and explode:
        for item in value:
            yield f"{name}={escaped(plain(item), safe)}"
    elif isinstance(value, dict) and explode:
        for key, item in value.items():
            yield f"{escaped(key)}={escaped(plain(item), safe)}"
    elif isinstance(value, list | dict):
        between = _SEPARATORS.get(style, ",")
        items = value if isinstance(value, list) else [x for pair in value.items() for x in pair]
        if items:
            yield f"{name}={between.join(escaped(plain(item), safe) for item in items)}"
    else:
        yield f"{name}={escaped(plain(value), safe)}"


def _deep(name: str, value: Any, safe: str) -> Iterator[str]:
    """Write nested objects as `a[b][c]=1`, and arrays as `a[0]=1`.

    OpenAPI defines the first level only; most servers read further ones in this way.
    """
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _deep(f"{name}%5B{escaped(key)}%5D", item, safe)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _deep(f"{name}%5B{place}%5D", item, safe)
    else:
        yield f"{name}={escaped(plain(value), safe)}"


def header_text(parameter: ApiParameter, value: Any) -> str:
    """Return a value as that of a header, which is not percent-encoded."""
    if parameter.is_json:
        return _json(value)
    if isinstance(value, list):
        return ",".join(plain(item) for item in value)
    if isinstance(value, dict):
        between = "=" if parameter.explode else ","
        return ",".join(f"{key}{between}{plain(item)}" for key, item in value.items())
    return plain(value)


def cookie_pairs(parameter: ApiParameter, value: Any) -> Iterator[str]:
    """Return the pairs of a value in a Cookie header."""
    return query_pairs(parameter, value)


def plain(value: Any) -> str:
    """Return a value as text: a string as it is, and anything else as JSON."""
    return value if isinstance(value, str) else _json(value)


def escaped(text: str, safe: str = "") -> str:
    """Return text with all but unreserved and `safe` characters percent-encoded."""
    return quote(text, safe=safe)


def _json(value: Any) -> str:
    return _encode(value).decode()
