"""The responses to JSON-RPC batches, gathered until each batch can be answered as one array.

Only 2025-03-26 has batches ("Batching").
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ...wire.jsonrpc import Frame
from ..events import CallId

_NOTHING: frozenset[CallId] = frozenset()


class _Batch(Struct, eq=False):
    frames: list[Frame]
    open: int = 0  # requests that are not answered yet


class Batches:
    """The JSON-RPC batches of one connection that are not completely answered."""

    __slots__ = ("_before", "_by_id", "_incoming")

    def __init__(self) -> None:
        self._by_id: dict[CallId, _Batch] = {}
        self._incoming: _Batch | None = None
        self._before = _NOTHING

    def __bool__(self) -> bool:
        """Whether a response may belong to a batch."""
        return self._incoming is not None or bool(self._by_id)

    @property
    def is_reading(self) -> bool:
        """Whether the members of a batch are being read."""
        return self._incoming is not None

    def start(self, open: Iterable[CallId]) -> None:
        """Begin to read a batch while the requests in `open` are unanswered; requests that are
        opened after them belong to the batch.
        """
        self._incoming = _Batch([])
        self._before = frozenset(open)

    def finish(self, open: Iterable[CallId]) -> Frame | None:
        """End the reading of a batch, whose requests in `open` are unanswered.

        Returns:
            The array of responses, if all requests have been answered and there is a response.
        """
        batch = self._incoming
        self._incoming = None
        if batch is None:
            return None
        for id in open:
            if id not in self._before:
                self._by_id[id] = batch
                batch.open += 1
        return _array(batch)

    def refuse(self, frame: Frame) -> bool:
        """Add the error for a member that is not a request. Returns False outside of a batch."""
        if self._incoming is None:
            return False
        self._incoming.frames.append(frame)
        return True

    def answer(self, id: CallId, frame: Frame) -> tuple[bool, Frame | None]:
        """Add a response.

        Returns:
            Whether the response belongs to a batch, and the array of responses if it was the last
            one.
        """
        batch = self._by_id.pop(id, None)
        if batch is not None:
            batch.frames.append(frame)
            batch.open -= 1
            return True, _array(batch)
        if self._incoming is not None and id not in self._before:
            self._incoming.frames.append(frame)
            return True, None
        return False, None

    def cancel(self, id: CallId) -> Frame | None:
        """Remove a request that will not be answered.

        Returns:
            The array of responses, if only this response was missing.
        """
        batch = self._by_id.pop(id, None)
        if batch is None:
            return None
        batch.open -= 1
        return _array(batch)

    def clear(self) -> None:
        """Remove everything, because the peer has closed the connection."""
        self._by_id.clear()


def _array(batch: _Batch) -> Frame | None:
    return None if batch.open or not batch.frames else b"[%b]" % b",".join(batch.frames)
