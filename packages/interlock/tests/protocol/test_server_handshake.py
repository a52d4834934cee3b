"""The server's end in the handshake era: one introduction, remembered; and the requests that are
answered on the spot.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from interlock import types as t
from interlock.exchange import Principal
from interlock.protocol.events import NotificationReceived, RequestCancelled, RequestReceived
from interlock.protocol.handshake.server import ServerConnection
from interlock.wire.revisions import (
    HANDSHAKE_REVISIONS,
    NEWEST,
    R1,
    R2,
    R3,
    R4,
    REVISIONS,
    Era,
    speaks,
)
from tests.protocol.frames import (
    CAPABILITIES,
    INFO,
    asked,
    error,
    greeted,
    identity,
    initialize,
    notification,
    request,
    sent,
    stamped,
)

every_handshake = pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'


@every_handshake
def test_an_offered_revision_is_agreed_to_in_its_own_words(revision: str) -> None:
    """The same string comes back, with capabilities, name and instructions, and nothing that the
    revision does not know.

    (`LIF-03`, `LIF-06`, `LIF-23`, `RPC-05`)
    """
    connection = ServerConnection(identity())
    assert connection.receive(initialize("a", revision)) == []
    (reply,) = sent(connection)
    assert reply["id"] == "a"
    result = reply["result"]
    assert result["protocolVersion"] == revision
    assert result["instructions"] == "Be kind."
    assert result["serverInfo"] == {"name": "house", "version": "1"} | (
        {"title": "The house"} if revision >= R3 else {}
    )
    assert ("completions" in result["capabilities"]) == (revision >= R2)
    assert result.keys() == {"protocolVersion", "capabilities", "serverInfo", "instructions"}


@pytest.mark.parametrize("offered", ["1999-01-01", "2030-01-01", NEWEST, "", "latest"])
def test_another_revision_is_answered_with_the_newest_of_this_era(offered: str) -> None:
    """Also where the newest of all is offered, which knows no `initialize` (`LIF-03`, `LIF-04`)."""
    connection = ServerConnection(identity())
    connection.receive(initialize(1, offered))
    assert sent(connection)[0]["result"]["protocolVersion"] == R4
    older = ServerConnection(identity(revisions=(R1, R3, NEWEST)))
    older.receive(initialize(1, R4))
    assert sent(older)[0]["result"]["protocolVersion"] == R3


def test_a_server_without_this_era_names_what_it_speaks() -> None:
    """The error says what to try instead (`ERA-03`, `ERR-09`)."""
    connection = ServerConnection(identity(revisions=(NEWEST,)))
    assert connection.receive(initialize(1, R4)) == []
    (reply,) = sent(connection)
    assert reply["error"]["code"] == t.UNSUPPORTED_PROTOCOL_VERSION
    assert reply["error"]["data"] == {"supported": [NEWEST], "requested": R4}
    connection.receive(request(2, "ping"))
    assert sent(connection)[0]["error"]["code"] == t.INVALID_PARAMS


BAD_HELLOS = {
    "no params": ...,
    "a list": [],
    "null": None,
    "no revision": {"capabilities": {}, "clientInfo": INFO},
    "no capabilities": {"protocolVersion": R4, "clientInfo": INFO},
    "no name": {"protocolVersion": R4, "capabilities": {}},
    "a number as revision": {"protocolVersion": 2024, "capabilities": {}, "clientInfo": INFO},
    "a list as capabilities": {"protocolVersion": R4, "capabilities": [], "clientInfo": INFO},
    "a name without version": {
        "protocolVersion": R4,
        "capabilities": {},
        "clientInfo": {"name": "x"},
    },
}


@pytest.mark.parametrize("params", BAD_HELLOS.values(), ids=BAD_HELLOS)
def test_an_introduction_that_says_too_little_is_refused(params: Any) -> None:
    """And nothing is remembered of it (`LIF-01`)."""
    connection = ServerConnection(identity())
    assert connection.receive(request(1, "initialize", params)) == []
    (reply,) = sent(connection)
    assert (reply["id"], reply["error"]["code"]) == (1, t.INVALID_PARAMS)
    assert connection.remembered is None


@every_handshake
def test_what_was_said_once_is_written_on_each_request(revision: str) -> None:
    """Capabilities, name, principal and session: above this floor a request of this era is like any
    other (`LIF-15`).
    """
    alice = Principal(subject="alice")
    connection = ServerConnection(identity(), principal=alice, session="s1")
    connection.receive(initialize(1, revision))
    connection.outgoing()
    for id in (2, "2", 10**30):
        event = asked(connection, request(id, "tools/call", {"name": "add", "arguments": {"a": 1}}))
        assert (event.id, event.method, event.params.name, bytes(event.params.arguments)) == (
            id,
            "tools/call",
            "add",
            b'{"a": 1}',
        )
        assert type(event.id) is type(id)
        caller = event.caller
        assert (caller.revision, caller.era, caller.principal, caller.session) == (
            revision,
            Era.HANDSHAKE,
            alice,
            "s1",
        )
        known = {
            name: what
            for name, what in CAPABILITIES.items()
            if name != "elicitation" or speaks(revision, "elicitation/create")
        }
        assert caller.capabilities == msgspec.convert(known, t.ClientCapabilities)
        assert caller.info == t.Implementation(name="peer", version="9")


@every_handshake
def test_a_result_is_written_in_the_words_of_the_revision(revision: str) -> None:
    """No resultType, no caching hints, no serverInfo: older clients never heard of them
    (`RPC-19`).
    """
    connection = greeted(revision)
    asked(connection, LIST)
    tool = t.Tool(name="a", title="A", input_schema={"type": "object"})
    connection.respond(
        1, t.ListToolsResult(tools=[tool], ttl_ms=5, cache_scope="public", result_type="complete")
    )
    (reply,) = sent(connection)
    title = {"title": "A"} if revision >= R3 else {}
    assert reply == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"tools": [{"name": "a", "inputSchema": {"type": "object"}} | title]},
    }


@pytest.mark.parametrize(
    "frame",
    [
        LIST,
        request(1, "tools/call", {"name": "x"}),
        request(1, "logging/setLevel", {"level": "debug"}),
    ],
)
def test_before_any_introduction_nothing_but_ping_is_served(frame: bytes) -> None:
    """The refusal echoes the id and names the revisions; a ping is answered (`LIF-09`, `PNG-01`,
    `CFQ-01`, `CFQ-03`, `ERR-11`).
    """
    connection = ServerConnection(identity())
    assert connection.receive(frame) == []
    (reply,) = sent(connection)
    assert (reply["id"], reply["error"]["code"]) == (1, t.INVALID_PARAMS)
    assert reply["error"]["data"]["supported"] == list(reversed(REVISIONS))
    connection.receive(request("p", "ping"))
    assert sent(connection) == [{"jsonrpc": "2.0", "id": "p", "result": {}}]


@every_handshake
def test_ping_is_answered_at_once_with_an_empty_result(revision: str) -> None:
    """Also with `_meta`, and in the middle of other requests (`PNG-01`)."""
    connection = greeted(revision)
    asked(connection, LIST)
    assert connection.receive(request(2, "ping", {"_meta": {"progressToken": 1}})) == []
    assert sent(connection) == [{"jsonrpc": "2.0", "id": 2, "result": {}}]


@every_handshake
def test_the_log_level_is_remembered_from_then_on(revision: str) -> None:
    """Each of the eight levels; before any was set it is info (`LOG-02`, `LOG-03`, `LOG-04`)."""
    connection = greeted(revision)
    assert asked(connection, LIST).caller.log_level == "info"
    for n, level in enumerate(t.LOGGING_LEVELS, 2):
        connection.receive(request(f"l{n}", "logging/setLevel", {"level": level}))
        assert sent(connection)[0]["result"] == {}
        assert asked(connection, request(n, "tools/list")).caller.log_level == level


@pytest.mark.parametrize(
    "params",
    [{}, {"level": "loud"}, {"level": 3}, {"level": None}, {"level": "INFO"}, [], None],
    ids=repr,
)
def test_a_log_level_that_does_not_exist_is_refused(params: Any) -> None:
    """And the one before stays (`LOG-03`)."""
    connection = greeted(R4)
    connection.receive(request(5, "logging/setLevel", params))
    assert sent(connection)[0]["error"]["code"] == t.INVALID_PARAMS
    assert asked(connection, LIST).caller.log_level == "info"


@every_handshake
@pytest.mark.parametrize(
    "method",
    [
        "server/discover",
        "subscriptions/listen",
        "tools/imagined",
        "sampling/createMessage",
        "notifications/x",
    ],
)
def test_a_method_that_the_revision_does_not_have_does_not_exist(
    method: str, revision: str
) -> None:
    """Whatever its params are; what only servers ask is none that a server takes (`ERR-01`,
    `LIF-12`).
    """
    for params in ({}, {"name": 5}, []):
        connection = greeted(revision)
        assert connection.receive(request(1, method, params)) == []
        (reply,) = sent(connection)
        assert (reply["id"], reply["error"]["code"]) == (1, t.METHOD_NOT_FOUND)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": 5},
        {"name": "x", "arguments": 1, "_meta": 5},
        {"name": "x", "_meta": {"progressToken": 1.5}},
        [],
        None,
    ],
)
def test_params_that_cannot_be_read_are_named(params: Any) -> None:
    """(`ERR-01`, `CFQ-01`)"""
    connection = greeted(R4)
    assert connection.receive(request("x", "tools/call", params)) == []
    (reply,) = sent(connection)
    assert (reply["id"], reply["error"]["code"]) == ("x", t.INVALID_PARAMS)


def test_a_modern_request_on_the_same_connection_is_served_by_its_own_word() -> None:
    """Both eras may be spoken on one pipe, and neither spoils the other (`ERA-01`, `ERA-02`,
    `RPC-24`, `X-13`).
    """
    connection = greeted(R2)
    modern = asked(connection, stamped(1, "tools/list", capabilities={}))
    assert (modern.caller.revision, modern.caller.capabilities, modern.caller.log_level) == (
        NEWEST,
        t.ClientCapabilities(),
        None,
    )
    old = asked(connection, request(2, "tools/list"))
    assert (old.caller.revision, old.caller.log_level) == (R2, "info")
    connection.respond(1, t.ListToolsResult(tools=[]))
    connection.respond(2, t.ListToolsResult(tools=[]))
    new_reply, old_reply = sent(connection)
    assert new_reply["result"]["resultType"] == "complete"
    assert old_reply["result"] == {"tools": []}


def test_a_modern_request_before_the_introduction_changes_nothing() -> None:
    """A peer may look first and then introduce itself (`ERA-02`, `X-13`)."""
    connection = ServerConnection(identity())
    asked(connection, stamped(1, "server/discover"))
    assert connection.remembered is None
    connection.receive(initialize(2, R3))
    assert sent(connection)[0]["result"]["protocolVersion"] == R3


def test_a_second_introduction_starts_over() -> None:
    """What runs for the first session is cancelled without an answer, for its ids may come
    again.
    """
    connection = greeted(R4)
    (listening,) = connection.receive(notification("notifications/initialized"))
    running = asked(connection, LIST)
    stateless = asked(connection, stamped(77, "tools/list"))
    assert isinstance(listening, RequestReceived)
    ended = connection.receive(initialize(running.id, R2, {}))
    assert [event.id for event in ended if isinstance(event, RequestCancelled)] == [
        listening.id,
        running.id,
    ]
    (greeting,) = sent(connection)
    assert (greeting["id"], greeting["result"]["protocolVersion"]) == (running.id, R2)
    connection.respond(running.id, t.ListToolsResult(tools=[]))
    assert sent(connection) == []
    again = asked(connection, LIST)
    assert again.caller.capabilities == t.ClientCapabilities()
    for id in (again.id, stateless.id):
        connection.respond(id, t.ListToolsResult(tools=[]))
        assert [reply["id"] for reply in sent(connection)] == [id]


def test_an_id_in_use_cannot_be_used_again_and_the_first_call_stays_whole() -> None:
    """The second is refused; once the first is answered the id is free (`RPC-03`, `RPC-04`)."""
    connection = greeted(R4)
    asked(connection, LIST)
    assert connection.receive(request(1, "tools/call", {"name": "x"})) == []
    assert sent(connection)[0]["error"]["code"] == t.INVALID_REQUEST
    assert asked(connection, request("1", "tools/list")).id == "1"
    connection.respond(1, t.ListToolsResult(tools=[]))
    assert sent(connection)[0]["result"] == {"tools": []}
    assert asked(connection, LIST).id == 1


def test_a_call_is_answered_once() -> None:
    """A second answer, an error after an answer, and a notification after both are dropped
    (`RPC-06`).
    """
    connection = greeted(R4)
    asked(connection, LIST)
    connection.respond(1, t.ListToolsResult(tools=[]))
    connection.respond(1, t.ListToolsResult(tools=[]))
    connection.fail(1, -32603, "late")
    connection.notify(
        1, "notifications/progress", t.ProgressNotificationParams(progress_token=1, progress=1)
    )
    connection.fail("never asked", -32603, "nobody")
    assert len(sent(connection)) == 1


def test_an_answer_that_is_no_json_can_still_be_made_an_error() -> None:
    """The shell hears of it at once, and the call stays open for the error that it sends then."""
    connection = greeted(R4)
    asked(connection, LIST)
    with pytest.raises(TypeError):
        connection.respond(1, t.CallToolResult(content=[], structured_content={"a": object()}))
    connection.fail(1, t.INTERNAL_ERROR, "Internal error", {"why": object()})
    (reply,) = sent(connection)
    assert reply["error"] == {"code": t.INTERNAL_ERROR, "message": "Internal error"}


@every_handshake
def test_a_notification_is_sent_only_where_the_revision_has_it(revision: str) -> None:
    """And in its words: progress has a message since 2025-03-26 (`LIF-12`)."""
    connection = greeted(revision)
    asked(connection, LIST)
    connection.notify(
        1,
        "notifications/progress",
        t.ProgressNotificationParams(progress_token=1, progress=1, message="m"),
    )
    connection.notify(
        1,
        "notifications/elicitation/complete",
        t.ElicitationCompleteNotificationParams(elicitation_id="e"),
    )
    connection.notify(
        1,
        "notifications/subscriptions/acknowledged",
        t.SubscriptionsAcknowledgedNotificationParams(notifications=t.SubscriptionFilter()),
    )
    told = sent(connection)
    assert [note["method"] for note in told] == ["notifications/progress"] + [
        "notifications/elicitation/complete"
    ] * (revision == R4)
    assert ("message" in told[0]["params"]) == (revision >= R2)
    assert all("id" not in note for note in told)


TOLD = {
    "roots have changed": (
        notification("notifications/roots/list_changed"),
        "notifications/roots/list_changed",
    ),
    "progress of ours": (
        notification("notifications/progress", {"progressToken": 1, "progress": 0.5}),
        "notifications/progress",
    ),
    "one that does not exist": (notification("notifications/imagined", {"a": 1}), None),
    "a request's name": (notification("tools/call", {"name": "x"}), None),
    "one that cannot be read": (notification("notifications/progress", {"progress": "x"}), None),
    "params that are a list": (notification("notifications/roots/list_changed", [1]), None),
    "a cancel of nothing": (notification("notifications/cancelled", {"requestId": 99}), None),
    "a cancel without an id": (notification("notifications/cancelled", {}), None),
    "a cancel with a wrong id": (notification("notifications/cancelled", {"requestId": [1]}), None),
    "a cancel with the id's other type": (
        notification("notifications/cancelled", {"requestId": "1"}),
        None,
    ),
    "a response to nothing": (b'{"jsonrpc":"2.0","id":44,"result":{}}', None),
    "an error to nothing": (error(44, -1), None),
    "an error without an id": (
        b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}',
        None,
    ),
    "an error with a null id": (error(None, -32700), None),
    "a malformed answer to nothing": (b'{"jsonrpc":"2.0","id":1,"error":"no"}', None),
}


@pytest.mark.parametrize("frame, method", TOLD.values(), ids=TOLD)
def test_what_is_no_request_is_never_answered(frame: bytes, method: str | None) -> None:
    """Not even with an error, whatever is wrong with it, and the call that runs is not touched
    (`RPC-11`, `CAN-06`, `CAN-09`).
    """
    connection = greeted(R4)
    asked(connection, LIST)
    events = connection.receive(frame)
    assert [event.method for event in events if isinstance(event, NotificationReceived)] == (
        [method] if method else []
    )
    assert len(events) == (method is not None)
    assert sent(connection) == []
    connection.respond(1, t.ListToolsResult(tools=[]))
    assert len(sent(connection)) == 1


MALFORMED = {
    "no JSON": (b"{nope", None, t.PARSE_ERROR),
    "NaN": (b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":NaN}}', 7, t.PARSE_ERROR),
    "a wrong version": (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', 7, t.INVALID_REQUEST),
    "a float as id": (b'{"jsonrpc":"2.0","id":7.5,"method":"ping"}', None, t.INVALID_REQUEST),
    "a null id": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, t.INVALID_REQUEST),
    "neither method nor result": (b'{"jsonrpc":"2.0","id":"x"}', "x", t.INVALID_REQUEST),
    "nothing at all": (b'{"jsonrpc":"2.0"}', None, t.INVALID_REQUEST),
    "a method and a result": (
        b'{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}',
        7,
        t.INVALID_REQUEST,
    ),
    "not UTF-8": (
        b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"\xff"}}',
        7,
        t.PARSE_ERROR,
    ),
    "a scalar": (b"42", None, t.INVALID_REQUEST),
}


@pytest.mark.parametrize("blank", [b" ", b"\t \r", b" " * 70_000])
def test_a_blank_line_is_no_message(blank: bytes) -> None:
    """It is passed over between messages on a shared channel; as a body of its own it is
    refused.
    """
    connection = greeted(R4)
    assert connection.receive(blank) == []
    assert sent(connection) == []
    alone = ServerConnection(identity(), shared=False)
    alone.receive(blank)
    assert [reply["error"]["code"] for reply in sent(alone)] == [t.PARSE_ERROR]


@pytest.mark.parametrize("frame, id, code", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_message_is_refused_and_the_conversation_goes_on(
    frame: bytes, id: Any, code: int
) -> None:
    """With the id where it can be read, else with none (`RPC-09`, `ERR-01`, `CFQ-01`)."""
    connection = greeted(R4)
    assert connection.receive(frame) == []
    (reply,) = sent(connection)
    assert reply["error"]["code"] == code
    assert reply.get("id", "none") == ("none" if id is None else id)
    assert asked(connection, LIST).method == "tools/list"


WITH_IDS = {
    # what is wrong with a request whose id can be read
    "an unknown method": request("x", "tools/imagined"),
    "params of a wrong shape": request("x", "tools/call", {"name": 5}),
    "params that are no object": request("x", "tools/list", 5),
    "another version of JSON-RPC": b'{"jsonrpc":"1.0","id":"x","method":"tools/list"}',
    "a method that is no string": b'{"jsonrpc":"2.0","id":"x","method":5}',
    "JSON that ends too soon": b'{"jsonrpc":"2.0","id":"x","method":"tools/list"',
    "a resource that nobody has": request("x", "resources/subscribe", {"uri": 5}),
}


@pytest.mark.parametrize("revision", [R1, R2, R3])
@pytest.mark.parametrize("frame", WITH_IDS.values(), ids=WITH_IDS)
def test_an_error_that_answers_a_request_has_its_id(frame: bytes, revision: str) -> None:
    """Their schemas demand one, and the request's id is there to be read in each of these
    (`RPC-08`).
    """
    connection = greeted(revision)
    assert connection.receive(frame) == []
    (reply,) = sent(connection)
    assert reply["id"] == "x"
    assert isinstance(reply["error"]["code"], int)


@pytest.mark.parametrize("revision", [R1, R2, R3])
def test_an_error_of_a_handler_has_the_id_of_its_request(revision: str) -> None:
    """Whatever a handler fails with (`RPC-08`)."""
    connection = greeted(revision)
    event = asked(connection, LIST)
    connection.fail(event.id, -32603, "no")
    (reply,) = sent(connection)
    assert reply["id"] == event.id


def test_a_message_lost_before_it_could_be_read_is_refused_without_an_id() -> None:
    """Whose it was is not known (`RPC-09`)."""
    connection = greeted(R4)
    connection.refuse_unread("a line of more than 5 bytes was dropped")
    (reply,) = sent(connection)
    assert reply["error"]["code"] == t.INVALID_REQUEST
    assert "more than 5 bytes" in reply["error"]["message"]
    assert "id" not in reply


def test_extensions_add_methods_to_both_eras() -> None:
    """With params of their own type, or any (`EXT-05`)."""
    server = identity(methods={"house/clean": t.CallToolRequestParams})
    for connection, frame in (
        (greeted(R1, server), request(1, "house/clean", {"name": "attic"})),
        (ServerConnection(server), stamped(1, "house/clean", {"name": "attic"})),
    ):
        assert asked(connection, frame).params.name == "attic"


def test_a_peer_that_has_gone_leaves_nothing_behind() -> None:
    """Everything open is cancelled once, nothing is sent, and late answers are dropped
    (`CAN-08`).
    """
    connection = greeted(R4)
    (listening,) = connection.receive(notification("notifications/initialized"))
    asked(connection, LIST)
    asked(connection, request(2, "tools/call", {"name": "x"}))
    ended = {event.id for event in connection.close() if isinstance(event, RequestCancelled)}
    assert ended == {listening.id, 1, 2}
    connection.respond(1, t.ListToolsResult(tools=[]))
    connection.fail(2, -1, "late")
    assert connection.outgoing() == []
    assert connection.close() == []
