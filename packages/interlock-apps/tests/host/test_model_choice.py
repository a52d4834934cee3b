"""The model in mid-conversation, its effort, its thoughts, its price, and its context window."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Self

import pytest

from interlock.models.interface import Delta, ModelAnswer, ModelFacts, Usage
from interlock.models.scripted import Scripted, call
from interlock.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ImageContent,
    TextContent,
)
from interlock_apps.fleet.events import (
    ModelAsked,
    ModelChosen,
    ModelSaid,
    ToolOfferChosen,
    Trimmed,
    TurnEnded,
)
from interlock_apps.fleet.log import SqliteLog
from interlock_apps.host import AttachedFile
from interlock_apps.host.loop.context_window import blocks
from interlock_apps.host.replay import Replay
from interlock_servers.everything.samples import png
from tests.host.scene import ALLOW, adder, given, scene
from tests.host.test_session_results import crowd
from tests.host.test_steering import Gate

ADD = call("adder__add", a=1, b=2)


class Thinker(Scripted):
    """A scripted model with levels of effort, which thinks aloud."""

    effort = ""

    def with_effort(self, effort: str) -> Self:
        """See ThinkingModel."""
        if effort and effort not in self.facts.efforts:
            raise ValueError(f"{self.name} has no effort {effort}")
        made = copy.copy(self)
        made.effort = effort
        return made

    async def stream(
        self, request: CreateMessageRequestParams
    ) -> AsyncGenerator[Delta | ModelAnswer, None]:
        """See Model."""
        for words in ("Let me ", "think."):
            yield Delta("thought", words)
        async for piece in super().stream(request):
            yield piece


def answered(text: str, into: int, out: int) -> ModelAnswer:
    """An answer with its tokens."""
    result = CreateMessageResult(role="assistant", content=TextContent(text), model="m")
    return ModelAnswer(result, Usage(input=into, output=out))


async def test_another_model_goes_on_with_the_conversation(tmp_path: Path) -> None:
    """It gets all of it, with lines for what it cannot see, and fitted to its window; the first one
    has the pictures again. The log knows who answered, and a later host goes on with the same.
    """
    first = Thinker("A red square.", "It was red.", name="first", facts=ModelFacts(images=True))
    small = ModelFacts(images=False, context=5_000, output=500, efforts=("low", "high"))
    second = Thinker("No.", name="second", facts=small)
    log = SqliteLog(tmp_path / "log.db")
    async with scene({}, model=first, others=[second], log=log) as one:
        session = one.host.session()
        await session.say("What is this?", files=[AttachedFile("a.png", png(200))])
        session.choose_model(second, effort="high")
        assert (session.model.name, session.effort) == ("second", "high")
        await session.say("Do you see it?" + " Look." * 4_000)
        [asked] = second.requests
        assert "(A picture of type image/png was left out" in given(asked)
        assert "no-images" in [trim.rule for trim in one.of(Trimmed)]
        assert session.context().window == 5_000
        assert [left.rule for left in session.context().left_out] == ["no-images"]
        session.choose_model(first)
        assert session.effort == ""
        await session.say("And now?")
        shown = [block for message in first.requests[1].messages for block in blocks(message)]
        assert [block for block in shown if isinstance(block, ImageContent)]
        assert [(e.model, e.effort) for e in one.of(ModelChosen)] == [
            ("second", "high"),
            ("first", ""),
        ]
        assert [e.model for e in one.of(ModelSaid)] == ["first", "second", "first"]
        session.choose_model(second, effort="low")
        session.offer_tools("search")
    async with scene({}, model=first, others=[second], log=SqliteLog(tmp_path / "log.db")) as one:
        again = await one.host.resume(session.id)
        assert (again.model.name, again.effort, again.context().offer) == (
            "second",
            "low",
            "search",
        )


async def test_a_running_turn_goes_on_with_the_chosen_model() -> None:
    """From its next step; the step that runs is still of the first one."""
    gate = Gate(ADD)
    second = Thinker("It is 3.", name="second", facts=ModelFacts(efforts=("low",)))
    async with scene({"adder": adder()}, gate, others=[second], policy=ALLOW) as one:
        session = one.host.session()
        turn = asyncio.ensure_future(session.say("How much?"))
        await gate.reached.wait()
        session.choose_model(second)
        gate.open.set()
        assert (await turn).reason == "done"
        assert [e.model for e in one.of(ModelAsked)] == ["scripted", "second"]
        assert [e.model for e in one.of(ModelSaid)] == ["scripted", "second"]


async def test_an_effort_that_a_model_does_not_have() -> None:
    """It is refused, and nothing changes; choosing what is chosen is no event."""
    thinker = Thinker("x", name="thinker", facts=ModelFacts(efforts=("low", "high")))
    async with scene({}, "x", others=[thinker]) as one:
        session = one.host.session()
        with pytest.raises(ValueError, match="has no levels of effort"):
            session.choose_model(effort="high")
        with pytest.raises(ValueError, match="has no effort most"):
            session.choose_model(thinker, effort="most")
        session.choose_model(one.model)
        assert (session.model, one.of(ModelChosen)) == (one.model, [])
        session.choose_model(thinker, effort="high")
        session.choose_model(effort="low")
        assert session.effort == "low"
        assert one.host.session(model="thinker", effort="high").effort == "high"


async def test_thoughts_are_kept_with_the_answer() -> None:
    """So that the page can show them again, folded."""
    async with scene({}, model=Thinker("Four.")) as one:
        session = one.host.session()
        await session.say("2 + 2?")
        assert [e.thought for e in one.of(ModelSaid)] == ["Let me think."]
        replay = Replay(await one.host.log.read(session.id))
        assert [e.thought for e in replay.events if isinstance(e, ModelSaid)] == ["Let me think."]


async def test_the_price_of_a_turn() -> None:
    """That of its answers, each by the model that gave it; none if one of them has none."""
    cheap = ModelFacts(price_in=1.0, price_out=2.0)
    first = Scripted(
        ModelAnswer((await _called()), Usage(input=1_000_000, output=500_000)),
        answered("Three.", 2_000_000, 0),
        answered("Hello.", 0, 1_000_000),
        name="first",
        facts=cheap,
    )
    free = Scripted("Nothing.", name="free")
    async with scene({"adder": adder()}, model=first, others=[free], policy=ALLOW) as one:
        session = one.host.session()
        await session.say("1 + 2?")
        await session.say("Hello")
        session.choose_model(free)
        await session.say("And you?")
        assert [e.price for e in one.of(ModelSaid)] == [2.0, 2.0, 2.0, None]
        assert [e.price for e in one.of(TurnEnded)] == [4.0, 2.0, None]
        spent = await one.host.spending(session.id)
        assert (spent.price, spent.priced, spent.unpriced) == (6.0, 2, 1)
        assert spent.input >= 3_000_000


async def _called() -> CreateMessageResult:
    """An answer that calls the adder."""
    async for piece in Scripted(ADD).stream(CreateMessageRequestParams(messages=[], max_tokens=1)):
        if isinstance(piece, ModelAnswer):
            return piece.result
    raise AssertionError


async def test_what_fills_the_window_and_how_tools_are_offered() -> None:
    """The numbers add up to the request; tools are all there, or found by a search, as chosen."""
    model = Scripted("a", "b", "c", "d", facts=ModelFacts(context=10_000))
    async with scene({"crowd": crowd(60)}, model=model) as one:
        session = one.host.session()
        use = session.context()
        for offer, search in (("auto", True), ("all", False), ("search", True), ("auto", True)):
            session.offer_tools(offer)
            await session.say("hi")
            use = session.context()
            asked = one.of(ModelAsked)[-1]
            assert (use.offer, use.search, asked.search) == (offer, search, search)
            assert asked.own == use.system + use.tools
            assert asked.window == use.window == 10_000
            assert use.all_tools > use.limit == 500
            names = tuple(tool.name for tool in model.requests[-1].tools or ())
            assert use.names == names
            assert ("crowd__work_7" in names) is not search
        assert [e.offer for e in one.of(ToolOfferChosen)] == ["all", "search", "auto"]
        assert use.messages > 0
