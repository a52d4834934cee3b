"""The requests about one task, under both forms of the protocol: the extension of 2026-07-28, and
the core protocol of 2025-11-25.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Protocol

from msgspec import UNSET, Raw

from ... import types as t
from ...exchange import Asker
from ...logs import limited
from ...transport.conversation import read_result
from ...types.tasks import (
    CancelTaskRequestParams,
    GetTaskPayloadRequestParams,
    GetTaskRequestParams,
    Task,
    UpdateTaskRequestParams,
)
from ...wire.codec import encode

log = limited("interlock.client")


class SendTaskRequest(Protocol):
    """Sends one request about tasks to the server."""

    async def __call__(
        self,
        method: str,
        params: t.Params,
        kind: type[Any],
        *,
        asker: Asker | None = None,
        timed: bool = True,
    ) -> Any:
        """SendTaskRequest a request and return its result.

        Args:
            method: The method.
            params: The params.
            kind: The type of the result.
            asker: Answers questions that the server sends with this request.
            timed: Whether the client's timeout applies.
        """
        ...


class TaskQuestions(Protocol):
    """Carries the questions of one task to the person or the model."""

    @property
    def asker(self) -> Asker:
        """Answers the questions. Timeouts of the waiting calls are paused meanwhile."""
        ...

    def fail(self, why: Exception) -> None:
        """End the waiting calls, because a question could not be answered."""
        ...

    def wake(self) -> None:
        """Poll soon: the status has probably changed."""
        ...


class TaskRequests(Protocol):
    """The requests about one task under one form of the protocol."""

    async def get(self) -> Task:
        """Return the current state."""
        ...

    async def cancel(self) -> None:
        """Ask the server to cancel the task. A task that has ended stays as it is."""
        ...

    def react(self, state: Task, questions: TaskQuestions) -> None:
        """Start what a state requires, such as answers to questions. It never waits."""
        ...

    async def outcome(self, state: Task, questions: TaskQuestions) -> t.CallToolResult:
        """Return the result of a task that has ended.

        Raises:
            McpError: The task failed.
            TaskCancelled: The task was cancelled.
        """
        ...

    async def stop(self) -> None:
        """Cancel everything that `react` has started."""
        ...


class ExtensionTask:
    """A task under 2026-07-28: its state contains its questions and its result."""

    def __init__(self, send: SendTaskRequest, id: str, revision: str) -> None:
        self._send = send
        self._id = id
        self._revision = revision
        self._open: dict[str, asyncio.Task[None]] = {}
        self._answers: dict[str, Raw] = {}  # given, but not delivered yet
        self._delivered: set[str] = set()  # their keys may be listed for a while

    async def get(self) -> Task:
        """Return the current state."""
        state: Task = await self._send("tasks/get", GetTaskRequestParams(task_id=self._id), Task)
        return state

    async def cancel(self) -> None:
        """Ask the server to cancel the task. The server acknowledges this in any status."""
        params = CancelTaskRequestParams(task_id=self._id)
        await self._send("tasks/cancel", params, t.EmptyResult)

    def react(self, state: Task, questions: TaskQuestions) -> None:
        """Ask each question once (`TKX-25`). Questions that are no longer open are withdrawn."""
        requests = (state.input_requests or {}) if state.status == "input_required" else {}
        for key, asking in list(self._open.items()):
            if key not in requests and key not in self._answers:
                asking.cancel()
        for key, request in requests.items():
            if key not in self._open and key not in self._delivered:
                asking = asyncio.create_task(self._answer(key, request, questions))
                self._open[key] = asking
                asking.add_done_callback(partial(self._forget, key))

    def _forget(self, key: str, asking: asyncio.Task[None]) -> None:
        self._open.pop(key, None)

    async def _answer(self, key: str, request: t.InputRequest, questions: TaskQuestions) -> None:
        try:
            if key not in self._answers:
                answer = await questions.asker.ask(request, key)
                self._answers[key] = Raw(encode(answer, self._revision))
            params = UpdateTaskRequestParams(
                task_id=self._id, input_responses={key: self._answers[key]}
            )
            await self._send("tasks/update", params, t.EmptyResult)
            del self._answers[key]
            self._delivered.add(key)
            questions.wake()
        except t.Unreachable as bad:  # the answer is sent again after the next poll
            log.info("an answer for a task was not delivered: %s", bad)
        except Exception as bad:
            questions.fail(bad)

    async def outcome(self, state: Task, questions: TaskQuestions) -> t.CallToolResult:
        """Read the result in the state."""
        if state.status == "failed":
            bad = state.error
            if bad is None:
                raise t.McpError(t.INTERNAL_ERROR, state.status_message or "The task failed.")
            raise t.McpError(bad.code, bad.message, bad.data)
        if state.status == "cancelled":
            raise cancelled(state)
        if state.result is UNSET:
            raise t.ProtocolError("The server says that a task is completed, but has no result.")
        result = read_result("tools/call", state.result)
        if not isinstance(result, t.CallToolResult):
            raise t.ProtocolError("The result of a task is no result of a tool.")
        return result

    async def stop(self) -> None:
        """Withdraw the open questions."""
        await _cancel_all(list(self._open.values()))


class CoreTask:
    """A task under 2025-11-25: `tasks/result` brings its questions and its result."""

    def __init__(self, send: SendTaskRequest, id: str) -> None:
        self._send = send
        self._id = id
        self._payload: asyncio.Task[t.CallToolResult] | None = None
        self._is_early = False  # requested before the task had ended

    async def get(self) -> Task:
        """Return the current state."""
        state: Task = await self._send("tasks/get", GetTaskRequestParams(task_id=self._id), Task)
        return state

    async def cancel(self) -> None:
        """Cancel the task. The error for a task that has ended is dropped (`TK4-18`)."""
        params = CancelTaskRequestParams(task_id=self._id)
        try:
            await self._send("tasks/cancel", params, t.EmptyResult)
        except t.McpError as bad:
            if bad.code != t.INVALID_PARAMS or not (await self.get()).is_terminal:
                raise

    def react(self, state: Task, questions: TaskQuestions) -> None:
        """Request the result as soon as there are questions, because they arrive with it
        (`TK4-17`).
        """
        if state.status == "input_required":
            self._request_payload(questions)
            self._is_early = True

    async def outcome(self, state: Task, questions: TaskQuestions) -> t.CallToolResult:
        """Request the result, which is the result or error of the call itself (`TK4-13`)."""
        if state.status == "cancelled":
            raise cancelled(state)
        payload = self._request_payload(questions)
        try:
            return await asyncio.shield(payload)
        except t.McpError:
            if not self._is_early:
                raise
        # Some servers refuse this request before the task has ended.
        self._is_early = False
        self._payload = None
        return await self._request_payload(questions)

    def _request_payload(self, questions: TaskQuestions) -> asyncio.Task[t.CallToolResult]:
        running = self._payload
        if running is not None and not _is_lost(running):
            return running
        running = self._payload = asyncio.create_task(self._receive_payload(questions.asker))
        running.add_done_callback(lambda _: questions.wake())
        return running

    async def _receive_payload(self, asker: Asker) -> t.CallToolResult:
        params = GetTaskPayloadRequestParams(task_id=self._id)
        result: t.CallToolResult = await self._send(
            "tasks/result", params, t.CallToolResult, asker=asker, timed=False
        )
        return result

    async def stop(self) -> None:
        """Cancel the request for the result."""
        payload = self._payload
        if payload is not None and not payload.done():
            self._payload = None
            await _cancel_all([payload])


def cancelled(state: Task) -> t.TaskCancelled:
    """The error for a task that was cancelled."""
    words = f": {state.status_message}" if state.status_message else "."
    return t.TaskCancelled(f"The task was cancelled{words}")


def _is_lost(request: asyncio.Task[Any]) -> bool:
    """Whether a request has ended without a response, so that it can be sent again."""
    if not request.done():
        return False
    return request.cancelled() or isinstance(request.exception(), t.Unreachable)


async def _cancel_all(running: list[asyncio.Task[Any]]) -> None:
    for one in running:
        one.cancel()
    if running:
        await asyncio.wait(running)
