"""What an endpoint takes and what it refuses, and in which order, as tables over method, headers
and body.
"""

from __future__ import annotations

import json

import pytest

from interlock import types as t
from interlock.protocol.http import EndpointRules, HttpRefusal, Stateless, accepts, status_of
from interlock.wire.http import encode_value
from interlock.wire.revisions import NEWEST, R3, R4, R5, REVISIONS
from tests.protocol.frames import KEY, identity
from tests.protocol.offered import HOUSE, Offered, Spoil, modern, refusal

BAD = t.INVALID_REQUEST
MODERN_ONLY = identity(revisions=(R5,))
YOUNG_ONLY = identity(revisions=(R3, R4, R5))
PROUD = EndpointRules(greets=False)  # of a server that serves the newest revision only


# -- the order of refusals -------------------------------------------------------------------------


def with_header(name: str, value: str | None) -> Spoil:
    def spoil(x: Offered) -> None:
        x.headers.pop(name, None)
        if value is not None:
            x.headers[name] = value

    return spoil


def with_meta(key: str) -> Spoil:
    def spoil(x: Offered) -> None:
        x.body["params"]["_meta"].pop(KEY + key)

    return spoil


def with_body(body: bytes) -> Spoil:
    def spoil(x: Offered) -> None:
        x.body = body

    return spoil


def doubled(x: Offered) -> None:
    x.twice.append("mcp-method")


def other_method(x: Offered) -> None:
    x.method = "PUT"


LADDER: dict[str, tuple[Spoil, int, int]] = {
    "a stranger's page": (with_header("origin", "https://evil.example"), 403, BAD),
    "a routing header twice": (doubled, 400, t.HEADER_MISMATCH),
    "no POST": (other_method, 405, BAD),
    "no JSON by its type": (with_header("content-type", "text/plain"), 415, BAD),
    "an answer that cannot be given": (with_header("accept", "image/png"), 406, BAD),
    "no JSON": (with_body(b"{"), 400, t.PARSE_ERROR),
    "no JSON-RPC": (with_body(b'{"jsonrpc":"1.0","id":1,"method":"tools/call"}'), 400, BAD),
    "no revision in _meta": (with_meta("protocolVersion"), 400, t.INVALID_PARAMS),
    "no capabilities in _meta": (with_meta("clientCapabilities"), 400, t.INVALID_PARAMS),
    "another revision in the header": (
        with_header("mcp-protocol-version", "2099-01-01"),
        400,
        t.HEADER_MISMATCH,
    ),
    "another method in the header": (
        with_header("mcp-method", "tools/list"),
        400,
        t.HEADER_MISMATCH,
    ),
    "another name in the header": (with_header("mcp-name", "subtract"), 400, t.HEADER_MISMATCH),
}


@pytest.mark.parametrize("rung", LADDER)
def test_what_is_wrong_first_is_what_is_said(rung: str) -> None:
    """With everything wrong from one rung on, the refusal is that rung's, and has the words for it
    (`SEC-01`, `HDR-06`, `CFQ-03`, `CFQ-04`).
    """
    x = modern()
    rungs = list(LADDER)
    for later in reversed(rungs[rungs.index(rung) :]):
        LADDER[later][0](x)
    verdict = x.judged()
    assert refusal(verdict) == LADDER[rung][1:], verdict
    alone = modern()
    LADDER[rung][0](alone)
    assert refusal(alone.judged()) == LADDER[rung][1:]
    assert isinstance(modern().judged(), Stateless)


def test_the_words_say_which_key_and_which_header() -> None:
    """Who is refused can tell from the message what to repair (`HDR-06`)."""
    words = {}
    for rung, (spoil, _, _) in LADDER.items():
        x = modern()
        spoil(x)
        verdict = x.judged()
        assert isinstance(verdict, HttpRefusal)
        words[rung] = verdict.why
    assert "protocolVersion" in words["no revision in _meta"]
    assert "clientCapabilities" in words["no capabilities in _meta"]
    assert words["another revision in the header"] == (
        f"Header mismatch: the header MCP-Protocol-Version says '2099-01-01', the body '{NEWEST}'"
    )
    assert "Mcp-Method" in words["another method in the header"]
    assert "Mcp-Name" in words["another name in the header"]
    assert "origins=['https://evil.example']" in words["a stranger's page"]


def test_refusals_carry_the_id_of_the_request() -> None:
    """Wherever the body was read as far as that (`CFQ-01`, `RPC-09`)."""
    for rung, (spoil, _, _) in LADDER.items():
        x = modern(id="seven")
        spoil(x)
        verdict = x.judged()
        assert isinstance(verdict, HttpRefusal)
        ladder = list(LADDER)
        expected: str | int | None = None
        if rung == "no JSON-RPC":
            expected = 1
        elif ladder.index(rung) > ladder.index("no JSON-RPC"):
            expected = "seven"
        assert json.loads(verdict.body).get("id") == expected


# -- where it comes from ---------------------------------------------------------------------------

AT_HOME = EndpointRules()
PUBLIC = EndpointRules(
    hosts=frozenset({"mcp.example.com", "other.example:9000"}),
    origins=frozenset({"https://app.example.com"}),
)

HOSTS = [
    # (rules, host, whether it is welcome)
    (AT_HOME, "127.0.0.1", True),
    (AT_HOME, "127.0.0.1:8000", True),
    (AT_HOME, "localhost:8000", True),
    (AT_HOME, "LOCALHOST", True),
    (AT_HOME, "[::1]:8000", True),
    (AT_HOME, "[::1]", True),
    (AT_HOME, "192.168.7.7:8000", True),  # a plain address cannot be rebound
    (AT_HOME, "[fe80::1]:80", True),
    (AT_HOME, "evil.example", False),
    (AT_HOME, "evil.example:8000", False),
    (AT_HOME, "localhost.evil.example", False),
    (AT_HOME, "127.0.0.1.evil.example", False),
    (AT_HOME, "mcp.example.com", False),
    (AT_HOME, "", False),
    (AT_HOME, None, False),
    (PUBLIC, "mcp.example.com", True),
    (PUBLIC, "MCP.example.COM:443", True),
    (PUBLIC, "other.example:9000", True),
    (PUBLIC, "other.example:9001", False),
    (PUBLIC, "other.example", False),
    (PUBLIC, "localhost", True),
    (PUBLIC, "sub.mcp.example.com", False),
    (EndpointRules(hosts=frozenset({"*"})), "anything.example", True),
]


@pytest.mark.parametrize("rules, host, welcome", HOSTS)
def test_hosts(rules: EndpointRules, host: str | None, welcome: bool) -> None:
    """A server answers under its own names, and under addresses; what a page could point at it with
    a name of its own is refused (`SEC-01`).
    """
    verdict = modern(host=host).judged(rules)
    assert isinstance(verdict, Stateless) if welcome else refusal(verdict) == (403, BAD)


ORIGINS = [
    # (rules, host, origin, whether it is welcome)
    (AT_HOME, "localhost:8000", "http://localhost:8000", True),
    (AT_HOME, "localhost:8000", "http://localhost:3000", True),
    (AT_HOME, "127.0.0.1:8000", "http://localhost:3000", True),
    (AT_HOME, "[::1]:8000", "https://127.0.0.1", True),
    (AT_HOME, "127.0.0.1:8000", "https://evil.example", False),
    (AT_HOME, "127.0.0.1:8000", "http://localhost.evil.example", False),
    (AT_HOME, "127.0.0.1:8000", "null", False),
    (AT_HOME, "127.0.0.1:8000", "", False),
    (AT_HOME, "127.0.0.1:8000", "file://", False),
    (AT_HOME, "127.0.0.1:8000", "ftp://localhost", False),
    (AT_HOME, "192.168.7.7:8000", "http://192.168.7.7:8000", True),
    (AT_HOME, "192.168.7.7:8000", "http://localhost:8000", False),
    (AT_HOME, "192.168.7.7:8000", "http://192.168.7.8", False),
    (PUBLIC, "mcp.example.com", "https://mcp.example.com", True),
    (PUBLIC, "mcp.example.com", "https://app.example.com", True),
    (PUBLIC, "mcp.example.com", "HTTPS://App.Example.com", True),
    (PUBLIC, "mcp.example.com", "https://app.example.com.evil.example", False),
    (PUBLIC, "mcp.example.com", "http://app.example.com", False),
    (PUBLIC, "mcp.example.com", "http://localhost:3000", False),
    (EndpointRules(origins=frozenset({"*"})), "localhost", "https://evil.example", True),
    (EndpointRules(origins=frozenset({"null"})), "localhost", "null", True),
]


@pytest.mark.parametrize("rules, host, origin, welcome", ORIGINS)
def test_origins(rules: EndpointRules, host: str, origin: str, welcome: bool) -> None:
    """Pages of the same host, of this machine where that is asked, and those that were named; no
    others (`HTM-22`, `HTL-51`, `HTL-52`).
    """
    verdict = modern(host=host, origin=origin).judged(rules)
    assert isinstance(verdict, Stateless) if welcome else refusal(verdict) == (403, BAD)


def test_what_is_remembered_of_strangers_is_bounded() -> None:
    """An endless row of made-up hosts costs no memory, and none of them is let in by it."""
    rules = EndpointRules()
    for number in range(2_000):
        assert rules.check_host_and_origin(b"h%d.example" % number, None)
        assert not rules.check_host_and_origin(b"localhost", None)
    assert len(rules._known) <= 1_000
    for number in range(200):
        long = b"h%d" % number + b"9" * 60_000
        assert len(rules.check_host_and_origin(long, None)) < 500
        assert len(rules.check_host_and_origin(b"localhost", b"http://" + long)) < 500
    assert (
        sum(
            len(host or b"") + len(origin or b"") + len(why)
            for (host, origin), why in rules._known.items()
        )
        < 1_000_000
    )


# -- media types -----------------------------------------------------------------------------------

TYPES = [
    ("application/json", True),
    ("application/json; charset=utf-8", True),
    ("Application/JSON ;charset=UTF-8", True),
    ("application/json-rpc", False),
    ("application/jsonp", False),
    ("text/plain", False),
    ("text/event-stream", False),
    ("multipart/form-data; boundary=x", False),
    ("", False),
    (None, False),
]


@pytest.mark.parametrize("kind, taken", TYPES)
def test_the_type_of_the_body(kind: str | None, taken: bool) -> None:
    """JSON and nothing else: a page's form, which a browser sends without asking, is none."""
    verdict = modern(content_type=kind).judged()
    assert isinstance(verdict, Stateless) if taken else refusal(verdict) == (415, BAD)


ACCEPTED = [
    # (header, JSON, events)
    (None, True, True),
    ("application/json, text/event-stream", True, True),
    ("text/event-stream,application/json", True, True),
    ("Application/JSON , Text/Event-Stream", True, True),
    ("*/*", True, True),
    ("application/*", True, False),
    ("text/*;q=0.1", False, True),
    ("application/json", True, False),
    ("text/event-stream", False, True),
    ("text/html, application/xhtml+xml, */*;q=0.8", True, True),
    ("application/json;q=0, */*", False, True),
    ("application/json;q=0.0,text/event-stream;q=0.5", False, True),
    ("application/json; q=0.001", True, False),
    ("application/json;profile=x;q=0", False, False),
    ("application/jsonl", False, False),
    ("application/json-seq", False, False),
    ("x-application/json", False, False),
    ("text/plain", False, False),
    ("", False, False),
    (",;,", False, False),
]


@pytest.mark.parametrize("header, json_, events", ACCEPTED)
def test_what_may_be_answered(header: str | None, json_: bool, events: bool) -> None:
    """As RFC 9110 has it: lists, wildcards and weights; where neither kind is wanted the request is
    refused (`HTM-02`, `HTL-03`).
    """
    headers = {} if header is None else {b"accept": header.encode()}
    assert (accepts(headers, b"application/json"), accepts(headers, b"text/event-stream")) == (
        json_,
        events,
    )
    verdict = modern(accept=header).judged()
    assert isinstance(verdict, Stateless) if json_ or events else refusal(verdict) == (406, BAD)


# -- headers that repeat the body ------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "mcp-session-id",
        "mcp-param-region",
        "host",
        "origin",
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_headers_that_decide_come_once(name: str, method: str) -> None:
    """Who reads the first and who reads the last would see two different requests (`HDR-11`)."""
    x = modern()
    x.method = method
    x.twice = ["accept", name]
    verdict = x.judged()
    assert refusal(verdict) == (400, t.HEADER_MISMATCH)
    assert isinstance(verdict, HttpRefusal)
    assert name in verdict.why


@pytest.mark.parametrize(
    "name", ["accept", "cookie", "x-forwarded-for", "last-event-id", "mcp-other"]
)
def test_other_headers_may_come_twice(name: str) -> None:
    """They route nothing."""
    x = modern()
    x.twice = [name]
    assert isinstance(x.judged(), Stateless)


MIRRORS: dict[str, tuple[Offered, bool]] = {
    "as it is": (modern(), True),
    "space around it": (
        modern(
            mcp_method="\t tools/call  ", mcp_protocol_version=f" {NEWEST}\t", mcp_name="  add "
        ),
        True,
    ),
    "another case in the name": (modern(mcp_name="Add"), False),
    "another case in the method": (modern(mcp_method="Tools/Call"), False),
    "no revision": (modern(mcp_protocol_version=None), False),
    "an empty revision": (modern(mcp_protocol_version=""), False),
    "a revision of the other era": (modern(mcp_protocol_version=R4), False),
    "no method": (modern(mcp_method=None), False),
    "an empty method": (modern(mcp_method=""), False),
    "no name": (modern(mcp_name=None), False),
    "an empty name": (modern(mcp_name=""), False),
    "no name where none is needed": (modern("tools/list"), True),
    "a name where none is needed": (modern("tools/list", mcp_name="whatever"), True),
    "a prompt's name": (modern("prompts/get", {"name": "trip"}), True),
    "another prompt's name": (modern("prompts/get", {"name": "trip"}, mcp_name="trap"), False),
    "a resource's address": (modern("resources/read", {"uri": "note://one?a=b c"}), True),
    "another resource's address": (
        modern("resources/read", {"uri": "note://one"}, mcp_name="note://two"),
        False,
    ),
    "the resource's name for its address": (
        modern("resources/read", {"uri": "note://one", "name": "one"}, mcp_name="one"),
        False,
    ),
    "an empty name for an empty name": (modern("tools/call", {"name": ""}, mcp_name=""), True),
    "in base64": (modern("tools/call", {"name": "wörter"}, mcp_name=encode_value("wörter")), True),
    "in base64 without need": (modern(mcp_name="=?base64?YWRk?="), True),
    "in base64 with space around it": (modern(mcp_name=" =?base64?YWRk?= "), True),
    "another name in base64": (modern(mcp_name="=?base64?YWRkcw==?="), False),
    "base64 without padding": (
        modern("tools/call", {"name": "a"}, mcp_name="=?base64?YQ?="),
        False,
    ),
    "base64 of strange characters": (modern(mcp_name="=?base64?YW*k?="), False),
    "base64 of no UTF-8": (modern(mcp_name="=?base64?/w==?="), False),
    "the mark in capitals": (modern(mcp_name="=?BASE64?YWRk?="), False),
    "a name that looks like half a mark": (modern("tools/call", {"name": "=?base64?YWRk"}), True),
    "a name that looks like the other half": (modern("tools/call", {"name": "YWRk?="}), True),
    "raw UTF-8": (modern("tools/call", {"name": "wörter"}, mcp_name="wörter"), False),
    "a name with space at its end": (
        modern("tools/call", {"name": "a "}, mcp_name=encode_value("a ")),
        True,
    ),
    "an unknown method": (modern("no/such", mcp_name=None), True),
    "an unknown method with another header": (modern("no/such", mcp_method="tools/list"), False),
}


@pytest.mark.parametrize("case", MIRRORS)
def test_headers_say_what_the_body_says(case: str) -> None:
    """The revision, the method and the name, decoded and without the space around them (`HDR-02`,
    `HDR-06`, `HDR-07`, `HDR-08`, `HDR-10`, `ERA-18`).
    """
    x, good = MIRRORS[case]
    verdict = x.judged()
    if good:
        assert isinstance(verdict, Stateless), verdict
    else:
        assert refusal(verdict) == (400, t.HEADER_MISMATCH), verdict
        assert json.loads(verdict.body)["id"] == 1  # type: ignore[union-attr]  # a refusal


def test_lone_surrogates_hide_no_name_from_the_comparison_with_the_headers() -> None:
    """A body that holds one is read with U+FFFD, and its headers must agree with it all the
    same.
    """
    params = {"name": "add", "arguments": {"text": "\ud83d"}}
    verdict = modern("tools/call", params).judged()
    assert isinstance(verdict, Stateless)
    assert json.loads(bytes(verdict.request.params.arguments)) == {"text": "\ufffd"}
    assert refusal(modern("tools/call", params, mcp_name="other").judged()) == (
        400,
        t.HEADER_MISMATCH,
    )


def test_the_headers_of_arguments_go_to_whoever_knows_the_schema() -> None:
    """They are handed on as they are; others are not (`HDR-14`, `XMH-19`)."""
    head = modern(mcp_param_region="us-west1", mcp_param_x="=?base64?YQ==?=", x_other="1").head()
    assert head.params == {"mcp-param-region": "us-west1", "mcp-param-x": "=?base64?YQ==?="}


# -- what comes after ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code, status",
    [
        (t.METHOD_NOT_FOUND, 404),
        (t.HEADER_MISMATCH, 400),
        (t.MISSING_CLIENT_CAPABILITY, 400),
        (t.UNSUPPORTED_PROTOCOL_VERSION, 400),
        (t.INTERNAL_ERROR, 200),
        (t.INVALID_PARAMS, 200),
        (4711, 200),
    ],
)
def test_the_status_of_an_error(code: int, status: int) -> None:
    """What the specification names has its status, and the rest is 200 (`HTM-24`, `X-14`)."""
    assert status_of(code) == status


def test_every_revision_that_is_served_has_a_way_in() -> None:
    """The house serves all five."""
    assert HOUSE.revisions == REVISIONS
