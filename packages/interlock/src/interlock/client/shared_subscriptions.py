"""Shared subscriptions: one subscription at the server for each resource, however many listeners it
has here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from .. import types as t
from ..exchange import AnyResult, Exchange, Notify
from ..logs import limited
from .interface import OpenClient

log = limited("interlock.client")
_PAUSE = 1.0  # seconds before a lost subscription is renewed


class SharedSubscriptions:
    """The subscriptions of a client to resources, on behalf of others.

    Args:
        client: The client.
        sleep: Waits for a number of seconds.
    """

    def __init__(self, client: OpenClient, sleep: Callable[[float], Awaitable[object]]) -> None:
        self._client = client
        self._sleep = sleep
        self._topics: dict[str, _Topic] = {}

    async def listen(self, x: Exchange) -> AnyResult:
        """Serve a `subscriptions/listen` for resources until it is cancelled."""
        uris = list(dict.fromkeys(x.params.notifications.resource_subscriptions or ()))
        joined: list[_Topic] = []
        key = object()
        try:
            for uri in uris:
                topic = self._topics.get(uri)
                if topic is None:
                    topic = self._topics[uri] = _Topic(self._client, uri, self._sleep)
                topic.listeners[key] = x.notify
                joined.append(topic)
            granted = [topic.uri for topic in joined if await topic.is_granted()]
            x.notify(
                "notifications/subscriptions/acknowledged",
                t.SubscriptionsAcknowledgedNotificationParams(
                    notifications=t.SubscriptionFilter(resource_subscriptions=granted or None)
                ),
            )
            await asyncio.get_running_loop().create_future()  # until it is cancelled
            return t.SubscriptionsListenResult()
        finally:
            for topic in joined:
                topic.listeners.pop(key, None)
                if not topic.listeners and self._topics.get(topic.uri) is topic:
                    del self._topics[topic.uri]
                    topic.close()

    async def aclose(self) -> None:
        """End all subscriptions."""
        topics = list(self._topics.values())
        self._topics.clear()
        for topic in topics:
            topic.close()


class _Topic:
    """The subscription to one resource, and those who listen to it."""

    def __init__(
        self, client: OpenClient, uri: str, sleep: Callable[[float], Awaitable[object]]
    ) -> None:
        self.uri = uri
        self.listeners: dict[object, Notify] = {}
        self._client = client
        self._sleep = sleep
        self._granted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep())

    async def is_granted(self) -> bool:
        """Wait for the first answer of the server: whether it has granted the subscription."""
        return await asyncio.shield(self._granted)

    def close(self) -> None:
        """Unsubscribe."""
        self._task.cancel()
        self._decide(False)

    def _decide(self, granted: bool) -> None:
        if not self._granted.done():
            self._granted.set_result(granted)

    async def _keep(self) -> None:
        """Subscribe, and subscribe again after the connection was lost: the resource may have
        changed meanwhile.
        """
        filter = t.SubscriptionFilter(resource_subscriptions=[self.uri])
        params = t.SubscriptionsListenRequestParams(notifications=filter)
        while True:
            try:
                x = Exchange(
                    "subscriptions/listen", params, self._client.caller, notify=self._receive
                )
                await self._client.send(x)
            except t.McpError:
                self._decide(False)
                return
            except t.InterlockError as bad:
                log.debug("the subscription to %s was lost: %s", self.uri, bad)
            if not self._granted.done():
                self._decide(False)
                return
            await self._sleep(_PAUSE)

    def _receive(self, method: str, params: Any) -> None:
        if method == "notifications/subscriptions/acknowledged" and self._granted.done():
            # It may have changed while the subscription was lost.
            self._publish(t.ResourceUpdatedNotificationParams(uri=self.uri))
        elif method == "notifications/subscriptions/acknowledged":
            self._decide(self.uri in (params.notifications.resource_subscriptions or ()))
        elif method == "notifications/resources/updated":
            self._publish(params)

    def _publish(self, params: t.ResourceUpdatedNotificationParams) -> None:
        self._client.invalidate("notifications/resources/updated", params)
        for notify in list(self.listeners.values()):
            notify("notifications/resources/updated", params)
