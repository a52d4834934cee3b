"""Base classes of all protocol types: how a type is encoded, and the small types that others
share.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Raw, Struct, field

JSON = Any
"""Any JSON value as Python has it: None, bool, int, float, str, list, or dict with str keys."""

JSONObject = dict[str, Any]  # a JSON object as Python has it
RequestId = int | str  # identifies a request on its connection; "1" is not 1
ProgressToken = int | str  # identifies a request in its progress notifications
Role = Literal["user", "assistant"]  # the author of a message

NOTHING = Raw(b"{}")
"""The default of fields that keep their JSON unread; it is left out when a type is encoded."""


class WireType(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A protocol type: immutable, camelCase on the wire, absent fields stay absent, unknown fields
    are ignored.
    """


class Annotations(WireType, frozen=True, kw_only=True):
    """Hints to the client about the use of a content block or resource (2026-07-28, "Annotations").

    `priority` runs from 0 (optional) to 1 (required); `last_modified` is an ISO 8601 time.
    """

    audience: list[Role] | None = None
    priority: float | None = None
    last_modified: str | None = None


class Icon(WireType, frozen=True, kw_only=True):
    """A picture for display: `src` is an https or data URI, `sizes` are like "48x48" or "any"
    (2026-07-28, "Icons").
    """

    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


class Implementation(WireType, frozen=True, kw_only=True):
    """Name and version of a client or server, for people and logs, never for decisions (2026-07-28,
    "_meta").
    """

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: list[Icon] | None = None


class Params(WireType, frozen=True, kw_only=True):
    """The base of the params of all requests and notifications; `meta` is the undecoded JSON of
    `_meta`.
    """

    meta: Raw = field(default=NOTHING, name="_meta")


class Result(WireType, frozen=True, kw_only=True):
    """The base of all results. A missing `result_type` means "complete" (2026-07-28,
    "Responses").
    """

    meta: JSONObject | None = field(default=None, name="_meta")
    result_type: str | None = None


class EmptyResult(Result, frozen=True, kw_only=True):
    """A result without content: the request was carried out."""


class PaginatedParams(Params, frozen=True, kw_only=True):
    """Params of a list request; `cursor` is opaque and comes from the previous page (2026-07-28,
    "Pagination").
    """

    cursor: str | None = None


CacheScope = Literal[
    "public", "private"
]  # whether a cached result may be served to all callers, or only to the principal that received it


class CacheableResult(Result, frozen=True, kw_only=True):
    """A result that a client may cache for `ttl_ms` milliseconds, for one principal or for all
    (2026-07-28, "Caching").
    """

    ttl_ms: int | None = None
    cache_scope: CacheScope | None = None


class PaginatedResult(CacheableResult, frozen=True, kw_only=True):
    """One page of a list; the last one has no `next_cursor`."""

    next_cursor: str | None = None
