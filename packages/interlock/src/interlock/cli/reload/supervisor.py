"""Runs the relay: owns stdin and stdout, watches the files, and restarts the child process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from ... import Channel
from ...transport.channel import Barriers
from ...transport.own_streams import own_streams
from ...wire.jsonrpc import Frame
from ..targets.reach import command_to_run
from .child import ReloadedChild
from .relay import Relay, State
from .watch import changes

_STATE_KEY = "INTERLOCK_STATE_KEY"
_STORE = "INTERLOCK_STORE"
_PATIENCE = 3.0  # seconds until a child that does not exit is stopped


def run_reloading(
    path: Path, name: str | None, arguments: Sequence[str], folders: Sequence[Path], grace: float
) -> int:
    """Serve a file over the stdin and stdout of this process, always its newest version; return the
    exit code.
    """
    watched = list(
        dict.fromkeys([path.resolve().parent, *(folder.resolve() for folder in folders)])
    )
    command = command_to_run(path.resolve(), name, arguments)
    with contextlib.suppress(KeyboardInterrupt), TemporaryDirectory() as folder:
        # All children share one key and one store. So the next child can open a sealed state that
        # an earlier one sent through the client, such as that of a question, and knows whether it
        # was used before. Byte code is not written, because Python compares its time with the
        # source only in whole seconds.
        extra = {
            _STATE_KEY: os.environ.get(_STATE_KEY) or secrets.token_hex(32),
            _STORE: os.environ.get(_STORE) or f"sqlite:///{Path(folder).resolve()}/store.db",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

        async def serve() -> None:
            async with own_streams() as channel:
                await ReloadSupervisor(channel, command, extra, watched, grace).run()

        asyncio.run(_until_signalled(serve()))
    return 0


async def _until_signalled(work: Coroutine[Any, Any, None]) -> None:
    """Run the work until it ends or a signal stops it."""
    task = asyncio.create_task(work)
    if sys.platform != "win32":
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


class ReloadSupervisor:
    """A client's channel, and the children that serve it.

    `grace` is how long running calls may take before a reload, in seconds.
    """

    def __init__(
        self,
        channel: Channel,
        command: Sequence[str],
        extra: dict[str, str],
        folders: Sequence[Path],
        grace: float,
    ) -> None:
        self._channel = channel
        self._command = command
        self._extra = extra
        self._folders = folders
        self._grace = grace
        self._relay = Relay()
        self._child: ReloadedChild | None = None
        self._reading: asyncio.Task[None] | None = None
        self._changing: asyncio.Task[None] | None = None
        self._grace_timer: asyncio.TimerHandle | None = None
        self._stirred = asyncio.Event()
        self._closing = False
        self._reported = False  # the last frames for the client contained progress

    async def run(self) -> None:
        """Serve until the client has closed the connection."""
        watching = asyncio.create_task(self._watch())
        await asyncio.sleep(0)  # the watch starts before the file is read
        try:
            self._relay.wants_child = True
            self._act()
            while frames := await self._channel.receive():
                for frame in frames:
                    self._relay.from_client(frame)
                self._act()
                if self._child is not None:
                    await self._child.drain()
            await self._finish()
        finally:
            watching.cancel()
            await self._end_child()
            await asyncio.gather(watching, return_exceptions=True)

    async def _watch(self) -> None:
        async for paths in changes(self._folders):
            names = ", ".join(sorted(os.path.basename(path) for path in paths)[:3])
            click.echo(f"interlock: {names} changed", err=True)
            self._relay.changed()
            self._act()

    def _act(self) -> None:
        """Send the queued frames, and start or stop children."""
        relay = self._relay
        if relay.to_client:
            out = relay.to_client
            relay.to_client = []
            self._send(out)
        if relay.to_child and self._child is not None:
            into = relay.to_child
            relay.to_child = []
            self._child.send(into)
        if relay.wants_child:
            if self._changing is None or self._changing.done():
                self._changing = asyncio.create_task(self._change())
        elif relay.state is State.DRAINING and self._grace_timer is None:
            self._grace_timer = asyncio.get_running_loop().call_later(
                self._grace, self._end_grace_period
            )
        self._stirred.set()

    def _send(self, frames: list[Frame]) -> None:
        """Send to the client.

        A child sends the response of a call only after its progress was read (`Serving`). The
        supervisor does the same.
        """
        if self._reported and isinstance(self._channel, Barriers):
            self._channel.barrier()
        self._reported = any(b'"notifications/progress"' in frame[:100] for frame in frames)
        self._channel.send(frames)

    def _end_grace_period(self) -> None:
        self._relay.end_grace_period()
        self._act()

    async def _change(self) -> None:
        """Stop the running child and start another one; repeat if the file has changed
        meanwhile.
        """
        while self._relay.wants_child:
            if self._grace_timer is not None:
                self._grace_timer.cancel()
                self._grace_timer = None
            await self._stop_child()
            try:
                child = await ReloadedChild.start(self._command, self._extra)
            except OSError as bad:
                self._relay.wants_child = False
                self._relay.broke(f"{self._command[0]}: {bad.strerror or bad}")
                break
            self._relay.child_started()
            self._child = child
            self._reading = asyncio.create_task(self._read(child))
            self._act()
        self._act()

    async def _read(self, child: ReloadedChild) -> None:
        """Process the frames of a child until it exits."""
        while frames := await child.receive():
            for frame in frames:
                self._relay.from_child(frame)
            self._act()
            await self._channel.drain()
        if self._child is child:
            self._child = None
            words = await child.close(_PATIENCE)
            if not self._closing:
                click.echo(f"interlock: the server has ended: {words}", err=True)
            self._relay.child_ended(words)
            self._act()

    async def _stop_child(self) -> None:
        """Stop the child. Its remaining output is dropped, because it does not concern the client
        any more.
        """
        child = self._child
        self._child = None
        reading = self._reading
        self._reading = None
        if child is not None and reading is not None:
            reading.cancel()
        if reading is not None:
            await asyncio.gather(reading, return_exceptions=True)
        if child is not None:
            draining = asyncio.create_task(_drained(child))
            await child.close(_PATIENCE)
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)

    async def _finish(self) -> None:
        """The client has closed its side. Its running requests are still answered."""
        self._closing = True
        await self._until(
            lambda: self._relay.state in (State.UP, State.BROKEN) and not self._relay.wants_child,
            _PATIENCE + self._grace,
        )
        if self._child is not None:
            self._child.finish()
            await self._until(lambda: self._child is None and self._relay.idle, _PATIENCE)

    async def _until(self, over: Callable[[], bool], seconds: float) -> None:
        """Wait for a condition that changes when the supervisor acts, up to a time limit."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not over():
                    self._stirred.clear()
                    await self._stirred.wait()

    async def _end_child(self) -> None:
        if self._changing is not None:
            self._changing.cancel()
            await asyncio.gather(self._changing, return_exceptions=True)
        if self._grace_timer is not None:
            self._grace_timer.cancel()
        await self._stop_child()


async def _drained(child: ReloadedChild) -> None:
    """Read and drop the output of a child, so that a full pipe does not stop it from exiting."""
    while await child.receive():
        pass
