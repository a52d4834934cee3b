"""Running approved calls at their servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from interlock import (
    CallToolResult,
    Client,
    EmbeddedResource,
    InterlockError,
    McpError,
    TimedOut,
    Unreachable,
)
from interlock.types import ProgressNotificationParams

from ..fleet import threat_scan
from ..fleet.event_bus import EventBus
from ..fleet.events import ResourceRead
from ..fleet.hub import Hub, ManagedServer
from .call_approval import CallApproval
from .call_messages import CallMessages
from .call_request import CallOutcome, CallRequest, RunningCalls, progress_event
from .running_tasks import RunningTasks
from .server_requests import ServerRequests


class CallRunner:
    """Runs calls of tools and reads of resources."""

    def __init__(
        self,
        hub: Hub,
        approval: CallApproval,
        requests: ServerRequests,
        running: RunningCalls,
        tasks: RunningTasks,
        events: EventBus,
        messages: CallMessages,
    ) -> None:
        self._hub = hub
        self._tasks = tasks
        self._approval = approval
        self._requests = requests
        self._running = running
        self._events = events
        self._messages = messages

    async def call(self, request: CallRequest, arguments: dict[str, Any]) -> CallOutcome:
        """Call a tool; again if its server could not ask, and a repetition is allowed."""
        server = self._hub.servers.get(request.item.server)
        if server is None:
            return CallOutcome(None, f"The server {request.item.server} is no longer there.")
        outcome = await self._call_once(server, request, arguments)
        if not outcome.could_not_ask or not await server.restarted_for_questions():
            return outcome
        again = await self._approval.approve_repeat(request, arguments)
        return outcome if again is None else await self._call_once(server, request, again)

    async def _call_once(
        self, server: ManagedServer, request: CallRequest, arguments: dict[str, Any]
    ) -> CallOutcome:
        def on_progress(params: ProgressNotificationParams) -> None:
            self._events.publish(progress_event(request, params))

        with self._running.running(request), self._messages.belonging_to(request.call):
            try:
                if request.by == "model":
                    outcome = await self._tasks.call(server, request, arguments, on_progress)
                    if outcome.result is None or outcome.goes_on:
                        return outcome
                    return replace(outcome, could_not_ask=Client.could_not_ask(outcome.result))
                result = await server.call(
                    request.item.tool.name,
                    arguments,
                    on_progress=on_progress,
                    asker=self._requests.answers_for(server.entry, request),
                )
            except TimedOut as late:
                return CallOutcome(None, "The tool gave no answer in time.", str(late))
            except McpError as bad:
                could_not_ask = Client.could_not_ask(bad)
                return CallOutcome(None, "The call failed.", str(bad), could_not_ask)
            except InterlockError as bad:
                return CallOutcome(None, "The call failed.", str(bad))
        return CallOutcome(result, could_not_ask=Client.could_not_ask(result))

    async def read(self, request: CallRequest, arguments: Mapping[str, Any]) -> CallOutcome:
        """Read a resource for the model."""
        name = request.item.server
        uri = str(arguments["uri"])
        try:
            server = self._hub.servers.get(name)
            if server is None:
                raise Unreachable(f"There is no server {name}.")
            if arguments["server"] != name:
                raise Unreachable("Another server would get a different call.")
            answers = self._requests.answers_for(server.entry, request)
            with self._messages.belonging_to(request.call):
                read = await server.read(uri, asker=answers)
        except InterlockError as bad:
            self._publish_read(request, uri, error=threat_scan.visible(str(bad)))
            return CallOutcome(None, "The resource cannot be read.", str(bad))
        self._publish_read(
            request, uri, size=sum(len(part.text or part.blob or "") for part in read.contents)
        )
        return CallOutcome(
            CallToolResult(content=[EmbeddedResource(resource=part) for part in read.contents])
        )

    def _publish_read(
        self, request: CallRequest, uri: str, *, size: int = 0, error: str = ""
    ) -> None:
        self._events.publish(
            ResourceRead(
                session=request.session,
                server=request.item.server,
                uri=uri,
                by="model",
                size=size,
                error=error,
            )
        )
