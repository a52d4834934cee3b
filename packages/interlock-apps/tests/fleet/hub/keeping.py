"""A hub under test: a clock that goes when it is told to, what was told, and a look at what is left
behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from interlock import Answers
from interlock.configs import Entry
from interlock_apps.fleet.events import Event, Notice, ServerState
from interlock_apps.fleet.hub import Hub, HubLimits, HubOptions, ManagedServer, OfferedFeatures

SCRIPT = Path(__file__).with_name("misbehaving.py")


async def turns(number: int = 30) -> None:
    """Let everything that is ready to run do so, a few times over."""
    for _ in range(number):
        await asyncio.sleep(0)


class Clock:
    """Time that passes only in `advance`.

    `asked` holds every wait that was asked for, in seconds.
    """

    def __init__(self) -> None:
        self.now = 1000.0
        self.asked: list[float] = []
        self._sleepers: list[tuple[float, int, float, asyncio.Event]] = []
        self._stirred = asyncio.Event()

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Wait until the time has come."""
        self.asked.append(seconds)
        if seconds <= 0:
            return
        one = (self.now + seconds, len(self.asked), seconds, asyncio.Event())
        heapq.heappush(self._sleepers, one)
        self._stirred.set()
        try:
            await one[3].wait()
        finally:
            if one in self._sleepers:
                self._sleepers.remove(one)
                heapq.heapify(self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Let time pass, and let whoever is woken by it go on."""
        end = self.now + seconds
        await turns()
        while self._sleepers and self._sleepers[0][0] <= end:
            self.now, _, _, event = heapq.heappop(self._sleepers)
            event.set()
            await turns()
        self.now = end

    @property
    def waits(self) -> list[float]:
        """The waits that are under way."""
        return sorted(one[2] for one in self._sleepers)

    async def until_asked(self, seconds: float, count: int = 1) -> None:
        """Wait until so many wait for so long."""
        while self.waits.count(seconds) < count:
            self._stirred.clear()
            await self._stirred.wait()


class Received:
    """What a hub has told:

    `events`, and in `changed` the link and the names of its tools at that time.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.changed: list[tuple[str, list[str]]] = []
        self._stirred = asyncio.Event()

    def publish(self, event: Event) -> None:
        """An event."""
        self.events.append(event)
        self._stirred.set()

    def features_changed(self, features: OfferedFeatures) -> None:
        """Lists are others."""
        self.changed.append((features.server, [tool.name for tool in features.tools]))
        self._stirred.set()

    async def until(self, wanted: Callable[[], Any]) -> Any:
        """Wait until something holds that only what is told can make true."""
        while not (found := wanted()):
            self._stirred.clear()
            await self._stirred.wait()
        return found

    def all(self, kind: type[Any], server: str = "") -> list[Any]:
        """The events of a kind, of one server or of all."""
        return [
            event
            for event in self.events
            if isinstance(event, kind) and (not server or getattr(event, "server", "") == server)
        ]

    def states(self, server: str) -> list[str]:
        """The states of a server, in their order."""
        return [event.state for event in self.all(ServerState, server)]

    def notices(self) -> list[str]:
        """The words of all notices."""
        return [notice.words for notice in self.all(Notice)]

    async def state(self, server: str, state: str, count: int = 1) -> ServerState:
        """Wait until a server has come to a state so often; the last time of it."""
        await self.until(lambda: self.states(server).count(state) >= count)
        found: ServerState = [
            event for event in self.all(ServerState, server) if event.state == state
        ][count - 1]
        return found


class Owner:
    """The owner of a hub under test."""

    def __init__(
        self,
        received: Received,
        answers: Callable[[str], Answers] | None = None,
        admit: Callable[[Entry], Awaitable[bool]] | None = None,
    ) -> None:
        self._received = received
        self._answers = answers
        self._admit = admit
        self.publish: Callable[[Event], None] = received.publish
        self.features_changed: Callable[[OfferedFeatures], None] = received.features_changed

    def answers(self, entry: Entry) -> Answers:
        """See HubOwner."""
        return Answers() if self._answers is None else self._answers(entry.id)

    def may_start(self, entry: Entry) -> bool:
        """See HubOwner."""
        return self._admit is None

    async def admit(self, entry: Entry) -> bool:
        """See HubOwner."""
        return self._admit is None or await self._admit(entry)


class Kept:
    """A hub with its clock and what it has told."""

    def __init__(self, entries: Sequence[Entry], **options: Any) -> None:
        self.clock = Clock()
        self.received = Received()
        owned = {name: options.pop(name) for name in ("answers", "admit") if name in options}
        given: dict[str, Any] = {
            "clock": self.clock,
            "sleep": self.clock.sleep,
            "chance": lambda: 0.5,
        }
        self.owner = Owner(self.received, **owned)
        self.hub = Hub(entries, self.owner, HubOptions(**(given | options)))

    def __getitem__(self, id: str) -> ManagedServer:
        return self.hub.servers[id]


@contextlib.asynccontextmanager
async def kept(
    *entries: Entry, servers: dict[str, Any] | None = None, opened: bool = True, **options: Any
) -> AsyncIterator[Kept]:
    """A hub for as long as the block lasts, which has to leave no task behind.

    `servers` are targets by id, or what makes one; those that have none are reached as their entry
    says.
    """
    before = asyncio.all_tasks()
    if servers is not None:

        def target(entry: Entry) -> Any:
            found = servers.get(entry.id)
            return found() if callable(found) and not hasattr(found, "transport") else found

        options["target"] = target
    one = Kept(entries, **options)
    try:
        if opened:
            await one.hub.open(None)
        yield one
    finally:
        await one.hub.aclose()
    await turns()
    left = [task for task in asyncio.all_tasks() - before if not _is_of_a_server(task)]
    assert not left, left


def _is_of_a_server(task: asyncio.Task[Any]) -> bool:
    """Whether a task is one of the web server that a test runs in this process."""
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and Path(code.co_filename).stem in (
        "serve",
        "connection",
        "session_expiry",
        "endpoint",
    )


def misbehaving(folder: Path, id: str = "x", start: str = "well", **more: Any) -> Entry:
    """The entry of a server that does what servers should not."""
    return Entry(
        id=id, command=(sys.executable, "-S", str(SCRIPT), str(folder / id), start), **more
    )


def pids(folder: Path, id: str = "x") -> list[int]:
    """The processes that were started for it, so far."""
    path = folder / id
    return [int(line) for line in path.read_text(encoding="ascii").split()] if path.exists() else []


def alive(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    with contextlib.suppress(OSError):
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
            not in "ZX"
        )
    return False


QUICK = HubLimits(patience=0.05)
"""Processes that do not end by themselves are ended at once."""
