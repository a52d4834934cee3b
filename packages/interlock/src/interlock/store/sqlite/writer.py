"""The writer thread of a SQLite file: queued work runs in order, many pieces in one transaction."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from ...logs import limited
from .. import bounds
from ..circuit_breaker import CircuitBreaker
from ..errors import StoreError
from .file import SqliteFile, begin, is_locked, is_temporary

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_BATCH = 1000  # pieces in one transaction at most, so that other processes can write
_RETRY_PAUSE = 0.1  # seconds between two attempts to write what was refused

log = limited("interlock.store")


class _QueuedWork:
    """A piece of work, and the future of its result."""

    __slots__ = ("bad", "posts", "size", "value", "waiter", "work")

    def __init__(
        self, work: Work[Any], waiter: asyncio.Future[Any] | None, size: int, posts: bool
    ) -> None:
        self.work = work
        self.waiter = waiter
        self.size = size
        self.posts = posts
        self.value: Any = None
        self.bad: Exception | None = None


class Writer:
    """Runs queued work on one SQLite file in a separate thread, from `open` to `aclose`.

    Work that nobody waits for is repeated, in order, while the file is locked or the disk full.

    While another process keeps the lock of the file, a circuit breaker refuses work at once: each
    caller would wait for the file's patience, one after another, only to be refused. Other errors
    need no breaker, because they come without a wait.
    """

    def __init__(self, file: SqliteFile) -> None:
        self.file = file
        self._breaker = CircuitBreaker(failures=1)
        self._locked: Exception | None = None  # the error of the last transaction, if it waited
        self._waiting: deque[_QueuedWork] = deque()
        self._refused: deque[_QueuedWork] = deque()  # to be repeated, before all other sent work
        self._retry_at = 0.0  # on the monotonic clock
        self._size = 0  # the size of both queues in bytes
        self._stirred = threading.Condition()
        self._open = False
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._on_posted: Callable[[], None] = lambda: None
        self._on_ended: Callable[[], None] = lambda: None

    async def open(
        self,
        *,
        on_posted: Callable[[], None] = lambda: None,
        on_ended: Callable[[], None] = lambda: None,
    ) -> None:
        """Connect. `on_posted` is called in this event loop once a note of this process can be
        read. `on_ended` is called in the thread after each transaction, before anyone gets its
        results.
        """
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._on_posted = on_posted
        self._on_ended = on_ended
        # a new lock: another thread may have held the old one when this process was forked
        self._stirred = threading.Condition()
        self._waiting.clear()
        self._refused.clear()
        self._size = 0
        self._breaker = CircuitBreaker(failures=1)
        self._locked = None
        ready: asyncio.Future[None] = self._loop.create_future()
        self._open = True
        # A daemon thread: a program that forgets to close its store must still be able to exit.
        self._thread = threading.Thread(
            target=self._run, args=(self._loop, ready), name="interlock-store", daemon=True
        )
        self._thread.start()
        try:
            await ready
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Run all queued work, and end the thread."""
        with self._stirred:
            self._open = False
            self._stirred.notify()
        thread = self._thread
        self._thread = None
        if thread is not None:
            await asyncio.to_thread(thread.join)

    def send(
        self, work: Work[Any], *, size: int = 0, posts: bool = False, always: bool = False
    ) -> bool:
        """Queue work, from any thread. It is dropped if the queue is full or the store closed.

        Args:
            work: The work.
            size: Its size in bytes.
            posts: Whether it publishes a note.
            always: Whether it is queued even if the queue is full.

        Returns:
            False if it was dropped because the queue is full.
        """
        with self._stirred:
            if not self._open:
                return True
            queued = len(self._waiting) + len(self._refused)
            has_room = queued < bounds.WAITING and self._size + size <= bounds.WAITING_BYTES
            if has_room or always:
                self._put(_QueuedWork(work, None, size, posts))
                return True
        log.warning("the %s cannot keep up and has dropped writes", self.file.schema.name)
        return False

    async def ask(self, work: Work[T], *, posts: bool = False) -> T:
        """Run work after everything queued before, unless that was refused; return its result.

        Raises StoreError if the work fails.
        """
        loop = asyncio.get_running_loop()
        if self._locked is not None and not self._breaker.allows(loop.time()):
            raise self.file.error(self._locked)
        waiter: asyncio.Future[T] = loop.create_future()
        with self._stirred:
            if not self._open:
                raise StoreError(f"the {self.file.schema.name} is not open")
            self._put(_QueuedWork(work, waiter, 0, posts))
        return await waiter

    def _put(self, piece: _QueuedWork) -> None:
        self._waiting.append(piece)
        self._size += piece.size
        if len(self._waiting) > 1:
            return
        if threading.get_ident() == self._loop_thread and self._loop is not None:
            # All work of one turn of the loop is one transaction. Awake, the thread would also take
            # the interpreter's lock from this turn again and again.
            self._loop.call_soon(self._wake)
        else:
            self._stirred.notify()

    def _wake(self) -> None:
        with self._stirred:
            self._stirred.notify()

    # -- in the thread -----------------------------------------------------------------------------

    def _run(self, loop: asyncio.AbstractEventLoop, ready: asyncio.Future[None]) -> None:
        try:
            db = self.file.connect()
        except Exception as bad:
            _in(loop, _settle, ready, None, bad)
            return
        _in(loop, _settle, ready, None, None)
        while batch := self._next():
            self._carry_out(db, batch)
            self._on_ended()
            last = batch[-1].bad
            self._repeat_later([piece for piece in batch if piece.bad and piece.waiter is None])
            if not _in(loop, self._deliver_results, batch, last):
                break
        db.close()

    def _next(self) -> list[_QueuedWork]:
        """Return the next batch; empty if the store is closed and the queue is empty."""
        batch: list[_QueuedWork] = []
        with self._stirred:
            while not batch:
                pause = self._retry_at - time.monotonic() if self._refused else None
                if self._refused and (not self._open or (pause is not None and pause <= 0)):
                    self._waiting.extendleft(reversed(self._refused))
                    self._refused.clear()
                elif not self._waiting:
                    if not self._open:
                        break
                    self._stirred.wait(pause)
                while self._waiting and len(batch) < _BATCH:
                    piece = self._waiting.popleft()
                    if piece.waiter is None and self._refused:
                        self._refused.append(piece)
                    else:
                        batch.append(piece)
            self._size -= sum(piece.size for piece in batch)
        return batch

    def _repeat_later(self, failed: list[_QueuedWork]) -> None:
        """Queue failed work again that nobody waits for, unless it can never succeed."""
        with self._stirred:
            is_new = not self._refused
            for piece in failed:
                assert piece.bad is not None
                is_repeated = self._open and is_temporary(piece.bad)
                if is_new or not is_repeated:
                    log.warning("%s", self.file.error(piece.bad, "written"))
                if is_repeated:
                    is_new = False
                    self._size += piece.size
                    piece.bad = None
                    self._refused.append(piece)
            self._retry_at = time.monotonic() + _RETRY_PAUSE

    def _carry_out(self, db: sqlite3.Connection, batch: list[_QueuedWork]) -> None:
        """Run a batch in one transaction. If that fails, run each piece in its own transaction, so
        that only the bad pieces fail. After a temporary failure of sent work, no other sent work is
        tried, so that it keeps its order.
        """
        try:
            begin(db, self.file.patience)
        except sqlite3.Error as bad:
            for piece in batch:
                piece.bad = bad
            return
        try:
            for piece in batch:
                piece.value = piece.work(db)
            db.execute("COMMIT")
        except Exception as bad:
            if db.in_transaction:
                db.execute("ROLLBACK")
            if len(batch) == 1:
                batch[0].bad = bad
                return
            refused: Exception | None = None
            for piece in batch:
                if piece.waiter is None and refused is not None:
                    piece.bad = refused
                    continue
                self._carry_out(db, [piece])
                if piece.waiter is None and piece.bad is not None and is_temporary(piece.bad):
                    refused = piece.bad

    # -- in the loop -------------------------------------------------------------------------------

    def _deliver_results(self, batch: list[_QueuedWork], last: Exception | None) -> None:
        """Deliver the results of a batch; `last` is the error of its last piece."""
        self._judge(last)
        posted = False
        for piece in batch:
            posted = posted or piece.posts
            if piece.waiter is not None:
                _settle(
                    piece.waiter,
                    piece.value,
                    None if piece.bad is None else self.file.error(piece.bad),
                )
        if posted:
            self._on_posted()

    def _judge(self, bad: Exception | None) -> None:
        """Open or close the circuit breaker after a batch."""
        if bad is not None and is_locked(bad):
            self._breaker.failed(asyncio.get_running_loop().time())
            self._locked = bad
        elif self._locked is not None:
            self._breaker.succeeded()
            self._locked = None


def _settle(waiter: asyncio.Future[Any], value: Any, bad: Exception | None) -> None:
    if waiter.done():
        return
    if bad is None:
        waiter.set_result(value)
    else:
        waiter.set_exception(bad)


def _in(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *args: Any) -> bool:
    """Call a function in the event loop. Returns False if the loop is closed."""
    try:
        loop.call_soon_threadsafe(call, *args)
    except RuntimeError:
        return False
    return True
