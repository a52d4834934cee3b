"""Questions that the server puts to a handshake peer, and the batches that one revision has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock import types as t
from interlock.protocol.events import RequestReceived, ResponseReceived
from interlock.protocol.handshake.server import ServerConnection
from interlock.wire.revisions import HANDSHAKE_REVISIONS, R1, R2, R3, R4
from tests.protocol.frames import answer, asked, error, greeted, notification, request, sent

FORM = t.ElicitRequest(
    t.ElicitRequestParams(
        message="Which?", mode="form", requested_schema={"type": "object", "properties": {}}
    )
)
SAMPLE = t.CreateMessageRequest(
    t.CreateMessageRequestParams(
        max_tokens=1, messages=[t.SamplingMessage(role="user", content=t.TextContent("hi"))]
    )
)
ROOTS = t.ListRootsRequest()

SAID: list[tuple[Any, str, dict[str, Any], Any]] = [
    (
        FORM,
        "elicitation/create",
        {"action": "accept", "content": {"a": 1}},
        t.ElicitResult(action="accept", content={"a": 1}),
    ),
    (
        SAMPLE,
        "sampling/createMessage",
        {
            "role": "assistant",
            "model": "m",
            "content": {"type": "text", "text": "x"},
            "stopReason": "endTurn",
        },
        t.CreateMessageResult(
            role="assistant", model="m", content=t.TextContent("x"), stop_reason="endTurn"
        ),
    ),
    (
        ROOTS,
        "roots/list",
        {"roots": [{"uri": "file:///x"}]},
        t.ListRootsResult(roots=[t.Root(uri="file:///x")]),
    ),
]


def calling(revision: str = R4) -> ServerConnection:
    """A connection on which one tool call runs."""
    connection = greeted(revision)
    asked(connection, request(1, "tools/call", {"name": "x"}))
    return connection


@pytest.mark.parametrize(
    "question, method, reply, read", SAID, ids=[method for _, method, _, _ in SAID]
)
def test_a_question_goes_out_on_the_call_and_its_answer_comes_back(
    question: Any, method: str, reply: dict[str, Any], read: Any
) -> None:
    """As a request of the server with an id of its own, routed as the call that asks (`ELI-04`)."""
    connection = calling()
    id = connection.ask(1, question)
    ((route, frame),) = connection.outgoing()
    said = json.loads(frame)
    assert (route, said["id"], said["method"]) == (1, id, method)
    assert connection.receive(answer(id, reply)) == [ResponseReceived(id, read)]
    assert connection.outgoing() == []


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_only_what_the_revision_knows_can_be_asked(revision: str) -> None:
    """Elicitation since 2025-06-18, in the words of the revision (`LIF-12`, `ELI-07`, `ELI-09`)."""
    connection = calling(revision)
    connection.ask(1, SAMPLE)
    connection.ask(1, ROOTS)
    if revision < R3:
        with pytest.raises(t.ProtocolError):
            connection.ask(1, FORM)
    else:
        connection.ask(1, FORM)
        assert ("mode" in sent(connection)[-1]["params"]) == (revision == R4)


def test_ids_of_questions_never_repeat() -> None:
    """Over all calls of a connection, also of those that were answered (`RPC-03`)."""
    connection = calling()
    ids = []
    for _ in range(100):
        ids.append(connection.ask(1, ROOTS))
        connection.receive(answer(ids[-1], {"roots": []}))
    assert len(set(ids)) == 100


BAD_ANSWERS: dict[str, tuple[Any, int]] = {
    "an error": ({"error": {"code": -1, "message": "no"}}, t.USER_REJECTED),
    "an error with a detail": (
        {"error": {"code": -32601, "message": "no", "data": {"a": 1}}},
        t.METHOD_NOT_FOUND,
    ),
    "nothing in it": ({"result": {}}, t.INVALID_PARAMS),
    "null": ({"result": None}, t.INVALID_PARAMS),
    "a list": ({"result": []}, t.INVALID_PARAMS),
    "an action that does not exist": ({"result": {"action": "maybe"}}, t.INVALID_PARAMS),
    "content that is no object": (
        {"result": {"action": "accept", "content": [1]}},
        t.INVALID_PARAMS,
    ),
    "an error that is a string": ({"error": "no"}, t.INVALID_PARAMS),
    "an error without a code": ({"error": {"message": "no"}}, t.INVALID_PARAMS),
    "an error that is null": ({"error": None}, t.INVALID_PARAMS),
    "both": (
        {"result": {"action": "accept"}, "error": {"code": -1, "message": "no"}},
        t.INVALID_PARAMS,
    ),
}


@pytest.mark.parametrize("said, code", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_an_answer_that_is_none_is_an_error_to_whoever_asked(
    said: dict[str, Any], code: int
) -> None:
    """Whoever waits hears of it at once, and the peer gets no answer to its answer (`ELI-14`,
    `RPC-06`).
    """
    connection = calling()
    id = connection.ask(1, FORM)
    connection.outgoing()
    (event,) = connection.receive(json.dumps({"jsonrpc": "2.0", "id": id} | said).encode())
    assert isinstance(event, ResponseReceived)
    assert event.id == id
    assert isinstance(event.answer, t.McpError)
    assert event.answer.code == code
    assert connection.outgoing() == []


def test_a_second_answer_and_one_of_another_type_are_ignored() -> None:
    """(`CAN-07`, `RPC-05`)"""
    connection = calling()
    id = connection.ask(1, ROOTS)
    connection.outgoing()
    assert connection.receive(answer(str(id), {"roots": []})) == []
    assert len(connection.receive(answer(id, {"roots": []}))) == 1
    assert connection.receive(answer(id, {"roots": []})) == []
    assert connection.receive(error(id, -1)) == []
    assert connection.outgoing() == []


def test_a_question_taken_back_is_cancelled_at_the_peer() -> None:
    """On the route it went out on; a late answer finds nobody (`CAN-01`, `CAN-07`)."""
    connection = calling()
    id = connection.ask(1, FORM)
    connection.outgoing()
    connection.withdraw(id, "enough")
    connection.withdraw(id, "enough")
    ((route, frame),) = connection.outgoing()
    assert route == 1
    assert json.loads(frame) == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": id, "reason": "enough"},
    }
    assert connection.receive(answer(id, {"action": "cancel"})) == []


@pytest.mark.parametrize("ending", ["answered", "failed", "cancelled"])
def test_a_call_that_ends_takes_its_questions_back_and_no_others(ending: str) -> None:
    """However it ends (`CAN-05`)."""
    connection = calling()
    asked(connection, request(2, "tools/call", {"name": "y"}))
    mine = connection.ask(1, FORM)
    others = connection.ask(2, FORM)
    connection.outgoing()
    if ending == "answered":
        connection.respond(1, t.CallToolResult(content=[]))
    elif ending == "failed":
        connection.fail(1, t.INTERNAL_ERROR, "no")
    else:
        connection.receive(notification("notifications/cancelled", {"requestId": 1}))
    notes = [
        frame for frame in sent(connection) if frame.get("method") == "notifications/cancelled"
    ]
    assert [note["params"]["requestId"] for note in notes] == [mine]
    assert len(connection.receive(answer(others, {"action": "decline"}))) == 1


def test_nobody_can_be_asked_on_a_call_that_has_ended() -> None:
    """(`LIF-17`)"""
    connection = calling()
    connection.respond(1, t.CallToolResult(content=[]))
    with pytest.raises(t.ProtocolError):
        connection.ask(1, ROOTS)


def test_whoever_waits_for_an_answer_hears_that_the_peer_has_gone() -> None:
    """Each once."""
    connection = calling()
    ids = {connection.ask(1, ROOTS), connection.ask(1, FORM)}
    events = [event for event in connection.close() if isinstance(event, ResponseReceived)]
    assert {event.id for event in events} == ids
    assert all(isinstance(event.answer, t.McpError) for event in events)


# -- batches


def test_a_batch_is_answered_with_one_array_once_all_of_it_is_answered() -> None:
    """All kinds of messages in one array, with an error for each bad member (`RPC-13`)."""
    connection = calling(R2)
    question = connection.ask(1, ROOTS)
    connection.outgoing()
    messages = [
        request(2, "ping"),
        request(3, "tools/list"),
        b'{"jsonrpc":"2.0","id":4,"method":5}',
        notification("notifications/cancelled", {"requestId": 1}),
        answer(question, {"roots": []}),
        b"17",
        b"[]",
        request(5, "tools/imagined"),
        request(6, "tools/call", {"name": "y"}),
    ]
    events = connection.receive(b"[%b]" % b",".join(messages))
    assert [event.id for event in events if isinstance(event, RequestReceived)] == [3, 6]
    assert all(frame["method"] == "notifications/cancelled" for frame in sent(connection))
    connection.respond(6, t.ListToolsResult(tools=[]))
    connection.notify(
        3, "notifications/message", t.LoggingMessageNotificationParams(level="error", data=1)
    )
    assert [frame["method"] for frame in sent(connection)] == ["notifications/message"]
    connection.fail(3, t.INTERNAL_ERROR, "no")
    (replies,) = sent(connection)
    assert [(reply.get("id"), reply.get("error", {}).get("code")) for reply in replies] == [
        (2, None),
        (4, t.INVALID_REQUEST),
        (None, t.INVALID_REQUEST),
        (None, t.INVALID_REQUEST),
        (5, t.METHOD_NOT_FOUND),
        (6, None),
        (3, t.INTERNAL_ERROR),
    ]


def test_a_batch_whose_last_open_request_is_cancelled_is_answered_for_the_others() -> None:
    """And one whose requests are all cancelled is not answered at all (`CAN-05`)."""
    connection = greeted(R2)
    calls = [request(n, "tools/list") for n in (1, 2)]
    for also in ((1,), (1, 2)):
        connection.receive(b"[%b]" % b",".join(calls))
        if 2 not in also:
            connection.respond(2, t.ListToolsResult(tools=[]))
        for id in also:
            connection.receive(notification("notifications/cancelled", {"requestId": id}))
        arrays = sent(connection)
        assert [[reply["id"] for reply in array] for array in arrays] == (
            [[2]] if 2 not in also else []
        )


def test_batches_beside_each_other_and_single_requests_do_not_mix() -> None:
    """Each array has the responses to its own batch, and errors for doubled ids."""
    connection = greeted(R2)
    connection.receive(b"[%b,%b]" % (request(1, "tools/list"), request(2, "tools/list")))
    connection.receive(request(3, "tools/list"))
    connection.receive(b"[%b,%b]" % (request(4, "tools/list"), request(1, "tools/list")))
    seen = []
    for id in (3, 1, 4, 2):
        connection.respond(id, t.ListToolsResult(tools=[]))
        seen += [
            [(one["id"], "error" in one) for one in (said if isinstance(said, list) else [said])]
            for said in map(json.loads, (frame for _, frame in connection.outgoing()))
        ]
    assert seen == [[(3, False)], [(1, True), (4, False)], [(1, False), (2, False)]]


@pytest.mark.parametrize(
    "frame, code",
    [
        (b"[]", t.INVALID_REQUEST),
        (b" [ ]", t.INVALID_REQUEST),
        (b"[1,", t.PARSE_ERROR),
        (b"[[[[", t.PARSE_ERROR),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"},"\xff"]', t.PARSE_ERROR),
    ],
)
def test_a_batch_that_is_none_is_one_error(frame: bytes, code: int) -> None:
    """(`RPC-13`)"""
    connection = greeted(R2)
    assert connection.receive(frame) == []
    (reply,) = sent(connection)
    assert (reply.get("id"), reply["error"]["code"]) == (None, code)


def test_a_batch_of_batches_does_not_go_deep() -> None:
    """It is refused, however deep it is."""
    connection = greeted(R2)
    for depth in (2, 500, 50_000):
        connection.receive(b"[" * depth + b"]" * depth)
        assert len(sent(connection)) == 1
    asked(connection, request(1, "tools/list"))


def test_initialize_is_refused_in_a_batch() -> None:
    """The session stays as it is, and the other members are served (`RPC-15`)."""
    connection = greeted(R2)
    hello = {"protocolVersion": R1, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    (event,) = connection.receive(
        b"[%b,%b]" % (request(1, "initialize", hello), request(2, "tools/list"))
    )
    assert isinstance(event, RequestReceived)
    assert event.caller.revision == R2
    connection.respond(2, t.ListToolsResult(tools=[]))
    (replies,) = connection.outgoing()
    assert [reply.get("error", {}).get("code") for reply in json.loads(replies[1])] == [
        t.INVALID_REQUEST,
        None,
    ]
