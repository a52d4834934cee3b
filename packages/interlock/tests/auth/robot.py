"""A person for programs: agrees where it is sent, as a browser whose person has agreed before."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from interlock.auth.oauth.steps import ShowCode
from interlock.http11.client import HttpFetch
from interlock.http11.fetch import Request


class Robot:
    """Asks for the page, and sees where it sends the browser back to.

    `visited` counts how often, for a class.
    """

    visited = 0

    async def listen(self, preferred: Sequence[str]) -> str:
        """Nobody has to listen."""
        return "http://127.0.0.1:33418/callback"

    async def visit(self, url: str, redirect_uri: str) -> str:
        """Visit, and do not follow."""
        type(self).visited += 1
        fetch = HttpFetch()
        try:
            response = await fetch(Request("GET", url))
            await response.aclose()
            return urlsplit(response.headers["location"]).query
        finally:
            await fetch.aclose()

    async def show_code(self, step: ShowCode) -> None:
        """There is nobody to show a code to."""
        raise AssertionError("nobody asked for a code")

    async def aclose(self) -> None:
        """Nothing is open."""
