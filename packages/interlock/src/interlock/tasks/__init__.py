"""Tasks: calls whose results come later, and that survive the process that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazily

if TYPE_CHECKING:
    from .docket import Docket
    from .extension import Tasks
    from .forwarding import ForwardedTasks
    from .machine import TaskRecord
    from .messages import CORE_REVISIONS, TASKS
    from .queue import TaskQueue

_MODULES = {
    ".docket": ("Docket",),
    ".extension": ("Tasks",),
    ".forwarding": ("ForwardedTasks",),
    ".machine": ("TaskRecord",),
    ".messages": ("CORE_REVISIONS", "TASKS"),
    ".queue": ("TaskQueue",),
}

__all__ = [
    "CORE_REVISIONS",
    "TASKS",
    "Docket",
    "ForwardedTasks",
    "TaskQueue",
    "TaskRecord",
    "Tasks",
]

__getattr__, __dir__ = lazily(__name__, _MODULES)
