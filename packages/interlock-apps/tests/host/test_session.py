"""A conversation: what goes in, what comes out, where it ends, and that it can be ended and taken
up again at every point.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import McpError, Server, Unreachable
from interlock.models.interface import ModelAnswer, ModelFacts, ModelFailure
from interlock.models.scripted import Scripted, call
from interlock.types import CreateMessageResult, TextContent, ToolResultContent
from interlock_apps.fleet.events import (
    Attached,
    CallDecided,
    CallEnded,
    CallProposed,
    Event,
    ModelAsked,
    ModelFailed,
    ModelSaid,
    ModelSays,
    PersonSaid,
    PromptFetched,
    ResourceRead,
    ResultsGiven,
    TurnEnded,
)
from interlock_apps.fleet.questions import Answer
from interlock_apps.host.loop.budget import Budget
from interlock_apps.host.session import Busy
from tests.host.library import library
from tests.host.scene import ALLOW, YES, Sitting, adder, scene, texts_of

ADD = call("adder__add", a=1, b=2)


# -- the turn --------------------------------------------------------------------------------------


async def test_a_turn_as_it_is_told() -> None:
    """`HST-05`: in pieces as they come, then the whole, and the end once."""
    async with scene({"adder": adder()}, ["I add.", ADD], "It is 3.", policy=ALLOW) as one:
        session = one.host.session()
        ended = await session.say("How much is it?")
        order = [
            type(e)
            for e in one.of(
                PersonSaid,
                ModelAsked,
                ModelSaid,
                CallProposed,
                CallDecided,
                CallEnded,
                ResultsGiven,
                TurnEnded,
            )
        ]
        assert order == [
            PersonSaid,
            ModelAsked,
            ModelSaid,
            CallProposed,
            CallDecided,
            CallEnded,
            ResultsGiven,
            ModelAsked,
            ModelSaid,
            TurnEnded,
        ]
        assert (
            "".join(event.text for event in one.of(ModelSays) if event.kind == "text")
            == "I add.It is 3."
        )
        assert [event.text for event in one.of(ModelSays) if event.kind == "call"] == ["adder__add"]
        assert one.of(TurnEnded) == [ended]
        assert (ended.reason, session.title, session.running) == ("done", "How much is it?", False)
        assert all(
            event.session == session.id
            for event in one.of(PersonSaid, ModelAsked, ModelSaid, CallEnded, TurnEnded)
        )


async def test_one_turn_at_a_time() -> None:
    """And what is refused then is not said, and no resource is read for it; another conversation
    may go on.
    """
    gate = asyncio.Event()
    began = asyncio.Event()

    async def pause(number: int) -> None:
        began.set()
        await gate.wait()

    model = Scripted("one", "two", "three", before=pause)
    async with scene({"library": library()}, model=model) as one:
        session = one.host.session()
        turn = asyncio.ensure_future(session.say("first"))
        await began.wait()
        assert session.running
        attach = [Attached(server="library", uri="book://one")]
        for refused in (
            session.say("second", attach=attach),
            session.prompt("library", "tell", {"name": "x"}),
        ):
            with pytest.raises(Busy):
                await refused
        assert not one.of(ResourceRead, PromptFetched)
        assert len(one.of(PersonSaid)) == 1
        other = asyncio.ensure_future(one.host.session().say("other"))
        gate.set()
        assert (await turn).reason == (await other).reason == "done"
        assert not session.running


@pytest.mark.parametrize("piece", [0, 1, 2])
async def test_cancelled_while_the_model_speaks(piece: int) -> None:
    """`HST-07`: at any piece; the model's request is closed, what it had begun to say is not kept,
    and the next turn works.
    """
    reached = asyncio.Event()

    async def pause(number: int) -> None:
        if number == piece and len(model.requests) == 1:
            reached.set()
            await asyncio.Event().wait()

    model = Scripted("one two three", "again", before=pause)
    async with scene({}, model=model) as one:
        session = one.host.session()
        turn = asyncio.ensure_future(session.say("speak"))
        await reached.wait()
        session.cancel()
        assert (await turn).reason == "cancelled"
        assert model.closed == 1
        assert len(one.of(ModelSays)) == piece
        assert not one.of(ModelSaid)
        assert (await session.say("again")).reason == "done"
        session.cancel()  # where nothing runs nothing happens
        assert [event.reason for event in one.of(TurnEnded)] == ["cancelled", "done"]


async def test_cancelled_before_it_has_begun() -> None:
    """In the same moment in which it was said."""
    async with scene({}, "never", "later") as one:
        session = one.host.session()
        turn = asyncio.ensure_future(session.say("speak"))
        await one.until(lambda: one.of(PersonSaid))  # it is said, and the work on it has not begun
        session.cancel()
        assert (await turn).reason == "cancelled"
        assert [event.reason for event in one.of(TurnEnded)] == ["cancelled"]
        assert not one.model.requests
        assert (await session.say("again")).reason == "done"


@pytest.mark.parametrize(
    "moment", [ModelAsked, ModelSays, ModelSaid, CallProposed, CallDecided, CallEnded, ResultsGiven]
)
async def test_cancelled_by_who_hears_something(moment: type[Event]) -> None:
    """In the middle of whatever is told, in the same breath: the turn ends once, says so, and the
    conversation is whole and goes on.
    """
    async with scene({"adder": adder()}, ["I add.", ADD], "It is 3.", "well", policy=ALLOW) as one:
        session = one.host.session()
        stop = one.host.listen(
            lambda noted: session.cancel() if isinstance(noted.event, moment) else None
        )
        ended = await session.say("add")
        stop()
        assert ended.reason in ("cancelled", "done")
        assert one.of(TurnEnded) == [ended]
        assert not session.running
        assert (await session.say("again")).reason == "done"
        uses = [
            b.id
            for m in session.messages
            for b in (m.content if isinstance(m.content, list) else [])
            if hasattr(b, "input")
        ]
        results = [
            b.tool_use_id
            for m in session.messages
            for b in m.content
            if isinstance(b, ToolResultContent)
        ]  # type: ignore[union-attr]  # lists
        assert uses == results


async def test_who_waits_for_a_turn_may_be_cancelled() -> None:
    """Then the turn ends too, and says so before whoever waited goes on."""
    async with scene({}, lambda request: asyncio.Event().wait(), "ok") as one:
        session = one.host.session()
        turn = asyncio.ensure_future(session.say("speak"))
        await one.until(lambda: one.of(ModelAsked))
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert [event.reason for event in one.of(TurnEnded)] == ["cancelled"]
        assert (await session.say("again")).reason == "done"


@pytest.mark.parametrize(
    "failure", [RuntimeError("broken"), ValueError("x"), ModelFailure("gone", "unreachable")]
)
async def test_a_model_that_breaks_in_its_own_way(failure: Exception) -> None:
    """Whatever it raises is an event and the end of the turn; the conversation can go on."""
    async with scene({}, failure, "well") as one:
        session = one.host.session()
        ended = await session.say("hi")
        assert (ended.reason, type(failure).__name__ in ended.words or "gone" in ended.words) == (
            "failed",
            True,
        )
        assert len(one.of(ModelFailed)) == 1
        assert (await session.say("hi")).reason == "done"


class NoAsker:
    """A model of another make: its stream is no generator and has nothing to close, and ends
    without an answer.
    """

    name = "mute"
    facts = ModelFacts()

    def stream(self, request: Any) -> Any:
        return self

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_a_model_that_ends_without_an_answer() -> None:
    async with scene({}, model=NoAsker()) as one:
        ended = await one.host.session().say("hi")
        assert (ended.reason, ended.words) == ("failed", "mute ended without an answer.")


class Careful(NoAsker):
    """A model that has something to put away when it has said all."""

    name = "careful"

    def __init__(self) -> None:
        self.put_away = 0

    async def stream(self, request: Any) -> Any:
        try:
            yield ModelAnswer(
                CreateMessageResult(role="assistant", content=[TextContent(text="hi")], model="m")
            )
        finally:
            self.put_away += 1


async def test_a_stream_is_closed_when_all_was_said() -> None:
    """At once, and not when somebody collects it: its connection is free for the next request."""
    model = Careful()
    async with scene({}, model=model) as one:
        session = one.host.session()
        at: list[int] = []
        one.host.listen(
            lambda noted: at.append(model.put_away) if isinstance(noted.event, ModelSaid) else None
        )
        for _ in range(2):
            assert (await session.say("hi")).reason == "done"
        assert at == [1, 2]


async def test_a_fault_of_the_host_does_not_take_the_conversation_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Something that nobody thought of is the end of the turn, with its reason, and the
    conversation is whole.
    """
    async with scene({"adder": adder()}, ADD, "ok", policy=ALLOW) as one:
        session = one.host.session()
        monkeypatch.setattr(one.host.policy, "judge", lambda *_: 1 / 0)
        assert (await session.say("add")).reason == "failed"
        assert (await session.say("again")).reason == "done"
        assert [type(block).__name__ for block in session.messages[2].content] == [
            "ToolResultContent"
        ]  # type: ignore[union-attr]  # a list


# -- budgets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "budget, reason, called",
    [
        (Budget(steps=2), "steps", 2),
        (Budget(tokens=1), "tokens", 1),
        (Budget(calls=1, steps=1), "steps", 1),
    ],
)
async def test_budgets(budget: Budget, reason: str, called: int) -> None:
    """`SAM-18`: what was begun is whole, so that the next turn can go on from it."""
    server = adder()
    async with scene(
        {"adder": server},
        model=Scripted([ADD, ADD] if budget.calls == 1 else ADD, forever=True),
        policy=ALLOW,
        budget=budget,
    ) as one:
        ended = await one.host.session().say("add for ever")
        assert ended.reason == reason
        assert ended.words
        assert len(server.calls) == called  # type: ignore[attr-defined]  # see `adder`


async def test_a_turn_that_takes_too_long() -> None:
    """Its call is cancelled at the server."""
    server = Server("slow")
    ends = list[str]()

    @server.tool
    async def wait() -> str:
        """For ever."""
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("ended")
        return ""

    async with scene(
        {"slow": server}, call("slow__wait"), policy=ALLOW, budget=Budget(seconds=0.01)
    ) as one:
        ended = await one.host.session().say("wait")
        assert (ended.reason, ends) == ("seconds", ["ended"])
        assert "longer than 0.01 seconds" in ended.words


async def test_time_in_which_the_person_is_asked_does_not_count() -> None:
    """However long they take: the clock is put far ahead while the question is open, and the turn
    goes on.
    """
    loop = asyncio.get_running_loop()
    real = loop.time
    ahead = 0.0

    async def think(_: Any) -> Answer:
        nonlocal ahead
        ahead += 50_000
        await asyncio.sleep(0)
        return YES

    loop.time = lambda: real() + ahead
    try:
        budget = Budget(seconds=1_000)
        async with scene(
            {"adder": adder()},
            ADD,
            "done",
            person=Sitting(call=think),
            budget=budget,
            patience=None,
        ) as one:
            assert (await one.host.session().say("add")).reason == "done"
    finally:
        loop.time = real  # type: ignore[method-assign]  # as it was


# -- what goes in ----------------------------------------------------------------------------------


async def test_resources_beside_what_was_said() -> None:
    """Fenced, without what nobody sees.

    Images as images; and what was attached is in the record.
    """
    async with scene({"library": library()}, "ok") as one:
        attach = (
            Attached(server="library", uri="book://one"),
            Attached(server="library", uri="book://cover"),
        )
        session = one.host.session()
        await session.say("Read this.", attach=attach)
        text, cover, image, said = one.model.requests[0].messages[0].content
        mark = one.model.requests[0].system_prompt.split("[[")[1].split(" ")[0]
        assert text.text.startswith(
            f"[[{mark} resource book://one of library]]\nResource book://one "
            "(text/plain):\nOnce upon a time."
        )
        assert text.text.endswith(f"[[/{mark}]]")
        assert "an image" in cover.text
        assert (image.mime_type, said.text) == ("image/png", "Read this.")
        assert one.of(PersonSaid)[0].attached == attach


@pytest.mark.parametrize("server, uri", [("library", "book://none"), ("nobody", "book://one")])
async def test_what_cannot_be_read_is_not_said(server: str, uri: str) -> None:
    """Nothing was said then, the model was not asked, and the conversation is as it was."""
    async with scene({"library": library()}, "ok") as one:
        session = one.host.session()
        with pytest.raises((McpError, Unreachable)):
            await session.say("Read this.", attach=[Attached(server=server, uri=uri)])
        with pytest.raises((McpError, Unreachable)):
            await session.prompt(
                "library", "tell", {"name": "x"}, attach=[Attached(server=server, uri=uri)]
            )
        assert not session.messages
        assert not one.of(PersonSaid, ModelAsked)
        assert not session.running
        assert (await session.say("hi")).reason == "done"


async def test_a_prompt_with_every_kind_of_content() -> None:
    """`PRM-07`, `PRM-08`: in its roles and its order."""
    async with scene({"library": library()}, "ok") as one:
        session = one.host.session()
        await session.prompt("library", "tell", {"name": "Ann"})
        messages = one.model.requests[0].messages
        assert [message.role for message in messages] == [
            "user",
            "assistant",
            "user",
            "user",
            "user",
            "user",
        ]
        kinds = [type(message.content[0]).__name__ for message in messages]
        assert kinds == [
            "TextContent",
            "TextContent",
            "ImageContent",
            "AudioContent",
            "TextContent",
            "TextContent",
        ]
        assert texts_of(messages[0]) == ["For Ann."]
        assert "embedded" in texts_of(messages[4])[0]
        assert "book://one" in texts_of(messages[5])[0]
        (said,) = one.of(PersonSaid)
        assert (said.server, said.prompt, said.arguments) == ("library", "tell", {"name": "Ann"})
        assert session.title == "tell: Ann"


async def test_a_prompt_that_says_nothing_or_is_none() -> None:
    async with scene({"library": library()}, "ok") as one:
        session = one.host.session()
        for name in ("silent", "none"):
            with pytest.raises(Exception, match=name):
                await session.prompt("library", name, {})
        assert not one.of(PersonSaid, ModelAsked)
