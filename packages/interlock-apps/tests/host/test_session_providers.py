"""The whole host in front of sites that speak the interfaces of three providers: calls, every kind
of result, errors, limits and cut streams.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from interlock import Audio, Image, Server, ToolError
from interlock.models.interface import ModelFacts
from interlock.types import (
    CallToolResult,
    EmbeddedResource,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from interlock_apps.fleet.events import CallEnded, ModelFailed, ModelSays, TurnEnded
from tests.host.scene import ALLOW, NO, Sitting, scene
from tests.models.asking import ADAPTERS, KEY, Pauses
from tests.models.providers import Act, Answer, Site

everybody = pytest.mark.parametrize("speaks", list(ADAPTERS))
both_ways = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
PNG = b"\x89PNG\r\n\x1a\n"


def shop() -> Server:
    """A server whose tools give every kind of result."""
    server = Server("shop")

    @server.tool
    async def everything(city: str) -> CallToolResult:
        """Every kind of content."""
        return CallToolResult(
            content=[
                TextContent(text=f"about {city}\u202e"),
                ResourceLink(uri="shop://list", name="list"),
                EmbeddedResource(resource=ResourceContents(uri="shop://note", text="a note")),
            ],
            structured_content={"city": city},
        )

    @server.tool
    async def picture() -> Image:
        """A picture."""
        return Image(data=PNG, format="png")

    @server.tool
    async def sound() -> Audio:
        """A sound."""
        return Audio(data=b"RIFF", format="wav")

    @server.tool
    async def fail() -> str:
        """Never works."""
        raise ToolError("there is no such thing")

    return server


def model(speaks: str, site: Site, stream: bool, **more: Any) -> Any:
    facts = ModelFacts(images=True, audio=True)
    return ADAPTERS[speaks](
        "mine",
        url=getattr(site, speaks),
        model="model-1",
        key=KEY,
        sleep=Pauses(),
        stream=stream,
        facts=facts,
        **more,
    )


@everybody
@both_ways
async def test_calls_and_their_results_go_round(speaks: str, stream: bool) -> None:
    """`SAM-14`, `SAM-15`: two calls in one answer, their results in the next request, marked; an
    error is an error; pictures arrive.
    """
    calls = Answer(
        (
            "Let me see.",
            ("shop__everything", {"city": "Bari"}),
            ("shop__fail", {}),
            ("shop__picture", {}),
            ("shop__sound", {}),
        )
    )
    async with (
        Site(calls, Answer(("All done.",))) as site,
        scene({"shop": shop()}, model=model(speaks, site, stream), policy=ALLOW) as one,
    ):
        session = one.host.session()
        ended = await session.say("Tell me all.")
        assert (ended.reason, ended.words) == ("done", "")
        assert (ended.usage.input, ended.usage.output) == (14, 10)
        assert [event.result is not None for event in one.of(CallEnded)] == [True] * 4
        assert (
            "".join(event.text for event in one.of(ModelSays) if event.kind == "text")
            == "Let me see.All done."
        )
        first, second = (asked.body for asked in site.asked)
        sent = json.dumps(second, ensure_ascii=False)
        assert "shop__everything" in json.dumps(first)
        mark = json.dumps(first).split("[[data-")[1][:8]
        assert sent.count(f"[[/data-{mark}]]") >= 4
        for words in (
            "about Bari",
            "shop://list",
            "a note",
            "there is no such thing",
            "iVBORw0KGgo=",
        ):
            assert words in sent
        assert "\u202e" not in sent
        assert sent.count("Let me see.") == 1


@everybody
@both_ways
async def test_a_refusal_reaches_the_model(speaks: str, stream: bool) -> None:
    """What the person does not allow is a result like any other; so are unknown tools and arguments
    that do not fit.
    """
    calls = Answer(
        (
            ("shop__everything", {"city": "Bari"}),
            ("shop__nothing", {}),
            ("shop__everything", {"town": 1}),
        )
    )
    sitting = Sitting(call=NO)
    async with (
        Site(calls, Answer(("Well.",))) as site,
        scene({"shop": shop()}, model=model(speaks, site, stream), person=sitting) as one,
    ):
        assert (await one.host.session().say("Go.")).reason == "done"
        sent = json.dumps(site.asked[1].body)
        for words in (
            "The user denied this call.",
            "There is no tool",
            "do not fit the tool",
        ):
            assert words in sent
        assert len(sitting.asked) == 1


ERRORS: dict[str, Any] = {
    "openai": lambda words, kind: {
        "error": {"message": words, "type": kind, "param": None, "code": kind}
    },
    "anthropic": lambda words, kind: {"type": "error", "error": {"type": kind, "message": words}},
    "gemini": lambda words, kind: {"error": {"code": 400, "message": words, "status": kind}},
}


@everybody
@both_ways
@pytest.mark.parametrize(
    "status, type, kind, tries",
    [
        (401, "authentication_error", "unauthorized", 1),
        (429, "rate_limit_error", "rate_limited", 2),
        (529, "overloaded_error", "overloaded", 2),
        (503, "UNAVAILABLE", "overloaded", 2),
    ],
)
async def test_what_goes_wrong_is_said(
    speaks: str, stream: bool, status: int, type: str, kind: str, tries: int
) -> None:
    """The turn ends with words, without the key; what was said stays, and the next turn works."""
    bad = Act(status=status, body=ERRORS[speaks]("not now", type))
    async with (
        Site(*[bad] * tries, Answer(("Hello.",))) as site,
        scene({"shop": shop()}, model=model(speaks, site, stream, tries=2)) as one,
    ):
        session = one.host.session()
        ended = await session.say("Hi.")
        assert ended.reason == "failed"
        assert [event.kind for event in one.of(ModelFailed)] == [kind]
        assert KEY not in ended.words
        assert len(site.asked) == tries
        assert (await session.say("Again.")).reason == "done"
        assert len(session.messages) == 3


@everybody
@both_ways
async def test_a_rate_limit_that_passes_is_waited_for(speaks: str, stream: bool) -> None:
    """And the person sees that it is."""
    limited = Act(
        status=429,
        body=ERRORS[speaks]("slow down", "rate_limit_error"),
        headers={"retry-after": "2"},
    )
    async with (
        Site(limited, Answer(("Hello.",))) as site,
        scene({}, model=model(speaks, site, stream)) as one,
    ):
        assert (await one.host.session().say("Hi.")).reason == "done"
        assert [event.kind for event in one.of(ModelSays) if event.kind == "note"]


@everybody
@both_ways
@pytest.mark.parametrize("cut", [0, 1, 2])
async def test_a_stream_that_is_cut(speaks: str, stream: bool, cut: int) -> None:
    """Nothing that was half said is kept or called; the turn ends with words and the next one
    works.
    """
    server = shop()
    calls = Answer(("Let me see all of it first.", ("shop__everything", {"city": "Bari"})))
    acts = [Act(calls, cut=cut)] * 4
    async with (
        Site(*acts, Answer(("Hello.",))) as site,
        scene({"shop": server}, model=model(speaks, site, stream, tries=1), policy=ALLOW) as one,
    ):
        session = one.host.session()
        ended = await session.say("Go.")
        assert ended.reason == "failed"
        assert not one.of(CallEnded)
        assert len(session.messages) == 1
        site.acts = [Act(Answer(("Hello.",)))]
        assert (await session.say("Again.")).reason == "done"


@everybody
@both_ways
async def test_cancelled_while_the_provider_is_silent(speaks: str, stream: bool) -> None:
    """Its connection is closed at once."""
    async with (
        Site(Act(hang=True)) as site,
        scene({"shop": shop()}, model=model(speaks, site, stream)) as one,
    ):
        session = one.host.session()
        turn = asyncio.ensure_future(session.say("Hi."))
        await site.begun.wait()
        session.cancel()
        assert (await turn).reason == "cancelled"
        await site.left.wait()
        assert len(one.of(TurnEnded)) == 1


async def test_arguments_that_are_no_json() -> None:
    """The model is told, and nothing is called."""
    broken = Answer((b'{"city": ',))
    async with (
        Site(Act(broken), Answer(("Sorry.",))) as site,
        scene({"shop": shop()}, model=model("openai", site, True), policy=ALLOW) as one,
    ):
        assert (await one.host.session().say("Go.")).reason == "done"
        assert "were no JSON object" in json.dumps(site.asked[1].body)
        assert not one.of(CallEnded)
