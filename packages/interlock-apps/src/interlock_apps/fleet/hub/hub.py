"""All servers of a host: started at the same time, each for itself, and exchanged while the others go on."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

from interlock import Answers
from interlock.configs import Changes, Config, Entry, changes

from ..events import Event
from .backoff import Backoff
from .known_revisions import KnownRevisions
from .limits import HubLimits
from .managed_server import HubServices, ManagedServer
from .timeouts import CleanupTasks, Sleep, cancelled, within

DEFAULT_WAIT = 10.0  # seconds


class Hub:
    """One Link for each configured server.

    Parameters:
        entries: The servers, in their order.
        answers: By the id of a server, who answers its questions.
        tell: Gets every event: ServerState, ServerSaid, ResourceUpdated and Notice.
        changed: Gets the link of a server when its lists were fetched, are others than before, or are gone.
        admit: Asked before a server is started or reached the first time; where it says no the server is "refused".
        name: What the clients call themselves.
        auth: What authorizes requests to a server on the web (an Authorizer), or None.
        backoff: How long to wait before a server is started again.
        bounds: What servers may take.
        target: What a client is pointed at, in place of what the entry says; None for the entry's.
        verdicts: Remembers which servers need an older revision; for this hub alone unless it is given.
        clock, sleep, chance: The time in seconds, how to wait, and a random number from 0 to 1.

    As a context manager it is open for as long as the block lasts. No process outlives it.
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        *,
        answers: Callable[[str], Answers],
        tell: Callable[[Event], None],
        changed: Callable[[ManagedServer], None],
        admit: Callable[[Entry], Awaitable[bool]] | None = None,
        name: str = "interlock-host",
        auth: Callable[[Entry], Any] | None = None,
        backoff: Backoff | None = None,
        bounds: HubLimits | None = None,
        target: Callable[[Entry], Any] | None = None,
        verdicts: KnownRevisions | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._endings = CleanupTasks()
        self._around = HubServices(
            answers=answers,
            tell=tell,
            changed=changed,
            admit=admit,
            name=name,
            auth=auth,
            target=target,
            backoff=backoff or Backoff(),
            bounds=bounds or HubLimits(),
            verdicts=verdicts or KnownRevisions(),
            clock=clock,
            sleep=sleep,
            chance=chance,
            endings=self._endings,
        )
        self.links: dict[str, ManagedServer] = {}
        """By id, in the order of the configuration."""
        for entry in entries:
            if entry.id in self.links:
                raise ValueError(f"there are two servers with the id {entry.id}")
            self.links[entry.id] = ManagedServer(entry, self._around)
        self._is_open = self._is_closed = False

    async def __aenter__(self) -> Hub:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def open(self, wait: float | None = DEFAULT_WAIT) -> None:
        """Start all servers at the same time; returns when each is up, has failed or is not to be started, or after `wait` seconds.

        The rest goes on in the background; with None it is waited for, persons that have to allow a start too. Where this is cancelled
        everything is closed.
        """
        self._refuse_if_closed()
        self._is_open = True
        links = list(self.links.values())
        for link in links:
            link.begin()
        settled = asyncio.ensure_future(_settled(links))
        try:
            await within(settled, wait, self._around.sleep)
        except BaseException:
            await self.aclose()
            raise
        finally:
            await cancelled(settled)

    async def reload(self, entries: Config | Sequence[Entry]) -> Changes:
        """Take another configuration: add, remove, and restart where what is reached is another; all others are not touched.

        The links are those of the new configuration at once; returns when processes that are no longer wanted have gone. New servers
        start in the background.
        """
        self._refuse_if_closed()
        new = Config(entries=tuple(entries.entries if isinstance(entries, Config) else entries))
        if len({entry.id for entry in new.entries}) < len(new.entries):
            raise ValueError("there are two servers with the same id")
        found = changes(Config(entries=tuple(link.entry for link in self.links.values())), new)
        anew = found.reached_anew
        before = dict(self.links)
        leaving = {
            id: self._endings.begin(
                link.close(
                    "Its configuration has changed."
                    if id in anew
                    else "It is no longer configured."
                )
            )
            for id, link in before.items()
            if id in anew or id not in {entry.id for entry in new.entries}
        }
        self.links.clear()
        for entry in new.entries:
            link = before.get(entry.id)
            if link is None or entry.id in anew:
                link = ManagedServer(entry, self._around, after=leaving.get(entry.id))
                if self._is_open:
                    link.begin()
            elif entry != link.entry:
                link.adopt(entry)
            self.links[entry.id] = link
        if leaving:
            await asyncio.wait(set(leaving.values()))
        return found

    async def restart(self, id: str) -> None:
        """End a server and start it in the background. Raises KeyError for an id that is none."""
        self._refuse_if_closed()
        await self.links[id].restart()

    async def stop(self, id: str) -> None:
        """End a server and leave it off. Raises KeyError for an id that is none."""
        await self.links[id].stop()

    async def start(self, id: str) -> None:
        """Start a server in the background, also one that is switched off or was refused. Raises KeyError for an id that is none."""
        self._refuse_if_closed()
        await self.links[id].start()

    def roots_changed(self, ids: Iterable[str] | None = None) -> None:
        """Say to these servers, or to all, that the folders they may be told of are others."""
        for id in self.links if ids is None else ids:
            self.links[id].roots_changed()

    async def aclose(self) -> None:
        """End all servers, at the same time; no process is left, also where this is cancelled, which is told at the end."""
        self._is_closed = True
        for link in self.links.values():
            self._endings.begin(link.close())
        await self._endings.finish()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise RuntimeError("the hub is closed")


async def _settled(links: Iterable[ManagedServer]) -> None:
    for link in links:
        await link.settled.wait()
