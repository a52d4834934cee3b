"""The state machine of tasks, without I/O and without a clock: a record, and the steps from one
record to the next.

A step that a status does not allow returns the record unchanged, so that a task never leaves a
terminal status (`TK4-10`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from ..exchange import Caller, Principal
from ..types.base import Implementation, ProgressToken
from ..types.lifecycle import ClientCapabilities
from ..types.tasks import TERMINAL, TaskError, TaskStatus


class StoredCaller(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The sender of the call, as far as the task needs it when it runs again."""

    revision: str
    capabilities: ClientCapabilities = ClientCapabilities()
    info: Implementation | None = None
    principal: Principal | None = None
    anonymous: bool = False

    @classmethod
    def of(cls, caller: Caller) -> StoredCaller:
        """Return the lasting part of a caller."""
        return cls(
            revision=caller.revision,
            capabilities=caller.capabilities,
            info=caller.info,
            principal=caller.principal,
            anonymous=caller.anonymous,
        )

    def caller(self) -> Caller:
        """Return the caller of a task that runs again."""
        return Caller(
            self.revision,
            self.capabilities,
            self.info,
            principal=self.principal,
            anonymous=self.anonymous,
        )


class TaskRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task as it lies in the store.

    Attributes:
        id: The id, 128 random bits.
        owner: The digest of the principal that the task belongs to.
        holder: Whom the task counts for: the principal or, where there is none, the address.
        tool: The tool.
        arguments: The JSON object of the arguments.
        meta: The author's part of the `_meta` of the call.
        progress_token: The token of the call for notifications of progress, which 2025-11-25 sends.
        caller: The sender of the call.
        created: When the task was created, in seconds of the wall clock.
        updated: When the task changed last, in seconds of the wall clock.
        ttl: The time to live after the creation in seconds; None for no limit.
        status: The status.
        message: A text about the status.
        questions: The open questions by key, each as JSON.
        journal: The answers to earlier questions by key, as JSON data.
        result: The result as JSON, once the task is completed.
        is_error: Whether the result is that of a failed tool.
        error: The JSON-RPC error, once the task has failed.
        worker: The worker that runs the task; empty if no worker does.
        attempt: A random name of the run, which is the fencing token of its writes.
        runs: The number of runs so far.
        uses_once: Whether a run has used `ctx.once`.
        is_queued: Whether the task waits for its first run.
        large_result_bytes: The size of the result that `result` links to, in bytes; 0 if it has the
            whole result.
        trace: The span of the call that started the task, as a W3C `traceparent`; empty without a
            tracing system.
        has_large_structured_content: Whether that result has structured content.
    """

    id: str
    owner: str
    holder: str = ""
    tool: str
    arguments: Raw = Raw(b"{}")
    meta: Raw = Raw(b"{}")
    progress_token: ProgressToken | None = None
    caller: StoredCaller
    created: float
    updated: float
    ttl: float | None = None
    status: TaskStatus = "working"
    message: str | None = None
    questions: dict[str, Raw] = {}
    journal: dict[str, Any] = {}
    result: Raw | UnsetType = UNSET
    is_error: bool = False
    error: TaskError | None = None
    worker: str = ""
    attempt: str = ""
    runs: int = 1
    uses_once: bool = False
    is_queued: bool = False
    large_result_bytes: int = 0
    trace: str = ""
    has_large_structured_content: bool = False

    @property
    def is_terminal(self) -> bool:
        """Whether the task has ended."""
        return self.status in TERMINAL

    @property
    def until(self) -> float | None:
        """When the task expires, in seconds of the wall clock; None for never."""
        return None if self.ttl is None else self.created + self.ttl


def report(task: TaskRecord, message: str, now: float) -> TaskRecord:
    """Set the text about the status of a running task."""
    if task.is_terminal or task.message == message:
        return task
    return replace(task, message=message, updated=now)


def ask(task: TaskRecord, questions: Mapping[str, Raw], now: float) -> TaskRecord:
    """Set the open questions. A question whose run no longer waits for it is withdrawn.

    A key that has an answer is never asked again (`TKX-18`).
    """
    still_open = {key: raw for key, raw in questions.items() if key not in task.journal}
    if task.is_terminal or still_open == task.questions:
        return task
    status: TaskStatus = "input_required" if still_open else "working"
    return replace(task, status=status, questions=still_open, updated=now)


def answer(task: TaskRecord, answers: Mapping[str, Any], now: float) -> TaskRecord:
    """Move answered questions to the journal. Answers to any other key are ignored (`TKX-17`)."""
    given = {key: value for key, value in answers.items() if key in task.questions}
    if task.is_terminal or not given:
        return task
    still_open = {key: raw for key, raw in task.questions.items() if key not in given}
    return replace(
        task,
        status="input_required" if still_open else "working",
        questions=still_open,
        journal={**task.journal, **given},
        updated=now,
    )


def complete(
    task: TaskRecord,
    result: Raw,
    now: float,
    *,
    is_error: bool = False,
    large_result_bytes: int = 0,
    has_large_structured_content: bool = False,
) -> TaskRecord:
    """End a task with a result, which may be that of a failed tool (`TKX-13`)."""
    if task.is_terminal:
        return task
    return _ended(
        task,
        status="completed",
        result=result,
        is_error=is_error,
        large_result_bytes=large_result_bytes,
        has_large_structured_content=has_large_structured_content,
        updated=now,
    )


def fail(task: TaskRecord, error: TaskError, now: float) -> TaskRecord:
    """End a task with a JSON-RPC error, which is also its status message (`TKX-14`)."""
    if task.is_terminal:
        return task
    return _ended(task, status="failed", error=error, message=error.message, updated=now)


def cancel(task: TaskRecord, now: float) -> TaskRecord:
    """End a task at the request of its client."""
    if task.is_terminal:
        return task
    message = "The task was cancelled by request."
    return _ended(task, status="cancelled", message=message, updated=now)


def start_again(task: TaskRecord, worker: str, attempt: str, alive: Collection[str]) -> TaskRecord:
    """Assign a task to another worker, unless its own worker is alive."""
    if task.is_terminal or task.worker in alive:
        return task
    return replace(task, worker=worker, attempt=attempt, runs=task.runs + 1, is_queued=False)


def enqueue(task: TaskRecord) -> TaskRecord:
    """Leave the first run of a new task to other workers."""
    return replace(task, runs=0, is_queued=True)


def give_up(task: TaskRecord) -> TaskRecord:
    """Leave a running task to other workers. The run that gives it up does not count."""
    if task.is_terminal:
        return task
    return replace(task, worker="", attempt="", runs=task.runs - 1)


def note_once(task: TaskRecord) -> TaskRecord:
    """Record that a run uses `ctx.once`."""
    return task if task.is_terminal or task.uses_once else replace(task, uses_once=True)


def _ended(task: TaskRecord, **changes: Any) -> TaskRecord:
    """Return a record in a terminal status, without the parts that only a run needs."""
    return replace(task, questions={}, journal={}, worker="", **changes)
