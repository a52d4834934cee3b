"""What is sent as the answer to one POST: JSON or events, kept for whoever loses it, each response
once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import types as t
from interlock.protocol.streams import PostResponse, opening_event, orphaned, place, whole_stream
from interlock.wire import jsonrpc
from interlock.wire.jsonrpc import is_answer
from interlock.wire.sse import COMMENT, Event, EventReader

STEP = jsonrpc.notification("notifications/progress", b'{"progressToken":1,"progress":1}')
DONE = jsonrpc.response(1, b"{}")
DONE_TWO = jsonrpc.response(2, b"{}")
FAILED = jsonrpc.failure(1, -32603, "no")
QUESTION = jsonrpc.request(4711, "roots/list", b"{}")
WITHDRAWN = jsonrpc.notification("notifications/cancelled", b'{"requestId":4711}')


class Log:
    """An event log in a list."""

    def __init__(self) -> None:
        self.kept: list[tuple[int, bytes, bool]] = []

    def __call__(self, number: int, data: bytes, last: bool) -> None:
        self.kept.append((number, data, last))


def events(stream: bytes) -> list[Event]:
    """The events of a stream; comments are none."""
    return EventReader().feed(stream)


def frames(stream: bytes) -> list[bytes]:
    """The messages of a stream."""
    return [event.data for event in events(stream) if event.data]


# -- JSON or events --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "response",
    [DONE, FAILED, jsonrpc.response("x", b'{"method":"no"}'), jsonrpc.failure(None, -32600, "no")],
)
def test_a_response_that_comes_first_is_the_body(response: bytes) -> None:
    """As JSON, and nothing is a stream (`HTL-07`, `HTM-06`)."""
    answer = PostResponse(ids=[1], name="a.1", keep=(log := Log()), primes=True)
    answer.put([response], left=0)
    assert (answer.begun, answer.ended, answer.next_piece(), answer.body(), log.kept) == (
        False,
        True,
        b"",
        response,
        [],
    )


@pytest.mark.parametrize("first", [STEP, QUESTION])
def test_what_comes_before_a_response_makes_a_stream(first: bytes) -> None:
    """Notifications and questions before it, in one turn or in several; the response is the last
    event (`HTL-09`, `HTL-10`, `HTL-13`).
    """
    together = PostResponse(ids=[1])
    apart = PostResponse(ids=[1])
    together.put([first, DONE], left=0)
    apart.put([first], left=1)
    one = apart.next_piece()
    assert (apart.begun, apart.ended, frames(one)) == (True, False, [first])
    apart.put([DONE], left=0)
    assert apart.ended
    assert (
        one + apart.next_piece()
        == together.next_piece()
        == b"data: %b\n\ndata: %b\n\n" % (first, DONE)
    )
    assert together.next_piece() == b""


def test_a_stream_that_begins_when_all_is_said() -> None:
    """What waits is sent then, and whoever comes back for it is told that there is no more
    (`HTL-13`).
    """
    answer = PostResponse(ids=[1, 2], name="a.1", keep=(log := Log()))
    answer.put([DONE], left=1)
    answer.put([DONE_TWO], left=0)
    answer.start_stream()
    assert frames(answer.next_piece()) == [DONE, DONE_TWO]
    assert log.kept[1:] == [(1, DONE, False), (2, DONE_TWO, True)]
    early = PostResponse(ids=[1, 2], name="a.1", keep=(log := Log()))
    early.put([DONE], left=1)
    early.start_stream()
    assert log.kept[1:] == [(1, DONE, False)]


def test_without_a_name_events_have_no_ids() -> None:
    """The newest revision has no resumption, and nothing in its streams says so (`HTM-17`)."""
    answer = PostResponse(ids=[1])
    answer.put([STEP], left=1)
    answer.put([STEP, DONE], left=0)
    assert {event.id for event in events(answer.next_piece())} == {None}


def test_a_client_that_takes_no_events_gets_the_response() -> None:
    """And only that, whatever else was said, and in whichever order (`HTL-07`)."""
    for batches in (
        [[STEP], [STEP, DONE]],
        [[STEP, DONE]],
        [[QUESTION], [DONE, WITHDRAWN]],
        [[DONE]],
    ):
        answer = PostResponse(ids=[1], events=False, name="a.1", keep=(log := Log()), primes=True)
        for number, batch in enumerate(batches, 1):
            answer.put(batch, left=number < len(batches))
        assert (answer.begun, answer.ended, answer.body(), answer.next_piece(), log.kept) == (
            False,
            True,
            DONE,
            b"",
            [],
        )
        answer.start_stream()
        answer.keep_alive()
        assert not answer.detach(5)
        assert (answer.begun, answer.next_piece()) == (False, b"")


# -- batches ---------------------------------------------------------------------------------------


def test_the_responses_of_a_batch_are_an_array() -> None:
    """In the order in which they came, once all are there (`RPC-13`)."""
    answer = PostResponse(ids=[1, 2], batch=True)
    answer.put([DONE_TWO], left=1)
    assert (answer.begun, answer.ended, answer.next_piece()) == (False, False, b"")
    answer.put([DONE], left=0)
    assert json.loads(answer.body()) == [json.loads(DONE_TWO), json.loads(DONE)]


def test_a_batch_of_one_is_an_array_too() -> None:
    """What came as a batch is answered as one (`RPC-13`)."""
    answer = PostResponse(ids=[1], batch=True)
    answer.put([DONE], left=0)
    assert answer.body() == b"[" + DONE + b"]"


def test_a_batch_that_says_more_than_its_responses_is_a_stream() -> None:
    """Responses that waited go first, each in an event of its own."""
    answer = PostResponse(ids=[1, 2], batch=True)
    answer.put([DONE_TWO], left=1)
    answer.put([STEP], left=1)
    answer.put([DONE], left=0)
    assert frames(answer.next_piece()) == [DONE_TWO, STEP, DONE]


def test_a_batch_of_which_a_request_was_cancelled() -> None:
    """What is no response does not take the place of the one that will not come (`CAN-05`)."""
    answer = PostResponse(ids=[1, 2], batch=True)
    answer.put([STEP], left=1)  # request 1 is cancelled already, and 2 makes progress
    assert answer.begun
    answer.put([DONE_TWO], left=0)
    assert frames(answer.next_piece()) == [STEP, DONE_TWO]


def test_a_batch_for_a_client_that_takes_no_events() -> None:
    """Is the responses, and nothing between them."""
    answer = PostResponse(ids=[1, 2], batch=True, events=False)
    answer.put([STEP, DONE], left=1)
    answer.put([STEP, QUESTION, DONE_TWO, WITHDRAWN], left=0)
    assert json.loads(answer.body()) == [json.loads(DONE), json.loads(DONE_TWO)]


def test_nothing_is_answered_where_all_was_cancelled() -> None:
    """Neither a body nor an event (`CAN-05`)."""
    answer = PostResponse(ids=[1])
    answer.close()
    assert (answer.ended, answer.begun, answer.body(), answer.next_piece()) == (
        True,
        False,
        b"",
        b"",
    )


# -- streams that can be come back to --------------------------------------------------------------


def test_priming() -> None:
    """A stream begins with an event that only has an id, and says when to come back where that was
    asked for (`HTL-14`, `HTL-16`, `HTL-20`).
    """
    for retry in (None, 250):
        answer = PostResponse(ids=[1], name="a.1", keep=(log := Log()), primes=True, retry=retry)
        answer.put([STEP], left=1)
        first, second = events(answer.next_piece())
        assert (first, second) == (Event(b"", "a.1.0", "message", retry), Event(STEP, "a.1.1"))
        assert log.kept == [(0, b"[1]", False), (1, STEP, False)]


def test_streams_that_are_not_primed_have_ids_all_the_same() -> None:
    """The revisions before 2025-11-25 (`HTL-31`, `HTL-33`)."""
    answer = PostResponse(ids=["x", 7], name="a.1", keep=(log := Log()))
    answer.put([STEP], left=1)
    answer.put([DONE], left=0)
    assert [event.id for event in events(answer.next_piece())] == ["a.1.1", "a.1.2"]
    assert log.kept == [(0, b'["x",7]', False), (1, STEP, False), (2, DONE, True)]


def test_beginning_without_having_anything_to_say() -> None:
    """A stream that is asked for at once begins with its priming event, or with a comment where it
    has none (`HTM-12`).
    """
    primed = PostResponse(ids=[1], name="a.1", primes=True)
    plain = PostResponse(ids=[1])
    silent = PostResponse(ids=[1])
    primed.start_stream(comment=True)
    plain.start_stream(comment=True)
    silent.start_stream()
    assert [e.id for e in events(primed.next_piece())] == ["a.1.0"]
    assert (plain.next_piece(), silent.next_piece()) == (COMMENT, b"")
    for answer in (primed, plain, silent):
        answer.start_stream(comment=True)
        assert (answer.begun, answer.next_piece()) == (True, b"")


def test_signs_of_life() -> None:
    """A comment where nothing else is under way; none on what is no stream, and none to who has
    gone (`HTM-12`, `HTM-13`).
    """
    answer = PostResponse(ids=[1], name="a.1", primes=True)
    answer.keep_alive()
    assert answer.next_piece() == b""
    answer.put([STEP], left=1)
    answer.keep_alive()
    assert COMMENT not in answer.next_piece()
    answer.keep_alive()
    answer.keep_alive()
    assert answer.next_piece() == COMMENT
    answer.lose()
    answer.keep_alive()
    assert answer.next_piece() == b""


def test_letting_go_of_a_client() -> None:
    """It is told when to come back, and what follows goes to the log alone (`HTL-15`, `HTL-16`)."""
    answer = PostResponse(ids=[1], name="a.1", keep=(log := Log()), primes=True)
    answer.put([STEP], left=1)
    assert answer.detach(400)
    assert not answer.detach(400)
    assert [(e.id, e.retry, e.data) for e in events(answer.next_piece())] == [
        ("a.1.0", None, b""),
        ("a.1.1", None, STEP),
        ("a.1.1", 400, b""),
    ]
    answer.put([STEP, DONE], left=0)
    answer.push(b"data: x\n\n")
    assert (answer.next_piece(), answer.ended) == (b"", True)
    assert log.kept[2:] == [(2, STEP, False), (3, DONE, True)]


def test_letting_go_before_anything_was_said() -> None:
    """The stream begins for that: without an id nobody could come back."""
    answer = PostResponse(ids=[1], name="a.1", keep=Log(), primes=True, retry=50)
    assert answer.detach(400)
    assert events(answer.next_piece()) == [Event(b"", "a.1.0", "message", 400)]


@pytest.mark.parametrize(
    "options",
    [{}, {"name": "a.1"}, {"primes": True}, {"name": "a.1", "primes": True, "events": False}],
)
def test_who_could_not_come_back_is_not_let_go(options: dict[str, Any]) -> None:
    """Older revisions, streams without a name, and clients that take no events (`HTL-12`)."""
    answer = PostResponse(ids=[1], **options)
    assert not answer.detach(400)
    answer.put([STEP, DONE], left=0)
    assert frames(answer.next_piece()) == ([STEP, DONE] if answer.events else [])
    assert answer.body() == (b"" if answer.events else DONE)


def test_a_client_that_has_gone() -> None:
    """Nothing more is written for it, and all is kept (`HTL-21`)."""
    answer = PostResponse(ids=[1], name="a.1", keep=(log := Log()), primes=True)
    answer.put([STEP], left=1)
    answer.lose()
    assert (answer.next_piece(), answer.waiting) == (b"", 0)
    answer.put([STEP], left=1)
    answer.put([DONE], left=0)
    assert answer.next_piece() == b""
    assert [number for number, _, _ in log.kept] == [0, 1, 2, 3]
    assert log.kept[-1] == (3, DONE, True)


def test_nothing_gathers_for_a_client_that_has_gone_and_cannot_come_back() -> None:
    """Where there are no sessions its call goes on all the same, and would fill the memory with
    what nobody reads (`HTL-21`).
    """
    answer = PostResponse(ids=[1])
    answer.put([STEP], left=1)
    answer.lose()
    answer.put([STEP, DONE], left=0)
    assert (answer.waiting, answer.next_piece(), answer.ended) == (0, b"", True)


def test_the_end_of_a_stream_that_was_not_answered() -> None:
    """The log hears of it, so that nobody waits for more."""
    answer = PostResponse(ids=[1, 2], name="a.1", keep=(log := Log()))
    answer.put([STEP], left=2)
    answer.put([DONE], left=1)
    answer.close()
    assert answer.ended
    assert log.kept[-1] == (3, b"", True)


def test_events_that_are_encoded_already() -> None:
    """Are written as they are, unless nobody is there."""
    answer = PostResponse()
    answer.push(b"data: 1\n\n")
    answer.push(b"data: 2\n\n")
    assert answer.waiting == 18
    assert answer.next_piece() == b"data: 1\n\ndata: 2\n\n"
    answer.lose()
    answer.push(b"data: 3\n\n")
    assert answer.next_piece() == b""


# -- what holds whatever happens -------------------------------------------------------------------

Act = tuple[str, int]
acts = st.lists(
    st.tuples(
        st.sampled_from(
            ["step", "ask", "respond", "cancel", "begin", "keep", "detach", "lose", "take", "end"]
        ),
        st.integers(0, 3),
    ),
    max_size=14,
)


def play(
    answer: PostResponse, ids: list[int], script: list[Act]
) -> tuple[list[bytes], list[bytes], bytes]:
    """Act it out as the server's shell would; returns the frames that were put, those of the
    responses, and the bytes that were taken.
    """
    left = list(ids)
    put = []
    taken = b""
    for act, which in script:
        if answer.ended:
            break
        match act:
            case "step" | "ask" if left:
                put.append(STEP if act == "step" else QUESTION)
                answer.put(put[-1:], left=len(left))
            case "respond" if left:
                id = left.pop(which % len(left))
                batch = (
                    ([STEP] if which == 0 else [])
                    + [jsonrpc.response(id, b"{}")]
                    + ([WITHDRAWN] if which == 1 else [])
                )
                put += batch
                answer.put(batch, left=len(left))
            case "cancel" if left:
                left.pop(which % len(left))
                if not left:
                    answer.close()
            case "begin":
                answer.start_stream(comment=which == 0)
            case "keep":
                answer.keep_alive()
            case "detach":
                answer.detach(None if which == 0 else which)
            case "lose" if which == 3:
                answer.lose()
            case "take":
                taken += answer.next_piece()
            case "end" if which == 3:
                answer.close()
    return put, [frame for frame in put if is_answer(frame)], taken + answer.next_piece()


@given(
    script=acts,
    count=st.integers(1, 3),
    named=st.booleans(),
    primes=st.booleans(),
    events_=st.booleans(),
)
def test_each_response_once_and_the_log_is_what_was_sent(
    script: list[Act], count: int, named: bool, primes: bool, events_: bool
) -> None:
    """A response is never sent twice, never both as JSON and as an event; numbers have no gaps;
    what is logged is what is sent, and only a client that has gone has less of it, never more and
    never in another order (`HTL-30`, `HTL-32`).
    """
    ids = list(range(1, count + 1))
    log = Log()
    answer = PostResponse(
        ids=ids,
        batch=count > 1,
        name="a.1" if named else None,
        keep=log if named else None,
        primes=primes,
        events=events_,
    )
    put, responses, taken = play(answer, ids, script)
    sent = frames(taken)
    if answer.begun:
        assert events_
        assert answer.body() in (b"", b"[]")
        assert sent == put[: len(sent)]
        assert answer.detached or sent == put
    else:
        assert sent == []
        body = answer.body()
        whole = json.loads(body) if body else []
        if answer.ended:
            assert (whole if isinstance(whole, list) else [whole]) == [
                json.loads(response) for response in responses
            ]
    if not named or not answer.begun:
        assert log.kept == []
        return
    numbers = [number for number, _, _ in log.kept]
    assert numbers == list(range(len(numbers)))
    assert [data for _, data, _ in log.kept[1:] if data] == put  # the number 0 is the stream's own
    assert [last for _, _, last in log.kept[:-1]] == [False] * (len(numbers) - 1)
    assert log.kept[-1][2] == answer.ended
    kept = {f"a.1.{number}": data for number, data, _ in log.kept}
    assert all(
        event.id is not None and event.data in (b"", kept[event.id]) for event in events(taken)
    )


# -- names and places ------------------------------------------------------------------------------


@given(
    name=st.text(st.characters(codec="ascii", exclude_characters="\r\n\0"), max_size=20),
    number=st.integers(0, 10**15 - 1),
)
def test_places_come_back(name: str, number: int) -> None:
    """An event id says which stream it is of, and where in it (`HTL-33`)."""
    assert place(f"{name}.{number}") == (name, number)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a",
        "7",
        "a.",
        "a.-1",
        "a.x",
        "a.1x",
        "a.²",
        "a.١",
        "a. 1",
        "a.+1",
        "a." + "9" * 16,
        "changes.",
    ],
)
def test_what_is_no_place(text: str) -> None:
    """Whatever a client sends is either a place or none (`HTL-36`)."""
    assert place(text) is None


@given(st.text(max_size=30))
def test_any_text_is_a_place_or_none(text: str) -> None:
    """And never an error."""
    where = place(text)
    assert where is None or text.rpartition(".")[0] == where[0]


def test_the_responses_of_a_stream_whose_worker_is_gone() -> None:
    """One for each request, in words that say that the outcome is not known; none where the record
    cannot be read (`X-08`).
    """
    found: list[Any] = [json.loads(frame) for frame in orphaned(b'[1,"x"]')]
    assert [response["id"] for response in found] == [1, "x"]
    assert {response["error"]["code"] for response in found} == {t.INTERNAL_ERROR}
    assert all("not known" in response["error"]["message"] for response in found)
    assert [orphaned(bad) for bad in (b"", b"{}", b"[1.5]", b"[null]", b"\xff")] == [[]] * 5


def test_what_was_answered_before_its_worker_went_gets_no_other_response() -> None:
    """Of a batch only those requests are answered that were not; a notification or a question with
    such an id answers nothing.
    """
    later = [
        b"",
        jsonrpc.response(1, b"{}"),
        jsonrpc.request("x", "ping", b"{}"),
        jsonrpc.failure("y", -1, "no"),
    ]
    assert [json.loads(frame)["id"] for frame in orphaned(b'[1,"1","x","y"]', later)] == ["1", "x"]


MADE: list[tuple[Callable[[], bytes], bool]] = [
    (lambda: DONE, True),
    (lambda: FAILED, True),
    (lambda: jsonrpc.response("method", b"{}"), True),
    (lambda: jsonrpc.response('","method":"x', b"{}"), True),
    (lambda: jsonrpc.stamped_response(-5, b'"resultType":"complete"', b'{"method":1}'), True),
    (lambda: jsonrpc.failure(None, -32700, '"method":'), True),
    (lambda: STEP, False),
    (lambda: jsonrpc.notification("error", b"{}"), False),
    (lambda: QUESTION, False),
    (lambda: jsonrpc.request("x", "result", b'{"result":1}'), False),
]


@pytest.mark.parametrize("make, expected", MADE)
def test_responses_are_told_from_the_rest(make: Callable[[], bytes], expected: bool) -> None:
    """Among the frames that this house makes, without reading them."""
    assert is_answer(make()) is expected


@given(
    id=st.integers() | st.text(st.characters(codec="utf-8")),
    method=st.text(st.characters(codec="utf-8")),
    body=st.sampled_from([b"{}", b'{"method":"x","result":{},"error":1}']),
)
def test_responses_are_told_from_the_rest_whatever_they_say(
    id: int | str, method: str, body: bytes
) -> None:
    """Ids and methods may be anything."""
    assert is_answer(jsonrpc.response(id, body))
    assert is_answer(jsonrpc.failure(id, 1, method, method))
    assert not is_answer(jsonrpc.request(id, method, body))
    assert not is_answer(jsonrpc.notification(method, body))


@given(
    st.one_of(st.none(), st.sampled_from(["a.1", "0f.ff"])),
    st.sampled_from([DONE, FAILED, b'{"jsonrpc":"2.0",\r\n"id":1,\n"result":{}}']),
    st.booleans(),
    st.one_of(st.none(), st.integers(0, 100_000)),
)
def test_a_whole_stream_is_as_one_that_was_written_piece_by_piece(
    name: str | None, frame: bytes, primes: bool, retry: int | None
) -> None:
    """The same bytes, and the same events for the log, as with a response that grows."""
    log = Log()
    response = PostResponse(ids=(1,), name=name, keep=log, primes=primes, retry=retry)
    response.start_stream()
    response.put([frame], left=0)
    assert whole_stream(name, frame, primes=primes, retry=retry) == response.next_piece()
    if name is not None:
        assert log.kept == [(0, opening_event((1,)), False), (1, frame, True)]
