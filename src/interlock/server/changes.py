"""One bus for all that changes: lists and single resources, for listeners of both eras."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Literal, Protocol

from msgspec import Struct

from .. import types as t

Kind = Literal["tools", "prompts", "resources", "resource"]


class Change(Struct, frozen=True):
    """Something is not as it was: one of the lists, or ("resource") what stands behind `uri`."""

    kind: Kind
    uri: str | None = None


class ChangeBus(Protocol):
    """Carries changes from whoever makes them to whoever listens, on whatever worker that is."""

    def publish(self, change: Change) -> None:
        """Tell everyone who listens; never waits."""
        ...

    def listen(self, hear: Callable[[Change], None]) -> Callable[[], None]:
        """Call `hear` for every change, in the listener's loop, until the returned function is called."""
        ...


class MemoryBus:
    """The bus of one process; `publish` may be called from any thread."""

    def __init__(self) -> None:
        self._listeners: dict[object, tuple[asyncio.AbstractEventLoop, Callable[[Change], None]]] = {}

    def publish(self, change: Change) -> None:
        """Tell everyone who listens."""
        try:
            here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        for loop, hear in list(self._listeners.values()):
            if loop is here:
                hear(change)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(hear, change)

    def listen(self, hear: Callable[[Change], None]) -> Callable[[], None]:
        """Call `hear` for every change until the returned function is called."""
        ticket = object()
        self._listeners[ticket] = (asyncio.get_running_loop(), hear)
        return lambda: self._listeners.pop(ticket, None) and None

    def __len__(self) -> int:
        return len(self._listeners)


_NOTICES: dict[Kind, str] = {
    "tools": "notifications/tools/list_changed",
    "prompts": "notifications/prompts/list_changed",
    "resources": "notifications/resources/list_changed",
    "resource": "notifications/resources/updated",
}


class Listener:
    """What one subscription has yet to be told. A change that waits already is not noted twice, so a slow peer costs little."""

    def __init__(self, wanted: t.SubscriptionFilter) -> None:
        self._kinds: set[Kind] = set()
        if wanted.tools_list_changed:
            self._kinds.add("tools")
        if wanted.prompts_list_changed:
            self._kinds.add("prompts")
        if wanted.resources_list_changed:
            self._kinds.add("resources")
        self._uris = frozenset(wanted.resource_subscriptions or ())
        self._pending: dict[Change, None] = {}
        self._stirred = asyncio.Event()
        self._closed = False

    @property
    def wants_anything(self) -> bool:
        """Whether there is any change that would be told."""
        return bool(self._kinds or self._uris)

    def hear(self, change: Change) -> None:
        """Note a change, where it is wanted (`LSN-02`); a part of a watched resource counts as the resource (`SUB-02`)."""
        if change.kind in self._kinds or (change.kind == "resource" and self._watches(change.uri or "")):
            self._pending[change] = None
            self._stirred.set()

    def close(self) -> None:
        """There will be no more."""
        self._closed = True
        self._stirred.set()

    async def notices(self) -> AsyncIterator[tuple[str, t.Params]]:
        """The notifications to send, as they come."""
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            while self._pending:
                change = next(iter(self._pending))
                del self._pending[change]
                params = t.ResourceUpdatedNotificationParams(uri=change.uri or "") if change.kind == "resource" else None
                yield _NOTICES[change.kind], params or t.ListChangedNotificationParams()
            if self._closed:
                return

    def _watches(self, uri: str) -> bool:
        return uri in self._uris or any(uri.startswith(f"{watched.rstrip('/')}/") for watched in self._uris)
