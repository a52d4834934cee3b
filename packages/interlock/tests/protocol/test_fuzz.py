"""Spoiled frames by the hundred thousand through both connections: no exception, no hang, no answer
too many, and no memory kept.
"""

from __future__ import annotations

import gc
import json
import random
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import types as t
from interlock.protocol.client import ClientConnection
from interlock.protocol.events import (
    QuestionReceived,
    RequestCancelled,
    RequestReceived,
    ResponseReceived,
    SessionListen,
)
from interlock.protocol.handshake.server import ServerConnection
from interlock.wire.jsonrpc import Malformed, is_batch
from interlock.wire.revisions import NEWEST, R2, REVISIONS
from tests.protocol.frames import answer, asked, identity, initialize, request, sent, stamped
from tests.protocol.mutations import Mutator

SERVER = identity()
QUESTIONS = (
    t.ListRootsRequest(),
    t.ElicitRequest(
        t.ElicitRequestParams(message="?", mode="form", requested_schema={"type": "object"})
    ),
)


@contextmanager
def no_longer_than(seconds: int) -> Iterator[None]:
    """A hang becomes a failure with a traceback; it is a fence far out, not a measure."""

    def give_up(*_: Any) -> None:
        raise TimeoutError(f"still busy after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Servant:
    """A server connection with a shell that decides at random, and an account of what is open."""

    def __init__(self, revision: str, rng: random.Random) -> None:
        self.connection = ServerConnection(SERVER)
        self.random = rng
        self.open: dict[Any, RequestReceived] = {}
        self.asked: set[Any] = set()
        if revision != NEWEST:
            self.connection.receive(initialize("hello", revision))
            sent(self.connection)

    def take(self, frame: bytes) -> None:
        for event in self.connection.receive(frame):
            if isinstance(event, RequestReceived):
                assert event.id not in self.open
                self.open[event.id] = event
            elif isinstance(event, RequestCancelled):
                self.open.pop(event.id, None)  # a call to subscribe is open in the connection only
            elif isinstance(event, ResponseReceived):
                self.asked.discard(event.id)
        self.check(frame)
        while self.open and (len(self.open) > 20 or self.random.random() < 0.4):
            self.decide(self.random.choice(list(self.open)))

    def check(self, frame: bytes) -> None:
        """What was said without a decision: messages of one line, and results only for what is not
        open.
        """
        for _, out in self.connection.outgoing():
            assert b"\n" not in out
            said = json.loads(out)
            if isinstance(said, list):
                assert said
                assert all("method" not in answer for answer in said), frame
            for message in said if isinstance(said, list) else [said]:
                self.check_message(message, frame)

    def check_message(self, said: dict[str, Any], frame: bytes) -> None:
        """One message of those."""
        assert said["jsonrpc"] == "2.0"
        if "method" not in said:
            assert ("result" in said) != ("error" in said), frame
            one = not is_batch(frame)  # in a batch an id may be answered and then used again
            assert "error" in said or not (
                one and any(self.is_open(said["id"], key) for key in self.open)
            ), frame
        else:
            assert said["method"] == "notifications/cancelled"

    @staticmethod
    def is_open(id: Any, key: Any) -> bool:
        return type(id) is type(key) and id == key

    def decide(self, id: Any) -> None:
        connection = self.connection
        event = self.open[id]
        choice = self.random.randrange(5)
        if choice == 0:
            connection.notify(
                id,
                "notifications/progress",
                t.ProgressNotificationParams(progress_token=1, progress=1),
            )
        elif (
            choice == 1
            and event.caller.revision in REVISIONS[2:4]
            and not isinstance(id, SessionListen)
        ):
            self.asked.add(connection.ask(id, self.random.choice(QUESTIONS)))
        elif choice == 2:
            connection.fail(id, t.INTERNAL_ERROR, "no")
            del self.open[id]
        else:
            connection.respond(id, t.EmptyResult())
            del self.open[id]
        for _, out in connection.outgoing():
            said = json.loads(out)
            if isinstance(said, dict) and said.get("method") == "notifications/cancelled":
                self.asked.discard(said["params"]["requestId"])

    def still_of_sound_mind(self) -> None:
        """After all that: a proper request is served, and nothing is open that we do not know
        of.
        """
        event = asked(self.connection, stamped("sound mind", "tools/list"))
        self.connection.respond(event.id, t.ListToolsResult(tools=[]))
        (reply,) = sent(self.connection)
        assert reply["result"]["tools"] == []
        ended = self.connection.close()
        assert {
            event.id for event in ended if isinstance(event, RequestCancelled)
        } >= self.open.keys()
        assert len([event for event in ended if isinstance(event, ResponseReceived)]) <= len(
            self.asked
        )
        assert self.connection.outgoing() == []


class Customer:
    """A client connection with calls that wait, and an account of them."""

    def __init__(self, revision: str, rng: random.Random) -> None:
        self.connection = ClientConnection(revision)
        self.random = rng
        self.malformed = 0
        self.waiting: set[Any] = set()

    def take(self, frame: bytes) -> None:
        connection = self.connection
        while len(self.waiting) < 8:
            method = self.random.choice(("tools/call", "subscriptions/listen", "initialize"))
            self.waiting.add(connection.request(method, b"{}"))
        try:
            events = connection.receive(frame)
        except Malformed:
            self.malformed += 1
            events = []
        for event in events:
            if isinstance(event, ResponseReceived):
                self.waiting.remove(event.id)
            elif isinstance(event, QuestionReceived):
                if self.random.random() < 0.5:
                    connection.fail(event.id, -1, "no")
                elif self.random.random() < 0.9:
                    connection.respond(event.id, t.ListRootsResult(roots=[]))
        if self.random.random() < 0.05 and self.waiting:
            id = self.random.choice(sorted(self.waiting))
            connection.cancel(id)
            self.waiting.remove(id)
        for out in connection.outgoing():
            assert b"\n" not in out
            assert isinstance(json.loads(out), dict)

    def still_of_sound_mind(self) -> None:
        """After all that: a call finds its answer, and just the calls that wait are left."""
        id = self.connection.request("tools/call", b"{}")
        (event,) = self.connection.receive(answer(id, {"content": []}))
        assert isinstance(event, ResponseReceived)
        assert event.id == id
        assert set(self.connection.close()) == self.waiting


def storm(number: int, seed: int) -> int:
    """So many spoiled frames to a server and to a client of each revision in turn; returns how many
    the clients could not read.
    """
    rng = random.Random(seed)
    mutator = Mutator(seed)
    malformed = 0
    for revision in REVISIONS * (number // 5000):
        servant = Servant(revision, rng)
        customer = Customer(revision, rng)
        for frame in mutator.frames(1000):
            servant.take(frame)
            customer.take(frame)
        servant.still_of_sound_mind()
        customer.still_of_sound_mind()
        malformed += customer.malformed
    return malformed


def resident() -> int:
    """Bytes of memory in use by this process."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def test_five_thousand_spoiled_frames_do_no_harm() -> None:
    """The everyday round; some frames are read and some are not, else the engine would prove
    nothing.
    """
    with no_longer_than(120):
        malformed = storm(5_000, seed=1)
    assert 500 < malformed < 4_000


@pytest.mark.endurance(seconds=6)
@pytest.mark.parametrize("seed", [2, 3, 4, 5])
def test_two_hundred_thousand_spoiled_frames_do_no_harm_and_leave_nothing(seed: int) -> None:
    """Four rounds of fifty thousand, to servers and clients of each revision, in bounded memory."""
    with no_longer_than(300):
        storm(5_000, seed=seed + 100)
        gc.collect()
        before = resident()
        storm(50_000, seed)
        gc.collect()
    assert resident() - before < 24 * 1024 * 1024


def test_the_engine_gives_the_same_frames_for_the_same_seed() -> None:
    """What was found once can be found again; other seeds give other frames."""
    one, same, other = (list(Mutator(seed).frames(300)) for seed in (7, 7, 8))
    assert one == same
    assert one != other
    assert len(set(one)) > 200


def test_every_member_left_out_or_spoiled_one_by_one() -> None:
    """Each message of the protocol with each of its members taken away or replaced by each strange
    value, exhaustively at the top.
    """
    mutator = Mutator(0)
    rng = random.Random(0)
    with no_longer_than(120):
        servants = [Servant(revision, rng) for revision in (R2, NEWEST)]
        customer = Customer(REVISIONS[3], rng)
        for message in mutator.corpus:
            for key in message:
                for value in (..., None, 5, "x", [], {}, [{}], True, 1.5, "\x00"):
                    spoiled = {
                        k: (value if k == key else v)
                        for k, v in message.items()
                        if not (k == key and value is ...)
                    }
                    for one in (*servants, customer):
                        one.take(json.dumps(spoiled).encode())
        for one in (*servants, customer):
            one.still_of_sound_mind()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
methods = st.sampled_from(
    [
        "initialize",
        "ping",
        "tools/call",
        "tools/list",
        "resources/subscribe",
        "server/discover",
        "notifications/cancelled",
    ]
)
members = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | json_values,
        "id": st.integers(0, 3) | json_values,
        "method": methods | json_values,
        "params": json_values,
        "result": json_values,
        "error": json_values,
    },
)


@given(
    frames=st.lists(members, max_size=6),
    revision=st.sampled_from(REVISIONS),
    seed=st.integers(0, 100),
)
def test_any_members_in_any_order_do_no_harm(
    frames: list[dict[str, Any]], revision: str, seed: int
) -> None:
    """What the engine above does not think of, Hypothesis may."""
    servant = Servant(revision, random.Random(seed))
    customer = Customer(revision, random.Random(seed))
    for frame in frames:
        servant.take(json.dumps(frame).encode("utf-8", "surrogatepass"))
        customer.take(json.dumps(frame).encode("utf-8", "surrogatepass"))
    servant.still_of_sound_mind()
    customer.still_of_sound_mind()


@given(frame=st.binary(max_size=200), revision=st.sampled_from(REVISIONS))
def test_any_bytes_do_no_harm(frame: bytes, revision: str) -> None:
    """On their own, and in the place of params."""
    servant = Servant(revision, random.Random(0))
    customer = Customer(revision, random.Random(0))
    for whole in (
        frame,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % frame,
        b'{"jsonrpc":"2.0","id":1,"result":%b}' % frame,
    ):
        servant.take(whole)
        customer.take(whole)
    servant.still_of_sound_mind()
    customer.still_of_sound_mind()


def test_the_quick_way_to_read_a_request_comes_to_the_same_as_the_thorough_one() -> None:
    """Whole requests are read in one pass and the rest piece by piece; which way a frame takes
    makes no difference to what it means.
    """

    def told(connection: ServerConnection, events: list[Any]) -> Any:
        said = []
        for event in events:
            id = getattr(event, "id", None)
            id = id.uri if isinstance(id, SessionListen) else id
            said.append(
                (
                    type(event),
                    id,
                    getattr(event, "method", None),
                    getattr(event, "caller", None),
                    getattr(event, "progress_token", None),
                )
            )
        return said, sent(connection)

    read = 0
    for frame in Mutator(9).frames(1_500):
        # A request with an error beside its method is a request to the one and malformed to the
        # other.
        if b'"error":' in frame:
            continue
        for revision in (R2, NEWEST):
            quick = Servant(revision, random.Random(0)).connection
            thorough = Servant(revision, random.Random(0)).connection
            seen = told(quick, quick.receive(frame))
            assert seen == told(thorough, thorough._receive_other(frame)), frame
            read += any(kind is RequestReceived for kind, *_ in seen[0])
    assert read > 100


def test_a_request_of_fifty_megabytes_is_only_a_large_request() -> None:
    """And one that is cut off is only a bad one."""
    servant = Servant(REVISIONS[3], random.Random(0))
    frame = request(1, "tools/call", {"name": "x", "arguments": {"data": "y" * (50 * 1024 * 1024)}})
    with no_longer_than(120):
        event = asked(servant.connection, frame)
        assert len(event.params.arguments) > 50 * 1024 * 1024
        assert servant.connection.receive(frame[:-10]) == []
    assert sent(servant.connection)[0]["error"]["code"] == t.PARSE_ERROR
