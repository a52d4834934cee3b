"""Paginated lists, encoded once for each revision and audience, and cached until a change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Annotated, TypeVar

import msgspec

from ... import types as t
from ...caches import BoundedCache
from ...cursors import InvalidCursor, decode_cursor, encode_cursor
from ...wire.codec import encode
from .scopes import NONE
from .visibility import Audience, Visibility

_RESULTS: dict[str, Callable[..., t.PaginatedResult]] = {
    "tools": t.ListToolsResult,
    "prompts": t.ListPromptsResult,
    "resources": t.ListResourcesResult,
    "resource_templates": t.ListResourceTemplatesResult,
}
_MOST_KEPT = 1024  # pages
_MOST_BYTES = 32 * 1024 * 1024
_PLACE_BYTES = 6
_PlaceBytes = Annotated[bytes, msgspec.Meta(min_length=_PLACE_BYTES, max_length=_PLACE_BYTES)]

T = TypeVar("T")

# The list, the cursor, the revision, the name of the audience, the relevant scopes, and whether
# apps are shown.
_Place = tuple[str, str | None, str, bytes, frozenset[str], bool]


class ListPages:
    """The lists of one server in pages, encoded once for each revision and audience.

    Args:
        visibility: Which features a caller sees.
        page_size: The maximum number of features on a page.
        list_ttl_ms: The time for which clients may cache a page, in milliseconds.
        keys: Keys that seal the cursors of lists with hidden features. The distance between two
            plain positions would reveal their number. All workers share the keys.
    """

    def __init__(
        self, visibility: Visibility, page_size: int, list_ttl_ms: int, keys: Sequence[bytes]
    ) -> None:
        self._visibility = visibility
        self._keys = keys
        self.page_size = page_size
        self._list_ttl_ms = list_ttl_ms
        self._offered: dict[str, tuple[Callable[..., t.PaginatedResult], int]] = {}
        self.clear()

    def offer(self, what: str, result: Callable[..., t.PaginatedResult], page_size: int) -> None:
        """Add a list of an extension: the type of a page, and the number of items on a page."""
        self._offered[what] = (result, page_size)

    def page(
        self, what: str, cursor: str | None, revision: str, audience: Audience | None = None
    ) -> bytes:
        """Return one page of what an audience sees, encoded for a revision. None stands for an
        audience that sees everything.

        Raises McpError (-32602) for an unknown cursor (`PAG-05`).
        """
        # Read before the features: a page must not be cached if they change meanwhile.
        pages = self._pages
        asked = self._asked(what)
        name = b""
        have = asked
        apps = True
        if audience is not None:
            name = audience.name
            have = asked if audience.scopes is None else audience.scopes & asked
            apps = audience.apps or what != "tools"
            if not name and have == asked and apps:
                audience = None
        place = (what, cursor, revision, name, have, apps)
        body = pages.get(place)
        if body is None:
            body = encode(self._page(what, cursor, audience), revision)
            pages.put(place, body, len(body))
        return body

    def clear(self) -> None:
        """Drop all cached pages after a change."""
        self._pages: BoundedCache[_Place, bytes] = BoundedCache(_MOST_KEPT, most_size=_MOST_BYTES)
        self._scopes: dict[str, frozenset[str]] = {}

    def _asked(self, what: str) -> frozenset[str]:
        """Return all scopes that the features of a list require."""
        known = self._scopes
        asked = known.get(what)
        if asked is None:
            asked = known[what] = NONE.union(
                *(feature.scopes for feature in self._visibility.feature_list(what).made())
            )
        return asked

    def _page(self, what: str, cursor: str | None, audience: Audience | None) -> t.PaginatedResult:
        visibility = self._visibility
        feature_list = visibility.feature_list(what)
        # A page that depends on the caller must not be shared with other callers.
        is_private = (
            visibility.has_hook
            or bool(self._asked(what))
            or (what == "tools" and visibility.has_tools_for_apps)
        )
        keys = self._keys if is_private else ()
        place = 0 if cursor is None else _place_of(cursor, what, keys)
        found = (
            (own, feature)
            for own, feature in feature_list.after(place)
            if audience is None or visibility.lists(feature_list, feature, audience)
        )
        kind, page_size = self._offered.get(what) or (_RESULTS[what], self.page_size)
        page = list(islice(found, page_size))
        is_last = next(found, None) is None
        return kind(
            **{what: [feature.listing for _, feature in page]},
            next_cursor=None if is_last else _cursor_of(page[-1][0], what, keys),
            ttl_ms=self._list_ttl_ms,
            cache_scope="private" if is_private else "public",
        )


def read_cursor(cursor: str, kind: type[T], what: str, keys: Sequence[bytes] = ()) -> T:
    """Return the position in a cursor of a list. Raises McpError (-32602) for an invalid cursor."""
    try:
        return decode_cursor(cursor, kind, what, keys)
    except InvalidCursor:
        raise t.McpError(
            t.INVALID_PARAMS, "Invalid cursor: it is not one that this server gave"
        ) from None


def _cursor_of(place: int, what: str, keys: Sequence[bytes]) -> str:
    """Return the cursor of the next page. It begins after the position of this page's last feature,
    even if features are added or removed before the next request.

    Workers that add the same features in the same order can read each other's cursors. All
    positions are encoded in the same number of bytes, because a longer cursor would reveal the
    number of features before it.
    """
    return encode_cursor(place.to_bytes(_PLACE_BYTES), what, keys)


def _place_of(cursor: str, what: str, keys: Sequence[bytes]) -> int:
    return int.from_bytes(read_cursor(cursor, _PlaceBytes, what, keys))
