"""The interface of an HTTP server to the process that supervises it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Supervision(Protocol):
    """The supervisor of this process, which replaces it."""

    def started(self, requests: Callable[[], int]) -> None:
        """Say, in the event loop, that this process serves.

        Args:
            requests: Returns the number of requests that it has received.
        """

    def request_replacement(self) -> None:
        """Ask to be replaced by another process."""

    @property
    def is_replaced(self) -> bool:
        """Whether another process goes on to serve the socket."""
        ...
