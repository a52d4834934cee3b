"""The messages of tasks: both wire forms are read as one type, and each revision has its own
methods.
"""

from __future__ import annotations

import pytest
from msgspec import UNSET

from interlock.extension import messages_of
from interlock.tasks import TASKS
from interlock.types.tasks import (
    CoreCreateTaskResult,
    CreateTaskResult,
    Task,
    TaskStatusNotificationParams,
    in_core_form,
)
from interlock.wire.codec import decode, encode
from interlock.wire.jsonrpc import Malformed

TIMES = '"createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:40:00Z"'
NEW = f'{{"taskId":"t1","status":"working",{TIMES},"ttlMs":60000,"pollIntervalMs":5000}}'.encode()
CORE = f'{{"taskId":"t1","status":"working",{TIMES},"ttl":60000,"pollInterval":5000}}'.encode()


def test_both_forms_are_read_as_one_task() -> None:
    """`TK4-07`, `TKX-07`: the nested and the flat form carry the same members."""
    assert decode(CORE, Task) == decode(NEW, Task)
    nested = decode(b'{"task":%b}' % CORE, CoreCreateTaskResult)
    assert nested.task == decode(NEW, Task)
    assert decode(NEW, CreateTaskResult).ttl_ms == 60000
    assert decode(CORE, TaskStatusNotificationParams).task == decode(NEW, Task)


def test_each_form_is_written_with_its_own_names() -> None:
    """`TKX-07`: `ttlMs` and `pollIntervalMs`; 2025-11-25 has `ttl` and `pollInterval`."""
    task = decode(CORE, Task)
    assert decode(encode(task), dict) == decode(NEW, dict)
    assert in_core_form(task) == decode(CORE, dict)


def test_a_task_without_a_limit_says_null() -> None:
    """`TK4-08`: null means unlimited, and is not the same as absent."""
    task = decode(CORE.replace(b"60000", b"null"), Task)
    assert task.ttl_ms is None
    assert b'"ttlMs":null' in encode(task)
    assert in_core_form(task)["ttl"] is None
    assert decode(NEW.replace(b'"ttlMs":60000,', b""), Task).ttl_ms is UNSET


def test_a_status_that_does_not_exist_is_malformed() -> None:
    """There are five statuses."""
    with pytest.raises(Malformed):
        decode(NEW.replace(b"working", b"paused"), Task)


@pytest.mark.parametrize(
    "method, revisions",
    {
        "tasks/get": {"2025-11-25", "2026-07-28"},
        "tasks/cancel": {"2025-11-25", "2026-07-28"},
        "tasks/update": {"2026-07-28"},
        "tasks/result": {"2025-11-25"},
        "tasks/list": {"2025-11-25"},
    }.items(),
)
def test_each_revision_has_its_own_methods(method: str, revisions: set[str]) -> None:
    """`TKX-21`: 2026-07-28 has neither `tasks/result` nor `tasks/list`."""
    messages = messages_of([TASKS])
    every = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
    assert {r for r in every if messages.asks(r, method)} == revisions
