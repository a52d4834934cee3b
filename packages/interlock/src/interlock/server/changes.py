"""Change notices: the bus that carries them, and the listeners of subscriptions."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Literal, Protocol, runtime_checkable

import msgspec
from msgspec import Raw, Struct

from .. import types as t
from ..exchange import ready
from ..meta_keys import POSITION
from ..store.interface import Topic

_MOST_REMEMBERED = 10_000
Kind = Literal["tools", "prompts", "resources", "resource"]


class Change(Struct, frozen=True, omit_defaults=True):
    """A change of a list or of the content of a resource.

    Attributes:
        kind: The list, or "resource".
        uri: The URI of the changed resource.
        feature: The name of the changed feature, if not every caller sees every feature. Only
            callers who see it, or saw it, are notified.
        visibility: Whether the visibility has changed, not the features. Cached lists are out of
            date.
        keys: The visibility keys of the callers to notify, each encoded as JSON; empty for all.
    """

    kind: Kind
    uri: str | None = None
    feature: str | None = None
    visibility: bool = False
    keys: tuple[str, ...] = ()


class ChangeBus(Protocol):
    """Carries change notices to all listeners on all workers."""

    def publish(self, change: Change) -> None:
        """Send a change to every listener, without waiting."""
        ...

    def listen(self, receive: Callable[[Change], None]) -> Callable[[], None]:
        """Call `receive` for every change, in the listener's event loop, until the returned
        function is called.
        """
        ...


@runtime_checkable
class Remembering(Protocol):
    """An optional ability of a bus: it keeps the changes of the last minutes, so that a listener
    can catch up after an interruption.
    """

    @property
    def position(self) -> str:
        """The position of the newest change received."""
        ...

    async def since(self, position: str) -> list[tuple[Change, str]] | None:
        """Return the changes after a position, each with its own position; None if some are no
        longer stored.
        """
        ...


class _Registration:
    """A function that a bus calls with each change, until the registration is called."""

    __slots__ = ("_listeners", "loop", "receive")

    def __init__(
        self,
        listeners: dict[_Registration, None],
        loop: asyncio.AbstractEventLoop,
        receive: Callable[[Change], None],
    ) -> None:
        self._listeners = listeners
        self.loop = loop
        self.receive = receive

    def __call__(self) -> None:
        """Stop listening."""
        self._listeners.pop(self, None)


class MemoryBus:
    """The change bus of one process. `publish` may be called from any thread."""

    def __init__(self) -> None:
        self._listeners: dict[_Registration, None] = {}
        self._past: deque[Change] = deque(maxlen=_MOST_REMEMBERED)
        self._count = 0
        self._origin = os.urandom(8).hex()  # positions of another bus or process are invalid here
        self._position = f"{self._origin}-0"

    @property
    def position(self) -> str:
        """The position of the newest change."""
        return self._position

    async def since(self, position: str) -> list[tuple[Change, str]] | None:
        """Return the changes after a position; None if the position is too old or of another
        bus.
        """
        origin, _, number = position.partition("-")
        known = (
            origin == self._origin and number.isascii() and number.isdigit() and len(number) <= 18
        )
        missed = self._count - int(number) if known else -1
        if not 0 <= missed <= len(self._past):
            return None
        first = self._count - missed + 1
        return [
            (c, f"{self._origin}-{first + n}")
            for n, c in enumerate(list(self._past)[len(self._past) - missed :])
        ]

    def publish(self, change: Change) -> None:
        """Send a change to every listener."""
        self._past.append(change)
        self._count += 1
        self._position = f"{self._origin}-{self._count}"
        try:
            here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        for listener in list(self._listeners):
            loop = listener.loop
            if loop is here:
                listener.receive(change)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(listener.receive, change)

    def listen(self, receive: Callable[[Change], None]) -> Callable[[], None]:
        """Call `receive` for every change until the returned function is called."""
        registration = _Registration(self._listeners, asyncio.get_running_loop(), receive)
        self._listeners[registration] = None
        return registration

    def __len__(self) -> int:
        return len(self._listeners)


class TopicBus:
    """The change bus of many workers, on a topic of their shared store."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._decode = msgspec.json.Decoder(Change).decode

    @property
    def position(self) -> str:
        """The position of the newest change that this worker has received."""
        return self._topic.position

    async def since(self, position: str) -> list[tuple[Change, str]] | None:
        """Return the changes after a position."""
        notes = await self._topic.replay(position)
        return None if notes is None else [(self._decode(note), place) for note, place in notes]

    def publish(self, change: Change) -> None:
        """Send a change to every listener on every worker."""
        self._topic.publish(msgspec.json.encode(change))

    def listen(self, receive: Callable[[Change], None]) -> Callable[[], None]:
        """Call `receive` for every change until the returned function is called."""
        return self._topic.subscribe(lambda note, position: receive(self._decode(note)))


_NOTICES: dict[Kind, str] = {
    "tools": "notifications/tools/list_changed",
    "prompts": "notifications/prompts/list_changed",
    "resources": "notifications/resources/list_changed",
    "resource": "notifications/resources/updated",
}


# shared: Python would create each one anew, and there can be thousands
_NONE: frozenset[str] = frozenset()
LISTS: tuple[Kind, ...] = ("tools", "prompts", "resources")
_LIST_CHANGES: dict[Kind, Change] = {kind: Change(kind) for kind in LISTS}


class Listener:
    """The queue of change notices of one subscription.

    A change that is queued already is not queued twice, so a slow peer costs little.
    """

    __slots__ = (
        "_bus",
        "_closed",
        "_concerns",
        "_deaf_until",
        "_kinds",
        "_meanwhile",
        "_pending",
        "_uris",
        "_waiting",
    )  # there can be thousands of listeners

    def __init__(
        self,
        wanted: t.SubscriptionFilter,
        bus: ChangeBus | None = None,
        concerns: Callable[[Change], bool] | None = None,
    ) -> None:
        """`concerns` says whether the subscriber may know of a list change; None if it may know of
        all.
        """
        remembers: object = bus
        self._concerns = concerns
        self._bus = remembers if isinstance(remembers, Remembering) else None
        self._kinds = _kinds(
            bool(wanted.tools_list_changed),
            bool(wanted.prompts_list_changed),
            bool(wanted.resources_list_changed),
        )
        self._uris = (
            frozenset(wanted.resource_subscriptions) if wanted.resource_subscriptions else _NONE
        )
        self._pending: dict[Change, str] | None = None  # each change with its position
        # changes received while the missed ones are being read
        self._meanwhile: list[tuple[Change, str]] | None = None
        # skip changes up to this position: they are queued already
        self._deaf_until = ""
        self._waiting: asyncio.Future[None] | None = None
        self._closed = False

    @property
    def wants_anything(self) -> bool:
        """Whether the filter has any changes."""
        return bool(self._kinds or self._uris)

    def receive(self, change: Change) -> None:
        """Queue a change if the filter contains it (`LSN-02`). A part of a watched resource counts
        as the resource (`SUB-02`).
        """
        place = self._bus.position if self._bus is not None else ""
        if self._meanwhile is not None:
            self._meanwhile.append((change, place))
        else:
            self._note(change, place)

    def _note(self, change: Change, place: str) -> None:
        if self._deaf_until:
            if place == self._deaf_until:
                self._deaf_until = ""
        elif change.kind == "resource":
            if self._watches(change.uri or ""):
                self._keep(change, place)
        elif change.kind in self._kinds and (self._concerns is None or self._concerns(change)):
            self._keep(_LIST_CHANGES[change.kind], place)  # one notice, whatever changed in a list

    def _keep(self, change: Change, place: str) -> None:
        # Keep the first position: a client that resumes there gets the later changes again.
        if self._pending is None:
            self._pending = {}
        self._pending.setdefault(change, place)
        self._wake()

    @property
    def meta(self) -> Raw:
        """Internal `_meta` with the position up to which this listener has received changes."""
        return _placed(self._bus.position if self._bus is not None else "")

    async def catch_up(self, position: str) -> None:
        """Queue the changes after a position, or a change of everything in the filter if the
        position is no longer known.

        Call it before any change is received. If another worker was ahead of this one, the changes
        queued here are skipped when they arrive.
        """
        if self._bus is None:
            missed = None
        else:
            self._meanwhile = []
            received_to = self._bus.position
            missed = await self._bus.since(position)
            if missed is not None:
                newest = missed[-1][1] if missed else position
                ahead = await self._bus.since(received_to)
                self._deaf_until = (
                    newest if any(place == newest for _, place in ahead or ()) else ""
                )
        if missed is None:
            now = self._bus.position if self._bus is not None else ""
            everything = [Change(kind) for kind in sorted(self._kinds)] + [
                Change("resource", uri) for uri in sorted(self._uris)
            ]
            missed = [(change, now) for change in everything]
        meanwhile = self._meanwhile
        self._meanwhile = None
        deaf_until = self._deaf_until
        self._deaf_until = ""
        for change, place in missed:
            self._note(change, place)
        self._deaf_until = deaf_until
        for change, place in meanwhile or ():
            self._note(change, place)

    @property
    def is_closed(self) -> bool:
        """Whether the stream of notices ends after those that are queued."""
        return self._closed

    def close(self) -> None:
        """End the stream of notices."""
        self._closed = True
        self._wake()

    def wait(self) -> Awaitable[None]:
        """Wait until there is a notice, or the listener is closed. One task waits at a time."""
        if self._pending or self._closed:
            return ready()
        self._waiting = asyncio.get_running_loop().create_future()
        return self._waiting

    def next_notice(self) -> tuple[str, t.Params] | None:
        """Return the next notification to send; None if there is none now."""
        pending = self._pending
        if pending is None:
            return None
        change = next(iter(pending))
        place = pending.pop(change)
        if not pending:
            self._pending = None
        return _notice(change, place)

    def _wake(self) -> None:
        waiting = self._waiting
        self._waiting = None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def _watches(self, uri: str) -> bool:
        return uri in self._uris or any(
            uri.startswith(f"{watched.rstrip('/')}/") for watched in self._uris
        )


@lru_cache  # shared by all listeners
def _kinds(*are_told: bool) -> tuple[Kind, ...]:
    return tuple(kind for kind, is_told in zip(LISTS, are_told, strict=True) if is_told)


@lru_cache(maxsize=64)  # each listener has the same one, which can be encoded once for all
def _notice(change: Change, place: str) -> tuple[str, t.Params]:
    method = _NOTICES[change.kind]
    if change.kind == "resource":
        uri = change.uri or ""
        return method, t.ResourceUpdatedNotificationParams(uri=uri, meta=_placed(place))
    return method, t.ListChangedNotificationParams(meta=_placed(place))


def _placed(position: str) -> Raw:
    return Raw(msgspec.json.encode({POSITION: position})) if position else t.NOTHING
