"""The client's end of one conversation: what it sends, what it makes of answers, notices and
questions, and what it passes over.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from interlock import types as t
from interlock.protocol.client import ClientConnection, ProgressReceived, SubscriptionReceived
from interlock.protocol.events import (
    NotificationReceived,
    QuestionReceived,
    RequestCancelled,
    ResponseReceived,
)
from interlock.wire.jsonrpc import Malformed
from interlock.wire.revisions import HANDSHAKE_REVISIONS, NEWEST, R1, R2, R3, R4
from tests.protocol.frames import KEY, answer, error, notification, request, sent

PROGRESS = "notifications/progress"
CANCELLED = "notifications/cancelled"
UPDATED = "notifications/resources/updated"


def waiting(*methods: str, revision: str = NEWEST) -> ClientConnection:
    """A connection with one open request for each method, ids from 1 on."""
    connection = ClientConnection(revision)
    for method in methods or ("tools/call",):
        connection.request(method, b"{}")
    connection.outgoing()
    return connection


def only(events: list[Any]) -> Any:
    (event,) = events
    return event


# -- requests and their answers


def test_a_request_goes_out_as_it_was_given() -> None:
    """One object for each, never a batch, ids that count up and never repeat (`RPC-02`, `RPC-03`,
    `RPC-04`, `RPC-14`, `RPC-15`).
    """
    connection = ClientConnection()
    assert connection.next_id() == 1
    ids = [connection.request("tools/call", b'{"name":"x"}') for _ in range(3)]
    assert ids == [1, 2, 3]
    assert sent(connection)[0] == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "x"},
    }
    connection.receive(answer(2, {}))
    assert connection.request("tools/list", b"{}") == 4
    assert connection.next_id() == 5


def test_an_answer_ends_the_wait_with_its_bytes() -> None:
    """The result is handed on unread, and each answer finds its own request, in any order
    (`RPC-05`).
    """
    connection = waiting("tools/call", "tools/call", "tools/call")
    for id in (3, 1, 2):
        event = only(
            connection.receive(b'{"jsonrpc":"2.0","id":%d,"result":{ "n": %d }}' % (id, id))
        )
        assert isinstance(event, ResponseReceived)
        assert (event.id, bytes(event.answer)) == (id, b'{ "n": %d }' % id)


def test_an_error_ends_the_wait_as_the_peer_said_it() -> None:
    """Code, message and data, also a code that means nothing to us (`RPC-07`, `ERR-05`,
    `ERR-22`).
    """
    for code in (-32601, -32042, -32001, 0, 7, -1, 2**70):
        event = only(waiting().receive(error(1, code, "no", {"a": [1]})))
        assert isinstance(event.answer, t.McpError)
        assert (event.answer.code, event.answer.message, event.answer.data) == (
            code,
            "no",
            {"a": [1]},
        )


SLOPPY: dict[str, tuple[bytes, type[Any]]] = {
    "both, one of them null": (b'{"jsonrpc":"2.0","id":1,"result":{},"error":null}', Raw),
    "an error without message": (b'{"jsonrpc":"2.0","id":1,"error":{"code":5}}', t.McpError),
    "both": (
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":5,"message":""}}',
        t.ProtocolError,
    ),
    "neither": (b'{"jsonrpc":"2.0","id":1}', t.ProtocolError),
    "null as error": (b'{"jsonrpc":"2.0","id":1,"error":null}', t.ProtocolError),
    "a string as error": (b'{"jsonrpc":"2.0","id":1,"error":"no"}', t.ProtocolError),
    "an error without code": (
        b'{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}',
        t.ProtocolError,
    ),
    "no version": (b'{"id":1,"result":{}}', t.ProtocolError),
    "another version": (b'{"jsonrpc":"1.0","id":1,"result":{}}', t.ProtocolError),
}


@pytest.mark.parametrize("frame, kind", SLOPPY.values(), ids=SLOPPY)
def test_a_malformed_answer_ends_the_wait_too(frame: bytes, kind: type[Any]) -> None:
    """Nobody waits for an answer that has come; what was made up here is no McpError (`RPC-06`,
    `ERR-21`).
    """
    connection = waiting()
    event = only(connection.receive(frame))
    assert (event.id, type(event.answer)) == (1, kind)
    assert connection.receive(answer(1, {})) == []


PASSED_OVER = {
    "an answer to nothing": answer(9, {}),
    "an answer to an id of another type": answer("1", {}),
    "an error to nothing": error(9, -1),
    "an error to nobody": error(None, -32700),
    "an error without an id": b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}',
    "a notification that does not exist": notification("notifications/imagined", {"a": 1}),
    "a request's name": notification("tools/call", {}),
    "a notification that cannot be read": notification(UPDATED, {"uri": 5}),
    "a notification with params of a wrong kind": notification(UPDATED, [1]),
    "a notification whose _meta is none": notification(UPDATED, {"uri": "x:y", "_meta": 5}),
    "a subscription id of no kind": notification(
        UPDATED, {"uri": "x:y", "_meta": {KEY + "subscriptionId": 1.5}}
    ),
    "something of a subscription that is not ours": notification(
        UPDATED, {"uri": "x:y", "_meta": {KEY + "subscriptionId": 77}}
    ),
    "progress of nothing": notification(PROGRESS, {"progressToken": 9, "progress": 1}),
    "progress with a token of another type": notification(
        PROGRESS, {"progressToken": "1", "progress": 1}
    ),
    "progress without a number": notification(PROGRESS, {"progressToken": 1, "progress": "half"}),
    "a cancel of nothing": notification(CANCELLED, {"requestId": 9}),
    "a cancel of our call": notification(CANCELLED, {"requestId": 1}),
    "a cancel without an id": notification(CANCELLED, {}),
    "a question, in this era": request(5, "roots/list", {}),
    "a ping, in this era": request(5, "ping"),
}


@pytest.mark.parametrize("frame", PASSED_OVER.values(), ids=PASSED_OVER)
def test_what_nobody_waits_for_is_passed_over(frame: bytes) -> None:
    """Without a word to the server, and the call that waits goes on waiting.

    (`RPC-11`, `RPC-18`, `STD-11`, `CAN-01`, `CAN-04`, `CAN-06`, `CAN-07`, `CAN-09`)
    """
    connection = waiting()
    assert connection.receive(frame) == []
    assert connection.outgoing() == []
    assert len(connection.receive(answer(1, {}))) == 1


NO_MESSAGE = {
    "words": b"INFO: server started",
    "half a message": b'{"jsonrpc":"2.0","id":1,"result":',
    "a number": b"5",
    "an object of no kind": b"{}",
    "a request without a version": b'{"id":1,"method":"ping"}',
    "a request with a null id": b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    "a method of no kind, with a result": b'{"jsonrpc":"2.0","id":1,"method":5,"result":{}}',
    "an answer to nothing, malformed": b'{"jsonrpc":"2.0","id":44,"error":"no"}',
    "half a batch": b"[1,",
    "an empty batch": b"[]",
    "deep nesting": b"[" * 100_000,
}


@pytest.mark.parametrize("frame", NO_MESSAGE.values(), ids=NO_MESSAGE)
def test_what_is_no_message_is_malformed_and_the_conversation_goes_on(frame: bytes) -> None:
    """The shell hears of it; nothing else has happened."""
    connection = waiting(revision=R4)
    with pytest.raises(Malformed):
        connection.receive(frame)
    assert connection.outgoing() == []
    assert len(connection.receive(answer(1, {}))) == 1


def test_an_answer_that_comes_twice_counts_once() -> None:
    """(`CAN-07`)"""
    connection = waiting()
    assert len(connection.receive(answer(1, {}))) == 1
    assert connection.receive(answer(1, {"other": 1})) == []
    assert connection.receive(error(1, -1)) == []


def test_batches_are_understood_and_what_is_wrong_with_one_message_does_not_touch_the_others() -> (
    None
):
    """Also within a batch, and however deep it is (`RPC-13`, `RPC-14`)."""
    connection = waiting("tools/call", "tools/call", revision=R2)
    frame = b"[%b]" % b",".join(
        [answer(1, {}), b"5", b'"x"', b"[" * 200 + b"]" * 200, answer(2, {}), request(7, "ping")]
    )
    assert [event.id for event in connection.receive(frame)] == [1, 2]
    assert sent(connection) == [{"jsonrpc": "2.0", "id": 7, "result": {}}]
    for depth in (2, 300, 900, 50_000):
        connection = waiting(revision=R2)
        try:
            assert connection.receive(b"[" * depth + answer(1, {}) + b"]" * depth) == []
        except Malformed:
            assert depth > 300


# -- giving up


def test_a_request_given_up_is_cancelled_at_the_server() -> None:
    """Once, with the reason; a late answer finds nobody (`STD-12`, `CAN-01`, `CAN-07`,
    `LIF-18`).
    """
    connection = waiting()
    connection.cancel(1, "too slow")
    connection.cancel(1, "too slow")
    connection.cancel(99)
    assert sent(connection) == [
        {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": 1, "reason": "too slow"}}
    ]
    assert connection.receive(answer(1, {})) == []


def test_an_introduction_is_never_cancelled() -> None:
    """It is given up in silence (`LIF-13`)."""
    connection = waiting("initialize", revision=R4)
    connection.cancel(1, "too slow")
    assert connection.outgoing() == []
    assert connection.receive(answer(1, {})) == []


def test_a_cancel_after_the_answer_says_nothing() -> None:
    """Only what is in flight may be named (`CAN-01`, `CAN-08`)."""
    connection = waiting()
    connection.receive(answer(1, {}))
    connection.cancel(1)
    assert connection.outgoing() == []


def test_a_closed_connection_names_what_will_never_be_answered() -> None:
    """Once, and sends nothing more."""
    connection = waiting("tools/call", "tools/list", "tools/call")
    connection.receive(answer(2, {}))
    connection.notify("notifications/roots/list_changed", t.RootsListChangedNotificationParams())
    assert connection.close() == [1, 3]
    assert connection.outgoing() == []
    assert connection.close() == []
    assert connection.receive(answer(1, {})) == []


# -- notices


def test_progress_finds_its_request_by_its_token() -> None:
    """The token is the request's id; after the answer there is no more of it."""
    connection = waiting("tools/call", "tools/call")
    event = only(
        connection.receive(
            notification(
                PROGRESS, {"progressToken": 2, "progress": 0.5, "total": 1, "message": "m"}
            )
        )
    )
    assert event == ProgressReceived(
        2, t.ProgressNotificationParams(progress_token=2, progress=0.5, total=1.0, message="m")
    )
    connection.receive(answer(2, {}))
    assert connection.receive(notification(PROGRESS, {"progressToken": 2, "progress": 1})) == []


def test_what_a_subscription_is_told_is_sorted_by_its_id() -> None:
    """Acknowledgement and notices alike (`STD-14`, `LSN-05`, `LSN-07`)."""
    connection = waiting("subscriptions/listen", "subscriptions/listen")
    acknowledged = {
        "notifications": {"toolsListChanged": True},
        "_meta": {KEY + "subscriptionId": 1},
    }
    first = only(
        connection.receive(notification("notifications/subscriptions/acknowledged", acknowledged))
    )
    assert (first.id, first.params.notifications) == (
        1,
        t.SubscriptionFilter(tools_list_changed=True),
    )
    second = only(
        connection.receive(
            notification(UPDATED, {"uri": "x:y", "_meta": {KEY + "subscriptionId": 2}})
        )
    )
    assert isinstance(second, SubscriptionReceived)
    assert (second.id, second.method, second.params.uri) == (2, UPDATED, "x:y")


def test_a_subscription_ends_with_its_answer_or_with_a_cancel() -> None:
    """Whichever comes first; the other is passed over (`LSN-10`, `LSN-11`, `X-01`)."""
    result = answer(1, {"_meta": {KEY + "subscriptionId": 1}})
    cancel = notification(CANCELLED, {"requestId": 1})
    for first, second in ((result, cancel), (cancel, result)):
        connection = waiting("subscriptions/listen")
        event = only(connection.receive(first))
        assert (event.id, isinstance(event.answer, Raw)) == (1, True)
        assert connection.receive(second) == []
        assert connection.outgoing() == []


@pytest.mark.parametrize("revision", [R1, R4, NEWEST])
def test_notices_that_belong_to_nothing_are_for_everyone(revision: str) -> None:
    """Changes, updates and log messages (`SUB-04`)."""
    connection = waiting(revision=revision)
    for method, params in (
        ("notifications/tools/list_changed", ...),
        ("notifications/prompts/list_changed", {}),
        ("notifications/resources/list_changed", {"_meta": {}}),
        (UPDATED, {"uri": "x:y"}),
        ("notifications/message", {"level": "info", "data": [1]}),
    ):
        event = only(connection.receive(notification(method, params)))
        assert isinstance(event, NotificationReceived)
        assert event.method == method


# -- questions


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_a_ping_is_answered_at_once(revision: str) -> None:
    """In each revision that has it (`PNG-01`)."""
    connection = waiting(revision=revision)
    assert connection.receive(request("p", "ping")) == []
    assert sent(connection) == [{"jsonrpc": "2.0", "id": "p", "result": {}}]


ELICIT = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}}
SAMPLE = {"maxTokens": 5, "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]}
QUESTIONS: dict[str, tuple[Any, str, type[Any]]] = {
    "elicitation/create": (ELICIT, R3, t.ElicitRequest),
    "sampling/createMessage": (SAMPLE, R1, t.CreateMessageRequest),
    "roots/list": ({}, R1, t.ListRootsRequest),
}


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
@pytest.mark.parametrize("method", QUESTIONS)
def test_a_question_of_the_revision_is_handed_on(method: str, revision: str) -> None:
    """Elicitation exists since 2025-06-18; before, it is a method that does not (`LIF-12`,
    `ELI-04`).
    """
    params, since, kind = QUESTIONS[method]
    connection = waiting(revision=revision)
    events = connection.receive(request(3, method, params))
    if revision < since:
        assert events == []
        assert sent(connection)[0]["error"]["code"] == t.METHOD_NOT_FOUND
    else:
        assert isinstance(only(events), QuestionReceived)
        assert type(only(events).request) is kind
        assert connection.outgoing() == []


def test_roots_may_be_asked_for_without_params() -> None:
    """(`RPC-01`)"""
    assert isinstance(
        only(waiting(revision=R4).receive(request(3, "roots/list"))), QuestionReceived
    )


@pytest.mark.parametrize(
    "method",
    [
        "tools/list",
        "initialize",
        "sampling/complete",
        "server/discover",
        "notifications/message",
        "",
    ],
)
def test_what_no_server_may_ask_does_not_exist(method: str) -> None:
    """(`ERR-01`)"""
    connection = waiting(revision=R4)
    assert connection.receive(request("q", method, {})) == []
    (reply,) = sent(connection)
    assert (reply["id"], reply["error"]["code"]) == ("q", t.METHOD_NOT_FOUND)


@pytest.mark.parametrize(
    "params", [{}, [], None, {"message": 5}, {"message": "x", "mode": "telepathy"}], ids=repr
)
def test_a_question_that_cannot_be_read_is_refused(params: Any) -> None:
    """(`ERR-01`, `ERR-18`)"""
    connection = waiting(revision=R4)
    assert connection.receive(request("q", "elicitation/create", params)) == []
    (reply,) = sent(connection)
    assert (reply["id"], reply["error"]["code"]) == ("q", t.INVALID_PARAMS)


def test_a_question_is_answered_once_in_the_words_of_the_revision() -> None:
    """With an answer or with a refusal; the ids of questions and of our own requests do not get in
    each other's way.
    """
    connection = waiting(revision=R4)
    connection.receive(request(1, "elicitation/create", ELICIT))
    connection.receive(request("1", "elicitation/create", ELICIT))
    connection.respond(1, t.ElicitResult(action="accept", content={"a": 1}, result_type="complete"))
    connection.respond(1, t.ElicitResult(action="cancel"))
    connection.fail("1", t.USER_REJECTED, "no", {"a": 1})
    connection.fail("1", t.USER_REJECTED, "no")
    connection.respond("never asked", t.ElicitResult(action="cancel"))
    assert sent(connection) == [
        {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": {"a": 1}}},
        {"jsonrpc": "2.0", "id": "1", "error": {"code": -1, "message": "no", "data": {"a": 1}}},
    ]
    assert len(connection.receive(answer(1, {}))) == 1


def test_an_answer_that_is_no_json_can_still_be_made_a_refusal() -> None:
    """The server must not wait for ever because of what a person's form held."""
    connection = waiting(revision=R4)
    connection.receive(request(1, "elicitation/create", ELICIT))
    with pytest.raises(TypeError):
        connection.respond(1, t.ElicitResult(action="accept", content={"a": object()}))
    connection.fail(1, t.INTERNAL_ERROR, "no", "\ud800")
    assert sent(connection) == [
        {"jsonrpc": "2.0", "id": 1, "error": {"code": t.INTERNAL_ERROR, "message": "no"}}
    ]


def test_a_question_taken_back_is_not_answered() -> None:
    """The person need not be asked any more, and what they say is dropped (`CAN-05`)."""
    connection = waiting(revision=R4)
    connection.receive(request(1, "elicitation/create", ELICIT))
    assert connection.receive(notification(CANCELLED, {"requestId": 1, "reason": "r"})) == [
        RequestCancelled(1, "r")
    ]
    connection.respond(1, t.ElicitResult(action="cancel"))
    connection.fail(1, -1, "no")
    assert connection.outgoing() == []
    assert len(connection.receive(answer(1, {}))) == 1


def test_a_question_whose_id_is_in_use_is_passed_over() -> None:
    """No server may do this; an answer would be taken for the answer to the first (`RPC-03`)."""
    connection = waiting(revision=R4)
    connection.receive(request(1, "roots/list", {}))
    assert connection.receive(request(1, "elicitation/create", ELICIT)) == []
    connection.respond(1, t.ListRootsResult(roots=[]))
    assert sent(connection) == [{"jsonrpc": "2.0", "id": 1, "result": {"roots": []}}]


@pytest.mark.parametrize("revision", [R1, R4, NEWEST])
def test_notifications_go_out_in_the_words_of_the_revision(revision: str) -> None:
    """Without params where they would be empty."""
    connection = ClientConnection(revision)
    connection.notify("notifications/roots/list_changed", t.RootsListChangedNotificationParams())
    connection.notify(
        PROGRESS, t.ProgressNotificationParams(progress_token=1, progress=1, message="m")
    )
    first, second = sent(connection)
    assert first == {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
    assert ("message" in second["params"]) == (revision > R1)
    assert connection.has_outgoing is False
