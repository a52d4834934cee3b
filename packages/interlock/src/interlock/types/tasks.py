"""Tasks: results of requests that come later (extension `io.modelcontextprotocol/tasks` with
2026-07-28, core protocol of 2025-11-25).

The types have the form of 2026-07-28. Those that a peer reads also accept the form of 2025-11-25.
`in_core_form` returns a task in that form.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeVar

from msgspec import UNSET, Raw, UnsetType, field
from msgspec.structs import force_setattr, replace

from .base import JSONObject, PaginatedParams, Params, Result, WireType
from .input import InputRequest

TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""The id of the extension."""

RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
"""The key of `_meta` that names the task of a message (2025-11-25). The value is
`{"taskId": ...}`.
"""

IMMEDIATE_RESPONSE: Final = "io.modelcontextprotocol/model-immediate-response"
"""The key of `_meta` with a text for the model while a task runs (2025-11-25)."""

R = TypeVar("R", bound=Result)

TaskStatus = Literal["working", "input_required", "completed", "failed", "cancelled"]

TERMINAL: Final[frozenset[str]] = frozenset({"completed", "failed", "cancelled"})
"""The statuses that a task never leaves."""


class TaskError(WireType, frozen=True, kw_only=True):
    """The JSON-RPC error that made a task fail."""

    code: int
    message: str
    data: Any = None


class Task(Result, frozen=True, kw_only=True):
    """A task, and the result of `tasks/get`.

    Times are in ISO 8601. The result, the error and the open questions are there only under
    2026-07-28, and only in the status that they belong to.

    Attributes:
        task_id: The id.
        status: The status.
        created_at: When the task was created.
        last_updated_at: When the task changed last.
        ttl_ms: The time for which the task is kept after its creation, in milliseconds; None for
            no limit.
        poll_interval_ms: The time between two polls that the server suggests, in milliseconds.
        status_message: A text about the status, for people and models.
        input_requests: All open questions, by key, if the status is input_required.
        result: The JSON object of the result, if the status is completed.
        error: The error, if the status is failed.
        core_ttl: `ttl_ms` as 2025-11-25 names it; always UNSET after decoding.
        core_poll_interval: `poll_interval_ms` as 2025-11-25 names it; always None after decoding.
    """

    task_id: str
    status: TaskStatus
    created_at: str
    last_updated_at: str
    ttl_ms: int | UnsetType | None = UNSET
    poll_interval_ms: int | None = None
    status_message: str | None = None
    input_requests: dict[str, InputRequest] | None = None
    result: Raw | UnsetType = UNSET
    error: TaskError | None = None
    core_ttl: int | UnsetType | None = field(default=UNSET, name="ttl")
    core_poll_interval: int | None = field(default=None, name="pollInterval")

    def __post_init__(self) -> None:
        if self.core_ttl is not UNSET:
            force_setattr(self, "ttl_ms", self.core_ttl)
            force_setattr(self, "core_ttl", UNSET)
        if self.core_poll_interval is not None:
            force_setattr(self, "poll_interval_ms", self.core_poll_interval)
            force_setattr(self, "core_poll_interval", None)

    @property
    def is_terminal(self) -> bool:
        """Whether the task has ended."""
        return self.status in TERMINAL


class CreateTaskResult(Task, frozen=True, kw_only=True):
    """The answer to a request that became a task (2026-07-28)."""


class CoreCreateTaskResult(Result, frozen=True, kw_only=True):
    """The answer to a request that became a task (2025-11-25)."""

    task: Task


class GetTaskRequestParams(Params, frozen=True, kw_only=True):
    """Params of `tasks/get`."""

    task_id: str


class UpdateTaskRequestParams(Params, frozen=True, kw_only=True):
    """Params of `tasks/update` (2026-07-28): answers to open questions, by key."""

    task_id: str
    input_responses: dict[str, Raw]


class CancelTaskRequestParams(Params, frozen=True, kw_only=True):
    """Params of `tasks/cancel`. The answer is empty under 2026-07-28, and a Task under
    2025-11-25.
    """

    task_id: str


class GetTaskPayloadRequestParams(Params, frozen=True, kw_only=True):
    """Params of `tasks/result` (2025-11-25), which is answered like the request of the task."""

    task_id: str


class GetTaskRequest(WireType, frozen=True, tag_field="method", tag="tasks/get"):
    """A request of a server about a task that its client runs: the state (2025-11-25)."""

    params: GetTaskRequestParams


class GetTaskPayloadRequest(WireType, frozen=True, tag_field="method", tag="tasks/result"):
    """A request of a server about a task that its client runs: the result (2025-11-25)."""

    params: GetTaskPayloadRequestParams


class CancelTaskRequest(WireType, frozen=True, tag_field="method", tag="tasks/cancel"):
    """A request of a server about a task that its client runs: its cancellation (2025-11-25)."""

    params: CancelTaskRequestParams


class ListTasksRequestParams(PaginatedParams, frozen=True, kw_only=True):
    """Params of `tasks/list` (2025-11-25)."""


class ListTasksResult(Result, frozen=True, kw_only=True):
    """One page of tasks (2025-11-25)."""

    tasks: list[Task]
    next_cursor: str | None = None


class TaskStatusNotificationParams(Params, frozen=True, kw_only=True):
    """Params of `notifications/tasks` (2026-07-28) and `notifications/tasks/status` (2025-11-25):
    the members of Task.
    """

    task_id: str
    status: TaskStatus
    created_at: str
    last_updated_at: str
    ttl_ms: int | UnsetType | None = UNSET
    poll_interval_ms: int | None = None
    status_message: str | None = None
    input_requests: dict[str, InputRequest] | None = None
    result: Raw | UnsetType = UNSET
    error: TaskError | None = None
    core_ttl: int | UnsetType | None = field(default=UNSET, name="ttl")
    core_poll_interval: int | None = field(default=None, name="pollInterval")

    @property
    def task(self) -> Task:
        """The task."""
        return Task(
            task_id=self.task_id,
            status=self.status,
            created_at=self.created_at,
            last_updated_at=self.last_updated_at,
            ttl_ms=self.ttl_ms,
            poll_interval_ms=self.poll_interval_ms,
            status_message=self.status_message,
            input_requests=self.input_requests,
            result=self.result,
            error=self.error,
            core_ttl=self.core_ttl,
            core_poll_interval=self.core_poll_interval,
        )


def in_core_form(task: Task) -> JSONObject:
    """Return a task in the form of 2025-11-25, as JSON data."""
    form: JSONObject = {
        "taskId": task.task_id,
        "status": task.status,
        "createdAt": task.created_at,
        "lastUpdatedAt": task.last_updated_at,
        "ttl": None if task.ttl_ms is UNSET else task.ttl_ms,
    }
    if task.poll_interval_ms is not None:
        form["pollInterval"] = task.poll_interval_ms
    if task.status_message is not None:
        form["statusMessage"] = task.status_message
    return form


def related_to(result: R, task_id: str) -> R:
    """Return a result with the id of the task that it belongs to, in its `_meta` (2025-11-25)."""
    return replace(result, meta={**(result.meta or {}), RELATED_TASK: {"taskId": task_id}})
