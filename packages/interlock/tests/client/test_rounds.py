"""Rounds of questions in the stateless era: what is sent back and when, and what is asked of
whom.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from interlock import (
    Answers,
    AnyResult,
    Caller,
    Client,
    ClientSettings,
    Exchange,
    Handler,
    McpError,
    ProtocolError,
    Unanswerable,
)
from interlock import types as t
from interlock.client.rounds import DEFAULT_MOST_ROUNDS, rounds
from interlock.wire.revisions import INPUT_REQUIRED_METHODS, METHODS, NEWEST, R4, Side, speaks
from tests.client.peers import KEY, SECONDS, Peer, asks, complete, form, text

DONE = t.CallToolResult(content=[t.TextContent("done")])
CALL = t.CallToolRequestParams(name="ask", arguments=msgspec.Raw(b'{"a":1}'))
HOME = {"method": "roots/list"}
MODEL = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}


class Person:
    """An asker that notes what it is asked, and answers as it is told."""

    def __init__(
        self, answer: Callable[[t.InputRequest], Awaitable[t.InputResponse]] | None = None
    ) -> None:
        self.asked: list[tuple[Any, str | None]] = []
        self._answer = answer

    async def ask(self, request: t.InputRequest, key: str | None = None) -> t.InputResponse:
        self.asked.append((request, key))
        if self._answer is not None:
            return await self._answer(request)
        return t.ElicitResult(action="accept", content={"key": key})

    async def once(self, name: str, do: Callable[[], Awaitable[Any]]) -> Any:
        return await do()


def questions(state: str | None = None, *keys: str) -> t.InputRequiredResult:
    requests: dict[str, t.InputRequest] = {
        key: t.ElicitRequest(t.ElicitRequestParams(message=key)) for key in keys
    }
    return t.InputRequiredResult(
        result_type="input_required", input_requests=requests or None, request_state=state
    )


def asking(*results: AnyResult) -> tuple[Handler, list[Exchange]]:
    """A server that gives these results in turn, and the exchanges that it sees."""
    left = list(results)
    seen = []

    async def handle(x: Exchange) -> AnyResult:
        seen.append(x)
        return left.pop(0)

    return handle, seen


def exchange(
    method: str = "tools/call", params: Any = CALL, asker: Any = None, revision: str = NEWEST
) -> Exchange:
    return Exchange(method, params, Caller(revision), asker=asker or Person())


# -- what goes back -------------------------------------------------------------------------------

ROUNDS: dict[str, tuple[list[t.InputRequiredResult], list[tuple[list[str] | None, str | None]]]] = {
    # what the server answers before it is done, and the keys and the state that go back each time
    "no questions": ([], []),
    "one": ([questions("s", "a")], [(["a"], "s")]),
    "several at once": ([questions("s", "a", "b", "c")], [(["a", "b", "c"], "s")]),
    "without a state": ([questions(None, "a")], [(["a"], None)]),
    "a state only": ([questions("wait")], [(None, "wait")]),
    "an empty state": ([questions("")], [(None, "")]),
    "several rounds": (
        [questions("1", "a"), questions("2", "b"), questions("3")],
        [(["a"], "1"), (["b"], "2"), (None, "3")],
    ),
    "a state that is not given again": (
        [questions("1", "a"), questions(None, "b")],
        [(["a"], "1"), (["b"], None)],
    ),
    "the same question again": (
        [questions("1", "a"), questions("2", "a")],
        [(["a"], "1"), (["a"], "2")],
    ),
}


@pytest.mark.parametrize("asked, sent", ROUNDS.values(), ids=ROUNDS)
async def test_what_goes_back(
    asked: list[t.InputRequiredResult], sent: list[tuple[list[str] | None, str | None]]
):
    """The answers of this round under its keys, and its state, or none where none was given
    (`MRT-13`, `MRT-15`, `MRT-18`).
    """
    handler, seen = asking(*asked, DONE)
    assert await rounds()(handler)(exchange()) is DONE
    assert seen[0].params == CALL
    for x, (keys, state) in zip(seen[1:], sent, strict=True):
        answers = {key: t.ElicitResult(action="accept", content={"key": key}) for key in keys or ()}
        responses = x.params.input_responses
        assert (responses is not None) == (keys is not None)
        assert {
            key: msgspec.json.decode(raw, type=t.ElicitResult)
            for key, raw in (responses or {}).items()
        } == answers
        assert x.params.request_state == state
        assert (x.params.name, bytes(x.params.arguments), x.method, x.caller) == (
            "ask",
            b'{"a":1}',
            "tools/call",
            seen[0].caller,
        )


STATES = ["plain", "", " ", "ünï—\U0001f600", '"quoted"\\n\n\t', "\x00", '{"a": 1}', "a" * 10_000]


@pytest.mark.parametrize("state", STATES, ids=range(len(STATES)))
async def test_a_retry_on_the_wire(state: str):
    """A new id, the same method and params, the state to the letter, and plain results (`MRT-14`,
    `MRT-16`, `MRT-18`, `RPC-04`).
    """
    requests = {"who": form(), "where": HOME, "why": MODEL, "ünï": form()}
    answers = Answers(elicit=lambda p: {"value": 1}, sample=lambda p: "42", roots=["/srv"])
    async with (
        Peer({"tools/call": [asks(state, **requests), text()]}) as peer,
        Client(peer.channel, answers=answers) as client,
    ):
        result = await client.call_tool(
            "ask", {"b": [1, None, {"x": "ü"}], "a": 0.5}, meta={"house/n": 1}
        )
        first, second = peer.all("tools/call")
    assert result.text == "done"
    assert first["id"] != second["id"]
    extra = {name: second["params"].pop(name) for name in ("inputResponses", "requestState")}
    assert second["params"] == first["params"]
    accepted = {"action": "accept", "content": {"value": 1}}
    assert extra == {
        "requestState": state,
        "inputResponses": {
            "who": accepted,
            "where": {"roots": [{"uri": "file:///srv", "name": "srv"}]},
            "why": {
                "role": "assistant",
                "content": {"type": "text", "text": "42"},
                "model": "unknown",
                "stopReason": "endTurn",
            },
            "ünï": accepted,
        },
    }


async def test_answers_are_plain():
    """Whatever the one who answers puts around them (`MRT-18`)."""
    answer = t.ElicitResult(
        action="accept", content={"value": 1}, result_type="complete", meta={"house/n": 1}
    )
    async with (
        Peer({"tools/call": [asks("s", a=form()), text()]}) as peer,
        Client(peer.channel, elicit=lambda p: answer) as client,
    ):
        await client.call_tool("ask")
        assert peer.all("tools/call")[1]["params"]["inputResponses"] == {
            "a": {"action": "accept", "content": {"value": 1}}
        }


async def test_nothing_is_sent_that_was_not_given():
    """No state where there was none, no answers where nothing was asked (`MRT-15`)."""
    async with (
        Peer({"tools/call": [asks("s"), asks(a=form()), text()]}) as peer,
        Client(peer.channel, elicit=lambda p: True) as client,
    ):
        await client.call_tool("ask")
        _, second, third = peer.all("tools/call")
    assert "inputResponses" not in second["params"]
    assert "requestState" not in third["params"]


@pytest.mark.parametrize(
    "method, call",
    [
        ("prompts/get", lambda client, asker: client.get_prompt("p", asker=asker)),
        ("resources/read", lambda client, asker: client.read_resource("x:y", asker=asker)),
        ("tools/call", lambda client, asker: client.call_tool("t", asker=asker)),
    ],
    ids=INPUT_REQUIRED_METHODS[1:] + INPUT_REQUIRED_METHODS[:1],
)
async def test_the_three_that_may_ask(method: str, call: Any):
    """And the asker of one call answers in place of the client's own (`MRT-01`)."""
    results = {
        "prompts/get": complete(messages=[]),
        "resources/read": complete(contents=[]),
        "tools/call": text(),
    }
    person = Person()
    async with (
        Peer({method: [asks("s", a=form("Who?")), results[method]]}) as peer,
        Client(peer.channel) as client,
    ):
        await call(client, person)
        second = peer.all(method)[1]
    assert [(request.params.message, key) for request, key in person.asked] == [("Who?", "a")]
    assert second["params"]["inputResponses"] == {
        "a": {"action": "accept", "content": {"key": "a"}}
    }
    assert second["params"]["_meta"][f"{KEY}clientCapabilities"] == {}


OTHERS = [
    m
    for m, row in METHODS.items()
    if row.result is not None and row.sender is not Side.SERVER and m not in INPUT_REQUIRED_METHODS
]


@pytest.mark.parametrize("method", OTHERS)
async def test_requests_that_must_not_be_answered_with_questions(method: str):
    """The server is wrong; nobody is asked (`MRT-01`)."""
    person = Person()
    handler, seen = asking(questions("s", "a"), DONE)
    with pytest.raises(ProtocolError, match=method):
        await rounds()(handler)(exchange(method, METHODS[method].params, person))
    assert (person.asked, len(seen)) == ([], 1)


async def test_questions_in_a_revision_that_has_none():
    """A server of the handshake era asks by itself; its results hold no questions."""
    person = Person()
    handler, _ = asking(questions("s", "a"), DONE)
    with pytest.raises(ProtocolError, match=R4):
        await rounds()(handler)(exchange(asker=person, revision=R4))
    assert person.asked == []
    assert not speaks(R4, "server/discover")


async def test_neither_questions_nor_a_state():
    """(`MRT-02`)"""
    for result in (
        questions(),
        t.InputRequiredResult(result_type="input_required", input_requests={}),
    ):
        handler, _ = asking(result, DONE)
        with pytest.raises(ProtocolError, match="neither inputRequests nor requestState"):
            await rounds()(handler)(exchange())


# -- how often, and all at once -------------------------------------------------------------------


@pytest.mark.parametrize("most", [0, 1, 2, DEFAULT_MOST_ROUNDS])
async def test_so_many_rounds_and_no_more(most: int):
    """As many as allowed lead to the answer; with one more, nobody is asked for nothing (`MRT-23`,
    `SAM-18`).
    """
    asked = [questions(str(n), "a") for n in range(most)]
    handler, _ = asking(*asked, DONE)
    assert await rounds(most)(handler)(exchange()) is DONE

    person = Person()
    handler, seen = asking(*asked, questions("more", "a"), DONE)
    with pytest.raises(ProtocolError, match=f"more than {most} times"):
        await rounds(most)(handler)(exchange(asker=person))
    assert (len(person.asked), len(seen)) == (most, most + 1)


async def test_the_bound_of_a_client():
    """`max_rounds` of the client; there is one where nothing is said."""
    endless = {"tools/call": lambda message: asks("again", a=form())}
    for settings, most in ((ClientSettings(max_rounds=3), 3), (None, DEFAULT_MOST_ROUNDS)):
        async with (
            Peer(endless) as peer,
            Client(peer.channel, elicit=lambda p: True, settings=settings) as client,
        ):
            with pytest.raises(ProtocolError, match=f"more than {most} times"):
                await client.call_tool("ask")
            assert peer.count("tools/call") == most + 1


async def test_questions_are_put_at_the_same_time():
    """Each waits for the others to be asked; the retry waits for all of them (`MRT-12`)."""
    met = asyncio.Barrier(3)

    async def answer(request: t.InputRequest) -> t.InputResponse:
        async with asyncio.timeout(SECONDS):
            await met.wait()
        return t.ElicitResult(action="decline")

    handler, seen = asking(questions("s", "a", "b", "c"), DONE)
    assert await rounds()(handler)(exchange(asker=Person(answer))) is DONE
    assert len(seen) == 2


class Slow:
    """Answers nothing but the question that fails, and notes which answers were given up."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        self.begun: list[str] = []
        self.over: list[str] = []
        self.all_begun = asyncio.Event()

    async def __call__(self, request: t.InputRequest) -> t.InputResponse:
        assert isinstance(request, t.ElicitRequest)
        key = request.params.message
        self.begun.append(key)
        if len(self.begun) == 3:
            self.all_begun.set()
        await self.all_begun.wait()
        if key == "b" and self.error is not None:
            raise self.error
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # whoever is given up may need a moment
            self.over.append(key)
        raise AssertionError("it cannot come so far")


@pytest.mark.parametrize(
    "error",
    [
        McpError(-1, "No."),
        ValueError("oops"),
        Unanswerable("nobody", "roots"),
        ProtocolError("odd"),
    ],
    ids=lambda e: type(e).__name__,
)
async def test_a_question_that_fails(error: Exception):
    """The others are given up before the error is raised, which is the error itself and no group of
    them.
    """
    slow = Slow(error)
    handler, seen = asking(questions("s", "a", "b", "c"), DONE)
    with pytest.raises(type(error)) as caught:
        await rounds()(handler)(exchange(asker=Person(slow)))
    assert caught.value is error
    assert (sorted(slow.over), len(seen)) == (["a", "c"], 1)


async def test_whoever_asks_is_cancelled():
    """All questions are given up, and no retry is sent."""
    slow = Slow(None)
    handler, seen = asking(questions("s", "a", "b", "c"), DONE)
    asked: asyncio.Future[AnyResult] = asyncio.ensure_future(
        rounds()(handler)(exchange(asker=Person(slow)))
    )
    async with asyncio.timeout(SECONDS):
        await slow.all_begun.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert (sorted(slow.over), len(seen)) == (["a", "b", "c"], 1)


async def test_calls_side_by_side_keep_their_own():
    """Answers and states go to the call that they belong to (`MRT-17`)."""

    def answer(message: dict[str, Any]) -> dict[str, Any]:
        params = message["params"]
        name = params["name"]
        if "requestState" not in params:
            return (
                asks(f"state of {name}", **{f"key of {name}": form(name)})
                if name != "quiet"
                else text("quiet")
            )
        assert params["requestState"] == f"state of {name}"
        return text(params["inputResponses"][f"key of {name}"]["content"]["value"])

    async def echo(params: t.ElicitRequestParams) -> dict[str, str]:
        await asyncio.sleep(0)
        return {"value": params.message}

    names = [*map(str, range(20)), "quiet"]
    async with Peer({"tools/call": answer}) as peer, Client(peer.channel, elicit=echo) as client:
        results = await asyncio.gather(*(client.call_tool(name) for name in names))
        ids = [message["id"] for message in peer.all("tools/call")]
        quiet = [
            message["params"]
            for message in peer.all("tools/call")
            if message["params"]["name"] == "quiet"
        ]
    assert [result.text for result in results] == names
    assert len(set(ids)) == len(ids) == 41
    assert [set(params) for params in quiet] == [{"_meta", "name", "arguments"}]


# -- what kind of result it is --------------------------------------------------------------------

KINDS: dict[str, tuple[dict[str, Any], bool]] = {
    # a result, and whether it is one
    "complete": (text(), True),
    "without a type": ({"content": [{"type": "text", "text": "done"}]}, True),
    "null": ({**text(), "resultType": None}, True),
    "a task": ({**text(), "resultType": "task"}, False),
    "something new": ({**text(), "resultType": "partial"}, False),
    "an empty word": ({**text(), "resultType": ""}, False),
    "no word": ({**text(), "resultType": 7}, False),
    "questions without sense": ({"resultType": "input_required", "inputRequests": [1]}, False),
    "a question that nobody knows": (asks(a={"method": "house/open", "params": {}}), False),
    "nothing": ({}, False),
}


@pytest.mark.parametrize("result, good", KINDS.values(), ids=KINDS)
async def test_kinds_of_results(result: dict[str, Any], good: bool):
    """A type that is missing means complete; one that is not known is no answer (`RPC-20`,
    `RPC-21`).
    """
    async with (
        Peer({"tools/call": lambda message: result}) as peer,
        Client(peer.channel, elicit=lambda p: True) as client,
    ):
        if good:
            assert (await client.call_tool("x")).text == "done"
        else:
            with pytest.raises(ProtocolError, match="tools/call"):
                await client.call_tool("x")
        assert peer.count("tools/call") == 1
