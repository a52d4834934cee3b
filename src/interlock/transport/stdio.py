"""The stdio transport: our own standard streams on the server's side, a child process on the client's (2026-07-28, "stdio")."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import types as t
from ..exchange import AnyResult, Exchange
from ..protocol.opening import Opened
from ..wire.lines import DEFAULT_LIMIT
from .channel import Tap
from .conversation import Hello
from .duplex import Duplex
from .pipes import PipeChannel, ThreadChannel, open_pipe_channel

_STDERR_TAIL = 8 * 1024
_LAST_WORDS = 0.5  # seconds in which what a child wrote before its end may still arrive
_INHERITED = frozenset(
    [
        "HOME",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "TMPDIR",
        "USER",
        "TZ",
        "VIRTUAL_ENV",
    ]
    if sys.platform != "win32"
    else [
        "APPDATA",
        "COMSPEC",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "PATH",
        "PATHEXT",
        "PROGRAMDATA",
        "PROGRAMFILES",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "USERNAME",
        "USERPROFILE",
        "WINDIR",
    ]
)


@contextlib.asynccontextmanager
async def own_streams(limit: int = DEFAULT_LIMIT) -> AsyncIterator[PipeChannel | ThreadChannel]:
    """This process's stdin and stdout as a channel.

    While it is open nothing else can reach the wire: descriptor 1 leads to stderr, so that `print` in a server, or a program
    that a tool starts, writes there, and descriptor 0 is empty. Both are put back at the end.
    """
    sys.stdout.flush()
    read_fd, write_fd = os.dup(0), os.dup(1)
    saved_in, saved_out = os.dup(0), os.dup(1)
    was_blocking = [(fd, os.get_blocking(fd)) for fd in (saved_in, saved_out)]
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    saved_stdout, sys.stdout = sys.stdout, _stderr_writer()
    channel = open_pipe_channel(read_fd, write_fd, limit=limit)
    try:
        yield channel
    finally:
        await channel.aclose()
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        sys.stdout = saved_stdout
        for fd, blocking in was_blocking:
            os.set_blocking(fd, blocking)
        os.dup2(saved_in, 0)
        os.dup2(saved_out, 1)
        os.close(saved_in)
        os.close(saved_out)


def _stderr_writer() -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.FileIO(2, "w", closefd=False),
        encoding="utf-8",
        errors="backslashreplace",
        line_buffering=True,
        write_through=True,
    )


def inherited_environment() -> dict[str, str]:
    """The variables that a child server gets unasked: those that programs need to run, none that may hold secrets."""
    return {name: value for name, value in os.environ.items() if name in _INHERITED}


class Stdio:
    """A client's transport to a server that it starts as a child process.

    `command` and its arguments are run without a shell; `env` is added to a small safe set of inherited variables
    (`inherit_env=True`: to all of them); `on_stderr` gets each line that the server writes to stderr; `tap` sees every frame. At
    the end the child's stdin is closed; a child that is still there after `patience` seconds is terminated, and killed after as
    long again.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        inherit_env: bool = False,
        cwd: str | Path | None = None,
        on_stderr: Callable[[str], None] | None = None,
        patience: float = 2.0,
        limit: int = DEFAULT_LIMIT,
        tap: Tap | None = None,
    ) -> None:
        if not command:
            raise ValueError("a command is needed to start a server")
        self.command = [os.fspath(part) for part in command]
        self.patience = patience
        self._env = {**(os.environ if inherit_env else inherited_environment()), **(env or {})}
        self._cwd, self._on_stderr, self._limit, self._tap = cwd, on_stderr, limit, tap
        self._process: subprocess.Popen[bytes] | None = None
        self._ending: asyncio.Future[int | None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._duplex: Duplex | None = None
        self._stderr = _StderrTail(on_stderr)

    @property
    def pid(self) -> int | None:
        """The child's process id while it is there."""
        return self._process.pid if self._process is not None else None

    async def open(self, hello: Hello) -> Opened:
        """Start the server and agree on a revision. Raises Unreachable where it cannot be started or ends at once."""
        starting = asyncio.ensure_future(asyncio.to_thread(self._start))
        try:
            self._process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                self._process = (
                    await starting
                )  # the thread cannot be called back: `aclose` ends what it starts
            raise
        except OSError as bad:
            raise t.Unreachable(
                f"The server could not be started: {' '.join(self.command)}: {bad.strerror or bad}"
            ) from bad
        process = self._process
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise t.Unreachable("The server was started without pipes.")
        self._stderr.attach(os.dup(process.stderr.fileno()))
        channel = open_pipe_channel(
            os.dup(process.stdout.fileno()), os.dup(process.stdin.fileno()), limit=self._limit
        )
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
        self._duplex = Duplex(channel, tap=self._tap)
        self._watching = asyncio.create_task(_hang_up_when_ended(process, self._duplex))
        try:
            return await self._duplex.open(hello)
        except t.Unreachable as bad:
            raise await self._explained(bad) from None

    async def __call__(self, exchange: Exchange) -> AnyResult:
        """Carry one exchange to the child and back."""
        if self._duplex is None:
            raise t.Unreachable("The server was not started.")
        try:
            return await self._duplex(exchange)
        except t.TimedOut:
            raise
        except t.Unreachable as bad:
            if self._duplex is None:
                raise  # we have closed it: how the child ended is not why
            raise await self._explained(bad) from None

    def tell(self, method: str, params: Any) -> None:
        """Send a notification that belongs to no request."""
        if self._duplex is not None:
            self._duplex.tell(method, params)

    async def aclose(self) -> None:
        """Close the child's stdin, wait for it to end, and make it end where it does not."""
        duplex, self._duplex = self._duplex, None
        process = self._process
        if self._watching is not None:
            self._watching.cancel()
        try:
            if duplex is not None:
                await duplex.aclose()
        finally:
            if process is not None:
                for stream in (process.stdin, process.stdout, process.stderr):
                    if stream is not None:
                        stream.close()  # ours where the opening was given up; else closed long ago
                await _end(process, self.patience)
                self._process = None
            self._stderr.detach()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._env,
            cwd=self._cwd,
            start_new_session=sys.platform
            != "win32",  # a signal for us (Ctrl-C) is not one for the child
        )

    async def _explained(self, bad: t.Unreachable) -> t.Unreachable:
        """The same misfortune with the child's exit code and last words, where it has ended."""
        if self._process is None:
            return bad
        if self._ending is None or self._ending.done():
            self._ending = asyncio.ensure_future(
                _exit_code(self._process, 0.5)
            )  # one look for all calls that wait
        code = await asyncio.shield(self._ending)
        if code is None:
            return bad
        self._stderr.read_rest()
        return t.Unreachable("The server has ended.", exit_code=code, stderr=self._stderr.tail)


async def _hang_up_when_ended(process: subprocess.Popen[bytes], duplex: Duplex) -> None:
    """A child that has ended answers nothing more, though something it has started may hold its end of the pipe open."""
    if hasattr(os, "pidfd_open"):
        while await _exit_code(process, 3600.0) is None:
            pass
    while process.poll() is None:  # noqa: ASYNC110 - on such a platform there is no event to wait for
        await asyncio.sleep(1.0)
    await asyncio.sleep(_LAST_WORDS)
    duplex.hang_up(t.Unreachable("The server has ended."))


async def _exit_code(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """The exit code once the child has ended, None where it has not within `seconds`."""
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
    """Set `ended` when the child ends; returns how to stop watching."""

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
    """Wait, then ask, then force: whoever the child has started in its session goes with it."""
    if await _exit_code(process, patience) is None:
        _signal(process, signal.SIGTERM)
        if await _exit_code(process, patience) is None:
            _signal(process, signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
            await _exit_code(process, 10.0)
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)  # what the child left behind in its session


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            process.terminate()
        else:
            os.killpg(process.pid, number)


class _StderrTail:
    """The last of what a child wrote to stderr, and each line of it to whoever wants it."""

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        self._on_line = on_line
        self._fd: int | None = None
        self._kept = b""
        self._partial = b""

    @property
    def tail(self) -> str:
        return self._kept.decode("utf-8", "replace")

    def attach(self, fd: int) -> None:
        self._fd = fd
        if sys.platform == "win32":
            asyncio.get_running_loop().run_in_executor(None, self._read_blocking)
        else:
            os.set_blocking(fd, False)
            asyncio.get_running_loop().add_reader(fd, self.read_rest, True)

    def read_rest(self, once: bool = False) -> None:
        """Take in what is there now."""
        while self._fd is not None:
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
            if once:
                return

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
        fd, self._fd = self._fd, None
        if fd is not None:
            if sys.platform != "win32":
                asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)
            if self._partial and self._on_line is not None:
                self._on_line(self._partial.decode("utf-8", "replace"))
                self._partial = b""
