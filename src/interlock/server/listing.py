"""Lists in pages, encoded once for each revision and for all who see the same, and kept as bytes until something changes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from .. import types as t
from ..exchange import Caller
from ..types.apps import APP_MIME_TYPE, UI_EXTENSION
from ..wire.codec import encode
from .features import ToolFeature
from .scopes import NONE

if TYPE_CHECKING:
    from .app import Server

_RESULTS: dict[str, Callable[..., t.PaginatedResult]] = {
    "tools": t.ListToolsResult,
    "prompts": t.ListPromptsResult,
    "resources": t.ListResourcesResult,
    "resource_templates": t.ListResourceTemplatesResult,
}
# What is listed, the cursor, the revision, the scopes that count, and whether the client has apps.
_PartKey = tuple[str, str | None, str, frozenset[str] | None, bool]
_MOST_KEPT = 256
_MOST_PARTIAL = 128


class Catalogue:
    """The lists of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._offered: dict[str, tuple[Any, Callable[..., t.PaginatedResult], int]] = {}
        self.clear()

    def offer(
        self, what: str, shelf: Any, result: Callable[..., t.PaginatedResult], page_size: int
    ) -> None:
        """Add a list of an extension: its features, the type of a page, and how many one page holds."""
        self._offered[what] = (shelf, result, page_size)

    def page(
        self,
        what: str,
        cursor: str | None,
        revision: str,
        have: frozenset[str] | None = None,
        *,
        apps: bool = True,
    ) -> bytes:
        """One page, encoded for a revision, of what may be seen by whoever has the scopes `have`; None stands for everything.

        Without `apps`, tools that are only for apps are left out (`APP-02`).
        Raises McpError (-32602) for a cursor that is not ours (`PAG-05`).
        """
        partial = self._partial  # before it is looked what is asked for: else a page of yesterday could be kept for tomorrow
        asked = self._asked(what) if have is not None else NONE
        apps = apps or not self._some_for_apps_only(what)
        if asked or not apps:
            seen = have & asked if have is not None else None
            return self._part(partial, (what, cursor, revision, seen, apps))
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
        self._partial: dict[_PartKey, bytes] = {}
        self._scopes: dict[str, frozenset[str]] = {}
        self._for_apps_only: bool | None = None

    def _part(
        self,
        kept: dict[_PartKey, bytes],
        key: _PartKey,
    ) -> bytes:
        """One page of what some may see: kept for all of whom the same is true, the latest of these first."""
        body = kept.pop(key, None)
        if body is None:
            what, cursor, revision, seen, apps = key
            body = encode(self._page(what, cursor, seen, apps), revision)
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

    def _some_for_apps_only(self, what: str) -> bool:
        """Whether a list has tools that clients without apps do not see."""
        if what != "tools":
            return False
        known = self._for_apps_only
        if known is None:
            known = any(for_apps_only(tool) for tool in self._server.tools.all())
            self._for_apps_only = known
        return known

    def _shelf(self, what: str) -> Any:
        if what in self._offered:
            return self._offered[what][0]
        server = self._server
        return {
            "tools": server.tools,
            "prompts": server.prompts,
            "resources": server.resources,
            "resource_templates": server.templates,
        }[what]

    def _page(
        self,
        what: str,
        cursor: str | None,
        seen: frozenset[str] | None = None,
        apps: bool = True,
    ) -> t.PaginatedResult:
        server = self._server
        found = self._shelf(what).after(_place(cursor))
        if seen is not None:
            found = [(place, feature) for place, feature in found if feature.scopes <= seen]
        if not apps:
            found = [(place, feature) for place, feature in found if not for_apps_only(feature)]
        _, kind, page_size = self._offered.get(what) or (None, _RESULTS[what], server.page_size)
        page = found[:page_size]
        return kind(
            **{what: [feature.listing for _, feature in page]},
            next_cursor=_cursor(page[-1][0]) if len(page) < len(found) else None,
            ttl_ms=server.list_ttl_ms,
            cache_scope="private"
            if self._asked(what) or self._some_for_apps_only(what)
            else "public",  # what depends on who asks is nobody else's
        )


def for_apps_only(tool: ToolFeature) -> bool:
    """Whether a tool is for its app and not for models (`_meta.ui.visibility` without "model")."""
    ui = (tool.listing.meta or {}).get("ui")
    visibility = ui.get("visibility") if isinstance(ui, dict) else None
    return isinstance(visibility, list) and "model" not in visibility


def has_apps(caller: Caller) -> bool:
    """Whether a client declared that it shows apps (`APP-01`)."""
    declared = (caller.capabilities.extensions or {}).get(UI_EXTENSION)
    if not isinstance(declared, dict):
        return False
    kinds = declared.get("mimeTypes")
    return not isinstance(kinds, list) or APP_MIME_TYPE in kinds


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
