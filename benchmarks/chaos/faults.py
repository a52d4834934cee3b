"""Fault injection: kills, stops, no store, a full disk, clock jumps, cut connections."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .ledger import QUIET, Ledger
from .processes import Clock, Disk, ServerProcess, Valkey, runs
from .proxy import CuttingProxy

JUMPS = (-3600.0, -60.0, 60.0, 3600.0)
"""Jumps of the wall clock, in seconds."""


@dataclass
class Faults:
    """Injects one fault after the other.

    Attributes:
        hold: How long a fault lasts that has a duration, in seconds.
        stop_seconds: How long a stopped process stays stopped, unless it is replaced, in seconds.
        aftermath: The time after a fault in which its effects count as its own, in seconds.
        injected: How often each fault was injected.
        replaced: The time until each stopped worker was replaced, in seconds.
    """

    server: ServerProcess
    proxy: CuttingProxy
    clock: Clock
    disk: Disk | None
    ledger: Ledger
    rng: random.Random
    hold: float
    stop_seconds: float
    aftermath: float

    def __post_init__(self) -> None:
        self.injected: dict[str, int] = {}
        self.replaced: list[float] = []

    @property
    def possible(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """The faults that apply to this server and its store."""
        found: dict[str, Callable[[], Awaitable[None]]] = {
            "kill": self.kill,
            "stop": self.stop,
            "cut": self.cut,
            "clock": self.jump,
            "restart": self.restart,
        }
        if self.server.store is not None:
            found["store-away"] = self.take_store
        if isinstance(self.server.store, Valkey):
            found["store-hangs"] = self.stop_store
        if self.disk is not None:
            found["disk-full"] = self.fill_disk
        return found

    async def run(self, names: list[str], pause: float, duration: float) -> None:
        """Inject these faults in random order, again and again, until the time is up.

        The server is restarted in the first half only, so that processes live long enough to show
        whether their memory grows.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + duration
        while True:
            for name in self.rng.sample(names, len(names)):
                if name == "restart" and loop.time() > end - duration / 2 and len(names) > 1:
                    continue
                await asyncio.sleep(min(pause, max(0, end - loop.time())))
                if loop.time() >= end:
                    return
                await self.inject(name)

    async def inject(self, name: str) -> None:
        """Inject one fault, and undo it."""
        self.injected[name] = self.injected.get(name, 0) + 1
        self.ledger.fault = name
        try:
            await self.possible[name]()
            await self.server.wait_until_it_responds()
            await asyncio.sleep(self.aftermath)
        finally:
            self.ledger.fault = QUIET

    async def kill(self) -> None:
        """SIGKILL to one worker; the oldest is spared, for its memory is watched."""
        if victim := self._victim():
            _signal(victim, signal.SIGKILL)
            while runs(victim):  # noqa: ASYNC110 - a process tells nobody
                await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """SIGSTOP to one worker, until it is replaced or the time is up."""
        victim = self._victim()
        if not victim:
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        _signal(victim, signal.SIGSTOP)
        try:
            end = began + self.stop_seconds
            while runs(victim) and loop.time() < end:  # noqa: ASYNC110 - a process tells nobody
                await asyncio.sleep(0.05)
            if not runs(victim):
                self.replaced.append(loop.time() - began)
        finally:
            _signal(victim, signal.SIGCONT)

    async def cut(self) -> None:
        """Cut half of the connections, several times."""
        for _ in range(5):
            self.proxy.cut(0.5, self.rng)
            await asyncio.sleep(self.hold / 5)

    async def jump(self) -> None:
        """Let the wall clock jump, and back again."""
        self.clock.jump(self.rng.choice(JUMPS))
        try:
            await asyncio.sleep(self.hold)
        finally:
            self.clock.jump(0)

    async def restart(self) -> None:
        """End the server in good order and start it again with the same key and store."""
        await self.server.stop()
        self.server.close()
        await self.server.start()

    async def take_store(self) -> None:
        """Stop Valkey, or hold the write lock of the SQLite file."""
        store = self.server.store
        assert store is not None
        await asyncio.to_thread(store.leave) if isinstance(store, Valkey) else store.leave()
        try:
            await asyncio.sleep(self.hold)
        finally:
            store.come_back()

    async def stop_store(self) -> None:
        """SIGSTOP to Valkey: connections stay open, and nothing answers."""
        store = self.server.store
        assert isinstance(store, Valkey) and store.pid is not None
        _signal(store.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(self.hold)
        finally:
            _signal(store.pid, signal.SIGCONT)

    async def fill_disk(self) -> None:
        """Leave no space on the disk of the store."""
        assert self.disk is not None and self.server.store is not None
        pids = [*self.server.serving, self.server.pid]
        if self.server.store.pid is not None:
            pids.append(self.server.store.pid)
        await asyncio.to_thread(self.disk.fill, pids)
        try:
            await asyncio.sleep(self.hold)
        finally:
            self.disk.free(pids)

    def _victim(self) -> int | None:
        serving = self.server.serving
        if len(serving) > 1:
            return self.rng.choice(serving[1:])
        return serving[0] if serving and self.server.workers == 1 else None


def _signal(pid: int, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, which)
