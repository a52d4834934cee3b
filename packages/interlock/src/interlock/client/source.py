"""A client as a source: the features of its server, which another server offers as its own.

The client is kept open and its lists are kept current while the source is open. A server that
cannot be reached is tried again with growing pauses; its last lists stay.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from .. import types as t
from ..exchange import AnyResult, Caller, Exchange
from ..extension import Extension
from ..logs import limited
from ..skills.messages import EXTENSION as SKILLS_EXTENSION
from ..source import Offered, ToolTasks
from ..tasks.forwarding import ForwardedCalls, Upstream
from ..transport.list_pages import ListLimits
from ..types.apps import APP_MIME_TYPE, UI_EXTENSION
from ..wire.revisions import METHODS
from .answers import Answers
from .optional_lists import unless_missing
from .shared_subscriptions import SharedSubscriptions

if TYPE_CHECKING:
    from ..skills.entries import SkillEntry
    from .skills import SkillListing

R = TypeVar("R", bound=t.Result)

log = limited("interlock.client")

PATIENCE = 10.0
"""The longest time that `open` waits for a server, in seconds. It goes on trying after that."""

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_REREAD = 60.0  # seconds between readings of lists whose server announces no changes
_LISTS: tuple[Literal["tools", "prompts", "resources"], ...] = ("tools", "prompts", "resources")


_MAY_BE_TASK = ToolTasks("optional", math.inf)  # once the server behind makes a call one


class MountedClient(Upstream, Protocol):
    """A client, as far as its source needs it."""

    timeout: float | None

    @property
    def label(self) -> str:
        """The target, without anything secret."""
        ...

    @property
    def caller(self) -> Caller:
        """The information and capabilities of the client."""
        ...

    @property
    def connected(self) -> bool:
        """Whether the client is open."""
        ...

    @property
    def token_refreshes(self) -> Mapping[str, int]:
        """How often the OAuth tokens of the server were refreshed, by outcome."""
        ...

    @property
    def offers_tasks(self) -> bool:
        """Whether the server makes calls tasks."""
        ...

    @property
    def server_capabilities(self) -> t.ServerCapabilities:
        """The capabilities of the server."""
        ...

    @property
    def instructions(self) -> str | None:
        """The instructions of the server."""
        ...

    @property
    def list_limits(self) -> ListLimits:
        """The maximum size of a list over all its pages."""
        ...

    async def open(self) -> None:
        """Connect."""
        ...

    async def aclose(self) -> None:
        """Disconnect."""
        ...

    async def send(self, exchange: Exchange) -> AnyResult:
        """Send an exchange."""
        ...

    async def request(self, method: str, params: t.Params, kind: type[R]) -> R:
        """Send a request and return its result."""
        ...

    async def read_resource(self, uri: str) -> t.ReadResourceResult:
        """Read a resource."""
        ...

    def invalidate(self, method: str, params: Any) -> None:
        """Drop cached responses that a change notification makes stale."""
        ...

    async def list_tools(self) -> list[t.Tool]:
        """Return all tools."""
        ...

    async def list_prompts(self) -> list[t.Prompt]:
        """Return all prompts."""
        ...

    async def list_resources(self) -> list[t.Resource]:
        """Return all resources."""
        ...

    async def list_resource_templates(self) -> list[t.ResourceTemplate]:
        """Return all resource templates."""
        ...

    async def list_skills(self) -> SkillListing:
        """Return all skills."""
        ...

    def watch(
        self, *, tools: bool, prompts: bool, resources: bool
    ) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        """Subscribe to changes of lists."""
        ...


class ClientSource:
    """The source of a client. Only the source opens and closes the client.

    Args:
        client: The client.
        patience: The longest time that `open` waits for the server, in seconds.
        sleep: Waits for a number of seconds.
    """

    def __init__(
        self,
        client: MountedClient,
        *,
        patience: float = PATIENCE,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._patience = patience
        self._sleep = sleep
        self._lists: Offered | None = None
        self._changed: dict[object, Callable[[], None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        self._pause = _FIRST_PAUSE  # before the next attempt, in seconds
        self._subscriptions = SharedSubscriptions(client, sleep)
        self._calls = ForwardedCalls(client)
        self.problem: str | None = None
        """Why the server cannot be used now; None if it can."""

    @property
    def name(self) -> str:
        """The target of the client, without anything secret."""
        return self._client.label

    @property
    def token_refreshes(self) -> Mapping[str, int]:
        """How often the OAuth tokens of the server were refreshed, by outcome."""
        return self._client.token_refreshes

    @property
    def offered(self) -> Offered | None:
        """The lists as they were read last."""
        return self._lists

    async def open(self) -> None:
        """Open the client and read its lists; return when that is done or has failed, or after
        `patience` seconds.
        """
        self._tried = asyncio.Event()
        self._task = asyncio.create_task(self._keep_open())
        try:
            async with asyncio.timeout(self._patience):
                await self._tried.wait()
        except TimeoutError:
            self.problem = self.problem or "it has not answered yet"
            log.warning("%s: %s", self.name, self.problem)
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Close the client."""
        task = self._task
        self._task = None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        await self._subscriptions.aclose()
        await self._client.aclose()

    def listen(self, changed: Callable[[], None]) -> Callable[[], object]:
        """Call `changed` whenever `offered` has changed."""
        key = object()
        self._changed[key] = changed
        return lambda: self._changed.pop(key, None)

    def handle(self, x: Exchange, /) -> Awaitable[AnyResult]:
        """Forward a request."""
        client = self._client
        if not client.connected:
            return self._open_and_handle(x)
        if x.method == "tools/call" and client.offers_tasks:
            return self._calls.call(x)
        if x.method == "subscriptions/listen":
            return self._subscriptions.listen(x)
        return client.send(x)

    async def _open_and_handle(self, x: Exchange) -> AnyResult:
        if self._task is None:
            raise t.Unreachable(f"The client of {self.name} is closed.")
        await self._client.open()
        return await self.handle(x)

    # -- keeping the lists current -----------------------------------------------------------------

    async def _keep_open(self) -> None:
        while True:
            try:
                await self._client.open()
                await self._follow()
            except Exception as bad:  # whatever it is, it may be over at the next attempt
                self.problem = str(bad) or type(bad).__name__
                log.warning("%s cannot be used: %s", self.name, self.problem)
                self._tried.set()
            pause = self._pause
            self._pause = min(pause * 2, _LONGEST_PAUSE)
            await self._sleep(pause)

    async def _follow(self) -> None:
        """Read the lists, and read them again when they change, until the subscription ends."""
        capabilities = self._client.server_capabilities
        announced = {
            what: bool(getattr(getattr(capabilities, what), "list_changed", False))
            for what in _LISTS
        }
        if not any(announced.values()):
            await self._read()
            await self._sleep(_REREAD)
            return
        async with self._client.watch(**announced) as changes:
            await self._read()  # after the subscription began: no change is missed
            async for _ in changes:
                await self._read()

    async def _read(self) -> None:
        lists = await self._all_lists()
        self.problem = None
        self._pause = _FIRST_PAUSE
        if lists != self._lists:
            self._lists = lists
            for changed in list(self._changed.values()):
                changed()
        self._tried.set()

    async def _all_lists(self) -> Offered:
        client = self._client
        has = client.server_capabilities
        for what in _LISTS:  # what was cached before an interruption may be out of date
            method = f"notifications/{what}/list_changed"
            client.invalidate(method, METHODS[method].params())
        tools = None
        prompts = None
        resources = None
        templates = None
        if has.tools is not None:
            tools = await unless_missing(client.list_tools())
        if has.prompts is not None:
            prompts = await unless_missing(client.list_prompts())
        if has.resources is not None:
            resources = await unless_missing(client.list_resources())
            templates = await unless_missing(client.list_resource_templates())
        skills: list[SkillEntry] = []
        if SKILLS_EXTENSION in (has.extensions or {}):
            skills = [skill.entry for skill in await client.list_skills()]
        return Offered(
            instructions=client.instructions,
            tools=tools or (),
            resources=resources or (),
            templates=templates or (),
            prompts=prompts or (),
            skills=skills,
            completions=has.completions is not None,
            tasks=await self._tasks_of(tools or []),
        )

    async def _tasks_of(self, tools: Sequence[t.Tool]) -> dict[str, ToolTasks]:
        """Return which tools can be tasks. A tool that can only be one is waited for here, for
        callers without tasks.
        """
        support = {tool.name: await self._client.task_support(tool.name) for tool in tools}
        return {name: _MAY_BE_TASK for name, kind in support.items() if kind != "forbidden"}


def forwarding_answers(extensions: Sequence[Extension]) -> Answers:
    """Return the answers of a client whose server may ask anything: its questions go to whoever
    made the call.

    Args:
        extensions: The extensions that the client declares itself.
    """
    shows_apps = any(extension.id == UI_EXTENSION for extension in extensions)
    return Answers(
        elicit=_nobody,
        sample=_nobody,
        roots=_nobody,
        extensions=None if shows_apps else {UI_EXTENSION: {"mimeTypes": [APP_MIME_TYPE]}},
    )


def _nobody(*question: object) -> None:
    """Refuse a question that belongs to no call."""
    raise t.McpError(t.INTERNAL_ERROR, "It cannot be told which call this question belongs to.")
