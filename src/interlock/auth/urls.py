"""Addresses as two of them are compared: in the one form that all spellings of the same address share (RFC 3986, 6.2)."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def plain_url(url: str) -> str | None:
    """A URL as two of them are compared: without query and fragment, in the one form of its like (RFC 3986, 6.2.2); None for no URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower()
    if scheme not in ("http", "https") or not host or parts.username is not None:
        return None
    place = f"[{host}]" if ":" in host else host
    if port is not None and port != {"http": 80, "https": 443}[scheme]:
        place = f"{place}:{port}"
    return f"{scheme}://{place}{_ESCAPE.sub(_plain_escape, parts.path) or '/'}"


def _plain_escape(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if character in _UNRESERVED else escape[0].upper()


def same_resource(one: str, other: str) -> bool:
    """Whether two identifiers name the same MCP server: scheme and host in any case, with or without a trailing slash (RFC 8707, 2)."""
    return plain_resource(one) == plain_resource(other) is not None


def plain_resource(url: str) -> str | None:
    """The canonical identifier of an MCP server: absolute, lower case where case says nothing, no trailing slash; None for no such.

    A query is part of it and a fragment makes it none (2026-07-28, "Authorization", "Canonical Server URI").
    """
    if "#" in url:
        return None
    plain = plain_url(url)
    _, mark, query = url.partition("?")
    return None if plain is None else plain.rstrip("/") + (f"?{query}" if mark else "")
