"""The timeline of a conversation: its times by a table of events, and that of a real host."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from interlock import CallToolResult, Context, Server
from interlock.models.interface import Usage
from interlock.models.scripted import call
from interlock.types import CreateMessageResult, SamplingMessage, TextContent
from interlock_apps.fleet import events as e
from interlock_apps.fleet.questions import CallQuestion, Decision, Filled
from interlock_apps.host.timeline import TimelineBuilder, TimelineTurn
from tests.host.scene import YES, Sitting, scene

SAID = e.PersonSaid(
    session="s", messages=(SamplingMessage(role="user", content=TextContent("Plan\na  week")),)
)
DONE = CreateMessageResult(role="assistant", content=TextContent("ok"), model="m")
USED = Usage(input=2, output=2)
RESULT = CallToolResult(content=[TextContent("done")])


def asked(step: int) -> e.ModelAsked:
    return e.ModelAsked(session="s", model="m", step=step, messages=1, tools=0, tokens=10)


def said(step: int, input: int, output: int) -> e.ModelSaid:
    used = Usage(input=input, output=output)
    return e.ModelSaid(session="s", model="m", step=step, result=DONE, usage=used)


def built(*events: tuple[float, Any], now: float = 100.0) -> list[TimelineTurn]:
    """The turns of some events at their times."""
    builder = TimelineBuilder()
    for number, (at, event) in enumerate(events, 1):
        builder.add(e.LogEntry(seq=number, at=at, event=event))
    return builder.result(now)


def question(id: str, call: str) -> e.QuestionAsked:
    asked = CallQuestion(id=id, server="shop", session="s", call=call, tool="buy", title="Buy")
    return e.QuestionAsked(session="s", question=asked)


def answered(id: str, allow: bool = True) -> e.QuestionAnswered:
    return e.QuestionAnswered(session="s", question=id, answer=Decision(allow=allow))


def proposed(call: str) -> e.CallProposed:
    return e.CallProposed(session="s", call=call, name="shop__buy", server="shop", tool="buy")


def test_times_of_a_turn() -> None:
    """A call that waits for the person ran for the rest of its time; parallel times count once;
    tokens are added up.
    """
    (turn,) = built(
        (10, SAID),
        (11, asked(1)),
        (
            13,
            e.ModelSaid(
                session="s", model="m", step=1, result=DONE, usage=Usage(input=100, output=7)
            ),
        ),
        (13, proposed("c1")),
        (13, proposed("c2")),
        (13, question("q1", "c1")),
        (18, answered("q1")),
        (20, e.CallEnded(session="s", call="c1", result=RESULT)),
        (21, e.CallEnded(session="s", call="c2", error="It failed.")),
        (21, asked(2)),
        (
            25,
            e.ModelSaid(
                session="s", model="m", step=2, result=DONE, usage=Usage(input=200, output=5)
            ),
        ),
        (25, e.TurnEnded(session="s", reason="done")),
    )
    assert (turn.label, turn.began, turn.ended) == ("Plan a week", 10, 25)
    assert (turn.model, turn.waited, turn.calls) == (6, 5, 3)
    assert (turn.input, turn.output) == (300, 12)
    kinds = [(entry.kind, entry.id, entry.state) for entry in turn.entries]
    assert kinds == [
        ("said", "1", "done"),
        ("model", "1", "done"),
        ("call", "c1", "done"),
        ("call", "c2", "failed"),
        ("question", "q1", "done"),
        ("model", "2", "done"),
    ]
    assert turn.entries[2].waited == [(13, 18)]
    assert turn.entries[4].call == "c1"


def test_what_goes_on_and_what_was_cut_off() -> None:
    """What still goes on has no end; a turn that is stopped ends what it left open, but not its
    tasks, which end later.
    """
    (turn,) = built((1, SAID), (2, asked(1)), now=9)
    assert (turn.ended, turn.entries[-1].state, turn.model) == (None, "running", 7)
    (turn,) = built(
        (1, SAID), (2, proposed("c1")), (3, question("q1", "c1")),
        (5, e.TurnEnded(session="s", reason="cancelled")), now=9,
    )  # fmt: skip
    assert turn.ended == 5
    assert [entry.state for entry in turn.entries] == ["done", "failed", "failed"]
    assert turn.waited == 2
    began = e.TaskBegan(session="s", call="c1", name="n", server="shop", tool="buy", task="t")
    events = [
        (1, SAID), (2, proposed("c1")), (3, began),
        (3, e.CallEnded(session="s", call="c1", result=RESULT)),
        (4, e.TurnEnded(session="s", reason="done")),
    ]  # fmt: skip
    (turn,) = built(*events, now=9)
    assert (turn.ended, turn.entries[-1].state, turn.calls) == (None, "running", 7)
    (turn,) = built(*events, (8, e.TaskEnded(session="s", call="c1", result=RESULT)))
    assert (turn.ended, turn.entries[-1].state, turn.calls) == (8, "done", 6)


EVENTS = st.sampled_from(
    [
        SAID,
        asked(1),
        said(1, 1, 1),
        e.ModelFailed(session="s", model="m", step=1, kind="x", words="no"),
        proposed("c1"),
        proposed("c2"),
        e.CallDecided(session="s", call="c1", allow=False, by="person"),
        e.CallEnded(session="s", call="c1", result=RESULT),
        e.TaskBegan(session="s", call="c2", name="n", server="shop", tool="buy", task="t"),
        e.CallEnded(session="s", call="c2", error="bad"),
        e.TaskEnded(session="s", call="c2", result=RESULT),
        question("q1", "c1"),
        question("q2", "gone"),
        answered("q1"),
        answered("q2", allow=False),
        e.SampleEnded(
            session="s", server="shop", question="q2", model="m", usage=Usage(input=2, output=2)
        ),
        e.ResourceRead(session="s", server="shop", uri="shop://x"),
        e.TurnEnded(session="s", reason="done"),
    ]
)


@given(st.lists(EVENTS, max_size=40))
def test_any_order_of_events(events: list[Any]) -> None:
    """Whatever the log has, even a part of it: no entry ends before it began, and the sums fit."""
    turns = built(*((float(at), event) for at, event in enumerate(events)), now=1000.0)
    for turn in turns:
        for entry in turn.entries:
            assert entry.ended is None or entry.ended >= entry.began
            assert all(until is None or until >= since for since, until in entry.waited)
        length = (1000.0 if turn.ended is None else turn.ended) - turn.began
        assert turn.waited <= length
        assert turn.calls <= length
        assert turn.model <= length


async def test_the_timeline_and_the_messages_of_a_real_call() -> None:
    """A call with a question of its server: the messages are there in order, each belongs to the
    call, and a secret of the configuration is in none of them.
    """
    server = Server("shop")

    @server.tool
    async def buy(thing: str, ctx: Context) -> str:
        """Buy a thing."""
        return f"bought {thing}" if await ctx.confirm(f"Buy {thing}?") else "nothing"

    person = Sitting(call=YES, form=Filled(action="accept", content={"confirm": True}))
    async with scene(
        {"shop": server}, call("shop__buy", thing="bread"), "Done.", person=person
    ) as it:
        session = it.host.session()
        await session.say("Buy bread")
        (turn,) = await it.host.timeline(session.id)
        assert [entry.kind for entry in turn.entries] == [
            "said", "model", "call", "question", "question", "model"
        ]  # fmt: skip
        (made,) = [entry for entry in turn.entries if entry.kind == "call"]
        assert (made.label, made.server, made.state, len(made.waited)) == ("buy", "shop", "done", 2)
        assert turn.ended is not None
        rows = it.host.messages.rows(made.id)
        assert (rows[0]["kind"], rows[0]["method"]) == ("request", "tools/call")
        assert rows[-1]["kind"] == "response"
        shown = it.host.messages.message(made.id, rows[0]["number"])
        assert '"thing": "bread"' in shown["text"]
        assert shown["under"]
        assert it.host.messages.rows("s.0") == []
