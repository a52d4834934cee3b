"""Task-augmented input requests: questions that the client runs as tasks, so that no request stays
open while the person or the model takes time (2025-11-25, "Tasks").
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from . import types as t
from .exchange import Caller
from .types.tasks import (
    TASKS_EXTENSION,
    CancelTaskRequest,
    CancelTaskRequestParams,
    CoreCreateTaskResult,
    GetTaskPayloadRequest,
    GetTaskPayloadRequestParams,
    GetTaskRequest,
    GetTaskRequestParams,
    Task,
)

_POLL_SECONDS = 1.0  # between two polls, where the client suggests no time
_SHORTEST_POLL_SECONDS = 0.1
_LONGEST_POLL_SECONDS = 60.0
_CANCEL_SECONDS = 1.0  # that a client has to confirm a cancellation


def runs_task(caller: Caller, request: t.InputRequest) -> bool:
    """Whether a client has declared that it runs such a question as a task (`TK4-02`)."""
    settings = (caller.capabilities.extensions or {}).get(TASKS_EXTENSION)
    if settings is None or not caller.supports("core_tasks"):
        return False
    declared: Any = settings.get("requests")
    for name in str(type(request).__struct_config__.tag).split("/"):
        declared = declared.get(name) if isinstance(declared, dict) else None
    return declared is not None


async def ask_as_task(
    request: t.InputRequest, send: Callable[[Any, type[Any]], Awaitable[Any]]
) -> t.InputResponse:
    """Ask a question that has task metadata: create the task, poll it, and collect its result
    (`TK4-07`, `TK4-12`, `TK4-13`).

    Args:
        request: The question.
        send: Sends a request to the client, and returns its result, which has the given type.

    Raises:
        McpError: The client refuses the task, or the question has failed.
    """
    task: Task = (await send(request, CoreCreateTaskResult)).task
    id = task.task_id
    try:
        while task.status == "working":
            await asyncio.sleep(_pause(task))
            task = await send(GetTaskRequest(GetTaskRequestParams(task_id=id)), Task)
        if task.status == "cancelled" and isinstance(request, t.ElicitRequest):
            return t.ElicitResult(action="cancel")
        params = GetTaskPayloadRequestParams(task_id=id)
        response: t.InputResponse = await send(
            GetTaskPayloadRequest(params), t.RESPONSE_TYPES[type(request)]
        )
    except asyncio.CancelledError:
        # Nobody waits for the answer any more, so the client need not keep the question.
        with contextlib.suppress(t.InterlockError, TimeoutError):
            async with asyncio.timeout(_CANCEL_SECONDS):
                await send(CancelTaskRequest(CancelTaskRequestParams(task_id=id)), Task)
        raise
    return response


def _pause(task: Task) -> float:
    """Return the seconds until the next poll."""
    if task.poll_interval_ms is None:
        return _POLL_SECONDS
    seconds = task.poll_interval_ms / 1000
    return min(max(seconds, _SHORTEST_POLL_SECONDS), _LONGEST_POLL_SECONDS)
