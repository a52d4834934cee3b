"""The tasks extension: its messages, for servers and clients, under both revisions that have
tasks.
"""

from __future__ import annotations

from typing import Final

from ..extension import CoreCapability, Extension, Method
from ..types.base import EmptyResult
from ..types.tasks import (
    TASKS_EXTENSION,
    CancelTaskRequestParams,
    CoreCreateTaskResult,
    CreateTaskResult,
    GetTaskPayloadRequestParams,
    GetTaskRequestParams,
    ListTasksRequestParams,
    ListTasksResult,
    Task,
    TaskStatusNotificationParams,
    UpdateTaskRequestParams,
)
from ..types.tools import CallToolResult
from ..wire.revisions import ABILITIES, REVISIONS, STATELESS_REVISIONS, has

CORE_REVISIONS: Final = tuple(r for r in REVISIONS if has(r, ABILITIES["core_tasks"]))
"""The revisions that have tasks in their core protocol."""

TASKS: Final = Extension(
    TASKS_EXTENSION,
    methods={
        # A client of 2025-11-25 declares only the tasks that it runs itself, so the server checks
        # by revision who may call these.
        "tasks/get": Method(GetTaskRequestParams, Task, mirrored="taskId", open_to_all=True),
        "tasks/update": Method(
            UpdateTaskRequestParams, mirrored="taskId", revisions=STATELESS_REVISIONS
        ),
        "tasks/cancel": Method(
            CancelTaskRequestParams, EmptyResult, mirrored="taskId", open_to_all=True
        ),
        "tasks/result": Method(
            GetTaskPayloadRequestParams,
            CallToolResult,
            open_to_all=True,
            revisions=CORE_REVISIONS,
        ),
        "tasks/list": Method(
            ListTasksRequestParams, ListTasksResult, open_to_all=True, revisions=CORE_REVISIONS
        ),
    },
    notifications={
        "notifications/tasks": TaskStatusNotificationParams,
        "notifications/tasks/status": TaskStatusNotificationParams,
    },
    # A result of 2025-11-25 has no resultType; it is no CallToolResult and has a member `task`.
    results={"tools/call": {"": CoreCreateTaskResult, "task": CreateTaskResult}},
    listens={"taskIds": list[str]},
    revisions=STATELESS_REVISIONS,
    core={revision: CoreCapability("tasks") for revision in CORE_REVISIONS},
)
"""The messages of tasks, without handlers."""
