"""Lists in pages, encoded once for each revision and kept as bytes until something changes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

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
        key = (what, cursor, revision)
        body = self._kept.get(key)
        if body is None:
            body = encode(self._page(what, cursor), revision)
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = body
        return body

    def clear(self) -> None:
        """Something changed."""
        self._kept.clear()

    def _page(self, what: str, cursor: str | None) -> t.PaginatedResult:
        server = self._server
        shelf: Any = {
            "tools": server.tools,
            "prompts": server.prompts,
            "resources": server.resources,
            "resource_templates": server.templates,
        }[what]
        features: Sequence[Any] = shelf.all()
        start = _place(cursor, features)
        end = start + server.page_size
        return _RESULTS[what](
            **{what: [feature.listing for feature in features[start:end]]},
            next_cursor=_cursor(end, features[end - 1].key) if end < len(features) else None,
            ttl_ms=server.list_ttl_ms,
            cache_scope="public",
        )


def _cursor(index: int, last: str) -> str:
    """Where the next page begins: after the feature `last`, or at `index` where that has gone by then."""
    return base64.urlsafe_b64encode(msgspec.json.encode([index, last])).decode()


def _place(cursor: str | None, features: Sequence[Any]) -> int:
    if cursor is None:
        return 0
    try:
        index, last = msgspec.json.decode(base64.b64decode(cursor, altchars=b"-_", validate=True), type=tuple[int, str])
    except (binascii.Error, ValueError):
        raise t.McpError(t.INVALID_PARAMS, "Invalid cursor: it is not one that this server gave") from None
    if 0 < index <= len(features) and features[index - 1].key == last:
        return index
    after = next((n + 1 for n, feature in enumerate(features) if feature.key == last), None)
    return max(0, min(index, len(features)) if after is None else after)
