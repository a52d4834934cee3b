"""Lists in pages, encoded once for each revision and for all who see the same, and kept as bytes until something changes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from .. import types as t
from ..wire.codec import encode
from .scopes import NONE

if TYPE_CHECKING:
    from .app import Server

_RESULTS: dict[str, Callable[..., t.PaginatedResult]] = {
    "tools": t.ListToolsResult,
    "prompts": t.ListPromptsResult,
    "resources": t.ListResourcesResult,
    "resource_templates": t.ListResourceTemplatesResult,
}
_MOST_KEPT = 256
_MOST_PARTIAL = 128


class Catalogue:
    """The lists of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.clear()

    def page(
        self, what: str, cursor: str | None, revision: str, have: frozenset[str] | None = None
    ) -> bytes:
        """One page, encoded for a revision, of what may be seen by whoever has the scopes `have`; None stands for everything.

        Raises McpError (-32602) for a cursor that is not ours (`PAG-05`).
        """
        if have is not None:
            partial = self._partial  # before it is looked what is asked for: else a page of yesterday could be kept for tomorrow
            if asked := self._asked(what):
                return self._part(partial, (what, cursor, revision, have & asked))
        key, kept = (what, cursor, revision), self._kept
        body = kept.get(key)
        if body is None:
            body = encode(self._page(what, cursor), revision)
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            kept[key] = (
                body  # in vain where a thread has changed something meanwhile: then `kept` is thrown away already
            )
        return body

    def clear(self) -> None:
        """Something changed."""
        self._kept: dict[tuple[str, str | None, str], bytes] = {}
        self._partial: dict[tuple[str, str | None, str, frozenset[str]], bytes] = {}
        self._scopes: dict[str, frozenset[str]] = {}

    def _part(
        self,
        kept: dict[tuple[str, str | None, str, frozenset[str]], bytes],
        key: tuple[str, str | None, str, frozenset[str]],
    ) -> bytes:
        """One page of what some may see: kept for all of whom the same is true, the latest of these first."""
        body = kept.pop(key, None)
        if body is None:
            what, cursor, revision, seen = key
            body = encode(self._page(what, cursor, seen), revision)
            while len(kept) >= _MOST_PARTIAL:
                del kept[next(iter(kept))]
        kept[key] = body
        return body

    def _asked(self, what: str) -> frozenset[str]:
        """All the scopes that a list's features ask for."""
        known = self._scopes
        asked = known.get(what)
        if asked is None:
            asked = known[what] = NONE.union(
                *(feature.scopes for feature in self._shelf(what).all())
            )
        return asked

    def _shelf(self, what: str) -> Any:
        server = self._server
        return {
            "tools": server.tools,
            "prompts": server.prompts,
            "resources": server.resources,
            "resource_templates": server.templates,
        }[what]

    def _page(
        self, what: str, cursor: str | None, seen: frozenset[str] | None = None
    ) -> t.PaginatedResult:
        server = self._server
        found = self._shelf(what).after(_place(cursor))
        if seen is not None:
            found = [(place, feature) for place, feature in found if feature.scopes <= seen]
        page = found[: server.page_size]
        return _RESULTS[what](
            **{what: [feature.listing for _, feature in page]},
            next_cursor=_cursor(page[-1][0]) if len(page) < len(found) else None,
            ttl_ms=server.list_ttl_ms,
            cache_scope="private"
            if self._asked(what)
            else "public",  # what depends on who asks is nobody else's
        )


def _cursor(place: int) -> str:
    """Where the next page begins: behind the place of this page's last feature, whatever comes and goes until it is asked for.

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
