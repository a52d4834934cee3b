"""The relay of `run --reload` by itself: tables of what goes in and what must come out, without a
process or a clock.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.cli.reload.relay import MOST_HELD, Relay, State

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
Message = dict[str, Any]


class Bench:
    """A relay with both its ends in hand."""

    def __init__(self) -> None:
        self.relay = Relay()
        self.relay.child_started()
        self.probe = self.child()[0]["id"]

    def client(self) -> list[Message]:
        """What has gone to the client since the last look."""
        out = self.relay.to_client
        self.relay.to_client = []
        return [json.loads(frame) for frame in out]

    def child(self) -> list[Message]:
        """What has gone to the child since the last look."""
        out = self.relay.to_child
        self.relay.to_child = []
        return [json.loads(frame) for frame in out]

    def says(self, **message: Any) -> None:
        """The client says something."""
        self.relay.from_client(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def answers(self, **message: Any) -> None:
        """The child says something."""
        self.relay.from_child(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def up(self) -> Bench:
        """The child answers its first question."""
        self.answers(
            id=self.probe, error={"code": -32601, "message": "whatever it is, it is an answer"}
        )
        return self

    def session(
        self, revision: str = "2025-11-25", initialized: bool = True, **capabilities: Any
    ) -> Bench:
        """A client of the handshake era."""
        self.up()
        self.says(
            id=0,
            method="initialize",
            params={
                "protocolVersion": revision,
                "capabilities": {"roots": {}},
                "clientInfo": {"name": "c", "version": "1"},
            },
        )
        self.answers(id=0, result=greeting(revision, **capabilities))
        if initialized:
            self.says(method="notifications/initialized")
        self.client()
        self.child()
        return self

    def next_child(self, result: Any = None) -> list[Message]:
        """The child that runs is ended and another comes up; returns what the new one is told after
        its first answer.
        """
        assert self.relay.wants_child
        self.relay.child_started()
        (first,) = self.child()
        self.probe = first["id"]
        self.answers(id=self.probe, result=result if result is not None else {})
        return self.child()


def greeting(revision: str = "2025-11-25", **capabilities: Any) -> Message:
    """An answer to initialize."""
    return {
        "protocolVersion": revision,
        "capabilities": capabilities,
        "serverInfo": {"name": "s", "version": "1"},
    }


def test_requests_wait_until_the_first_child_answers() -> None:
    """In their order, with the notifications between them."""
    bench = Bench()
    bench.says(id=1, method="tools/list")
    bench.says(method="notifications/roots/list_changed")
    bench.says(id="two", method="tools/call", params={"name": "x"})
    assert bench.child() == []
    bench.up()
    assert [(m.get("id"), m["method"]) for m in bench.child()] == [
        (1, "tools/list"),
        (None, "notifications/roots/list_changed"),
        ("two", "tools/call"),
    ]
    bench.answers(id="two", result={"a": 1})
    assert bench.client() == [{"jsonrpc": "2.0", "id": "two", "result": {"a": 1}}]


def test_the_probe_is_nobody_elses_business() -> None:
    """The client hears nothing of the question that tells whether a child is up."""
    assert Bench().up().client() == []


def test_a_change_waits_for_calls_and_holds_new_ones() -> None:
    """A reload happens between two calls: what runs may end, what comes goes to the new child."""
    bench = Bench().up()
    bench.says(id=1, method="tools/call")
    bench.child()
    bench.relay.changed()
    assert not bench.relay.wants_child
    bench.says(id=2, method="tools/call")
    assert bench.child() == []
    bench.answers(method="notifications/progress", params={"progressToken": 1, "progress": 1})
    bench.answers(id=1, result={})
    assert [m.get("id") for m in bench.client()] == [None, 1]
    assert [m["id"] for m in bench.next_child()] == [2]


def test_calls_that_take_too_long_are_answered() -> None:
    """Once their grace is over, with words that say what happened."""
    bench = Bench().up()
    bench.says(id=1, method="tools/call")
    bench.relay.changed()
    bench.relay.end_grace_period()
    (answer,) = bench.client()
    assert (answer["id"], answer["error"]["code"]) == (1, -32603)
    assert "restarted with a newer version" in answer["error"]["message"]
    assert bench.relay.wants_child


def test_a_cancelled_call_holds_up_no_reload() -> None:
    """It is never answered, so it is not waited for."""
    bench = Bench().up()
    bench.says(id=1, method="tools/call")
    bench.relay.changed()
    bench.says(method="notifications/cancelled", params={"requestId": 1})
    assert [m["method"] for m in bench.child()] == ["tools/call", "notifications/cancelled"]
    assert bench.relay.wants_child


def test_a_held_call_that_is_cancelled_never_reaches_a_child() -> None:
    """Neither the call nor its end."""
    bench = Bench()
    bench.says(id=1, method="tools/call")
    bench.says(method="notifications/cancelled", params={"requestId": 1})
    assert bench.up().child() == []
    assert bench.client() == []


def test_a_session_goes_on_with_the_new_child() -> None:
    """Everything is said again under ids of our own, the answers end here, and the client hears
    that the lists have changed.
    """
    bench = Bench().session(
        tools={"listChanged": True},
        prompts={"listChanged": False},
        resources={"listChanged": True, "subscribe": True},
    )
    bench.says(id=5, method="logging/setLevel", params={"level": "debug"})
    bench.says(id=6, method="resources/subscribe", params={"uri": "a://b"})
    bench.says(id=7, method="resources/subscribe", params={"uri": "a://c"})
    bench.says(id=8, method="resources/unsubscribe", params={"uri": "a://c"})
    bench.says(id=9, method="resources/subscribe", params={"uri": "a://refused"})
    for id in (5, 6, 7, 8):
        bench.answers(id=id, result={})
    bench.answers(id=9, error={"code": -32002, "message": "no"})
    bench.client()
    bench.child()

    bench.relay.changed()
    assert bench.relay.wants_child
    bench.relay.child_started()
    (hello,) = bench.child()
    assert hello["method"] == "initialize"
    assert hello["params"]["capabilities"] == {"roots": {}}
    bench.answers(id=hello["id"], result=greeting())
    told = bench.child()
    assert [(m["method"], m.get("params")) for m in told] == [
        ("notifications/initialized", None),
        ("logging/setLevel", {"level": "debug"}),
        ("resources/subscribe", {"uri": "a://b"}),
    ]
    for message in told[1:]:
        bench.answers(id=message["id"], result={})
    assert [(m["method"], m.get("params")) for m in bench.client()] == [
        ("notifications/tools/list_changed", None),
        ("notifications/resources/list_changed", None),
        ("notifications/resources/updated", {"uri": "a://b"}),
    ]


def test_a_session_that_is_not_yet_open_hears_of_no_change() -> None:
    """Nothing is said to a client that has not said `initialized`."""
    bench = Bench().session(initialized=False, tools={"listChanged": True})
    bench.relay.changed()
    assert bench.next_child(greeting()) == []
    assert bench.client() == []


def test_a_child_that_does_not_go_on_with_the_session() -> None:
    """Another revision, or a refusal: requests are answered with it, and the next version may do
    better.
    """
    for answer in (
        {"result": greeting("2024-11-05")},
        {"error": {"code": -32602, "message": "no"}},
    ):
        bench = Bench().session()
        bench.relay.changed()
        bench.relay.child_started()
        bench.answers(id=bench.child()[0]["id"], **answer)
        assert bench.relay.state is State.BROKEN
        bench.says(id=1, method="tools/list")
        assert (
            "cannot continue the session, which uses 2025-11-25"
            in bench.client()[0]["error"]["message"]
        )
        bench.relay.changed()
        bench.next_child(greeting())
        assert bench.relay.state is State.UP


def test_subscriptions_outlive_a_child() -> None:
    """They are opened again under their own id, acknowledged once only, and told of what may be
    different (`LSN-05`, `LSN-06`, `STD-16`).
    """
    bench = Bench().up()
    listen = {
        "id": 3,
        "method": "subscriptions/listen",
        "params": {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["a://b"]}},
    }
    honoured = {"toolsListChanged": True, "resourceSubscriptions": ["a://b"]}
    acknowledged = {
        "method": "notifications/subscriptions/acknowledged",
        "params": {"_meta": {SUBSCRIPTION: 3}, "notifications": honoured},
    }
    bench.says(**listen)
    bench.answers(**acknowledged)
    assert [m["method"] for m in bench.client()] == ["notifications/subscriptions/acknowledged"]
    bench.child()
    bench.relay.changed()
    assert bench.relay.wants_child, "an open subscription is no call to wait for"
    assert bench.next_child() == [{"jsonrpc": "2.0", **listen}]
    bench.answers(**acknowledged)
    assert [(m["method"], m["params"]) for m in bench.client()] == [
        ("notifications/tools/list_changed", {"_meta": {SUBSCRIPTION: 3}}),
        ("notifications/resources/updated", {"_meta": {SUBSCRIPTION: 3}, "uri": "a://b"}),
    ]
    bench.says(method="notifications/cancelled", params={"requestId": 3})
    bench.relay.changed()
    assert bench.next_child() == []


def test_a_subscription_that_was_never_acknowledged_still_is() -> None:
    """The first acknowledgement gets through, from whichever child it comes."""
    bench = Bench().up()
    bench.says(id="s", method="subscriptions/listen", params={"notifications": {}})
    bench.relay.changed()
    bench.next_child()
    bench.answers(
        method="notifications/subscriptions/acknowledged",
        params={"_meta": {SUBSCRIPTION: "s"}, "notifications": {}},
    )
    assert [m["method"] for m in bench.client()] == ["notifications/subscriptions/acknowledged"]


def test_a_subscription_that_the_server_ends_is_over() -> None:
    """Its end reaches the client, and no later child opens it again."""
    bench = Bench().up()
    bench.says(id=3, method="subscriptions/listen", params={"notifications": {}})
    bench.answers(id=3, result={})
    assert bench.client()[0]["id"] == 3
    bench.relay.changed()
    assert bench.next_child() == []


def test_a_child_that_dies_leaves_no_call_without_an_answer() -> None:
    """Each gets an error with the cause; the next request brings a new child, and not before."""
    bench = Bench().up()
    bench.says(id=1, method="tools/call")
    bench.says(id=2, method="prompts/get")
    bench.child()
    bench.relay.child_ended("signal 9")
    answers = bench.client()
    assert [m["id"] for m in answers] == [1, 2]
    assert answers[0]["error"]["message"] == "The server exited during this call: signal 9."
    assert not bench.relay.wants_child
    bench.says(id=3, method="tools/list")
    assert [m["id"] for m in bench.next_child()] == [3]


def test_a_child_that_cannot_start_says_so_to_everybody() -> None:
    """To those who wait and to those who come, until a newer file helps."""
    bench = Bench()
    bench.says(id=1, method="initialize")
    bench.says(method="notifications/initialized")
    bench.relay.child_ended("SyntaxError: invalid syntax (exit code 1)")
    bench.says(id=2, method="tools/list")
    answers = bench.client()
    words = (
        "The server cannot start: SyntaxError: invalid syntax (exit code 1). It is started again "
        "when its file is saved."
    )
    assert [(m["id"], m["error"]["message"]) for m in answers] == [(1, words), (2, words)]
    assert not bench.relay.wants_child
    bench.relay.changed()
    bench.says(id=3, method="tools/list")
    assert bench.client() == []
    assert [m["id"] for m in bench.next_child()] == [3]


def test_a_change_while_a_child_starts_starts_another() -> None:
    """Nobody waits for a version that is old already."""
    bench = Bench()
    bench.says(id=1, method="tools/list")
    bench.relay.changed()
    assert [m["id"] for m in bench.next_child()] == [1]


def test_questions_keep_their_ids_apart() -> None:
    """Every child counts from 1; the client never sees an id twice, and its answers find the child
    that asked.
    """
    bench = Bench().session()
    bench.answers(id=1, method="elicitation/create", params={"message": "a"})
    (first,) = bench.client()
    assert (first["method"], first["params"]) == ("elicitation/create", {"message": "a"})
    bench.says(id=first["id"], result={"action": "accept"})
    assert bench.child() == [{"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}}]
    bench.answers(id=2, method="roots/list")
    (second,) = bench.client()

    bench.relay.changed()
    bench.next_child(greeting())
    withdrawn = bench.client()[0]
    assert (withdrawn["method"], withdrawn["params"]["requestId"]) == (
        "notifications/cancelled",
        second["id"],
    )
    bench.says(id=second["id"], error={"code": -1, "message": "late"})
    assert bench.child() == [], "the child that asked is gone"
    bench.answers(id=2, method="roots/list")
    (third,) = bench.client()
    assert third["id"] not in (first["id"], second["id"])
    bench.says(id=third["id"], error={"code": -1, "message": "no", "data": {"a": 1}})
    assert bench.child() == [
        {"jsonrpc": "2.0", "id": 2, "error": {"code": -1, "message": "no", "data": {"a": 1}}}
    ]


def test_a_question_is_answered_while_a_reload_waits() -> None:
    """The call that asked can only end by the answer."""
    bench = Bench().session()
    bench.says(id=1, method="tools/call")
    bench.answers(id=7, method="elicitation/create", params={})
    asked = bench.client()[0]["id"]
    bench.relay.changed()
    bench.child()
    bench.says(id=asked, result={"action": "decline"})
    assert [m["id"] for m in bench.child()] == [7]


def test_a_question_that_is_taken_back() -> None:
    """Under the id that the client knows it by."""
    bench = Bench().session()
    bench.answers(id=1, method="roots/list")
    asked = bench.client()[0]["id"]
    bench.answers(method="notifications/cancelled", params={"requestId": 1, "reason": "over"})
    assert bench.client()[0]["params"] == {"requestId": asked, "reason": "over"}
    bench.says(id=asked, result={})
    assert bench.child() == []


def test_batches_are_taken_apart_where_there_are_batches() -> None:
    """In 2025-03-26, so that each message is held or answered by itself; elsewhere the server has
    the words (`RPC-13`).
    """
    batch = json.dumps(
        [
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        ]
    ).encode()
    bench = Bench().session("2025-03-26")
    bench.relay.from_client(batch)
    assert [m["id"] for m in bench.child()] == [1, 2]
    bench = Bench().session("2025-11-25")
    bench.relay.from_client(batch)
    assert bench.relay.to_child == [batch]


def test_not_everything_can_wait() -> None:
    """Beyond a limit requests are refused at once."""
    bench = Bench()
    for id in range(MOST_HELD + 1):
        bench.says(id=id, method="ping")
    (refused,) = bench.client()
    assert refused["id"] == MOST_HELD
    assert "too many requests are waiting" in refused["error"]["message"]


@pytest.mark.parametrize(
    "frame",
    [
        b"{",
        b"[]",
        b'{"jsonrpc":"2.0","id":null,"method":"x"}',
        b'{"jsonrpc":"2.0","id":5}',
        b"\xff",
    ],
)
def test_nonsense_goes_to_the_server(frame: bytes) -> None:
    """Which knows what to answer; the relay itself is not disturbed."""
    bench = Bench().up()
    bench.relay.from_client(frame)
    bench.says(id=1, method="ping")
    forwarded, ping = bench.relay.to_child
    assert forwarded == frame
    assert json.loads(ping)["id"] == 1


ids = st.one_of(st.integers(0, 3), st.sampled_from(["a", "b"]))
steps = st.one_of(
    st.tuples(
        st.just("request"),
        ids,
        st.sampled_from(
            ["tools/call", "subscriptions/listen", "initialize", "resources/subscribe", "ping"]
        ),
    ),
    st.tuples(st.just("cancel"), ids),
    st.tuples(st.just("answer"), ids, st.sampled_from([greeting(), {}, [], None])),
    st.tuples(st.just("fail"), ids),
    st.tuples(st.just("ask"), ids),
    st.tuples(st.just("reply"), ids),
    st.tuples(st.sampled_from(["initialized", "changed", "end_grace_period", "ended", "probe"])),
)


@given(st.lists(steps, max_size=40))
def test_every_request_gets_one_answer(path: list[tuple[Any, ...]]) -> None:
    """Whatever happens in whatever order, to the bitter end: one answer to each request that was
    not cancelled, and none twice.
    """
    bench = Bench()
    open_ids: dict[Any, int] = {}

    def settle() -> None:
        for message in bench.client():
            if "method" not in message:
                assert message["id"] in open_ids, f"answered but not asked: {message}"
                del open_ids[message["id"]]
        if bench.relay.wants_child:
            bench.relay.child_started()
            bench.probe = json.loads(bench.relay.to_child[0])["id"]
        for message in bench.client():
            assert "method" in message
        at_child.update(m["id"] for m in bench.child() if "method" in m and "id" in m)

    at_child: set[Any] = set()
    for kind, *rest in path:
        match kind:
            case "request" if rest[0] not in open_ids:
                open_ids[rest[0]] = 1
                bench.says(
                    id=rest[0],
                    method=rest[1],
                    params={"uri": "a://b", "protocolVersion": "2025-11-25"},
                )
            case "cancel" if rest[0] in open_ids:
                del open_ids[rest[0]]
                at_child.discard(rest[0])
                bench.says(method="notifications/cancelled", params={"requestId": rest[0]})
            case "answer" if rest[0] in at_child and rest[0] in open_ids:
                at_child.discard(rest[0])
                bench.answers(id=rest[0], result=rest[1])
            case "fail" if rest[0] in at_child and rest[0] in open_ids:
                at_child.discard(rest[0])
                bench.answers(id=rest[0], error={"code": 1, "message": "x"})
            case "ask":
                bench.answers(id=rest[0], method="roots/list")
            case "reply":
                bench.says(id=rest[0], result={})
            case "initialized":
                bench.says(method="notifications/initialized")
            case "changed":
                bench.relay.changed()
            case "end_grace_period":
                bench.relay.end_grace_period()
            case "ended":
                bench.relay.child_ended("gone")
                at_child.clear()
            case "probe":
                bench.answers(id=bench.probe, result=greeting())
        settle()
    bench.relay.child_ended("gone")
    settle()
    bench.relay.broke("for good")
    listens = set(bench.relay._listens)
    settle()
    assert open_ids.keys() <= listens, "only subscriptions may wait for a better version"
