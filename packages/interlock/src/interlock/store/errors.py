"""The error that stores and vaults raise, and what a caller is told of it."""

from __future__ import annotations

from ..types.errors import INTERNAL_ERROR, McpError


class StoreError(Exception):
    """A store or vault cannot be reached or used. The message says what to do."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # gives `inspect` a signature, which built-in exceptions lack


class AccountFull(StoreError):
    """An account has its maximum number of records, so that no further one is stored."""


def store_unreachable() -> McpError:
    """Return the error for a request that needs the store while the store fails."""
    words = "The server cannot reach its store. Try again later."
    return McpError(INTERNAL_ERROR, words, {"reason": "store"})
