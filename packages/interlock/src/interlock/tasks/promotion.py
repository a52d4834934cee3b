"""Promotion: a running call becomes a task, and nothing runs twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from msgspec.structs import replace

from ..exchange import Exchange, ExchangeTransport, HttpRequest, Notify
from ..input_required import HandlerRun
from ..types.input import InputRequest, InputResponse


class PromotableCall:
    """A running call: its exchange follows it from the request to the task.

    Before the promotion, questions, progress and the transport are those of the request. After it
    they are those of the task. Answers and `once` steps stay in one journal.
    """

    def __init__(self, x: Exchange, asker: HandlerRun) -> None:
        self.asker = asker
        self.open_questions = 0
        self.is_promoted = False
        self.stirred = asyncio.Event()  # set when the call wants to become a task, and when it may
        self.wants = False
        self._notify: Notify = x.notify
        self._has_token = x.progress_token is not None
        self._drain = x.drain
        self._transport = x.transport
        self._promoted = asyncio.Event()
        self.exchange = replace(
            x,
            asker=self,
            notify=self.notify,
            drain=self.drain,
            transport=_TransportOf(self),
            progress_token=x.progress_token if self._has_token else "task",
        )

    @property
    def over(self) -> bool:
        """Whether the run is being unwound."""
        return self.asker.over

    @property
    def has_answers(self) -> bool:
        """Whether the run has used an answer or a `once` step."""
        return self.asker.has_answers

    async def ask(self, request: InputRequest, key: str | None = None) -> InputResponse:
        """Ask a question, and wait for the answer."""
        self.open_questions += 1
        try:
            return await self.asker.ask(request, key)
        finally:
            self.open_questions -= 1
            self.stirred.set()

    async def once(
        self, name: str, do: Callable[[], Awaitable[Any]], *, idempotent: bool = False
    ) -> Any:
        """Run a side effect at most once."""
        return await self.asker.once(name, do, idempotent=idempotent)

    async def become_task(self) -> None:
        """Wait until the call is a task."""
        self.wants = True
        self.stirred.set()
        await self._promoted.wait()

    def notify(self, method: str, params: Any) -> None:
        """Send a notification of the call."""
        if self._has_token or self.is_promoted or method != "notifications/progress":
            self._notify(method, params)

    async def drain(self) -> None:
        """Wait until the peer has read most of the sent data."""
        if not self.is_promoted:
            await self._drain()

    def promote(self, asker: HandlerRun, notify: Notify) -> None:
        """Continue as a task."""
        asker.share_journal(self.asker)
        self.asker = asker
        self._notify = notify
        self._transport = detached(self._transport)
        self.is_promoted = True
        self._promoted.set()

    @property
    def transport(self) -> ExchangeTransport:
        """The transport of the request, or none any more."""
        return self._transport


class DetachedTransport(ExchangeTransport):
    """The transport of a task: the request is known, but its stream has ended."""

    __slots__ = ("_request",)

    def __init__(self, request: HttpRequest | None) -> None:
        self._request = request

    @property
    def request(self) -> HttpRequest | None:
        """The HTTP request that became a task."""
        return self._request


_WITHOUT_REQUEST = DetachedTransport(None)


def detached(transport: ExchangeTransport) -> DetachedTransport:
    """Return the transport of a task that was created by a call over `transport`."""
    request = transport.request
    return _WITHOUT_REQUEST if request is None else DetachedTransport(request)


class _TransportOf(ExchangeTransport):
    """Delegates to the present transport of a call."""

    __slots__ = ("_call",)

    def __init__(self, call: PromotableCall) -> None:
        self._call = call

    @property
    def request(self) -> HttpRequest | None:
        return self._call.transport.request

    @property
    def mirrored(self) -> Mapping[str, str] | None:
        return self._call.transport.mirrored

    def release(self, retry_ms: int | None = None) -> bool:
        return self._call.transport.release(retry_ms)

    def pause_timeout(self) -> AbstractContextManager[object]:
        return nullcontext() if self._call.is_promoted else self._call.transport.pause_timeout()
