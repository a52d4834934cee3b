"""Which bytes of params and results pass a forwarder unchanged, and what is written anew."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from interlock import types as t
from interlock.exchange import Caller, Exchange, RawResult
from interlock.protocol.events import RequestReceived
from interlock.protocol.handshake.server import ServerConnection
from interlock.protocol.identity import Identity
from interlock.protocol.pass_through import (
    passed_params,
    passed_result,
    passes,
    without_protocol_keys,
)
from interlock.types import ProtocolError
from interlock.wire.jsonrpc import Frame
from interlock.wire.revisions import HANDSHAKE_REVISIONS, NEWEST, R1, REVISIONS
from tests.wired.odd import ARGUMENTS, MEMBERS

IDENTITY = Identity(t.Implementation(name="front", version="1"), t.ServerCapabilities)
INFO = "io.modelcontextprotocol/serverInfo"


def received(params: bytes, revision: str = NEWEST, method: str = "tools/call") -> Exchange:
    """A request with these params, as a server connection of a revision has read it."""
    remembered = Caller(revision) if revision in HANDSHAKE_REVISIONS else None
    connection = ServerConnection(IDENTITY, remembered=remembered)
    frame: Frame = b'{"jsonrpc":"2.0","id":1,"method":"%b","params":%b}' % (method.encode(), params)
    (event,) = connection.receive(frame)
    assert isinstance(event, RequestReceived)
    return Exchange(event.method, event.params, event.caller, received=event)


def stateless(members: bytes) -> bytes:
    """Params of the newest revision with these members."""
    return (
        b'{%b,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{}}}' % members
    )


@pytest.mark.parametrize("revision", REVISIONS)
def test_params_pass_without_meta(revision: str) -> None:
    """Every other member is as it came, also those that the revision does not know (`RPC-23`)."""
    members = b'"later":{"a": 1.0},"arguments":%b,"name":"odd"' % ARGUMENTS
    params = stateless(members) if revision == NEWEST else b"{%b}" % members
    assert passed_params(received(params, revision)) == b"{%b}" % members


def test_a_changed_member_is_written_anew_and_the_others_pass() -> None:
    """A gateway that renames a tool keeps its arguments, and what this revision does not know."""
    x = received(stateless(b'"later":1e3,"name":"a__odd","arguments":%b' % ARGUMENTS))
    x.params = replace(x.params, name="odd")
    assert passed_params(x) == b'{"later":1e3,"name":"odd","arguments":%b}' % ARGUMENTS


def test_a_member_that_was_added_or_taken_away() -> None:
    """Answers to questions and the state of another server are such."""
    x = received(stateless(b'"name":"odd","requestState":"mine","later":1'))
    x.params = replace(x.params, request_state=None)
    assert passed_params(x) == b'{"name":"odd","later":1}'
    x.params = replace(x.params, request_state="yours")
    assert passed_params(x) == b'{"name":"odd","requestState":"yours","later":1}'


def test_another_request_or_revision_does_not_pass() -> None:
    """What became something else on its way is encoded as a whole."""
    x = received(stateless(b'"name":"odd"'))
    other = replace(x, method="resources/read", params=t.ReadResourceRequestParams(uri="file:///a"))
    assert passed_params(other) is None
    assert passed_params(replace(x, caller=Caller(R1))) is None
    assert not passes(replace(x, caller=Caller(R1)))
    assert passed_params(Exchange("tools/call", x.params, x.caller)) is None


def test_params_with_half_a_surrogate_pair_do_not_pass() -> None:
    """They were repaired when they were read, and only that is sent on."""
    x = received(stateless(rb'"name":"odd","arguments":{"a":"\ud800"}'))
    assert x.received is not None
    assert x.received.frame is None


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_a_result_of_the_handshake_era_passes_whole(revision: str) -> None:
    """Its `_meta` holds nothing of the protocol's."""
    body = b'{ "_meta" : {"example.com/a":1.0}, %b }' % MEMBERS
    assert passed_result("tools/call", Raw(body), revision) == RawResult(
        body, kind=t.CallToolResult
    )


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_a_server_says_of_itself_in_a_result_is_not_passed_on(revision: str) -> None:
    """The author's keys of `_meta` are."""
    raw = Raw(
        b'{"resultType":"complete","_meta":{"%b":{"name":"back"},"example.com/a":1.0},%b}'
        % (INFO.encode(), MEMBERS)
    )
    passed = passed_result("tools/call", raw, revision)
    assert passed == RawResult(
        b"{%b}" % MEMBERS, Raw(b'{"example.com/a":1.0}'), kind=t.CallToolResult
    )


@pytest.mark.parametrize(
    "raw",
    [
        b'{"resultType":"input_required","inputRequests":{}}',
        b'{"resultType":"task","taskId":"1"}',
        b'{"resultType":1}',
        b'{"_meta":[]}',
        b"[]",
        b'"text"',
        b"null",
    ],
)
def test_what_is_not_passed_but_read(raw: bytes) -> None:
    """Questions, other kinds of result, and what is no result."""
    assert passed_result("tools/call", Raw(raw), NEWEST) is None


def test_a_passed_result_can_be_read() -> None:
    """By middleware that looks at it."""
    raw = Raw(b'{"content":[{"type":"text","text":"a"}],"_meta":{"%b":{},"b":2}}' % INFO.encode())
    passed = passed_result("tools/call", raw, NEWEST)
    assert passed is not None
    read = passed.decode()
    assert isinstance(read, t.CallToolResult)
    assert (read.text, read.meta) == ("a", {"b": 2})


def test_a_passed_result_that_is_none_of_its_method() -> None:
    """That is found by whoever looks."""
    passed = passed_result("tools/call", Raw(b'{"content":7}'), NEWEST)
    assert passed is not None
    with pytest.raises(ProtocolError, match=r"content"):
        passed.decode()


@pytest.mark.parametrize("meta", [None, {"a": 1}, {INFO: {}}, {INFO: {}, "a": 1}])
def test_a_result_that_was_read_loses_what_the_server_behind_said_of_itself(
    meta: dict[str, object] | None,
) -> None:
    """Then the one in front says who it is."""
    kept = {"a": 1} if meta and "a" in meta else None
    assert without_protocol_keys(t.EmptyResult(meta=meta)).meta == kept


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "given, meta",
    [(RawResult(b'{"a":1.0}'), b""), (RawResult(b"{}", Raw(b'{"x":1e3}')), b'"x":1e3')],
    ids=["plain", "with meta"],
)
def test_a_raw_result_is_answered_with_what_the_server_says_of_itself(
    revision: str, given: RawResult, meta: bytes
) -> None:
    """Before its own members, where the revision has that."""
    x = received(stateless(b'"name":"a"') if revision == NEWEST else b'{"name":"a"}', revision)
    connection = ServerConnection(IDENTITY)
    assert isinstance(x.received, RequestReceived)
    connection.adopt(x.received)
    connection.respond(1, given)
    ((_, frame),) = connection.outgoing()
    members = given.body[1:-1]
    if revision == NEWEST:
        info = b'"%b":{"name":"front","version":"1"}' % INFO.encode()
        head = b'"resultType":"complete","_meta":{%b}' % b",".join(p for p in (info, meta) if p)
    else:
        head = b'"_meta":{%b}' % meta if meta else b""
    body = b"{%b}" % b",".join(part for part in (head, members) if part)
    assert frame == b'{"jsonrpc":"2.0","id":1,"result":%b}' % body


def test_the_fields_of_params_are_read_once_however_many_requests_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To read them, msgspec compiles the annotations of the type."""
    x = received(stateless(b'"name":"a"'))
    changed = replace(x, params=replace(x.params, name="b"))
    assert passed_params(changed) == b'{"name":"b"}'
    reads: list[object] = []
    fields = msgspec.structs.fields

    def counted(kind: Any) -> Any:
        reads.append(kind)
        return fields(kind)

    monkeypatch.setattr(msgspec.structs, "fields", counted)
    for _ in range(10):
        passed_params(changed)
    assert reads == []
