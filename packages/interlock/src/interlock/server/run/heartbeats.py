"""Two heartbeats of a worker process, of a thread and of the event loop, in memory that it shares
with its supervisor.
"""

from __future__ import annotations

import asyncio
import mmap
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType

from ...logs import limited
from .liveness import Heartbeats
from .process_memory import resident_bytes

log = limited("interlock.server")

_PAUSE = 0.25  # seconds between two heartbeats
_REPORTED_SECONDS = 1.0  # after this time the stack of a blocked event loop is logged
_MEASURED_SECONDS = 2.0  # between two looks at the memory of the process
# of a row: process, loop, requests, memory, excess, whether it is replaced, whether it wants to be
_CELLS = 7
_DEBUGGERS = frozenset({"bdb", "pdb", "pydevd", "_pydevd_bundle", "debugpy"})


class HeartbeatTable:
    """The heartbeats of all workers, one row for each: the workers write, the supervisor reads.

    Make it before the workers are forked.
    """

    def __init__(self, rows: int) -> None:
        self._memory = mmap.mmap(-1, rows * _CELLS * 8)
        self._cells = memoryview(self._memory).cast("d")

    def reset(self, row: int, excess: float) -> None:
        """Make a row ready for a new worker."""
        start = row * _CELLS
        for cell in range(start, start + _CELLS):
            self._cells[cell] = 0.0
        self._cells[start + 4] = excess

    def write(self, row: int, process: float, loop: float, requests: int, memory: int) -> None:
        """Write the heartbeats of a worker."""
        start = row * _CELLS
        self._cells[start + 1] = loop
        self._cells[start + 2] = requests
        self._cells[start + 3] = memory
        self._cells[start] = process  # last: the row counts from the first heartbeat on

    def read(self, row: int) -> Heartbeats | None:
        """Return the heartbeats of a worker; None before the first."""
        start = row * _CELLS
        process, loop, requests, memory, excess, _, wants = self._cells[start : start + _CELLS]
        if not process:
            return None
        return Heartbeats(process, loop, int(requests), int(memory), excess, bool(wants))

    def mark_replaced(self, row: int) -> None:
        """Say that the worker has a successor, which serves."""
        self._cells[row * _CELLS + 5] = 1.0

    def is_replaced(self, row: int) -> bool:
        """Whether the worker has a successor."""
        return bool(self._cells[row * _CELLS + 5])

    def request_replacement(self, row: int) -> None:
        """Say that the worker asks for a successor."""
        self._cells[row * _CELLS + 6] = 1.0

    def close(self) -> None:
        """Release the memory."""
        self._cells.release()
        self._memory.close()


class HeartbeatSender:
    """Sends the heartbeats of this worker, and logs the stack of an event loop that is blocked.

    A stopped process sends neither heartbeat, and so does a C extension that keeps the GIL. While a
    debugger holds the main thread, the event loop counts as running.

    Args:
        table: The table of the supervisor.
        row: The row of this worker.
        on_started: Called once this worker serves.
    """

    def __init__(
        self, table: HeartbeatTable, row: int, *, on_started: Callable[[], None] = lambda: None
    ) -> None:
        self._table = table
        self._row = row
        self._on_started = on_started
        self._requests: Callable[[], int] = int
        self._loop_ran = 0.0
        self._loop_thread = 0

    @property
    def is_replaced(self) -> bool:
        """Whether this worker ends because another one has taken its place."""
        return self._table.is_replaced(self._row)

    def request_replacement(self) -> None:
        """Ask the supervisor for a successor."""
        self._table.request_replacement(self._row)

    def started(self, requests: Callable[[], int]) -> None:
        """Start to send. Call it in the event loop once this worker serves.

        Args:
            requests: Returns the number of requests that this worker has received.
        """
        self._requests = requests
        self._loop_thread = threading.get_ident()
        self._beat_loop(asyncio.get_running_loop())
        threading.Thread(target=self._beat, name="interlock-heartbeat", daemon=True).start()
        self._on_started()

    def _beat_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop_ran = time.monotonic()
        loop.call_later(_PAUSE, self._beat_loop, loop)

    def _beat(self) -> None:
        reported = 0.0  # the heartbeat of the loop that was the last one before the last report
        memory = resident_bytes()
        measured = time.monotonic()
        expected = measured  # when this thread should run next
        awake = measured  # since then it has run in time
        while True:
            now = time.monotonic()
            if now - measured >= _MEASURED_SECONDS:
                memory = resident_bytes()
                measured = now
            if now - expected >= _PAUSE:
                awake = now  # the machine was busy, or asleep: the event loop is not to blame
            expected = now + _PAUSE
            ran = self._loop_ran
            if now - max(ran, awake) >= _REPORTED_SECONDS:
                stack = sys._current_frames().get(self._loop_thread)
                if is_debugged(stack):
                    ran = now
                elif ran != reported:
                    reported = ran
                    # Another thread: the blocked one may hold the lock of the log.
                    threading.Thread(target=_report, args=(now - ran, stack), daemon=True).start()
            self._table.write(self._row, now, ran, self._requests(), memory)
            time.sleep(_PAUSE)


def _report(seconds: float, stack: FrameType | None) -> None:
    lines = "".join(traceback.format_stack(stack)) if stack is not None else "(no stack)"
    log.warning(
        "the event loop has been blocked for %.1f s; a tool that blocks belongs in a thread, as a"
        " plain function. It is at:\n%s",
        seconds,
        lines.rstrip(),
    )


def is_debugged(stack: FrameType | None) -> bool:
    """Whether a debugger holds the thread with this stack."""
    while stack is not None:
        if str(stack.f_globals.get("__name__", "")).partition(".")[0] in _DEBUGGERS:
            return True
        stack = stack.f_back
    return False
