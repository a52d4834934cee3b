"""Notifications to a client over HTTP: the GET stream of its session, and subscriptions that are
renewed when they break.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from msgspec.structs import replace

from interlock import types as t
from interlock.exchange import AnyResult, Exchange, Handler, Notify
from interlock.logs import limited

from .event_stream import EventStream, Sleep, backoff, is_events
from .refusals import may_pass
from .requests import HttpRequests

log = limited("interlock.client")

_STEADY = 30.0  # seconds after which a broken stream does not count as a failed attempt


class ListeningStream:
    """The GET stream of a session, for notifications that belong to no request. It is opened again
    whenever it ends (`HTL-23`).

    `renew` opens a new session in place of one that is gone. `subscribed` are the URIs that the
    session has subscribed to.
    """

    def __init__(
        self,
        trips: HttpRequests,
        notify: Notify,
        renew: Callable[[str | None], Awaitable[None]],
        subscribed: Collection[str],
        limit: int,
        sleep: Sleep,
    ) -> None:
        self._trips = trips
        self._notify = notify
        self._renew = renew
        self._subscribed = subscribed
        self._sleep = sleep
        self._limit = limit
        self._was_open = self._renewed = False
        self._stream = EventStream(limit)
        self._session = trips.session
        self.begun = asyncio.Event()  # the server has responded, with a stream or a refusal

    async def run(self) -> None:
        """Listen until the server refuses the stream for good. Cancel it to stop."""
        failed = 0
        loop = asyncio.get_running_loop()
        while True:
            if self._trips.session != self._session:
                self._stream = EventStream(self._limit)
                self._session = self._trips.session
            stream = self._stream
            before = stream.last
            began = loop.time()
            received = False
            try:
                try:
                    response = await self._trips.listen(stream.last)
                finally:
                    self.begun.set()
                if is_events(response):
                    self._opened()
                    try:
                        stream.start()
                        async for chunk in response.chunks():
                            for message in stream.feed(chunk):
                                received = True
                                self._trips.receive(message, None)
                    finally:
                        await response.aclose()
                else:
                    await response.aclose()
                    if await self._is_refused(response.status):
                        return
            except t.InterlockError as bad:
                log.debug("the stream of the session broke: %s", bad)
            failed = (
                0
                if received or stream.last != before or loop.time() - began >= _STEADY
                else failed + 1
            )
            await self._sleep(stream.wait(failed))

    def _opened(self) -> None:
        if self._was_open and self._stream.last is None:  # notifications sent meanwhile are lost
            _call_notify(self._notify, _changes(True, True, True, self._subscribed))
        self._was_open = True
        self._renewed = False

    async def _is_refused(self, status: int) -> bool:
        """Whether the server has no GET stream (`HTL-25`). Otherwise the stream is requested again,
        in a new session if the old one is gone.
        """
        if status == 404 and self._session is not None and self._was_open and not self._renewed:
            await self._renew(self._session)
            self._renewed = True
            return False
        if may_pass(status) or status == 409:
            return False
        resumed = self._stream.last is not None
        self._stream = EventStream(
            self._limit
        )  # the server cannot resume there: start with new events
        return not resumed


async def listen(x: Exchange, make: Handler, sleep: Sleep) -> AnyResult:
    """`subscriptions/listen`, renewed whenever its stream is lost. After each renewal everything
    granted is reported as changed.
    """
    loop = asyncio.get_running_loop()
    failed = 0
    since = 0.0
    granted: t.SubscriptionFilter | None = None
    lost = received = False

    def notify(method: str, params: Any) -> None:
        nonlocal granted, since, lost, received
        x.notify(method, params)
        if method != "notifications/subscriptions/acknowledged":
            received = True
            return
        granted = params.notifications
        since = loop.time()
        if lost:
            lost = False
            lists = (
                granted.tools_list_changed,
                granted.prompts_list_changed,
                granted.resources_list_changed,
            )
            _call_notify(x.notify, _changes(*lists, granted.resource_subscriptions or ()))

    while True:
        try:
            return await make(replace(x, notify=notify))
        except t.Unreachable as bad:
            if granted is None or not may_pass(bad.status):
                raise
            log.warning("a subscription is begun again, for it was lost: %s", bad)
        failed = 1 if not lost and (received or loop.time() - since >= _STEADY) else failed + 1
        lost = True
        received = False
        await sleep(backoff(failed))


def _changes(
    tools: bool | None, prompts: bool | None, resources: bool | None, subscribed: Collection[str]
) -> list[tuple[str, Any]]:
    """Return a notification for everything that may have changed during an interruption."""
    lists = {"tools": tools, "prompts": prompts, "resources": resources}
    notices: list[tuple[str, Any]] = [
        (f"notifications/{what}/list_changed", t.ListChangedNotificationParams())
        for what, wanted in lists.items()
        if wanted
    ]
    return notices + [
        ("notifications/resources/updated", t.ResourceUpdatedNotificationParams(uri=uri))
        for uri in subscribed
    ]


def _call_notify(notify: Notify, notices: list[tuple[str, Any]]) -> None:
    for method, params in notices:
        try:
            notify(method, params)
        except Exception:
            log.exception("a listener for %s failed", method)
