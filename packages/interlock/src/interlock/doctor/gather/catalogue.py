"""Gathers what a server lists, page by page, with the cache hints of each page."""

from __future__ import annotations

from typing import Any, Final

from ... import types as t
from ...client.app import Client
from ...wire.revisions import METHODS, speaks
from ..facts import CatalogueFacts, ListFacts, PageFacts
from ..options import ExamineOptions

_LISTS: Final = {
    "tools": {"tools/list": "tools"},
    "resources": {
        "resources/list": "resources",
        "resources/templates/list": "resource_templates",
    },
    "prompts": {"prompts/list": "prompts"},
}
"""The lists of each capability, with the member of their items."""

_MOST_PAGES = 1_000


async def catalogue_facts(
    client: Client, options: ExamineOptions, *, has_credentials: bool = False
) -> CatalogueFacts:
    """Return what the server of an open client lists.

    Args:
        client: The client.
        options: The options of the examination.
        has_credentials: Whether the requests have a token.
    """
    found: dict[str, ListFacts] = {}
    for capability, methods in _LISTS.items():
        if getattr(client.server_capabilities, capability) is None:
            continue
        for method, member in methods.items():
            found[method] = await _list(client, method, member, options.timeout)
    templates = found.get("resources/templates/list")
    if templates is not None and templates.is_missing:
        # Many servers have no templates, and do not answer this method. It has no capability of
        # its own, so this is no fault.
        found["resources/templates/list"] = ListFacts(method=templates.method)
    return CatalogueFacts(
        lists=found,
        revision=client.revision,
        instructions=client.instructions or "",
        has_cache_hints=speaks(client.revision, "server/discover"),
        has_credentials=has_credentials,
        most_tokens=options.most_tokens,
        most_tool_tokens=options.most_tool_tokens,
    )


async def _list(client: Client, method: str, member: str, seconds: float) -> ListFacts:
    """All pages of a list, as far as the server gives them."""
    row: Any = METHODS[method]
    items: list[Any] = []
    pages: list[PageFacts] = []
    seen: set[str] = set()
    cursor: str | None = None
    failed: dict[str, Any] = {}
    while len(pages) < _MOST_PAGES and not failed:
        try:
            page: Any = await client.request(
                method, row.params(cursor=cursor), row.result, timeout=seconds
            )
        except t.McpError as bad:
            missing = bad.code == t.METHOD_NOT_FOUND
            failed = {"is_missing": True} if missing else {"error": str(bad)}
        except t.ProtocolError as bad:
            failed = {"unreadable": str(bad)}
        except t.Unreachable as bad:
            failed = {"error": str(bad.args[0])}
        else:
            own = getattr(page, member)
            items += own
            pages.append(PageFacts(len(own), page.ttl_ms, page.cache_scope))
            cursor = page.next_cursor
            if cursor is None:
                break
            if cursor in seen:
                failed = {"repeats": True}
            seen.add(cursor)
    return ListFacts(method=method, items=tuple(items), pages=tuple(pages), **failed)
