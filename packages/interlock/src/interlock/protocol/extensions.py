"""Messages of extensions, as both sides of a connection use them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .. import types as t
from ..exchange import Caller
from ..wire.codec import decode, encode

Capabilities = TypeVar("Capabilities", t.ClientCapabilities, t.ServerCapabilities)

MIRRORED_NAMES: Mapping[str, str] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
}
"""The field of the params that the header `Mcp-Name` repeats, by method (`HDR-04`)."""


class CoreDeclaration(Struct, frozen=True):
    """A capability of the core protocol that is declared in place of an extension.

    Attributes:
        id: The extension.
        settings: The settings.
        anonymous: The settings for anonymous callers, if they differ.
    """

    id: str
    settings: t.JSONObject
    anonymous: t.JSONObject | None = None

    def settings_for(self, *, anonymous: bool) -> t.JSONObject:
        """Return the settings to declare."""
        return self.settings if not anonymous or self.anonymous is None else self.anonymous


class ExtensionMessages(Struct, frozen=True, kw_only=True):
    """The messages of all extensions that one side has.

    Attributes:
        requests: The type of the params of each request.
        results: The type of the result of each request.
        notifications: The type of the params of each notification.
        claimed: The types of results that core methods may be answered with besides their own, by
            method and `resultType`, each with the id of its extension.
        mirrored: The field of the params that the header `Mcp-Name` repeats, by method.
        filter: The filter of `subscriptions/listen`, with the keys of the extensions.
        listens: These keys.
        owners: The id of the extension that a request or notification belongs to.
        revisions: The revisions in which each extension, by its id, exists.
        request_revisions: The revisions of each request that not all of its extension's revisions
            have.
        core: The capabilities that are declared in place of extensions, by revision and name.
    """

    requests: Mapping[str, type[t.Params]] = {}
    results: Mapping[str, type[t.Result]] = {}
    notifications: Mapping[str, type[t.Params]] = {}
    claimed: Mapping[tuple[str, str], tuple[type[t.Result], str]] = {}
    mirrored: Mapping[str, str] = msgspec.field(default_factory=lambda: MIRRORED_NAMES)
    filter: type[t.SubscriptionFilter] = t.SubscriptionFilter
    listens: frozenset[str] = frozenset()
    owners: Mapping[str, str] = {}
    revisions: Mapping[str, frozenset[str]] = {}
    request_revisions: Mapping[str, frozenset[str]] = {}
    core: Mapping[str, Mapping[str, CoreDeclaration]] = {}

    def asks(self, revision: str, method: str) -> bool:
        """Whether a revision has a request of an extension."""
        if method not in self.requests:
            return False
        return revision in (
            self.request_revisions.get(method) or self.revisions[self.owners[method]]
        )

    def tells(self, method: str, caller: Caller) -> bool:
        """Whether a notification of an extension may be sent to a client. The client must have
        declared the extension, unless its revision has the feature in its core.
        """
        if method not in self.notifications:
            return False
        owner = self.owners[method]
        core = self.core.get(caller.revision, {}).values()
        if any(capability.id == owner for capability in core):
            return True
        declared = caller.capabilities.extensions or {}
        return owner in declared and caller.revision in self.revisions[owner]

    def shown(
        self, capabilities: Capabilities, revision: str, *, anonymous: bool = False
    ) -> Capabilities:
        """Return the capabilities to declare under a revision.

        Extensions that the revision does not have are removed. An extension whose feature the
        revision has in its core becomes a capability of the core.

        Args:
            capabilities: All capabilities.
            revision: The revision.
            anonymous: Whether they are declared to an anonymous caller.
        """
        offered = capabilities.extensions
        if not offered:
            return capabilities
        core = self.core.get(revision, {})
        in_core = {capability.id for capability in core.values()}
        kept = {
            id: settings
            for id, settings in offered.items()
            if id not in in_core and revision in self.revisions.get(id, (revision,))
        }
        if in_core.isdisjoint(offered):
            return replace(capabilities, extensions=kept or None)
        named = {
            name: capability.settings_for(anonymous=anonymous)
            for name, capability in core.items()
            if capability.id in offered
        }
        kind = self._with_core(type(capabilities))
        cut: Capabilities = decode(encode(capabilities, revision), kind)
        return replace(cut, extensions=kept or None, **named)

    def with_core(self, declared: Capabilities, given: Struct, revision: str) -> Capabilities:
        """Return the capabilities of a peer, with core capabilities of its revision translated to
        extensions.

        Args:
            declared: The peer's capabilities as types of the newest revision.
            given: The peer's capabilities as they were sent, decoded as `kind_of` says.
            revision: The revision.
        """
        entries = dict(declared.extensions or {})
        for name, capability in self.core.get(revision, {}).items():
            settings = getattr(given, name, None)
            if isinstance(settings, dict) or settings is True:
                entries[capability.id] = {} if settings is True else settings
        if entries == (declared.extensions or {}):
            return declared
        return replace(declared, extensions=entries)

    def result_of(self, method: str) -> type[t.Result] | None:
        """The type of the result of a core method if extensions have changed it, else None."""
        if method != "initialize" or not self.core:
            return None
        kind = self._with_core(t.ServerCapabilities)
        return _changed(t.InitializeResult, "capabilities", kind)

    def _with_core(self, kind: type[Any]) -> type[Any]:
        """The type of capabilities with those of the core that extensions stand for."""
        names = tuple(sorted({name for named in self.core.values() for name in named}))
        if not issubclass(kind, t.ServerCapabilities):
            kind = t.ClientCapabilities
        known = _WITH_CORE.get((kind, names))
        if known is None:
            known = _WITH_CORE[kind, names] = msgspec.defstruct(
                kind.__name__,
                [(name, Any, msgspec.field(default=None, name=name)) for name in names],
                bases=(kind,),
                frozen=True,
                kw_only=True,
                omit_defaults=True,
                module=__name__,
            )
        return known

    def params_of(self, method: str) -> type[Any] | None:
        """The type of the params of a core method if extensions have changed it, else None."""
        if method == "initialize" and self.core:
            kind = self._with_core(t.ClientCapabilities)
            return _changed(t.InitializeRequestParams, "capabilities", kind)
        if self.filter is t.SubscriptionFilter:
            return None
        if method == "subscriptions/listen":
            return _changed(t.SubscriptionsListenRequestParams, "notifications", self.filter)
        if method == "notifications/subscriptions/acknowledged":
            said = t.SubscriptionsAcknowledgedNotificationParams
            return _changed(said, "notifications", self.filter)
        return None

    def mirror(self, method: str, params: Any) -> str | None:
        """The value of the header `Mcp-Name` for a request; None if the request has no such
        header.
        """
        field = self.mirrored.get(method)
        if field is None:
            return None
        name = getattr(params, field)
        return name if name is None or isinstance(name, str) else str(name)


NO_EXTENSIONS = ExtensionMessages()


_WITH_CORE: dict[tuple[type[Any], tuple[str, ...]], type[Any]] = {}
_CHANGED: dict[tuple[type[Any], type[Any]], type[Any]] = {}


def _changed(kind: type[Any], name: str, inner: type[Any]) -> type[Any]:
    """A type of params or results of which one field is of another type."""
    known = _CHANGED.get((kind, inner))
    if known is None:
        known = _CHANGED[kind, inner] = msgspec.defstruct(
            kind.__name__,
            [(name, inner)],
            bases=(kind,),
            frozen=True,
            kw_only=True,
            module=__name__,
        )
    return known
