"""Processes that are read without any helper: asyncio has a thread, transports and tasks for each, which take longer than a short git."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import IO


class Pipe:
    """One end of a pipe. What nobody reads stays in it, and whoever writes there waits."""

    def __init__(self, file: IO[bytes] | FileIO) -> None:
        self._file, self._loop = file, asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None
        os.set_blocking(file.fileno(), False)

    async def read(self, most: int) -> bytes:
        """What comes next; nothing at the end."""
        while True:
            try:
                return os.read(self._file.fileno(), most)
            except BlockingIOError:
                await self._ready()

    async def write(self, data: bytes) -> None:
        """Write all of it. Raises BrokenPipeError where nobody reads it."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._file.fileno(), view) :]
            except BlockingIOError:
                await self._ready()

    async def _ready(self) -> None:
        """Wait until there is something to read, or room to write."""
        fd, waiting = self._file.fileno(), self._loop.create_future()
        self._waiting = waiting
        (self._loop.add_reader if self._file.readable() else self._loop.add_writer)(
            fd, _wake, waiting
        )
        try:
            await waiting
        finally:
            self._forget()

    def _forget(self) -> None:
        """Watch it no more. It must not be watched when it is closed, for its number is then given to another."""
        if self._waiting is not None:
            fd, waiting, self._waiting = self._file.fileno(), self._waiting, None
            (self._loop.remove_reader if self._file.readable() else self._loop.remove_writer)(fd)
            waiting.cancel()

    def close(self) -> None:
        """Let go of it; whoever still waits for it waits no more."""
        if not self._file.closed:
            self._forget()
            self._file.close()


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


class Child:
    """A process in a group of its own, with pipes for what it writes, and one for its input where it is fed."""

    def __init__(
        self, command: Sequence[str], cwd: Path | str, env: Mapping[str, str], fed: bool
    ) -> None:
        """Raises OSError."""
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=pipe if fed else subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.stdout, self.stderr = Pipe(self._process.stdout), Pipe(self._process.stderr)
        self.stdin = Pipe(self._process.stdin) if self._process.stdin is not None else None

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code; None while it runs, as far as anybody knows."""
        return self._process.returncode

    async def wait(self) -> int:
        """Its exit code, once it has ended."""
        code = self._process.poll()
        if code is not None:
            return code
        if not hasattr(os, "pidfd_open"):
            return await asyncio.to_thread(self._process.wait)
        try:
            watch = os.pidfd_open(self.pid)
        except OSError:  # too many files are open, or the kernel is older
            return await asyncio.to_thread(self._process.wait)
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        loop.add_reader(watch, _wake, ended)
        try:
            await ended
        finally:
            loop.remove_reader(watch)
            os.close(watch)
        return self._process.wait()

    async def feed(self, data: bytes) -> None:
        """Write its input, as far as it reads it."""
        assert self.stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            await self.stdin.write(data)
        self.stdin.close()

    def kill(self) -> None:
        """End it."""
        self._process.kill()

    def close(self) -> None:
        """Let go of its pipes."""
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()
