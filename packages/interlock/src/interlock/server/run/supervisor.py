"""A supervisor of forked worker processes that share one socket (Unix): it restarts dead ones,
replaces hung ones, and replaces all of them without a gap (rolling restart).
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import select
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from ...logs import limited
from ...store.errors import StoreError
from .heartbeats import HeartbeatSender, HeartbeatTable
from .liveness import LivenessMonitor, WorkerLimits

log = limited("interlock.server")

# seconds before a worker is replaced, if its predecessors died soon after their start too
_PAUSE = 0.5
_LONGEST_PAUSE = 10.0
_STEADY = 30.0  # after this many seconds a death no longer counts as soon after the start
# seconds beyond the grace of its calls after which a stopped worker is killed
_STUBBORN = 10.0
_CHECKED_SECONDS = 0.5  # between two liveness checks
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_KINDS: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (StoreError, OSError, ImportError, ValueError)
}
_MOST_WORDS = 1000  # characters: a report is written to the pipe in one piece

Work = Callable[[HeartbeatSender], None]


class _Report(Struct, array_like=True):
    """The report of a worker's start: success, or the kind and the message of the error."""

    pid: int
    kind: str = ""
    words: str = ""


class _Worker(Struct):
    """What the supervisor knows of a worker.

    Attributes:
        row: Its row in the table of heartbeats.
        born: When it was started, in seconds of the monotonic clock.
        killed_at: When it is killed, if it was told to end; otherwise None.
    """

    row: int
    born: float
    killed_at: float | None = None

    @property
    def is_leaving(self) -> bool:
        """Whether it was told to end."""
        return self.killed_at is not None


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
    """Runs `work` in `count` processes. `work` gets an object to call once it serves.

    SIGHUP replaces all workers, one at a time; the new one serves before the old one is told to
    end. Workers are forks of this process, so the new ones have the code that is loaded here.

    Args:
        count: The number of workers.
        work: Runs in each worker.
        grace: The time that running calls have at the end, in seconds.
        limits: When a worker is replaced.
        on_ready: Called once the first worker serves.
        on_stop: Called when the workers are told to end, to close what they share with this
            process.
    """

    def __init__(
        self,
        count: int,
        work: Work,
        *,
        grace: float,
        limits: WorkerLimits | None = None,
        on_ready: Callable[[], None] | None = None,
        on_stop: Callable[[], None] | None = None,
    ) -> None:
        self._count = count
        self._work = work
        self._grace = grace
        self._limits = limits or WorkerLimits()
        self._on_ready = on_ready
        self._on_stop = on_stop
        self._workers: dict[int, _Worker] = {}
        self._monitor = LivenessMonitor(self._limits)
        self._next_check = 0.0
        self._outdated: deque[int] = deque()  # workers that get a successor, the next one first
        self._replaced = 0  # the worker whose successor is starting; 0 for none, or if it has died
        self._successor = 0
        self._due: list[float] = []  # when to start the next workers
        self._failed: list[_Report] = []  # reports of failed starts, before any worker served
        self._serves = False
        self._soon = 0  # the number of workers in a row that died soon after their start
        self._stopping_since: float | None = None
        self._must_restart = False
        self._has_terminal = os.isatty(0)
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
        # One more than workers: a successor serves before its predecessor has ended.
        self._heartbeats = HeartbeatTable(self._count + 1)
        self._free_rows = list(range(self._count + 1))
        before = {number: signal.signal(number, self._stop) for number in _SIGNALS}
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._hang_up)
        before[signal.SIGCHLD] = signal.signal(
            signal.SIGCHLD, lambda number, frame: None
        )  # a handler of any kind, so that the signal wakes `select`
        old_wakeup = signal.set_wakeup_fd(self._woken.into, warn_on_full_buffer=False)
        try:
            self._due = [0.0] * self._count
            while self._workers or (self._due and self._stopping_since is None):
                self._turn()
        finally:
            signal.set_wakeup_fd(old_wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
            for pipe in (self._woken, self._reports, self._life):
                pipe.close()
            self._heartbeats.close()
        if not self._serves and len(self._failed) >= self._count:
            raise self._why()

    def _turn(self) -> None:
        """Start due workers, wait for an event, and handle it."""
        now = time.monotonic()
        if self._stopping_since is None:
            for due in [due for due in self._due if due <= now]:
                self._due.remove(due)
                self._fork()
            wait = self._supervise(now)
        else:
            wait = self._end(now - self._stopping_since)
        select.select(
            [self._woken.out, self._reports.out], [], [], None if wait is None else max(wait, 0.0)
        )
        self._woken.drain()
        self._read_reports()
        for pid in list(self._workers):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._reap(pid, status)

    # -- liveness and replacement ------------------------------------------------------------------

    def _supervise(self, now: float) -> float | None:
        """Check the workers, and replace the next one if one is to be replaced.

        Returns:
            The time until something is due, in seconds; None if only an event can change anything.
        """
        if self._must_restart:
            self._must_restart = False
            log.info("all workers are replaced, one at a time")
            self._outdated = deque(
                pid for pid, worker in self._workers.items() if not worker.is_leaving
            )
        if self._serves and now >= self._next_check:
            self._next_check = now + _CHECKED_SECONDS
            self._check_liveness(now)
        self._replace_next()
        waits = [due - now for due in self._due]
        if self._serves:
            waits.append(self._next_check - now)
        return min(waits) if waits else None

    def _check_liveness(self, now: float) -> None:
        serving = {}
        for pid, worker in self._workers.items():
            if worker.killed_at is not None:
                if now >= worker.killed_at:
                    log.error("worker %d does not end, and is killed", pid)
                    self._kill(pid, worker)
            elif (beats := self._heartbeats.read(worker.row)) is not None:
                serving[pid] = beats
        for pid, replacement in self._monitor.check(now, serving).items():
            if replacement.at_once:
                if not _is_traced(pid):
                    log.error("worker %d %s, and is killed", pid, replacement.reason)
                    self._kill(pid, self._workers[pid])
            elif pid != self._replaced and pid not in self._outdated:
                log.info("worker %d %s, and is replaced", pid, replacement.reason)
                self._outdated.append(pid)

    def _kill(self, pid: int, worker: _Worker) -> None:
        """Kill a worker, once: it is not checked again."""
        if worker.killed_at is not None:
            worker.killed_at = float("inf")
        self._heartbeats.reset(worker.row, 0.0)
        os.kill(pid, signal.SIGKILL)  # not waited for yet, so the pid cannot have been reused

    def _replace_next(self) -> None:
        """Start the successor of the next outdated worker, once the last replacement is over."""
        if self._successor or any(worker.is_leaving for worker in self._workers.values()):
            return
        while self._outdated:
            pid = self._outdated.popleft()
            if pid in self._workers:
                self._replaced = pid
                self._successor = self._fork()
                return

    def _retire(self, pid: int) -> None:
        """Tell a worker that has a successor to end in good order."""
        worker = self._workers[pid]
        worker.killed_at = time.monotonic() + self._grace + _STUBBORN
        self._heartbeats.mark_replaced(worker.row)
        os.kill(pid, signal.SIGTERM)

    def _succeed(self) -> None:
        """The successor serves: its predecessor may end."""
        self._successor = 0
        replaced = self._replaced
        self._replaced = 0
        if replaced:
            self._retire(replaced)

    # -- reports and deaths ------------------------------------------------------------------------

    def _read_reports(self) -> None:
        for line in self._reports.drain().splitlines():
            report = msgspec.json.decode(line, type=_Report)
            if report.kind:
                self._failed.append(report)
                if self._serves:
                    log.error("worker %d could not start: %s", report.pid, report.words)
                continue
            if report.pid == self._successor and self._stopping_since is None:
                self._succeed()
            if not self._serves:
                self._serves = True
                if self._on_ready is not None:
                    self._on_ready()

    def _reap(self, pid: int, status: int) -> None:
        now = time.monotonic()
        worker = self._workers.pop(pid)
        self._free_rows.append(worker.row)
        lived = now - worker.born
        if (
            pid == self._replaced
        ):  # before the report of its successor, which would send it a signal
            self._replaced = 0
            if self._stopping_since is None:
                log.error("worker %d ended (%s) while its successor started", pid, _ending(status))
        self._read_reports()  # the last reports of the worker
        if self._stopping_since is not None:
            return
        if pid == self._successor:
            self._successor = 0
            self._outdated.clear()
            log.error("worker %d could not replace another one; no more are replaced", pid)
            if self._replaced:
                self._replaced = 0
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
                self._stopping_since = now  # no worker can start
                return
        staying = sum(not each.is_leaving for each in self._workers.values())
        if staying + len(self._due) >= self._count:
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
        self._stopping_since = self._stopping_since or time.monotonic()

    def _hang_up(self, number: int, frame: Any) -> None:
        """Restart the workers; or stop, if the terminal of this process is gone."""
        if self._has_terminal and not os.isatty(0):
            self._stop(number, frame)
        else:
            self._must_restart = True

    def _end(self, since: float) -> float | None:
        """Ask the workers to end, once, and kill those that do not.

        Returns the remaining time in seconds, or None after the kill.
        """
        left = self._grace + _STUBBORN - since
        if len(self._signals) == 2 or (self._signals and left <= 0):
            number = self._signals.pop()
            if number == signal.SIGTERM and self._on_stop is not None:
                self._on_stop()
            if number == signal.SIGKILL:
                log.error("%d of the workers do not end, and are killed", len(self._workers))
            for pid, worker in self._workers.items():
                if number == signal.SIGTERM and worker.is_leaving:
                    continue  # told already: a second signal would cut its calls short
                # not waited for yet, so the system cannot have reused the pid
                os.kill(pid, number)
        return left if self._signals else None

    # -- a worker ----------------------------------------------------------------------------------

    def _fork(self) -> int:
        """Start a worker, and return its process id."""
        row = self._free_rows.pop()
        excess = random.uniform(0.0, self._limits.jitter)
        self._heartbeats.reset(row, excess)
        # Signals are blocked until the worker has its own handlers and this process knows its pid.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        pid = os.fork()
        if pid:
            self._workers[pid] = _Worker(row, time.monotonic())
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            return pid
        code = 1
        try:
            self._settle()
            serving = _Report(os.getpid())
            self._work(
                HeartbeatSender(self._heartbeats, row, on_started=lambda: self._report(serving))
            )
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
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the parent says who is replaced
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        self._woken.close()
        os.close(self._life.into)  # only the parent holds this end: it closes with the parent
        os.set_blocking(self._life.out, True)
        threading.Thread(
            target=self._exit_with_parent, name="interlock-parent", daemon=True
        ).start()

    def _exit_with_parent(self) -> None:
        """Wait until the parent is gone, for whatever reason; then end this process too."""
        os.read(self._life.out, 1)
        log.error("the process that started this worker is gone; it ends too")
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(self._grace + _STUBBORN)
        os._exit(1)

    def _report(self, report: _Report) -> None:
        with contextlib.suppress(OSError):
            os.write(self._reports.into, msgspec.json.encode(report) + b"\n")


def _is_traced(pid: int) -> bool:
    """Whether a debugger holds the process; False where the system does not tell."""
    try:
        with open(f"/proc/{pid}/status") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name == "TracerPid":
                    return value.strip() != "0"
    except OSError:
        pass
    return False


def _ending(status: int) -> str:
    return (
        f"signal {os.WTERMSIG(status)}"
        if os.WIFSIGNALED(status)
        else f"exit code {os.WEXITSTATUS(status)}"
    )
