"""One call in one HTTP request. Most calls only send a response, which is kept as one frame.

Everything else that a call may need (a connection, an event stream, a disconnect monitor) is
created when it is needed. Creating all of it for each call would double the cost of a request.
"""

from __future__ import annotations

from typing import Any

from ... import types as t
from ...exchange import AnyResult
from ...protocol.events import RequestReceived
from ...protocol.identity import Identity
from ...protocol.server import error_frame, result_frame
from ...wire.jsonrpc import Frame
from ..serve import Serving
from .responses import ResponseWriter

Grown = tuple[Serving, ResponseWriter]


class SingleCall:
    """The outcome of one call, and what it has needed besides its response.

    Attributes:
        event: The request.
        frame: The response; empty if there is none, or if it was sent through `grown`.
        error: The code of the error in the response; 0 if there is none.
        denied: The scopes that the call lacks, if it was refused because of them.
        grown: What the call has needed besides its response.
        is_over: Whether the call has ended.
    """

    __slots__ = ("_identity", "denied", "error", "event", "frame", "grown", "is_over")

    def __init__(self, identity: Identity, event: RequestReceived) -> None:
        self._identity = identity
        self.event = event
        self.frame: Frame = b""
        self.error = 0
        self.denied: tuple[tuple[str, ...], ...] = ()
        self.grown: Grown | None = None
        self.is_over = False

    def grow(self) -> None:
        """Create everything that the call needs besides its response, if that is still needed."""
        if self.grown is None and not self.is_over:
            self.grown = self._make()

    def _make(self) -> Grown:
        """Create everything that the call needs besides its response."""
        raise NotImplementedError

    def respond(self, event: RequestReceived, result: AnyResult) -> None:
        """Answer the request."""
        if self.grown is not None:
            self.grown[0].respond(event, result)
            return
        id: t.RequestId = event.id  # type: ignore[assignment]  # a peer's request: its ID
        self.frame = result_frame(self._identity, id, result, event.caller.revision)

    def fail(self, event: RequestReceived, error: t.McpError) -> None:
        """Answer the request with an error."""
        if self.grown is not None:
            self.grown[0].fail(event, error)
            return
        if isinstance(error, t.Forbidden):
            self.denied = (error.scopes,)
        id: t.RequestId = event.id  # type: ignore[assignment]  # a peer's request: its ID
        self.error, self.frame = error_frame(
            id, error.code, error.message, error.data, event.caller.revision
        )

    def end(self, event: RequestReceived) -> None:
        """End the request: from now on it needs nothing beyond its response."""
        self.is_over = True
        if self.grown is not None:
            self.grown[0].end(event)

    def notify(self, method: str, params: Any) -> None:
        """Send a notification of the call."""
        self.grow()
        if self.grown is not None:
            self.grown[0].notify(self.event, method, params)

    async def drain(self) -> None:
        """Wait until the client has read enough of its notifications."""
        if self.grown is not None:
            await self.grown[1].drain()
