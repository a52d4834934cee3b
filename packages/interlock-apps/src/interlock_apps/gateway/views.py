"""Views: selections of servers and tools, each a server of its own at an endpoint of its own.

A view mounts the servers that all principals share. A view with servers of which each principal has
its own gives each principal a catalogue of its own, so that no list, cache or subscription of one
reaches another.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from interlock import (
    AnyResult,
    Caller,
    CallToolResult,
    Exchange,
    Extension,
    Feature,
    Handler,
    McpError,
    Mount,
    Offered,
    QuestionSettings,
    Server,
    ServerLimits,
    Source,
    Tasks,
    TextContent,
)
from interlock import types as t
from interlock.configs import Entry
from interlock.store import Store
from interlock.types.tasks import TASKS_EXTENSION

from .identity import principal_key
from .search import ToolSearch
from .settings import Settings, ViewSettings
from .state import ProtectsSources, ViewState
from .upstreams import Upstream, Upstreams

log = logging.getLogger("interlock_apps.gateway")

NAME: Final = "interlock-gateway"
"""The name of the gateway for clients."""

BETWEEN: Final = "__"
"""Stands between the prefix of a server and the name of a tool or prompt."""

_MOST_PRINCIPALS = 1000  # with a catalogue of their own, in one view
_PAGE = 2000  # items of a list on one page
_PERSONAL = frozenset(
    {
        "tools/list",
        "tools/call",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/directory/read",
        "completion/complete",
        "skills/list",
        "skills/get",
    }
)
"""The requests that a principal's own catalogue answers, besides subscriptions."""


def includes_tool(view: ViewSettings, entry: Entry, public: str, own: str) -> str:
    """Return why a view leaves a tool out; empty if it has it.

    Args:
        view: The settings of the view.
        entry: The server of the tool.
        public: The name of the tool in the view.
        own: The name that the server gave it.
    """
    if entry.tools is not None and not any(fnmatchcase(own, glob) for glob in entry.tools):
        return f"tools of the server are {list(entry.tools)}"
    for glob in entry.without:
        if fnmatchcase(own, glob):
            return f"the server is without {glob}"
    if view.tools is not None and not any(fnmatchcase(public, glob) for glob in view.tools):
        return f"its tools are {list(view.tools)}"
    for glob in view.without:
        if fnmatchcase(public, glob):
            return f"it is without {glob}"
    return ""


def _connect_name(server: str, prefix: str | None) -> str:
    return "connect" if prefix is not None else f"connect_{server}"


class UpstreamSource:
    """A connection of the gateway as a source. The gateway opens and closes it, not the mount.

    Args:
        upstream: The connection.
    """

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self.handle: Callable[[Exchange], Awaitable[AnyResult]] = upstream.handle

    @property
    def name(self) -> str:
        """The name of the server in the settings."""
        return self._upstream.name

    @property
    def offered(self) -> Offered | None:
        """The lists of the server, as they were last read."""
        return self._upstream.offered

    async def open(self) -> None:
        """Do nothing: the first request opens it."""

    async def aclose(self) -> None:
        """Do nothing: other views may use it."""

    def listen(self, changed: Callable[[], None]) -> Callable[[], object]:
        """Call `changed` whenever the lists have changed."""
        return self._upstream.listen(changed)


class ViewSource:
    """The part of a server that a view offers.

    Args:
        upstream: The connection.
        source: The connection with its protections.
        prefix: The prefix of tools and prompts in the view; None for none.
        settings: The settings of the view.
        reserved: The prefixes of the other servers of the view.
    """

    def __init__(
        self,
        upstream: Upstream,
        source: Source,
        prefix: str | None,
        settings: ViewSettings,
        reserved: Sequence[str] = (),
    ) -> None:
        self.upstream = upstream
        self._source = source
        self._prefix = prefix
        self._tools = settings.tools
        self._without = settings.without
        # A server without a prefix must not give its tool the name of another server's (shadowing).
        self._reserved = tuple(f"{name}{BETWEEN}" for name in reserved) if prefix is None else ()
        self._connect = _connect_name(upstream.name, prefix)
        self._read: Offered | None = None
        self._shown: Offered | None = None
        self.handle: Callable[[Exchange], Awaitable[AnyResult]] = source.handle
        if upstream.account is not None:
            self.handle = self._handle

    @property
    def name(self) -> str:
        """The name of the server in the settings."""
        return self._source.name

    @property
    def offered(self) -> Offered | None:
        """The lists; a tool to log in while they are unknown for want of a login."""
        if self._needs_connecting:
            return Offered(tools=(self._connect_tool(),))
        offered = self._source.offered
        if offered is not self._read:
            self._read = offered
            self._shown = None if offered is None else self._selected(offered)
        return self._shown

    @property
    def _needs_connecting(self) -> bool:
        return self.upstream.needs_login and self.upstream.offered is None

    async def open(self) -> None:
        """See Source."""
        await self._source.open()

    async def aclose(self) -> None:
        """See Source."""
        await self._source.aclose()

    def listen(self, changed: Callable[[], None]) -> Callable[[], object]:
        """See Source."""
        return self._source.listen(changed)

    async def _handle(self, x: Exchange) -> AnyResult:
        if self._needs_connecting and x.method == "tools/call" and x.params.name == self._connect:
            await self.upstream.log_in(x)
            words = f"Connected to {self.name}. Its tools are listed now."
            return CallToolResult(content=[TextContent(words)])
        return await self._source.handle(x)

    def _connect_tool(self) -> t.Tool:
        return t.Tool(
            name=self._connect,
            title=f"Connect {self.name}",
            description=(
                f"Let the user log in to {self.name}. Its tools appear after that. Call it when the"
                f" user wants something of {self.name}."
            ),
            input_schema={"type": "object", "properties": {}, "additionalProperties": False},
        )

    def _selected(self, offered: Offered) -> Offered:
        if self._tools is None and not self._without and not self._reserved:
            return offered
        return replace(
            offered,
            tools=[tool for tool in offered.tools if self._includes_tool(tool.name)],
            prompts=[
                one for one in offered.prompts if not self._leaves_out(self._public(one.name))
            ],
            resources=[one for one in offered.resources if not self._leaves_out(one.uri)],
            templates=[one for one in offered.templates if not self._leaves_out(one.uri_template)],
            skills=[one for one in offered.skills if not self._leaves_out(one.uri)],
        )

    def _public(self, name: str) -> str:
        return name if self._prefix is None else f"{self._prefix}{BETWEEN}{name}"

    def _includes_tool(self, name: str) -> bool:
        public = self._public(name)
        is_chosen = self._tools is None or any(fnmatchcase(public, glob) for glob in self._tools)
        return is_chosen and not self._leaves_out(public)

    def _leaves_out(self, name: str) -> bool:
        if self._reserved and name.startswith(self._reserved):
            log.warning("%s offers %r, a name of another server; it is left out", self.name, name)
            return True
        return any(fnmatchcase(name, glob) for glob in self._without)


class MountPlan(Struct, frozen=True, eq=False):
    """How one server is mounted in a catalogue.

    Attributes:
        upstream: The connection.
        entry: The server, as any client configures it.
        prefix: The prefix of tools and prompts; None for none.
        settings: The settings of the view.
        protections: What stands before the server; None for nothing.
        reserved: The prefixes of the other servers.
    """

    upstream: Upstream
    entry: Entry
    prefix: str | None
    settings: ViewSettings
    protections: ProtectsSources | None
    reserved: Sequence[str] = ()

    def is_same(self, other: MountPlan) -> bool:
        """Whether nothing has to be mounted anew."""
        mine = (self.prefix, self.settings.tools, self.settings.without, self.reserved)
        theirs = (other.prefix, other.settings.tools, other.settings.without, other.reserved)
        return (
            self.upstream is other.upstream
            and self.protections is other.protections
            and mine == theirs
        )


class MountedServers:
    """The servers that are mounted in one catalogue.

    Args:
        server: The server whose catalogue it is.
        view: The name of the view.
    """

    def __init__(self, server: Server, view: str) -> None:
        self.server = server
        self._view = view
        self._mounts: dict[str, tuple[MountPlan, Mount]] = {}
        self._cold: list[Upstream] = []

    async def apply(self, plans: Sequence[MountPlan]) -> None:
        """Mount what is new or has changed, and unmount what is gone. Running calls go on."""
        wanted = {plan.upstream.name: plan for plan in plans}
        had = dict(self._mounts)
        for name, (plan, mount) in list(self._mounts.items()):
            new = wanted.get(name)
            if new is None or not new.is_same(plan):
                del self._mounts[name]
                await self.server.unmount(mount)
        for name, plan in wanted.items():
            if name not in self._mounts:
                self._mounts[name] = plan, self._mount(plan)
        self._cold = [plan.upstream for plan in plans if not plan.upstream.was_tried]
        if had and had != self._mounts:
            # The lists of a server that was never opened are unknown: clients ask for them again.
            for what in ("tools", "prompts", "resources"):
                self.server.changed(what)

    def _mount(self, plan: MountPlan) -> Mount:
        inner: Source = UpstreamSource(plan.upstream)
        if plan.protections is not None:
            inner = plan.protections.protect(
                inner, server=plan.upstream.name, view=self._view, prefix=plan.prefix
            )
        source = _Armed(ViewSource(plan.upstream, inner, plan.prefix, plan.settings, plan.reserved))
        uris = [pattern for pattern in plan.settings.without if ":" in pattern]
        entry = plan.entry
        mount = self.server.mount(
            source, prefix=plan.prefix, tools=entry.tools, without=[*uris, *entry.without]
        )
        source.arm()
        return mount

    @property
    def left_out(self) -> list[str]:
        """Why features are missing."""
        return [words for _, mount in self._mounts.values() for words in mount.left_out]

    def prepare(self, x: Exchange) -> Awaitable[None] | None:
        """Open the servers that a request may be about and that were never opened; None if there is
        nothing to wait for.

        Requests that name no feature wait for nothing: a client that connects must not wait for the
        slowest server.
        """
        if not self._cold:
            return None
        if x.method not in _PERSONAL and not _subscribes(x):
            return None
        return self._prepare(x)

    async def _prepare(self, x: Exchange) -> None:
        # A server that waits for a login stays among them: another worker may have got it.
        self._cold = [one for one in self._cold if not one.was_tried]
        needed = self._cold
        if x.method in ("tools/call", "prompts/get"):
            name = x.params.name
            if x.method == "tools/call" and self.server.tools.get(name) is not None:
                return
            owner = self.owner_of(name)
            if owner is not None:
                needed = [owner] if owner in self._cold else []
        if needed:
            await asyncio.gather(*(_opened(one) for one in needed))
            self.server.settle_mounts()

    def owner_of(self, name: str) -> Upstream | None:
        """Return the server whose prefix a name has."""
        for plan, _ in self._mounts.values():
            if plan.prefix is not None and name.startswith(f"{plan.prefix}{BETWEEN}"):
                return plan.upstream
        return None

    async def log_in_for(self, x: Exchange) -> None:
        """Let the caller log in, if a call is for a tool of a server that needs it. Raises
        McpError.
        """
        name = x.params.name
        if self.server.tools.get(name) is not None:
            return
        owner = self.owner_of(name)
        if owner is not None and owner.needs_login:
            await owner.log_in(x)
            self.server.settle_mounts()


def _subscribes(x: Exchange) -> bool:
    """Whether a request is a subscription to resources."""
    return x.method == "subscriptions/listen" and bool(
        x.params.notifications.resource_subscriptions
    )


async def _opened(upstream: Upstream) -> None:
    try:
        await upstream.ensure()
    except McpError as bad:
        log.warning("%s is left out of a list: %s", upstream.name, bad)


class _Armed:
    """A source that shows its lists only after it is mounted: a name that is taken is left out and
    logged then, and stops nobody.
    """

    def __init__(self, source: ViewSource) -> None:
        self._source = source
        self._is_armed = False
        self._changed: list[Callable[[], None]] = []
        self.handle = source.handle

    @property
    def name(self) -> str:
        """See Source."""
        return self._source.name

    @property
    def offered(self) -> Offered | None:
        """See Source."""
        return self._source.offered if self._is_armed else None

    async def open(self) -> None:
        """See Source."""
        await self._source.open()

    async def aclose(self) -> None:
        """See Source."""
        await self._source.aclose()

    def listen(self, changed: Callable[[], None]) -> Callable[[], object]:
        """See Source."""
        self._changed.append(changed)
        return self._source.listen(changed)

    def arm(self) -> None:
        """Show the lists."""
        self._is_armed = True
        for changed in self._changed:
            changed()


class _PrincipalCatalogue:
    """The catalogue of one principal in a view."""

    def __init__(self, view: str, principal: str, questions: QuestionSettings) -> None:
        self.principal = principal
        self.server = Server(
            NAME,
            # Its tools can be tasks, which the view runs.
            extensions=[Extension(TASKS_EXTENSION)],
            limits=ServerLimits(page_size=_PAGE),
            questions=questions,
        )
        _keep_private(self.server)
        self.mounted = MountedServers(self.server, view)
        self.generation = -1
        self.requests = 0
        self.used = time.monotonic()
        self._entering = asyncio.Lock()
        self._is_entered = False

    async def enter(self) -> None:
        """Start the server, once."""
        async with self._entering:
            if not self._is_entered:
                await self.server.enter()
                self._is_entered = True

    async def aclose(self) -> None:
        """Stop the server."""
        async with self._entering:
            if self._is_entered:
                self._is_entered = False
                await self.server.leave()

    def release(self) -> None:
        """End a request that `View._acquire_catalogue` began."""
        self.requests -= 1
        self.used = time.monotonic()

    async def handle(self, x: Exchange) -> AnyResult:
        """Handle a request of the principal."""
        if (waiting := self.mounted.prepare(x)) is not None:  # a task runs again from here
            await waiting
        if x.method == "tools/call":
            await self.mounted.log_in_for(x)
        return await self.server.mounted_handler(x)


class _ViewTasks(Tasks):
    """The tasks of a view. Principals with a catalogue of their own have their tools there.

    Args:
        store: The store of tasks, or its URL.
        find: Returns the server with the catalogue of a caller; None for that of the view.
    """

    def __init__(self, store: str | Store, find: Callable[[Caller], Server | None]) -> None:
        super().__init__(store)
        self._server_of = find

    def server_for(self, caller: Caller) -> Any:
        """See Tasks."""
        return self._server_of(caller) or super().server_for(caller)


class View:
    """One view of the gateway: a server for clients.

    Args:
        name: The name of the view; empty for the default view.
        lifespan: The lifespan of the gateway, which the server of each view enters.
        questions: How calls ask, and the keys that seal what travels through clients.
        tasks: The store of tasks, or its URL.
    """

    def __init__(
        self,
        name: str,
        *,
        lifespan: Callable[[Server], Any],
        questions: QuestionSettings,
        tasks: str | Store = "memory:",
    ) -> None:
        self.name = name
        self.settings = ViewSettings()
        self._questions = questions
        self._search = ToolSearch(self._count_tools)
        self._catalogues: dict[str, _PrincipalCatalogue] = {}
        self._generation = 0
        self._is_personal = False
        self._plans: Callable[[str], list[MountPlan]] = lambda principal: []
        forwarded = _ViewTasks(tasks, self._server_of)
        self.server = Server(
            NAME,
            lifespan=lifespan,
            middleware=[self._prepare, self._search, forwarded, self._by_principal],
            extensions=[forwarded],
            limits=ServerLimits(page_size=_PAGE),
            questions=questions,
            capabilities=_everything,
        )
        _keep_private(self.server)
        self._mounted = MountedServers(self.server, name)
        self._closing: set[asyncio.Task[None]] = set()

    # -- settings ----------------------------------------------------------------------------------

    async def apply(
        self,
        settings: Settings,
        upstreams: Mapping[str, Upstreams],
        protections: ProtectsSources | None,
    ) -> None:
        """Use new settings. Running calls go on with the old ones."""
        self.settings = settings.views[self.name]
        self._search.mode = self.settings.search
        mine = [upstreams[name] for name in settings.servers_of(self.name)]
        self._is_personal = any(one.settings.is_personal for one in mine)

        prefixes = [(one, one.settings.prefix_of(one.name)) for one in mine]

        def plans(principal: str) -> list[MountPlan]:
            return [
                MountPlan(
                    one.of(principal),
                    one.entry,
                    one.settings.prefix_of(one.name),
                    self.settings,
                    protections,
                    [prefix for other, prefix in prefixes if other is not one and prefix],
                )
                for one in mine
            ]

        self._plans = plans
        self._generation += 1
        await self._mounted.apply([] if self._is_personal else plans(""))
        for catalogue in list(self._catalogues.values()):
            if self._is_personal:
                await self._follow(catalogue)
            else:
                await self._drop(catalogue)

    async def _follow(self, catalogue: _PrincipalCatalogue) -> None:
        if catalogue.generation != self._generation:
            catalogue.generation = self._generation
            await catalogue.mounted.apply(self._plans(catalogue.principal))

    # -- requests ----------------------------------------------------------------------------------

    def _prepare(self, handler: Handler) -> Handler:
        """Open the servers that a request needs before anything else looks at it."""

        def handle(x: Exchange) -> Awaitable[AnyResult]:
            if self._is_personal:
                return _after(self._prepare_personal(x), handler, x)
            waiting = self._mounted.prepare(x)
            return handler(x) if waiting is None else _after(waiting, handler, x)

        return handle

    def _by_principal(self, handler: Handler) -> Handler:
        """Let the catalogue of the principal answer, if principals have their own."""

        def handle(x: Exchange) -> Awaitable[AnyResult]:
            if not self._is_personal:
                # A task of another worker runs again from here.
                waiting = self._mounted.prepare(x)
                return handler(x) if waiting is None else _after(waiting, handler, x)
            if x.method in _PERSONAL or (
                x.method == "subscriptions/listen"
                and getattr(x.params.notifications, "taskIds", None) is None
            ):
                return self._handle_personal(x)
            return handler(x)

        return handle

    async def _prepare_personal(self, x: Exchange) -> None:
        if x.method in _PERSONAL:
            catalogue = await self._acquire_catalogue(principal_key(x.caller))
            try:
                if (waiting := catalogue.mounted.prepare(x)) is not None:
                    await waiting
            finally:
                catalogue.release()

    async def _handle_personal(self, x: Exchange) -> AnyResult:
        catalogue = await self._acquire_catalogue(principal_key(x.caller))
        try:
            return await catalogue.handle(x)
        finally:
            catalogue.release()

    async def _acquire_catalogue(self, principal: str) -> _PrincipalCatalogue:
        """Return the catalogue of a principal for one request, which ends with `release`."""
        catalogue = self._catalogues.get(principal)
        is_new = catalogue is None
        if catalogue is None:
            catalogue = _PrincipalCatalogue(self.name, principal, self._questions)
            self._catalogues[principal] = catalogue
        # It is in use from here on: neither this request nor another one drops it to make room
        # while it is filled.
        catalogue.requests += 1
        try:
            if is_new:
                self._make_room()
            await self._follow(catalogue)
            await catalogue.enter()
        except BaseException:
            catalogue.release()
            raise
        return catalogue

    def _make_room(self) -> None:
        """Drop the catalogues that were not used for the longest time, if there are too many."""
        excess = len(self._catalogues) - _MOST_PRINCIPALS
        if excess <= 0:
            return
        idle = [one for one in self._catalogues.values() if not one.requests]
        for oldest in sorted(idle, key=lambda one: one.used)[:excess]:
            del self._catalogues[oldest.principal]
            task = asyncio.get_running_loop().create_task(self._drop(oldest))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _drop(self, catalogue: _PrincipalCatalogue) -> None:
        if self._catalogues.get(catalogue.principal) is catalogue:
            del self._catalogues[catalogue.principal]
        await catalogue.mounted.apply([])
        await catalogue.aclose()

    def _server_of(self, caller: Caller) -> Server | None:
        """Return the server with the catalogue of a caller; None if that is the view's."""
        if not self._is_personal:
            return None
        catalogue = self._catalogues.get(principal_key(caller))
        return None if catalogue is None else catalogue.server

    def _count_tools(self, x: Exchange) -> int:
        if not self._is_personal:
            return len(self.server.tools)
        catalogue = self._catalogues.get(principal_key(x.caller))
        return 0 if catalogue is None else len(catalogue.server.tools)

    # -- state and end -----------------------------------------------------------------------------

    def state(self, settings: Settings) -> ViewState:
        """Return the state of the view."""
        return ViewState(
            name=self.name,
            path=settings.path_of(self.name),
            servers=settings.servers_of(self.name),
            scopes=self.settings.scopes,
            left_out=self._mounted.left_out,
            principals=len(self._catalogues),
        )

    async def aclose(self) -> None:
        """Drop all catalogues, and unmount all servers."""
        for catalogue in list(self._catalogues.values()):
            await self._drop(catalogue)
        await self._mounted.apply([])


def _keep_private(server: Server) -> None:
    """Let no cache share the lists of a server: a server behind may have given its own for the
    gateway alone, and a cache hint must not become wider on the way.
    """

    @server.visible(_no_difference)
    def sees(key: str, feature: Feature) -> bool:
        return True


def _no_difference(caller: Caller) -> str:
    return ""


def _everything() -> t.ServerCapabilities:
    """The capabilities of a view: its servers are opened later, and may offer anything."""
    listed = t.ListChangedCapability(list_changed=True)
    return t.ServerCapabilities(
        completions={},
        prompts=listed,
        resources=t.ResourcesCapability(subscribe=True, list_changed=True),
        tools=listed,
    )


async def _after(waiting: Awaitable[None], handler: Handler, x: Exchange) -> AnyResult:
    await waiting
    return await handler(x)
