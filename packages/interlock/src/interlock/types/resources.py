"""Resources and templates: how they are listed, read and watched (2026-07-28, "Resources",
"Subscriptions").
"""

from __future__ import annotations

from msgspec import field

from .base import (
    Annotations,
    CacheableResult,
    Icon,
    JSONObject,
    PaginatedParams,
    PaginatedResult,
    Params,
    RequestId,
    Result,
    WireType,
)
from .content import ResourceContents
from .tools import InputResponseParams


class Resource(WireType, frozen=True, kw_only=True):
    """A resource as it is listed; `size` is in bytes, before any encoding."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    icons: list[Icon] | None = None
    meta: JSONObject | None = field(default=None, name="_meta")


class ResourceTemplate(WireType, frozen=True, kw_only=True):
    """A family of resources, its URIs given as an RFC 6570 template."""

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    icons: list[Icon] | None = None
    meta: JSONObject | None = field(default=None, name="_meta")


class ListResourcesRequestParams(PaginatedParams, frozen=True, kw_only=True):
    """Params of `resources/list`."""


class ListResourcesResult(PaginatedResult, frozen=True, kw_only=True):
    """One page of resources."""

    resources: list[Resource]


class ListResourceTemplatesRequestParams(PaginatedParams, frozen=True, kw_only=True):
    """Params of `resources/templates/list`."""


class ListResourceTemplatesResult(PaginatedResult, frozen=True, kw_only=True):
    """One page of resource templates."""

    resource_templates: list[ResourceTemplate]


class ReadResourceRequestParams(InputResponseParams, frozen=True, kw_only=True):
    """Params of `resources/read`."""

    uri: str


class ReadResourceResult(CacheableResult, frozen=True, kw_only=True):
    """The contents of one URI: usually one, several if the URI denotes a collection."""

    contents: list[ResourceContents]


class SubscribeRequestParams(Params, frozen=True, kw_only=True):
    """Params of `resources/subscribe`, which only the handshake era has."""

    uri: str


class UnsubscribeRequestParams(Params, frozen=True, kw_only=True):
    """Params of `resources/unsubscribe`, which only the handshake era has."""

    uri: str


class SubscriptionFilter(WireType, frozen=True, kw_only=True):
    """The changes that a client subscribes to; a missing field means no subscription."""

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None


class SubscriptionsListenRequestParams(Params, frozen=True, kw_only=True):
    """Params of `subscriptions/listen`."""

    notifications: SubscriptionFilter


class SubscriptionsListenResult(Result, frozen=True, kw_only=True):
    """The result with which a server ends a subscription in an orderly way."""


class SubscriptionsAcknowledgedNotificationParams(Params, frozen=True, kw_only=True):
    """The first message of a subscription: the part of the filter that the server honours."""

    notifications: SubscriptionFilter


class ResourceUpdatedNotificationParams(Params, frozen=True, kw_only=True):
    """Params of `notifications/resources/updated`."""

    uri: str


class ListChangedNotificationParams(Params, frozen=True, kw_only=True):
    """Params of the notifications that announce a changed list."""


class CancelledNotificationParams(Params, frozen=True, kw_only=True):
    """Params of `notifications/cancelled`; `reason` is for logs (2026-07-28, "Cancellation")."""

    request_id: RequestId | None = None
    reason: str | None = None
