"""Subscriptions of the inspector: what was asked for and granted, and what changed since."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from interlock import Client, InterlockError
from interlock.cli.screen import plain

from .events import InspectorEvent, Publish

MOST_SUBSCRIPTIONS = 20
"""Subscriptions of one connection."""
MOST_CHANGES = 200
"""The newest changes that a subscription keeps."""

Spawn = Callable[[Coroutine[Any, Any, Any]], "asyncio.Task[Any]"]


class Subscription:
    """One subscription.

    Attributes:
        id: Its id in the connection.
        wanted: What was asked for: tools, prompts, resources, and the URIs of resources.
        granted: The part that the server grants, as the protocol's filter.
        changes: The newest changes: the kind, the URI of a resource, and the time.
        ended: Why it ended; "" while it runs.
    """

    def __init__(self, id: str, wanted: dict[str, Any]) -> None:
        self.id = id
        self.wanted = wanted
        self.granted: dict[str, Any] | None = None
        self.changes: deque[dict[str, Any]] = deque(maxlen=MOST_CHANGES)
        self.count = 0
        self.ended = ""
        self.work: asyncio.Task[Any] | None = None

    def state(self) -> dict[str, Any]:
        """The subscription as JSON values, the newest change first."""
        return {
            "id": self.id,
            "wanted": self.wanted,
            "granted": self.granted,
            "changes": list(reversed(self.changes)),
            "count": self.count,
            "ended": self.ended,
        }


class Subscriptions:
    """The subscriptions of one connection.

    Args:
        connection: The name of the connection.
        publish: Publishes an event to the pages.
    """

    def __init__(self, connection: str, publish: Publish) -> None:
        self._connection = connection
        self._publish = publish
        self._subscriptions: dict[str, Subscription] = {}
        self._count = 0

    def state(self) -> list[dict[str, Any]]:
        """The subscriptions as JSON values, oldest first."""
        return [one.state() for one in self._subscriptions.values()]

    def start(
        self,
        client: Client,
        spawn: Spawn,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Sequence[str] = (),
    ) -> Subscription:
        """Subscribe to lists and resources.

        Args:
            client: The client.
            spawn: Runs a coroutine in a task that ends with the connection.
            tools: Whether to watch the list of tools.
            prompts: Whether to watch the list of prompts.
            resources: Whether to watch the list of resources.
            uris: The URIs of resources to watch.

        Raises:
            ValueError: Nothing is asked for, the list of resources and single ones are asked for at
                once, or there are too many subscriptions.
        """
        if not (tools or prompts or resources or uris):
            raise ValueError("Choose what to subscribe to.")
        if resources and uris:
            raise ValueError("Subscribe to the list of resources and to single ones one by one.")
        running = [one for one in self._subscriptions.values() if not one.ended]
        if len(running) >= MOST_SUBSCRIPTIONS:
            raise ValueError(f"{MOST_SUBSCRIPTIONS} subscriptions are open. End one first.")
        self._count += 1
        wanted = {"tools": tools, "prompts": prompts, "resources": resources, "uris": list(uris)}
        made = Subscription(f"s{self._count}", wanted)
        self._subscriptions[made.id] = made
        made.work = spawn(self._follow(client, made))
        self._changed()
        return made

    def end(self, id: str) -> None:
        """End a subscription. One that has ended is removed.

        Raises:
            ValueError: There is none of that id.
        """
        found = self._subscriptions.get(id)
        if found is None:
            raise ValueError("There is no such subscription.")
        if found.ended:
            del self._subscriptions[id]
            self._changed()
        elif found.work is not None:
            found.work.cancel()

    async def _follow(self, client: Client, one: Subscription) -> None:
        wanted = one.wanted
        try:
            async with client.watch(
                tools=wanted["tools"],
                prompts=wanted["prompts"],
                resources=wanted["uris"] or wanted["resources"],
            ) as watch:
                one.granted = plain(watch.honoured)
                self._changed()
                async for change in watch:
                    one.count += 1
                    one.changes.append({"kind": change.kind, "uri": change.uri, "at": time.time()})
                    self._changed()
            one.ended = "The server ended it."
        except asyncio.CancelledError:
            one.ended = "You ended it."
        except InterlockError as bad:
            one.ended = str(bad)
        finally:
            one.ended = one.ended or "It failed."
            self._changed()

    def _changed(self) -> None:
        self._publish(InspectorEvent("subscriptions", self._connection, changes_state=True))
