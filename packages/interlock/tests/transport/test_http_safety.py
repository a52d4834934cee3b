"""An HTTP endpoint in hostile company: strange hosts and pages, other people's sessions, forged
event ids, and bytes meant for a log or a head.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.web import LISTEN, Site, Wire, call, head, post, stateless, until
from tests.protocol.frames import initialize, notification, request

ADD = {"name": "add", "arguments": {"a": 1, "b": 2}}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with a public name and a page of another origin that may use it; nothing may have
    gone wrong in it at the end.
    """
    options: dict[str, Any] = {
        "hosts": ["mcp.example", "other.example:8443"],
        "cors": ["https://app.example"],
    }
    one = Site(tmp_path_factory.mktemp("site"), legacy_sse=True, logs=True, **options)
    yield one
    one.close()
    assert "Traceback" not in one.log(), one.log()
    assert "exception" not in one.log().lower(), one.log()


def add(*headers: str, **more: str) -> bytes:
    """A call that is answered with 3."""
    return stateless(1, "tools/call", ADD, *headers, **more)


def in_session(id: str, body: bytes, *headers: str) -> bytes:
    """A POST of a session."""
    return post(body, f"Mcp-Session-Id: {id}", "MCP-Protocol-Version: 2025-11-25", *headers)


def feed(id: str, *headers: str) -> bytes:
    """The GET of a session's stream."""
    return head("GET", f"Mcp-Session-Id: {id}", "Accept: text/event-stream", *headers)


# -- where a request comes from --------------------------------------------------------------------

OWN_HOSTS = ["127.0.0.1", "127.0.0.1:80", "localhost", "LocalHost:65535", "[::1]", "[::1]:8000",
    "[0:0::1]", "192.168.0.7:3", "mcp.example", "MCP.example:443",
    "other.example:8443"]  # fmt: skip
STRANGE_HOSTS = [
    "", "evil.example", "localhost.", "localhost.evil.example", "127.0.0.1.evil.example",
    "other.example", "other.example:1", "mcp.example.",
    "sub.mcp.example", "mcp.example.evil.example", "localhost@evil.example",
    "evil.example#127.0.0.1", "localhost/evil.example",
    "[::1", "[::1]evil.example", "[::1].evil.example", "::1", "localhost:evil", "localhost:80:80",
    "127.0.0.1, evil.example",
    "2130706433", "0x7f000001", "127.1", "localhost\tevil.example", "[localhost]", "*",
    "[evil.example]", "l\u00f6calhost",
]  # fmt: skip


@pytest.mark.parametrize("host", OWN_HOSTS)
def test_a_server_answers_by_its_own_names(shared: Site, host: str) -> None:
    """Loopback names, plain addresses, and the names it was given; whatever their case and port
    (`SEC-01`, `CFQ-11`).
    """
    assert shared.ask(add(host=host)).status == 200


@pytest.mark.parametrize("host", STRANGE_HOSTS)
@pytest.mark.parametrize("target", ["/mcp", "/sse"])
def test_a_server_does_not_answer_by_other_names(shared: Site, host: str, target: str) -> None:
    """No page gets in by having its own name point here (DNS rebinding), in whatever spelling
    (`SEC-01`, `HPS-05`, `HTM-22`).
    """
    said = (
        add(host=host)
        if target == "/mcp"
        else head("GET", "Accept: text/event-stream", target=target, host=host)
    )
    response = shared.ask(said)
    assert response.status == 403
    assert response.json["error"]["message"].startswith("Forbidden: the host")


@pytest.mark.parametrize(
    "authority, host, status",
    [
        ("127.0.0.1", "127.0.0.1", 200),
        ("127.0.0.1:80", "127.0.0.1", 200),
        ("LOCALHOST:9", "localhost:9", 200),
        ("[::1]:9", "[::1]:9", 200),
        ("evil.example", "evil.example", 403),
        ("evil.example", "127.0.0.1", 400),
        ("127.0.0.1", "evil.example", 400),
        ("127.0.0.1:9", "127.0.0.1", 400),
        ("evil.example@127.0.0.1", "evil.example", 400),
    ],
)
def test_the_target_and_the_host_header_name_one_host(
    shared: Site, authority: str, host: str, status: int
) -> None:
    """An absolute target counts more than the header, and must not differ from it (`SEC-01`)."""
    assert shared.ask(add(host=host, target=f"http://{authority}/mcp")).status == status


@pytest.mark.parametrize("target", ["/mcp/", "/sse/"])
def test_a_slash_too_many_is_redirected_for_those_who_may_ask(shared: Site, target: str) -> None:
    """Relative to where it came from, whatever the method and the query; strangers learn
    nothing.
    """
    for method in ("GET", "POST", "DELETE"):
        response = shared.ask(head(method, "Content-Length: 0", target=f"{target}?a=/b&c=%0D%0A"))
        assert response.status == 307
        assert response.headers["location"] == f"..{target[:-1]}?a=/b&c=%0D%0A"
    assert shared.ask(head("GET", target=target, host="evil.example")).status == 403
    assert shared.ask(head("GET", "Origin: https://evil.example", target=target)).status == 403


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example/mcp/",
        "//evil.example/%2e%2e/mcp/",
        "/\\evil.example/mcp/",
        "/mcp//",
        "//mcp/",
    ],
)
def test_no_path_is_redirected_but_the_known_ones(shared: Site, target: str) -> None:
    """What looks like another authority is a path that is not here (open redirect)."""
    assert shared.ask(head("GET", target=target)).status in (400, 404)


def test_a_request_names_one_host(shared: Site) -> None:
    """Two of them would be two requests to two readers, and none is nobody's (`HDR-11`)."""
    assert shared.ask(add("Host: evil.example")).status in (400, 403)
    assert shared.ask(add().replace(b"Host: 127.0.0.1\r\n", b"")).status == 400
    assert (
        shared.ask(add().replace(b"HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"HTTP/1.0\r\n")).status == 403
    )


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "http://localhost:3000",
        "http://127.0.0.1",
        "https://[::1]:5",
        "https://app.example",
        "HTTPS://App.Example",
    ],
)
def test_pages_of_this_machine_and_those_that_were_named_may_ask(
    shared: Site, origin: str | None
) -> None:
    """`HTM-22`."""
    assert shared.ask(add(*([f"Origin: {origin}"] if origin else []))).status == 200


@pytest.mark.parametrize(
    "origin",
    [
        "null", "", "http://", "localhost", "http://evil.example", "http://app.example",
        "https://app.example:444", "https://app.example.evil",
        "https://evil.example/https://app.example", "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://localhost:80@evil.example", "http://[::1].evil.example",
        "http://127.0.0.1.evil.example", "file://", "file://localhost",
        "chrome-extension://abc", "https://app.example, http://evil.example", "http://mcp.example",
        "https://app.example\u00a0",
    ],
)  # fmt: skip
def test_other_pages_may_not(shared: Site, origin: str) -> None:
    """Not even where they run in a browser on this machine (`HTM-22`, `SEC-01`)."""
    response = shared.ask(add(f"Origin: {origin}"))
    assert response.status == 403
    assert "access-control-allow-origin" not in response.headers


def test_a_public_server_takes_pages_of_its_own_name_only(shared: Site) -> None:
    """Those of the machine it runs on are no better than others to it."""
    assert shared.ask(add("Origin: https://mcp.example", host="mcp.example")).status == 200
    assert shared.ask(add("Origin: http://localhost:3000", host="mcp.example")).status == 403
    assert shared.ask(add("Origin: https://mcp.example", host="other.example:8443")).status == 403


# -- pages of other origins (CORS) -----------------------------------------------------------------


def test_a_page_that_is_welcome_may_ask_and_read(shared: Site) -> None:
    """The preflight grants what it needs, mirrored arguments too, and the response exposes what it
    must read.
    """
    asks = [
        "Access-Control-Request-Method: POST",
        "Access-Control-Request-Headers: content-type, mcp-param-region, x-other",
    ]
    granted = shared.ask(head("OPTIONS", "Origin: https://app.example", *asks))
    assert granted.status == 204
    assert granted.headers["access-control-allow-origin"] == "https://app.example"
    assert granted.headers["access-control-allow-methods"] == "GET, POST, DELETE"
    allowed = {name.strip() for name in granted.headers["access-control-allow-headers"].split(",")}
    assert {
        "content-type",
        "authorization",
        "mcp-session-id",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "last-event-id",
    } <= allowed
    assert "mcp-param-region" in allowed
    assert "x-other" not in allowed
    response = shared.ask(post(initialize(0, "2025-11-25", {}), "Origin: https://app.example"))
    assert response.headers["access-control-allow-origin"] == "https://app.example"
    assert "mcp-session-id" in response.headers["access-control-expose-headers"]
    refused = shared.ask(add("Origin: https://app.example", "Mcp-Name: other"))
    assert (refused.status, refused.headers["access-control-allow-origin"]) == (
        400,
        "https://app.example",
    )


def test_a_page_that_is_not_welcome_learns_nothing(shared: Site) -> None:
    """Neither by asking first nor by asking; and no cache takes the answer to one page for the
    answer to another.
    """
    asks = ["Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type"]
    for origin in ("https://evil.example", "null", "https://app.example.evil"):
        refused = shared.ask(head("OPTIONS", f"Origin: {origin}", *asks))
        assert refused.status == 403
        assert not {name for name in refused.headers if name.startswith("access-control")}
    for said in (add(), add("Origin: https://evil.example"), add("Origin: https://app.example")):
        response = shared.ask(said)
        assert "origin" in response.headers["vary"]
        assert "access-control-allow-credentials" not in response.headers


def test_cross_origin_access_is_off_unless_asked_for(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """OPTIONS is then no method of the endpoint."""
    one = Site(tmp_path_factory.mktemp("plain"))
    try:
        refused = one.ask(
            head("OPTIONS", "Origin: http://localhost:3000", "Access-Control-Request-Method: POST")
        )
        assert (refused.status, refused.headers["allow"]) == (405, "GET, POST, DELETE")
        assert "vary" not in one.ask(add()).headers
    finally:
        one.close()


# -- paths and heads -------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["/mcp", "/mcp?x=/evil", "/%6dcp", "http://127.0.0.1/mcp"])
def test_the_endpoint_has_one_path(shared: Site, target: str) -> None:
    """However it is written."""
    assert shared.ask(add(target=target)).status == 200


@pytest.mark.parametrize(
    "target",
    [
        "//mcp",
        "/./mcp",
        "/x/../mcp",
        "/mcp/..",
        "/MCP",
        "/mcp;x",
        "/mcp%00",
        "/mcp%2f",
        "/%2fmcp",
        "/mcp%20",
        "/",
        "/mcpx",
        "/%ff",
        "*",
    ],
)
def test_other_paths_are_not_found(shared: Site, target: str) -> None:
    """Nothing is guessed, so no rule of a proxy for a path can be passed by writing it
    otherwise.
    """
    assert shared.ask(add(target=target)).status in (404, 400)


@pytest.mark.parametrize(
    "header",
    [
        "Mcp-Session-Id: x\u00e9\u00ff",
        "Mcp-Session-Id: " + "x" * 10_000,
        "Mcp-Session-Id: ../../etc/passwd",
        "Mcp-Session-Id: *",
        "Mcp-Session-Id: %0d%0aSet-Cookie:%20a=b",
        "MCP-Protocol-Version: 2025-11-25%0d%0aX: y",
        "Last-Event-ID: changes.%0d%0aX: y",
    ],
)
def test_nothing_that_a_client_says_becomes_part_of_a_head(shared: Site, header: str) -> None:
    """Every header of the answer is one of ours (response splitting, header injection)."""
    known = {"date", "content-length", "content-type", "connection", "vary", "allow"}
    for said in (
        feed("none", header),
        head("DELETE", header),
        post(request(1, "ping"), header),
        post(b"{", header),
    ):
        response = shared.ask(said)
        assert 400 <= response.status < 500
        assert set(response.headers) <= known


# -- other people's sessions -----------------------------------------------------------------------


def test_a_client_cannot_choose_the_id_of_its_session(shared: Site) -> None:
    """Else it could have somebody use one that it knows (session fixation); ids are not to be
    guessed (`SEC-05`).
    """
    chosen = "0" * 48
    with shared.wire() as wire:
        ids = {shared.session(wire, "2025-11-25", f"Mcp-Session-Id: {chosen}") for _ in range(100)}
        assert len(ids) == 100
        assert chosen not in ids
        assert {len(id) for id in ids} == {48}
        assert len({id[:8] for id in ids}) == 100
        assert wire.ask(in_session(chosen, request(1, "ping"))).status == 404


def test_what_is_kept_of_a_client_is_bounded(shared: Site) -> None:
    """Of what it says of itself, which stays as long as its session, and of what it wants to hear
    of, as long as its stream.
    """
    with shared.wire() as wire:
        hello = json.loads(initialize(0, "2025-11-25", {}))
        hello["params"]["clientInfo"]["name"] = "x" * 300_000
        assert wire.ask(post(json.dumps(hello).encode())).status == 413
        wanted = {"notifications": {"resourceSubscriptions": [f"x:{n}" for n in range(1_001)]}}
        refused = wire.ask(stateless(1, "subscriptions/listen", wanted))
        assert refused.json["error"]["code"] == -32602
        assert "1000" in refused.json["error"]["message"]


def received(wire: Wire) -> list[dict[str, str]]:
    """Everything that a stream still says."""
    return [event for event in wire.events() if event.get("data")]


def test_the_events_of_one_session_are_never_told_to_another(shared: Site) -> None:
    """Whatever event id it names: its own streams are all it can have (`HTL-33`, `SEC-03`)."""
    with shared.wire() as wire:
        mine = shared.session(wire)
        yours = shared.session(wire)
        said = request(
            1,
            "tools/call",
            {"name": "take", "arguments": {"seconds": 0}, "_meta": {"progressToken": 1}},
        )
        stream = shared.wire()
        stream.say(in_session(mine, said))
        stream.head()
        ids = [event["id"] for event in stream.events() if event.get("id")]
        assert len(ids) >= 3
        again = shared.wire()
        again.say(feed(mine, f"Last-Event-ID: {ids[0]}"))
        assert again.head().status == 200
        assert [event["id"] for event in received(again)] == ids[1:]
        for id in ids:
            assert wire.ask(feed(yours, f"Last-Event-ID: {id}")).status == 400


FORGED = [
    "", ".", "x", "x.1", ".1", "1", "changes", "a.b.c", "00000.1", "../1.1", "*.1", "x.-1",
    "x.99999999999999999999", "x.\u00b2", "\u00e9.1",
    "' OR 1=1 --.1", "x\t.1", "x" * 5_000 + ".1",
]  # fmt: skip


def test_event_ids_that_were_never_given_are_refused(shared: Site) -> None:
    """With 400 and words, and never with a fault of the server."""
    with shared.wire() as wire:
        id = shared.session(wire)
    wires = [shared.wire() for _ in FORGED]
    for wire, forged in zip(wires, FORGED, strict=True):
        wire.say(feed(id, f"Last-Event-ID: {forged}"))
    for wire in wires:
        response = wire.read()
        assert response.status == 400
        assert "Last-Event-ID" in response.json["error"]["message"]
        wire.close()


def test_places_on_the_board_of_changes_say_nothing_about_the_process(shared: Site) -> None:
    """No address in memory, and a forged place is as good as a forgotten one: everything counts as
    changed.
    """
    with shared.wire() as wire:
        id = shared.session(wire)
    stream = shared.wire()
    stream.say(feed(id))
    stream.head()
    place = next(event["id"] for event in stream.events() if event.get("id"))
    assert re.fullmatch(r"changes\.[0-9a-f]{16}-\d+", place), place
    origin = place.rpartition("-")[0]
    for forged in (
        f"{origin}-99999",
        f"{origin}-\u00b2",
        f"{origin}-" + "9" * 5_000,
        f"{origin}--1",
        "changes.",
        "changes.0-0",
        "changes.\u00e9",
    ):
        stream = shared.wire()
        stream.say(feed(id, f"Last-Event-ID: {forged}"))
        assert stream.head().status == 200
        assert next(stream.messages())["method"] == "notifications/tools/list_changed"
        stream.close()


def test_an_answer_to_nobody_reaches_nobody(shared: Site) -> None:
    """Answers, cancellations and nonsense of one session do nothing to the calls of another, nor to
    its own streams (`CAN-07`).
    """
    with shared.wire() as wire:
        mine = shared.session(wire)
        yours = shared.session(wire)
        stuck = shared.wire()
        said = request(
            7,
            "tools/call",
            {"name": "take", "arguments": {"seconds": 0.5}, "_meta": {"progressToken": 7}},
        )
        stuck.say(in_session(mine, said))
        stuck.head()
        for body in (
            notification("notifications/cancelled", {"requestId": 7}),
            b'{"jsonrpc":"2.0","id":7,"result":{}}',
        ):
            assert wire.ask(in_session(yours, body)).status == 202
        assert wire.ask(in_session(mine, b'{"jsonrpc":"2.0","id":7}')).status == 400
        assert wire.ask(in_session(mine, b'{"jsonrpc":"2.0","id":99,"result":{}}')).status == 202
        messages = [json.loads(event["data"]) for event in received(stuck)]
        assert [message["id"] for message in messages if "method" not in message] == [7]
        assert messages[-1]["result"]["content"][0]["text"] == "taken"


def test_a_stream_of_the_older_transport_is_posted_to_by_its_own_session_only(shared: Site) -> None:
    """A guessed or foreign id is not found."""
    with shared.wire() as wire:
        streamable = shared.session(wire)
        for id in ("", "x", "0" * 48, streamable):
            assert (
                wire.ask(post(request(1, "ping"), target=f"/messages?session={id}")).status == 404
            )


def test_a_stream_that_is_come_back_for_twice_is_told_once(shared: Site) -> None:
    """The newer connection has it: what is said goes to one of them, never to both (`HTL-30`)."""
    with shared.wire() as wire:
        id = shared.session(wire)
        said = request(
            1,
            "tools/call",
            {"name": "take", "arguments": {"seconds": 0.5}, "_meta": {"progressToken": 1}},
        )
        first = shared.wire()
        first.say(in_session(id, said))
        first.head()
        last = next(event["id"] for event in first.events() if event.get("data"))
        wires = [shared.wire() for _ in range(3)]
        for one in wires:
            one.say(feed(id, f"Last-Event-ID: {last}"))
            assert one.head().status == 200
        told = [json.loads(event["data"])["id"] for one in wires for event in received(one)]
        assert told == [1]


def test_streams_that_are_opened_again_and_again_replace_each_other(shared: Site) -> None:
    """One session holds one stream of notices, however often it asks (`HTL-30`)."""
    with shared.wire() as wire:
        id = shared.session(wire)
    shared.value("tasks")
    before = shared.descriptors()
    tasks = shared.value("tasks")
    wires = [shared.wire() for _ in range(50)]
    for one in wires:
        one.say(feed(id))
        assert one.head().status == 200
        next(one.events())
    for one in wires[:-1]:
        list(one.events())
    shared.value("stir")
    assert next(wires[-1].messages())["method"] == "notifications/tools/list_changed"
    for one in wires:
        one.close()
    shared.settles(before, tasks)


def test_a_listener_is_told_by_whoever_may_change_things_only(shared: Site) -> None:
    """A client cannot put the words of the house into its own request."""
    inside = {"dev.interlock/since": "0-0", "dev.interlock/position": "evil"}
    body = json.loads(stateless(1, "subscriptions/listen", LISTEN).partition(b"\r\n\r\n")[2])
    body["params"]["_meta"] |= inside
    with shared.wire() as wire:
        wire.say(
            post(
                json.dumps(body).encode(),
                "MCP-Protocol-Version: 2026-07-28",
                "Mcp-Method: subscriptions/listen",
            )
        )
        wire.head()
        assert "dev.interlock" not in json.dumps(next(wire.messages()))
        shared.value("stir")
        message = next(wire.messages())
        assert message["method"] == "notifications/tools/list_changed"
        assert "dev.interlock" not in json.dumps(message)


def test_a_cancelled_call_does_not_answer_for_another_with_its_id(shared: Site) -> None:
    """Ids are the client's; two clients of the stateless era may use the same one at once."""
    first = shared.wire()
    second = shared.wire()
    first.say(call("same", "wait_for_ever"))
    first.head()
    second.say(call("same", "take", seconds=0.3))
    second.head()
    before = shared.value("happened").count("ended")
    first.close()
    until(lambda: shared.value("happened").count("ended") > before, "the end of the first")
    assert list(second.messages())[-1]["result"]["content"][0]["text"] == "taken"


def test_a_flood_of_refusals_and_failures_does_not_fill_the_log(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Of each kind the first lines are written; the rest is counted."""
    one = Site(tmp_path_factory.mktemp("flooded"), logs=True)
    for _ in range(200):
        assert one.ask(add(host="evil.example")).status == 403
        assert one.ask(in_session("0" * 48, request(1, "ping"))).status == 404
        assert one.ask(b"nonsense\r\n\r\n").status == 400
        failing = stateless(1, "tools/call", {"name": "fail_badly", "arguments": {}})
        assert one.ask(failing).json["result"]["isError"]
    one.close()
    lines = [line for line in one.log().splitlines() if "interlock.access" not in line]
    for words in ('"status":403', '"status":404', "Invalid HTTP request", "fail_badly failed"):
        assert 20 <= sum(words in line for line in lines) <= 40, words
