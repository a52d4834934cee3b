"""Tasks that a client runs for a server: its answers to task-augmented questions (2025-11-25,
"Tasks").
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ... import types as t
from ...logs import limited
from ...types.tasks import Task, in_core_form, related_to
from ...wire.codec import encode
from ...wire.jsonrpc import encode_json
from ...wire.revisions import LAST_HANDSHAKE

log = limited("interlock.client")

MOST_TASKS = 100
"""The most tasks that one connection may hold, including those that have ended."""
MOST_TTL_MS = 60 * 60 * 1000
POLL_INTERVAL_MS = 500
PAGE = 50


class _Record(Struct):
    task: Task
    expires: datetime
    work: asyncio.Task[None] | None = None
    answer: t.InputResponse | None = None
    error: t.McpError | None = None


class QuestionTasks:
    """The tasks of one connection. Only the server of that connection can reach them (`TK4-23`).

    Ids have 128 random bits. A task is kept for at most an hour, and then it is cancelled.

    Args:
        capabilities: The capabilities of the client. It runs tasks for the questions that it can
            answer.
        clock: Returns the time.
    """

    def __init__(
        self,
        capabilities: t.ClientCapabilities,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._kinds = tuple(_kinds(capabilities))
        self._clock = clock
        self._records: dict[str, _Record] = {}

    def accepts(self, request: t.InputRequest) -> bool:
        """Whether a question becomes a task (`TK4-03`, `TK4-07`)."""
        return isinstance(request, self._kinds) and _metadata(request) is not None

    def create(self, request: t.InputRequest, ask: Callable[[], Awaitable[Any]]) -> bytes:
        """Start the answer to a question as a task.

        Args:
            request: The question, with the task metadata.
            ask: Asks it.

        Returns:
            The result of the request: the new task.

        Raises:
            McpError: The server has too many tasks.
        """
        self._sweep()
        if len(self._records) >= MOST_TASKS:
            raise t.McpError(
                t.INTERNAL_ERROR, f"This client keeps at most {MOST_TASKS} tasks at one time."
            )
        metadata = _metadata(request)
        wanted = metadata.ttl if metadata is not None else None
        ttl = MOST_TTL_MS if wanted is None else max(0, min(wanted, MOST_TTL_MS))
        now = self._clock()
        task = Task(
            task_id=secrets.token_hex(16),
            status="working",
            created_at=_iso(now),
            last_updated_at=_iso(now),
            ttl_ms=ttl,
            poll_interval_ms=POLL_INTERVAL_MS,
        )
        record = _Record(task, now + timedelta(milliseconds=ttl))
        self._records[task.task_id] = record
        record.work = asyncio.get_running_loop().create_task(self._run(record, ask))
        return encode_json({"task": in_core_form(task)})

    async def answer(self, method: str, params: Any) -> bytes:
        """Answer one of the server's requests about tasks.

        Raises:
            McpError: The task or the cursor is unknown, or the task cannot be cancelled (-32602).
                For `tasks/result` also the error of the question.
        """
        self._sweep()
        if method == "tasks/list":
            return self._list(params.cursor)
        record = self._records.get(params.task_id)
        if record is None:
            raise t.McpError(t.INVALID_PARAMS, "Task not found")
        if method == "tasks/result":
            return await self._result(record)
        if method == "tasks/cancel":
            self._cancel(record)
        return encode_json(in_core_form(record.task))

    async def aclose(self) -> None:
        """Cancel all tasks."""
        running = [r.work for r in self._records.values() if r.work is not None]
        self._records.clear()
        for work in running:
            work.cancel()
        if running:
            await asyncio.wait(running)

    async def _run(self, record: _Record, ask: Callable[[], Awaitable[Any]]) -> None:
        try:
            answer = await ask()
        except t.McpError as bad:
            record.error = bad
        except t.ToolError as bad:
            record.error = t.McpError(t.INTERNAL_ERROR, str(bad))
        except Exception:
            log.exception("answering the server's question failed")
            record.error = t.McpError(t.INTERNAL_ERROR, "The question could not be answered.")
        else:
            record.answer = answer
        if record.error is None:
            self._move(record, "completed")
        else:
            self._move(record, "failed", record.error.message)

    def _move(self, record: _Record, status: Any, message: str | None = None) -> None:
        """Change the status, unless the task has ended (`TK4-10`)."""
        if not record.task.is_terminal:
            record.task = replace(
                record.task,
                status=status,
                status_message=message,
                last_updated_at=_iso(self._clock()),
            )

    async def _result(self, record: _Record) -> bytes:
        """Wait for the answer, and return it with the id of its task (`TK4-13`, `TK4-14`)."""
        if record.work is not None:
            await asyncio.wait({record.work})
        if record.task.status == "cancelled":
            raise t.McpError(t.INVALID_PARAMS, "The task was cancelled")
        if record.error is not None:
            raise record.error
        assert record.answer is not None
        return encode(related_to(record.answer, record.task.task_id), LAST_HANDSHAKE)

    def _cancel(self, record: _Record) -> None:
        if record.task.is_terminal:
            raise t.McpError(
                t.INVALID_PARAMS,
                f"Cannot cancel task: already in terminal status '{record.task.status}'",
            )
        self._move(record, "cancelled", "The task was cancelled by request.")
        if record.work is not None:
            record.work.cancel()

    def _list(self, cursor: str | None) -> bytes:
        ids = list(self._records)
        if cursor is not None and cursor not in self._records:
            raise t.McpError(t.INVALID_PARAMS, "The cursor is unknown, or its task has expired")
        begin = 0 if cursor is None else ids.index(cursor) + 1
        shown = ids[begin : begin + PAGE]
        page: t.JSONObject = {"tasks": [in_core_form(self._records[id].task) for id in shown]}
        if begin + PAGE < len(ids):
            page["nextCursor"] = shown[-1]
        return encode_json(page)

    def _sweep(self) -> None:
        """Delete the tasks whose time to live is over (`TK4-29`)."""
        now = self._clock()
        for id, record in list(self._records.items()):
            if record.expires <= now:
                del self._records[id]
                if record.work is not None:
                    record.work.cancel()


def _metadata(request: t.InputRequest) -> t.TaskMetadata | None:
    return None if isinstance(request, t.ListRootsRequest) else request.params.task


def _kinds(capabilities: t.ClientCapabilities) -> list[type[Any]]:
    kinds: list[type[Any]] = []
    if capabilities.elicitation is not None:
        kinds.append(t.ElicitRequest)
    if capabilities.sampling is not None:
        kinds.append(t.CreateMessageRequest)
    return kinds


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
