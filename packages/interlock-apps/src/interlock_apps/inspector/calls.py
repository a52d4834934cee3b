"""Tool calls of the inspector: running ones with their progress, and the outcomes of ended ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Literal

import msgspec

from interlock import (
    Asker,
    CallToolResult,
    Client,
    InterlockError,
    McpError,
    TaskCancelled,
    TaskHandle,
)
from interlock.cli.screen import plain
from interlock.schema import SchemaError
from interlock.schema import compile as compile_schema
from interlock.types import JSONObject, ProgressNotificationParams, Tool

from .events import InspectorEvent, Publish

MOST_RUNNING = 50
"""Calls of one connection that may run at the same time."""
MOST_KEPT = 30
"""Ended calls of one connection whose outcome is kept."""

CallStatus = Literal["running", "done", "failed", "cancelled"]
CallBy = Literal["user", "app"]
Spawn = Callable[[Coroutine[Any, Any, Any]], "asyncio.Task[Any]"]


class ToolCall:
    """One call.

    Attributes:
        id: Its id in the connection.
        tool: The called tool, as the server listed it; a bare name if it did not.
        arguments: The arguments.
        by: Who calls: the user, or an app of the server.
        status: "failed" after a JSON-RPC error, a lost connection, or a result with `isError`.
        task: The id of the task that the call has become; "" if it is none.
        result: The result; None before it.
        error: The error; None if there is none.
        violations: What in the structured content does not fit the output schema; None if the tool
            has no output schema.
    """

    def __init__(self, id: str, tool: Tool, arguments: JSONObject, by: CallBy) -> None:
        self.id = id
        self.tool = tool
        self.arguments = arguments
        self.by = by
        self.status: CallStatus = "running"
        self.task = ""
        self.result: CallToolResult | None = None
        self.error: dict[str, Any] | None = None
        self.violations: list[str] | None = None
        self.progress: dict[str, Any] | None = None
        self.began = time.time()
        self.seconds = 0.0
        self.handle: TaskHandle | None = None
        self.work: asyncio.Task[Any] | None = None

    def brief(self) -> dict[str, Any]:
        """The call without its outcome, as JSON values."""
        return {
            "id": self.id,
            "tool": self.tool.name,
            "by": self.by,
            "status": self.status,
            "task": self.task,
            "progress": self.progress,
            "began": self.began,
            "seconds": self.seconds,
        }

    def state(self) -> dict[str, Any]:
        """The whole call as JSON values."""
        return {
            **self.brief(),
            "arguments": self.arguments,
            "result": None if self.result is None else plain(self.result),
            "error": self.error,
            "violations": self.violations,
        }


class StartedCalls:
    """The calls of one connection.

    Args:
        connection: The name of the connection.
        publish: Publishes an event to the pages.
    """

    def __init__(self, connection: str, publish: Publish) -> None:
        self._connection = connection
        self._publish = publish
        self._calls: dict[str, ToolCall] = {}
        self._count = 0

    def __getitem__(self, id: str) -> ToolCall:
        """Return a call. Raises ValueError if it is not kept."""
        found = self._calls.get(id)
        if found is None:
            raise ValueError("This call is no longer kept. The timeline has its messages.")
        return found

    def state(self) -> list[dict[str, Any]]:
        """The calls without their outcomes, as JSON values, oldest first."""
        return [call.brief() for call in self._calls.values()]

    def start(
        self,
        client: Client,
        spawn: Spawn,
        asker: Callable[[str], Asker],
        tool: Tool,
        arguments: JSONObject,
        *,
        as_task: bool = False,
        by: CallBy = "user",
    ) -> ToolCall:
        """Start a call; return it while it runs.

        Args:
            client: The client.
            spawn: Runs a coroutine in a task that ends with the connection.
            asker: Returns what answers the questions of the call with this id.
            tool: The tool.
            arguments: The arguments.
            as_task: Whether the call becomes a task if the tool can be one.
            by: Who calls.

        Raises:
            ValueError: Too many calls are running.
        """
        running = [one for one in self._calls.values() if one.status == "running"]
        if len(running) >= MOST_RUNNING:
            raise ValueError(f"{MOST_RUNNING} calls are running. Cancel one first.")
        self._count += 1
        call = ToolCall(f"c{self._count}", tool, arguments, by)
        self._calls[call.id] = call
        self._drop_oldest()
        call.work = spawn(self._run(client, call, asker(call.id), as_task))
        self._changed(call)
        return call

    async def cancel(self, id: str) -> None:
        """Cancel a call, or its task at the server.

        Raises:
            ValueError: The call is not kept.
            McpError, Unreachable: The server does not cancel the task.
        """
        call = self[id]
        if call.handle is not None and not call.handle.ended:
            await call.handle.cancel()
        elif call.work is not None:
            call.work.cancel()

    async def _run(self, client: Client, call: ToolCall, asker: Asker, as_task: bool) -> None:
        began = time.monotonic()
        try:
            call.result = await self._result(client, call, asker, as_task)
            call.status = "failed" if call.result.is_error else "done"
            call.violations = violations_of(call.tool, call.result)
        except asyncio.CancelledError:
            call.status = "cancelled"
        except TaskCancelled:
            call.status = "cancelled"
        except (InterlockError, ValueError) as bad:
            call.status = "failed"
            call.error = error_state(bad)
        except BaseException:
            call.status = "failed"
            raise
        finally:
            call.seconds = time.monotonic() - began
            call.progress = None
            self._changed(call)

    async def _result(
        self, client: Client, call: ToolCall, asker: Asker, as_task: bool
    ) -> CallToolResult:
        def show(params: ProgressNotificationParams) -> None:
            self._show_progress(call, params.progress, params.total, params.message or "")

        name = call.tool.name
        if not as_task:
            return await client.call_tool(
                name, call.arguments, timeout=None, on_progress=show, asker=asker
            )
        handle = await client.start_tool(
            name, call.arguments, timeout=None, on_progress=show, asker=asker
        )
        if handle.id is not None and not handle.ended:
            call.task = handle.id
            call.handle = handle
            self._changed(call)
            number = 0
            async for state in handle:
                number += 1
                self._show_progress(call, number, None, state.status_message or state.status)
        return await handle.result()

    def _show_progress(
        self, call: ToolCall, progress: float, total: float | None, words: str
    ) -> None:
        call.progress = {"progress": progress, "total": total, "message": words}
        self._publish(InspectorEvent("call", self._connection, call.brief()))

    def _changed(self, call: ToolCall) -> None:
        self._publish(InspectorEvent("call", self._connection, call.brief(), changes_state=True))

    def _drop_oldest(self) -> None:
        ended = [one.id for one in self._calls.values() if one.status != "running"]
        for id in ended[: max(0, len(ended) - MOST_KEPT)]:
            del self._calls[id]


def violations_of(tool: Tool, result: CallToolResult) -> list[str] | None:
    """What in a result does not fit the tool's output schema; None without a schema."""
    if tool.output_schema is None or result.is_error:
        return None
    if result.structured_content is msgspec.UNSET:
        return ["The tool has an output schema, and the result has no structured content."]
    try:
        found = compile_schema(tool.output_schema).check(result.structured_content)
    except SchemaError as bad:
        return [f"The output schema is not valid: {bad}"]
    return [f"{one.path or 'the whole value'}: {one.message}" for one in found]


def error_state(bad: Exception) -> dict[str, Any]:
    """An error as JSON values: the message, and the code and data of a JSON-RPC error."""
    if isinstance(bad, McpError):
        return {"code": bad.code, "message": bad.message, "data": bad.data}
    return {"code": None, "message": str(bad), "data": None}
