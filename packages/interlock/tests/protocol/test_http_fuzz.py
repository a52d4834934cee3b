"""Good HTTP requests spoiled in every way: there is always a verdict, and a refusal is always one
that a client can read.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.protocol.events import RequestReceived
from interlock.protocol.handshake.server import ServerConnection
from interlock.protocol.http import (
    EndpointRules,
    EndsSession,
    HttpRefusal,
    InSession,
    ListensInSession,
    Stateless,
    Verdict,
    judge,
    read_head,
)
from interlock.wire.http import decode_value
from interlock.wire.revisions import NEWEST, R3, R4, R5, REVISIONS
from tests.protocol.frames import KEY, identity, initialize, notification, request, stamped
from tests.protocol.mutations import Mutator
from tests.protocol.offered import HOUSE, modern, offered, pairs

HOUSES = [
    HOUSE,
    identity(revisions=(R5,)),
    identity(revisions=(R3, R4)),
    identity(methods={"example.com/own": HOUSE.requests["tools/list"]}),
]
RULES = [
    EndpointRules(),
    EndpointRules(sessions=False),
    EndpointRules(greets=False),
    EndpointRules(hosts=frozenset({"*"}), origins=frozenset({"https://app.example"})),
]
METHODS = [
    "POST",
    "POST",
    "POST",
    "POST",
    "POST",
    "GET",
    "DELETE",
    "PUT",
    "HEAD",
    "",
    "post",
    "POST\x00",
    "\udcff",
]
NAMES = [
    b"host", b"origin", b"content-type", b"accept", b"mcp-protocol-version", b"mcp-method",
    b"mcp-name", b"mcp-session-id", b"last-event-id",
    b"mcp-param-region", b"mcp-param-", b"", b"\xff", b"x",
]  # fmt: skip # a list of names
VALUES = [
    b"", b" ", b"\t", b"\x00", b"\xff\xfe", b"a\r\nb: c", b"=?base64?", b"?=", b"=?base64??=",
    b"=?base64?YWRk?=", b"=?base64?YQ?=", b"=?base64?=",
    b"=?base64?/w==?=", b"127.0.0.1", b"localhost:99999", b"[::1", b"[]", b"]", b":", b"::",
    b"0x7f.1", b"evil.example", b"http://", b"://", b"null",
    b"http://localhost:1", b"https://app.example", b"*/*", b"*", b";", b",", b";q=0",
    b"application/json;q=0", b"text/event-stream", b"application/json",
    b"tools/call", b"add", b"2099-01-01", b"9" * 5000, b"a.1", b".", b"changes.",
    *(revision.encode() for revision in REVISIONS),
]  # fmt: skip # a list of values

Parts = tuple[str, dict[bytes, bytes], list[bytes], bytes]


def good() -> list[Parts]:
    """Requests that are taken, of both eras and all kinds."""
    session = "0123456789abcdef"
    requests = [
        modern(),
        modern("resources/read", {"uri": "note://one"}),
        modern("prompts/get", {"name": "trip"}),
        modern("subscriptions/listen", {"notifications": {}}),
        offered(
            notification("notifications/cancelled", {"requestId": 1}), mcp_protocol_version=NEWEST
        ),
        offered(initialize(1, R4)),
        offered(
            request(1, "tools/call", {"name": "add"}),
            mcp_session_id=session,
            mcp_protocol_version=R4,
        ),
        offered(
            b"[" + request(1, "ping") + b"," + notification("notifications/initialized") + b"]",
            mcp_session_id=session,
        ),
        offered(
            b"",
            method="GET",
            mcp_session_id=session,
            last_event_id="a.b.1",
            mcp_protocol_version=R3,
        ),
        offered(b"", method="DELETE", mcp_session_id=session),
    ]
    found: list[Parts] = []
    for x in requests:
        body = x.body if isinstance(x.body, bytes) else json.dumps(x.body).encode()
        found.append(
            (
                x.method,
                {name.encode(): value.encode() for name, value in x.headers.items()},
                [],
                body,
            )
        )
    return found


def judged(rules: EndpointRules, house: Any, parts: Parts) -> Verdict:
    """The verdict about a request in parts."""
    method, headers, twice, body = parts
    return judge(rules, house, read_head(rules, method, pairs(headers, twice)), body)


def check(verdict: Verdict, parts: Parts, house: Any) -> str:
    """What holds of every verdict; returns its kind."""
    method, headers, _, body = parts
    if isinstance(verdict, HttpRefusal):
        assert 400 <= verdict.status < 500
        assert all(
            isinstance(name, bytes) and b"\n" not in value and b"\r" not in value
            for name, value in verdict.headers
        )
        if verdict.body:
            said = json.loads(verdict.body)
            assert said["jsonrpc"] == "2.0"
            assert said.keys() <= {"jsonrpc", "id", "error"}
            assert type(said.get("id", 0)) in (int, str)
            assert type(said["error"]["code"]) is int
            assert said["error"]["message"]
            assert (
                len(verdict.body) < 8 * len(body) + 2_000
            )  # a refusal repeats no more than a little of what was sent
    elif isinstance(verdict, Stateless):
        assert method == "POST"
        said = headers[b"mcp-protocol-version"].decode("latin-1").strip(" \t")
        assert verdict.meta.protocol_version == said
        connection = ServerConnection(house, shared=False)
        events = (
            connection.receive(body)
            if verdict.request is None
            else connection.receive_read(verdict.request, verdict.meta)
        )
        if not events:  # then the connection has words for it
            assert connection.outgoing()
        for event in events:  # and what runs is what the headers say (`HDR-06`)
            assert isinstance(event, RequestReceived)
            assert headers[b"mcp-method"].decode("latin-1").strip(" \t") == event.method
            field = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(
                event.method
            )
            if field is not None:
                assert decode_value(headers[b"mcp-name"].decode("latin-1")) == getattr(
                    event.params, field
                )
    elif isinstance(verdict, ListensInSession | EndsSession):
        assert method in ("GET", "DELETE")
        assert b"mcp-session-id" in headers
    elif isinstance(verdict, InSession):
        assert verdict.revision is None or verdict.revision in house.revisions
    return type(verdict).__name__


class Spoiler:
    """Spoiled requests without end, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.mutator = Mutator(seed)
        self.good = good()

    def spoiled(self) -> Parts:
        """One request with up to three things wrong with it."""
        rng = self.random
        method, headers, twice, body = rng.choice(self.good)
        headers = {**headers}
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            match rng.randrange(8):
                case 0:
                    method = rng.choice(METHODS)
                case 1:
                    headers.pop(rng.choice(NAMES), None)
                case 2 | 3:
                    headers[rng.choice(NAMES)] = rng.choice(VALUES)
                case 4:
                    name = rng.choice(list(headers) or NAMES)
                    value = bytearray(headers.get(name, b"x") or b"x")
                    value[rng.randrange(len(value))] = rng.randrange(256)
                    headers[name] = bytes(value)
                case 5:
                    twice = [*twice, rng.choice(NAMES)]
                case 6:
                    body = self.mutator.frame()
                    self.follow(headers, body)
                case _ if body:
                    body = rng.choice(
                        (
                            self.mutator.truncate,
                            self.mutator.flip,
                            self.mutator.insert,
                            self.mutator.number,
                        )
                    )(body)
                case _:
                    body = b"x"
        return method, headers, twice, body

    def follow(self, headers: dict[bytes, bytes], body: bytes) -> None:
        """Now and then let the headers say what another body says."""
        if self.random.random() < 0.3:
            return
        try:
            said = json.loads(body)
            headers[b"mcp-method"] = said["method"].encode("latin-1")
            headers[b"mcp-protocol-version"] = said["params"]["_meta"][
                KEY + "protocolVersion"
            ].encode("latin-1")
            headers[b"mcp-name"] = str(
                said["params"].get("name") or said["params"].get("uri")
            ).encode("latin-1")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            pass


def storm(number: int, seed: int) -> dict[str, int]:
    """So many spoiled requests, judged; how many verdicts there were of each kind."""
    spoiler = Spoiler(seed)
    kinds = dict[str, int]()
    for turn in range(number):
        parts = spoiler.spoiled()
        house, rules = (
            (HOUSE, RULES[0])
            if turn % 3
            else (HOUSES[turn % len(HOUSES)], RULES[turn % 7 % len(RULES)])
        )
        kind = check(judged(rules, house, parts), parts, house)
        kinds[kind] = kinds.get(kind, 0) + 1
    return kinds


def test_the_good_requests_are_taken() -> None:
    """Else the engine below would prove nothing."""
    for parts in good():
        assert check(judged(RULES[0], HOUSE, parts), parts, HOUSE) != "HttpRefusal"


def test_six_thousand_spoiled_requests() -> None:
    """The everyday round; every kind of verdict comes up in it."""
    kinds = storm(6_000, seed=1)
    assert set(kinds) == {
        "HttpRefusal",
        "Stateless",
        "OpensSession",
        "InSession",
        "ListensInSession",
        "EndsSession",
        "Accepted",
    }
    assert min(kinds.values()) > 30
    assert kinds["HttpRefusal"] > 1_500


@pytest.mark.endurance(seconds=4)
@pytest.mark.parametrize("seed", [2, 3])
def test_a_hundred_thousand_spoiled_requests(seed: int) -> None:
    """The long round."""
    storm(100_000, seed)


headers_ = st.dictionaries(
    st.sampled_from(NAMES) | st.binary(max_size=8),
    st.sampled_from(VALUES) | st.binary(max_size=30),
    max_size=9,
)


@given(
    method=st.sampled_from(METHODS) | st.text(max_size=5),
    headers=headers_,
    twice=st.lists(st.sampled_from(NAMES), max_size=2),
    body=st.binary(max_size=60)
    | st.sampled_from(
        [stamped(1, "tools/call", {"name": "add"}), request(1, "ping"), initialize(1, R4)]
    ),
    base=st.none() | st.integers(0, len(good()) - 1),
    rules=st.sampled_from(RULES),
    house=st.sampled_from(HOUSES),
)
def test_any_method_headers_and_body(
    method: str,
    headers: dict[bytes, bytes],
    twice: list[bytes],
    body: bytes,
    base: int | None,
    rules: EndpointRules,
    house: Any,
) -> None:
    """What the engine above does not think of, Hypothesis may."""
    parts: Parts = (method, headers, twice, body)
    if base is not None:
        whole = good()[base]
        parts = (whole[0], {**whole[1], **headers}, twice, whole[3])
    check(judged(rules, house, parts), parts, house)
