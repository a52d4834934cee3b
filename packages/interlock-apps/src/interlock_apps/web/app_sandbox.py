"""The sandbox origin of MCP Apps: serves the proxy frame of an app, with the app's own policy."""

from __future__ import annotations

import re
import secrets
from html import escape
from importlib import resources
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from interlock.caches import BoundedCache

from .app_policy import DeclaredOrigins, policy

MOST_POLICIES = 500
_PLACE = re.compile(r"/app/([A-Za-z0-9_-]{22,64})")


class AppSandbox:
    """The ASGI app of the sandbox origin.

    It serves two files, the same to everyone: the proxy's page and its script. `origin` is its own
    origin. `page` is the origin of the host's page, the only one that may frame it. Documents of
    apps never pass through here: the page sends them to the proxy (MCP Apps, 2026-01-26, "Sandbox
    proxy"; `APP-11`, `APP-12`).
    """

    def __init__(self, origin: str, page: str) -> None:
        self.origin = origin
        self._ancestor = page
        folder = resources.files("interlock_apps.web") / "proxy"
        self._page = (
            (folder / "proxy.html")
            .read_text(encoding="utf-8")
            .replace("@PAGE@", escape(page, quote=True))
            .encode()
        )
        self._script = (folder / "proxy.js").read_bytes()
        self._policies: BoundedCache[str, str] = BoundedCache(
            MOST_POLICIES, on_evict=lambda _, text: self._places.pop(text)
        )
        self._places: dict[str, str] = {}

    def place(self, csp: DeclaredOrigins) -> str:
        """The unguessable address of a proxy whose policy allows exactly these origins."""
        text = policy(csp, self._ancestor)
        name = self._places.get(text)
        if name is None:
            name = self._places[text] = secrets.token_urlsafe(24)
        self._policies.put(name, text)
        return f"{self.origin}/app/{name}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request. Cookies are neither read nor set."""
        if scope["type"] != "http":
            return
        await self._answer(Request(scope))(scope, receive, send)

    def _answer(self, request: Request) -> Response:
        if f"http://{request.headers.get('host', '')}" != self.origin:
            return PlainTextResponse("Not found.", 421)
        if request.method in ("GET", "HEAD"):
            if request.url.path == "/proxy.js":
                return Response(
                    self._script,
                    media_type="text/javascript",
                    headers=_headers("default-src 'none'"),
                )
            found = _PLACE.fullmatch(request.url.path)
            policy_text = self._policies.peek(found[1]) if found is not None else None
            if policy_text is not None:
                return Response(self._page, media_type="text/html", headers=_headers(policy_text))
        return PlainTextResponse("Not found.", 404)


def _headers(policy: str) -> dict[str, str]:
    return {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "origin-agent-cluster": "?1",
        "x-dns-prefetch-control": "off",
        "cache-control": "no-store",
    }
