"""Questions that go straight to an older client, which waits at the other end of its connection."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from interlock import types as t
from interlock.exchange import Caller, Exchange
from interlock.input_required import MOST_ROUNDS, Direct
from interlock.wire.revisions import R4
from tests.retries import ABLE, Retries, answer_of, by_hand, manual, rounds, said


@dataclasses.dataclass
class Receipt:
    """What an author's deed may return."""

    number: int
    lines: tuple[str, ...]


class Person:
    """Somebody at the other end of a handshake connection."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.received = []

    async def __call__(self, request: t.InputRequest) -> t.InputResponse:
        self.received.append(request)
        return t.ElicitResult(action="accept", content={"words": self.answers.pop(0)})


def older(
    body: Any, person: Person, capabilities: t.ClientCapabilities = ABLE
) -> tuple[Retries, Direct]:
    call = Retries(rounds(), body)
    call.caller = Caller(R4, capabilities)
    return call, Direct(call.caller, person)


async def test_an_older_client_is_asked_straight() -> None:
    """The tool waits and runs once."""
    person = Person("a", "b")

    async def body(x: Exchange) -> str:
        return await answer_of(x, "first?") + await answer_of(x, "second?", key="named")

    call, asker = older(body, person)
    assert said(await call.call(asker=asker)) == "ab"
    assert [request.params.message for request in person.received] == ["first?", "second?"]


async def test_a_page_to_visit_gets_an_id_of_its_own_on_the_way() -> None:
    """Which 2025-11-25 demands and the newest revision does not know (`ELI-18`, `ELI-19`)."""
    person = Person("", "", "")

    async def body(x: Exchange) -> str:
        for id in (None, None, "mine"):
            await x.asker.ask(
                t.ElicitRequest(
                    t.ElicitRequestParams(message="?", mode="url", url="x:y", elicitation_id=id)
                )
            )
        return ""

    call, asker = older(body, person)
    await call.call(asker=asker)
    ids = [request.params.elicitation_id for request in person.received]
    assert ids[2] == "mine"
    assert len(set(ids)) == 3
    assert all(ids)


async def test_questions_written_by_hand_reach_an_older_client_too() -> None:
    """They are asked on the tool's behalf, all of a round at once, and it runs again with the
    answers and its state."""
    person = Person("a", "b")
    call, asker = older(manual, person)
    assert said(await call.call(asker=asker)) == "two a b"
    assert [request.params.message for request in person.received] == ["first?", "second?"]


async def test_a_question_by_hand_that_an_older_client_cannot_take_is_never_put() -> None:
    """The call fails closed (`LIF-17`, `ELI-03`)."""
    person = Person("a")
    call, asker = older(manual, person, t.ClientCapabilities())
    result = await call.call(asker=asker)
    assert isinstance(result, t.CallToolResult)
    assert result.is_error
    assert "no elicitation.form" in result.text
    assert person.received == []


async def test_a_tool_that_asks_for_ever_is_stopped() -> None:
    """By hand, in a loop without end (`MRT-23`)."""

    async def body(x: Exchange) -> Any:
        return by_hand("s", "more?")

    person = Person(*["x"] * 100)
    call, asker = older(body, person)
    with pytest.raises(t.McpError, match=str(MOST_ROUNDS)):
        await call.call(asker=asker)
    assert len(person.received) == MOST_ROUNDS


async def test_a_deed_happens_once_for_an_older_client_too() -> None:
    """Also where the tool runs again because it writes its questions by hand, and its result has
    the same shape as ever (`MRT-24`)."""
    charged = []

    async def charge() -> Receipt:
        charged.append(1)
        return Receipt(len(charged), ("a",))

    async def body(x: Exchange) -> Any:
        receipt = await x.asker.once("charge", charge)
        return (
            by_hand("s", "?")
            if x.params.request_state is None
            else msgspec.json.encode(receipt).decode()
        )

    call, asker = older(body, Person("a"))
    assert said(await call.call(asker=asker)) == '{"number":1,"lines":["a"]}'
    assert len(charged) == 1


async def test_what_an_older_client_smuggles_in_is_not_seen() -> None:
    """Neither answers nor a state that it made up (`MRT-06`)."""

    async def body(x: Exchange) -> str:
        return f"{x.params.input_responses} {x.params.request_state}"

    call, asker = older(body, Person())
    params = t.CallToolRequestParams(
        name="x", input_responses={"a": Raw(b"1")}, request_state="two bold"
    )
    assert said(await call.call(asker=asker, params=params)) == "None None"
