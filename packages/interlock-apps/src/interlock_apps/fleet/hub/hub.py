"""The hub: starts all servers at the same time, and replaces each without touching the others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from types import TracebackType

from interlock.configs import Changes, Config, Entry, changes

from .keeper import ServerKeeper
from .managed_server import ManagedServer
from .options import HubOptions
from .owner import HubOwner
from .timeouts import CleanupTasks, cancelled, within

DEFAULT_WAIT = 10.0  # seconds


class Hub:
    """Keeps one ManagedServer for each configured server. No process outlives the hub.

    Args:
        entries: The servers, in their order.
        owner: Answers the servers, allows their starts, and receives what happens.
        options: How servers are reached and kept up.

    Attributes:
        servers: The servers by id, in the order of the configuration.

    Raises:
        ValueError: Two entries have the same id.
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        owner: HubOwner,
        options: HubOptions = HubOptions(),  # noqa: B008 - a frozen value
    ) -> None:
        self.servers: dict[str, ManagedServer] = {}
        self._owner = owner
        self._options = options
        self._cleanup = CleanupTasks()
        self._keepers: dict[str, ServerKeeper] = {}
        self._is_open = False
        self._is_closed = False
        for entry in entries:
            if entry.id in self._keepers:
                raise ValueError(f"there are two servers with the id {entry.id}")
            self._add(self._keeper(entry))

    def _keeper(self, entry: Entry, after: asyncio.Task[None] | None = None) -> ServerKeeper:
        return ServerKeeper(entry, self._owner, self._options, self._cleanup, after=after)

    def _add(self, keeper: ServerKeeper) -> None:
        self._keepers[keeper.entry.id] = keeper
        self.servers[keeper.entry.id] = ManagedServer(keeper)

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
        """Start all servers at the same time.

        It returns when each is up, has failed, or is not to be started. If it is cancelled,
        everything is closed.

        Args:
            wait: Seconds after which it returns in any case; slower servers continue to start in
                the background. None: wait as long as it takes, including questions to the person.
        """
        self._refuse_if_closed()
        self._is_open = True
        keepers = list(self._keepers.values())
        for keeper in keepers:
            keeper.begin()
        settled = asyncio.ensure_future(_settled(keepers))
        try:
            await within(settled, wait, self._options.sleep)
        except BaseException:
            await self.aclose()
            raise
        finally:
            await cancelled(settled)

    async def reload(self, entries: Config | Sequence[Entry]) -> Changes:
        """Apply another configuration: add, remove and restart servers where they changed.

        `servers` has the new servers at once. New servers start in the background. It returns when
        processes that are no longer wanted have exited.

        Raises:
            ValueError: Two entries have the same id.
        """
        self._refuse_if_closed()
        new = Config(entries=tuple(entries.entries if isinstance(entries, Config) else entries))
        wanted = {entry.id for entry in new.entries}
        if len(wanted) < len(new.entries):
            raise ValueError("there are two servers with the same id")
        before = dict(self._keepers)
        running = Config(entries=tuple(keeper.entry for keeper in before.values()))
        found = changes(running, new)
        anew = found.reached_anew
        leaving = {
            id: self._cleanup.start(keeper.close(_why_closed(id in anew)))
            for id, keeper in before.items()
            if id in anew or id not in wanted
        }
        servers = dict(self.servers)
        self._keepers.clear()
        self.servers.clear()
        for entry in new.entries:
            keeper = before.get(entry.id)
            if keeper is None or entry.id in anew:
                keeper = self._keeper(entry, leaving.get(entry.id))
                if self._is_open:
                    keeper.begin()
                self._add(keeper)
            else:
                if entry != keeper.entry:
                    keeper.adopt(entry)
                self._keepers[entry.id] = keeper
                self.servers[entry.id] = servers[entry.id]
        if leaving:
            await asyncio.wait(set(leaving.values()))
        return found

    async def restart(self, id: str) -> None:
        """Stop a server and start it in the background. Raises KeyError for an unknown id."""
        self._refuse_if_closed()
        await self._keepers[id].restart()

    async def stop(self, id: str) -> None:
        """Stop a server and leave it off. Raises KeyError for an unknown id."""
        await self._keepers[id].stop()

    async def start(self, id: str) -> None:
        """Start a server in the background, also one that is off or was refused.

        Raises:
            KeyError: The id is unknown.
        """
        self._refuse_if_closed()
        await self._keepers[id].start()

    def roots_changed(self, ids: Iterable[str] | None = None) -> None:
        """Tell these servers, or all, that their roots have changed."""
        for id in self._keepers if ids is None else ids:
            self._keepers[id].roots_changed()

    async def aclose(self) -> None:
        """Stop all servers at the same time and wait until their processes have exited.

        A cancellation is raised at the end.
        """
        self._is_closed = True
        for keeper in self._keepers.values():
            self._cleanup.start(keeper.close())
        await self._cleanup.finish()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise RuntimeError("the hub is closed")


def _why_closed(is_changed: bool) -> str:
    return "Its configuration has changed." if is_changed else "It is no longer configured."


async def _settled(keepers: Iterable[ServerKeeper]) -> None:
    for keeper in keepers:
        await keeper.status.settled.wait()
