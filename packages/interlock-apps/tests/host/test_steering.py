"""Messages that the person writes while a turn runs: when the model gets them, and what becomes of
them when the turn is stopped.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import ProtocolError
from interlock.models.scripted import call
from interlock.types import CreateMessageRequestParams, ToolResultContent
from interlock_apps.fleet.events import (
    Attached,
    MessageQueued,
    MessageUnqueued,
    ModelAsked,
    ModelSaid,
    PersonSaid,
    ResultsGiven,
    TurnEnded,
)
from interlock_apps.fleet.log import SqliteLog
from interlock_apps.host.loop import tokens
from interlock_apps.host.loop.context_window import ContextWindow, blocks
from interlock_apps.host.loop.turn import AskModel, CallTools, PublishEvent, turn
from interlock_apps.host.replay import Replay
from interlock_apps.host.session import Session
from tests.host.library import library
from tests.host.loop.test_trimming import person, step, text_of
from tests.host.loop.test_turn import result, said, talk, use, whole
from tests.host.scene import ALLOW, Scene, adder, scene, texts_of, turns

ADD = call("adder__add", a=1, b=2)


class Gate:
    """An answer of a model that waits until the test opens it."""

    def __init__(self, answer: Any) -> None:
        self.reached = asyncio.Event()
        self.open = asyncio.Event()
        self._answer = answer

    async def __call__(self, request: CreateMessageRequestParams) -> Any:
        self.reached.set()
        await self.open.wait()
        return self._answer


def asked(one: Scene, number: int) -> list[str]:
    """The texts of the messages of a request, from 1."""
    messages = one.model.requests[number - 1].messages
    return [text for message in messages for text in texts_of(message)]


def persons(session: Session) -> list[str]:
    """What the person wrote, as the conversation has it."""
    return [
        texts_of(message)[-1]
        for message in session.messages
        if message.role == "user"
        and not any(isinstance(block, ToolResultContent) for block in blocks(message))
    ]


async def test_the_next_step_of_the_turn_gets_it() -> None:
    """After the results of the step that runs: the same turn goes on with both."""
    gate = Gate(["I add.", ADD])
    async with scene({"adder": adder()}, gate, "It is 3, and brief.", policy=ALLOW) as one:
        session = one.host.session()
        turn = asyncio.ensure_future(session.say("How much is it?"))
        await gate.reached.wait()
        queued = await session.steer("Be brief.")
        assert session.queued == (queued,)
        gate.open.set()
        assert (await turn).reason == "done"
        assert (session.queued, len(one.of(TurnEnded))) == ((), 1)
        assert [text.partition("\n")[0] for text in asked(one, 2)][-1] == "Be brief."
        assert [m.role for m in one.model.requests[1].messages] == [
            "user",
            "assistant",
            "user",
            "user",
        ]
        order = [
            type(e) for e in one.of(MessageQueued, PersonSaid, ModelAsked, ResultsGiven, TurnEnded)
        ]
        assert order == [
            PersonSaid,
            ModelAsked,
            MessageQueued,
            ResultsGiven,
            PersonSaid,
            ModelAsked,
            TurnEnded,
        ]
        assert [event.queued for event in one.of(PersonSaid)] == ["", queued.id]


async def test_an_answer_without_calls_is_followed_by_another() -> None:
    """What is to come at the next step is answered in the same turn, also after the last step."""
    gate = Gate("It is 3.")
    async with scene({}, gate, "Three.") as one:
        session = one.host.session()
        turn = asyncio.ensure_future(session.say("How much is it?"))
        await gate.reached.wait()
        await session.steer("In words.")
        gate.open.set()
        assert (await turn).reason == "done"
        assert persons(session) == ["How much is it?", "In words."]
        assert [len(one.of(kind)) for kind in (ModelSaid, TurnEnded)] == [2, 1]


async def test_the_next_turn_gets_it() -> None:
    """It waits for the whole answer, and begins a turn by itself."""
    gate = Gate(ADD)
    async with scene({"adder": adder()}, gate, "It is 3.", "Four.", policy=ALLOW) as one:
        session = one.host.session()
        turn = asyncio.ensure_future(session.say("How much is it?"))
        await gate.reached.wait()
        await session.steer("And one more?", when="turn")
        gate.open.set()
        assert (await turn).reason == "done"
        await one.until(lambda: len(one.of(TurnEnded)) == 2)
        assert "And one more?" not in asked(one, 2)
        assert asked(one, 3)[-1] == "And one more?"
        assert persons(session) == ["How much is it?", "And one more?"]


async def test_a_stopped_turn_leaves_it_in_the_queue() -> None:
    """Nothing is sent after Stop; it goes with the next message, or when the person says so."""
    gate = Gate("Never.")
    async with scene({}, gate, "Yes.", "Again.") as one:
        session = one.host.session()
        turn = asyncio.ensure_future(session.say("first"))
        await gate.reached.wait()
        await session.steer("second")
        await session.steer("third", when="turn")
        session.cancel()
        assert (await turn).reason == "cancelled"
        await turns()
        assert [each.when for each in session.queued] == ["step", "turn"]
        assert len(one.model.requests) == 1
        assert (await session.say("fourth")).reason == "done"
        assert persons(session) == ["first", "second", "third", "fourth"]
        assert session.queued == ()
        with pytest.raises(ProtocolError, match="No message waits"):
            await session.send_queued()


async def test_it_can_be_edited_and_removed_while_it_waits() -> None:
    gate = Gate("Never.")
    async with scene({"library": library()}, gate, "Yes.") as one:
        session = one.host.session()
        with pytest.raises(ProtocolError, match="No turn is running"):
            await session.steer("too early")
        turn = asyncio.ensure_future(session.say("first"))
        await gate.reached.wait()
        book = Attached(server="library", uri="book://one")
        kept = await session.steer("secnd", attach=[book])
        gone = await session.steer("nonsense")
        changed = session.change_queued(kept.id, text="second", when="turn")
        session.remove_queued(gone.id)
        assert session.queued == (changed,)
        assert [event.id for event in one.of(MessageUnqueued)] == [gone.id]
        for act in (session.remove_queued, session.change_queued):
            with pytest.raises(ProtocolError, match="no longer waits"):
                act(gone.id)
        session.cancel()
        await turn
        assert (await session.send_queued()).reason == "done"
        [said] = [event for event in one.of(PersonSaid) if event.queued]
        assert (said.queued, said.attached) == (kept.id, (book,))
        content = asked(one, 2)
        assert content[-1] == "second"
        assert "resource book://one" in content[-2]


async def test_an_earlier_conversation_still_has_its_queue(tmp_path: Path) -> None:
    """What the model did not get before the host ended waits again when it is resumed."""
    gate = Gate("Never.")
    log = SqliteLog(tmp_path / "log.db")
    async with scene({}, gate, log=log) as one:
        session = one.host.session()
        turn = asyncio.ensure_future(session.say("first"))
        await gate.reached.wait()
        waits = await session.steer("second")
        await session.steer("third")
        session.remove_queued(session.queued[-1].id)
    await asyncio.gather(turn, return_exceptions=True)
    async with scene({}, "Yes.", log=SqliteLog(tmp_path / "log.db")) as one:
        again = await one.host.resume(session.id)
        assert again.queued == (waits,)
        await again.send_queued()
        assert persons(again) == ["first", "second"]
        await one.host.log.flush()
        replay = Replay(await one.host.log.read(session.id))
        assert (replay.queued, replay.messages) == ((), again.messages)


STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1, max_size=8)


@given(STEPS)
def test_each_message_is_given_once_and_in_order(steps: list[tuple[bool, int]]) -> None:
    """Whenever messages come: each step calls a tool or answers, while so many messages come."""
    waiting: list[PersonSaid] = []
    written: list[str] = []
    state = talk("begin")

    def steered() -> list[PersonSaid]:
        taken = list(waiting)
        waiting.clear()
        return taken

    state.steered = steered
    running = turn(state)
    came: Any = None
    left = list(steps)
    try:
        while True:
            step = running.send(came)
            came = None
            if isinstance(step, PublishEvent):
                continue
            calls, messages = left.pop(0) if left else (False, 0)
            for _ in range(messages):
                written.append(f"more {len(written)}")
                waiting.append(PersonSaid(session="s", messages=(talk(written[-1]).messages[0],)))
            if isinstance(step, AskModel):
                came = said("x", use(str(len(left)))) if calls else said("x")
            else:
                assert isinstance(step, CallTools)
                came = [result(each.id) for each in step.uses]
    except StopIteration as end:
        assert end.value.reason == "done"
    texts = [text for message in state.messages for text in texts_of(message)]
    assert [text for text in texts if text.startswith("more")] == written
    assert waiting == []
    assert whole(state.messages)


def test_trimming_keeps_what_was_written_during_the_turn() -> None:
    """Earlier steps of a long turn are left out, the words that steered them are not."""
    messages = [person("the task"), *step(1, 390), person("no deletions")]
    messages += [each for n in range(2, 40) for each in step(n, 390)]
    window = ContextWindow()
    shown, trims = window.shown(messages, 2_500)
    assert "old-steps" in [trim.rule for trim in trims]
    assert "no deletions" in text_of(shown)
    assert window.size == tokens.of_messages(shown)
    assert len(shown) < len(messages)
