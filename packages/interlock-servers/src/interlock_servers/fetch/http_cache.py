"""HTTP cache: how long a response may be reused, and how it is validated (RFC 9111)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from msgspec import Struct
from msgspec.structs import replace

Headers = Mapping[str, str]  # names in lower case

_DAY = 86_400.0
_LONGEST = 2**31  # seconds; a longer lifetime counts as this one (1.2.2)
_HEURISTIC = frozenset(
    {200, 203, 300, 301, 308, 404, 405, 410, 414, 501}
)  # status codes that are cacheable by default (RFC 9110, 15.1)
_UNDERSTOOD = _HEURISTIC | {302, 303, 307}
_SHARE = 0.1  # the share of the time since the last change, if no lifetime is given (4.2.2)
_DIRECTIVE = re.compile(
    r"""([!#$%&'*+.^_`|~\w-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,;"]*)))?""", re.ASCII
)
_OF_THE_WAY = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "content-range",
        "keep-alive",
        "trailer",
        "transfer-encoding",
    }
)


class CachedResponse(Struct, frozen=True):
    """A cached response.

    `asked_with` are its request headers; times are Unix times by our clock.
    """

    url: str
    status: int
    headers: dict[str, str]
    body: bytes
    asked_with: dict[str, str]
    asked: float
    came: float


def directives(headers: Headers) -> dict[str, str]:
    """The directives of `Cache-Control`; one that occurs twice with different values has an empty
    value.
    """
    found: dict[str, str] = {}
    for name, quoted, plain in _DIRECTIVE.findall(headers.get("cache-control", "")):
        value = quoted or plain
        low = name.lower()
        found[low] = value if found.get(low, value) == value else ""
    return found


def may_keep(status: int, headers: Headers, *, shared: bool = False) -> bool:
    """Whether the response to a GET may be cached (3); `shared` if several callers would get it."""
    said = directives(headers)
    if (
        (shared and "private" in said)
        or "no-store" in said
        or status not in _UNDERSTOOD
        or "*" in headers.get("vary", "")
    ):
        return False
    return (
        status in _HEURISTIC
        or "max-age" in said
        or "expires" in headers
        or bool({"public", "private"} & said.keys())
    )


def lifetime(kept: CachedResponse) -> float:
    """The freshness lifetime of a response in seconds (4.2.1); 0 if its headers are invalid."""
    said = directives(kept.headers)
    if "max-age" in said:
        return _seconds(said["max-age"]) or 0.0
    made = _moment(kept.headers.get("date"))
    made = kept.came if made is None else made
    if "expires" in kept.headers:
        ends = _moment(kept.headers["expires"])
        return 0.0 if ends is None else max(0.0, ends - made)
    changed = _moment(kept.headers.get("last-modified"))
    if kept.status not in _HEURISTIC or changed is None:
        return 0.0
    return min(_DAY, max(0.0, made - changed) * _SHARE)


def age(kept: CachedResponse, now: float) -> float:
    """The age of a response in seconds (4.2.3)."""
    made = _moment(kept.headers.get("date"))
    apparent = 0.0 if made is None else max(0.0, kept.came - made)
    on_the_way = (_seconds(kept.headers.get("age", "").partition(",")[0]) or 0.0) + max(
        0.0, kept.came - kept.asked
    )
    return max(apparent, on_the_way) + max(0.0, now - kept.came)


def is_fresh(kept: CachedResponse, now: float) -> bool:
    """Whether a response may be used without validation (4.2)."""
    return "no-cache" not in directives(kept.headers) and lifetime(kept) > age(kept, now)


def holds_in_need(kept: CachedResponse, now: float) -> bool:
    """Whether a stale response may be used if its server fails (RFC 5861, 4)."""
    said = directives(kept.headers)
    if {"no-cache", "must-revalidate"} & said.keys() or "stale-if-error" not in said:
        return False
    return age(kept, now) < lifetime(kept) + (_seconds(said["stale-if-error"]) or 0.0)


def is_for(kept: CachedResponse, headers: Headers) -> bool:
    """Whether a response matches a request with these headers (4.1)."""
    named = [name.strip().lower() for name in kept.headers.get("vary", "").split(",")]
    return all(kept.asked_with.get(name) == headers.get(name) for name in named if name)


def conditions(kept: CachedResponse) -> dict[str, str]:
    """The headers of a conditional request for a cached response (4.3.1)."""
    given = {
        "if-none-match": kept.headers.get("etag"),
        "if-modified-since": kept.headers.get("last-modified"),
    }
    return {
        name: value
        for name, value in given.items()
        if value and value.isascii() and value.isprintable()
    }


def renewed(kept: CachedResponse, headers: Headers, asked: float, came: float) -> CachedResponse:
    """A cached response after a 304: with the new headers and the old body (3.2)."""
    new = {name: value for name, value in headers.items() if name not in _OF_THE_WAY}
    return replace(kept, headers={**kept.headers, **new}, asked=asked, came=came)


def _seconds(text: str) -> float | None:
    text = text.strip()
    return float(min(int(text[:12]), _LONGEST)) if text.isascii() and text.isdigit() else None


def _moment(text: str | None) -> float | None:
    """An HTTP date in seconds since 1970."""
    if not text:
        return None
    try:
        found = parsedate_to_datetime(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
