"""One server of the fleet: what it offers, and requests to it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from interlock import (
    Answers,
    CallToolResult,
    Client,
    Implementation,
    InterlockError,
    McpError,
    ProtocolError,
    Skill,
    TaskHandle,
    TimedOut,
    Unreachable,
)
from interlock.configs import Entry
from interlock.skills import EXTENSION, SkillEntry
from interlock.types import (
    Completion,
    GetPromptResult,
    ProgressNotificationParams,
    Prompt,
    PromptReference,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    ServerCapabilities,
    Tool,
)

from ..events import ServerLogLine
from ..nesting import too_deep
from .keeper import STOPPED, ServerKeeper
from .list_fetcher import FeatureLists
from .owner import State
from .supervised_client import SupervisedClient

R = TypeVar("R")

_REASONS: dict[State, str] = {
    "waiting": "has not been started",
    "starting": "is starting",
    "up": "was restarted during the request",
    "down": "is not reachable",
    "off": "is stopped",
    "refused": "may not be started",
    "login": "requires a login",
}
_NOTHING = FeatureLists()


class ManagedServer:
    """A server, known by the id of its entry and never by the name it gives itself.

    See `TOL-21` and `HST-04`. The Hub starts and stops it.
    """

    def __init__(self, keeper: ServerKeeper) -> None:
        self._keeper = keeper
        self._status = keeper.status

    # -- what it offers ----------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The server's name in the configuration."""
        return self._keeper.entry.id

    @property
    def entry(self) -> Entry:
        """The server's configuration."""
        return self._keeper.entry

    @property
    def state(self) -> State:
        """The server's state; see ServerStatus."""
        return self._status.state

    @property
    def words(self) -> str:
        """The reason for the state."""
        return self._status.words

    @property
    def settled(self) -> asyncio.Event:
        """Set once it has been up, has failed, or is not to be started."""
        return self._status.settled

    @property
    def tools(self) -> list[Tool]:
        """Its tools, as last fetched; [] while it is not up, as with the other lists."""
        return self._lists.tools

    @property
    def prompts(self) -> list[Prompt]:
        """Its prompts."""
        return self._lists.prompts

    @property
    def resources(self) -> list[Resource]:
        """Its resources."""
        return self._lists.resources

    @property
    def templates(self) -> list[ResourceTemplate]:
        """Its resource templates."""
        return self._lists.templates

    @property
    def skills(self) -> list[Skill]:
        """The skills that it lists. `skill` finds unlisted ones by their URIs."""
        return self._lists.skills

    @property
    def offers_skills(self) -> bool:
        """Whether it is up and declares the skills extension."""
        return self.state == "up" and EXTENSION in (self.capabilities.extensions or {})

    @property
    def instructions(self) -> str | None:
        """Its hint on how to use it, untrusted; None while it is not up."""
        return self._client.instructions if self._client is not None else None

    @property
    def info(self) -> Implementation | None:
        """The name and version it reports, for display only; None while it is not up."""
        return self._client.server_info if self._client is not None else None

    @property
    def revision(self) -> str:
        """The negotiated revision; "" while it is not up."""
        client = self._client
        return client.revision if client is not None and client.connected else ""

    @property
    def capabilities(self) -> ServerCapabilities:
        """The capabilities that it declares."""
        client = self._client
        return ServerCapabilities() if client is None else client.server_capabilities

    @property
    def log(self) -> deque[ServerLogLine]:
        """The last 1,000 of its log messages and lines of stderr."""
        return self._keeper.log.lines

    @property
    def _client(self) -> Client | None:
        return self._keeper.client.client if self._keeper.client is not None else None

    @property
    def _lists(self) -> FeatureLists:
        client = self._keeper.client
        return client.lists if client is not None and self.state == "up" else _NOTHING

    # -- requests ----------------------------------------------------------------------------------

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        on_progress: Callable[[ProgressNotificationParams], None] | None = None,
        timeout: float | None = None,
        asker: Answers | None = None,
    ) -> CallToolResult:
        """Call a tool. A call to a server that is starting waits for it.

        Args:
            tool: The tool's name at the server.
            arguments: Its arguments.
            on_progress: Receives the progress of the call.
            timeout: Seconds; None: the timeout of the entry, else that of the hub.
            asker: Answers the questions that the server asks during this call.

        Raises:
            Unreachable: The server is not up, or is lost during the call. The entry's secrets are
                redacted in every error.
            TimedOut: The server did not answer in time.
            McpError: The server answered with an error.
            ProtocolError: The answer breaks the protocol.
        """
        seconds = self._seconds(timeout)
        return await self._send(
            lambda client: client.call_tool(
                tool, arguments, timeout=seconds, on_progress=on_progress, asker=asker
            )
        )

    async def start_call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        on_progress: Callable[[ProgressNotificationParams], None] | None = None,
        timeout: float | None = None,
        asker: Answers | None = None,
    ) -> TaskHandle:
        """Call a tool, and return a handle as soon as it has become a task, or has ended.

        Args:
            tool: The tool's name at the server.
            arguments: Its arguments.
            on_progress: Called with the progress of the request.
            timeout: Seconds for the request; None: that of the hub.
            asker: Answers the questions that the server asks during this call and its task.

        Raises:
            InterlockError: As `call` does.
        """
        seconds = self._seconds(timeout)

        async def start(client: Client) -> TaskHandle:
            handle = await client.start_tool(
                tool, arguments, timeout=seconds, on_progress=on_progress, asker=asker
            )
            if handle.id is None and too_deep(await handle.result()):
                raise ProtocolError("The answer is nested too deeply.")
            return handle

        return await self._send(start)

    async def task(self, id: str, *, asker: Answers | None = None) -> TaskHandle:
        """Return a handle for a task of the server. Raises what `call` raises."""

        async def find(client: Client) -> TaskHandle:
            return client.task(id, asker=asker)

        return await self._send(find)

    async def result_of(
        self, handle: TaskHandle, on_progress: Callable[[ProgressNotificationParams], None]
    ) -> CallToolResult:
        """Wait for the end of a task, and return its result.

        The server counts as idle meanwhile, and may be restarted.

        Args:
            handle: The task.
            on_progress: Called with each status message of the task.

        Raises:
            TaskCancelled: The task was cancelled.
            InterlockError: As `call` does.
        """
        try:
            number = 0
            async for state in handle:
                number += 1
                if state.status_message and not state.is_terminal:
                    on_progress(
                        ProgressNotificationParams(
                            progress_token="", progress=number, message=state.status_message
                        )
                    )
            result = await handle.result()
        except InterlockError as bad:
            self._keeper.redactor.hide(bad)
            raise
        if too_deep(result):
            raise ProtocolError("The answer is nested too deeply.")
        return result

    async def read(
        self, uri: str, *, timeout: float | None = None, asker: Answers | None = None
    ) -> ReadResourceResult:
        """Read a resource. Raises what `call` raises."""
        seconds = self._seconds(timeout)
        return await self._send_read_only(
            lambda client: client.read_resource(uri, timeout=seconds, asker=asker)
        )

    async def skill(self, uri: str) -> Skill:
        """Return a skill as the server describes it now. Raises what `call` does, or SkillError."""
        return await self._send(lambda client: client.skill(uri))

    async def read_skill(self, entry: SkillEntry, path: str) -> bytes:
        """Return a file of a skill, verified by its entry. Raises what `skill` raises."""
        return await self._send_read_only(lambda client: Skill(client, entry).read_bytes(path))

    async def list_skill(self, entry: SkillEntry, path: str) -> list[str]:
        """Return the names in a folder of a skill. Raises what `skill` raises."""
        return await self._send_read_only(lambda client: Skill(client, entry).directory(path))

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        asker: Answers | None = None,
    ) -> GetPromptResult:
        """Return a prompt with its arguments filled in. Raises what `call` raises."""
        seconds = self._seconds(timeout)
        return await self._send_read_only(
            lambda client: client.get_prompt(name, arguments, timeout=seconds, asker=asker)
        )

    async def complete(
        self,
        ref: PromptReference | ResourceTemplateReference | str,
        argument: str,
        value: str = "",
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> Completion:
        """Return suggestions for an argument.

        Args:
            ref: The prompt or template that has the argument.
            argument: The argument's name.
            value: What was typed so far.
            arguments: The other arguments.
            timeout: Seconds; as `call` has it.

        Raises:
            InterlockError: As `call` does.
        """
        seconds = self._seconds(timeout)
        return await self._send(
            lambda client: client.complete(
                ref, argument, value, arguments=arguments, timeout=seconds
            )
        )

    async def watch_uri(self, uri: str) -> bool:
        """Publish a ResourceUpdated at each change of a resource, until `unwatch_uri`.

        The watch survives restarts of the server.

        Returns:
            Whether the server announces changes; False while it is not up.
        """
        return await self._keeper.watch_uri(uri)

    async def unwatch_uri(self, uri: str) -> None:
        """Stop publishing changes of a resource."""
        await self._keeper.unwatch_uri(uri)

    async def restarted_for_questions(self) -> bool:
        """See ServerKeeper."""
        return await self._keeper.restarted_for_questions()

    def _seconds(self, timeout: float | None) -> float | None:
        return self._keeper.call_seconds if timeout is None else timeout

    async def _send_read_only(self, send: Callable[[Client], Awaitable[R]]) -> R:
        """Send a read-only request; repeat it after a restart for questions."""
        try:
            return await self._send(send)
        except McpError as bad:
            if not Client.could_not_ask(bad) or not await self.restarted_for_questions():
                raise
        return await self._send(send)

    async def _send(self, send: Callable[[Client], Awaitable[R]]) -> R:
        supervised = await self._keeper.reached()
        if supervised is None:
            raise self._unreachable()
        try:
            return await self._send_to(supervised, send)
        finally:
            older = supervised.client.asks_under
            if older is not None and supervised is self._keeper.client:
                self._keeper.use_older_revision(supervised, older)

    async def _send_to(
        self, supervised: SupervisedClient, send: Callable[[Client], Awaitable[R]]
    ) -> R:
        with supervised.busy():
            try:
                result = await send(supervised.client)
                if too_deep(result):
                    raise ProtocolError("The answer is nested too deeply.")
                return result
            except InterlockError as bad:
                self._keeper.redactor.hide(bad)
                if isinstance(bad, Unreachable) and not isinstance(bad, TimedOut):
                    if supervised.is_closing and bad.exit_code is None:
                        raise self._unreachable() from None  # this host stopped it, and knows why
                    supervised.check_liveness(bad)
                raise

    def _unreachable(self) -> Unreachable:
        why = "" if self.words == STOPPED else self.words
        return Unreachable(f"The server {self.id} {_REASONS[self.state]}. {why}".rstrip())
