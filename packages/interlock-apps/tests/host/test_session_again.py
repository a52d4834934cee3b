"""A conversation taken up again: from the log of an earlier run, and replayed through the real
loop.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from interlock import Context, Server
from interlock.models.interface import ModelFailure
from interlock.models.scripted import Scripted, call
from interlock.types import ProtocolError
from interlock_apps.fleet.events import (
    Attached,
    CallDecided,
    CallEnded,
    CallProgress,
    CallProposed,
    Event,
    PersonSaid,
    QuestionAnswered,
    QuestionAsked,
)
from interlock_apps.fleet.log import MemoryLog, SqliteLog
from interlock_apps.fleet.questions import Answer, Decision, Filled
from interlock_apps.host.replay import Replay
from tests.host.library import library
from tests.host.scene import ALLOW, NO, YES, Scene, Sitting, adder, scene

ADD = call("adder__add", a=1, b=2)


# -- taken up again --------------------------------------------------------------------------------


async def test_a_conversation_of_an_earlier_run_goes_on(tmp_path: Path) -> None:
    """From the file: all messages as the model had them, markers that are still valid, and calls
    that have new ids.
    """
    path = tmp_path / "log.db"
    attach = [Attached(server="library", uri="book://one")]
    servers = {"adder": adder(), "library": library()}
    async with scene(servers, ADD, "It is 3.", policy=ALLOW, log=SqliteLog(path)) as one:
        session = one.host.session(title="Sums")
        await session.say("add", attach=attach)
        before = list(session.messages)
        system = one.model.requests[0].system_prompt
        calls = [event.call for event in one.of(CallProposed)]
    async with scene(servers, ADD, "Still 3.", policy=ALLOW, log=SqliteLog(path)) as one:
        again = await one.host.resume(session.id)
        assert (again.messages, again.title) == (before, "Sums")
        assert await one.host.resume(session.id) is again
        await again.say("again")
        assert one.model.requests[0].system_prompt == system
        assert one.model.requests[0].messages[:-1] == before
        assert not {event.call for event in one.of(CallProposed)} & set(calls)


async def test_a_failed_turn_is_tried_again_and_its_words_go_once(tmp_path: Path) -> None:
    """Trying again, or saying the same words, asks the model once more; it never gets them twice,
    also not out of the log.
    """
    path = tmp_path / "log.db"
    busy = ModelFailure("The model has too much to do.", "overloaded")
    async with scene({}, busy, busy, busy, "Hello.", log=SqliteLog(path)) as one:
        session = one.host.session()
        with pytest.raises(ProtocolError, match="nothing to retry"):
            await session.retry()
        for turn in (session.say("hi"), session.retry(), session.say("hi")):
            assert (await turn).reason == "failed"
        assert (await session.retry()).reason == "done"
        assert [len(request.messages) for request in one.model.requests] == [1, 1, 1, 1]
        assert len(one.of(PersonSaid)) == 1
        with pytest.raises(ProtocolError, match="the model has answered"):
            await session.retry()
    async with scene({}, "Still here.", log=SqliteLog(path)) as one:
        again = await one.host.resume(session.id)
        assert again.messages == session.messages
        await again.say("hi")
        assert (
            len(one.model.requests[0].messages) == 3
        )  # a word that was answered may be said again


async def test_a_turn_that_failed_after_a_call_goes_on_from_its_result() -> None:
    """The tool is not called again: its result was there."""
    cut = ModelFailure("Broken off.", "cut")
    server = adder()
    async with scene({"adder": server}, ADD, cut, "It is 3.", policy=ALLOW) as one:
        session = one.host.session()
        assert (await session.say("add")).reason == "failed"
        assert (await session.retry()).reason == "done"
        assert server.calls == [(1, 2)]  # type: ignore[attr-defined]  # what it was called with


async def test_taken_up_twice_at_once_it_is_one(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with scene({}, "x", log=SqliteLog(path)) as one:
        session = one.host.session()
        await session.say("hi")
    async with scene({}, "x", log=SqliteLog(path)) as one:
        first, second = await asyncio.gather(
            one.host.resume(session.id), one.host.resume(session.id)
        )
        assert first is second


def journey(gate: asyncio.Event) -> Server:
    """A server that asks before it books, with one tool that waits."""
    server = Server("travel", instructions="Search first.")

    @server.tool
    async def search(city: str) -> list[dict[str, Any]]:
        """Search flights."""
        return [{"flight": "VY 8301", "to": city}]

    @server.tool
    async def book(flight: str, ctx: Context) -> str:
        """Book a flight."""
        ctx.progress(1, 2, "half")
        said = await ctx.elicit(
            "Whose seat?",
            {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        )
        return f"Booked {flight} for {said['name']}."

    @server.tool
    async def best(ctx: Context) -> str:
        """Ask a model."""
        return str((await ctx.sample("Which?", max_tokens=9)).model)

    @server.tool
    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "waited"

    return server


class Again:
    """A person who says again what was said in a conversation."""

    def __init__(self, events: list[Any]) -> None:
        given_answers = {
            event.question: event.answer for event in events if isinstance(event, QuestionAnswered)
        }
        self._answers = [
            given_answers[event.question.id] for event in events if isinstance(event, QuestionAsked)
        ]

    async def answer(self, question: Any) -> Answer:
        """See Person."""
        return self._answers.pop(0)


def bare(events: list[Event]) -> list[str]:
    """Events without times and ids, and without what is not kept."""
    lines = []
    ids = dict[str, str]()

    def same(text: str) -> str:
        for id in sorted(ids, key=len, reverse=True):
            text = text.replace(id, ids[id])
        return text

    for event in events:
        if not event.session or not event.kept:
            continue
        ids.setdefault(event.session, "S")
        if isinstance(event, QuestionAsked):
            ids.setdefault(f"'{event.question.id}'", "Q")
        if isinstance(event, CallEnded):
            event = replace(event, seconds=0.0)
        shown = same(str(event))
        lines.append(re.sub(r"data-[0-9a-f]{8}", "MARK", shown))
    return lines


@pytest.mark.parametrize("kind", ["journey", "refusals", "cancelled"])
async def test_a_conversation_replayed_through_the_real_loop(kind: str, tmp_path: Path) -> None:
    """The model says again what it said and the servers give again what they gave: then the same
    events come, but for times and ids.
    """
    gate = asyncio.Event()
    second = Scripted("VY", name="second", forever=True)
    search = call("travel__search", city="Bari")
    book = call("travel__book", flight="VY 8301")
    if kind == "journey":
        answers: list[Any] = [
            ["Let me see.", search],
            book,
            call("travel__best"),
            "All is booked.",
            "You are welcome.",
        ]
        sitting = Sitting(
            call=YES,
            form=Filled(action="accept", content={"name": "Ann"}),
            sample=Decision(allow=True, model="second"),
            sampled=YES,
        )
    elif kind == "refusals":
        answers = [
            search,
            book,
            call("travel__none"),
            call("travel__best"),
            ModelFailure("later", "overloaded"),
            "Nothing works.",
        ]
        sitting = Sitting(
            call=[NO, Decision(allow=True, arguments={"flight": "IB 1"}), YES],
            form=Filled(action="decline"),
            sample=NO,
        )
    else:
        answers = [search, [call("travel__search", city="Rome"), call("travel__wait")], "Stopped."]
        sitting = Sitting(call=YES)

    async def play(one: Scene, log: Any = None) -> list[Event]:
        session = one.host.session(title="T")
        turn = asyncio.ensure_future(session.say("Plan it."))
        if kind == "cancelled":
            await one.until(lambda: len(one.of(CallEnded)) == 2 and len(one.of(CallDecided)) == 3)
            session.cancel()
        await turn
        await session.say("Thanks.")
        return [event for event in one.events if event.session == session.id]

    log = SqliteLog(tmp_path / "log.db")
    async with scene(
        {"travel": journey(gate)}, *answers, person=sitting, others=[second], log=log
    ) as one:
        first = await play(one)
        replay = Replay(await flushed(log, one), first[0].session, facts=one.model.facts)
    async with scene(
        {"travel": journey(gate)},
        person=Again(first),
        model=replay.model,
        others=[second],
        log=MemoryLog(),
    ) as one:
        again = await play(one)
        assert bare(again) == bare(first)
        assert not replay.model.left
    for event in first:
        if (
            isinstance(event, CallEnded)
            and event.server
            and event.error != "Cancelled."
            and event.result is not None
        ):
            proposed = next(
                e for e in first if isinstance(e, CallProposed) and e.call == event.call
            )
            edited = next(
                (
                    e.arguments
                    for e in first
                    if isinstance(e, CallDecided) and e.call == event.call and e.arguments
                ),
                None,
            )
            assert (
                replay.results.take(proposed.name, edited or proposed.arguments).result
                == event.result
            )
    assert not [event for event in first if isinstance(event, CallProgress) and event.kept]


async def flushed(log: SqliteLog, one: Scene) -> Any:
    """All that is in the log."""
    await log.flush()
    return await log.read(next(iter(one.host.sessions)), limit=10_000)
