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
        """Note a request that is about to be sent; return its id."""
        self._last += 1
        self._open[self._last] = call
        return self._last

    @property
    def next_id(self) -> int:
        """The id that the next request will have."""
        return self._last + 1

    def get(self, id: RequestId | None) -> T | None:
        """The open request with this id."""
        return None if id is None else self._open.get(id)

    def close(self, id: RequestId | None) -> T | None:
        """The request is answered or given up; a second answer finds nothing (`CAN-07`)."""
        return None if id is None else self._open.pop(id, None)

    def clear(self) -> dict[RequestId, T]:
        """The connection is gone: all that was open."""
        left = self._open
        self._open = {}
        return left

    def __len__(self) -> int:
        return len(self._open)
