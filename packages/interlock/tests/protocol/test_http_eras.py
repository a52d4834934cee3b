"""Which era a request belongs to, what its body may be, and what GET and DELETE are, as tables over
method, headers and body.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock import types as t
from interlock.protocol.http import (
    Accepted,
    EndpointRules,
    EndsSession,
    HttpRefusal,
    InSession,
    ListensInSession,
    OpensSession,
    Stateless,
)
from interlock.wire.revisions import HANDSHAKE_REVISIONS, NEWEST, R1, R2, R3, R4, R5
from tests.protocol.frames import answer, error, identity, initialize, notification, request
from tests.protocol.offered import modern, offered, refusal

BAD = t.INVALID_REQUEST
AT_HOME = EndpointRules()
MODERN_ONLY = identity(revisions=(R5,))
YOUNG_ONLY = identity(revisions=(R3, R4, R5))
PROUD = EndpointRules(greets=False)  # of a server that serves the newest revision only


# -- which era -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "no/such",
    ],
)
def test_the_era_is_found_before_the_method(method: str) -> None:
    """What says the newest revision is judged under it, whatever it asks (`ERA-02`, `CFQ-02`)."""
    assert isinstance(modern(method, {}, mcp_name=None).judged(), Stateless)


def test_a_header_of_the_newest_revision_alone_makes_a_request_one_of_it() -> None:
    """And then the rest of it is missed, `initialize` or not (`CFQ-03`)."""
    for body in (
        request(1, "server/discover", {}),
        request(1, "tools/list"),
        initialize(1, R4),
        request(1, "ping"),
    ):
        assert refusal(offered(body, mcp_protocol_version=NEWEST).judged()) == (
            400,
            t.INVALID_PARAMS,
        )


def test_meta_of_the_newest_revision_alone_makes_a_request_one_of_it() -> None:
    """And then the header is missed, or is another one (`ERA-18`, `CFQ-04`)."""
    for said in (None, *HANDSHAKE_REVISIONS, "2099-01-01"):
        assert refusal(modern(mcp_protocol_version=said).judged()) == (400, t.HEADER_MISMATCH)


@pytest.mark.parametrize("said", [None, *HANDSHAKE_REVISIONS])
@pytest.mark.parametrize("revision", [*HANDSHAKE_REVISIONS, "2099-01-01"])
def test_initialize_opens_a_session(said: str | None, revision: str) -> None:
    """With the header or without it (`CFQ-12`, `ERA-02`)."""
    assert isinstance(
        offered(initialize(1, revision), mcp_protocol_version=said).judged(), OpensSession
    )


SESSION = "0123456789abcdef"


@pytest.mark.parametrize("said", [None, *HANDSHAKE_REVISIONS])
@pytest.mark.parametrize("session", [None, SESSION])
@pytest.mark.parametrize(
    "body",
    [
        request(1, "tools/list"),
        request(1, "no/such"),
        request(1, "tools/call", {"wrong": 1}),
        notification("notifications/initialized"),
        notification("notifications/cancelled", {"requestId": 1}),
        notification("no/such"),
        answer(1, {"roots": []}),
        error(1, -1),
        b"[" + request(1, "tools/list") + b"]",
        b" \n[" + notification("notifications/initialized") + b"]",
    ],
)
def test_messages_of_a_session(said: str | None, session: str | None, body: bytes) -> None:
    """All kinds of them; what the session says is the session's affair (`HTL-06`, `HTL-49`,
    `ERA-17`, `RPC-13`).
    """
    verdict = offered(body, mcp_protocol_version=said, mcp_session_id=session).judged()
    assert isinstance(verdict, InSession), verdict
    assert (verdict.session, verdict.revision) == (session, said)


def test_a_request_of_a_session_is_read_once() -> None:
    """What was read on the way to the verdict need not be read again."""
    verdict = offered(
        request("a", "tools/call", {"name": "add", "_meta": {"progressToken": 7}}),
        mcp_session_id=SESSION,
    ).judged()
    assert isinstance(verdict, InSession)
    assert (verdict.request.id, verdict.request.method, verdict.meta.progress_token) == (
        "a",
        "tools/call",
        7,
    )


@pytest.mark.parametrize(
    "body",
    [
        request(1, "tools/list"),
        notification("no/such"),
        answer(1, {}),
        b"[" + request(1, "ping") + b"]",
    ],
)
@pytest.mark.parametrize("said", ["2099-01-01", "1", "", "latest"])
def test_revisions_that_nobody_knows(body: bytes, said: str) -> None:
    """Are refused, whatever is posted, in the words of the era they are of (`HTL-50`)."""
    verdict = offered(body, mcp_protocol_version=said, mcp_session_id=SESSION).judged()
    later = said.startswith("2099")
    code = t.UNSUPPORTED_PROTOCOL_VERSION if later else t.INVALID_PARAMS
    assert refusal(verdict) == (400, code)
    assert isinstance(verdict, HttpRefusal)
    assert "_meta" not in verdict.why
    assert later or f"MCP-Protocol-Version says {said!r}" in verdict.why
    assert json.loads(verdict.body)["error"]["data"]["supported"][0] == NEWEST


@pytest.mark.parametrize("said", [R1, R2])
def test_revisions_that_this_server_does_not_have(said: str) -> None:
    """Are named as unsupported, with those that it has (`HTL-50`)."""
    for body in (
        request(1, "tools/list"),
        notification("notifications/initialized"),
        answer(1, {}),
    ):
        verdict = offered(body, mcp_protocol_version=said, mcp_session_id=SESSION).judged(
            house=YOUNG_ONLY
        )
        assert refusal(verdict) == (400, t.UNSUPPORTED_PROTOCOL_VERSION)
        assert json.loads(verdict.body)["error"]["data"] == {
            "supported": [R5, R4, R3],
            "requested": said,
        }
    for method in ("GET", "DELETE"):
        verdict = offered(
            b"", method=method, mcp_protocol_version=said, mcp_session_id=SESSION
        ).judged(house=YOUNG_ONLY)
        assert refusal(verdict)[0] == 400


def test_a_request_without_a_revision_where_the_oldest_are_not_served() -> None:
    """Is taken for one of 2025-03-26 only where that is served; a session knows its own (`ERA-17`,
    `ERA-18`, `HTL-49`).
    """
    plain = offered(request(1, "tools/list"))
    in_session = offered(request(1, "tools/list"), mcp_session_id=SESSION)
    assert isinstance(plain.judged(), InSession)
    assert refusal(plain.judged(house=YOUNG_ONLY)) == (400, t.HEADER_MISMATCH)
    assert isinstance(in_session.judged(house=YOUNG_ONLY), InSession)
    for x in (plain, in_session):
        assert refusal(x.judged(PROUD, MODERN_ONLY)) == (400, t.HEADER_MISMATCH)


def test_a_server_of_the_newest_revision_only() -> None:
    """`initialize` goes to the connection, which names the versions; the rest of the era is refused
    (`ERA-03`, `HTM-19`).
    """
    assert isinstance(offered(initialize(1, R4)).judged(PROUD, MODERN_ONLY), OpensSession)
    assert refusal(
        offered(request(1, "ping"), mcp_protocol_version=R4).judged(PROUD, MODERN_ONLY)
    ) == (400, t.UNSUPPORTED_PROTOCOL_VERSION)
    for method in ("GET", "DELETE"):
        for said in (None, R4, R5):
            verdict = offered(
                b"", method=method, mcp_protocol_version=said, mcp_session_id=SESSION
            ).judged(PROUD, MODERN_ONLY)
            assert refusal(verdict)[0] == 405
            assert isinstance(verdict, HttpRefusal)
            assert dict(verdict.headers)[b"allow"] == b"POST"
    assert isinstance(modern().judged(PROUD, MODERN_ONLY), Stateless)


# -- bodies that are no request --------------------------------------------------------------------

BODIES: list[tuple[bytes, Any, int]] = [
    # (body, its verdict under the newest revision's header, the code of its refusal)
    (notification("notifications/initialized"), Accepted, 0),
    (notification("notifications/cancelled", {"requestId": 1}), Accepted, 0),
    (notification("no/such", {"a": 1}), Accepted, 0),
    (answer(1, {}), HttpRefusal, BAD),
    (error(1, -1), HttpRefusal, BAD),
    (b'{"jsonrpc":"2.0","id":1}', HttpRefusal, BAD),
    (b"[" + request(1, "tools/list") + b"]", HttpRefusal, BAD),
    (b"[]", HttpRefusal, BAD),
    (b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}', HttpRefusal, BAD),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}', HttpRefusal, BAD),
    (b'{"jsonrpc":"2.0","id":true,"method":"tools/list"}', HttpRefusal, BAD),
    (b'{"jsonrpc":"2.0","id":1,"method":5}', HttpRefusal, BAD),
    (b'{"id":1,"method":"tools/list"}', HttpRefusal, BAD),
    (b"7", HttpRefusal, BAD),
    (b'"x"', HttpRefusal, BAD),
    (b"null", HttpRefusal, BAD),
    (b"{}", HttpRefusal, BAD),
    (b"", HttpRefusal, t.PARSE_ERROR),
    (b"   ", HttpRefusal, t.PARSE_ERROR),
    (b"[", HttpRefusal, t.PARSE_ERROR),
    (b"[{]", HttpRefusal, t.PARSE_ERROR),
    (b"\xff\xfe", HttpRefusal, t.PARSE_ERROR),
    (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', HttpRefusal, t.PARSE_ERROR),
    (b"[" * 100_000, HttpRefusal, t.PARSE_ERROR),
    (request(1, "tools/list") + request(2, "tools/list"), HttpRefusal, t.PARSE_ERROR),
]


@pytest.mark.parametrize("body, kind, code", BODIES)
def test_bodies_under_the_newest_revision(body: bytes, kind: Any, code: int) -> None:
    """One request or one notification; no batch, no response, nothing else (`HTM-03`, `HTM-05`,
    `RPC-16`, `RPC-18`, `X-09`, `X-15`).
    """
    verdict = offered(body, mcp_protocol_version=NEWEST).judged()
    assert isinstance(verdict, kind), verdict
    if kind is HttpRefusal:
        assert refusal(verdict) == (400, code)


@pytest.mark.parametrize(
    "body",
    [
        body
        for body, kind, code in BODIES
        if code == t.PARSE_ERROR or b'"id":1.5' in body or body == b"7"
    ],
)
def test_bodies_that_no_revision_takes(body: bytes) -> None:
    """They need no session to be refused, and the endpoint does not crash (`RPC-16`)."""
    assert refusal(offered(body).judged())[0] == 400


# -- GET and DELETE --------------------------------------------------------------------------------

NO_SESSIONS = EndpointRules(sessions=False)

OTHERS: list[tuple[str, EndpointRules, dict[str, str | None], Any]] = [
    ("GET", AT_HOME, {"mcp_session_id": SESSION}, ListensInSession(SESSION, None, None)),
    (
        "GET",
        AT_HOME,
        {"mcp_session_id": SESSION, "mcp_protocol_version": R4, "last_event_id": "a.1"},
        ListensInSession(SESSION, R4, "a.1"),
    ),
    (
        "GET",
        AT_HOME,
        {"mcp_session_id": SESSION, "accept": None},
        ListensInSession(SESSION, None, None),
    ),
    ("GET", AT_HOME, {"mcp_session_id": SESSION, "accept": "application/json"}, 406),
    ("GET", AT_HOME, {}, 400),
    ("GET", AT_HOME, {"mcp_session_id": SESSION, "mcp_protocol_version": "2099-01-01"}, 400),
    ("GET", AT_HOME, {"mcp_session_id": SESSION, "mcp_protocol_version": R5}, 405),
    ("GET", NO_SESSIONS, {"mcp_session_id": SESSION}, 405),
    ("DELETE", AT_HOME, {"mcp_session_id": SESSION}, EndsSession(SESSION, None)),
    (
        "DELETE",
        AT_HOME,
        {"mcp_session_id": SESSION, "mcp_protocol_version": R3},
        EndsSession(SESSION, R3),
    ),
    (
        "DELETE",
        AT_HOME,
        {"mcp_session_id": SESSION, "accept": "application/json"},
        EndsSession(SESSION, None),
    ),
    ("DELETE", AT_HOME, {}, 400),
    ("DELETE", AT_HOME, {"mcp_session_id": SESSION, "mcp_protocol_version": R5}, 405),
    ("DELETE", NO_SESSIONS, {"mcp_session_id": SESSION}, 405),
    ("PUT", AT_HOME, {"mcp_session_id": SESSION}, 405),
    ("PATCH", AT_HOME, {}, 405),
    ("HEAD", AT_HOME, {"mcp_session_id": SESSION}, 405),
    ("OPTIONS", AT_HOME, {}, 405),
    ("get", AT_HOME, {"mcp_session_id": SESSION}, 405),
]


@pytest.mark.parametrize("method, rules, headers, expected", OTHERS)
def test_other_methods(
    method: str, rules: EndpointRules, headers: dict[str, str | None], expected: Any
) -> None:
    """GET and DELETE belong to sessions, and to nothing else (`HTL-25`, `HTL-41`, `HTL-45`,
    `HTL-50`, `HTM-17`, `HTM-19`).
    """
    verdict = offered(b"", method=method, content_type=None, **headers).judged(rules)
    if isinstance(expected, int):
        assert refusal(verdict)[0] == expected
    else:
        assert verdict == expected


@pytest.mark.parametrize(
    "rules, allowed", [(AT_HOME, "GET, POST, DELETE"), (NO_SESSIONS, "POST"), (PROUD, "POST")]
)
def test_a_method_that_is_not_allowed_is_told_which_are(rules: EndpointRules, allowed: str) -> None:
    """As RFC 9110 wants it (`HTM-19`)."""
    verdict = offered(b"", method="PUT").judged(rules)
    assert isinstance(verdict, HttpRefusal)
    assert dict(verdict.headers)[b"allow"] == allowed.encode()


@pytest.mark.parametrize("said", [R4, R5])
def test_bodies_that_are_not_utf8(said: str) -> None:
    """Are no JSON in either era, wherever the bad bytes stand (`RPC-12`)."""
    body = request(1, "ping", {"nobody": "reads this"}).replace(b"this", b"th\xffs")
    verdict = offered(body, mcp_protocol_version=said, mcp_session_id=SESSION).judged()
    assert refusal(verdict) == (400, t.PARSE_ERROR)
