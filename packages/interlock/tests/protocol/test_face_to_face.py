"""Both connections face to face, without a loop, a pipe or a clock: whole conversations, and every
order in which things can happen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from interlock import types as t
from interlock.protocol.client import (
    CAPABILITIES_KEY,
    VERSION_KEY,
    ClientConnection,
    ProgressReceived,
)
from interlock.protocol.events import (
    QuestionReceived,
    RequestCancelled,
    RequestReceived,
    ResponseReceived,
    SessionListen,
)
from interlock.protocol.handshake.server import ServerConnection
from interlock.protocol.opening import Discover, Opened, UnsupportedRevision, opening
from interlock.wire.codec import decode, encode
from interlock.wire.jsonrpc import encode_json
from interlock.wire.revisions import HANDSHAKE_REVISIONS, NEWEST, R4, REVISIONS, Era, era
from tests.protocol.frames import identity

HELLO = t.Implementation(name="guest", version="1")
ABLE = t.ClientCapabilities(roots=t.RootsCapability(), elicitation=t.ElicitationCapability(form={}))
ROOTS = t.ListRootsRequest()


def stamp(revision: str) -> bytes:
    """The `_meta` that a client writes on its requests under a revision."""
    if era(revision) is Era.HANDSHAKE:
        return b"{}"
    return b'{"_meta":%b}' % encode_json({VERSION_KEY: revision, CAPABILITIES_KEY: {}})


def discover(server: ServerConnection, frame: bytes) -> None:
    """What a server does with a frame while a conversation is being opened."""
    for event in server.receive(frame):
        if isinstance(event, RequestReceived) and event.method == "server/discover":
            supported = list(reversed(server.identity.revisions))
            server.respond(
                event.id,
                t.DiscoverResult(
                    supported_versions=supported,
                    capabilities=server.identity.capabilities(event.caller),
                ),
            )


def open_up(client: ClientConnection, server: ServerConnection, allowed: Sequence[str]) -> Opened:
    """Agree on a revision as a shell would, every frame carried by hand."""
    steps = opening(allowed)
    step = next(steps)
    while True:
        client.revision = step.revision
        if isinstance(step, Discover):
            client.request("server/discover", stamp(step.revision))
            kind: Any = t.DiscoverResult
        else:
            hello = t.InitializeRequestParams(
                protocol_version=step.revision, capabilities=ABLE, client_info=HELLO
            )
            client.request("initialize", encode(hello, step.revision))
            kind = t.InitializeResult
        for frame in client.outgoing():
            discover(server, frame)
        (event,) = [event for _, frame in server.outgoing() for event in client.receive(frame)]
        assert isinstance(event, ResponseReceived)
        try:
            step = steps.send(
                decode(event.answer, kind) if isinstance(event.answer, Raw) else event.answer
            )
        except StopIteration as done:
            opened: Opened = done.value
            client.revision = opened.revision
            return opened


SETS = [
    *((revision,) for revision in REVISIONS),
    REVISIONS,
    HANDSHAKE_REVISIONS,
    (REVISIONS[1], REVISIONS[2]),
    (REVISIONS[0], NEWEST),
]


@pytest.mark.parametrize(
    "theirs, ours",
    list(product(SETS, SETS)),
    ids=lambda revisions: "+".join(r[:4] + r[5:7] for r in revisions),
)
def test_two_that_share_a_revision_speak_the_newest_of_them(
    theirs: tuple[str, ...], ours: tuple[str, ...]
) -> None:
    """And two that share none part with a clear word, whatever either of them allows.

    (`LIF-02`, `LIF-03`, `LIF-05`, `ERA-01`, `ERA-05`, `ERA-06`, `ERA-07`, `STA-13`)
    """
    client = ClientConnection()
    server = ServerConnection(identity(revisions=ours))
    shared = sorted(set(theirs) & set(ours))
    newest_of_ours = max((r for r in ours if r in HANDSHAKE_REVISIONS), default=None)
    counter_offer_fits = (
        newest_of_ours in theirs
        or max((r for r in theirs if r in HANDSHAKE_REVISIONS), default=None) in ours
    )
    if shared and (shared[-1] == NEWEST or counter_offer_fits):
        assert open_up(client, server, theirs).revision == shared[-1]
    else:
        with pytest.raises((UnsupportedRevision, t.McpError)) as caught:
            open_up(client, server, theirs)
        assert str(caught.value)


class Table:
    """Two connections, what is on its way between them, and an account of what each side is
    owed.
    """

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self.client = ClientConnection()
        self.server = ServerConnection(identity())
        assert open_up(self.client, self.server, (revision,)).revision == revision
        self.to_server: deque[bytes] = deque()
        self.to_client: deque[bytes] = deque()
        self.running: dict[Any, int] = {}  # at the server: id -> the number that the call brought
        self.questions: set[Any] = set()  # at the server: asked and not yet answered or taken back
        self.to_answer: list[Any] = []  # at the client: asked of it
        self.calls: dict[Any, int] = {}  # at the client: id -> the number that it sent
        self.given_up: set[Any] = set()
        self.answers: dict[Any, list[Any]] = {}
        self.answered_questions: list[Any] = []

    # -- what either side may do, with `n` to choose among what there is

    def call(self, n: int) -> None:
        number = len(self.calls)
        head = stamp(self.revision)[:-1]
        params = (
            head + (b"," if len(head) > 1 else b"") + b'"name":"x","arguments":{"n":%d}}' % number
        )
        self.calls[self.client.request("tools/call", params)] = number

    def give_up(self, n: int) -> None:
        open_calls = [id for id in self.calls if id not in self.answers and id not in self.given_up]
        if open_calls:
            self.given_up.add(open_calls[n % len(open_calls)])
            self.client.cancel(open_calls[n % len(open_calls)], "enough")

    def serve(self, n: int) -> None:
        if self.running:
            id = list(self.running)[n % len(self.running)]
            self.server.respond(
                id, t.CallToolResult(content=[t.TextContent(str(self.running.pop(id)))])
            )

    def refuse(self, n: int) -> None:
        if self.running:
            id = list(self.running)[n % len(self.running)]
            self.server.fail(id, -32603, str(self.running.pop(id)))

    def progress(self, n: int) -> None:
        if self.running:
            id = list(self.running)[n % len(self.running)]
            self.server.notify(
                id,
                "notifications/progress",
                t.ProgressNotificationParams(progress_token=id, progress=self.running[id]),
            )

    def ask(self, n: int) -> None:
        if self.running and era(self.revision) is Era.HANDSHAKE:
            self.questions.add(self.server.ask(list(self.running)[n % len(self.running)], ROOTS))

    def reply(self, n: int) -> None:
        if self.to_answer:
            self.client.respond(
                self.to_answer.pop(n % len(self.to_answer)), t.ListRootsResult(roots=[])
            )

    # -- the way between them

    def carry(self, n: int) -> None:
        self.to_server += self.client.outgoing()
        for _, frame in self.server.outgoing():
            self.to_client.append(frame)
        if n % 2 and self.to_server:
            self.at_server(self.to_server.popleft())
        elif self.to_client:
            self.at_client(self.to_client.popleft())

    def at_server(self, frame: bytes) -> None:
        for event in self.server.receive(frame):
            if isinstance(event, RequestReceived):
                assert not isinstance(event.id, SessionListen)
                self.running[event.id] = int(bytes(event.params.arguments)[5:-1])
            elif isinstance(event, RequestCancelled):
                del self.running[event.id]
            elif isinstance(event, ResponseReceived):
                self.answered_questions.append(event.id)

    def at_client(self, frame: bytes) -> None:
        for event in self.client.receive(frame):
            if isinstance(event, ResponseReceived):
                self.answers.setdefault(event.id, []).append(event.answer)
            elif isinstance(event, ProgressReceived):
                assert event.params.progress == self.calls[event.id]
                assert event.id not in self.answers
            elif isinstance(event, QuestionReceived):
                self.to_answer.append(event.id)
            elif isinstance(event, RequestCancelled):
                self.to_answer.remove(event.id)

    def settle(self) -> None:
        """Everything is carried over, everything that runs is served, until nothing moves any
        more.
        """
        for _ in range(10_000):
            self.carry(1)
            self.carry(0)
            if not (self.to_server or self.to_client or self.client.has_outgoing):
                if not self.running and not self.to_answer:
                    return
                self.reply(0)
                self.serve(0)
        raise AssertionError("it never settles")


acts = st.sampled_from(
    [
        "call",
        "call",
        "give_up",
        "serve",
        "refuse",
        "progress",
        "ask",
        "reply",
        "reply",
        *["carry"] * 6,
    ]
)


@given(
    revision=st.sampled_from(REVISIONS),
    story=st.lists(st.tuples(acts, st.integers(0, 7)), max_size=80),
)
def test_every_call_gets_its_own_answer_once_or_was_given_up(
    revision: str, story: list[tuple[str, int]]
) -> None:
    """In whatever order the two speak and the frames arrive; in the end neither holds anything
    open.

    (`RPC-03`, `RPC-05`, `RPC-06`, `CAN-01`, `CAN-05`, `CAN-07`, `CAN-08`)
    """
    table = Table(revision)
    for act, n in story:
        getattr(table, act)(n)
    table.settle()
    for id, number in table.calls.items():
        answers = table.answers.get(id, [])
        if id in table.given_up:
            assert answers == []
        else:
            (answer,) = answers
            said = (
                answer.message
                if isinstance(answer, t.McpError)
                else decode(answer, t.CallToolResult).text
            )
            assert said == str(number)
    assert len(set(table.answered_questions)) == len(table.answered_questions)
    assert set(table.answered_questions) <= table.questions
    assert table.client.close() == []
    assert table.server.close() == []


def test_a_cancel_and_an_answer_that_pass_each_other_on_the_way_harm_nobody() -> None:
    """The race of the specification, both ways (`CAN-06`, `CAN-07`, `CAN-08`)."""
    table = Table(NEWEST)
    table.call(0)
    table.carry(1)
    table.serve(0)
    table.give_up(0)
    table.settle()
    assert table.answers == {}
    assert table.server.close() == []


def test_a_question_and_the_end_of_its_call_that_pass_each_other_harm_nobody() -> None:
    """The server takes the question back; the client's answer, already on its way, finds nobody
    (`CAN-08`).
    """
    table = Table(R4)
    table.call(0)
    table.carry(1)
    table.ask(0)
    table.carry(0)
    assert len(table.to_answer) == 1
    table.reply(0)
    table.serve(0)
    table.settle()
    assert table.answered_questions == []
    assert len(table.answers) == 1
    assert table.client.outgoing() == []
