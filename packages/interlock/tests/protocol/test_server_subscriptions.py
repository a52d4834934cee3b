"""Subscriptions at the server's end: listen exchanges of the stateless era, and those a connection
opens on an older peer's behalf.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import types as t
from interlock.protocol.events import RequestCancelled, RequestReceived, SessionListen
from interlock.protocol.handshake.server import ServerConnection
from interlock.protocol.server import MOST_SUBSCRIBED_CHARACTERS, MOST_SUBSCRIPTIONS
from interlock.wire.revisions import HANDSHAKE_REVISIONS, R3, R4
from tests.protocol.frames import (
    KEY,
    OFFERED,
    asked,
    greeted,
    identity,
    initialize,
    notification,
    request,
    sent,
    stamped,
)

every_handshake = pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
INITIALIZED = notification("notifications/initialized")
CHANGED = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"
NO_MORE = t.SubscriptionsListenResult()


def acknowledge(connection: ServerConnection, listen: Any, **honoured: Any) -> None:
    """What the handler of a listen exchange says first."""
    params = t.SubscriptionsAcknowledgedNotificationParams(
        notifications=t.SubscriptionFilter(**honoured)
    )
    connection.notify(listen, "notifications/subscriptions/acknowledged", params)


def subscribe(connection: ServerConnection, id: Any, uri: str) -> SessionListen:
    """Ask for a resource's changes; give back the listen exchange that is opened for it."""
    (event,) = connection.receive(request(id, "resources/subscribe", {"uri": uri}))
    assert isinstance(event, RequestReceived)
    assert isinstance(event.id, SessionListen)
    assert (event.method, event.params.notifications) == (
        "subscriptions/listen",
        t.SubscriptionFilter(resource_subscriptions=[uri]),
    )
    return event.id


# -- the stateless era


@pytest.mark.parametrize("id", [3, "3"], ids=repr)
def test_all_that_a_subscription_says_carries_its_id(id: Any) -> None:
    """The acknowledgement, each notice and the result, in the id's own type (`LSN-03`, `LSN-05`,
    `LSN-10`).
    """
    connection = ServerConnection(identity())
    event = asked(
        connection,
        stamped(id, "subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
    )
    assert event.params.notifications == t.SubscriptionFilter(tools_list_changed=True)
    acknowledge(connection, id, tools_list_changed=True)
    connection.notify(id, CHANGED, t.ListChangedNotificationParams())
    connection.notify(id, UPDATED, t.ResourceUpdatedNotificationParams(uri="x:y"))
    notes = sent(connection)
    assert [note["method"] for note in notes] == [
        "notifications/subscriptions/acknowledged",
        CHANGED,
        UPDATED,
    ]
    assert notes[0]["params"]["notifications"] == {"toolsListChanged": True}
    for note in notes:
        assert note["params"]["_meta"] == {KEY + "subscriptionId": id}
        assert type(note["params"]["_meta"][KEY + "subscriptionId"]) is type(id)


def test_a_subscription_that_the_server_ends_is_answered_and_taken_back() -> None:
    """On a shared channel the answer is followed by a cancel; elsewhere the answer is the end
    (`LSN-10`, `LSN-11`, `CAN-04`, `X-01`).
    """
    for shared in (True, False):
        connection = ServerConnection(identity(), shared=shared)
        asked(connection, stamped(5, "subscriptions/listen", {"notifications": {}}))
        connection.respond(5, NO_MORE)
        reply, *more = sent(connection)
        assert (
            reply["id"],
            reply["result"]["_meta"][KEY + "subscriptionId"],
            reply["result"]["resultType"],
        ) == (5, 5, "complete")
        assert [(note["method"], note["params"]["requestId"]) for note in more] == [
            ("notifications/cancelled", 5)
        ] * shared


def test_a_subscription_is_ended_by_its_owner() -> None:
    """Nothing more is said of it, and its id may be used again for something else (`LSN-09`,
    `CAN-05`, `RPC-04`).
    """
    connection = ServerConnection(identity())
    asked(connection, stamped(5, "subscriptions/listen", {"notifications": {}}))
    assert connection.receive(notification("notifications/cancelled", {"requestId": 5})) == [
        RequestCancelled(5)
    ]
    connection.notify(5, CHANGED, t.ListChangedNotificationParams())
    connection.respond(5, NO_MORE)
    assert sent(connection) == []
    asked(connection, stamped(5, "tools/list"))
    connection.notify(
        5, "notifications/progress", t.ProgressNotificationParams(progress_token=1, progress=1)
    )
    connection.respond(5, t.ListToolsResult(tools=[]))
    note, reply = sent(connection)
    assert "_meta" not in note["params"]
    assert KEY + "subscriptionId" not in reply["result"]["_meta"]


def test_a_subscription_that_failed_leaves_nothing_behind() -> None:
    """Its id may be used again, and is then no subscription."""
    connection = ServerConnection(identity())
    asked(connection, stamped(5, "subscriptions/listen", {"notifications": {}}))
    connection.fail(5, t.INTERNAL_ERROR, "busy")
    assert sent(connection)[0]["error"]["message"] == "busy"
    asked(connection, stamped(5, "tools/list"))
    connection.respond(5, t.ListToolsResult(tools=[]))
    (reply,) = sent(connection)
    assert KEY + "subscriptionId" not in reply["result"]["_meta"]


def test_progress_and_logs_never_travel_on_a_subscription() -> None:
    """Whoever says them there is not heard (`LSN-08`, `LOG-06`)."""
    connection = ServerConnection(identity())
    asked(connection, stamped(5, "subscriptions/listen", {"notifications": {}}))
    connection.notify(
        5, "notifications/progress", t.ProgressNotificationParams(progress_token=1, progress=1)
    )
    connection.notify(
        5, "notifications/message", t.LoggingMessageNotificationParams(level="error", data="x")
    )
    assert sent(connection) == []


def test_several_subscriptions_run_beside_each_other() -> None:
    """Each with its own id and filter, and beside other requests (`LSN-07`, `RPC-26`)."""
    connection = ServerConnection(identity())
    asked(
        connection,
        stamped(1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
    )
    asked(
        connection,
        stamped(2, "subscriptions/listen", {"notifications": {"resourceSubscriptions": ["x:y"]}}),
    )
    asked(connection, stamped(3, "tools/list"))
    connection.notify(2, UPDATED, t.ResourceUpdatedNotificationParams(uri="x:y"))
    connection.notify(1, CHANGED, t.ListChangedNotificationParams())
    assert [note["params"]["_meta"][KEY + "subscriptionId"] for note in sent(connection)] == [2, 1]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": None},
        {"notifications": []},
        {"notifications": {"resourceSubscriptions": [1]}},
    ],
)
def test_a_filter_that_cannot_be_read_is_refused(params: dict[str, Any]) -> None:
    """(`LSN-01`)"""
    connection = ServerConnection(identity())
    assert connection.receive(stamped(1, "subscriptions/listen", params)) == []
    assert sent(connection)[0]["error"]["code"] == t.INVALID_PARAMS


# -- the handshake era: lists


@every_handshake
def test_changes_of_lists_are_listened_to_once_the_peer_is_ready(revision: str) -> None:
    """Not before it says so, and once however often it says so (`LIF-10`, `SUB-04`)."""
    connection = greeted(revision)
    (event,) = connection.receive(INITIALIZED)
    assert isinstance(event, RequestReceived)
    assert event.method == "subscriptions/listen"
    assert event.params.notifications == t.SubscriptionFilter(
        tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
    )
    assert event.caller.revision == revision
    assert connection.receive(INITIALIZED) == []
    acknowledge(connection, event.id, tools_list_changed=True)
    connection.notify(event.id, CHANGED, t.ListChangedNotificationParams())
    assert connection.outgoing() == [
        (None, b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')
    ]


def test_whoever_has_not_introduced_himself_cannot_be_ready() -> None:
    """(`LIF-08`)"""
    connection = ServerConnection(identity())
    assert connection.receive(INITIALIZED) == []
    assert connection.outgoing() == []


def test_a_listen_exchange_that_ends_can_be_opened_again() -> None:
    """Whether it ended well or not, it says nothing to the peer."""
    connection = greeted(R4)
    (event,) = connection.receive(INITIALIZED)
    connection.respond(event.id, NO_MORE)
    (again,) = connection.receive(INITIALIZED)
    connection.fail(again.id, t.INTERNAL_ERROR, "it broke")
    connection.notify(again.id, CHANGED, t.ListChangedNotificationParams())
    assert connection.outgoing() == []
    assert len(connection.receive(INITIALIZED)) == 1


def test_two_listens_are_never_taken_for_each_other() -> None:
    """Also where they are for the same thing: they are equal only to themselves."""
    assert SessionListen("x:y") != SessionListen("x:y")
    assert len({SessionListen(None), SessionListen(None)}) == 2


# -- the handshake era: single resources


@every_handshake
def test_a_resource_is_subscribed_to_once_the_server_has_agreed(revision: str) -> None:
    """The answer waits for the acknowledgement; then updates come, of this resource and parts of it
    (`SUB-01`, `SUB-02`).
    """
    connection = greeted(revision)
    listen = subscribe(connection, 1, "x:y")
    assert sent(connection) == []
    acknowledge(connection, listen, resource_subscriptions=["x:y"])
    assert sent(connection) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    connection.notify(listen, UPDATED, t.ResourceUpdatedNotificationParams(uri="x:y/part"))
    assert sent(connection) == [
        {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": "x:y/part"}}
    ]


def test_a_resource_that_is_not_there_cannot_be_subscribed_to() -> None:
    """The refusal names it, and it may be tried again (`ERR-14`, `SUB-01`)."""
    connection = greeted(R3)
    listen = subscribe(connection, 1, "x:y")
    acknowledge(connection, listen, resource_subscriptions=[])
    (reply,) = sent(connection)
    assert reply["error"] == {
        "code": t.RESOURCE_NOT_FOUND,
        "message": "Resource not found: x:y",
        "data": {"uri": "x:y"},
    }
    assert subscribe(connection, 2, "x:y") is not listen


def test_a_second_subscription_to_the_same_resource_shares_the_first() -> None:
    """At once where the first is agreed to, with it where it is not yet: yes for both or no for
    both (`SUB-01`).
    """
    for agreed in (True, False):
        connection = greeted(R4)
        listen = subscribe(connection, 1, "x:y")
        assert connection.receive(request(2, "resources/subscribe", {"uri": "x:y"})) == []
        assert sent(connection) == []
        acknowledge(connection, listen, resource_subscriptions=["x:y"] if agreed else [])
        assert [("result" in reply, reply["id"]) for reply in sent(connection)] == [
            (agreed, 1),
            (agreed, 2),
        ]
    connection = greeted(R4)
    acknowledge(connection, subscribe(connection, 1, "x:y"), resource_subscriptions=["x:y"])
    sent(connection)
    assert connection.receive(request(2, "resources/subscribe", {"uri": "x:y"})) == []
    assert sent(connection) == [{"jsonrpc": "2.0", "id": 2, "result": {}}]


def test_a_subscription_whose_exchange_fails_is_refused() -> None:
    """Whatever middleware or handler does, the peer gets its answer."""
    connection = greeted(R4)
    connection.fail(subscribe(connection, 1, "x:y"), -32000, "not for you", {"why": "policy"})
    connection.respond(subscribe(connection, 2, "x:z"), NO_MORE)
    first, second = sent(connection)
    assert first["error"] == {"code": -32000, "message": "not for you", "data": {"why": "policy"}}
    assert (second["id"], second["error"]["code"]) == (2, t.INTERNAL_ERROR)
    subscribe(connection, 3, "x:y")


def test_after_unsubscribing_nothing_more_is_delivered() -> None:
    """The exchange is cancelled, and what it still says is dropped (`SUB-05`)."""
    connection = greeted(R4)
    listen = subscribe(connection, 1, "x:y")
    acknowledge(connection, listen, resource_subscriptions=["x:y"])
    sent(connection)
    assert connection.receive(request(2, "resources/unsubscribe", {"uri": "x:y"})) == [
        RequestCancelled(listen)
    ]
    connection.notify(listen, UPDATED, t.ResourceUpdatedNotificationParams(uri="x:y"))
    assert sent(connection) == [{"jsonrpc": "2.0", "id": 2, "result": {}}]
    assert subscribe(connection, 3, "x:y") is not listen


def test_unsubscribing_from_what_was_never_subscribed_to_is_no_fault() -> None:
    """(`SUB-05`)"""
    connection = greeted(R4)
    assert connection.receive(request(2, "resources/unsubscribe", {"uri": "x:y"})) == []
    assert sent(connection) == [{"jsonrpc": "2.0", "id": 2, "result": {}}]


def test_unsubscribing_before_the_server_has_agreed_answers_both() -> None:
    """Neither call is left waiting."""
    connection = greeted(R4)
    listen = subscribe(connection, 1, "x:y")
    assert connection.receive(request(2, "resources/unsubscribe", {"uri": "x:y"})) == [
        RequestCancelled(listen)
    ]
    assert sorted(reply["id"] for reply in sent(connection)) == [1, 2]
    acknowledge(connection, listen, resource_subscriptions=["x:y"])
    assert sent(connection) == []


def test_a_second_introduction_ends_what_was_subscribed_to() -> None:
    """Calls that still wait are cancelled, and the new session begins with none."""
    connection = greeted(R4)
    agreed = subscribe(connection, 1, "x:y")
    waiting = subscribe(connection, 2, "x:z")
    acknowledge(connection, agreed, resource_subscriptions=["x:y"])
    sent(connection)
    ended = {e.id for e in connection.receive(initialize(3, R3)) if isinstance(e, RequestCancelled)}
    assert ended == {agreed, 2, waiting}
    assert [(reply["id"], "error" in reply) for reply in sent(connection)] == [(3, False)]
    assert subscribe(connection, 4, "x:y") is not agreed


def test_a_server_without_subscriptions_has_no_such_method() -> None:
    """(`SUB-01`, `LIF-15`)"""
    for offered in (
        t.ServerCapabilities(),
        t.ServerCapabilities(resources=t.ResourcesCapability()),
    ):
        connection = greeted(R4, identity(offered=offered))
        assert connection.receive(request(1, "resources/subscribe", {"uri": "x:y"})) == []
        assert sent(connection)[0]["error"]["code"] == t.METHOD_NOT_FOUND


def test_capabilities_are_asked_for_each_time() -> None:
    """A server that gets its first resource later can be subscribed to then."""
    offered = [t.ServerCapabilities()]
    server = identity()
    server.capabilities = lambda caller: offered[0]
    connection = greeted(R4, server)
    offered[0] = OFFERED
    subscribe(connection, 1, "x:y")


def test_nobody_subscribes_to_everything() -> None:
    """Beyond a limit the peer is told to let go of something first, and when it does there is room
    again.
    """
    connection = greeted(R4)
    for n in range(MOST_SUBSCRIPTIONS):
        acknowledge(
            connection, subscribe(connection, n, f"x:{n}"), resource_subscriptions=[f"x:{n}"]
        )
    assert len(sent(connection)) == MOST_SUBSCRIPTIONS
    assert connection.receive(request("more", "resources/subscribe", {"uri": "x:more"})) == []
    assert sent(connection)[0]["error"]["code"] == t.INVALID_PARAMS
    connection.receive(request("less", "resources/unsubscribe", {"uri": "x:7"}))
    subscribe(connection, "again", "x:more")


def test_the_uris_of_subscriptions_have_a_limit() -> None:
    """A session keeps them, so that long ones would fill the memory of the server."""
    connection = greeted(R4)
    long = "x:" + "y" * (MOST_SUBSCRIBED_CHARACTERS - 10)
    acknowledge(connection, subscribe(connection, 1, long), resource_subscriptions=[long])
    sent(connection)
    assert connection.receive(request(2, "resources/subscribe", {"uri": "x:123456789"})) == []
    assert "characters" in sent(connection)[0]["error"]["message"]
    connection.receive(request(3, "resources/unsubscribe", {"uri": long}))
    subscribe(connection, 4, "x:123456789")


@pytest.mark.parametrize("params", [{}, {"uri": 5}, {"uri": None}, [], None], ids=repr)
@pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe"])
def test_a_subscription_to_nothing_is_refused(method: str, params: Any) -> None:
    """(`ERR-01`)"""
    connection = greeted(R4)
    assert connection.receive(request(1, method, params)) == []
    assert sent(connection)[0]["error"]["code"] == t.INVALID_PARAMS


def test_a_peer_that_has_gone_ends_all_it_listened_to() -> None:
    """(`LIF-24`)"""
    connection = greeted(R4)
    (lists,) = connection.receive(INITIALIZED)
    one = subscribe(connection, 1, "x:y")
    assert {event.id for event in connection.close() if isinstance(event, RequestCancelled)} == {
        lists.id,
        one,
        1,
    }
    acknowledge(connection, one, resource_subscriptions=["x:y"])
    assert connection.outgoing() == []
