"""Worker pool for SQLite files: one connection in each child process, killed if it hangs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from interlock import ToolError

from ..processes import StreamProcess
from .idle_workers import IdlePool
from .limits import DatabaseLimits
from .sqlite_queries import too_long
from .sqlite_worker import GRACE, HEAD, MOST, OpenDatabase, StopCall, WorkerCall, WorkerReply

_START = 20.0  # seconds for a process to start, in addition to the time of the call
_HEAD = 64 * 1024  # bytes around an answer
_SLACK = 0.2  # seconds by which a timeout is late when the process itself stops the statement
_KEPT = (
    "PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "TMPDIR",
)  # environment variables: no passwords
# It uses the same module path as this process, and nothing of the current folder.
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:]; from interlock_servers.database.sqlite_worker import "
    "main; main()"
)
_HERE = str(Path(__file__).resolve().parents[2])


class WorkerProcess:
    """A child process that runs one call at a time."""

    def __init__(self, process: StreamProcess) -> None:
        self._process = process
        self._number = 0
        self.ended = False  # whether it can run no more calls

    @classmethod
    async def start(cls, path: Path, limits: DatabaseLimits, *, write: bool) -> WorkerProcess:
        """Start a process, which opens the file at its first call.

        Raises OSError if it cannot be started.
        """
        found = [entry for entry in sys.path if entry and os.path.isabs(entry)]
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        command = [sys.executable, "-I", "-S", "-c", _PROGRAM, *found, _HERE]
        lane = cls(await StreamProcess.start(command, env=kept))
        lane._send(OpenDatabase(os.fsencode(path), limits, write))
        return lane

    async def ask(self, call: WorkerCall) -> WorkerReply:
        """Run a call. Raises ToolError if it takes too long, or if the process ends.

        A cancellation stops the statement and waits for its end; if the statement does not end, the
        process is killed.
        """
        self._number += 1
        call.number = self._number
        answering = asyncio.ensure_future(self._answer(call))
        try:
            await asyncio.wait(
                [answering], timeout=call.seconds + (_START if self._number == 1 else _SLACK)
            )
            if not answering.done():
                await self._stop(answering)
                raise too_long(call.seconds)
        except asyncio.CancelledError:
            await self._stop(answering)
            raise
        finally:
            answering.add_done_callback(
                lambda late: late.cancelled() or late.exception()
            )  # marks the exception as retrieved
        return answering.result()

    async def _answer(self, call: WorkerCall) -> WorkerReply:
        self._send(call)
        try:
            (length,) = HEAD.unpack(await self._process.stdout.readexactly(HEAD.size))
            if length > MOST + _HEAD:  # not an answer of the worker
                raise ConnectionError
            return msgspec.json.decode(
                await self._process.stdout.readexactly(length), type=WorkerReply
            )
        except (asyncio.IncompleteReadError, ConnectionError, msgspec.DecodeError):
            self.ended = True
            self._process.kill()
            await self._process.wait()
            raise ToolError(
                "The process that reads the database ended during this call: it took too "
                "much memory, or the file is damaged."
            ) from None

    async def _stop(self, answering: asyncio.Future[WorkerReply]) -> None:
        self._send(StopCall(self._number))
        try:
            await asyncio.wait([answering], timeout=GRACE)
        finally:
            if not answering.done():
                self.ended = True
                self._process.kill()

    def _send(self, what: Any) -> None:
        assert self._process.stdin is not None
        frame = msgspec.json.encode(what)
        with contextlib.suppress(
            ConnectionError, RuntimeError
        ):  # the process has ended, which reading the answer reports
            self._process.stdin.write(HEAD.pack(len(frame)) + frame)

    async def close(self, grace: float) -> None:
        """Let the process exit, and kill it after `grace` seconds."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(grace):
                await self._process.wait()
        except TimeoutError:
            pass
        finally:
            self._process.kill()
            self._process.close()
        await self._process.wait()


class WorkerPool:
    """Worker processes of one kind for a file, started on demand and kept for later calls."""

    def __init__(self, path: Path, limits: DatabaseLimits, count: int, *, write: bool) -> None:
        self._path = path
        self._limits = limits
        self._write = write
        self._count = count
        self._free = asyncio.Semaphore(count)
        self._idle = IdlePool(limits.idle, self._end)
        self._all: set[WorkerProcess] = set()
        self._closed = False

    async def ask(self, call: WorkerCall) -> WorkerReply:
        """Run a call as soon as a process is free. Raises ToolError."""
        try:
            async with asyncio.timeout(self._limits.waiting):
                await self._free.acquire()
        except TimeoutError:
            raise ToolError(
                f"All {self._count} connections to the database are busy. Try again later, or ask "
                "for less at once."
            ) from None
        try:
            if self._closed:
                raise ToolError("The server is shutting down.")
            lane = self._idle.acquire() or await self._started()
            try:
                return await lane.ask(call)
            finally:
                if lane.ended:
                    self._all.discard(lane)
                    await lane.close(0)
                elif not self._closed:
                    self._idle.release(lane)
        finally:
            self._free.release()

    async def _started(self) -> WorkerProcess:
        try:
            lane = await WorkerProcess.start(self._path, self._limits, write=self._write)
        except OSError as bad:
            raise ToolError(
                f"No process can be started to read the database: {bad.strerror or bad}."
            ) from None
        self._all.add(lane)
        if self._closed:  # closed in the meantime
            await lane.close(0)
            raise ToolError("The server is shutting down.")
        return lane

    async def _end(self, lane: WorkerProcess) -> None:
        """Close a process that was idle for too long."""
        await lane.close(GRACE)
        self._all.discard(lane)

    async def close(self) -> None:
        """Close all processes, including busy and starting ones; their calls fail with an error."""
        self._closed = True
        await asyncio.gather(*(lane.close(GRACE) for lane in self._all))
        await self._idle.close()
        for _ in range(self._count):
            await self._free.acquire()
