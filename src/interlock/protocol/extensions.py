"""What extensions add to the protocol's messages, as both ends of a connection know it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .. import types as t
from ..exchange import Caller

Capabilities = TypeVar("Capabilities", t.ClientCapabilities, t.ServerCapabilities)

MIRRORED_NAMES: Mapping[str, str] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
}
"""The field of the params that the header `Mcp-Name` repeats, by method (`HDR-04`)."""


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

    def asks(self, revision: str, method: str) -> bool:
        """Whether a request of an extension exists in a revision."""
        return method in self.requests and revision in self.revisions[self.owners[method]]

    def tells(self, method: str, caller: Caller) -> bool:
        """Whether a notification of an extension may go to a client, which must have declared it."""
        if method not in self.notifications:
            return False
        owner = self.owners[method]
        declared = caller.capabilities.extensions or {}
        return owner in declared and caller.revision in self.revisions[owner]

    def shown(self, capabilities: Capabilities, revision: str) -> Capabilities:
        """Capabilities without the extensions that a revision does not have."""
        offered = capabilities.extensions
        if not offered:
            return capabilities
        kept = {
            id: settings
            for id, settings in offered.items()
            if revision in self.revisions.get(id, (revision,))
        }
        return replace(capabilities, extensions=kept or None)

    def params_of(self, method: str) -> type[Any] | None:
        """The type of the params of a core method where extensions have changed it, else None."""
        if self.filter is t.SubscriptionFilter:
            return None
        if method == "subscriptions/listen":
            return _with_filter(t.SubscriptionsListenRequestParams, self.filter)
        if method == "notifications/subscriptions/acknowledged":
            return _with_filter(t.SubscriptionsAcknowledgedNotificationParams, self.filter)
        return None

    def mirror(self, method: str, params: Any) -> str | None:
        """What the header `Mcp-Name` says of a request; None where it has no such header."""
        field = self.mirrored.get(method)
        if field is None:
            return None
        name = getattr(params, field)
        return name if name is None or isinstance(name, str) else str(name)


NO_EXTENSIONS = ExtensionMessages()


_FILTERED: dict[tuple[type[Any], type[Any]], type[Any]] = {}


def _with_filter(kind: type[Any], filter: type[t.SubscriptionFilter]) -> type[Any]:
    """A type of params whose filter has the keys of extensions."""
    known = _FILTERED.get((kind, filter))
    if known is None:
        known = _FILTERED[kind, filter] = msgspec.defstruct(
            kind.__name__,
            [("notifications", filter)],
            bases=(kind,),
            frozen=True,
            kw_only=True,
            module=__name__,
        )
    return known
