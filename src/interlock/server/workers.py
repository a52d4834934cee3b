"""Threads for plain functions, so that one that blocks cannot hold up the others.

A burst of quick calls runs in one thread, one after the other, with one wake-up of the loop for all their answers; only
calls that really take long bring more threads to work.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context as Variables
from contextvars import copy_context
from typing import Any

DEFAULT_THREADS = 64
_PATIENCE = 0.002  # seconds that work may lie waiting before another thread is brought in


class _Job:
    __slots__ = ("error", "future", "result", "variables", "work")

    def __init__(self, work: Callable[[], Any], future: asyncio.Future[Any], variables: Variables) -> None:
        self.work, self.future, self.variables = work, future, variables
        self.result: Any = None
        self.error: BaseException | None = None


class Workers:
    """A pool of at most `threads` threads that belongs to one event loop; threads are started when they are needed."""

    def __init__(self, threads: int = DEFAULT_THREADS) -> None:
        self.threads = threads
        self._loop = asyncio.get_running_loop()
        self._jobs: deque[_Job] = deque()
        self._done: deque[_Job] = deque()
        self._idle: list[threading.Semaphore] = []
        self._lock = threading.Lock()
        self._started = 0
        self._collecting = False
        self._closing = False
        self._nudge: asyncio.TimerHandle | None = None

    def submit(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        """Have `work` done in a thread, with the caller's context variables; cancelling the future drops its answer."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._jobs.append(_Job(work, future, copy_context()))
        if self._nudge is None:
            self._wake(1)
            self._nudge = self._loop.call_later(_PATIENCE, self._bring_more, 1)
        return future

    def close(self) -> None:
        """Let the threads end once they have done what they are at."""
        with self._lock:
            self._closing = True
            idle, self._idle = self._idle, []
        if self._nudge is not None:
            self._nudge.cancel()
        for bell in idle:
            bell.release()

    def _bring_more(self, count: int) -> None:
        """Work is still lying there: the threads at work must be blocked, so bring twice as many as the last time."""
        self._nudge = None
        if self._jobs and not self._closing:
            self._wake(count)
            self._nudge = self._loop.call_later(_PATIENCE, self._bring_more, min(count * 2, self.threads))

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
                threading.Thread(target=self._work, name=f"interlock-worker-{self._started}", daemon=True).start()

    def _work(self) -> None:
        bell = threading.Semaphore(0)
        jobs = self._jobs
        while True:
            try:
                job = jobs.popleft()
            except IndexError:
                with self._lock:
                    if self._closing:
                        self._started -= 1
                        return
                    if jobs:
                        continue
                    self._idle.append(bell)
                bell.acquire()
                continue
            if job.future.cancelled():
                continue
            try:
                job.result = job.variables.run(job.work)
            except BaseException as bad:  # everything that a function raises belongs to whoever waits for it
                job.error = bad
            self._done.append(job)
            if not self._collecting:
                self._collecting = True
                try:
                    self._loop.call_soon_threadsafe(self._collect)
                except RuntimeError:
                    return  # the loop has gone, and with it whoever waited
            del job

    def _collect(self) -> None:
        self._collecting = False
        done = self._done
        while done:
            job = done.popleft()
            if job.future.done():
                continue
            if job.error is None:
                job.future.set_result(job.result)
            elif isinstance(job.error, StopIteration):
                job.future.set_exception(RuntimeError("a tool raised StopIteration"))
            else:
                job.future.set_exception(job.error)
