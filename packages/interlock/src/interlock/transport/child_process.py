"""A server as a child process: its start, its supervision, its end, and the messages over its
pipes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec.structs import replace

from .. import types as t
from ..protocol.opening import Discover, Ended, Handshake, Opened, Outcome, Step
from .channel import Tap
from .conversation import Conversation, Hello, OpeningSteps
from .duplex import Duplex
from .pipes import open_pipe_channel
from .spawn import spawn

_STDERR_TAIL = 8 * 1024
_LAST_WORDS = 0.5  # seconds in which the child's last output may still arrive
_MOST_READS = 64  # of 64 KiB each, once the child has ended


class ConfinedProcess(Protocol):
    """The confined start of one command."""

    def start(self, **streams: Any) -> subprocess.Popen[bytes]:
        """Start the program, from a thread. Raises Unreachable and OSError.

        Args:
            streams: The streams and `start_new_session` of `subprocess.Popen`.
        """
        ...

    async def attach(self) -> None:
        """Begin to serve the running program in this event loop."""
        ...

    def see_stderr(self, line: str) -> None:
        """Receive a line that the program wrote to stderr."""
        ...

    async def aclose(self) -> None:
        """Clean up after the program has ended."""
        ...


class Confinement(Protocol):
    """A sandbox for child processes, such as `interlock.sandbox.Sandbox`."""

    def confine(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None,
        report: Callable[[str], None],
    ) -> ConfinedProcess:
        """Return the confined start of a command.

        Args:
            command: The program and its arguments.
            env: Its environment; the sandbox may change and extend it.
            cwd: Its working folder; None for that of this process.
            report: Called in the event loop with a sentence about each thing that was refused.
        """
        ...


class Child:
    """A child process and the connection to it.

    Args:
        command: The program and its arguments, run without a shell.
        env: The complete environment of the child.
        cwd: The working directory of the child; None for that of this process.
        on_stderr: Called with each line that the child writes to stderr.
        limit: The maximum length of a line, in bytes.
        tap: Called with every frame.
        sandbox: Confines the child; None for no confinement.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | Path | None,
        on_stderr: Callable[[str], None] | None,
        limit: int,
        tap: Tap | None,
        sandbox: Confinement | None = None,
    ) -> None:
        self._command = list(command)
        self._env = dict(env)
        self._cwd = cwd
        self._limit = limit
        self._tap = tap
        self._process: subprocess.Popen[bytes] | None = None
        # the write end of the child's stdin, until a channel owns it
        self._input: int | None = None
        self._read_end: int | None = None  # this side's copy of the read end
        self._ending: asyncio.Future[int | None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._confined: ConfinedProcess | None = None
        if sandbox is None:
            self._stderr = StderrTail(on_stderr)
        else:
            self._confined = sandbox.confine(
                self._command, env=self._env, cwd=cwd, report=self._refused
            )
            self._stderr = StderrTail(_both(on_stderr, self._confined.see_stderr))
        self.duplex: Duplex | None = None
        self._conversation: Conversation | None = None
        self._steps: OpeningSteps | None = None

    @property
    def pid(self) -> int | None:
        """The process ID while the process exists."""
        return self._process.pid if self._process is not None else None

    async def start(self, hello: Hello) -> None:
        """Start the process and begin to receive. Raises Unreachable if it cannot be started."""
        starting = asyncio.ensure_future(asyncio.to_thread(self._start))
        try:
            self._process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                # the thread cannot be interrupted: `aclose` ends the process that it starts
                self._process = await starting
            raise
        except OSError as bad:
            from ..redaction import shown_arguments  # late: only a failure needs it

            # The message is shown and logged, so it holds no secret of the arguments.
            command = " ".join(shown_arguments(self._command))
            raise t.Unreachable(
                f"The server could not be started: {command}: {bad.strerror or bad}"
            ) from bad
        process = self._process
        if process.stdout is None or process.stderr is None or self._input is None:
            raise t.Unreachable("The server was started without pipes.")
        self._stderr.attach(os.dup(process.stderr.fileno()))
        write_end = self._input
        self._input = None
        if self._confined is not None:
            await self._confined.attach()
        channel = open_pipe_channel(os.dup(process.stdout.fileno()), write_end, limit=self._limit)
        for stream in (process.stdout, process.stderr):
            stream.close()
        self.duplex = Duplex(channel, tap=self._tap)
        conversation = self.duplex.start()
        # The end of a process is not reported before the process is selected.
        conversation.hello = replace(hello, lost=_ignore)
        self._conversation = conversation
        self._steps = OpeningSteps(
            hello, conversation.connection, conversation.carry, unread=self._unread
        )
        self._watching = asyncio.create_task(_hang_up_when_ended(process, self.duplex))

    def _start(self) -> subprocess.Popen[bytes]:
        start = None if self._confined is None else self._confined.start
        process, self._input, self._read_end = spawn(self._command, self._env, self._cwd, start)
        if sys.platform == "win32":
            self._stop_looking()  # this platform cannot tell how much data is in a pipe
        return process

    # -- opening -----------------------------------------------------------------------------------

    async def run_step(self, step: Step) -> Outcome:
        """Run a step of `opening` with this process; the outcome is Ended if the process has ended
        or closed its pipes.

        Raises Unreachable if this side has closed the connection.
        """
        steps = self._steps
        if steps is None:
            raise t.Unreachable("The server was not started.")
        try:
            return await steps.run_step(step)
        except t.Unreachable as bad:
            return await self._ended(bad)

    async def start_with(self, hello: Hello, first: Discover | Handshake) -> Outcome:
        """Start the process and run the first step. A failed start is an outcome too."""
        try:
            await self.start(hello)
        except t.Unreachable as bad:
            return Ended(bad)
        return await self.run_step(first)

    @property
    def may_answer(self) -> bool:
        """Whether the handshake was sent and its response can still arrive."""
        return (
            self._steps is not None
            and self._steps.waits_for_handshake
            and self._process is not None
            and self._process.poll() is None
        )

    async def late_answer(self) -> Outcome:
        """Wait, without a time limit, for a late response to the handshake."""
        if self._steps is None:
            raise t.Unreachable("The server was not started.")
        try:
            return await self._steps.late()
        except t.Unreachable as bad:
            return await self._ended(bad)

    async def settle(self, hello: Hello, opened: Opened) -> None:
        """Select this process for the connection. From now on its end is reported."""
        conversation = self._conversation
        steps = self._steps
        if conversation is None or steps is None:
            raise t.Unreachable("The client was closed.")
        await steps.aclose()
        self._stop_looking()
        conversation.hello = hello
        conversation.settle(opened)
        if conversation.broken is not None:
            hello.lost(conversation.broken)

    async def _ended(self, bad: t.Unreachable) -> Outcome:
        if self.duplex is None:
            raise bad  # this side has closed the connection
        unread = self._unread()
        return Ended(await self.explained(bad), unread=unread is True)

    def _unread(self) -> bool | None:
        """Whether the pipe contains unread data; None if that cannot be found out.

        Data that an ended process did not read counts as unread.
        """
        if self._read_end is None or not hasattr(select, "poll"):
            return None
        poll = select.poll()
        poll.register(self._read_end, select.POLLIN)
        return any(found & select.POLLIN for _, found in poll.poll(0))

    def _stop_looking(self) -> None:
        """Close this side's copy of the read end.

        While the copy is open, writing to an ended process does not fail.
        """
        read_end = self._read_end
        self._read_end = None
        if read_end is not None:
            os.close(read_end)

    # -- the end -----------------------------------------------------------------------------------

    async def explained(self, bad: t.Unreachable) -> t.Unreachable:
        """Return the error with the exit code and the last stderr lines of the process, if it has
        ended.
        """
        if self._process is None:
            return bad
        if self._ending is None or self._ending.done():
            self._ending = asyncio.ensure_future(
                _exit_code(self._process, 0.5)
            )  # one check for all waiting calls
        code = await asyncio.shield(self._ending)
        if code is None:
            return bad
        self._stderr.read_rest()
        return t.Unreachable("The server has ended.", exit_code=code, stderr=self._stderr.tail)

    async def aclose(self, patience: float) -> None:
        """Close the child's stdin, wait `patience` seconds, then terminate the child.

        You can call it twice.
        """
        duplex = self.duplex
        self.duplex = None
        process = self._process
        if self._watching is not None:
            self._watching.cancel()
        self._stop_looking()
        write_end = self._input
        self._input = None
        if write_end is not None:
            os.close(write_end)  # the opening was cancelled
        try:
            if self._steps is not None:
                await self._steps.aclose()
            if duplex is not None:
                await duplex.aclose()
        finally:
            if process is not None:
                for stream in (process.stdout, process.stderr):
                    if stream is not None:
                        stream.close()  # still open if the opening was cancelled
                await _end(process, patience)
                self._process = None
                self._stderr.read_rest()  # it may have ended since the last turn of the loop
            self._stderr.detach()
            if self._confined is not None:
                await self._confined.aclose()

    def _refused(self, words: str) -> None:
        """Add what the sandbox refused to the stderr of the child."""
        self._stderr.add_line(f"sandbox: {words}.")


def _ignore(why: Exception) -> None:
    """See Hello.lost."""


def _both(
    first: Callable[[str], None] | None, second: Callable[[str], None]
) -> Callable[[str], None]:
    """Return a function that passes each line to both."""

    def both(line: str) -> None:
        if first is not None:
            first(line)
        second(line)

    return both


async def _hang_up_when_ended(process: subprocess.Popen[bytes], duplex: Duplex) -> None:
    """Close the connection when the child has ended. Grandchildren may still hold the pipe open."""
    if hasattr(os, "pidfd_open"):
        while await _exit_code(process, 3600.0) is None:
            pass
    while process.poll() is None:  # noqa: ASYNC110 - no event to wait for on such a platform
        await asyncio.sleep(1.0)
    await asyncio.sleep(_LAST_WORDS)
    duplex.hang_up(t.Unreachable("The server has ended."))


async def _exit_code(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Return the exit code of the child; None if it has not ended within `seconds`."""
    if process.poll() is None:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        watch = _watch(process, loop, ended)
        try:
            async with asyncio.timeout(seconds):
                await ended
        except TimeoutError:
            pass
        finally:
            watch()
    return process.poll()


def _watch(
    process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None]
) -> Callable[[], None]:
    """Set `ended` when the child ends. Returns a function that stops watching."""

    def settle() -> None:
        if not ended.done():
            ended.set_result(None)

    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):
            fd = os.pidfd_open(process.pid)
            loop.add_reader(fd, settle)

            def stop() -> None:
                loop.remove_reader(fd)
                os.close(fd)

            return stop
    waiter = loop.run_in_executor(None, process.wait)
    waiter.add_done_callback(lambda _: settle())
    return lambda: None


async def _end(process: subprocess.Popen[bytes], patience: float) -> None:
    """Wait for the child, then terminate it, then kill it, together with all processes of its
    session.
    """
    if await _exit_code(process, patience) is None:
        _signal(process, signal.SIGTERM)
        if await _exit_code(process, patience) is None:
            _signal(process, signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
            await _exit_code(process, 10.0)
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)  # the remaining processes of the child's session


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            process.terminate()
        else:
            os.killpg(process.pid, number)


class StderrTail:
    """Keeps the last lines of a child's stderr, and passes each line to a callback."""

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        self._on_line = on_line
        self._fd: int | None = None
        self._kept = b""
        self._partial = b""

    @property
    def tail(self) -> str:
        """The last lines of the stderr."""
        return self._kept.decode("utf-8", "replace")

    def add_line(self, line: str) -> None:
        """Add a line that the child did not write itself."""
        self._kept = (self._kept + f"{line}\n".encode())[-_STDERR_TAIL:]
        if self._on_line is not None:
            self._on_line(line)

    def attach(self, fd: int) -> None:
        """Start to read a descriptor, and own it."""
        self._fd = fd
        if sys.platform == "win32":
            asyncio.get_running_loop().run_in_executor(None, self._read_blocking)
        else:
            os.set_blocking(fd, False)
            asyncio.get_running_loop().add_reader(fd, self.read_rest, True)

    def read_rest(self, once: bool = False) -> None:
        """Read what is available now: of a process that never stops writing only so much."""
        if sys.platform == "win32":
            return  # a thread reads to the end
        for _ in range(1 if once else _MOST_READS):
            if self._fd is None:
                return
            try:
                chunk = os.read(self._fd, 65536)
            except OSError as bad:
                if not isinstance(bad, BlockingIOError):
                    self.detach()
                return
            if not chunk:
                self.detach()
                return
            self._take(chunk)

    def _take(self, chunk: bytes) -> None:
        self._kept = (self._kept + chunk)[-_STDERR_TAIL:]
        if self._on_line is not None:
            *lines, self._partial = (self._partial + chunk).split(b"\n")
            self._partial = self._partial[-_STDERR_TAIL:]
            for line in lines:
                self._on_line(line.decode("utf-8", "replace").rstrip("\r"))

    def _read_blocking(self) -> None:
        fd = self._fd
        while fd is not None and (chunk := os.read(fd, 65536)):
            self._take(chunk)

    def detach(self) -> None:
        """Stop reading, close the descriptor, and pass on an unfinished line."""
        fd = self._fd
        self._fd = None
        if fd is not None:
            if sys.platform != "win32":
                asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)
            if self._partial and self._on_line is not None:
                self._on_line(self._partial.decode("utf-8", "replace"))
                self._partial = b""
