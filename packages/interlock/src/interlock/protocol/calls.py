"""Open requests of this side by id; ids never repeat."""

from __future__ import annotations

from typing import Generic, TypeVar

from ..types.base import RequestId

T = TypeVar("T")


class OpenCalls(Generic[T]):
    """Open requests by id. Ids count up from 1 and are never used twice on one connection
    (`RPC-03`, `RPC-04`).
    """

    def __init__(self) -> None:
        self._open: dict[RequestId, T] = {}
        self._last = 0

    def open(self, call: T) -> int:
        """Register a request that is about to be sent, and return its ID."""
        self._last += 1
        self._open[self._last] = call
        return self._last

    @property
    def next_id(self) -> int:
        """The ID of the next request."""
        return self._last + 1

    def get(self, id: RequestId | None) -> T | None:
        """The open request with this id."""
        return None if id is None else self._open.get(id)

    def close(self, id: RequestId | None) -> T | None:
        """Remove a request that was answered or given up. A second answer to it is ignored
        (`CAN-07`).
        """
        return None if id is None else self._open.pop(id, None)

    def clear(self) -> dict[RequestId, T]:
        """Remove and return all open requests, because the connection is closed."""
        left = self._open
        self._open = {}
        return left

    def __len__(self) -> int:
        return len(self._open)
