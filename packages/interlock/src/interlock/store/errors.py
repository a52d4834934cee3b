"""The error that stores and vaults raise."""

from __future__ import annotations


class StoreError(Exception):
    """A store or vault cannot be reached or used; the message says what to do."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # so that `inspect` finds a signature, which built-in ones lack
