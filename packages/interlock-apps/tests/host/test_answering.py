"""What servers ask: forms and pages go to the person, sampling past the person to a model and back,
and roots are those that were granted.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from interlock import REVISIONS, Context, McpError, Server
from interlock.models.interface import ModelFacts, ModelFailure
from interlock.models.scripted import Scripted, call
from interlock.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestParams,
    ModelHint,
    ModelPreferences,
    SamplingMessage,
    TextContent,
    Tool,
)
from interlock_apps.fleet.events import CallProposed, SampleEnded
from interlock_apps.fleet.questions import Answer, Decision, Filled, NotAnswered
from interlock_apps.host.server_requests import TRIES, RequestLimits
from tests.host.scene import ALLOW, NO, YES, Sitting, last, scene

ELICITING = [revision for revision in REVISIONS if revision >= "2025-06-18"]
NAME = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "nights": {"type": "integer", "default": 7},
    },
    "required": ["name"],
}
YES_ALL = {"sample": YES, "sampled": YES}


def asker(**options: Any) -> Server:
    """A server with a tool for each kind of question."""
    server = Server("asker", **options)

    @server.tool
    async def form(ctx: Context) -> str:
        """Ask with a form."""
        return str(await ctx.elicit("Who \u202esleeps?", NAME))

    @server.tool
    async def page(ctx: Context, url: str = "https://pay.example.com/x") -> str:
        """Ask for a visit."""
        await ctx.elicit_url("Pay here.", url)
        return "visited"

    @server.tool
    async def sample(ctx: Context, tokens: int = 100, hint: str = "", cost: float = 0.0) -> str:
        """Ask a model."""
        wishes = ModelPreferences(
            hints=[ModelHint(name=hint)] if hint else None, cost_priority=cost
        )
        said = await ctx.sample(
            "Which one?", max_tokens=tokens, system="Be short.", preferences=wishes
        )
        return f"{said.model}: {text(said)}"

    @server.tool
    async def roots(ctx: Context) -> str:
        """Ask for roots."""
        return " ".join(root.uri for root in await ctx.roots())

    return server


def text(said: CreateMessageResult) -> str:
    content = said.content if isinstance(said.content, list) else [said.content]
    return "".join(block.text for block in content if isinstance(block, TextContent))


def answer(words: str) -> CreateMessageResult:
    return CreateMessageResult(
        role="assistant", content=TextContent(text=words), model="edited", stop_reason="endTurn"
    )


# -- forms and pages -------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ELICITING)
@pytest.mark.parametrize(
    "filled, came",
    [
        (Filled(action="accept", content={"name": "Ann", "nights": 3}), "Ann"),
        (Filled(action="decline"), "declined"),
        (Filled(action="cancel"), "dismissed"),
        (NotAnswered(words="away"), "dismissed"),
        (YES, "dismissed"),
    ],
)
async def test_a_form(revision: str, filled: Answer, came: str) -> None:
    """`ELI-04` to `ELI-06`: accepted, declined and dismissed are three things in every revision;
    who asks, and because of what, is known.
    """
    sitting = Sitting(form=filled)
    async with scene(
        {"asker": asker(revisions=revision)},
        call("asker__form"),
        "done",
        person=sitting,
        policy=ALLOW,
    ) as one:
        session = one.host.session()
        await session.say("ask")
        (question,) = sitting.of("form")
        assert (question.server, question.session) == ("asker", session.id)
        assert question.call == one.of(CallProposed)[0].call
        assert question.message == "Who ⟨U+202E⟩sleeps?"
        assert "direction" in str(question.warnings) or question.warnings
        assert [field.name for field in question.fields] == ["name", "nights"]
        assert came in last(one)


async def test_a_form_whose_answer_does_not_fit_is_shown_again() -> None:
    """`ELI-12`: with a warning at the field; nothing that does not fit is sent, and after some
    tries nothing is.
    """
    short = Filled(action="accept", content={"name": "A"})
    good = Filled(action="accept", content={"name": "Bo"})
    sitting = Sitting(form=[short, good])
    async with scene(
        {"asker": asker()}, call("asker__form"), "done", person=sitting, policy=ALLOW
    ) as one:
        await one.host.session().say("ask")
        first, second = sitting.of("form")
        assert not [warned for warned in first.warnings if warned.kind == "invalid"]
        assert [(warned.kind, warned.where) for warned in second.warnings] == [("invalid", "name")]
        assert "Bo" in last(one)
    sitting = Sitting(form=lambda question: short)
    async with scene(
        {"asker": asker()}, call("asker__form"), "done", person=sitting, policy=ALLOW
    ) as one:
        await one.host.session().say("ask")
        assert len(sitting.of("form")) == TRIES
        assert "dismissed" in last(one)


@pytest.mark.parametrize(
    "schema", [{"type": "object", "properties": {"x": {"type": "object"}}}, {"type": "array"}]
)
async def test_a_form_that_cannot_be_shown_is_cancelled(schema: dict[str, Any]) -> None:
    """`ELI-09`: with a notice that says whose it was."""
    server = Server("asker")

    @server.tool
    async def form(ctx: Context) -> str:
        """Ask with a form that is none."""
        params = ElicitRequestParams(message="?", mode="form", requested_schema=schema)
        return str(await ctx._ask(ElicitRequest(params), None))

    sitting = Sitting()
    async with scene(
        {"asker": server}, call("asker__form"), "done", person=sitting, policy=ALLOW
    ) as one:
        await one.host.session().say("ask")
        assert "asker asks with a form that cannot be shown" in one.notices()[0]
        assert not sitting.asked
        assert "cancel" in last(one)


async def test_a_form_that_asks_for_a_password_is_warned_about() -> None:
    """`ELI-15`, `ELI-16`."""
    server = Server("asker")

    @server.tool
    async def form(ctx: Context) -> str:
        """Ask for what must not be asked for."""
        return str(
            await ctx.elicit(
                "Log in", {"type": "object", "properties": {"password": {"type": "string"}}}
            )
        )

    sitting = Sitting(form=Filled(action="decline"))
    async with scene(
        {"asker": server}, call("asker__form"), "done", person=sitting, policy=ALLOW
    ) as one:
        await one.host.session().say("ask")
        assert [warned.where for warned in sitting.asked[0].warnings] == ["password"]


@pytest.mark.parametrize(
    "revision", [revision for revision in REVISIONS if revision >= "2025-11-25"]
)
@pytest.mark.parametrize(
    "url, host, warned",
    [
        ("https://pay.example.com/x", "pay.example.com", False),
        ("https://pay.example.com@evil.example/x", "evil.example", True),
        ("http://93.184.216.34/x", "93.184.216.34", True),
        ("https://p\u0430y.example.com/x", "p\u0430y.example.com", True),
    ],
)
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
async def test_a_page_to_visit(
    revision: str, url: str, host: str, warned: bool, action: Any
) -> None:
    """`ELI-22`, `ELI-23`, `ELI-26`: the whole address, its host and what is odd about it; nothing
    is opened here.
    """
    sitting = Sitting(url=Filled(action=action))
    async with scene(
        {"asker": asker(revisions=revision)},
        call("asker__page", url=url),
        "done",
        person=sitting,
        policy=ALLOW,
    ) as one:
        await one.host.session().say("ask")
        (question,) = sitting.of("url")
        assert question.host == host
        assert question.url == url
        assert bool(question.warnings) == warned
        assert ("visited" in last(one)) == (action == "accept")


# -- sampling --------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
async def test_sampling_is_seen_before_and_after(revision: str) -> None:
    """`SAM-01`, `SAM-05`: what the server wants, with which model; then what the model said; the
    server gets it last.
    """
    second = Scripted("VY 8301", name="second", facts=ModelFacts(remark="slow"))
    sitting = Sitting(**YES_ALL)
    options: dict[str, Any] = {"person": sitting, "policy": ALLOW, "others": [second]}
    async with scene(
        {"asker": asker(revisions=revision)},
        call("asker__sample", hint="SECOND"),
        "done",
        **options,
    ) as one:
        session = one.host.session()
        await session.say("ask")
        before, after = sitting.asked
        for question in sitting.asked:
            assert (question.server, question.session, question.call) == (
                "asker",
                session.id,
                one.of(CallProposed)[0].call,
            )
        assert (before.model, before.models) == (
            "second",
            {"scripted": one.model.facts.remark, "second": "slow"},
        )
        assert (before.request.system_prompt, before.request.max_tokens) == ("Be short.", 100)
        assert before.left == 9
        assert text(after.result) == "VY 8301"
        assert "second: VY 8301" in last(one)
        assert [(e.model, e.server, e.question, e.error) for e in one.of(SampleEnded)] == [
            ("second", "asker", before.id, "")
        ]


async def test_the_person_edits_both_and_chooses_the_model() -> None:
    """`SAM-05`, `SAM-12`: the model gets the edited prompt, the server the edited answer, and never
    more tokens than allowed.
    """
    second = Scripted("raw", name="second")
    request = CreateMessageRequestParams(
        messages=[SamplingMessage(role="user", content=TextContent(text="edited"))],
        max_tokens=99_999,
    )
    sitting = Sitting(
        sample=Decision(allow=True, model="second", request=request),
        sampled=Decision(allow=True, sampled=answer("tidied")),
    )
    async with scene(
        {"asker": asker()},
        call("asker__sample"),
        "done",
        person=sitting,
        policy=ALLOW,
        others=[second],
    ) as one:
        await one.host.session().say("ask")
        (asked,) = second.requests
        assert (asked.messages, asked.max_tokens) == (request.messages, 16_384)
        assert "edited: tidied" in last(one)
        assert "raw" not in last(one)


@pytest.mark.parametrize("tools", [None, [Tool(name="t", input_schema={"type": "object"})]])
async def test_what_a_model_thought_goes_to_no_server(tools: list[Tool] | None) -> None:
    """`SAM-20`, `SAM-21`: what a provider keeps in `_meta` goes back only where a loop with tools
    needs it; other keys stay.
    """
    kept = {"io.interlock/openai": {"thought": "secret"}, "other": 1}
    thinker = Scripted([TextContent(text="short", meta=dict(kept))], name="thinker")
    server = Server("asker")

    @server.tool
    async def ask(ctx: Context) -> str:
        said = await ctx.sample(
            "Which?",
            max_tokens=9,
            tools=tools,
            preferences=ModelPreferences(hints=[ModelHint(name="thinker")]),
        )
        block = said.content[0] if isinstance(said.content, list) else said.content
        return str(sorted(block.meta or {}))

    async with scene(
        {"asker": server},
        call("asker__ask"),
        "done",
        person=Sitting(**YES_ALL),
        policy=ALLOW,
        others=[thinker],
    ) as one:
        await one.host.session().say("ask")
        assert ("io.interlock" in last(one)) is bool(tools)
        assert "other" in last(one)


async def test_a_sample_is_never_longer_than_allowed() -> None:
    """`SAM-09`: what the server wants is an upper bound, and so is what the host allows; who wants
    very much is warned about.
    """
    second = Scripted("short", name="second", forever=True)
    for wanted, most in [(50, 50), (70_000, 500)]:
        sitting = Sitting(**YES_ALL)
        options: dict[str, Any] = {
            "person": sitting,
            "policy": ALLOW,
            "others": [second],
            "requests": RequestLimits(tokens=500),
        }
        async with scene(
            {"asker": asker()},
            call("asker__sample", tokens=wanted, hint="second"),
            "done",
            **options,
        ) as one:
            await one.host.session().say("ask")
            assert second.requests[-1].max_tokens == sitting.asked[0].request.max_tokens == most
            assert bool(sitting.asked[0].warnings) == (wanted == 70_000)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("when", ["sample", "sampled"])
@pytest.mark.parametrize(
    "refusal",
    [
        Decision(allow=False, reason="too dear"),
        NO,
        NotAnswered(words="away"),
        Filled(action="accept"),
    ],
)
async def test_refused_before_or_after(revision: str, when: str, refusal: Answer) -> None:
    """`SAM-07`: the server gets -1 in every revision, and never what the model said; refused
    before, no model is asked.
    """
    codes: list[int] = []
    server = asker(revisions=revision)

    @server.tool
    async def attempt(ctx: Context) -> str:
        """Ask, and see what comes."""
        try:
            await ctx.sample(
                "Which one?", preferences=ModelPreferences(hints=[ModelHint(name="second")])
            )
        except Exception as bad:
            codes.append(getattr(bad, "code", None) or getattr(bad.__cause__, "code", None) or 0)
            raise
        return "sampled"

    second = Scripted("the answer", name="second")
    sitting = Sitting(**YES_ALL | {when: refusal})
    async with scene(
        {"asker": server},
        call("asker__attempt"),
        "done",
        person=sitting,
        policy=ALLOW,
        others=[second],
    ) as one:
        await one.host.session().say("ask")
        assert "sampled" not in last(one).split("\n")
        assert "the answer" not in last(one)
        assert len(second.requests) == (when == "sampled")


async def test_what_the_host_answers_to_a_refusal() -> None:
    """`SAM-07`: the error of a refusal is -1, also where a model fails or too many were
    asked for.
    """
    second = Scripted(ModelFailure("the key sk-123 is wrong", "unauthorized"), "said")
    sitting = Sitting(
        sample=[Decision(allow=False, reason="too dear"), YES, YES],
        sampled=Decision(allow=False, reason="not that"),
    )
    params = CreateMessageRequestParams(
        messages=[SamplingMessage(role="user", content=TextContent(text="?"))], max_tokens=5
    )
    async with scene(
        {"asker": asker()}, person=sitting, model=second, requests=RequestLimits(samples=3)
    ) as one:
        words = []
        for _ in range(4):
            with pytest.raises(McpError) as caught:
                await one.host.requests.answers_for(one.host.server("asker").entry).ask(
                    CreateMessageRequest(params)
                )
            assert caught.value.code == -1
            words.append(caught.value.message)
        assert words[0] == "too dear"
        assert words[1] == "The model gave no answer: unauthorized"
        assert "sk-123" in one.of(SampleEnded)[0].error
        assert words[2] == "not that"
        assert "At most 3" in words[3]


@pytest.mark.parametrize(
    "hint, cost, chosen",
    [
        ("", 0.0, "scripted"),
        ("", 1.0, "cheap"),
        ("clever", 0.0, "clever"),
        ("nobody", 1.0, "cheap"),
        ("CLEV", 1.0, "clever"),
    ],
)
async def test_the_model_is_chosen_by_what_matters_to_the_server(
    hint: str, cost: float, chosen: str
) -> None:
    """`SAM-10`: hints first, then the weights; without any the first model."""
    others = [
        Scripted("a", name="cheap", facts=ModelFacts(cost=1.0)),
        Scripted("b", name="clever", facts=ModelFacts(cost=0.1)),
    ]
    sitting = Sitting(sample=NO)
    async with scene(
        {"asker": asker()},
        call("asker__sample", hint=hint, cost=cost),
        "done",
        person=sitting,
        policy=ALLOW,
        others=others,
    ) as one:
        await one.host.session().say("ask")
        assert sitting.asked[0].model == chosen


async def test_a_server_that_asks_a_model_in_a_loop() -> None:
    """`SAM-19`: what is beyond the bound is refused unseen, with one notice; another server is not
    touched by it.
    """
    server = Server("loop")
    second = Scripted("again", name="second", forever=True)
    refused: list[Exception] = []

    @server.tool
    async def loop(ctx: Context) -> str:
        """Ask, and ask again."""
        for index in range(30):
            try:
                await ctx.sample(
                    f"{index}?",
                    preferences=ModelPreferences(hints=[ModelHint(name="second")]),
                    key=f"k{index}",
                )
            except Exception as bad:
                refused.append(bad)
        return "enough"

    sitting = Sitting(**YES_ALL)
    servers = {"loop": server, "asker": asker()}
    answers = [call("loop__loop"), call("asker__sample", hint="second"), "done"]
    async with scene(
        servers,
        *answers,
        person=sitting,
        policy=ALLOW,
        others=[second],
        requests=RequestLimits(samples=4, seconds=3600),
    ) as one:
        assert (await one.host.session().say("ask")).reason == "done"
        assert len(sitting.of("sample")) == 5
        assert [question.left for question in sitting.of("sample")] == [3, 2, 1, 0, 3]
        (words,) = one.notices()
        assert "loop wants to ask a model more than 4 times" in words
        assert "second: again" in last(one)


async def test_a_server_that_asks_the_person_in_a_loop() -> None:
    """`ELI-33`: likewise; what is beyond the bound is cancelled."""
    server = Server("loop")

    @server.tool
    async def loop(ctx: Context) -> str:
        """Ask, and ask again."""
        for index in range(20):
            with contextlib.suppress(Exception):
                await ctx.elicit(f"{index}?", NAME, key=f"k{index}")
        return "enough"

    sitting = Sitting(form=Filled(action="decline"))
    async with scene(
        {"loop": server},
        call("loop__loop"),
        "done",
        person=sitting,
        policy=ALLOW,
        requests=RequestLimits(questions=3, seconds=3600),
    ) as one:
        await one.host.session().say("ask")
        assert len(sitting.asked) == 3
        (words,) = one.notices()
        assert "loop wants to ask you something more than 3 times" in words


async def test_samples_may_pass_for_the_rest_of_a_conversation() -> None:
    """Of that server, in that conversation, and no others; the bound on how often still holds."""
    second = Scripted("yes", name="second", forever=True)
    sitting = Sitting(sample=Decision(allow=True, remember="session"), sampled=YES)
    again = call("asker__sample", hint="second")
    servers = {"asker": asker(), "other": asker()}
    answers = [
        again,
        "done",
        again,
        "done",
        call("other__sample", hint="second"),
        "done",
        again,
        "done",
        *[again, "done"] * 3,
    ]
    async with scene(
        servers,
        *answers,
        person=sitting,
        policy=ALLOW,
        others=[second],
        requests=RequestLimits(samples=5, seconds=3600),
    ) as one:
        session = one.host.session()
        await session.say("ask")
        assert [type(q).__name__ for q in sitting.asked] == ["SampleQuestion", "SampledQuestion"]
        await session.say("ask")
        assert len(sitting.asked) == 2
        assert "second: yes" in last(one)
        await session.say("ask the other")
        assert sitting.asked[-1].server == "other"
        assert len(sitting.asked) == 4
        await one.host.session().say("ask")
        assert len(sitting.asked) == 6
        for _ in range(3):
            await session.say("ask")
        assert len(sitting.asked) == 6
        assert "At most 5" in last(one) or one.notices()


async def test_what_belongs_to_no_conversation_is_always_asked_about() -> None:
    """A server that asks while nobody has called it cannot be waved through by an answer for "this
    conversation".
    """
    second = Scripted("yes", forever=True)
    sitting = Sitting(
        sample=Decision(allow=True, remember="session"),
        sampled=Decision(allow=True, remember="session"),
    )
    params = CreateMessageRequestParams(
        messages=[SamplingMessage(role="user", content=TextContent(text="?"))], max_tokens=5
    )
    async with scene({"asker": asker()}, person=sitting, model=second) as one:
        for _ in range(2):
            await one.host.requests.answers_for(one.host.server("asker").entry).ask(
                CreateMessageRequest(params)
            )
        assert len(sitting.asked) == 4
        assert {question.session for question in sitting.asked} == {""}


async def test_without_a_model_there_is_no_sampling() -> None:
    """`SAM-02`: it is not declared."""
    async with scene({"asker": asker()}, "x") as one:
        assert (
            one.host.requests.answers_for(one.host.server("asker").entry).capabilities.sampling
            is not None
        )
        one.host.models.clear()
        assert (
            one.host.requests.answers_for(one.host.server("asker").entry).capabilities.sampling
            is None
        )


# -- whose question it is --------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ELICITING)
async def test_two_conversations_at_once(revision: str) -> None:
    """A question says in which conversation, and because of which call, it came up, though the
    server works for both at the same time.

    Within one process that is known under every revision. Over one pipe, before 2026-07-28, it is
    not.
    """
    server = Server("asker", revisions=revision)
    met = asyncio.Barrier(2)

    @server.tool
    async def form(ctx: Context, name: str) -> str:
        """Ask when both have come."""

        async def come() -> int:
            return await met.wait()

        await ctx.once("met", come)
        return str(await ctx.elicit(f"for {name}", NAME))

    sitting = Sitting(
        form=lambda question: Filled(action="accept", content={"name": question.message})
    )

    def which(request: CreateMessageRequestParams) -> Any:
        said = request.messages[0].content[0].text
        return call("asker__form", name=said) if len(request.messages) == 1 else "done"

    async with scene({"asker": server}, *[which] * 4, person=sitting, policy=ALLOW) as one:
        sessions = {name: one.host.session() for name in ("Ann", "Bob")}
        await asyncio.gather(*(session.say(name) for name, session in sessions.items()))
        assert len(sitting.asked) == 2
        for question in sitting.asked:
            session = sessions[question.message.removeprefix("for ")]
            assert (question.session, question.call) == (session.id, f"{session.id}.1")
