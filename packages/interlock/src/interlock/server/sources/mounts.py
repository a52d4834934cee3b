"""All mounts of one server: their start and end, and the handlers of requests that may name a
mounted feature.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from msgspec.structs import replace

from ... import types as t
from ...exchange import AnyResult, Caller, Exchange, Handler
from ...protocol.server import MOST_SUBSCRIPTIONS
from ...source import Source
from ...wire.revisions import error_code
from ..changes import Change, Listener
from ..handlers import Handlers, resumed_from
from .in_process import ServerSource
from .instructions import joined
from .mount import FrontServer, Mount, MountOptions
from .routes import MountRoute, route_of

_NOT_FOUND = frozenset({t.RESOURCE_NOT_FOUND, t.INVALID_PARAMS, t.METHOD_NOT_FOUND})


class Mounts:
    """The mounts of one server.

    A server without mounts has none of this: the first mount puts these handlers in the place of
    the server's own.
    """

    def __init__(self, server: FrontServer, handlers: Handlers) -> None:
        self._server = server
        self._handlers = handlers
        self._catalogue = server.catalogue
        self._tools = server.catalogue.tools
        self._visibility = server.catalogue.visibility
        self._mounts: list[Mount] = []
        self._open: list[Mount] = []
        self._opening = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        handlers.put(
            {
                "tools/call": self._call_tool,
                "prompts/get": self._get_prompt,
                "resources/read": self._read_resource,
                "completion/complete": self._complete,
                "subscriptions/listen": self._listen,
                **{
                    method: partial(self._list, handlers.method(method))
                    for method in (
                        "tools/list",
                        "prompts/list",
                        "resources/list",
                        "resources/templates/list",
                        "server/discover",
                    )
                },
            }
        )
        self._has_skills = False
        self._is_stale = False
        self._instructions = server.identity.instructions  # of the server itself
        self._joined = self._instructions  # as last set here

    def __iter__(self) -> Iterator[Mount]:
        return iter(self._mounts)

    def __len__(self) -> int:
        return len(self._mounts)

    # -- adding, opening and closing ---------------------------------------------------------------

    def add(self, source: Source, options: MountOptions) -> Mount:
        """Mount a source. Raises ValueError if a feature of it cannot be included."""
        mount = Mount(source, options, self._server, self._note_stale)
        try:
            mount.refresh(strict=True)
        except BaseException:
            mount.remove()
            raise
        self._mounts.append(mount)
        self._give_way()
        self._update()
        if self._handlers.dev:
            self.explain(True)
        if self._loop is not None:
            self._soon(self.open())
        return mount

    async def remove(self, mount: Mount) -> None:
        """Remove the features of a mount, and close its source. Raises ValueError."""
        self._mounts.remove(mount)
        mount.remove()
        for other in self._mounts:
            if other.left_out or other.outdated:
                other.refresh()
        self._update()
        if mount in self._open:
            self._open.remove(mount)
            await mount.source.aclose()

    async def open(self) -> None:
        """Open all sources that are not open, at the same time. Raises what one of them raises."""
        async with self._opening:
            self._loop = asyncio.get_running_loop()
            new = [mount for mount in self._mounts if mount not in self._open]
            results = await asyncio.gather(
                *(self._open_source(mount) for mount in new), return_exceptions=True
            )
            failed = next((bad for bad in results if bad is not None), None)
            if failed is not None:
                await self._close()
                raise failed
            self.settle()
            if any(mount.source.offered is None for mount in new):
                # What it offers is not known yet. A client learns the kinds only at the beginning.
                for features in (
                    self._catalogue.tools,
                    self._catalogue.prompts,
                    self._catalogue.resources,
                ):
                    features.had = True

    async def _open_source(self, mount: Mount) -> None:
        await mount.source.open()
        self._open.append(mount)

    async def close(self) -> None:
        """Close all sources."""
        for task in list(self._tasks):
            task.cancel()
        async with self._opening:
            await self._close()

    async def _close(self) -> None:
        self._loop = None
        mounts = self._open
        self._open = []
        results = await asyncio.gather(
            *(mount.source.aclose() for mount in mounts), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def _soon(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def explain(self, on: bool) -> None:
        """Turn the development mode of the servers in this process on or off."""
        for mount in self._mounts:
            if isinstance(mount.source, ServerSource):
                mount.source.server.dev = on

    def _note_stale(self) -> None:
        """Follow the changes of a source soon: in the event loop, or else at the next request."""
        if self._is_stale:
            return
        self._is_stale = True
        self._catalogue.tell_observers()  # a server that has mounted this one
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.settle)

    def settle(self) -> None:
        """Follow all changes of the sources. What one source no longer offers, another may."""
        if not self._is_stale:
            return
        self._is_stale = False
        stale = [mount for mount in self._mounts if mount.is_stale]
        for mount in stale:
            mount.refresh()
        for mount in self._mounts:
            if (mount.left_out or mount.outdated) and mount not in stale:
                mount.refresh()
        self._give_way()
        self._update()

    def _give_way(self) -> None:
        """Let mounts know that others have taken over features, with a higher version."""
        if any(mount.took_over for mount in self._mounts):
            for mount in self._mounts:
                mount.refresh()

    def _update(self) -> None:
        """Offer what the mounts offer together."""
        identity = self._server.identity
        if identity.instructions != self._joined:  # the server itself has new ones
            self._instructions = identity.instructions
        instructions = self._joined = joined(self._instructions, self._mounts)
        if instructions != identity.instructions:
            identity.instructions = instructions
            self._catalogue.tell_observers()  # a server that has mounted this one
        self._catalogue.completions.forwarded = any(mount.completes for mount in self._mounts)
        if not self._has_skills and any(mount.skill_roots() for mount in self._mounts):
            self._has_skills = True
            own = self._handlers.method
            self._handlers.put(
                {
                    "skills/list": partial(self._list, own("skills/list")),
                    "skills/get": partial(self._get_skill, own("skills/get")),
                    "resources/directory/read": partial(
                        self._read_directory, own("resources/directory/read")
                    ),
                }
            )

    # -- requests ----------------------------------------------------------------------------------

    async def _call_tool(self, x: Exchange) -> AnyResult:
        if self._is_stale:
            self.settle()
        route = route_of(self._tools.get(x.params.name))
        if route is None:
            return await self._handlers.call_tool(x)
        self._handlers.find_tool(x)
        return await route.call_tool(x)

    async def _get_prompt(self, x: Exchange) -> AnyResult:
        self.settle()
        route = route_of(self._catalogue.prompts.get(x.params.name))
        if route is None:
            return await self._handlers.get_prompt(x)
        self._visibility.prompt(x)
        return await route.get_prompt(x)

    async def _complete(self, x: Exchange) -> AnyResult:
        self.settle()
        route = route_of(self._visibility.completed(x))
        if route is None:
            return await self._handlers.complete(x)
        try:
            return await route.complete(x)
        except t.McpError as bad:
            if bad.code != t.METHOD_NOT_FOUND:
                raise
            # another source completes, and therefore this server declares that it does
            return t.CompleteResult(completion=t.Completion(values=[]))

    async def _list(self, own: Handler, x: Exchange) -> AnyResult:
        self.settle()
        return await own(x)

    async def _read_resource(self, x: Exchange) -> AnyResult:
        self.settle()
        uri: str = x.params.uri
        found = self._visibility.behind(uri)
        if found is None:
            return await self._read_unlisted(x, uri)
        route = route_of(found.feature)
        if route is None:
            return await self._handlers.read_resource(x)
        self._visibility.resource(x)
        return await route.send_uri(x)

    async def _read_unlisted(self, x: Exchange, uri: str) -> AnyResult:
        """Read a resource that no source lists, such as the target of a link in a result, from the
        first source that has it.
        """
        self._visibility.require("resources", x)
        for route in self._possible(uri):
            try:
                return await route.send_uri(x)
            except t.McpError as bad:
                if bad.code not in _NOT_FOUND:
                    raise
        raise t.McpError(
            error_code("resource_not_found", x.caller.revision),
            f"Resource not found: {uri}",
            {"uri": uri},
        )

    def _possible(self, uri: str) -> list[MountRoute]:
        """Return the routes to sources that may have an unlisted resource, the likely one first."""
        found = [mount for mount in self._mounts if mount.includes_unlisted(mount.uris.own(uri))]
        found.sort(key=lambda mount: not any(uri.startswith(f"{r}/") for r in mount.skill_roots()))
        return [mount.unlisted() for mount in found]

    async def _get_skill(self, own: Handler, x: Exchange) -> AnyResult:
        return await self._own_or_unlisted(own, x)

    async def _read_directory(self, own: Handler, x: Exchange) -> AnyResult:
        return await self._own_or_unlisted(own, x)

    async def _own_or_unlisted(self, own: Handler, x: Exchange) -> AnyResult:
        """Handle a request of the skills extension, by the server itself or by a source."""
        self.settle()
        try:
            return await own(x)
        except t.McpError as bad:
            if bad.code != t.INVALID_PARAMS:
                raise
            unknown = bad
        for route in self._possible(x.params.uri):
            try:
                return await route.send_uri(x)
            except t.McpError as bad:
                if bad.code not in _NOT_FOUND:
                    raise
        raise unknown

    # -- subscriptions -----------------------------------------------------------------------------

    def _listen(self, x: Exchange) -> Awaitable[AnyResult]:
        self.settle()
        uris = x.params.notifications.resource_subscriptions
        owned: dict[Mount, list[str]] = {}
        if uris is not None and len(uris) > MOST_SUBSCRIPTIONS:
            return self._handlers.listen(x)  # which refuses it
        for uri in uris or ():
            if (mount := self._owner(uri, x.caller)) is not None:
                owned.setdefault(mount, []).append(uri)
        if not owned:
            return self._handlers.listen(x)
        return self._listen_at_sources(x, owned)

    def _owner(self, uri: str, caller: Caller) -> Mount | None:
        """Return the mount that a URI belongs to; None if the server itself has it, or the caller
        does not see it.
        """
        if not self._visibility.can_watch(uri, caller):
            return None
        found = self._visibility.behind(uri)
        route = None if found is None else route_of(found.feature)
        if route is None:
            return None
        return next((mount for mount in self._mounts if mount.uris is route.uris), None)

    async def _listen_at_sources(self, x: Exchange, owned: dict[Mount, list[str]]) -> AnyResult:
        """Serve a subscription to resources of sources. A resource that its source does not serve
        is not granted.
        """
        feed = _Feed()
        async with AsyncExitStack() as stack:
            served: set[str] = set()
            for mount, uris in owned.items():
                subscribed = self._subscribed(mount, uris, x, feed.receive)
                served.update(await stack.enter_async_context(subscribed))
            if resumed_from(x.params.meta):
                # A source has no position to resume from: what changed since then is unknown.
                for uri in served:
                    feed.receive(Change("resource", uri))
            mounted = {uri for uris in owned.values() for uri in uris}
            wanted = x.params.notifications
            granted = [
                uri for uri in wanted.resource_subscriptions if uri not in mounted or uri in served
            ]
            filter = replace(wanted, resource_subscriptions=granted)
            y = replace(x, params=replace(x.params, notifications=filter))
            return await self._handlers.listen(y, feed.join)

    @asynccontextmanager
    async def _subscribed(
        self, mount: Mount, uris: list[str], x: Exchange, receive: Callable[[Change], None]
    ) -> AsyncIterator[list[str]]:
        """Subscribe to resources of one source while a block runs. Yields those that it serves."""
        acknowledged: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        shown = mount.uris.shown

        def notify(method: str, params: Any) -> None:
            if method == "notifications/resources/updated":
                receive(Change("resource", shown(params.uri)))
            elif method == "notifications/subscriptions/acknowledged" and not acknowledged.done():
                served = params.notifications.resource_subscriptions or ()
                acknowledged.set_result([shown(uri) for uri in served])

        own = [mount.uris.own(uri) for uri in uris]
        filter = t.SubscriptionFilter(resource_subscriptions=own)
        params = t.SubscriptionsListenRequestParams(notifications=filter)
        listening = asyncio.ensure_future(
            mount.source.handle(Exchange("subscriptions/listen", params, x.caller, notify=notify))
        )
        both: set[asyncio.Future[Any]] = {listening, acknowledged}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            yield acknowledged.result() if acknowledged.done() else []
        finally:
            acknowledged.cancel()
            listening.cancel()
            await asyncio.wait({listening})
            if not listening.cancelled():
                listening.exception()


class _Feed:
    """Passes the changes that sources announce to the listener of one subscription."""

    def __init__(self) -> None:
        self._listener: Listener | None = None
        self._early: list[Change] = []

    def receive(self, change: Change) -> None:
        """Receive a change."""
        if self._listener is None:
            self._early.append(change)
        else:
            self._listener.receive(change)

    def join(self, listener: Listener) -> None:
        """Set the listener, which gets the changes received so far."""
        self._listener = listener
        for change in self._early:
            listener.receive(change)
        self._early.clear()
