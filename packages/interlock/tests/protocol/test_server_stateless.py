"""The server's end in the stateless era: every request says who asks, and is judged by its own word
alone.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from interlock import types as t
from interlock.exchange import Principal, RawResult
from interlock.protocol.events import RequestCancelled
from interlock.protocol.handshake.server import ServerConnection
from interlock.wire.codec import encode
from interlock.wire.revisions import NEWEST, R1, R2, R3, R4, REVISIONS, Era
from tests.protocol.frames import (
    CAPABILITIES,
    INFO,
    KEY,
    asked,
    greeted,
    identity,
    initialize,
    meta,
    notification,
    request,
    sent,
    stamped,
)

SUPPORTED = list(reversed(REVISIONS))
SERVER_INFO = {KEY + "serverInfo": {"name": "house", "version": "1", "title": "The house"}}


def fresh() -> ServerConnection:
    return ServerConnection(identity())


@pytest.mark.parametrize(
    "method, params",
    {
        "server/discover": {},
        "tools/list": {"cursor": ""},
        "tools/call": {"name": "x"},
        "resources/read": {"uri": "x:y"},
        "prompts/get": {"name": "x"},
        "completion/complete": {
            "ref": {"type": "ref/prompt", "name": "x"},
            "argument": {"name": "a", "value": ""},
        },
        "subscriptions/listen": {"notifications": {}},
    }.items(),
)
def test_each_method_of_the_era_becomes_a_request(method: str, params: dict[str, Any]) -> None:
    """With the caller that its `_meta` names (`STA-01`, `STA-08`, `RPC-24`)."""
    connection = ServerConnection(identity(), principal=Principal(subject="alice"), session=None)
    event = asked(connection, stamped("a", method, params, logLevel="warning"))
    caller = event.caller
    assert (event.id, event.method) == ("a", method)
    assert (caller.revision, caller.era, caller.log_level) == (NEWEST, Era.STATELESS, "warning")
    assert caller.info == msgspec.convert(INFO, t.Implementation)
    assert caller.capabilities == msgspec.convert(CAPABILITIES, t.ClientCapabilities)
    assert caller.principal == Principal(subject="alice")


def test_no_name_and_no_log_level_are_no_fault() -> None:
    """A caller need not say its name, and gets no log unless it asks (`STA-03`, `STA-04`,
    `LOG-05`).
    """
    event = asked(fresh(), stamped(1, "tools/list", clientInfo=...))
    assert (event.caller.info, event.caller.log_level) == (None, None)


def test_each_request_is_judged_by_its_own_capabilities() -> None:
    """What an earlier request declared does not count (`STA-07`)."""
    connection = fresh()
    rich = asked(connection, stamped(1, "tools/list", capabilities={"elicitation": {"url": {}}}))
    poor = asked(connection, stamped(2, "tools/list", capabilities={}))
    assert rich.caller.capabilities.elicitation is not None
    assert poor.caller.capabilities == t.ClientCapabilities()


REFUSED: dict[str, tuple[bytes, int]] = {
    "no capabilities": (stamped(1, "tools/list", clientCapabilities=...), t.INVALID_PARAMS),
    "null as capabilities": (stamped(1, "tools/list", clientCapabilities=None), t.INVALID_PARAMS),
    "a list as capabilities": (stamped(1, "tools/list", clientCapabilities=[]), t.INVALID_PARAMS),
    "no revision": (stamped(1, "tools/list", protocolVersion=...), t.INVALID_PARAMS),
    "a number as revision": (stamped(1, "tools/list", protocolVersion=2026), t.INVALID_PARAMS),
    "null as revision": (stamped(1, "tools/list", protocolVersion=None), t.INVALID_PARAMS),
    "a log level that does not exist": (
        stamped(1, "tools/list", logLevel="loud"),
        t.INVALID_PARAMS,
    ),
    "a name without version": (
        stamped(1, "tools/list", clientInfo={"name": "x"}),
        t.INVALID_PARAMS,
    ),
    "discovery without a word": (request(1, "server/discover", {}), t.INVALID_PARAMS),
    "discovery without params": (request(1, "server/discover"), t.INVALID_PARAMS),
    "discovery under another revision": (
        stamped(1, "server/discover", revision="2099-01-01"),
        t.UNSUPPORTED_PROTOCOL_VERSION,
    ),
    "a revision to come": (
        stamped(1, "tools/list", revision="2099-01-01"),
        t.UNSUPPORTED_PROTOCOL_VERSION,
    ),
    "a revision of the other era": (
        stamped(1, "tools/list", revision=R4),
        t.UNSUPPORTED_PROTOCOL_VERSION,
    ),
    "an empty revision": (stamped(1, "tools/list", revision=""), t.UNSUPPORTED_PROTOCOL_VERSION),
    "a revision to come, and params of its own shape": (
        stamped(1, "tools/call", {"tool": "x"}, revision="2099-01-01"),
        t.UNSUPPORTED_PROTOCOL_VERSION,
    ),
    "a revision to come, and a method of its own": (
        stamped(1, "tools/imagined", revision="2099-01-01"),
        t.UNSUPPORTED_PROTOCOL_VERSION,
    ),
    "no capabilities, and a revision to come": (
        stamped(1, "x", revision="2099-01-01", clientCapabilities=...),
        t.INVALID_PARAMS,
    ),
    "an unknown method": (stamped(1, "tools/imagined"), t.METHOD_NOT_FOUND),
    "a question, which only servers ask": (stamped(1, "roots/list"), t.METHOD_NOT_FOUND),
    "a notification's name": (stamped(1, "notifications/progress"), t.METHOD_NOT_FOUND),
    "params of a wrong shape": (stamped(1, "tools/call", {"name": 5}), t.INVALID_PARAMS),
    "a progress token that is a fraction": (
        request(1, "tools/list", {"_meta": meta() | {"progressToken": 1.5}}),
        t.INVALID_PARAMS,
    ),
}


@pytest.mark.parametrize("frame, code", REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_with_a_request_is_told_in_the_order_of_the_specification(
    frame: bytes, code: int
) -> None:
    """What is missing first, then the revision, then the method, then its params; always with the
    id.

    (`CFQ-01`, `CFQ-03`, `CFQ-04`, `ERR-09`, `ERR-10`, `ERR-11`, `STA-10`, `STA-12`, `LOG-07`)
    """
    connection = fresh()
    assert connection.receive(frame) == []
    (reply,) = sent(connection)
    assert (reply["id"], reply["error"]["code"]) == (1, code)
    if code == t.UNSUPPORTED_PROTOCOL_VERSION:
        said = json.loads(frame)["params"]["_meta"][KEY + "protocolVersion"]
        assert reply["error"]["data"] == {"supported": SUPPORTED, "requested": said}


LEGACY: dict[str, dict[str, Any]] = {
    "initialize": {"protocolVersion": NEWEST, "capabilities": {}, "clientInfo": INFO},
    "ping": {},
    "logging/setLevel": {"level": "info"},
    "resources/subscribe": {"uri": "x:y"},
    "resources/unsubscribe": {"uri": "x:y"},
}


@pytest.mark.parametrize("complete", [True, False], ids=["complete", "without params of its own"])
@pytest.mark.parametrize("session", [True, False], ids=["in a session", "on its own"])
@pytest.mark.parametrize("method", LEGACY)
def test_a_method_of_the_other_era_does_not_exist_for_a_modern_request(
    method: str, session: bool, complete: bool
) -> None:
    """Even in a server of both eras, even beside a session, and whatever its params are (`CFQ-02`,
    `STA-18`, `PNG-04`).
    """
    connection = greeted(R4) if session else fresh()
    before = connection.remembered
    assert connection.receive(stamped(1, method, LEGACY[method] if complete else {})) == []
    (reply,) = sent(connection)
    assert (reply["id"], reply["error"]["code"]) == (1, t.METHOD_NOT_FOUND)
    assert connection.remembered is before


def test_a_server_of_one_era_names_only_that() -> None:
    """`supported` is what the server was told to speak, newest first (`STA-12`)."""
    for revisions in ((NEWEST,), (R2, NEWEST), (R1, R3)):
        connection = ServerConnection(identity(revisions=revisions))
        connection.receive(stamped(1, "tools/list", revision="2099-01-01"))
        assert sent(connection)[0]["error"]["data"]["supported"] == list(reversed(revisions))
    older = ServerConnection(identity(revisions=(R1, R3)))
    older.receive(stamped(1, "tools/list"))
    assert sent(older)[0]["error"]["code"] == t.UNSUPPORTED_PROTOCOL_VERSION


RESULTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "a plain result": (t.EmptyResult(), {"resultType": "complete", "_meta": SERVER_INFO}),
    "a result with content": (
        t.CallToolResult(content=[t.TextContent("x")]),
        {
            "resultType": "complete",
            "_meta": SERVER_INFO,
            "content": [{"type": "text", "text": "x"}],
        },
    ),
    "a result with _meta of its own": (
        t.EmptyResult(meta={"a/b": 1}),
        {"resultType": "complete", "_meta": {"a/b": 1} | SERVER_INFO},
    ),
    "a result that names another server": (
        t.EmptyResult(meta={KEY + "serverInfo": {"name": "upstream", "version": "2"}}),
        {
            "resultType": "complete",
            "_meta": {KEY + "serverInfo": {"name": "upstream", "version": "2"}},
        },
    ),
    "an empty _meta": (t.EmptyResult(meta={}), {"resultType": "complete", "_meta": SERVER_INFO}),
    "a result that asks": (
        t.InputRequiredResult(result_type="input_required", request_state="s"),
        {"resultType": "input_required", "requestState": "s", "_meta": SERVER_INFO},
    ),
    "a result of an extension": (
        t.EmptyResult(result_type="task"),
        {"resultType": "task", "_meta": SERVER_INFO},
    ),
    "bytes": (
        RawResult(b'{"tools":[]}'),
        {"resultType": "complete", "_meta": SERVER_INFO, "tools": []},
    ),
    "no bytes": (RawResult(b"{}"), {"resultType": "complete", "_meta": SERVER_INFO}),
}


@pytest.mark.parametrize("result, said", RESULTS.values(), ids=RESULTS)
def test_every_result_says_its_kind_and_who_gave_it(result: Any, said: dict[str, Any]) -> None:
    """resultType and serverInfo on each, whatever else it has (`RPC-19`, `STA-06`, `X-03`)."""
    connection = fresh()
    asked(connection, stamped("q", "tools/list"))
    connection.respond("q", result)
    ((route, frame),) = connection.outgoing()
    assert route == "q"
    assert json.loads(frame) == {"jsonrpc": "2.0", "id": "q", "result": said}
    assert frame.count(b'"resultType"') == 1


@pytest.mark.parametrize("revision", REVISIONS)
def test_bytes_and_types_come_out_the_same(revision: str) -> None:
    """A catalogue kept as bytes is the same answer as the catalogue itself, in every revision."""
    listing = t.ListToolsResult(
        tools=[t.Tool(name="a", title="A", input_schema={"type": "object"})],
        ttl_ms=1,
        cache_scope="private",
    )
    replies = []
    for result in (listing, RawResult(encode(listing, revision))):
        connection = fresh() if revision == NEWEST else greeted(revision)
        asked(
            connection, stamped(1, "tools/list") if revision == NEWEST else request(1, "tools/list")
        )
        connection.respond(1, result)
        replies.append(sent(connection))
    assert replies[0] == replies[1]


def test_the_server_never_asks_in_this_era() -> None:
    """Not even where the peer has a session besides: the route decides (`RPC-17`, `STD-10`,
    `ELI-05`).
    """
    connection = greeted(R4)
    asked(connection, stamped(1, "tools/call", {"name": "x"}))
    with pytest.raises(t.ProtocolError):
        connection.ask(1, t.ListRootsRequest())
    with pytest.raises(t.ProtocolError):
        connection.ask("nobody's", t.ListRootsRequest())
    assert connection.outgoing() == []


CANCELS = [1, "1", 2**60, "", "ünï"]


@pytest.mark.parametrize("id", CANCELS, ids=repr)
def test_a_cancelled_request_is_never_answered(id: Any) -> None:
    """Neither with a result, nor with an error, nor with a notification, and its id is free again.

    (`CAN-05`, `CAN-08`, `STD-12`, `STD-13`, `X-02`)
    """
    connection = fresh()
    asked(connection, stamped(id, "tools/call", {"name": "x"}))
    assert connection.receive(
        notification("notifications/cancelled", {"requestId": id, "reason": "bored"})
    ) == [RequestCancelled(id, "bored")]
    connection.notify(
        id, "notifications/progress", t.ProgressNotificationParams(progress_token=1, progress=1)
    )
    connection.respond(id, t.CallToolResult(content=[]))
    connection.fail(id, -32603, "no")
    assert connection.outgoing() == []
    assert connection.receive(notification("notifications/cancelled", {"requestId": id})) == []
    assert asked(connection, stamped(id, "tools/list")).id == id


def test_a_cancel_of_what_was_answered_comes_too_late() -> None:
    """It does nothing, and says nothing (`CAN-06`, `CAN-08`)."""
    connection = fresh()
    asked(connection, stamped(1, "tools/list"))
    connection.respond(1, t.ListToolsResult(tools=[]))
    connection.outgoing()
    assert connection.receive(notification("notifications/cancelled", {"requestId": 1})) == []
    assert connection.outgoing() == []


def test_a_notification_may_say_who_sends_it() -> None:
    """`_meta` on a notification is read past (`RPC-23`)."""
    connection = fresh()
    asked(connection, stamped(1, "tools/list"))
    assert connection.receive(
        notification("notifications/cancelled", {"requestId": 1, "_meta": meta()})
    ) == [RequestCancelled(1)]


@pytest.mark.parametrize(
    "frame",
    [b"[]", b"[" + stamped(1, "tools/list") + b"]", b"[" + initialize(1, R2) + b"]", b"[1"],
    ids=range(4),
)
def test_a_batch_is_refused_where_nobody_has_agreed_to_batches(frame: bytes) -> None:
    """One error without an id, and the conversation goes on (`RPC-16`)."""
    for connection in (fresh(), greeted(R1), greeted(R3), greeted(R4)):
        assert connection.receive(frame) == []
        (reply,) = sent(connection)
        assert reply["error"]["code"] == (t.PARSE_ERROR if frame == b"[1" else t.INVALID_REQUEST)
        assert "id" not in reply
        asked(connection, stamped(7, "tools/list"))
