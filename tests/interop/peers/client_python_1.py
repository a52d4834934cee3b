"""A client made with the official Python SDK 1.x that does what the test says.

Run by that SDK's own Python.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.experimental.task_handlers import ExperimentalTaskHandlers
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.experimental.tasks.in_memory_task_store import InMemoryTaskStore
from steps import Steps, plain

steps = Steps()
REFUSED = types.ErrorData(code=-1, message="User rejected the request")


async def elicit(context: Any, params: Any) -> Any:
    answer = steps.answer("elicitation/create", params)
    return types.ElicitResult.model_validate(answer) if answer else REFUSED


async def sample(context: Any, params: Any) -> Any:
    answer = steps.answer("sampling/createMessage", params)
    if not answer:
        return REFUSED
    several = isinstance(answer["content"], list)
    return (
        types.CreateMessageResultWithTools if several else types.CreateMessageResult
    ).model_validate(answer)


async def roots(context: Any) -> Any:
    return types.ListRootsResult.model_validate(steps.answer("roots/list", None))


async def log(params: Any) -> None:
    steps.hear("notifications/message", params)


async def hear(message: Any) -> None:
    if isinstance(message, Exception):
        steps.hear("exception", {"words": repr(message)})
    elif (
        isinstance(message, types.ServerNotification)
        and message.root.method != "notifications/message"
    ):
        steps.hear(message.root.method, message.root.params)


class QuestionTasks:
    """The questions that this client runs as tasks, if the server asks for that (2025-11-25)."""

    def __init__(self, group: Any) -> None:
        self._group = group
        self._store = InMemoryTaskStore()

    def handlers(self) -> ExperimentalTaskHandlers:
        return ExperimentalTaskHandlers(
            get_task=self.get,
            get_task_result=self.result,
            augmented_sampling=partial(self.create, sample),
            augmented_elicitation=partial(self.create, elicit),
        )

    async def create(self, ask: Any, context: Any, params: Any, metadata: Any) -> Any:
        task = await self._store.create_task(metadata)
        self._group.start_soon(self._run, task.taskId, ask, context, params)
        return types.CreateTaskResult(task=task)

    async def _run(self, id: str, ask: Any, context: Any, params: Any) -> None:
        await self._store.store_result(id, await ask(context, params))
        await self._store.update_task(id, status="completed")

    async def get(self, context: Any, params: Any) -> Any:
        task = await self._store.get_task(params.taskId)
        return types.GetTaskResult.model_validate(plain(task))

    async def result(self, context: Any, params: Any) -> Any:
        result = await self._store.get_result(params.taskId)
        return types.GetTaskPayloadResult.model_validate(plain(result))


async def call(
    client: ClientSession,
    name: str,
    arguments: dict[str, Any] | None = None,
    progress: bool = False,
) -> Any:
    """Call a tool; with `progress`, return what it reported too."""
    reported: list[Any] = []

    async def report(done: float, total: float | None, message: str | None) -> None:
        reported.append([done, total, message])

    result = await client.call_tool(name, arguments, progress_callback=report if progress else None)
    return {**plain(result), "reported": reported} if progress else result


async def call_and_cancel(client: ClientSession, name: str) -> str:
    """Call a tool and give it up as soon as it reports progress; this SDK leaves the notification
    to its user."""
    id = client._request_id
    with anyio.CancelScope() as scope:

        async def report(*_: Any) -> None:
            scope.cancel()

        await client.call_tool(name, progress_callback=report)
    params = types.CancelledNotificationParams(requestId=id, reason="no longer wanted")
    await client.send_notification(
        types.ClientNotification(types.CancelledNotification(params=params))
    )
    return "given up" if scope.cancelled_caught else "answered"


async def task(client: ClientSession, name: str, arguments: dict[str, Any] | None = None) -> Any:
    """Call a tool as a task, poll it, and collect its result, which brings its questions."""
    tasks = client.experimental
    made = (await tasks.call_tool_as_task(name, arguments)).task
    states: list[str] = []
    async for state in tasks.poll_task(made.taskId):
        states.append(state.status)
        if state.status == "input_required":
            break
    result = await tasks.get_task_result(made.taskId, types.CallToolResult)
    return {**plain(result), "id": made.taskId, "states": states}


async def cancel_task(
    client: ClientSession, name: str, arguments: dict[str, Any] | None = None
) -> Any:
    """Call a tool as a task, and cancel it."""
    tasks = client.experimental
    made = (await tasks.call_tool_as_task(name, arguments)).task
    return await tasks.cancel_task(made.taskId)


async def list_tasks(client: ClientSession) -> Any:
    """The tasks of this client."""
    return await client.experimental.list_tasks()


async def complete(
    client: ClientSession, argument: str, value: str, prompt: str = "", template: str = ""
) -> Any:
    prompt_ref = types.PromptReference(type="ref/prompt", name=prompt)
    ref = (
        prompt_ref if prompt else types.ResourceTemplateReference(type="ref/resource", uri=template)
    )
    return await client.complete(ref, {"name": argument, "value": value})


DO: dict[str, Any] = {
    "call": call,
    "call_and_cancel": call_and_cancel,
    "complete": complete,
    "task": task,
    "cancel_task": cancel_task,
    "list_tasks": list_tasks,
    "list_tools": ClientSession.list_tools,
    "list_resources": ClientSession.list_resources,
    "list_resource_templates": ClientSession.list_resource_templates,
    "list_prompts": ClientSession.list_prompts,
    "read": ClientSession.read_resource,
    "prompt": ClientSession.get_prompt,
    "ping": ClientSession.send_ping,
    "set_level": ClientSession.set_logging_level,
    "subscribe": ClientSession.subscribe_resource,
    "unsubscribe": ClientSession.unsubscribe_resource,
    "roots_changed": ClientSession.send_roots_list_changed,
}


def road(first: dict[str, Any]) -> Any:
    """The way to the server: a command, or a URL."""
    if "command" in first:
        command, *arguments = first["command"]
        return stdio_client(StdioServerParameters(command=command, args=arguments))
    return (
        sse_client(first["url"]) if first["road"] == "sse" else streamable_http_client(first["url"])
    )


async def main() -> None:
    first = await steps.first()
    async with (
        anyio.create_task_group() as group,
        road(first) as (read, write, *_),
        ClientSession(
            read,
            write,
            elicitation_callback=elicit,
            sampling_callback=sample,
            sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()),
            list_roots_callback=roots,
            logging_callback=log,
            message_handler=hear,
            experimental_task_handlers=QuestionTasks(group).handlers()
            if first.get("question_tasks")
            else None,
        ) as client,
    ):
        opened = await client.initialize()

        async def do(what: str, given: dict[str, Any]) -> Any:
            if what == "who":
                who = {
                    "revision": opened.protocolVersion,
                    "server": plain(opened.serverInfo),
                    "instructions": opened.instructions,
                }
                return {**who, "capabilities": plain(opened.capabilities)}
            return await DO[what](client, **given)

        await steps.play(do)


anyio.run(main)
