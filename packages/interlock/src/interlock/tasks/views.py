"""A task record as peers see it, in both wire forms."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from .. import types as t
from ..exchange import RawResult
from ..types.tasks import (
    RELATED_TASK,
    CreateTaskResult,
    Task,
    TaskStatus,
    TaskStatusNotificationParams,
    in_core_form,
)
from ..wire.codec import decode
from .machine import TaskRecord


class TaskProgress(t.ProgressNotificationParams, frozen=True, kw_only=True):
    """The progress of a task. It keeps the token of the call, which has been answered (2025-11-25,
    "Task Progress Notifications").
    """


_encode = msgspec.json.Encoder().encode
_questions = msgspec.json.Decoder(t.InputRequest).decode


def created(task: TaskRecord, poll_ms: int) -> CreateTaskResult:
    """Return the answer to a call that became a task (`TKX-07`)."""
    return CreateTaskResult(**_members(task, poll_ms))


def detailed(task: TaskRecord, poll_ms: int) -> Task:
    """Return the answer to `tasks/get`: with the open questions, the result or the error
    (`TKX-12`).
    """
    return Task(**_members(task, poll_ms), **_details(task))


def notice(task: TaskRecord, poll_ms: int) -> TaskStatusNotificationParams:
    """Return the params of `notifications/tasks`, with all that `tasks/get` answers (`TKX-23`)."""
    return TaskStatusNotificationParams(**_members(task, poll_ms), **_details(task))


def core_notice(task: TaskRecord, poll_ms: int) -> TaskStatusNotificationParams:
    """Return the params of `notifications/tasks/status` (2025-11-25)."""
    members = _core_members(task, poll_ms)
    members["core_ttl"] = members.pop("ttl_ms")
    members["core_poll_interval"] = members.pop("poll_interval_ms")
    return TaskStatusNotificationParams(**members)


def core_progress(task: TaskRecord, progress: t.ProgressNotificationParams) -> TaskProgress | None:
    """Return the params of `notifications/progress`, with the name of the task (`TK4-14`); None if
    the call has no token.
    """
    if task.progress_token is None:
        return None
    return TaskProgress(
        progress_token=task.progress_token,
        progress=progress.progress,
        total=progress.total,
        message=progress.message,
        meta=Raw(_encode({RELATED_TASK: {"taskId": task.id}})),
    )


def core_created(task: TaskRecord, poll_ms: int) -> RawResult:
    """Return the answer to a call that became a task under 2025-11-25 (`TK4-07`)."""
    return RawResult(_encode({"task": core_form(task, poll_ms)}))


def core_detailed(task: TaskRecord, poll_ms: int) -> RawResult:
    """Return the answer to `tasks/get` and `tasks/cancel` under 2025-11-25."""
    return RawResult(_encode(core_form(task, poll_ms)))


def core_list(tasks: list[TaskRecord], poll_ms: int, next_cursor: str | None) -> RawResult:
    """Return one page of `tasks/list`."""
    page: t.JSONObject = {"tasks": [core_form(task, poll_ms) for task in tasks]}
    if next_cursor is not None:
        page["nextCursor"] = next_cursor
    return RawResult(_encode(page))


def core_form(task: TaskRecord, poll_ms: int) -> t.JSONObject:
    """Return a task in the form of 2025-11-25, where a failed tool is a failed task (`TK4-21`)."""
    return in_core_form(Task(**_core_members(task, poll_ms)))


def _core_members(task: TaskRecord, poll_ms: int) -> dict[str, Any]:
    members = _members(task, poll_ms)
    if task.is_error:
        members["status"] = "failed"
        members["status_message"] = tool_result(task).text or "The tool failed."
    return members


def tool_result(task: TaskRecord) -> t.CallToolResult:
    """Return the result of a completed task."""
    assert task.result is not UNSET  # a completed task has one
    result: t.CallToolResult = decode(task.result, t.CallToolResult)
    return result


def _members(task: TaskRecord, poll_ms: int) -> dict[str, Any]:
    return {
        "task_id": task.id,
        "status": task.status,
        "status_message": task.message,
        "created_at": _time(task.created),
        "last_updated_at": _time(task.updated),
        "ttl_ms": None if task.ttl is None else int(task.ttl * 1000),
        "poll_interval_ms": poll_ms,
    }


def _details(task: TaskRecord) -> dict[str, Any]:
    status: TaskStatus = task.status
    return {
        "input_requests": {key: _questions(raw) for key, raw in task.questions.items()}
        if status == "input_required"
        else None,
        "result": task.result,
        "error": task.error,
    }


def _time(seconds: float) -> str:
    """Return a time in ISO 8601, in UTC with milliseconds."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
