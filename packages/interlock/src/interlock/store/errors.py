"""The error that stores and vaults raise."""

from __future__ import annotations


class StoreError(Exception):
    """A store or vault cannot be reached or used. The message says what to do."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # gives `inspect` a signature, which built-in exceptions lack
