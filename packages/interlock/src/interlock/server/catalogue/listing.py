"""Paginated lists, encoded once for each revision and audience, and cached until a change."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Annotated

import msgspec

from ... import types as t
from ...caches import BoundedCache
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

# What is listed, the cursor, the revision, the name of the audience, the scopes that count, and
# whether apps are shown.
_Place = tuple[str, str | None, str, bytes, frozenset[str], bool]


class ListPages:
    """The lists of one server in pages, encoded once for each revision and audience."""

    def __init__(self, visibility: Visibility, page_size: int, list_ttl_ms: int) -> None:
        self._visibility = visibility
        self.page_size = page_size
        self._list_ttl_ms = list_ttl_ms
        self._offered: dict[str, tuple[Callable[..., t.PaginatedResult], int]] = {}
        self.clear()

    def offer(self, what: str, result: Callable[..., t.PaginatedResult], page_size: int) -> None:
        """Add a list of an extension: the type of a page, and how many items one page holds."""
        self._offered[what] = (result, page_size)

    def page(
        self, what: str, cursor: str | None, revision: str, audience: Audience | None = None
    ) -> bytes:
        """One page, encoded for a revision, of what an audience sees; None stands for everything.

        Raises McpError (-32602) for a cursor that is not ours (`PAG-05`).
        """
        # Taken before the features are read: a page must not be kept if they change meanwhile.
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
        """Something changed."""
        self._pages: BoundedCache[_Place, bytes] = BoundedCache(_MOST_KEPT, most_size=_MOST_BYTES)
        self._scopes: dict[str, frozenset[str]] = {}

    def _asked(self, what: str) -> frozenset[str]:
        """All the scopes that a list's features ask for."""
        known = self._scopes
        asked = known.get(what)
        if asked is None:
            asked = known[what] = NONE.union(
                *(feature.scopes for feature in self._visibility.shelf(what).all())
            )
        return asked

    def _page(self, what: str, cursor: str | None, audience: Audience | None) -> t.PaginatedResult:
        visibility = self._visibility
        shelf = visibility.shelf(what)
        found = shelf.after(_place(cursor))
        if audience is not None:
            found = [
                (place, feature)
                for place, feature in found
                if visibility.lists(shelf, feature, audience)
            ]
        kind, page_size = self._offered.get(what) or (_RESULTS[what], self.page_size)
        page = found[:page_size]
        # What depends on who asks is for nobody else.
        is_private = (
            visibility.has_hook
            or bool(self._asked(what))
            or (what == "tools" and visibility.has_tools_for_apps)
        )
        return kind(
            **{what: [feature.listing for _, feature in page]},
            next_cursor=_cursor(page[-1][0]) if len(page) < len(found) else None,
            ttl_ms=self._list_ttl_ms,
            cache_scope="private" if is_private else "public",
        )


def _cursor(place: int) -> str:
    """Where the next page begins: behind the place of this page's last feature, whatever comes and
    goes until it is asked for.

    Workers that add the same features in the same order understand each other's cursors.
    """
    return base64.urlsafe_b64encode(b"%d" % place).decode()


def _place(cursor: str | None) -> int:
    if cursor is None:
        return 0
    try:
        place: int = msgspec.json.decode(
            base64.b64decode(cursor, altchars=b"-_", validate=True),
            type=Annotated[int, msgspec.Meta(ge=1)],
        )
    except (binascii.Error, ValueError):
        raise t.McpError(
            t.INVALID_PARAMS, "Invalid cursor: it is not one that this server gave"
        ) from None
    return place
