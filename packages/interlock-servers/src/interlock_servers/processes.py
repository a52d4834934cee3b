"""Bounded child processes: limits on time, output and memory, and a process group that is killed.

A child process that handles hostile input may hang, flood its output or start processes of its own.
Therefore each child leads a process group, and nothing of the group outlives the block in which it
runs. `running` is for short programs on an event loop, `StreamProcess` for workers that live
longer, and `blocking` for threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from io import FileIO
from pathlib import Path
from typing import IO, Any, TypeVar

CHUNK = 64 * 1024
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
_TICK = 0.1  # seconds between two checks of the time during a blocking read
_PIPES_ARE_POLLED = os.name == "posix"  # an event loop can wait for a pipe

One = TypeVar("One")
Other = TypeVar("Other")


async def both(
    one: Coroutine[Any, Any, One], other: Coroutine[Any, Any, Other]
) -> tuple[One, Other]:
    """Run two coroutines at the same time. If one fails, the other is cancelled and awaited."""
    tasks = asyncio.ensure_future(one), asyncio.ensure_future(other)
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Pipe:
    """One end of a pipe, read and written on the event loop without a thread."""

    def __init__(self, file: IO[bytes] | FileIO) -> None:
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None
        os.set_blocking(file.fileno(), False)

    async def read(self, most: int) -> bytes:
        """The next bytes, at most `most`; empty at the end."""
        while True:
            try:
                return os.read(self._file.fileno(), most)
            except BlockingIOError:
                await self._ready()

    async def write(self, data: bytes) -> None:
        """Write all bytes. Raises BrokenPipeError if the reader has closed the pipe."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._file.fileno(), view) :]
            except BlockingIOError:
                await self._ready()

    async def _ready(self) -> None:
        """Wait until the pipe can be read or written."""
        fd = self._file.fileno()
        waiting = self._loop.create_future()
        self._waiting = waiting
        watch = self._loop.add_reader if self._file.readable() else self._loop.add_writer
        watch(fd, _wake, waiting)
        try:
            await waiting
        finally:
            self._unwatch()

    def _unwatch(self) -> None:
        """Stop watching. A closed descriptor must not be watched: its number is reused."""
        if self._waiting is not None:
            waiting = self._waiting
            self._waiting = None
            fd = self._file.fileno()
            (self._loop.remove_reader if self._file.readable() else self._loop.remove_writer)(fd)
            waiting.cancel()

    def close(self) -> None:
        """Close the pipe, and cancel tasks that wait for it."""
        if not self._file.closed:
            self._unwatch()
            self._file.close()


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


class PipeProcess:
    """A child process whose pipes the event loop polls itself.

    asyncio's own subprocesses need a thread, transports and tasks each, which costs more than a
    short run of git.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path | str | None,
        env: Mapping[str, str],
        fed: bool,
        errors: bool,
    ) -> None:
        """Start the process. Raises OSError."""
        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE if fed else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if errors else subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self.stdout = Pipe(self._process.stdout)
        self.stderr = Pipe(self._process.stderr) if self._process.stderr is not None else None
        self._stdin = Pipe(self._process.stdin) if self._process.stdin is not None else None

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its process group."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code; None until its end was noticed."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait for the process to end; return its exit code."""
        code = self._process.poll()
        if code is not None:
            return code
        if not hasattr(os, "pidfd_open"):
            return await asyncio.to_thread(self._process.wait)
        try:
            watch = os.pidfd_open(self.pid)
        except OSError:  # too many open files, or an older kernel
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
        """Write its input, as far as it is read, and close the pipe."""
        assert self._stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            await self._stdin.write(data)
        self._stdin.close()

    def kill(self) -> None:
        """Kill the process group."""
        _signal(self.pid, _KILL)

    def close(self) -> None:
        """Close the pipes."""
        for pipe in (self._stdin, self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()


class StreamProcess:
    """A child process with asyncio's streams: for workers, and where pipes cannot be polled."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        self._process = process
        self.pid = process.pid
        self.stdout = process.stdout
        self.stderr = process.stderr
        self.stdin = process.stdin
        self.wait = process.wait

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | str | None = None,
        fed: bool = True,
        errors: int | None = None,
    ) -> StreamProcess:
        """Start the process.

        `errors` is the target of its stderr, by default that of this process. Raises OSError.
        """
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.PIPE if fed else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        )
        try:
            # The process may run before asyncio returns it. If the caller is cancelled, it must
            # still be killed.
            return cls(await asyncio.shield(starting))
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                await terminate(cls(await asyncio.shield(starting)), 0.0)
            raise

    @property
    def returncode(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.returncode

    async def feed(self, data: bytes) -> None:
        """Write its input, as far as it is read, and close the pipe."""
        assert self.stdin is not None
        with contextlib.suppress(ConnectionError):
            self.stdin.write(data)
            await self.stdin.drain()
        self.stdin.close()

    def kill(self) -> None:
        """Kill the process group."""
        _signal(self.pid, _KILL)

    def close(self) -> None:
        """Close the pipes."""
        # No public method closes pipes that were not read to the end. The transport itself must not
        # be closed: its close() would reap the process without asyncio's watcher.
        transport = self._process._transport  # type: ignore[attr-defined]  # private in asyncio
        for number in range(3):
            pipe = transport.get_pipe_transport(number)
            if pipe is not None:
                pipe.close()


Process = PipeProcess | StreamProcess


@asynccontextmanager
async def running(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | str | None = None,
    feed: bytes | None = None,
    errors: bool = True,
    memory: int | None = None,
    grace: float = 0.0,
) -> AsyncIterator[Process]:
    """Run a program in its own process group. However you leave the block, the group is killed.

    Args:
        command: The program and its arguments; no shell is used.
        env: Its whole environment.
        cwd: Its working folder; by default that of this process.
        feed: Its input, written while the block runs.
        errors: Whether its stderr can be read. Otherwise it is discarded.
        memory: How many bytes it may allocate, if the platform can set that for another process.
        grace: Seconds between SIGTERM and SIGKILL. With 0 it is killed at once.

    Raises:
        OSError: The program cannot be started.
    """
    fed = feed is not None
    process: Process
    if _PIPES_ARE_POLLED:
        process = PipeProcess(command, cwd=cwd, env=env, fed=fed, errors=errors)
    else:
        stderr = subprocess.PIPE if errors else subprocess.DEVNULL
        process = await StreamProcess.start(command, env=env, cwd=cwd, fed=fed, errors=stderr)
    if memory is not None:
        _limit_memory(process.pid, memory)
    feeding = asyncio.ensure_future(process.feed(feed)) if feed is not None else None
    try:
        yield process
    finally:
        if feeding is not None:
            feeding.cancel()
        await terminate(process, grace)


async def terminate(process: Process, grace: float) -> None:
    """End a process and its group: SIGTERM, SIGKILL after `grace` seconds; then close the pipes."""
    try:
        if grace and process.returncode is None:
            _signal(process.pid, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(process.wait()), grace)
    finally:
        _signal(process.pid, _KILL)
        # asyncio notices the end of a process only after its pipes have ended, and a full and
        # paused pipe never ends. So the pipes are closed first.
        process.close()
        if process.returncode is None:
            await asyncio.shield(process.wait())


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(pid, number)
        else:
            os.kill(pid, number)


def _limit_memory(pid: int, memory: int) -> None:
    if sys.platform == "linux":
        import resource  # not on every platform, and needed only here

        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (memory, memory))
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


async def read_into(kept: bytearray, process: Process, most: int) -> bool:
    """Append the output of a process to `kept`; False once it is longer than `most` bytes."""
    while chunk := await process.stdout.read(CHUNK):
        kept += chunk
        if len(kept) > most:
            return False
    return True


async def read_output(process: Process, most: int) -> bytes:
    """The output of a process, up to `most` bytes."""
    kept = bytearray()
    await read_into(kept, process, most - 1)
    return bytes(kept[:most])


class BlockingProcess:
    """A child process for use in a thread, which waits in short steps so that it can be stopped."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._process = process
        self._stdout = process.stdout

    def write(self, data: bytes) -> None:
        """Write all of its input. Raises BrokenPipeError if it has ended."""
        assert self._process.stdin is not None
        view = memoryview(data)
        while view:
            view = view[self._process.stdin.write(view) :]

    def read(self, stopped: Callable[[], bool]) -> bytes | None:
        """The next bytes of output; empty at the end, None once `stopped()` returns True."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            while not selector.select(_TICK):
                if stopped():
                    return None
            return os.read(self._stdout.fileno(), CHUNK)

    def wait(self) -> int:
        """Wait for the process to end; return its exit code."""
        return self._process.wait()


@contextlib.contextmanager
def blocking(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    pass_fds: Sequence[int] = (),
    fed: bool = False,
) -> Iterator[BlockingProcess]:
    """Run a program for a thread, in its own process group, which is killed after the block.

    Args:
        command: The program and its arguments; no shell is used.
        env: Its whole environment; by default that of this process.
        cwd: Its working folder; by default that of this process.
        pass_fds: Descriptors that it inherits.
        fed: Whether you write its input.

    Raises:
        OSError: The program cannot be started.
    """
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        pass_fds=pass_fds,
        stdin=subprocess.PIPE if fed else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,
    )
    try:
        yield BlockingProcess(process)
    finally:
        _signal(process.pid, _KILL)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.wait()
