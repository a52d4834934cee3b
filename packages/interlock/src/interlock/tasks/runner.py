"""The task runner: runs tasks in the process that serves, and takes over the tasks of workers that
have died.

Every task is one record in the store. Each write is a compare-and-swap, and each run has a random
name (the fencing token), so that a worker that has lost its task cannot write any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from functools import lru_cache, partial
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from .. import types as t
from ..caches import BoundedCache
from ..exchange import AnyResult, Exchange, Handler, RawResult
from ..idempotency import Actions, in_doubt
from ..input_required import HandlerRun, OnceSteps, ask_by_hand, result_without_answer
from ..logs import limited
from ..observe.spans import Tracing, current_tracing
from ..quotas import RATE_LIMITED, Quota
from ..store.errors import AccountFull, StoreError
from ..store.interface import RateStore, RecordStore, Store
from ..store.process_names import name_of_process
from ..store.worker_messages import WorkerMessages
from ..types.input import InputRequest, InputResponse
from ..types.tasks import TaskError
from ..wire.codec import encode
from . import machine
from .large_results import LargeResults, link_to
from .machine import TaskRecord
from .queue import TaskQueue
from .quotas import TaskMemory

log = limited("interlock.tasks")

_HEARTBEAT = 0.75  # seconds between heartbeats; a worker counts as dead after four of them
_PATIENCE = 1.0  # seconds between two attempts to write the end of a task
_PAGE = 500
_LOADS = 20  # records that a search loads at once; a record has the result of its task
_EXPIRY_SECONDS = 1.0  # between two searches for runs whose time is over
_LONG_PAGE = 10_000  # keys for a search that a store answers from all its keys
_MOST_FULL = 10_000
_MOST_RUNS = 5  # runs of one task; a task that keeps killing its workers fails
_TEN_YEARS = 10 * 365 * 86_400.0  # the lifetime of the record of a task without a limit, in seconds
_CHANGED = "task-changed"
_FREE = "tasks-free"
_DIED = "task-worker-died"
_WORKERS = "task-workers"  # the key of the list of workers

_RUN = "run of a task"  # the name of each asyncio task that runs one: a shared string

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(TaskRecord).decode
_names = msgspec.json.Decoder(list[str]).decode

Step = Callable[[TaskRecord], TaskRecord]


class TaskLimits(Struct, frozen=True, kw_only=True):
    """Limits of tasks.

    Attributes:
        ttl: The time for which a task is kept after its creation, in seconds; None for no limit.
        longest_ttl: The longest time that a client may request, in seconds.
        poll: The time between two polls that clients are told to keep, in seconds.
        tasks: The maximum number of tasks of one principal, or of one address without
            authorization, over all workers. Ended tasks make room.
        waiting_polls: The maximum number of polls that wait in one process because they came before
            `poll` seconds have passed, and of those that one holder sends within five seconds to
            all workers; the others are refused.
        result_bytes: The maximum size of a result, in bytes of JSON. A larger one is replaced
            by a link to a resource, which the owner of the task can read.
        large_results_bytes: The maximum size of all larger results of one principal, or of one
            address without authorization, over all workers, in bytes. A task that exceeds it fails,
            and so does one with a result of more than 32 MiB. 0 for no such results.
    """

    ttl: float | None = 86_400.0
    longest_ttl: float = 604_800.0
    poll: float = 1.0
    tasks: int = 1000
    waiting_polls: int = 1000
    result_bytes: int = 16 * 1024 * 1024
    large_results_bytes: int = 256 * 1024 * 1024

    def __post_init__(self) -> None:
        for name in ("longest_ttl", "poll", "tasks", "waiting_polls", "result_bytes"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be more than 0")
        if self.large_results_bytes < 0:
            raise ValueError("large_results_bytes must be 0 or more")
        if self.ttl is not None and self.ttl <= 0:
            raise ValueError("ttl must be more than 0 seconds")


def task_key(owner: str, id: str) -> str:
    """Return the key of a task's record. A task of another owner has another key, so an id that
    belongs to somebody else is unknown.
    """
    return f"task:{owner}:{id}"


@lru_cache(_MOST_FULL)
def _account_of(holder: str) -> str:
    """Return the account that counts the tasks of a holder in the store."""
    import hashlib  # late: only for servers that run tasks

    return f"task:{hashlib.blake2s(holder.encode(), digest_size=16).hexdigest()}"


class TaskSteps(OnceSteps):
    """The `once` steps of a task. The first one is noted in the record before it starts."""

    __slots__ = ("live",)

    def __init__(self, actions: Actions, id: str, account: str, seconds: float) -> None:
        super().__init__(actions, id, account, seconds)
        self.live: LiveTask | None = None

    async def run(self, name: str, do: Callable[[], Awaitable[Any]], *, idempotent: bool) -> Any:
        """Run a step, or return its recorded result. Raises McpError if the step is in doubt."""
        if self.live is not None:
            await self.live.write(machine.note_once)
        return await super().run(name, do, idempotent=idempotent)


class LiveTask:
    """A task that this worker runs: its record, and the asker of its exchange.

    Tens of thousands of tasks may sleep in a process. So the record is kept as the bytes that a
    store in memory keeps anyway, and whatever most tasks never use is created at its first use.

    Attributes:
        key: The key of the record.
        version: The version of the record that this worker knows.
        status: The status in that record.
        until: When the task expires, in seconds of the wall clock; None for never.
        task: The asyncio task of the run.
        progress: The newest progress.
        is_stopped: Whether this module has cancelled the run.
    """

    __slots__ = (
        "_data",
        "_is_reporting",
        "_is_syncing",
        "_message",
        "_questions",
        "_runner",
        "_writing",
        "is_stopped",
        "key",
        "progress",
        "status",
        "task",
        "until",
        "version",
    )

    def __init__(
        self,
        runner: TaskRunner,
        key: str,
        record: TaskRecord,
        data: bytes,
        version: int,
        questions: HandlerRun | None = None,
    ) -> None:
        self._runner = runner
        self._data = data
        self._questions = questions
        self.key = key
        self.version = version
        self.status = record.status
        self.until = record.until
        self.task: asyncio.Future[Any] | None = None
        self.progress: t.ProgressNotificationParams | None = None
        self.is_stopped = False
        self._writing: asyncio.Lock | None = None
        self._message: str | None = None
        self._is_reporting = False
        self._is_syncing = False
        if questions is not None:
            self._attach(questions)

    @property
    def record(self) -> TaskRecord:
        """The record, which is decoded each time."""
        return _decode(self._data)

    @property
    def questions(self) -> HandlerRun:
        """The questions, answers and `once` steps of the run."""
        if self._questions is None:
            task = self.record
            steps = self._runner.steps(task.id, task.owner)
            self._questions = HandlerRun(task.journal, task.caller.capabilities, steps)
            self._attach(self._questions)
        return self._questions

    def _attach(self, questions: HandlerRun) -> None:
        questions.on_question = self._sync_soon
        if isinstance(questions.steps, TaskSteps):
            questions.steps.live = self

    # -- the asker of the exchange -----------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether the run is being unwound."""
        return self.is_stopped

    @property
    def has_answers(self) -> bool:
        """Whether the run has used an answer or a `once` step."""
        return self._questions is not None and self._questions.has_answers

    async def ask(self, request: InputRequest, key: str | None = None) -> InputResponse:
        """Ask a question of the task, and wait for its answer."""
        if self.is_stopped:
            raise asyncio.CancelledError
        return await self.questions.ask(request, key)

    async def once(
        self, name: str, do: Callable[[], Awaitable[Any]], *, idempotent: bool = False
    ) -> Any:
        """Run a side effect at most once."""
        return await self.questions.once(name, do, idempotent=idempotent)

    # -- the record --------------------------------------------------------------------------------

    @property
    def _lock(self) -> asyncio.Lock:
        if self._writing is None:
            self._writing = asyncio.Lock()
        return self._writing

    async def write(self, step: Step) -> bool:
        """Change the record. Returns False, and stops the run, if another worker has the task.

        Raises:
            StoreError: The store failed.
        """
        async with self._lock:
            while True:
                record = self.record
                changed = step(record)
                if changed is record:
                    return True
                data = encoded(changed)
                version = await self._runner.swap(self.key, changed, self.version, data)
                if version:
                    if changed.is_terminal and not record.is_terminal:
                        self._runner.ended[changed.status] += 1
                    self._set(changed, data, version)
                    self._runner.announce(self.key)
                    return True
                if not await self._reload():
                    return False

    async def refresh(self) -> None:
        """Read the record, because another task or worker has changed it."""
        async with self._lock:
            await self._reload()

    def adopt(self, record: TaskRecord, version: int) -> None:
        """Continue from a record that was written on behalf of a client."""
        if version <= self.version:
            return
        if record.attempt != self.record.attempt or record.is_terminal:
            if record.is_terminal:  # the client has cancelled it
                self._runner.ended[record.status] += 1
            self.stop()
            return
        self._set(record, encoded(record), version)
        if record.journal:
            self.questions.answer(record.journal)

    def _set(self, record: TaskRecord, data: bytes, version: int) -> None:
        self._data = data
        self.version = version
        self.status = record.status

    async def _reload(self) -> bool:
        found = await self._runner.load_key(self.key)
        if found is None or self.is_stopped:
            self.stop()
            return False
        self.adopt(*found)
        return not self.is_stopped

    async def is_withdrawn(self) -> bool:
        """Whether the client has cancelled the task, or the task has expired."""
        try:
            found = await self._runner.load_key(self.key)
        except StoreError:
            return False
        return found is None or found[0].status == "cancelled"

    def stop(self) -> None:
        """Cancel the run. Nothing that it does afterwards is recorded."""
        if not self.is_stopped:
            self.is_stopped = True
            self._runner.forget(self)
            if self.task is None:
                return
            if self._questions is None:
                self.task.cancel()
            else:
                self._questions.unwind(self.task)

    # -- progress and questions --------------------------------------------------------------------

    def notify(self, method: str, params: Any) -> None:
        """Make progress the status message. Other notifications are not for tasks (`TKX-24`)."""
        if method != "notifications/progress":
            return
        self.progress = params
        self._runner.wake(self.key)
        total = "" if params.total is None else f" of {params.total:g}"
        self._message = params.message or f"{params.progress:g}{total}"
        if not self._is_reporting:
            self._is_reporting = True
            self._runner.keep(self._report())

    async def _report(self) -> None:
        """Write the newest message; messages that come meanwhile are written together."""
        try:
            while self._message is not None and not self.is_stopped:
                step = partial(machine.report, message=self._message, now=self._runner.wall_clock())
                self._message = None
                await self.write(step)
        except StoreError:
            pass  # the next report replaces this one
        finally:
            self._is_reporting = False

    def _sync_soon(self) -> None:
        """Write the open questions in the next turn of the loop, so that questions asked together
        are written together.
        """
        if not self._is_syncing:
            self._is_syncing = True
            self._runner.keep(self._sync())

    async def _sync(self) -> None:
        await asyncio.sleep(0)
        self._is_syncing = False

        def step(task: TaskRecord) -> TaskRecord:
            waiting = self.questions.waiting
            questions = {key: Raw(_encode(request)) for key, (request, _) in waiting.items()}
            return machine.ask(task, questions, self._runner.wall_clock())

        with contextlib.suppress(asyncio.CancelledError):
            await self._runner.until_stored(self, step)

    # -- the run -----------------------------------------------------------------------------------

    async def finish(self, x: Exchange, run: Handler) -> None:
        """Run the task up to its end, and write the end into the record.

        This is the outermost of the coroutines that a sleeping task keeps. It handles questions
        that cannot be asked, and handwritten ones, itself: each further coroutine between it and
        the tool costs 0.3 KB for every sleeping task.
        """
        try:
            try:
                result = await run(x)
            except t.Unanswerable as bad:
                result = result_without_answer(bad, x)
            if isinstance(result, t.InputRequiredResult):
                result = await ask_by_hand(x, run, result)
            step = await self._completed(result)
        except asyncio.CancelledError:
            if self.is_stopped:
                return
            step = self._failed(TaskError(code=t.INTERNAL_ERROR, message="The tool was cancelled."))
        except BaseException as bad:
            if self.is_stopped:
                return
            step = self._failed(_error(bad))
        await self._runner.until_stored(self, step)
        self._runner.forget(self)

    def _failed(self, error: TaskError) -> Step:
        return partial(machine.fail, error=error, now=self._runner.wall_clock())

    async def _completed(self, result: AnyResult) -> Step:
        if isinstance(result, RawResult):
            result = result.decode()
        if not isinstance(result, t.CallToolResult):
            raise TypeError(
                f"a task ended with {type(result).__name__} in place of a tool's result"
            )
        result = replace(result, result_type="complete")
        body = encode(result)
        size = len(body)
        is_large = size > self._runner.limits.result_bytes
        is_structured = result.structured_content is not UNSET
        if is_large:
            if not await self._runner.store_large_result(self, body):
                words = f"The result has {size} bytes, which is too large to be kept."
                return self._failed(TaskError(code=t.INTERNAL_ERROR, message=words))
            result = link_to(self.record, result, size)
            body = encode(result)
        return partial(
            machine.complete,
            result=Raw(body),
            now=self._runner.wall_clock(),
            is_error=result.is_error,
            large_result_bytes=size if is_large else 0,
            has_large_structured_content=is_large and is_structured,
        )


def _error(bad: BaseException) -> TaskError:
    """Return the error that the client gets for an exception."""
    if not isinstance(bad, t.McpError):
        log.error("a task failed", exc_info=bad)
        return TaskError(code=t.INTERNAL_ERROR, message="Internal error")
    error = TaskError(code=bad.code, message=bad.message, data=bad.data)
    try:
        _encode(error)
    except TypeError:
        return TaskError(code=bad.code, message=bad.message)
    return error


class TaskRunner:
    """The tasks of one worker, on records that it shares with the other workers.

    Args:
        store: The store. It is opened and closed with the runner.
        records: The records of tasks in that store.
        url: The URL of the store, if it is known.
        limits: The limits.
        memory: The memory budget of the server, in bytes.
        run_again: Runs a task that this worker has taken over.
        may_run_again: Whether a task of a dead worker may run again.
        queue: The queue whose workers run new tasks; None if this worker runs them.
        wall_clock: The wall clock.
        tracing: Returns the tracing system of the server.
    """

    def __init__(
        self,
        store: Store,
        records: RecordStore,
        limits: TaskLimits,
        memory: Quota,
        *,
        url: str | None = None,
        run_again: Callable[[Exchange], Awaitable[AnyResult]],
        may_run_again: Callable[[TaskRecord], bool],
        queue: TaskQueue | None = None,
        wall_clock: Callable[[], float] = time.time,
        tracing: Callable[[], Tracing | None] = lambda: None,
    ) -> None:
        self.store = store
        self._tracing = tracing
        self.queue = queue
        self.is_draining = False  # this worker takes no more tasks
        self.records = records
        self.limits = limits
        self._url = url
        self.wall_clock = wall_clock
        self._large = LargeResults(records, limits.large_results_bytes)
        self.messages = WorkerMessages(
            store, heartbeat=_HEARTBEAT, worker=name_of_process(), wall_clock=wall_clock
        )
        self.actions = Actions(records, self.messages, wall_clock=wall_clock)
        self._run_again = run_again
        self._may_run_again = may_run_again
        self._live: dict[str, LiveTask] = {}
        self.ended: Counter[str] = Counter()  # the tasks that ended on this worker, by status
        self._watchers: dict[str, set[asyncio.Event]] = {}
        self._background: set[asyncio.Task[Any]] = set()
        self._next_expiry = math.inf  # on the wall clock
        self._expiring: asyncio.TimerHandle | None = None  # one timer for all runs
        self.held = TaskMemory(
            memory, limits.tasks, None if store.shared else lambda key: self.keep(self._remove(key))
        )
        # When holders whose tasks all run were refused last, so that they cause no further search.
        self._full: BoundedCache[str, float] = BoundedCache(_MOST_FULL)
        self._beating: asyncio.Task[None] | None = None
        self._searching = asyncio.Lock()
        self._taking = 0  # the number of tasks that are being taken over
        self._none_taken = asyncio.Event()  # whether it is 0
        self._none_taken.set()
        self._stopping = asyncio.Lock()
        # Whether other workers share the store, as far as this one knows. Unknown at first.
        self._has_peers = store.shared
        self._has_searched = False  # once for the tasks of workers that nobody lists any more
        self.messages.on(_CHANGED, self._changed_elsewhere)
        self.messages.on(_FREE, self._search_soon)
        self.messages.on(_DIED, lambda _, __: self._read_again())

    @property
    def shared_rates(self) -> RateStore | None:
        """The token buckets of all workers; None while this worker is the only one."""
        return self.store.rates if self._has_peers else None

    # -- life --------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the store, and take over the tasks that no living worker runs."""
        await self.store.open()
        if self.queue is not None:
            try:
                await self.queue.open(self._url)
            except BaseException:
                await self.store.aclose()
                raise
        self.messages.open()
        await self.messages.beat_once()
        if not self.store.shared:
            await self._search(set())
            return
        # Listed before its first task: the others look for the tasks of listed workers only.
        await self._change_workers(lambda others: others | {self.messages.worker})
        self._beating = asyncio.get_running_loop().create_task(self._beat())
        if self.queue is None:
            await self._check_workers()

    async def drain(self) -> None:
        """Take no more tasks, and give up those that run, so that other workers continue them at
        once. Tasks of new calls are left to other workers.
        """
        self.is_draining = True
        async with self._stopping:
            await self._none_taken.wait()  # a task that is being taken over is given up too
            live = list(self._live.values())
            runs = [one.task for one in live if one.task is not None]
            for one in live:
                one.stop()
            await asyncio.gather(*runs, return_exceptions=True)
            await asyncio.gather(*(self._give_up(one) for one in live), return_exceptions=True)
            if live and self.queue is None:
                self.messages.publish(_FREE, "")

    async def stop(self) -> None:
        """Drain, and end the heartbeats of this worker."""
        if self._expiring is not None:
            self._expiring.cancel()
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait({self._beating})
        await self.drain()
        if self.store.shared:
            # It stays listed: another worker removes it, once all its tasks have been taken over.
            with contextlib.suppress(StoreError):
                await self.store.workers.heartbeat(
                    self.messages.worker, until=self.wall_clock() - 1
                )
        for task in list(self._background):
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        self.messages.close()
        self.held.close()
        if self.queue is not None:
            await self.queue.aclose()
        await self.store.aclose()

    async def _give_up(self, one: LiveTask) -> None:
        record = one.record

        def step(task: TaskRecord) -> TaskRecord:
            return machine.give_up(task) if task.attempt == record.attempt else task

        await self.change(record.owner, record.id, step)
        if self.queue is not None:
            await self.queue.put(one.key, os.urandom(8).hex())

    def keep(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine in the background."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        bad = None if task.cancelled() else task.exception()
        if bad is not None and not isinstance(bad, StoreError):
            log.error("the task runner failed", exc_info=bad)

    # -- records -----------------------------------------------------------------------------------

    async def load(self, owner: str, id: str) -> tuple[TaskRecord, int] | None:
        """Return a task and the version of its record; None if the owner has no such task.

        Raises:
            StoreError: The store failed.
        """
        return await self.load_key(task_key(owner, id))

    async def load_key(self, key: str) -> tuple[TaskRecord, int] | None:
        """Return the task of a key, if it exists, and the version of its record.

        Raises:
            StoreError: The store failed.
        """
        now = self.wall_clock()
        record = await self.records.load(key, now=now)
        if record is None:
            return None
        task = _decode(record.data)
        return (task, record.version) if _exists(task, now) else None

    async def swap(self, key: str, task: TaskRecord, was: int, data: bytes | None = None) -> int:
        """Write a task over a version of its record.

        Args:
            key: The key of the record.
            task: The task.
            was: The version that is replaced; 0 for a new task.
            data: The task as JSON, if the caller has encoded it.

        Returns:
            The new version; 0 for a conflict.
        """
        now = self.wall_clock()
        until = task.until or task.created + _TEN_YEARS
        if until < now:
            return 0
        if data is None:
            data = encoded(task)
        if not was:
            self.held.admit(key, task, len(data))
        version = 0
        try:
            version = await self.records.swap(
                key,
                data,
                was=was,
                until=until,
                now=now,
                account=_account_of(task.holder),
                most=self.limits.tasks,
            )
        finally:
            if not was and not version:
                self.held.drop(key)
        if was and version:
            self.held.resize(key, task, len(data) + task.large_result_bytes)
            if task.is_terminal:
                self._full.pop(task.holder)
        return version

    async def change(self, owner: str, id: str, step: Step) -> TaskRecord | None:
        """Change a task on behalf of its client; None if the owner has no such task."""
        while True:
            found = await self.load(owner, id)
            if found is None:
                return None
            task, version = found
            changed = step(task)
            if changed is task:
                return task
            key = task_key(owner, id)
            version = await self.swap(key, changed, version)
            if version:
                live = self._live.get(key)
                if live is not None:
                    live.adopt(changed, version)
                self.announce(key)
                return changed

    async def until_stored(self, live: LiveTask, step: Step) -> None:
        """Change the record of a run, as soon as the store is available."""
        while not live.is_stopped:
            try:
                await live.write(step)
                return
            except StoreError:
                log.warning("the store has failed; the state of a task is written when it is back")
                await asyncio.sleep(_PATIENCE)

    async def store_large_result(self, live: LiveTask, body: bytes) -> bool:
        """Store a result above the size limit, as soon as the store is available. Returns False if
        there is no room for it.
        """
        task = live.record
        while True:
            now = self.wall_clock()
            try:
                return await self._large.store(
                    task,
                    body,
                    account=f"{_account_of(task.holder)}:results",
                    until=task.until or now + _TEN_YEARS,
                    now=now,
                )
            except StoreError:
                log.warning("the store has failed; the result of a task is written when it is back")
                await asyncio.sleep(_PATIENCE)

    async def load_large_result(self, owner: str, id: str) -> str | None:
        """Return the result of a task that is above the size limit, as JSON; None if the owner has
        no such task.

        Raises:
            StoreError: The store failed.
        """
        found = await self.load(owner, id)
        return None if found is None else await self._large.load(found[0], self.wall_clock())

    async def with_structured_content(self, task: TaskRecord) -> TaskRecord | None:
        """See `LargeResults`."""
        return await self._large.with_structured_content(task, self.wall_clock())

    async def of_owner(self, owner: str, after: str, most: int) -> list[tuple[str, TaskRecord]]:
        """Return tasks of an owner with their keys, in the order of the keys."""
        now = self.wall_clock()
        prefix = task_key(owner, "")
        found = []
        for key in await self.records.keys(prefix, now=now, after=after, most=most):
            record = await self.records.load(key, now=now)
            if record is not None and _exists(task := _decode(record.data), now):
                found.append((key, task))
        return found

    async def _make_room(self, task: TaskRecord) -> None:
        """Remove the oldest tasks of a holder that have ended, one in twenty at once.

        Raises:
            McpError: All tasks of the holder are running.
        """
        now = asyncio.get_running_loop().time()
        refused = self._full.get(task.holder)
        if refused is None or now - refused > _PATIENCE:
            ended = sorted(await self._ended_of(task.owner, task.holder))
            for _, key in ended[: self.limits.tasks // 20 + 1]:
                await self._remove(key)
                self.held.evicted()
            if ended:
                return
            self._full.put(task.holder, now)
        self.held.refused()
        words = f"You have {self.limits.tasks} running tasks. Wait until one has ended."
        raise t.McpError(RATE_LIMITED, words, {"reason": "busy", "retryAfter": 1})

    async def _ended_of(self, owner: str, holder: str) -> list[tuple[float, str]]:
        """Return when the ended tasks of a holder have changed last, and their keys."""
        now = self.wall_clock()
        found = []
        after = ""
        while keys := await self.records.keys(
            task_key(owner, ""), now=now, after=after, most=_LONG_PAGE
        ):
            for key in keys:
                record = await self.records.load(key, now=now)
                task = None if record is None else _decode(record.data)
                if task is None or task.holder != holder:
                    continue
                if task.is_terminal or not _exists(task, now):
                    found.append((task.updated, key))
            after = keys[-1]
        return found

    async def _remove(self, key: str) -> None:
        """Remove the record of a task."""
        record = await self.records.load(key, now=0.0)
        if record is not None:
            await self._large.remove(_decode(record.data))
            await self.records.remove(key, was=record.version)
        self.held.drop(key)

    # -- changes -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def watching(self, key: str) -> Iterator[asyncio.Event]:
        """Yield an event that is set whenever a task changes."""
        event = asyncio.Event()
        watchers = self._watchers.setdefault(key, set())
        watchers.add(event)
        try:
            yield event
        finally:
            watchers.discard(event)
            if not watchers:
                self._watchers.pop(key, None)

    def announce(self, key: str) -> None:
        """Wake everyone who watches a task, on all workers."""
        self.wake(key)
        self.messages.publish(_CHANGED, key)

    def wake(self, key: str) -> None:
        """Wake everyone who watches a task on this worker."""
        for event in self._watchers.get(key, ()):
            event.set()

    def progress_of(self, key: str) -> t.ProgressNotificationParams | None:
        """Return the newest progress of a task that this worker runs."""
        live = self._live.get(key)
        return None if live is None else live.progress

    def _changed_elsewhere(self, key: str, _: str) -> None:
        self.wake(key)
        live = self._live.get(key)
        if live is not None:
            self.keep(live.refresh())

    # -- running -----------------------------------------------------------------------------------

    def steps(self, id: str, owner: str) -> TaskSteps:
        """Return the recorder of a task's `once` steps."""
        return TaskSteps(self.actions, id, owner, self.limits.ttl or _TEN_YEARS)

    @property
    def defers(self) -> bool:
        """Whether other workers run new tasks."""
        return self.queue is not None or (self.is_draining and self.store.shared)

    async def submit(self, record: TaskRecord) -> TaskRecord:
        """Store a new task, and leave its first run to other workers (`TKX-09`).

        Raises:
            McpError: The holder has too many running tasks, or no memory left.
            StoreError: The store or the queue failed.
        """
        record = machine.enqueue(record)
        key = task_key(record.owner, record.id)
        version = await self._swap_new(key, record, encoded(record))
        if not version:
            raise StoreError("a new task could not be stored")
        self.held.ended_run(key)
        if self.queue is None:
            self.messages.publish(_FREE, "")
            return record
        try:
            await self.queue.put(key, str(version))
        except BaseException:  # the client gets no handle, so nobody would read the result
            self.keep(self.records.remove(key, was=version))
            raise
        return record

    async def create(self, record: TaskRecord, questions: HandlerRun | None = None) -> LiveTask:
        """Store a new task that this worker runs (`TKX-09`).

        Args:
            record: The task.
            questions: The questions of a call that becomes a task; None for a new run.

        Raises:
            McpError: The holder has too many running tasks, or no memory left.
            StoreError: The store failed.
        """
        record = replace(record, worker=self.messages.worker, attempt=os.urandom(8).hex())
        key = task_key(record.owner, record.id)
        data = encoded(record)
        version = await self._swap_new(key, record, data)
        if not version:
            raise StoreError("a new task could not be stored")
        return self._adopt(LiveTask(self, key, record, data, version, questions))

    async def _swap_new(self, key: str, record: TaskRecord, data: bytes) -> int:
        while True:
            try:
                return await self.swap(key, record, 0, data)
            except AccountFull:
                await self._make_room(record)

    def _adopt(self, live: LiveTask) -> LiveTask:
        self._live[live.key] = live
        if live.until is not None:
            self._stop_expired_at(live.until)
        return live

    def _stop_expired_at(self, until: float) -> None:
        """Stop expired runs at a time of the wall clock, unless that happens earlier anyway."""
        if until < self._next_expiry:
            self._next_expiry = until
            if self._expiring is not None:
                self._expiring.cancel()
            left = max(0.0, until - self.wall_clock())
            loop = asyncio.get_running_loop()
            self._expiring = loop.call_later(left, self._stop_expired)

    def _stop_expired(self) -> None:
        now = self.wall_clock()
        self._expiring = None
        self._next_expiry = math.inf
        earliest = math.inf
        for live in list(self._live.values()):
            until = live.until
            if until is None:
                continue
            if until <= now:
                live.stop()
            else:
                earliest = min(earliest, until)
        if earliest < math.inf:
            self._stop_expired_at(max(earliest, now + _EXPIRY_SECONDS))

    def run(self, live: LiveTask, x: Exchange, handler: Handler) -> None:
        """Start the run of a task."""
        tracing = current_tracing.get() or self._tracing()
        if tracing is not None:
            handler = tracing.task(handler, live.record.trace)
        live.task = asyncio.get_running_loop().create_task(live.finish(x, handler), name=_RUN)
        live.task.add_done_callback(_retrieve)

    def follow(self, live: LiveTask, x: Exchange, running: asyncio.Future[AnyResult]) -> None:
        """Continue the run of a call, which began with the exchange `x`."""
        live.task = running
        self.keep(live.finish(x, lambda _: running))

    def forget(self, live: LiveTask) -> None:
        """Remove a run that has ended."""
        if self._live.get(live.key) is live:
            del self._live[live.key]
            self.held.ended_run(live.key)

    def __len__(self) -> int:
        return len(self._live)

    def statuses(self) -> Counter[str]:
        """Return the number of tasks that this worker runs, by status."""
        return Counter(live.status for live in self._live.values())

    # -- dead workers ------------------------------------------------------------------------------

    async def _beat(self) -> None:
        """Send heartbeats, and take over the tasks of workers that have died."""
        checking: asyncio.Task[None] | None = None
        while True:
            await asyncio.sleep(_HEARTBEAT)
            try:
                has_store = await self.messages.beat_once()
            except Exception as bad:
                log.error("a heartbeat failed", exc_info=bad)
                continue
            # In a task of its own: a search may take longer than heartbeats may be missing.
            is_checking = checking is not None and not checking.done()
            if has_store and not self.is_draining and not is_checking:
                checking = self.keep(self._check_workers())

    async def _check_workers(self) -> None:
        """Look for workers that have died, and search their tasks. The first time all tasks are
        searched.
        """
        own = self.messages.worker
        record = await self.records.load(_WORKERS, now=self.wall_clock())
        names = set() if record is None else set(_names(record.data))
        if own not in names:
            names = await self._change_workers(lambda others: others | {own})
            for live in list(self._live.values()):  # others took this worker for dead
                self.keep(live.refresh())
        dead = {name for name in names - {own} if not await self.messages.is_alive(name)}
        self._has_peers = len(names - dead) > 1
        if (dead or not self._has_searched) and not await self._search(names - dead):
            return
        self._has_searched = True
        if dead:
            # Before they leave the list: if this worker dies too, the next one says it again.
            self.messages.announce(_DIED, "")
            await self._change_workers(lambda others: others - dead)

    def _read_again(self) -> None:
        """Read every record that this worker runs or watches: a worker that has died may have
        changed it without announcing the change.
        """
        self.keep(self._refresh_all())
        for key in list(self._watchers):
            self.wake(key)

    async def _refresh_all(self) -> None:
        for live in list(self._live.values()):
            await live.refresh()

    async def _change_workers(self, step: Callable[[set[str]], set[str]]) -> set[str]:
        """Change the list of workers."""
        while True:
            now = self.wall_clock()
            record = await self.records.load(_WORKERS, now=now)
            names = set() if record is None else set(_names(record.data))
            changed = step(names)
            if changed == names:
                return names
            was = 0 if record is None else record.version
            data = _encode(sorted(changed))
            if await self.records.swap(
                _WORKERS, data, was=was, until=now + _TEN_YEARS, now=now, account="task-workers"
            ):
                return changed

    async def _search(self, alive: set[str]) -> bool:
        """Take over all tasks that no living worker runs, or queue them. Returns False if this
        worker drains meanwhile.
        """
        async with self._searching:
            listed = alive
            alive = {*alive, self.messages.worker}
            after = ""
            while True:
                keys = await self.records.keys(
                    "task:", now=self.wall_clock(), after=after, most=_PAGE
                )
                for start in range(0, len(keys), _LOADS):
                    if self.is_draining:
                        return False
                    await self._search_part(keys[start : start + _LOADS], alive)
                if len(keys) < _PAGE:
                    break
                after = keys[-1]
            await self._list(alive - listed)
            return True

    async def _list(self, workers: set[str]) -> None:
        """List workers that have tasks and seem alive. Another worker may have taken one of them
        for dead already, and nobody looks for the tasks of an unlisted worker.
        """
        if workers:
            await self._change_workers(lambda others: others | workers)

    def _search_soon(self, _: str, __: str) -> None:
        self.keep(self._search(set()))

    async def _search_part(self, keys: list[str], alive: set[str]) -> None:
        """Take over those of some tasks that no living worker runs, or queue them. They are loaded
        and taken over at once, because each is several round trips to the store.
        """
        now = self.wall_clock()
        loaded = await asyncio.gather(*(self.records.load(key, now=now) for key in keys))
        found: list[Awaitable[object]] = []
        for key, stored in zip(keys, loaded, strict=True):
            if stored is None or await self._is_taken(_decode(stored.data), alive):
                continue
            if self.queue is None:
                found.append(self._take_over(key, alive))
            else:
                found.append(self.queue.put(key, str(stored.version)))
        await asyncio.gather(*found)

    async def _is_taken(self, task: TaskRecord, alive: set[str]) -> bool:
        """Whether a task has ended, or a living worker runs it. Adds that worker to `alive`."""
        has_ended = task.is_terminal or not _exists(task, self.wall_clock())
        if has_ended or task.worker in alive:
            return True
        if task.worker and await self.messages.is_alive(task.worker):
            alive.add(task.worker)
            return True
        return False

    async def _take_over(self, key: str, alive: set[str]) -> LiveTask | None:
        """Take over a task, unless a living worker runs it."""
        self._taking += 1
        self._none_taken.clear()
        try:
            while not self.is_draining:
                stored = await self.records.load(key, now=self.wall_clock())
                if stored is None:
                    return None
                task = _decode(stored.data)
                if await self._is_taken(task, alive):
                    return None
                attempt = os.urandom(8).hex()
                changed = machine.start_again(task, self.messages.worker, attempt, alive)
                has_crashed = task.worker != "" and task.runs >= _MOST_RUNS
                if not task.is_queued and (has_crashed or not self._may_run_again(task)):
                    changed = machine.fail(changed, _doubt(), self.wall_clock())
                data = encoded(changed)
                version = await self.swap(key, changed, stored.version, data)
                if version:
                    return self._run_taken(key, changed, data, version, is_first=task.is_queued)
                # Another worker was faster, or a client has changed the task meanwhile.
        finally:
            self._taking -= 1
            if not self._taking:
                self._none_taken.set()
        return None

    def _run_taken(
        self, key: str, task: TaskRecord, data: bytes, version: int, *, is_first: bool
    ) -> LiveTask | None:
        """Run a task that this worker has taken over, if it may run."""
        if task.is_terminal:
            self.announce(key)
            return None
        self.held.take(key, task, len(data))
        live = self._adopt(LiveTask(self, key, task, data, version))
        self.run(live, _exchange_of(task, live, is_first=is_first), self._run_again)
        return live

    # -- a queue -----------------------------------------------------------------------------------

    async def consume(self) -> None:
        """Run the tasks of the queue until cancelled. Then drain."""
        assert self.queue is not None  # only workers of a queue consume
        consuming = asyncio.ensure_future(self.queue.consume(self._run_delivered))
        try:
            await asyncio.wait({consuming})
        finally:
            consuming.cancel()
            await asyncio.wait({consuming}, timeout=_PATIENCE)
            await self.drain()
        await consuming

    async def _run_delivered(self, key: str) -> None:
        """Run a task whose key the queue has delivered. Does nothing if the task has ended, or a
        living worker has it.
        """
        live = await self._take_delivered(key)
        if live is not None and live.task is not None:
            await asyncio.wait({live.task})
        elif self.is_draining and self.queue is not None:
            with contextlib.suppress(StoreError):  # or else a search finds it
                await self.queue.put(key, os.urandom(8).hex())

    async def _take_delivered(self, key: str) -> LiveTask | None:
        """Take over a delivered task, as soon as the store is available."""
        own = self.messages.worker
        while True:
            try:
                alive = {own}
                live = await self._take_over(key, alive)
                await self._list(alive - {own})
                seconds = self.messages.unsure_seconds()
                if alive == {own} or self.is_draining or not seconds:
                    return live
                await asyncio.sleep(seconds)  # the worker of the task may be dead all the same
            except StoreError:
                log.warning("the store has failed; a delivered task is run when it is back")
                await asyncio.sleep(_PATIENCE)


def encoded(task: TaskRecord) -> bytes:
    """Return the JSON of a task in bytes of its own: those of the encoder have room to spare, which
    would be kept with them.
    """
    return bytes(memoryview(_encode(task)))


def _exchange_of(task: TaskRecord, live: LiveTask, *, is_first: bool) -> Exchange:
    """Return the exchange of a task that was created by another run or worker."""
    return Exchange(
        "tools/call",
        t.CallToolRequestParams(name=task.tool, arguments=task.arguments, meta=task.meta),
        task.caller.caller(),
        notify=live.notify,
        asker=live,
        progress_token="task",
        replayed=not is_first,
    )


def _exists(task: TaskRecord, now: float) -> bool:
    """Whether a task has not expired. Its record is kept for longer."""
    return task.until is None or task.until >= now


def _doubt() -> TaskError:
    bad = in_doubt("The worker that ran the task has died.")
    return TaskError(code=bad.code, message=bad.message, data=bad.data)


def _retrieve(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()
