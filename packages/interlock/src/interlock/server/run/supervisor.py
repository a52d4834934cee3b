"""A supervisor of forked worker processes that share one socket; it restarts them (Unix)."""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from ...logs import limited
from ...store.errors import StoreError

log = limited("interlock.server")

# seconds before a worker is replaced, if its predecessors died soon after their start too
_PAUSE = 0.5
_LONGEST_PAUSE = 10.0
_STEADY = 30.0  # after this many seconds a death no longer counts as soon after the start
# seconds beyond the grace of its calls after which a stopped worker is killed
_STUBBORN = 10.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_KINDS: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (StoreError, OSError, ImportError, ValueError)
}
_MOST_WORDS = 1000  # characters: a report is written to the pipe in one piece

Work = Callable[[Callable[[], None]], None]


class _Report(Struct, array_like=True):
    """The report of a worker's start: success, or the kind and the message of the error."""

    pid: int
    kind: str = ""
    words: str = ""


class _Pipe:
    """A pipe that can be read without blocking."""

    def __init__(self) -> None:
        self.out, self.into = os.pipe()
        os.set_blocking(self.out, False)
        os.set_blocking(self.into, False)

    def drain(self) -> bytes:
        """Return everything in the pipe."""
        found = b""
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self.out, 65536):
                found += piece
        return found

    def close(self) -> None:
        """Close both ends of the pipe."""
        os.close(self.out)
        os.close(self.into)


class Supervisor:
    """Runs `work` in `count` processes. `work` gets a function to call once it serves.

    `grace` is the time that running calls have at the end, in seconds. `on_ready` is called once
    the first process serves.
    """

    def __init__(
        self, count: int, work: Work, *, grace: float, on_ready: Callable[[], None] | None = None
    ) -> None:
        self._count = count
        self._work = work
        self._grace = grace
        self._on_ready = on_ready
        self._born: dict[int, float] = {}
        self._due: list[float] = []  # when to start the next workers
        self._failed: list[_Report] = []  # reports of failed starts, before any worker served
        self._serves = False
        self._soon = 0  # the number of workers in a row that died soon after their start
        self._told_at: float | None = None
        self._signals = [signal.SIGKILL, signal.SIGTERM]  # signals still to send, the next one last

    def run(self) -> None:
        """Supervise the workers until a signal stops this process; then shut the workers down
        gracefully.

        Raises the error of the first worker if no worker could start.
        """
        gc.collect()
        gc.freeze()  # workers share existing objects until someone modifies them
        self._woken = _Pipe()
        self._reports = _Pipe()
        self._life = _Pipe()
        before = {number: signal.signal(number, self._stop) for number in _SIGNALS}
        before[signal.SIGCHLD] = signal.signal(
            signal.SIGCHLD, lambda number, frame: None
        )  # a handler of any kind, so that the signal wakes `select`
        old_wakeup = signal.set_wakeup_fd(self._woken.into, warn_on_full_buffer=False)
        try:
            self._due = [0.0] * self._count
            while self._born or (self._due and self._told_at is None):
                self._turn()
        finally:
            signal.set_wakeup_fd(old_wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
            for pipe in (self._woken, self._reports, self._life):
                pipe.close()
        if not self._serves and len(self._failed) >= self._count:
            raise self._why()

    def _turn(self) -> None:
        """Start due workers, wait for an event, and handle it."""
        now = time.monotonic()
        if self._told_at is None:
            for due in [due for due in self._due if due <= now]:
                self._due.remove(due)
                self._fork()
        wait: float | None = min(self._due) - now if self._due else None
        if self._told_at is not None:
            wait = self._end(now - self._told_at)
        select.select(
            [self._woken.out, self._reports.out], [], [], None if wait is None else max(wait, 0.0)
        )
        self._woken.drain()
        self._hear()
        for pid in list(self._born):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._hear()  # the last reports of the worker
                self._bury(pid, status)

    def _hear(self) -> None:
        for line in self._reports.drain().splitlines():
            report = msgspec.json.decode(line, type=_Report)
            if report.kind:
                self._failed.append(report)
                if self._serves:
                    log.error("worker %d could not start: %s", report.pid, report.words)
            elif not self._serves:
                self._serves = True
                if self._on_ready is not None:
                    self._on_ready()

    def _bury(self, pid: int, status: int) -> None:
        now = time.monotonic()
        lived = now - self._born.pop(pid)
        if self._told_at is not None:
            return
        if not self._serves:
            if all(report.pid != pid for report in self._failed):
                self._failed.append(
                    _Report(
                        pid,
                        "Exception",
                        f"a worker ended before it could serve ({_ending(status)})",
                    )
                )
            if len(self._failed) >= self._count:
                self._told_at = now  # no worker can start
                return
        self._soon = 0 if lived > _STEADY else self._soon + 1
        pause = (
            0.0
            if self._soon < 2 and self._serves
            else min(_PAUSE * 2 ** max(self._soon - 2, 0), _LONGEST_PAUSE)
        )
        self._due.append(now + pause)
        if self._serves:
            log.error(
                "worker %d ended (%s); another one takes its place%s",
                pid,
                _ending(status),
                f" in {pause:g} s" if pause else "",
            )

    def _why(self) -> Exception:
        first = self._failed[0]
        return _KINDS.get(first.kind, RuntimeError)(first.words)

    def _stop(self, number: int, frame: Any) -> None:
        self._told_at = self._told_at or time.monotonic()

    def _end(self, since: float) -> float | None:
        """Ask the workers to end, once, and kill those that do not.

        Returns the remaining time in seconds, or None after the kill.
        """
        left = self._grace + _STUBBORN - since
        if len(self._signals) == 2 or (self._signals and left <= 0):
            number = self._signals.pop()
            if number == signal.SIGKILL:
                log.error("%d of the workers do not end, and are killed", len(self._born))
            for pid in self._born:  # not waited for yet, so the system cannot have reused the pid
                os.kill(pid, number)
        return left if self._signals else None

    # -- a worker ----------------------------------------------------------------------------------

    def _fork(self) -> None:
        # Signals are blocked until the worker has its own handlers and this process knows its pid.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        pid = os.fork()
        if pid:
            self._born[pid] = time.monotonic()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            return
        code = 1
        try:
            self._settle()
            self._work(lambda: self._report(_Report(os.getpid())))
            code = 0
        except BaseException as bad:  # a worker does not end without saying why
            kind = next((name for name, known in _KINDS.items() if isinstance(bad, known)), "")
            if not kind:
                traceback.print_exc()
            words = str(bad) if kind else f"{type(bad).__name__}: {bad}"
            self._report(_Report(os.getpid(), kind or "Exception", words[:_MOST_WORDS]))
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            os._exit(code)

    def _settle(self) -> None:
        """Detach the worker from its parent, except for the two pipes between them."""
        signal.set_wakeup_fd(-1)
        for number in (*_SIGNALS, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        self._woken.close()
        os.close(self._life.into)  # only the parent holds this end: it closes with the parent
        os.set_blocking(self._life.out, True)
        threading.Thread(target=self._mourn, name="interlock-parent", daemon=True).start()

    def _mourn(self) -> None:
        """Wait until the parent is gone, for whatever reason; then end this process too."""
        os.read(self._life.out, 1)
        log.error("the process that started this worker is gone; it ends too")
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(self._grace + _STUBBORN)
        os._exit(1)

    def _report(self, report: _Report) -> None:
        with contextlib.suppress(OSError):
            os.write(self._reports.into, msgspec.json.encode(report) + b"\n")


def _ending(status: int) -> str:
    return (
        f"signal {os.WTERMSIG(status)}"
        if os.WIFSIGNALED(status)
        else f"exit code {os.WEXITSTATUS(status)}"
    )
