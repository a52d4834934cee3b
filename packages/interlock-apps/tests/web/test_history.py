"""The history of a long conversation for the page: some turns at a time, results without bodies."""

from __future__ import annotations

from typing import Any

from interlock import CallToolResult
from interlock.types import (
    CreateMessageResult,
    ImageContent,
    SamplingMessage,
    TextContent,
    ToolResultContent,
)
from interlock_apps.fleet.events import (
    AnyEvent,
    CallEnded,
    CallProposed,
    ModelAsked,
    ModelSaid,
    PersonSaid,
    ResultsGiven,
    SessionBegan,
    TaskEnded,
    TurnEnded,
)
from interlock_apps.host.pages.site import HostSite
from tests.web.asking import ORIGIN, Browser, host_of

LARGE = "word " * 20_000
TURNS = 75


def turn(number: int) -> list[AnyEvent]:
    """One turn: a message, a call with a large result and a picture, an answer."""
    call = f"s.{number}"
    result = CallToolResult(
        content=[TextContent(LARGE), ImageContent(data="AAAA" * 9_000, mime_type="image/png")],
        structured_content={"rows": [LARGE]},
    )
    given = ToolResultContent(tool_use_id=call, content=[TextContent(LARGE)])
    said = SamplingMessage(role="user", content=TextContent(f"Question {number}"))
    answer = CreateMessageResult(role="assistant", content=TextContent(f"A {number}"), model="m")
    return [
        PersonSaid(session="s", messages=(said,)),
        ModelAsked(session="s", model="m", step=1, messages=1, tools=1, tokens=1),
        CallProposed(session="s", call=call, name="a__b", server="a", tool="b"),
        CallEnded(session="s", call=call, server="a", tool="b", result=result),
        ResultsGiven(session="s", results=(given,)),
        ModelSaid(session="s", model="m", step=2, result=answer),
        TurnEnded(session="s", reason="done"),
    ]


def questions(notes: list[dict[str, Any]]) -> list[str]:
    """What the person said."""
    return [
        note["event"]["messages"][0]["content"]["text"]
        for note in notes
        if note["event"]["type"] == "personSaid"
    ]


async def test_a_long_conversation_in_pages() -> None:
    """The last turns first, then the ones before, each once and whole; what a card shows when it is
    closed is there, and the body of its result only on demand.
    """
    async with host_of("hello") as host:
        host.publish(SessionBegan(session="s", title="Long", model="m", remark="A remark."))
        for number in range(TURNS):
            for event in turn(number):
                host.publish(event)
        late = CallToolResult(content=[TextContent("late")])
        host.publish(TaskEnded(session="s", call="s.0", server="a", tool="b", result=late))
        site = HostSite(host, origin=ORIGIN)
        browser = Browser(site)
        await browser.enter()
        before = 0
        seen: list[str] = []
        numbers: list[int] = []
        pages = 0
        while True:
            page = await browser.act("openSession", session="s", turns=30, before=before)
            assert page["remark"] == "A remark."
            seen = questions(page["notes"]) + seen
            numbers = [note["seq"] for note in page["notes"]] + numbers
            pages += 1
            assert len(str(page["notes"])) < 30 * 50_000
            if not page["earlier"]:
                break
            before = page["first"]
        assert pages == 3
        assert seen == [f"Question {number}" for number in range(TURNS)]
        assert numbers == sorted(set(numbers))
        assert len(numbers) == 7 * TURNS + 2
        ended = next(note for note in page["notes"] if note["event"]["type"] == "callEnded")
        result = ended["event"]["result"]
        assert result["deferred"] is True
        assert [block["type"] for block in result["content"]] == ["text", "image"]
        whole = await browser.act("readResult", session="s", call="s.5")
        assert whole["content"][0]["text"] == LARGE
        assert whole["content"][1]["data"] == "AAAA" * 9_000
        refused = await browser.tried("readResult", session="s", call="s.999")
        assert "not in the log" in refused["words"]
        turns = (await browser.act("timeline", session="s", after=before))["turns"]
        assert turns[0]["label"] == f"Question {TURNS - 60}"
        everything = (await browser.act("timeline", session="s"))["turns"]
        assert [one["label"] for one in everything][:2] == ["Question 0", "Question 1"]
        assert len(everything) == TURNS
        site.close()


async def test_small_results_stay_whole() -> None:
    """Nothing is left out of a conversation that is small."""
    async with host_of("hello") as host:
        result = CallToolResult(content=[TextContent("small")], structured_content={"a": 1})
        host.publish(SessionBegan(session="s", title="", model="m"))
        host.publish(CallEnded(session="s", call="s.1", server="a", tool="b", result=result))
        site = HostSite(host, origin=ORIGIN)
        browser = Browser(site)
        await browser.enter()
        page = await browser.act("openSession", session="s", turns=30)
        assert (page["first"], page["earlier"]) == (0, False)
        (_, ended) = page["notes"]
        assert ended["event"]["result"]["structuredContent"] == {"a": 1}
        assert "deferred" not in ended["event"]["result"]
        site.close()
