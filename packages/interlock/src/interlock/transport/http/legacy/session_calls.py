"""One call of a session: a tool may ask the client questions, and may close the client's stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlock import types as t
from interlock.exchange import Exchange, SessionStorage
from interlock.input_required import Direct
from interlock.protocol.events import RequestReceived
from interlock.protocol.identity import Identity

from ..request_info import HttpTransport
from ..requests import EndpointRequest
from ..responses import ResponseWriter
from ..single_call import Grown, SingleCall


class SessionCall(SingleCall):
    """One call. What it needs besides its response is created when it sends a notification or a
    question, when it closes the stream, and when it waits for anything.

    Args:
        identity: The server.
        event: The request.
        make: Creates what the call needs besides its response.
        release: Closes the stream of a response for some milliseconds; returns whether the client
            could resume it.
    """

    __slots__ = ("_create", "_release")

    def __init__(
        self,
        identity: Identity,
        event: RequestReceived,
        make: Callable[[], Grown],
        release: Callable[[ResponseWriter, int | None], bool],
    ) -> None:
        super().__init__(identity, event)
        self._create = make
        self._release = release

    def exchange(
        self, request: EndpointRequest, session: SessionStorage | None, held: int
    ) -> Exchange:
        """Return the request as its handler sees it. It holds `held` bytes of memory."""
        event = self.event
        return Exchange(
            event.method,
            event.params,
            event.caller,
            self.notify,
            Direct(event.caller, self._ask),
            event.progress_token,
            self.drain,
            HttpTransport(request, None, self.release, held),
            event,
            session,
        )

    def release(self, retry_ms: int | None) -> bool:
        """Close the client's stream. Returns whether the client could resume it."""
        self.grow()
        return self.grown is not None and self._release(self.grown[1], retry_ms)

    async def _ask(self, request: Any, result: type[Any] | None = None) -> Any:
        self.grow()
        if self.grown is None:
            raise t.ProtocolError("the call has ended, so nothing can be asked on it")
        return await self.grown[0].ask(self.event.id, request, result)

    def _make(self) -> Grown:
        return self._create()
