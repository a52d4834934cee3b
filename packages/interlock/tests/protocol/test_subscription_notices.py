"""Notifications for many subscriptions: encoded once, each with the ID of its subscription."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from interlock import types as t
from interlock.exchange import Caller
from interlock.protocol.identity import Identity
from interlock.protocol.server import (
    SubscriptionNotices,
    notification_frame,
    subscription_params,
)
from interlock.wire import sse
from interlock.wire.revisions import NEWEST, R4

IDENTITY = Identity(t.Implementation(name="server", version="1"), t.ServerCapabilities)
CALLER = Caller(NEWEST, t.ClientCapabilities())
LIST = t.ListChangedNotificationParams()
ids = st.one_of(st.integers(-(2**53), 2**53), st.text())
uris = st.text(min_size=1)


def expected(id: t.RequestId, caller: Caller, method: str, params: t.Params) -> bytes:
    """Return the event of a notification that is encoded by itself."""
    named = subscription_params(id, method, params)
    frame = None if named is None else notification_frame(IDENTITY, caller, method, named)
    return b"" if frame is None else sse.event(frame)


@given(st.lists(st.tuples(ids, st.one_of(st.none(), uris)), max_size=20))
def test_each_subscription_gets_its_own_id(sent: list[tuple[int | str, str | None]]):
    """Whatever the order of subscriptions and notifications, and whatever is in them."""
    notices = SubscriptionNotices(IDENTITY)
    for id, uri in sent:
        method = "notifications/tools/list_changed"
        params: t.Params = LIST
        if uri is not None:
            method = "notifications/resources/updated"
            params = t.ResourceUpdatedNotificationParams(uri=uri)
        for each in (id, 7, "seven"):
            event = notices.event(each, CALLER, method, params)
            assert event == expected(each, CALLER, method, params)


def test_internal_meta_does_not_reach_the_client():
    """The position in the topic of changes is replaced, also if its JSON has several lines."""
    notices = SubscriptionNotices(IDENTITY)
    placed = replace(LIST, meta=Raw(b'{"position":\n"1"}'))
    event = notices.event(1, CALLER, "notifications/tools/list_changed", placed)
    assert event == expected(1, CALLER, "notifications/tools/list_changed", LIST)
    assert b"position" not in event


@pytest.mark.parametrize("method", ["notifications/progress", "notifications/message", "x/unknown"])
def test_others_are_dropped(method: str):
    """Progress, log messages and unknown notifications do not belong to a subscription."""
    notices = SubscriptionNotices(IDENTITY)
    assert notices.event(1, CALLER, method, t.Params()) == b""
    assert notices.event(1, CALLER, "notifications/tools/list_changed", LIST) != b""
    assert notices.event(1, CALLER, method, LIST) == b""


def test_a_revision_without_the_method_gets_nothing():
    """The encoded notification is not given to a caller of another revision."""
    notices = SubscriptionNotices(IDENTITY)
    acknowledged = t.SubscriptionsAcknowledgedNotificationParams(
        notifications=t.SubscriptionFilter()
    )
    method = "notifications/subscriptions/acknowledged"
    older = replace(CALLER, revision=R4)
    assert notices.event(1, CALLER, method, acknowledged) != b""
    assert notices.event(1, older, method, acknowledged) == b""
