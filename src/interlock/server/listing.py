"""Lists in pages, encoded once for each revision and kept as bytes until something changes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from .. import types as t
from ..wire.codec import encode

if TYPE_CHECKING:
    from .app import Server

_RESULTS: dict[str, Callable[..., t.PaginatedResult]] = {
    "tools": t.ListToolsResult,
    "prompts": t.ListPromptsResult,
    "resources": t.ListResourcesResult,
    "resource_templates": t.ListResourceTemplatesResult,
}
_MOST_KEPT = 256


class Catalogue:
    """The lists of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._kept: dict[tuple[str, str | None, str], bytes] = {}

    def page(self, what: str, cursor: str | None, revision: str) -> bytes:
        """One page, encoded for a revision. Raises McpError (-32602) for a cursor that is not ours (`PAG-05`)."""
        key, kept = (what, cursor, revision), self._kept
        body = kept.get(key)
        if body is None:
            body = encode(self._page(what, cursor), revision)
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            kept[key] = body  # in vain where a thread has changed something meanwhile: then `kept` is thrown away already
        return body

    def clear(self) -> None:
        """Something changed."""
        self._kept = {}

    def _page(self, what: str, cursor: str | None) -> t.PaginatedResult:
        server = self._server
        shelf: Any = {
            "tools": server.tools,
            "prompts": server.prompts,
            "resources": server.resources,
            "resource_templates": server.templates,
        }[what]
        found = shelf.after(_place(cursor))
        page = found[: server.page_size]
        return _RESULTS[what](
            **{what: [feature.listing for _, feature in page]},
            next_cursor=_cursor(page[-1][0]) if len(page) < len(found) else None,
            ttl_ms=server.list_ttl_ms,
            cache_scope="public",
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
        place: int = msgspec.json.decode(base64.b64decode(cursor, altchars=b"-_", validate=True), type=Annotated[int, msgspec.Meta(ge=1)])
    except (binascii.Error, ValueError):
        raise t.McpError(t.INVALID_PARAMS, "Invalid cursor: it is not one that this server gave") from None
    return place
