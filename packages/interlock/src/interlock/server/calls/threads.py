"""A thread pool for plain functions, so that a blocking function does not block the others.

A burst of quick calls runs in one thread, one after the other, and wakes the event loop once for
all results. Only slow calls start more threads. The callers of a network get threads in turn.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context as Variables
from contextvars import copy_context
from time import monotonic
from typing import Any

from ...exchange import Exchange
from ...quotas import holder_of_exchange

DEFAULT_THREADS = 64
_PATIENCE = 0.002  # seconds that work may wait before another thread starts
# seconds that the results of a burst are held back, so that one wake-up is enough for all
_HOLD_BACK = 0.0005


class _Job:
    __slots__ = ("error", "future", "result", "variables", "work")

    def __init__(
        self, work: Callable[[], Any], future: asyncio.Future[Any], variables: Variables
    ) -> None:
        self.work = work
        self.future = future
        self.variables = variables
        self.result: Any = None
        self.error: BaseException | None = None


class Workers:
    """A pool of at most `threads` threads for one event loop. Threads start when they are
    needed.
    """

    def __init__(self, threads: int = DEFAULT_THREADS) -> None:
        self.threads = threads
        self._loop = asyncio.get_running_loop()
        self._jobs: deque[_Job] = deque()
        self._lines: dict[str, deque[_Job]] = {}  # behind these, by holder, in their turns
        self._done: deque[_Job] = deque()
        # The lock of each sleeping thread, which is released to wake it: cheaper than a semaphore.
        self._idle: list[threading.Lock] = []
        self._lock = threading.Lock()
        self._started = 0
        self._collecting = False
        self._closing = False
        self._nudge: asyncio.TimerHandle | None = None

    def submit(self, work: Callable[[], Any], x: Exchange | None = None) -> asyncio.Future[Any]:
        """Run `work` in a thread, with the caller's context variables. Cancelling the future drops
        the result. `x` is the exchange that the work counts for.
        """
        future: asyncio.Future[Any] = self._loop.create_future()
        job = _Job(work, future, copy_context())
        # Nobody waits, or the caller is the only one that there can be.
        if (
            x is None
            or not (self._jobs or self._lines)
            or not (x.caller.anonymous or x.caller.principal is not None)
        ):
            self._jobs.append(job)
        else:
            with self._lock:
                self._lines.setdefault(holder_of_exchange(x), deque()).append(job)
        if len(self._idle) == self._started:  # no running thread would find the work
            self._wake(1)
        if self._nudge is None:
            self._nudge = self._loop.call_later(_PATIENCE, self._bring_more, 1)
        return future

    def close(self) -> None:
        """Let the threads finish all submitted work and end."""
        with self._lock:
            self._closing = True
            idle = self._idle
            self._idle = []
        if self._nudge is not None:
            self._nudge.cancel()
            self._nudge = None
        for bell in idle:
            bell.release()

    def _bring_more(self, count: int) -> None:
        """Start more threads if work still waits. The running threads must be blocked then, so
        start twice as many as the last time.
        """
        self._nudge = None
        self._collect()  # results that finished while their thread is blocked by the next job
        if self._jobs or self._lines:
            self._wake(count)
            self._nudge = self._loop.call_later(
                _PATIENCE, self._bring_more, min(count * 2, self.threads)
            )

    def _wake(self, count: int) -> None:
        for _ in range(count):
            with self._lock:
                bell = self._idle.pop() if self._idle else None
                if bell is None:
                    if self._started >= self.threads:
                        return
                    self._started += 1
            if bell is not None:
                bell.release()
            else:
                threading.Thread(
                    target=self._work, name=f"interlock-worker-{self._started}", daemon=True
                ).start()

    def _work(self) -> None:
        bell = threading.Lock()
        bell.acquire()
        jobs = self._jobs
        since = 0.0  # when the first result was finished that the event loop does not know of
        while True:
            try:
                job = jobs.popleft() if jobs else self._next_in_turn()
            except IndexError:
                if self._done and not self._notify_loop():
                    return
                if not self._rest(bell):
                    return
                continue
            if job.future.cancelled():
                continue
            try:
                job.result = job.variables.run(job.work)
            except BaseException as bad:  # every exception of a function belongs to its caller
                job.error = bad
            now = monotonic()
            since = since if self._done else now
            self._done.append(job)
            del job
            if now - since > _HOLD_BACK and not self._notify_loop():
                return

    def _next_in_turn(self) -> _Job:
        """Return the next job of the holder in turn. Raises IndexError if there is none."""
        if not self._lines:
            raise IndexError
        with self._lock:
            holder = next(iter(self._lines), None)
            if holder is None:
                raise IndexError
            line = self._lines.pop(holder)
            job = line.popleft()
            if line:
                self._lines[holder] = line
            return job

    def _rest(self, bell: threading.Lock) -> bool:
        """Sleep until there is work; False if the pool is closed."""
        with self._lock:
            if self._jobs or self._lines:
                return True
            if self._closing:
                self._started -= 1
                return False
            self._idle.append(bell)
        bell.acquire()
        return True

    def _notify_loop(self) -> bool:
        """Let the event loop collect all results at once; False if the loop is closed, and with it
        every waiting task.
        """
        if not self._collecting:
            self._collecting = True
            try:
                self._loop.call_soon_threadsafe(self._collect)
            except RuntimeError:
                return False
        return True

    def _collect(self) -> None:
        self._collecting = False
        done = self._done
        while done:
            job = done.popleft()
            if job.future.done():
                continue
            if job.error is None:
                job.future.set_result(job.result)
            elif isinstance(job.error, StopIteration | GeneratorExit):
                # A future cannot hold StopIteration, and GeneratorExit would close the waiting
                # coroutine.
                stopped = RuntimeError(f"a tool raised {type(job.error).__name__}")
                stopped.__cause__ = job.error
                job.future.set_exception(stopped)
            else:
                job.future.set_exception(job.error)
