"""What a conversation makes of results: long ones in pages, pictures, links that are followed, and
many tools that are searched for.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Server
from interlock.models.interface import ModelFacts
from interlock.models.scripted import Scripted, call
from interlock.types import ToolResultContent
from interlock_apps.fleet.events import CallDecided, CallEnded, CallProposed
from interlock_apps.fleet.policy import Policy, Rule
from interlock_apps.fleet.questions import Decision
from interlock_apps.host.loop.budget import Budget
from tests.host.library import library
from tests.host.scene import ALLOW, NO, YES, Scene, Sitting, adder, given, last, scene, texts_of

ADD = call("adder__add", a=1, b=2)


def result(one: Scene, index: int = -1) -> ToolResultContent:
    """The result that the model was given last."""
    content = one.model.requests[-1].messages[index].content
    found = content[0] if isinstance(content, list) else content
    assert isinstance(found, ToolResultContent)
    return found


# -- results ---------------------------------------------------------------------------------------


async def test_a_long_result_is_read_on() -> None:
    """In pages, until its end; a page or a result that there is not is said to be none."""
    budget = Budget(page=40)
    answers = [
        call("library__long", size=120),
        *[call("interlock__read_result", result="r1", page=n) for n in (2, 3, 4, True)],
    ]
    answers += [
        call("interlock__read_result", result="r9", page=1),
        call("interlock__read_result", result="r1"),
        "done",
    ]
    async with scene({"library": library()}, *answers, policy=ALLOW, budget=budget) as one:
        session = one.host.session()
        await session.say("read")
        given_texts = [
            texts_of(message)[0]
            for message in session.messages
            if "ToolResult" in str(message.content)[:20]
        ]
        whole = "".join(
            line for shown in given_texts[:3] for line in shown.split("\n") if line.startswith("<")
        )
        assert whole == "".join(f"<{n:06}>" for n in range(15))
        assert given_texts[3] == "r1 has 3 pages."
        assert given_texts[5] == "There is no result 'r9', or it is no longer stored."
        assert "[[" in given_texts[1]


async def test_results_that_were_too_many_are_gone() -> None:
    budget = Budget(page=40, stored_results=200)
    answers = [
        *[call("library__long", size=120)] * 2,
        call("interlock__read_result", result="r1", page=2),
        "done",
    ]
    async with scene({"library": library()}, *answers, policy=ALLOW, budget=budget) as one:
        await one.host.session().say("read")
        assert "There is no result 'r1', or it is no longer stored." in last(one)


async def test_a_picture_that_is_too_large_is_said_in_words() -> None:
    async with scene(
        {"library": library()},
        call("library__picture", size=900),
        "done",
        policy=ALLOW,
        budget=Budget(picture=500),
    ) as one:
        await one.host.session().say("look")
        assert len(result(one).content) == 1
        assert "too large to be shown" in last(one)


@pytest.mark.parametrize("decision", ["allow", "deny", "ask"])
async def test_a_link_in_a_result_is_followed_as_the_policy_allows(decision: Any) -> None:
    """`RES-14`: reading is a call like any other."""
    policy = Policy(
        [Rule(decision=decision, tool="interlock__read_resource", server="library", reason="so")],
        default="allow",
    )
    sitting = Sitting(call=NO)
    answers = [
        call("library__link"),
        call("interlock__read_resource", server="library", uri="book://one"),
        "done",
    ]
    async with scene({"library": library()}, *answers, policy=policy, person=sitting) as one:
        await one.host.session().say("read")
        assert ("Once upon a time." in last(one)) == (decision == "allow")
        assert len(sitting.asked) == (decision == "ask")
        if decision == "allow":
            assert "resource book://one of library" in last(one)
            assert "\u200b" not in last(one)


async def test_what_was_read_may_be_looked_at_first() -> None:
    """A rule that holds results for review holds what a model reads, too."""
    policy = Policy(default="allow", review=[Rule(decision="ask", server="library")])
    sitting = Sitting(result=Decision(allow=False, reason="private"))
    read = call("interlock__read_resource", server="library", uri="book://one")
    async with scene({"library": library()}, read, "done", policy=policy, person=sitting) as one:
        await one.host.session().say("read")
        assert "withheld the result. private" in last(one)
        assert "Once" not in last(one)
        assert sitting.asked[0].warnings


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"server": "library", "uri": "book://none"}, "cannot be read"),
        ({"server": "nobody", "uri": "book://one"}, "There is no server nobody"),
        ({"uri": "book://one"}, "do not fit"),
        ({"server": "library", "uri": 3}, "do not fit"),
    ],
)
async def test_a_resource_that_cannot_be_read(arguments: dict[str, Any], words: str) -> None:
    async with scene(
        {"library": library()}, ("interlock__read_resource", arguments), "done", policy=ALLOW
    ) as one:
        assert (await one.host.session().say("read")).reason == "done"
        assert words in last(one)
        assert result(one).is_error
        assert one.ended()[-1] == "error"


async def test_another_server_put_in_by_the_person_is_not_asked() -> None:
    """What was judged is one server's; the same for another one would be another call."""
    sitting = Sitting(call=Decision(allow=True, arguments={"server": "other", "uri": "book://one"}))
    read = call("interlock__read_resource", server="library", uri="book://one")
    async with scene(
        {"library": library(), "other": library()}, read, "done", person=sitting
    ) as one:
        await one.host.session().say("read")
        assert "cannot be read" in last(one)
        assert "Once" not in last(one)


# -- many tools ------------------------------------------------------------------------------------


def crowd(count: int) -> Server:
    """A server with many tools."""
    server = Server("crowd")

    def add(number: int) -> None:
        async def run(value: int) -> str:
            return f"{number}: {value}"

        server.add_tool(
            run,
            name=f"work_{number}",
            description=f"Work on case number {number}, with a description that takes its room.",
        )

    for number in range(count):
        add(number)
    return server


async def test_many_tools_are_searched_for() -> None:
    """`HST-06`: beyond its share of the context the list gives way to a search; what is found can
    be used; the list stays the same.
    """
    server = crowd(60)
    answers = [
        call("interlock__find_tools", words="case number 17", limit=3),
        call("interlock__use_tool", name="crowd__work_17", arguments={"value": 5}),
        call("interlock__find_tools", words="zzzz qqqq"),
        "done",
    ]
    async with scene(
        {"crowd": server},
        model=Scripted(*answers, facts=ModelFacts(context=10_000)),
        policy=ALLOW,
        discovery=0.05,
    ) as one:
        session = one.host.session()
        await session.say("work")
        own = [
            "interlock__find_tools",
            "interlock__use_tool",
            "interlock__read_result",
            "interlock__read_resource",
        ]
        assert [[tool.name for tool in request.tools] for request in one.model.requests] == [
            own
        ] * 4
        found, used, none = (texts_of(message)[0] for message in session.messages[2:8:2])
        assert "crowd__work_17" in found
        assert found.count('"name"') == 3
        assert "inputSchema" in found
        assert "17: 5" in used
        assert "No tool fits" in none
        assert one.of(CallProposed)[0].name == "crowd__work_17"


async def test_few_tools_are_listed() -> None:
    async with scene({"crowd": crowd(3)}, "x", policy=ALLOW) as one:
        await one.host.session().say("hi")
        assert [tool.name for tool in one.model.requests[0].tools][:3] == [
            "crowd__work_0",
            "crowd__work_1",
            "crowd__work_2",
        ]
        assert "interlock__find_tools" not in given(one.model.requests[0])


async def test_once_searched_for_always_searched_for() -> None:
    """When most tools go the list does not change its kind in mid-conversation; a new conversation
    sees it as it is.
    """
    server = crowd(60)
    async with scene(
        {"crowd": server}, model=Scripted("x", "y", "z", facts=ModelFacts(context=10_000))
    ) as one:
        session = one.host.session()
        await session.say("hi")
        for number in range(1, 60):
            server.remove_tool(f"work_{number}")
        await one.until(lambda: len(one.host.toolbox.items) == 1)
        await session.say("hi")
        first, second = one.model.requests
        assert first.tools == second.tools
        await one.host.session().say("hi")
        assert "crowd__work_0" in given(one.model.requests[2])


async def test_what_is_blocked_is_not_found() -> None:
    """And not offered, and not called by whoever remembers its name."""
    server = crowd(60)
    answers = [
        call("interlock__find_tools", words="case number 17"),
        call("interlock__use_tool", name="crowd__work_17", arguments={"value": 1}),
        "done",
    ]
    async with scene(
        {"crowd": server}, model=Scripted(*answers, facts=ModelFacts(context=10_000)), policy=ALLOW
    ) as one:

        async def other(value: int) -> str:
            """Work on case number 17, case number 17."""
            return "stolen"

        server.add_tool(other, name="work_17", replace=True)
        await one.until(lambda: one.host.toolbox.find("crowd__work_17").blocked)
        session = one.host.session()
        await session.say("work")
        assert "crowd__work_17" not in texts_of(session.messages[2])[0]
        assert "has changed since" in last(one)


async def test_a_stopped_server_is_called_stopped_to_model_and_person() -> None:
    """Its tools are gone from the list; a model that still calls one is told why, not that there is
    no such tool.
    """
    strange = call("adder_2__add", a=1, b=2)
    calls = [call("adder__add", a=1, b=2), strange, call("nowhere__add")]
    async with scene({"adder": adder(), "adder_2": adder()}, calls, "Sorry.", policy=ALLOW) as one:
        await one.host.hub.stop("adder")
        await one.host.hub.stop("adder_2")
        await one.host.session().say("add")
        words = last(one)
        assert "The server adder is stopped, so adder__add cannot be called." in words
        assert "The server adder_2 is stopped" in words
        assert "There is no tool 'nowhere__add'" in words
        proposed = [(event.server, event.tool) for event in one.of(CallProposed)]
        assert proposed == [("adder", "add"), ("adder_2", "add"), ("", "")]
        assert [event.error for event in one.of(CallEnded)][:1] == ["The server adder is stopped."]
        assert [event.by for event in one.of(CallDecided)] == ["stopped", "stopped", "host"]


async def test_a_server_that_stops_while_the_person_is_asked_is_called_stopped() -> None:
    """The question was open; what is answered then is about a server that is gone."""

    async def stops(question: Any) -> Any:
        await one.host.hub.stop("adder")
        return YES

    person = Sitting(call=stops)
    async with scene({"adder": adder()}, call("adder__add", a=1, b=2), "x", person=person) as one:
        await one.host.session().say("add")
        assert "The server adder is stopped." in last(one)
