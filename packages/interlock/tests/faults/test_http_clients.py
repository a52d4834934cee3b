"""Clients that do not read, leave, come back in thousands, or stay and do nothing: the server keeps
what it must, and only that."""

from __future__ import annotations

import json
import select
from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.web import LISTEN, MB, Site, Wire, call, head, post, stateless, until
from tests.protocol.frames import notification, request

MakeSite = Callable[..., Site]


def in_session(id: str, body: bytes, *headers: str) -> bytes:
    """A POST of a session of 2025-11-25."""
    return post(body, f"Mcp-Session-Id: {id}", "MCP-Protocol-Version: 2025-11-25", *headers)


def tool(id: Any, name: str, **arguments: Any) -> bytes:
    """A tool call of the handshake era, with a progress token."""
    return request(
        id, "tools/call", {"name": name, "arguments": arguments, "_meta": {"progressToken": id}}
    )


def stream_of(id: str, *headers: str) -> bytes:
    """The GET of a session's stream."""
    return head(
        "GET",
        f"Mcp-Session-Id: {id}",
        "Accept: text/event-stream",
        "MCP-Protocol-Version: 2025-11-25",
        *headers,
    )


def opened(site: Site, said: bytes) -> Wire:
    """A connection on which a stream has begun."""
    wire = site.wire()
    wire.say(said)
    response = wire.head()
    assert response.status == 200, wire.file.read()
    assert response.headers["content-type"] == "text/event-stream"
    return wire


# -- clients that leave ----------------------------------------------------------------------------


def test_a_client_of_the_stateless_era_that_goes_cancels_its_call(site: MakeSite) -> None:
    """The tool sees it within moments, whether the stream has begun or not (`HTM-14`, `CAN-05`)."""
    one = site()
    for said in (call(1, "wait_for_ever"), stateless(2, "tools/call", {"name": "wait_for_ever"})):
        with one.wire() as wire:
            wire.say(said)
            until(lambda: one.value("happened")[-1:] == ["begun"], "the call")
        until(lambda: one.value("happened")[-1] == "ended", "the end of the call")


def test_a_client_of_a_session_that_goes_can_come_back_for_its_call(site: MakeSite) -> None:
    """Going away is no cancelling in the handshake era: the call goes on, and its answer waits
    (`HTL-21`, `HTL-34`)."""
    one = site()
    with one.wire() as wire:
        id = one.session(wire)
    with opened(one, in_session(id, tool(1, "wait_for_gate"))) as wire:
        events = wire.events()
        last = next(event["id"] for event in events if event.get("data"))
    until(lambda: "at the gate" in one.value("happened"))
    one.value("open_gate")
    with opened(one, stream_of(id, f"Last-Event-ID: {last}")) as wire:
        messages = list(wire.messages())
    assert [message["id"] for message in messages] == [1]
    assert messages[0]["result"]["content"][0]["text"] == "through"


def test_a_cancelled_call_of_a_session_ends_though_its_client_has_gone(site: MakeSite) -> None:
    """The cancellation comes on another connection (`HTL-22`)."""
    one = site()
    with one.wire() as wire:
        id = one.session(wire)
        with opened(one, in_session(id, tool(1, "wait_for_ever"))) as gone:
            next(gone.messages())
        assert "ended" not in one.value("happened")
        assert (
            wire.ask(
                in_session(id, notification("notifications/cancelled", {"requestId": 1}))
            ).status
            == 202
        )
    until(lambda: "ended" in one.value("happened"), "the end of the call")


def test_one_client_without_a_session_cannot_cancel_the_call_of_another(site: MakeSite) -> None:
    """Where there are no sessions nobody can say whose call is meant, so nobody's is."""
    one = site(sessions=False)
    with one.wire() as mine, one.wire() as theirs:
        mine.say(post(tool(1, "wait_for_gate"), "MCP-Protocol-Version: 2025-11-25"))
        until(lambda: "at the gate" in one.value("happened"))
        cancelling = notification("notifications/cancelled", {"requestId": 1})
        assert theirs.ask(post(cancelling, "MCP-Protocol-Version: 2025-11-25")).status == 202
        one.value("open_gate")
        mine.head()
        assert list(mine.messages())[-1]["result"]["content"][0]["text"] == "through"


# -- clients that do not read ----------------------------------------------------------------------


def test_a_client_that_does_not_read_is_told_less_and_the_answer_is_not_lost(
    site: MakeSite,
) -> None:
    """What may be dropped is dropped once 8 MiB wait; the result comes, and memory stays bounded
    (`PRG-05`, `LOG-09`)."""
    one = site()
    before = one.resident()
    with one.wire(small=True) as wire:
        wire.say(call(1, "chatter", times=30_000))
        until(lambda: "chattered" in one.value("happened"), "the end of the chatter")
        assert one.resident() - before < 48 * MB
        wire.head()
        messages = list(wire.messages())
    assert messages[-1]["result"]["structuredContent"] == {"result": 30_000}
    assert 1_000 < len(messages) < 15_000


@pytest.mark.parametrize(
    "said",
    [
        stateless(1, "tools/call", {"name": "text", "arguments": {"size": 20 * MB}}),
        call(1, "chatter", times=30_000),
    ],
)
def test_a_client_that_takes_nothing_in_is_given_up(site: MakeSite, said: bytes) -> None:
    """After a stall its connection is ended, and all that waited for it is forgotten."""
    one = site(limits={"stall_seconds": 0.4})
    one.value("tasks")
    before = one.descriptors()
    tasks = one.value("tasks")
    wires = [one.wire(small=True) for _ in range(3)]
    for wire in wires:
        wire.say(said)
    for wire in wires:
        select.select([wire.socket], [], [], 60)
    one.settles(before, tasks)
    for wire in wires:
        wire.close()


def test_a_listener_that_does_not_read_costs_little(site: MakeSite) -> None:
    """A thousand changes are as good as one to a listener that has not heard the first
    (`LSN-02`)."""
    one = site()
    with one.wire(small=True) as wire:
        wire.say(stateless(1, "subscriptions/listen", LISTEN))
        wire.head()
        before = one.resident()
        with one.wire() as other:
            for n in range(2_000):
                other.say(stateless(n, "tools/call", {"name": "stir", "arguments": {}}))
                other.read()
        assert one.resident() - before < 8 * MB


# -- thousands -------------------------------------------------------------------------------------


def comes_and_goes(one: Site, wave: Callable[[], None], allowed: int, *, times: int = 1) -> None:
    """Run a wave twice, so that the memory settles, and some more `times`: these leave `allowed`
    bytes at the most, no socket and no task."""
    one.value("tasks")
    descriptors = one.descriptors()
    tasks = one.value("tasks")
    for _ in range(2):
        wave()
        one.settles(descriptors, tasks)
    before = one.resident()
    for _ in range(times):
        wave()
        one.settles(descriptors, tasks)
    assert one.resident() - before < allowed


@pytest.mark.endurance(seconds=5)
def test_five_thousand_idle_sessions(site: MakeSite) -> None:
    """They cost a few kilobytes each, and nothing once they are over."""
    one = site(limits={"sessions": 5_000})
    ids: list[str] = []

    def wave() -> None:
        with one.wire() as wire:
            ids.extend(one.session(wire) for _ in range(5_000))
            assert wire.ask(in_session(ids[0], request(1, "ping"))).json["result"] == {}
            assert wire.ask(in_session(ids[-1], request(1, "ping"))).json["result"] == {}
            with one.wire() as late:
                response = late.ask(
                    post(
                        request(
                            0,
                            "initialize",
                            {
                                "protocolVersion": "2025-11-25",
                                "capabilities": {},
                                "clientInfo": {"name": "x", "version": "1"},
                            },
                        )
                    )
                )
                assert (response.status, response.headers["retry-after"]) == (503, "30")
            for id in ids:
                assert wire.ask(head("DELETE", f"Mcp-Session-Id: {id}")).status == 204
            ids.clear()

    before = one.resident()
    comes_and_goes(one, wave, 4 * MB)
    assert one.resident() - before < 40 * MB


@pytest.mark.endurance(seconds=3)
def test_a_thousand_listeners_of_the_stateless_era(site: MakeSite) -> None:
    """Each hears of a change; they cost little, and nothing once they are gone."""
    one = site()

    def wave() -> None:
        wires = [opened(one, stateless(n, "subscriptions/listen", LISTEN)) for n in range(1_000)]
        streams = [wire.messages() for wire in wires]
        assert {next(stream)["method"] for stream in streams} == {
            "notifications/subscriptions/acknowledged"
        }
        one.value("stir")
        assert {next(stream)["method"] for stream in streams} == {
            "notifications/tools/list_changed"
        }
        for wire in wires:
            wire.close()

    before = one.resident()
    comes_and_goes(one, wave, 4 * MB)
    assert one.resident() - before < 60 * MB


@pytest.mark.endurance(seconds=5)
def test_a_thousand_listeners_of_sessions_that_lose_their_streams_and_come_back(
    site: MakeSite,
) -> None:
    """All at once, with the id of the last event: each misses nothing and hears nothing twice
    (`HTL-34`, `HTL-36`)."""
    one = site()
    with one.wire() as wire:
        ids = [one.session(wire) for _ in range(1_000)]
    last = dict.fromkeys(ids, "")

    def receive(wires: dict[str, Wire]) -> None:
        for id, wire in wires.items():
            event = next(event for event in wire.events() if event.get("data"))
            assert json.loads(event["data"])["method"] == "notifications/tools/list_changed"
            last[id] = event["id"]

    def wave() -> None:
        wires = {
            id: opened(one, stream_of(id, *([f"Last-Event-ID: {last[id]}"] if last[id] else [])))
            for id in ids
        }
        if not last[ids[-1]]:
            for id, wire in wires.items():
                last[id] = next(event["id"] for event in wire.events() if event.get("id"))
        one.value("stir")
        receive(wires)
        for wire in wires.values():
            wire.close()
        one.value("stir")  # while all are away
        wires = {id: opened(one, stream_of(id, f"Last-Event-ID: {last[id]}")) for id in ids}
        receive(wires)
        for wire in wires.values():
            wire.close()

    before = one.resident()
    comes_and_goes(one, wave, 4 * MB)
    assert one.resident() - before < 60 * MB


@pytest.mark.endurance(seconds=3)
def test_sessions_that_come_and_go_leave_nothing(site: MakeSite) -> None:
    """Opened, used, listened to, broken off in mid-call, and ended, or left alone until they are
    over."""
    one = site(limits={"session_seconds": 1.0})

    def wave() -> None:
        for n in range(120):
            with one.wire() as wire:
                id = one.session(wire)
                assert wire.ask(in_session(id, tool(1, "add", a=1, b=2))).status == 200
                with opened(one, stream_of(id)) as stream:
                    next(stream.events())
                    with opened(one, in_session(id, tool(2, "wait_for_ever"))) as stuck:
                        next(stuck.messages())
                    if n % 3:
                        assert wire.ask(head("DELETE", f"Mcp-Session-Id: {id}")).status == 204

    comes_and_goes(one, wave, 4 * MB, times=4)  # a call that were kept would cost some 10 KB


def test_a_server_without_a_descriptor_left_recovers(site: MakeSite) -> None:
    """More clients than it can hold: it goes on serving those it has, and takes others when there
    is room."""
    one = site(descriptors=40)
    first = one.wire()
    assert first.ask(stateless(1, "tools/list")).status == 200
    crowd = [one.wire() for _ in range(100)]
    assert first.ask(stateless(2, "tools/list")).status == 200
    for wire in crowd:
        wire.close()

    def takes_another() -> bool:
        try:
            with one.wire() as late:
                return late.ask(stateless(3, "tools/list")).status == 200
        except ConnectionError:  # it may not have seen yet that the others have gone
            return False

    until(takes_another, "another client to be taken")
    assert first.ask(stateless(4, "tools/list")).status == 200


@pytest.mark.endurance(seconds=3)
def test_calls_that_are_given_up_leave_nothing(site: MakeSite) -> None:
    """Five hundred at once, all of whose clients go in the same moment."""
    one = site()

    def wave() -> None:
        wires = [opened(one, call(n, "wait_for_ever")) for n in range(500)]
        for wire in wires:
            wire.close()

    comes_and_goes(one, wave, 6 * MB, times=4)  # as above: 20 MB
