"""An issuer without users: it serves programs on their own behalf."""

from __future__ import annotations

import html
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ..http.responses import html_response
from ..interfaces import AuthorizationServer, PendingRequest, User

_WORDS = "users cannot log in here"


class NoUsers:
    """Denies each request that needs a user."""

    def routes(self, server: AuthorizationServer) -> Sequence[BaseRoute]:
        """There are no pages."""
        return ()

    async def start(
        self, server: AuthorizationServer, request: Request, pending: PendingRequest
    ) -> Response:
        """Redirect back, with the reason."""
        return await server.deny(pending.id, "access_denied", _WORDS)

    async def is_active(self, user: User) -> bool:
        """No user is."""
        return False

    def error_page(self, title: str, words: str, onward: str | None = None) -> Response:
        """Return a page that says what is wrong."""
        page = f"<!doctype html><title>{html.escape(title)}</title><p>{html.escape(words)}</p>"
        return html_response(page, 400)

    def device_page(self, pending: PendingRequest, granted: bool) -> Response:
        """Return the last page of a request that was never started."""
        return self.error_page("This has ended", _WORDS)
