"""Subscriptions of a client to changes, under every revision."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Raw, Struct
from msgspec.structs import replace

from .. import types as t
from ..exchange import AnyResult, Exchange, Notify, silent
from ..logs import limited
from ..meta_keys import SINCE
from ..wire.codec import decode
from ..wire.jsonrpc import encode_json
from ..wire.revisions import METHODS, Era
from .extensions import ClientExtensions
from .interface import OpenClient

log = limited("interlock.client")

_MOST_HELD = 8 * 1024 * 1024  # bytes of changes that the caller has not fetched
_CHANGE = 200  # bytes of a change, besides its URI
_KINDS: dict[str, Literal["tools", "prompts", "resources", "resource"]] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
    "notifications/resources/updated": "resource",
}
_METHODS = {kind: method for method, kind in _KINDS.items()}


class Changed(Struct, frozen=True):
    """A change at the server: of one of the lists, or ("resource") of the content at `uri`."""

    kind: Literal["tools", "prompts", "resources", "resource"]
    uri: str | None = None


class Watch:
    """A subscription. Iterate over it to get the changes.

    `honoured` is the part of the requested filter that the server grants (`LSN-06`). A change that
    is queued already is not queued twice.
    """

    def __init__(
        self,
        client: OpenClient,
        wanted: t.SubscriptionFilter,
        others: set[Watch],
        unasked: Notify = silent,
    ) -> None:
        self.wanted = wanted
        self.honoured = t.SubscriptionFilter()
        self._client = client
        self._others = others
        self._unasked = unasked  # the handler of the notifications of extensions
        self._pending: dict[Changed, None] = {}
        self._held = 0  # bytes of the queue
        self._dropped = 0
        self._stirred = asyncio.Event()
        self._acknowledged = asyncio.Event()
        self._over: BaseException | None = None
        self._ended = False
        self._task: asyncio.Task[None] | None = None

    def __aiter__(self) -> AsyncIterator[Changed]:
        return self

    async def __anext__(self) -> Changed:
        """Return the next change. Raises StopAsyncIteration once the server has ended the
        subscription, and Unreachable if the connection is lost.
        """
        while not self._pending:
            if self._over is not None:
                raise self._over
            if self._ended:
                raise StopAsyncIteration
            self._stirred.clear()
            await self._stirred.wait()
        change = next(iter(self._pending))
        del self._pending[change]
        self._held -= _CHANGE + len(change.uri or "")
        if not self._pending and self._dropped:
            log.warning("%d changes were dropped", self._dropped)
            self._dropped = 0
        return change

    def receive(self, method: str, params: Any) -> None:
        """Process a notification."""
        self._client.invalidate(method, params)
        if method == "notifications/subscriptions/acknowledged":
            self.honoured = self._granted(params.notifications)
            self._acknowledged.set()
        elif (kind := _KINDS.get(method)) is not None and self._wants(
            kind, getattr(params, "uri", None)
        ):
            self._note(Changed(kind, getattr(params, "uri", None)))
            self._stirred.set()

    def _granted(self, granted: t.SubscriptionFilter) -> t.SubscriptionFilter:
        """Return a granted filter without the keys of extensions, unless they were requested."""
        if type(self.wanted) is not t.SubscriptionFilter:
            return granted
        core = t.SubscriptionFilter.__struct_fields__
        return t.SubscriptionFilter(**{name: getattr(granted, name) for name in core})

    def _receive_of_subscription(self, method: str, params: Any) -> None:
        """Process a notification of the subscription. Those of extensions have handlers of their
        own.
        """
        self.receive(method, params)
        if method not in METHODS:
            self._unasked(method, params)

    def _note(self, change: Changed) -> None:
        size = _CHANGE + len(change.uri or "")
        if change in self._pending:
            return
        if self._held + size > _MOST_HELD:
            self._dropped += 1
            if self._dropped == 1:
                log.warning("changes are dropped: more than %d bytes of them wait", _MOST_HELD)
            return
        self._pending[change] = None
        self._held += size

    def _wants(self, kind: str, uri: str | None) -> bool:
        wanted = self.wanted
        if kind == "resource":
            watched = wanted.resource_subscriptions or ()
            return uri is not None and any(
                uri == w or uri.startswith(f"{w.rstrip('/')}/") for w in watched
            )
        return bool(
            {"tools": wanted.tools_list_changed, "prompts": wanted.prompts_list_changed}.get(
                kind, wanted.resources_list_changed
            )
        )

    async def open(self) -> None:
        """Subscribe, and return once the server has acknowledged the filter.

        Raises McpError if the server rejects the subscription, Unreachable if the connection is
        lost, and TimedOut.
        """
        if self._client.caller.era is Era.STATELESS:
            self._task = asyncio.create_task(self._listen())
            acknowledged = asyncio.ensure_future(self._acknowledged.wait())
            try:
                done, _ = await asyncio.wait(
                    {self._task, acknowledged},
                    timeout=self._client.timeout,
                    return_when=asyncio.FIRST_COMPLETED,
                )
            finally:
                acknowledged.cancel()
            if not done:
                raise t.TimedOut(
                    "The server did not acknowledge the subscription within"
                    f" {self._client.timeout:g} seconds."
                )
            if self._over is not None and not self._acknowledged.is_set():
                raise self._over
        else:
            await self._subscribe()

    async def close(self) -> None:
        """Unsubscribe."""
        self._ended = True
        self._stirred.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        elif self._client.connected:
            for uri in self.honoured.resource_subscriptions or ():
                if any(
                    uri in (other.wanted.resource_subscriptions or ()) for other in self._others
                ):
                    # to the server this client has one subscription, and another watch still needs
                    # it (`LSN-07`)
                    continue
                with contextlib.suppress(t.InterlockError):
                    await self._client.request(
                        "resources/unsubscribe", t.UnsubscribeRequestParams(uri=uri), t.EmptyResult
                    )

    def lose(self, why: BaseException) -> None:
        """Handle the loss of the connection."""
        self._over = self._over or why
        self._stirred.set()

    async def _listen(self) -> None:
        params = t.SubscriptionsListenRequestParams(notifications=self.wanted)
        try:
            await self._client.send(
                Exchange(
                    "subscriptions/listen",
                    params,
                    self._client.caller,
                    notify=self._receive_of_subscription,
                )
            )
        except Exception as bad:
            self._over = bad
        finally:
            self._ended = True
            self._stirred.set()

    async def _subscribe(self) -> None:
        """Subscribe in the handshake era: list changes are always sent, resources are subscribed to
        one by one.
        """
        capabilities = self._client.server_capabilities
        granted: list[str] = []
        self.honoured = t.SubscriptionFilter(
            resource_subscriptions=granted
        )  # the part granted so far, in case a later request fails
        # `SUB-01`
        can_subscribe = capabilities.resources is not None and capabilities.resources.subscribe
        for uri in self.wanted.resource_subscriptions or () if can_subscribe else ():
            try:
                await self._client.request(
                    "resources/subscribe", t.SubscribeRequestParams(uri=uri), t.EmptyResult
                )
            except t.McpError as bad:
                if bad.code not in (t.RESOURCE_NOT_FOUND, t.INVALID_PARAMS):
                    raise
                continue  # an unknown resource is not granted, as in the stateless era
            granted.append(uri)
        tells = {
            what: bool(getattr(getattr(capabilities, what), "list_changed", False))
            and bool(getattr(self.wanted, f"{what}_list_changed"))
            for what in ("tools", "prompts", "resources")
        }
        self.honoured = t.SubscriptionFilter(
            tools_list_changed=tells["tools"] or None,
            prompts_list_changed=tells["prompts"] or None,
            resources_list_changed=tells["resources"] or None,
            resource_subscriptions=granted or None,
        )


@contextlib.asynccontextmanager
async def watching(
    client: OpenClient,
    watches: set[Watch],
    *,
    tools: bool,
    prompts: bool,
    resources: bool | str | Sequence[str],
    filter: Mapping[str, Any],
    extensions: ClientExtensions,
    unasked: Notify,
) -> AsyncIterator[Watch]:
    """Return a subscription that lasts while the block runs."""
    uris: list[str] | None = None
    if isinstance(resources, str):
        uris = [resources]
    elif not isinstance(resources, bool):
        uris = list(resources)
    wanted = t.SubscriptionFilter(
        tools_list_changed=tools or None,
        prompts_list_changed=prompts or None,
        resources_list_changed=True if resources is True else None,
        resource_subscriptions=uris,
    )
    whole = extensions.filter_of(wanted, filter, client.server_capabilities)
    async with _watched(Watch(client, whole, watches, unasked), watches) as watch:
        yield watch


@contextlib.asynccontextmanager
async def _watched(watch: Watch, watches: set[Watch]) -> AsyncIterator[Watch]:
    """Open a watch, and register it for notifications."""
    watches.add(watch)
    try:
        await watch.open()
        yield watch
    finally:
        watches.discard(watch)
        await watch.close()


def without_place(x: Exchange) -> Exchange:
    """Return a forwarded `subscriptions/listen` without the resume position, which is valid only in
    the topic of the forwarding process.
    """
    if x.params.meta is t.NOTHING:
        return x
    members = decode(x.params.meta, dict[str, Raw])
    if members.pop(SINCE, None) is None:
        return x
    meta = Raw(encode_json(members)) if members else t.NOTHING
    return replace(x, params=replace(x.params, meta=meta))


async def listening(client: OpenClient, watches: set[Watch], x: Exchange) -> AnyResult:
    """Run a forwarded `subscriptions/listen` at a server whose revision has no such request.

    It lasts until it is cancelled, or until the connection is lost.
    """
    watch = Watch(client, x.params.notifications, watches)
    async with _watched(watch, watches):
        said = t.SubscriptionsAcknowledgedNotificationParams(notifications=watch.honoured)
        x.notify("notifications/subscriptions/acknowledged", said)
        async for change in watch:
            method = _METHODS[change.kind]
            if change.uri is None:
                x.notify(method, METHODS[method].params())
            else:
                x.notify(method, t.ResourceUpdatedNotificationParams(uri=change.uri))
            await x.drain()
    return t.SubscriptionsListenResult()
