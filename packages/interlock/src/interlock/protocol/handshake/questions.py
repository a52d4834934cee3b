"""Questions of the server to its client, sent as requests of the server, and their answers
(handshake era).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from msgspec import UNSET, Struct

from ... import types as t
from ...wire import jsonrpc
from ...wire.codec import decode, encode
from ...wire.jsonrpc import Envelope, Frame, Malformed
from ..events import CallId, ResponseReceived, Route


class Question(Struct, frozen=True):
    """An open question: the request that it belongs to, and the type of its result."""

    route: Route
    result: type[Any]


class Questions:
    """The open questions by ID. `next_id` numbers them if several connections share the IDs of a
    session.
    """

    __slots__ = ("_next_id", "_open")

    def __init__(self, next_id: Callable[[], int] | None = None) -> None:
        self._open: dict[t.RequestId, Question] = {}
        self._next_id = next_id or count(1).__next__

    def __len__(self) -> int:
        return len(self._open)

    def ask(
        self, route: CallId, method: str, params: Any, result: type[Any], revision: str
    ) -> tuple[t.RequestId, Frame]:
        """Register a question; return its ID and the frame to send."""
        id = self._next_id()
        self._open[id] = Question(route, result)
        return id, jsonrpc.request(
            id, method, b"{}" if params is None else encode(params, revision)
        )

    def forget(self, id: t.RequestId) -> Question | None:
        """Remove a question."""
        return self._open.pop(id, None)

    def of(self, route: Route) -> list[t.RequestId]:
        """The open questions of one request."""
        return [id for id, question in self._open.items() if question.route == route]

    def clear(self) -> list[t.RequestId]:
        """Remove and return all open questions, because no answer can arrive any more."""
        left = list(self._open)
        self._open.clear()
        return left

    def answered(self, envelope: Envelope) -> ResponseReceived | None:
        """Return the answer in a response; None if no open question has its ID."""
        id = envelope.id if isinstance(envelope.id, int | str) else None
        question = self._open.pop(id, None) if id is not None else None
        if question is None or id is None:
            return None
        if envelope.error:
            return ResponseReceived(
                id, t.McpError(envelope.error.code, envelope.error.message, envelope.error.data)
            )
        try:
            answer = decode(
                b"null" if envelope.result is UNSET else envelope.result, question.result
            )
        except Malformed as bad:
            return ResponseReceived(
                id, t.McpError(t.INVALID_PARAMS, f"The client's answer is malformed: {bad}")
            )
        return ResponseReceived(id, answer)

    def garbled(self, bad: Malformed) -> ResponseReceived | None:
        """Return a malformed answer as an error for the question it belongs to. A response is never
        answered.
        """
        if bad.id is None or self._open.pop(bad.id, None) is None:
            return None
        return ResponseReceived(
            bad.id, t.McpError(t.INVALID_PARAMS, f"The client's answer is malformed: {bad}")
        )
