"""Tasks of servers: calls that outlive the turn that made them, and the host."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from interlock import (
    CallToolResult,
    InterlockError,
    McpError,
    TaskCancelled,
    TaskHandle,
    TextContent,
    TimedOut,
    Unreachable,
)
from interlock.types import ProgressNotificationParams, Tool

from ..fleet.event_bus import EventBus
from ..fleet.events import LogEntry, Notice, ServerState, TaskBegan, TaskEnded
from ..fleet.hub import Hub, ManagedServer
from ..fleet.log import Log, LogError
from ..fleet.toolbox import ServerTool, Toolbox, UnknownTool
from .call_request import CallOutcome, CallRequest, progress_event
from .server_requests import ServerRequests

log = logging.getLogger("interlock_apps.host")

MOST_LOGGED = 1_000
"""The entries of the log that are searched for tasks of earlier runs."""
MOST_CANCELLING = 2.0  # seconds
RETRY = 30.0
"""The time in seconds after which an unreachable server is asked again, if it does not restart."""

OnProgress = Callable[[ProgressNotificationParams], None]
Finish = Callable[[CallRequest, dict[str, Any], CallOutcome], Awaitable[None]]


class OpenTask(Struct):
    """A call that goes on as a task.

    Attributes:
        request: The call.
        arguments: The arguments that were sent.
        id: The id of the task at its server.
        handle: The client's handle; None until the server is reached.
        work: What waits for its outcome.
    """

    request: CallRequest
    arguments: dict[str, Any]
    id: str
    handle: TaskHandle | None = None
    work: asyncio.Task[CallOutcome] | None = None


class RunningTasks:
    """Makes calls that may become tasks, and follows the tasks until they end.

    The log remembers them: a task that began and has not ended is taken up again when the host
    opens. Only the cancellation of a call or of its task cancels it at the server.

    Args:
        hub: The servers.
        requests: Answers the questions of the tasks.
        toolbox: The tools, for tasks of earlier runs.
        events: Receives the beginning of each task.
        wait: The time in seconds for which a turn waits for a task; None: until it ends.
        finish: Receives the outcome of a task that outlived its turn.
    """

    def __init__(
        self,
        hub: Hub,
        requests: ServerRequests,
        toolbox: Toolbox,
        events: EventBus,
        *,
        wait: float | None,
        finish: Finish,
    ) -> None:
        self._hub = hub
        self._requests = requests
        self._toolbox = toolbox
        self._events = events
        self._wait = wait
        self._finish = finish
        self._open: dict[str, OpenTask] = {}  # by call
        self._following: set[asyncio.Task[Any]] = set()
        self._up = asyncio.Event()  # replaced whenever a server has come up
        events.listen(self._receive)

    # -- calls -------------------------------------------------------------------------------------

    async def call(
        self,
        server: ManagedServer,
        request: CallRequest,
        arguments: dict[str, Any],
        on_progress: OnProgress,
    ) -> CallOutcome:
        """Call a tool. If it becomes a task that takes longer than a turn waits, the outcome says
        so, and the task goes on.

        Raises:
            InterlockError: As `ManagedServer.call` does.
        """
        handle = await server.start_call(
            request.item.tool.name,
            arguments,
            on_progress=on_progress,
            asker=self._requests.answers_for(server.entry, request),
        )
        if handle.id is None or handle.ended:
            return CallOutcome(await handle.result())
        task = OpenTask(request, arguments, handle.id, handle)
        work = asyncio.get_running_loop().create_task(self._follow(task, on_progress))
        try:
            await asyncio.wait({work}, timeout=self._wait)
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait({work})
            with contextlib.suppress(InterlockError, TimeoutError):
                async with asyncio.timeout(MOST_CANCELLING):
                    await handle.cancel()
            raise
        if work.done():
            return work.result()
        self._events.publish(
            TaskBegan(
                session=request.session,
                call=request.call,
                name=request.item.name,
                server=request.item.server,
                tool=request.item.tool.name,
                arguments=arguments,
                by=request.by,
                task=task.id,
            )
        )
        self._adopt(task, work)
        return CallOutcome(_interim(request, handle.immediate_response), goes_on=True)

    async def cancel(self, call: str) -> None:
        """Cancel the task of a call at its server.

        Raises:
            Unreachable: The task has ended, or its server is not up.
            McpError: The server refuses.
        """
        task = self._open.get(call)
        if task is None:
            raise Unreachable("This task has ended.")
        if task.handle is None:
            raise Unreachable(f"The server {task.request.item.server} is not up.")
        await task.handle.cancel()

    async def abandon(self, session: str) -> None:
        """Cancel the tasks of a conversation at their servers, and stop following them."""
        for task in [each for each in self._open.values() if each.request.session == session]:
            with contextlib.suppress(InterlockError, TimeoutError):
                async with asyncio.timeout(MOST_CANCELLING):
                    await self.cancel(task.request.call)
            self._open.pop(task.request.call, None)
            if task.work is not None:
                task.work.cancel()

    @property
    def open(self) -> list[OpenTask]:
        """The tasks that outlived their turns and have not ended."""
        return list(self._open.values())

    # -- from the start of the host to its end -----------------------------------------------------

    async def take_up(self, journal: Log) -> None:
        """Follow the tasks of earlier runs that have not ended."""
        try:
            began = await journal.search(kinds=("taskBegan",), limit=MOST_LOGGED)
            if not began:
                return
            ended = await journal.search(kinds=("taskEnded",), limit=MOST_LOGGED)
        except LogError as bad:
            words = f"Tasks of earlier runs are not taken up: {bad}"
            self._events.publish(Notice(level="warning", words=words))
            return
        gone = {noted.event.call for noted in ended if isinstance(noted.event, TaskEnded)}
        for noted in reversed(began):
            event = noted.event
            if isinstance(event, TaskBegan) and event.call not in gone | self._open.keys():
                task = OpenTask(self._request(event), event.arguments, event.task)
                work = self._follow(task, self._progress_publisher(task.request))
                self._adopt(task, asyncio.get_running_loop().create_task(work))

    async def aclose(self) -> None:
        """Stop following. The tasks go on at their servers."""
        following = list(self._following)
        for each in following:
            each.cancel()
        if following:
            await asyncio.wait(following)

    def _request(self, event: TaskBegan) -> CallRequest:
        try:
            item = self._toolbox.find(event.name)
        except UnknownTool:
            tool = Tool(name=event.tool, input_schema={})
            item = ServerTool(name=event.name, server=event.server, tool=tool)
        return CallRequest(
            call=event.call,
            session=event.session,
            item=item,
            arguments=event.arguments,
            by=event.by,
        )

    def _progress_publisher(self, request: CallRequest) -> OnProgress:
        def publish_progress(params: ProgressNotificationParams) -> None:
            self._events.publish(progress_event(request, params))

        return publish_progress

    def _adopt(self, task: OpenTask, work: asyncio.Task[CallOutcome]) -> None:
        self._open[task.request.call] = task
        task.work = work
        completing = asyncio.get_running_loop().create_task(self._complete(task, work))
        self._following |= {work, completing}
        for each in (work, completing):
            each.add_done_callback(self._following.discard)

    async def _complete(self, task: OpenTask, work: asyncio.Task[CallOutcome]) -> None:
        await asyncio.wait({work})
        if work.cancelled():
            return
        try:
            await self._finish(task.request, task.arguments, work.result())
        except Exception:  # a bug of the host, which must not be silent
            log.exception("the task of the call %s was lost", task.request.call)
        finally:
            self._open.pop(task.request.call, None)

    async def _follow(self, task: OpenTask, on_progress: OnProgress) -> CallOutcome:
        """Wait for the end of a task, across restarts of its server."""
        while True:
            up = self._up
            try:
                return CallOutcome(await self._result(task, on_progress))
            except TaskCancelled:
                return CallOutcome(None, "The task was cancelled.")
            except TimedOut as late:
                return CallOutcome(None, "The task did not end in time.", str(late))
            except Unreachable as bad:
                log.info("the task of the call %s waits: %s", task.request.call, bad)
            except InterlockError as bad:
                words = "The call failed." if isinstance(bad, McpError) else "The task failed."
                return CallOutcome(None, words, str(bad))
            task.handle = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RETRY):
                    await up.wait()

    async def _result(self, task: OpenTask, on_progress: OnProgress) -> CallToolResult:
        name = task.request.item.server
        server = self._hub.servers.get(name)
        if server is None:
            raise Unreachable(f"There is no server {name}.")
        if task.handle is None:
            answers = self._requests.answers_for(server.entry, task.request)
            task.handle = await server.task(task.id, asker=answers)
        return await server.result_of(task.handle, on_progress)

    def _receive(self, noted: LogEntry) -> None:
        if isinstance(noted.event, ServerState) and noted.event.state == "up":
            up = self._up
            self._up = asyncio.Event()
            up.set()


def _interim(request: CallRequest, said: str | None) -> CallToolResult:
    """What the model gets while a task runs."""
    words = (
        f"{request.item.name} goes on as a task of the server {request.item.server}. It has no "
        "result yet. Its result will come as a later message of this conversation. Do not call "
        "the tool again for it."
    )
    return CallToolResult(content=[TextContent(text) for text in (words, said) if text])
