"""Extensions of the protocol: capabilities of servers and clients beyond the core (2026-07-28).

An extension is declared once. Servers and clients use the same declaration, each with its own
handlers (`Extension.with_handlers`).
"""

from __future__ import annotations

import copy
import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec
from msgspec import Struct

from . import types as t
from .exchange import AnyResult, Caller, Exchange, Handler, Middleware, RawResult
from .logs import limited
from .meta_keys import LABEL, NAME
from .protocol.extensions import (
    MIRRORED_NAMES,
    NO_EXTENSIONS,
    CoreDeclaration,
    ExtensionMessages,
)
from .wire.revisions import HANDSHAKE_REVISIONS, METHODS, REVISIONS, Era, era, error_code

log = limited("interlock.extension")

_ID = re.compile(rf"{LABEL}(?:\.{LABEL})*/{NAME}")
_CORE_RESULT_TYPES = frozenset({"complete", "input_required"})

Notified = Callable[[Exchange], Awaitable[object] | None]
"""Handles a notification: a plain or async function of an exchange. The params have the declared
type.
"""

Listening = Callable[[Exchange, Any], AbstractAsyncContextManager[Any]]
"""Serves a key of the listen filter. It gets the exchange of the subscription and the value of the
key. It yields the part of the value that is granted (None: nothing), and stays open while the
subscription lasts.
"""

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


class Method(Struct, frozen=True):
    """A request of an extension.

    Attributes:
        params: The type of its params.
        result: The type of its result.
        handler: The handler; on a server only.
        mirrored: The JSON name of the member of the params that the HTTP header `Mcp-Name` repeats.
        open_to_all: Whether clients that have not declared the extension may call the method too.
        revisions: The revisions that have the method; None for all of the extension's revisions.
    """

    params: type[t.Params]
    result: type[t.Result] = t.EmptyResult
    handler: Handler | None = None
    mirrored: str | None = None
    open_to_all: bool = False
    revisions: Collection[str] | None = None


class CoreCapability(Struct, frozen=True):
    """How an extension is declared under a revision that has its feature in the core protocol.

    Attributes:
        name: The capability, such as "tasks" in 2025-11-25.
        settings: The settings of that capability, in place of the settings of the extension.
        anonymous: The settings that a server declares to anonymous callers, if they differ.
    """

    name: str
    settings: t.JSONObject = {}
    anonymous: t.JSONObject | None = None


class Extension:
    """An extension of the protocol. It is off unless you pass it to a server or a client
    (`EXT-05`).

    Args:
        id: A dotted prefix and a name, such as "com.example/search" (`EXT-02`). A change that
            breaks peers needs a new id.
        settings: The settings that this side advertises.
        methods: The requests, by method. Clients send them.
        notifications: The types of the params of the notifications. Either side may send them.
        results: The types of further results of core methods, by method and `resultType`.
        listens: The keys that the extension adds to the filter of `subscriptions/listen`, with the
            types of their values.
        requires: Dependencies: ids of other extensions, and capabilities such as "tools" or
            "elicitation.url". A server checks server capabilities, a client checks client
            capabilities.
        lifespan: An async context manager function of the server or client, entered before the
            first message and left after the last one.
        middleware: Middleware around every exchange of the server or client, the outermost first.
        revisions: The revisions that have the extension.
        core: The revisions of the handshake era in which the feature is a capability of the core
            protocol. Under them the extension is declared as that capability, and that capability
            is read as the extension.

    Raises:
        ValueError: The id is malformed, or a message cannot belong to an extension.
        TypeError: A type does not fit its place.
    """

    def __init__(
        self,
        id: str,
        *,
        settings: Mapping[str, Any] | None = None,
        methods: Mapping[str, Method] | None = None,
        notifications: Mapping[str, type[t.Params]] | None = None,
        results: Mapping[str, Mapping[str, type[t.Result]]] | None = None,
        listens: Mapping[str, Any] | None = None,
        requires: str | Sequence[str] = (),
        lifespan: Lifespan | None = None,
        middleware: Sequence[Middleware] = (),
        revisions: Collection[str] = REVISIONS,
        core: Mapping[str, CoreCapability] | None = None,
    ) -> None:
        if not _ID.fullmatch(id):
            raise ValueError(
                f"{id!r} is not an extension id: it needs a prefix and a name, as in "
                "'com.example/name'"
            )
        self.id = id
        self.settings: t.JSONObject = dict(settings or {})
        self.methods = dict(methods or {})
        self.notifications = dict(notifications or {})
        self.results = {method: dict(kinds) for method, kinds in (results or {}).items()}
        self.listens = dict(listens or {})
        self.requires = (requires,) if isinstance(requires, str) else tuple(requires)
        self.lifespan = lifespan
        self.middleware = tuple(middleware)
        self.core = dict(core or {})
        self.revisions = frozenset(revisions) | self.core.keys()
        self.notified: Mapping[str, Notified] = {}
        self.listening: Mapping[str, Listening] = {}
        self.on_drain: Callable[[], Awaitable[object]] | None = None
        """Called when a server begins to shut down, before its last calls end."""
        _check(self)

    def __repr__(self) -> str:
        return f"Extension({self.id!r})"

    def with_handlers(
        self,
        methods: Mapping[str, Handler] | None = None,
        *,
        notifications: Mapping[str, Notified] | None = None,
        listens: Mapping[str, Listening] | None = None,
        settings: Mapping[str, Any] | None = None,
        core: Mapping[str, CoreCapability] | None = None,
        requires: str | Sequence[str] = (),
        lifespan: Lifespan | None = None,
        middleware: Sequence[Middleware] = (),
    ) -> Extension:
        """Return a copy of the extension with the handlers of one server or client.

        Args:
            methods: The handlers of the requests, on a server.
            notifications: The handlers of the notifications, on either side.
            listens: The functions that serve the keys of the listen filter, on a server.
            settings: The settings that this side advertises, in place of the declared ones.
            core: The declarations of this side for revisions that have the feature in the core.
            requires: Further dependencies.
            lifespan: Replaces the declared lifespan.
            middleware: Added after the declared middleware.

        Raises:
            ValueError: The extension declares no such message.
        """
        made = copy.copy(self)
        handlers = methods or {}
        for what, given, declared in (
            ("method", handlers, self.methods),
            ("notification", notifications or {}, self.notifications),
            ("key of the listen filter", listens or {}, self.listens),
        ):
            for name in given:
                if name not in declared:
                    raise ValueError(f"the extension {self.id} declares no {what} {name}")
        made.methods = {
            name: msgspec.structs.replace(method, handler=handlers.get(name, method.handler))
            for name, method in self.methods.items()
        }
        made.notified = {**self.notified, **(notifications or {})}
        made.listening = {**self.listening, **(listens or {})}
        made.settings = self.settings if settings is None else dict(settings)
        made.core = {**self.core, **(core or {})}
        further = (requires,) if isinstance(requires, str) else tuple(requires)
        made.requires = (*self.requires, *further)
        made.lifespan = lifespan or self.lifespan
        made.middleware = (*self.middleware, *middleware)
        _check(made)
        return made

    def settings_in(
        self, capabilities: t.ClientCapabilities | t.ServerCapabilities
    ) -> t.JSONObject | None:
        """Return the settings with which a peer declares this extension; None if it does not
        declare it.
        """
        declared = capabilities.extensions
        settings = None if declared is None else declared.get(self.id)
        return settings if isinstance(settings, dict) else None


# -- checks of one extension -----------------------------------------------------------------------


def _check(extension: Extension) -> None:
    """Raise an error for a declaration that is not allowed."""
    unknown = sorted(extension.revisions - set(REVISIONS))
    if unknown:
        raise ValueError(
            f"the extension {extension.id} names unknown revisions: {', '.join(unknown)}; "
            f"there are {', '.join(REVISIONS)}"
        )
    for revision, capability in extension.core.items():
        if era(revision) is not Era.HANDSHAKE:
            raise ValueError(
                f"the extension {extension.id} has a core capability in {revision}; only "
                f"{', '.join(HANDSHAKE_REVISIONS)} can have one"
            )
        sides = (t.ServerCapabilities, t.ClientCapabilities)
        taken = any(_is_of(side, capability.name) for side in sides)
        if taken or not capability.name.isidentifier():
            raise ValueError(
                f"the extension {extension.id} cannot be the capability {capability.name!r}"
            )
    for wanted in extension.requires:
        known = any(_is_of(side, wanted) for side in (t.ServerCapabilities, t.ClientCapabilities))
        if "/" not in wanted and not known:
            raise ValueError(
                f"the extension {extension.id} requires {wanted!r}, which is neither a capability "
                "nor the id of an extension"
            )
    for name, method in extension.methods.items():
        if not isinstance(method, Method):
            raise TypeError(
                f"the method {name} of the extension {extension.id} must be a Method(Params,"
                " Result)"
            )
        _check_kind(extension, name, "params", method.params, t.Params)
        _check_kind(extension, name, "result", method.result, t.Result)
        if method.mirrored is not None:
            _field_named(extension, name, method)
    for name, params in extension.notifications.items():
        if name in extension.methods:
            raise ValueError(
                f"the extension {extension.id} has {name} both as a method and as a notification"
            )
        _check_kind(extension, name, "params", params, t.Params)
    for name, kinds in extension.results.items():
        _check_claims(extension, name, kinds)
    for key in extension.listens:
        if not key.isidentifier():
            raise ValueError(
                f"the key {key!r} that the extension {extension.id} adds to the listen filter "
                "must be an identifier, such as taskIds"
            )


def _check_kind(
    extension: Extension, name: str, what: str, given: object, wanted: type[Any]
) -> None:
    if not (isinstance(given, type) and issubclass(given, wanted)):
        raise TypeError(
            f"the {what} of {name} of the extension {extension.id} must be a subclass of "
            f"interlock.types.{wanted.__name__}"
        )


def _check_claims(extension: Extension, method: str, kinds: Mapping[str, type[t.Result]]) -> None:
    row = METHODS.get(method)
    if row is None or row.result is None:
        raise ValueError(
            f"the extension {extension.id} claims results of {method}, which is not a core request"
        )
    for result_type, kind in kinds.items():
        if result_type in _CORE_RESULT_TYPES:
            raise ValueError(
                f"the extension {extension.id} cannot have the resultType {result_type!r} of "
                f"{method}, which belongs to the core protocol"
            )
        _check_kind(extension, f"{method} ({result_type})", "result", kind, t.Result)
        default = next(f.default for f in msgspec.structs.fields(kind) if f.name == "result_type")
        if default is not None:  # encoding would omit this default
            raise ValueError(
                f"{kind.__name__} of the extension {extension.id} must not give result_type a "
                "default; it is filled in"
            )


def _field_named(extension: Extension, name: str, method: Method) -> str:
    """Return the field of the params that `Mcp-Name` repeats."""
    for field in msgspec.structs.fields(method.params):
        if field.encode_name == method.mirrored:
            return field.name
    raise ValueError(
        f"the params of {name} of the extension {extension.id} have no member {method.mirrored!r} "
        "that Mcp-Name could repeat"
    )


# -- several extensions together -------------------------------------------------------------------


def messages_of(extensions: Iterable[Extension]) -> ExtensionMessages:
    """Return the messages of several extensions in one table.

    Raises:
        ValueError: Two extensions have one id, or the core or another extension uses a name
            already.
    """
    extensions = tuple(extensions)
    if not extensions:
        return NO_EXTENSIONS
    requests: dict[str, type[t.Params]] = {}
    results: dict[str, type[t.Result]] = {}
    request_revisions: dict[str, frozenset[str]] = {}
    notifications: dict[str, type[t.Params]] = {}
    claimed: dict[tuple[str, str], tuple[type[t.Result], str]] = {}
    mirrored = dict(MIRRORED_NAMES)
    keys: dict[str, Any] = {}
    revisions: dict[str, frozenset[str]] = {}
    owners: dict[str, str] = {}
    core: dict[str, dict[str, CoreDeclaration]] = {}
    key_owners = {
        field.encode_name: "the core protocol"
        for field in msgspec.structs.fields(t.SubscriptionFilter)
    }
    for extension in extensions:
        if extension.id in revisions:
            raise ValueError(f"the extension {extension.id} is given twice")
        revisions[extension.id] = extension.revisions
        for revision, capability in extension.core.items():
            capabilities = core.setdefault(revision, {})
            if capability.name in capabilities:
                owner = capabilities[capability.name].id
                raise _taken(extension, "capability", capability.name, owner)
            capabilities[capability.name] = CoreDeclaration(
                extension.id, capability.settings, capability.anonymous
            )
        for name, method in extension.methods.items():
            _claim(extension, "method", name, owners)
            requests[name] = method.params
            results[name] = method.result
            if method.revisions is not None:
                request_revisions[name] = extension.revisions & frozenset(method.revisions)
            if method.mirrored is not None:
                mirrored[name] = _field_named(extension, name, method)
        for name, params in extension.notifications.items():
            _claim(extension, "notification", name, owners)
            notifications[name] = params
        for name, kinds in extension.results.items():
            for result_type, kind in kinds.items():
                if (name, result_type) in claimed:
                    raise _taken(
                        extension,
                        f"resultType {result_type} of",
                        name,
                        claimed[name, result_type][1],
                    )
                claimed[name, result_type] = (kind, extension.id)
        for key, kind in extension.listens.items():
            if key in key_owners:
                raise _taken(extension, "key of the listen filter", key, key_owners[key])
            key_owners[key] = extension.id
            keys[key] = kind
    return ExtensionMessages(
        requests=requests,
        results=results,
        notifications=notifications,
        claimed=claimed,
        mirrored=mirrored,
        filter=_filter(keys),
        listens=frozenset(keys),
        owners=owners,
        revisions=revisions,
        request_revisions=request_revisions,
        core=core,
    )


def _claim(extension: Extension, what: str, name: str, owners: dict[str, str]) -> None:
    """Record the owner of a method or a notification. Methods and notifications share one
    namespace.
    """
    owner = "the core protocol" if name in METHODS else owners.get(name)
    if owner is not None:
        raise _taken(extension, what, name, owner)
    owners[name] = extension.id


def _taken(extension: Extension, what: str, name: str, owner: str) -> ValueError:
    return ValueError(
        f"the extension {extension.id} cannot have the {what} {name}, which belongs to {owner}"
    )


def _filter(keys: Mapping[str, Any]) -> type[t.SubscriptionFilter]:
    """Return the filter type of `subscriptions/listen` with further keys. The fields are named like
    the keys.
    """
    if not keys:
        return t.SubscriptionFilter
    fields = [
        (key, kind | None, msgspec.field(default=None, name=key)) for key, kind in keys.items()
    ]
    made: Any = msgspec.defstruct(
        "SubscriptionFilter",
        fields,
        bases=(t.SubscriptionFilter,),
        frozen=True,
        kw_only=True,
        omit_defaults=True,
        module=__name__,
    )
    kind: type[t.SubscriptionFilter] = made
    return kind


def check_handlers(extensions: Iterable[Extension]) -> None:
    """Check that a server has a handler for every method and listen key of its extensions.

    Raises:
        ValueError: A method or a key of the listen filter has no handler.
    """
    for extension in extensions:
        lacking = [name for name, method in extension.methods.items() if method.handler is None]
        lacking += [key for key in extension.listens if key not in extension.listening]
        if lacking:
            raise ValueError(
                f"the extension {extension.id} has no handler for {', '.join(lacking)}; "
                "give the server extension.with_handlers(...)"
            )


def unmet(
    extensions: Sequence[Extension], capabilities: t.ClientCapabilities | t.ServerCapabilities
) -> str:
    """Return the unmet requirements of an extension as a sentence; "" if there are none."""
    ids = {extension.id for extension in extensions}
    for extension in extensions:
        for wanted in extension.requires:
            if "/" in wanted:
                if wanted not in ids:
                    return (
                        f"the extension {extension.id} requires the extension {wanted}, which is"
                        " not given"
                    )
            elif _is_of(type(capabilities), wanted) and not _has(capabilities, wanted):
                side = "client" if isinstance(capabilities, t.ClientCapabilities) else "server"
                return (
                    f"the extension {extension.id} requires {wanted}, which this {side} does not"
                    " have"
                )
    return ""


def _is_of(side: type[Struct], path: str) -> bool:
    """Whether a capability belongs to this side (server or client)."""
    return path.split(".")[0] in {field.encode_name for field in msgspec.structs.fields(side)}


def _has(capabilities: Any, path: str) -> bool:
    """Whether a capability, or a part of a capability such as "resources.subscribe", is
    declared.
    """
    found = capabilities
    for name in path.split("."):
        if isinstance(found, dict):
            found = found.get(name)
        else:
            fields = {f.encode_name: f.name for f in msgspec.structs.fields(found)}
            found = getattr(found, fields.get(name, ""), None)
        if found is None or found is False:
            return False
        if found is True:
            found = {}
    return True


def layers_of(
    middleware: Sequence[Middleware | Extension], extensions: Sequence[Extension]
) -> list[Middleware]:
    """Return all middleware, the outermost first.

    An extension in the list stands for its own middleware at that position. The middleware of all
    other extensions follows, in the order of the extensions.

    Raises:
        ValueError: The list names an extension that was not given, or names one twice.
    """
    layers: list[Middleware] = []
    placed: set[str] = set()
    given = {extension.id: extension for extension in extensions}
    for layer in middleware:
        if not isinstance(layer, Extension):
            layers.append(layer)
            continue
        if layer.id not in given or layer.id in placed:
            why = "twice" if layer.id in placed else "but it is not among the extensions"
            raise ValueError(f"middleware= names the extension {layer.id} {why}")
        placed.add(layer.id)
        layers += given[layer.id].middleware
    for extension in extensions:
        if extension.id not in placed:
            layers += extension.middleware
    return layers


def lifespan_of(
    extensions: Sequence[Extension], side: Any, own: Lifespan | None
) -> Callable[[], AbstractAsyncContextManager[Any]] | None:
    """Return the lifespan of a server or client around the lifespans of its extensions; None if
    there is no lifespan.
    """
    spans = [extension.lifespan for extension in extensions if extension.lifespan is not None]
    if not spans:
        return None if own is None else (lambda: own(side))

    @asynccontextmanager
    async def all_of_them() -> Any:
        async with AsyncExitStack() as entered:
            state = None if own is None else await entered.enter_async_context(own(side))
            for span in spans:
                await entered.enter_async_context(span(side))
            yield state

    return all_of_them


# -- on a server -----------------------------------------------------------------------------------


def handlers_of(extensions: Iterable[Extension]) -> dict[str, Handler]:
    """Return the handlers of all requests and notifications of a server's extensions."""
    handlers: dict[str, Handler] = {}
    for extension in extensions:
        for name, method in extension.methods.items():
            if method.handler is not None:
                handlers[name] = _served(extension, method, method.handler)
        for name in extension.notifications:
            handlers[name] = _notification_handler(extension, extension.notified.get(name))
    return handlers


def _served(extension: Extension, method: Method, handler: Handler) -> Handler:
    async def handle(x: Exchange) -> AnyResult:
        if not method.open_to_all:
            check_declared(extension.id, x.caller)
        result = await handler(x)
        if isinstance(result, method.result | RawResult | t.InputRequiredResult):
            return result
        raise TypeError(
            f"{x.method} of the extension {extension.id} gave {type(result).__name__} "
            f"in place of {method.result.__name__}"
        )

    return handle


def _notification_handler(extension: Extension, notified: Notified | None) -> Handler:
    async def handle(x: Exchange) -> AnyResult:
        if notified is not None:
            doing = notified(x)
            if doing is not None:
                await doing
        return t.EmptyResult()

    return handle


class ListenKeys:
    """The keys that a server's extensions add to the filter of `subscriptions/listen`."""

    def __init__(self, extensions: Iterable[Extension]) -> None:
        self._kind = messages_of(extensions).filter
        self._keys = [
            (key, extension.id, listening)
            for extension in extensions
            for key, listening in extension.listening.items()
        ]

    def wanted(self, x: Exchange) -> bool:
        """Whether a subscription names any of these keys."""
        asked = x.params.notifications
        return any(getattr(asked, key, None) is not None for key, _, _ in self._keys)

    @asynccontextmanager
    async def granted(
        self, x: Exchange, core: t.SubscriptionFilter
    ) -> AsyncIterator[tuple[t.SubscriptionFilter, Callable[[], None]]]:
        """Serve the keys that a subscription names, until the block ends.

        Args:
            x: The exchange of the subscription.
            core: The granted filter of the core protocol.

        Yields:
            The whole granted filter, and a function to call after the acknowledgement. The
            notifications of the extensions wait for that call.
        """
        waiting: list[tuple[str, Any]] | None = []

        def notify(method: str, params: Any) -> None:
            if waiting is None:
                x.notify(method, params)
            else:
                waiting.append((method, params))

        def acknowledged() -> None:
            nonlocal waiting
            held = waiting or []
            waiting = None
            for method, params in held:
                x.notify(method, params)

        fields = {field: getattr(core, field) for field in core.__struct_fields__}
        inner = msgspec.structs.replace(x, notify=notify)
        async with AsyncExitStack() as entered:
            for key, id, listening in self._keys:
                value = getattr(x.params.notifications, key, None)
                if value is not None and id in (x.caller.capabilities.extensions or {}):
                    fields[key] = await entered.enter_async_context(listening(inner, value))
            yield self._kind(**fields), acknowledged


def check_declared(id: str, caller: Caller) -> None:
    """Reject a caller that has not declared an extension (`EXT-03`).

    Raises:
        McpError: The caller has not declared it. The code is -32021, or -32600 in the handshake
            era.
    """
    declared = caller.capabilities.extensions
    if declared is None or id not in declared:
        raise t.McpError(
            error_code("missing_client_capability", caller.revision),
            f"Missing required client capability: the extension {id}",
            {"requiredCapabilities": {"extensions": {id: {}}}},
        )


def stamping_claims(messages: ExtensionMessages) -> Middleware:
    """Return middleware that sets the `resultType` of an extension's results, and sends such
    results only to clients that have declared the extension (`RPC-19`).
    """
    by_kind = {
        (method, kind): result_type for (method, result_type), (kind, _) in messages.claimed.items()
    }

    def layer(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            result = await handler(x)
            if isinstance(result, RawResult):
                return result
            result_type = result.result_type or by_kind.get((x.method, type(result)))
            if result_type is None:
                return result
            claim = messages.claimed.get((x.method, result_type))
            if claim is not None:
                check_declared(claim[1], x.caller)
            if result.result_type is None:
                return msgspec.structs.replace(result, result_type=result_type)
            return result

        return handle

    return layer
