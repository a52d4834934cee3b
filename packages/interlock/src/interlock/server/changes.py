"""Change notices: the bus that carries them, and the listeners of subscriptions."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Literal, Protocol, runtime_checkable

import msgspec
from msgspec import Raw, Struct

from .. import types as t
from ..compact_event import CompactEvent
from ..meta_keys import POSITION
from ..store.interface import Topic

_MOST_REMEMBERED = 10_000
Kind = Literal["tools", "prompts", "resources", "resource"]


class Change(Struct, frozen=True, omit_defaults=True):
    """Something is not as it was: one of the lists, or ("resource") what stands behind `uri`.

    Attributes:
        kind: The list, or "resource".
        uri: The resource.
        feature: The name of the feature that came or went, where not every caller sees every
            feature: only callers who see it, or saw it, are told.
        visibility: Whether what callers see has changed, and not the features: lists that are kept
            are out of date.
        keys: The visibility keys of those who are told, each encoded as JSON; empty for everyone.
    """

    kind: Kind
    uri: str | None = None
    feature: str | None = None
    visibility: bool = False
    keys: tuple[str, ...] = ()


class ChangeBus(Protocol):
    """Carries changes from whoever makes them to whoever listens, on whatever worker that is."""

    def publish(self, change: Change) -> None:
        """Tell everyone who listens; never waits."""
        ...

    def listen(self, hear: Callable[[Change], None]) -> Callable[[], None]:
        """Call `hear` for every change, in the listener's loop, until the returned function is
        called.
        """
        ...


@runtime_checkable
class Remembering(Protocol):
    """What a bus may offer besides: the changes of the last minutes, so that a listener who was
    away misses nothing.
    """

    @property
    def position(self) -> str:
        """The place of the newest change that was heard."""
        ...

    async def since(self, position: str) -> list[tuple[Change, str]] | None:
        """The changes after a position, with theirs; None where some of them are no longer
        known.
        """
        ...


class MemoryBus:
    """The bus of one process; `publish` may be called from any thread."""

    def __init__(self) -> None:
        self._listeners: dict[
            object, tuple[asyncio.AbstractEventLoop, Callable[[Change], None]]
        ] = {}
        self._past: deque[Change] = deque(maxlen=_MOST_REMEMBERED)
        self._count = 0
        self._origin = os.urandom(
            8
        ).hex()  # positions of another bus, or of an earlier process, mean nothing here

    @property
    def position(self) -> str:
        """The place of the newest change."""
        return f"{self._origin}-{self._count}"

    async def since(self, position: str) -> list[tuple[Change, str]] | None:
        """The changes after a position; None where that is too long ago, or of another bus."""
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
        """Tell everyone who listens."""
        self._past.append(change)
        self._count += 1
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


class BoardBus:
    """The bus of many workers, over the board of changes of a store that they share."""

    def __init__(self, board: Topic) -> None:
        self._board = board
        self._decode = msgspec.json.Decoder(Change).decode

    @property
    def position(self) -> str:
        """The place of the newest change that this worker has heard."""
        return self._board.position

    async def since(self, position: str) -> list[tuple[Change, str]] | None:
        """The changes after a position."""
        notes = await self._board.replay(position)
        return None if notes is None else [(self._decode(note), place) for note, place in notes]

    def publish(self, change: Change) -> None:
        """Tell everyone who listens, on every worker."""
        self._board.publish(msgspec.json.encode(change))

    def listen(self, hear: Callable[[Change], None]) -> Callable[[], None]:
        """Call `hear` for every change until the returned function is called."""
        return self._board.subscribe(lambda note, position: hear(self._decode(note)))


_NOTICES: dict[Kind, str] = {
    "tools": "notifications/tools/list_changed",
    "prompts": "notifications/prompts/list_changed",
    "resources": "notifications/resources/list_changed",
    "resource": "notifications/resources/updated",
}


# one for all: Python makes each anew, and there may be thousands
_NONE: frozenset[str] = frozenset()
LISTS: tuple[Kind, ...] = ("tools", "prompts", "resources")


class Listener:
    """What one subscription has yet to be told.

    A change that waits already is not noted twice, so a slow peer costs little.
    """

    __slots__ = (
        "__weakref__",
        "_bus",
        "_closed",
        "_concerns",
        "_deaf_until",
        "_kinds",
        "_meanwhile",
        "_pending",
        "_stirred",
        "_uris",
    )  # there are many

    def __init__(
        self,
        wanted: t.SubscriptionFilter,
        bus: ChangeBus | None = None,
        concerns: Callable[[Change], bool] | None = None,
    ) -> None:
        """`concerns` says whether a change of a list may be told; None where every change may."""
        remembers: object = bus
        self._concerns = concerns
        self._bus = remembers if isinstance(remembers, Remembering) else None
        lists = (
            wanted.tools_list_changed,
            wanted.prompts_list_changed,
            wanted.resources_list_changed,
        )
        self._kinds: tuple[Kind, ...] = tuple(
            kind for kind, told in zip(LISTS, lists, strict=True) if told
        )
        self._uris = (
            frozenset(wanted.resource_subscriptions) if wanted.resource_subscriptions else _NONE
        )
        self._pending: dict[Change, str] = {}  # with the position of each
        # what is heard while it is being found out what was missed
        self._meanwhile: list[tuple[Change, str]] | None = None
        # the place up to which all is noted already, though it has yet to be heard
        self._deaf_until = ""
        self._stirred = CompactEvent()
        self._closed = False

    @property
    def wants_anything(self) -> bool:
        """Whether there is any change that would be told."""
        return bool(self._kinds or self._uris)

    def hear(self, change: Change) -> None:
        """Note a change, where it is wanted (`LSN-02`); a part of a watched resource counts as the
        resource (`SUB-02`).
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
            self._keep(Change(change.kind), place)  # whatever changed, a list is told of once

    def _keep(self, change: Change, place: str) -> None:
        # The first of several places: who goes on from there hears the others again.
        self._pending.setdefault(change, place)
        self._stirred.set()

    @property
    def meta(self) -> Raw:
        """Internal `_meta` with the position up to which this listener has received changes."""
        return _placed(self._bus.position if self._bus is not None else "")

    async def catch_up(self, position: str) -> None:
        """Note what changed after a position; everything wanted where that is not known any more.

        To be called before anything is heard.

        Another worker may have heard more than this one: what is noted here is not noted again when
        it comes.
        """
        if self._bus is None:
            missed = None
        else:
            self._meanwhile = []
            heard = self._bus.position
            missed = await self._bus.since(position)
            if missed is not None:
                newest = missed[-1][1] if missed else position
                ahead = await self._bus.since(heard)
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
                meta = _placed(self._pending.pop(change))
                if change.kind == "resource":
                    yield (
                        _NOTICES[change.kind],
                        t.ResourceUpdatedNotificationParams(uri=change.uri or "", meta=meta),
                    )
                else:
                    yield _NOTICES[change.kind], t.ListChangedNotificationParams(meta=meta)
            if self._closed:
                return

    def _watches(self, uri: str) -> bool:
        return uri in self._uris or any(
            uri.startswith(f"{watched.rstrip('/')}/") for watched in self._uris
        )


def _placed(position: str) -> Raw:
    return Raw(msgspec.json.encode({POSITION: position})) if position else t.NOTHING
