"""The people of an issuer that has none: it serves programs on their own behalf."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from .seam import Pending, Person
from .web import Asked, Reply, page

if TYPE_CHECKING:
    from .app import Issuer

_WORDS = "no person can log in here"


class Nobody:
    """Sends every person away."""

    async def begin(self, issuer: Issuer, asked: Asked, pending: Pending) -> Reply:
        """Back, with the reason."""
        return await issuer.deny(pending.id, "access_denied", _WORDS)

    async def answer(self, issuer: Issuer, asked: Asked) -> Reply | None:
        """There are no pages."""
        return None

    async def stands(self, person: Person) -> bool:
        """Nobody does."""
        return False

    def misfortune(self, title: str, words: str, onward: str | None = None) -> Reply:
        """A page that says what is wrong."""
        return page(
            f"<!doctype html><title>{html.escape(title)}</title><p>{html.escape(words)}</p>", 400
        )

    def done(self, pending: Pending, granted: bool) -> Reply:
        """The last page of what never begins."""
        return self.misfortune("This is over", _WORDS)
