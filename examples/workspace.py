"""A wiki and an issue tracker in one server: each HTTP request brings its own site and key, and
says in its headers which tools it wants.

    python examples/workspace.py --read-only
    curl ... -H "X-Site: https://acme.example" -H "X-Key: ..." -H "X-Toolsets: wiki"

The sites are dictionaries here; a real server calls a REST API in their place.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from msgspec.structs import replace

from interlock import (
    AnyResult,
    Caller,
    Context,
    Exchange,
    Feature,
    Handler,
    Principal,
    Server,
    ToolError,
)

Sites = Mapping[str, Mapping[str, str]]
PAGES: Sites = {"https://acme.example": {"handbook": "Be kind."}}
ISSUES: Sites = {"https://acme.example": {"A-1": "The roof leaks."}}
KEYS = {"https://acme.example": "acme-key"}


def site_of(ctx: Context) -> str:
    """Return the site of the request. Its key never leaves this function."""
    request = ctx.request
    headers = {} if request is None else request.headers
    site = headers.get("x-site", "")
    if KEYS.get(site) is None or headers.get("x-key") != KEYS[site]:
        raise ToolError("The headers X-Site and X-Key do not open any site.")
    return site


wiki = Server("wiki")


@wiki.tool(tags=["wiki", "read"])
async def get_page(name: str, ctx: Context) -> str:
    """Return a page of the wiki."""
    return PAGES[site_of(ctx)].get(name, "There is no such page.")


@wiki.tool(tags=["wiki", "write"])
async def delete_page(name: str, ctx: Context) -> str:
    """Delete a page of the wiki."""
    return f"{name} is gone from {site_of(ctx)}."


tracker = Server("tracker")


@tracker.tool(tags=["tracker", "read"])
async def get_issue(key: str, ctx: Context) -> str:
    """Return an issue."""
    return ISSUES[site_of(ctx)].get(key, "There is no such issue.")


@tracker.tool(tags=["tracker", "write"])
async def close_issue(key: str, ctx: Context) -> str:
    """Close an issue."""
    return f"{key} is closed at {site_of(ctx)}."


def with_toolsets(handler: Handler) -> Handler:
    """Note the toolsets that a request asks for, where the visibility of tools can depend on it."""

    async def handle(x: Exchange) -> AnyResult:
        request = x.transport.request
        wanted = "" if request is None else request.headers.get("x-toolsets", "")
        before = x.caller.principal or Principal(subject="anyone")
        principal = replace(before, claims={**before.claims, "toolsets": sorted(wanted.split())})
        return await handler(replace(x, caller=replace(x.caller, principal=principal)))

    return handle


def toolsets(caller: Caller) -> list[str]:
    """Return the toolsets of a caller; empty for all."""
    principal = caller.principal
    found: list[str] = [] if principal is None else principal.claims.get("toolsets", [])
    return found


def is_wanted(wanted: list[str], feature: Feature) -> bool:
    """Whether a tool belongs to one of the toolsets."""
    return not wanted or bool(feature.tags & set(wanted))


def workspace(*, read_only: bool = False) -> Server:
    """Return the server."""
    server = Server("workspace", middleware=[with_toolsets])
    without = ["write"] if read_only else []
    for service in (wiki, tracker):
        server.mount(
            service, prefix=service.name, without_tags=without, visible=(toolsets, is_wanted)
        )
    return server


if __name__ == "__main__":
    workspace(read_only="--read-only" in sys.argv).run("http")
