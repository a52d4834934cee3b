"""Servers over HTTP as they are deployed: draining, limits, logs, health, principals, and a missing
package, each in a process of its own.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.web import LISTEN, Site, Wire, call, head, post, stateless, until
from tests.protocol.frames import initialize, notification, request

MakeSite = Callable[..., Site]
ADD = stateless(1, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})


@pytest.fixture
def site(tmp_path: Path) -> Iterator[MakeSite]:
    """Makes a server with options of its own; all are gone after the test."""
    made: list[Site] = []

    def make(**options: object) -> Site:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Site(folder, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server as it comes."""
    one = Site(
        tmp_path_factory.mktemp("site"),
        hosts=["mcp.example", "other.example:8443"],
        cors=["https://app.example"],
    )
    yield one
    one.close()


def in_session(id: str, body: bytes, *headers: str) -> bytes:
    """A POST of a session."""
    return post(body, f"Mcp-Session-Id: {id}", "MCP-Protocol-Version: 2025-11-25", *headers)


def tool(id: Any, name: str, **arguments: Any) -> bytes:
    """A tool call of the handshake era, with a progress token."""
    return request(
        id, "tools/call", {"name": name, "arguments": arguments, "_meta": {"progressToken": id}}
    )


def feed(id: str, *headers: str) -> bytes:
    """The GET of a session's stream."""
    return head("GET", f"Mcp-Session-Id: {id}", "Accept: text/event-stream", *headers)


# -- the end ---------------------------------------------------------------------------------------


def started(site: Site, said: bytes) -> Wire:
    """A connection whose stream has begun and has said something."""
    wire = site.wire()
    wire.say(said)
    assert wire.head().status == 200
    next(wire.events())
    return wire


def ends_well(site: Site) -> None:
    """The server ends with 0, and nothing went wrong on the way; its lifespan was left."""
    assert site.process.wait(60) == 0
    assert "Traceback" not in site.log(), site.log()
    assert "Cancel" not in site.log(), site.log()
    assert site.log().split()[-1] == "buried"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_calls_that_run_may_finish(site: MakeSite, number: int) -> None:
    """Of both eras, streams and plain answers; nobody new is let in, and health says so."""
    one = site(grace=30)
    with one.wire() as wire:
        id = one.session(wire)
    waiting = [
        started(one, call(1, "wait_for_gate")),
        started(one, in_session(id, tool(1, "wait_for_gate"))),
    ]
    plain = one.wire()
    plain.say(stateless(1, "tools/call", {"name": "wait_for_gate", "arguments": {}}))
    until(lambda: one.value("happened").count("at the gate") == 3)
    kept = one.wire()
    opener = one.wire()
    assert kept.ask(head("GET", target="/health")).json == {"status": "ok"}
    opener.say(call(5, "take", seconds=0.6))  # begun before the end, finished after it
    one.process.send_signal(number)
    until(lambda: kept.ask(head("GET", target="/health")).status == 503, "the draining")
    response = kept.ask(ADD)
    assert (response.status, response.json["error"]["data"], response.headers["connection"]) == (
        503,
        {"reason": "shutdown"},
        "close",
    )
    opener.head()
    assert list(opener.messages())[-1]["result"]["content"][0]["text"] == "taken"
    for wire in waiting:
        wire.close()
    plain.close()


def test_a_call_that_finishes_within_the_grace_is_answered(site: MakeSite) -> None:
    """And then the server ends."""
    one = site(grace=30)
    with one.wire() as wire:
        id = one.session(wire)
    streams = [
        started(one, call(1, "take", seconds=1.0)),
        started(one, in_session(id, tool(2, "take", seconds=1.0))),
    ]
    plain = one.wire()
    plain.say(stateless(3, "tools/call", {"name": "take", "arguments": {"seconds": 1.0}}))
    quiet = one.wire()
    quiet.say(
        in_session(id, request(4, "tools/call", {"name": "take", "arguments": {"seconds": 1.0}}))
    )
    until(lambda: one.value("tasks") >= 6, "the calls")
    one.process.send_signal(signal.SIGTERM)
    for n, wire in enumerate(streams, 1):
        message = list(wire.messages())[-1]
        assert (message["id"], message["result"]["content"][0]["text"]) == (n, "taken")
    for n, wire in ((3, plain), (4, quiet)):
        response = wire.read()
        words = response.body.decode()
        assert f'"id":{n}' in words
        assert '"taken"' in words
    ends_well(one)


def test_a_call_that_takes_longer_than_the_grace_is_told(site: MakeSite) -> None:
    """A clear error in place of a broken connection, for every kind of call."""
    one = site(grace=0.3, legacy_sse=True)
    with one.wire() as wire:
        id = one.session(wire)
    streams = [
        started(one, call(1, "wait_for_ever")),
        started(one, in_session(id, tool(2, "wait_for_ever"))),
    ]
    plain = one.wire()
    plain.say(stateless(3, "tools/call", {"name": "wait_for_ever", "arguments": {}}))
    until(lambda: one.value("happened").count("begun") == 3, "the calls")
    one.process.send_signal(signal.SIGTERM)
    for wire in streams:
        error = list(wire.messages())[-1]["error"]
        assert (error["message"], error["data"]) == (
            "The server is shutting down.",
            {"reason": "shutdown"},
        )
    assert plain.read().json["error"]["data"] == {"reason": "shutdown"}
    ends_well(one)


def test_streams_that_listen_end_in_good_order(site: MakeSite) -> None:
    """The listener of the stateless era gets its response (`LSN-10`); all streams have their last
    chunk.
    """
    one = site(grace=30, legacy_sse=True)
    with one.wire() as wire:
        id = one.session(wire)
    listener = started(one, stateless(1, "subscriptions/listen", LISTEN))
    getter = started(one, feed(id))
    old = one.wire()
    old.say(head("GET", "Accept: text/event-stream", target="/sse"))
    assert old.head().status == 200
    assert next(old.events())["event"] == "endpoint"
    one.process.send_signal(signal.SIGTERM)
    assert [message["id"] for message in listener.messages()] == [1]
    assert list(getter.messages()) == []
    assert list(old.messages()) == []
    ends_well(one)


def test_a_client_that_never_reads_does_not_hold_the_end(site: MakeSite) -> None:
    """Nor does one in the middle of a request."""
    one = site(grace=30)
    stuck = one.wire(small=True)
    half = one.wire()
    half.say(ADD[:-20])
    stuck.say(stateless(1, "tools/call", {"name": "text", "arguments": {"size": 20_000_000}}))
    assert stuck.head().status == 200
    one.process.send_signal(signal.SIGTERM)
    assert one.process.wait(60) == 0


# -- limits ----------------------------------------------------------------------------------------


def test_calls_are_limited_and_streams_do_not_count_as_calls(site: MakeSite) -> None:
    """503 with a reason and a time, for both eras together; the streams of listeners have a limit
    of their own.
    """
    one = site(limits={"calls": 2, "streams": 5})
    with one.wire() as wire:
        id = one.session(wire)
        other = one.session(wire)
    listeners = [started(one, stateless(n, "subscriptions/listen", LISTEN)) for n in range(4)]
    assert one.ask(ADD).status == 200
    listeners.append(started(one, feed(id)))
    for said in (feed(other), stateless(9, "subscriptions/listen", LISTEN)):
        response = one.ask(said)
        assert (response.status, response.json["error"]["data"]["reason"]) == (503, "busy")
        assert int(response.headers["retry-after"]) > 0
    first = started(one, call(1, "wait_for_ever"))
    second = started(one, in_session(id, tool(2, "wait_for_ever")))
    for said in (
        ADD,
        in_session(id, tool(3, "add", a=1, b=2)),
        in_session(other, tool(3, "add", a=1, b=2)),
    ):
        response = one.ask(said)
        assert (response.status, response.json["error"]["data"]["reason"]) == (503, "busy")
        assert response.json["id"] in (1, 3)
    first.close()
    until(lambda: one.ask(ADD).status == 200, "room")
    for wire in (*listeners, second):
        wire.close()

    def listens() -> bool:
        with one.wire() as wire:
            wire.say(stateless(9, "subscriptions/listen", LISTEN))
            return wire.head().status == 200

    until(listens, "room")


def test_sessions_are_limited(site: MakeSite) -> None:
    """503 with a time; a session that ends makes room."""
    one = site(limits={"sessions": 2})
    with one.wire() as wire:
        id = one.session(wire)
        _ = one.session(wire)
        response = wire.ask(post(initialize(0, "2025-11-25", {})))
        assert (
            response.status,
            response.json["error"]["data"],
            response.headers["retry-after"],
        ) == (503, {"reason": "busy", "resource": "sessions", "retryAfter": 30}, "30")
        assert wire.ask(head("DELETE", f"Mcp-Session-Id: {id}")).status == 204
        one.session(wire)


def test_the_requests_of_one_address_are_limited(site: MakeSite) -> None:
    """429 with the time to wait, on every way in."""
    one = site(limits={"rate": {"per_second": 0.001, "burst": 4}}, legacy_sse=True)
    with one.wire() as wire:
        assert wire.ask(ADD).status == 200
        id = one.session(wire)
        assert wire.ask(in_session(id, request(1, "ping"))).status == 200
        assert wire.ask(post(b"{")).status == 400  # nonsense is work too
        for said in (
            ADD,
            in_session(id, request(1, "ping")),
            feed(id),
            post(b"{}", target="/messages?session=x"),
        ):
            response = wire.ask(said)
            assert (response.status, response.json["error"]["data"]["reason"]) == (429, "rate")
            assert int(response.headers["retry-after"]) > 500
        assert wire.ask(head("GET", "Accept: text/event-stream", target="/sse")).status == 429
        assert wire.ask(head("GET", target="/health")).status == 200  # nobody's business


@pytest.mark.parametrize(
    "proxies, believed", [([], False), (["127.0.0.1"], True), (["192.0.2.7"], False)]
)
def test_whom_a_proxy_speaks_for_is_believed_of_proxies_only(
    site: MakeSite, proxies: list[str], believed: bool
) -> None:
    """Else whoever asks could be somebody else with each request, and no rate would hold."""
    one = site(limits={"rate": {"per_second": 0.001, "burst": 2}}, proxies=proxies)
    with one.wire() as wire:
        statuses = [
            wire.ask(
                stateless(1, "server/discover", None, f"X-Forwarded-For: 203.0.113.{n}")
            ).status
            for n in range(4)
        ]
    assert statuses == ([200] * 4 if believed else [200, 200, 429, 429])


# -- sessions --------------------------------------------------------------------------------------


def test_sessions_end_when_nobody_uses_them_and_live_while_somebody_listens(site: MakeSite) -> None:
    """By idleness; a stream that is open counts as use (`HTL-42`)."""
    one = site(limits={"idle_seconds": 0.3})
    with one.wire() as wire:
        idle = one.session(wire)
        received = one.session(wire)
        listening = started(one, feed(received))
        one.value(
            "take", seconds=0.9
        )  # time must pass: to ask whether they are still there would be to use them
        assert wire.ask(in_session(idle, request(1, "ping"))).status == 404
        assert wire.ask(in_session(received, request(1, "ping"))).status == 200
        listening.close()


def test_sessions_end_at_an_age(site: MakeSite) -> None:
    """Used or not: the stream of one that is over ends."""
    one = site(limits={"session_seconds": 0.5})
    with one.wire() as wire:
        id = one.session(wire)
        listening = started(one, feed(id))
        assert list(listening.messages()) == []
        assert wire.ask(in_session(id, request(1, "ping"))).status == 404


def test_without_sessions_the_handshake_era_is_served_request_by_request(site: MakeSite) -> None:
    """No id is given, none is needed, and there is nothing to listen to or to end."""
    one = site(sessions=False)
    with one.wire() as wire:
        hello = wire.ask(post(initialize(0, "2025-11-25", {})))
        assert (hello.status, "mcp-session-id" in hello.headers) == (200, False)
        assert (
            wire.ask(
                post(notification("notifications/initialized"), "MCP-Protocol-Version: 2025-11-25")
            ).status
            == 202
        )
        assert wire.ask(post(tool(1, "add", a=1, b=2), "MCP-Protocol-Version: 2025-11-25")).json[
            "result"
        ]["structuredContent"] == {"result": 3}
        assert wire.ask(feed("x")).status == 405
        assert wire.ask(head("DELETE", "Mcp-Session-Id: x")).status == 405


def test_a_server_that_always_streams(site: MakeSite) -> None:
    """Sessions get event streams, also for answers that come at once; the stateless era is as it
    was.
    """
    one = site(stream=True)
    with one.wire() as wire:
        id = one.session(wire)
        response = wire.ask(in_session(id, tool(1, "add", a=1, b=2)))
        assert response.headers["content-type"] == "text/event-stream"
        assert b'"result":3' in response.body
        assert wire.ask(ADD).headers["content-type"] == "application/json"


def test_the_older_transport_is_off_unless_asked_for(site: MakeSite, shared: Site) -> None:
    """`legacy_sse` serves it beside the other (`HPS-01` to `HPS-04`)."""
    assert shared.ask(head("GET", "Accept: text/event-stream", target="/sse")).status == 404
    assert shared.ask(post(b"{}", target="/messages?session=x")).status == 404
    one = site(legacy_sse=True)
    old = one.wire()
    old.say(head("GET", "Accept: text/event-stream", target="/sse"))
    assert old.head().status == 200
    target = next(old.events())["data"]
    assert one.ask(post(initialize(0, "2024-11-05", {}), target=target)).status == 202
    assert next(old.messages())["result"]["protocolVersion"] == "2024-11-05"
    assert one.ask(post(tool(1, "add", a=1, b=2), target=target)).status == 202
    assert next(old.messages())["result"]["content"][0]["text"] == "3"
    assert one.ask(ADD).status == 200


def test_quiet_streams_show_that_they_live(site: MakeSite) -> None:
    """Comments, which a reader passes over, on streams of every kind (`HTM-12`)."""
    one = site(limits={"keep_alive": 0.1}, legacy_sse=True)
    with one.wire() as wire:
        id = one.session(wire)
    streams = [
        stateless(1, "subscriptions/listen", LISTEN),
        stateless(2, "tools/call", {"name": "wait_for_ever", "arguments": {}}),
        feed(id),
        in_session(id, tool(3, "wait_for_ever")),
        head("GET", "Accept: text/event-stream", target="/sse"),
    ]
    wires = [one.wire() for _ in streams]
    for wire, said in zip(wires, streams, strict=True):
        wire.say(said)
    for wire in wires:
        assert wire.head().headers["content-type"] == "text/event-stream"
        quiet = 0
        events = wire.events()
        while quiet < 3:
            quiet += next(events) == {}


# -- logs ------------------------------------------------------------------------------------------


def test_logs_are_json_and_keep_secrets(site: MakeSite) -> None:
    """One object a line; no tokens, no session ids, no arguments, and no line that a client has
    written.
    """
    one = site(logs=True, legacy_sse=True)
    with one.wire() as wire:
        id = one.session(wire, "2025-11-25", "Authorization: Bearer SECRET-TOKEN")
        wire.ask(in_session(id, tool(1, "length", text="SECRET-ARGUMENT")))
        wire.ask(
            stateless(
                1,
                "tools/call",
                {"name": "length", "arguments": {"text": "SECRET-ARGUMENT"}},
                "Authorization: Bearer SECRET-TOKEN",
            )
        )
        wire.ask(stateless(1, "tools/list", {}, host="evil.example"))
        wire.ask(stateless(1, "tools/list", {}, "Mcp-Name: a\x85interlock.access {}\u00a0b"))
        wire.ask(head("GET", target="/x%0ainterlock.access%20%7b%7d?token=SECRET-TOKEN"))
        wire.ask(head("GET", "X-Forwarded-For: " + "\u00e9" * 10_000, target="/" + "x" * 10_000))
        wire.ask(head("DELETE", f"Mcp-Session-Id: {id}"))
    with one.wire() as old:
        old.say(head("GET", "Accept: text/event-stream", target="/sse"))
        old.head()
        target = next(old.events())["data"]
        one.ask(post(initialize(0, "2024-11-05", {}), target=target))
    until(lambda: one.log().count('"status":202') == 1, "the log")
    logs = ("interlock.access ", "interlock.security ")  # the request log is for people
    lines = [line.partition(" ") for line in one.log().split("\n") if line.startswith(logs)]
    told = {
        name: [json.loads(line) for kind, _, line in lines if kind == name] for name, _, _ in lines
    }
    assert "SECRET" not in one.log()
    assert id not in one.log()
    assert target.rpartition("=")[2] not in one.log()
    assert one.log().isascii()
    assert max(map(len, one.log().splitlines())) < 2_000
    first = told["interlock.access"][0]
    assert (first["event"], first["method"], first["path"], first["status"]) == (
        "request",
        "POST",
        "/mcp",
        200,
    )
    assert first["address"] == "127.0.0.1"
    calls = [line for line in told["interlock.access"] if line.get("name") == "length"]
    assert [(line["rpc"], line["revision"]) for line in calls] == [("tools/call", "2026-07-28")]
    events = [line["event"] for line in told["interlock.security"]]
    assert events[:1] == ["session opened"]
    assert "session ended" in events
    refused = next(line for line in told["interlock.security"] if line.get("status") == 403)
    assert "evil.example" in refused["why"]
    digests = {
        line["session"]
        for line in told["interlock.security"]
        if line["event"].startswith("session")
    }
    assert {line["session"] for line in told["interlock.access"] if "session" in line} <= digests


# -- what a deployment may lack --------------------------------------------------------------------


def test_a_missing_package_is_one_line_that_says_what_to_install() -> None:
    """And not a traceback through somebody else's code."""
    program = """
import sys
sys.modules["httptools"] = None
from interlock import Server
Server("x").run("http", port=0)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode != 0
    assert ran.stderr.splitlines() == ["HTTP needs httptools: pip install 'interlock[http]'"]


def test_a_port_that_is_taken_is_named(shared: Site) -> None:
    """The words name the address."""
    program = f"from interlock import Server; Server('x').run('http', port={shared.port})"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode != 0
    assert f"cannot listen on 127.0.0.1:{shared.port}" in ran.stderr.splitlines()[-1]
