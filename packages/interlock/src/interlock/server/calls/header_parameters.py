"""Header parameters: HTTP headers that must repeat the arguments marked in the schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from ... import types as t
from ...wire.http import BadHeaderValue, decode_value

_WHOLE = re.compile(r"(-?[0-9]{1,40})(?:\.0{1,40})?")


def check_mirrors(
    mirrors: Mapping[str, tuple[str, ...]], headers: Mapping[str, str], arguments: Raw
) -> None:
    """Compare each mirrored argument with its header. The names in `headers` are in lower case.

    Raises McpError (-32020) if they differ (`XMH-19`).
    """
    try:
        values = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # decoding the arguments reports the error
    for token, path in mirrors.items():
        name = f"Mcp-Param-{token}"
        header = headers.get(name.lower())
        value = _at(values, path)
        if value is None:
            if header is not None:
                raise _mismatch(f"the header {name} has no argument {'.'.join(path)}")
            continue
        if header is None:
            raise _mismatch(f"the header {name} is missing")
        if not _same(decoded(header, name), value):
            raise _mismatch(f"the header {name} differs from the argument {'.'.join(path)}")


def decoded(header: str, name: str) -> str:
    """Return the value of a header, decoded from base64 if necessary (`XMH-17`).

    Raises McpError (-32020).
    """
    try:
        return decode_value(header)
    except BadHeaderValue as bad:
        raise _mismatch(f"the header {name} {bad}") from None


def _at(values: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        values = values.get(step) if isinstance(values, dict) else None
    return values


def _same(header: str, value: Any) -> bool:
    if isinstance(value, bool):
        return header == ("true" if value else "false")
    if isinstance(value, int | float):
        whole = _WHOLE.fullmatch(header)
        return whole is not None and int(whole[1]) == value  # `XMH-21`
    return bool(header == value)


def _mismatch(words: str) -> t.McpError:
    return t.McpError(t.HEADER_MISMATCH, f"Header mismatch: {words}")
