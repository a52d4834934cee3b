"""What the everything server asks: forms with each kind of field, pages, the model with tools and
without, folders; in both eras.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import REVISIONS, Client, McpError, Server, TextContent, types
from interlock.client.answers import Answers, check_tool_turns
from interlock.schema import compile as compile_schema
from interlock.testing import ScriptedAnswers
from interlock.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ToolResultContent,
    ToolUseContent,
)
from interlock_servers.everything import everything_server
from interlock_servers.everything.form_fields import PARTS
from tests.servers.everything.scripted_client import USES, model, person

ERAS = ["2026-07-28", "2025-11-25"]

# -- forms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["2025-06-18", *ERAS])
async def test_a_form_with_each_kind_of_field(server: Server, revision: str) -> None:
    """Each kind reaches the person as the revision has it, with its default; what they leave as it
    is comes back (`ELI-06` to `ELI-12`).
    """
    answers = ScriptedAnswers(
        elicit=[{"name": "Guest"}]
    )  # which no default can fill in in 2025-06-18
    async with Client(server, revision=revision, answers=answers) as client:
        given = (await client.call_tool("ask_form")).value()
    (asked,) = answers.asked
    assert isinstance(asked, types.ElicitRequest)
    schema = asked.params.requested_schema or {}
    fields = {
        name: field
        for kind, fields in PARTS.items()
        if kind != "several" or revision > "2025-06-18"
        for name, field in fields.items()
    }
    assert schema["properties"].keys() == fields.keys()
    assert schema["required"] == ["name"]
    if revision > "2025-06-18":
        assert schema["properties"] == fields
        assert given == {
            "action": "accept",
            "content": {name: field["default"] for name, field in fields.items()},
        }
        assert compile_schema(schema).check(given["content"]) == []
    else:
        assert {name for name, field in schema["properties"].items() if "default" in field} == {
            "news"
        }
        assert (
            schema["properties"]["size"]["enum"],
            schema["properties"]["size"]["enumNames"],
        ) == (
            ["s", "m", "l"],
            ["Small", "Medium", "Large"],
        )


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("answer, action", [(False, "decline"), (None, "cancel")])
async def test_a_person_who_will_not(client: Client, part: str, answer: Any, action: str) -> None:
    """Declining and closing are told apart, and neither fails the call (`ELI-13`, `ELI-14`)."""
    asker = ScriptedAnswers(elicit=[answer])
    assert (await client.call_tool("ask_form", {"part": part}, asker=asker)).value() == {
        "action": action,
        "content": {},
    }


@pytest.mark.parametrize(
    "part, field, value",
    [
        ("texts", "name", ""),
        ("numbers", "age", 151),
        ("numbers", "height", "tall"),
        ("switches", "news", "yes"),
        ("choices", "colour", "pink"),
        ("choices", "size", "xl"),
        ("several", "toppings", []),
        ("several", "toppings", ["cheese", "olives", "onions"]),
        ("several", "sizes", ["xl"]),
    ],
)
async def test_answers_are_checked(client: Client, part: str, field: str, value: Any) -> None:
    """What does not fit the form is refused, whatever a client lets through (`ELI-35`)."""
    with pytest.raises(McpError, match="does not fit the form") as refused:
        await client.call_tool(
            "ask_form", {"part": part}, asker=ScriptedAnswers(elicit=[{field: value}])
        )
    assert refused.value.code == types.INVALID_PARAMS


@pytest.mark.parametrize(
    "answers, words, rounds",
    [
        ([{}], "A margherita, here.", 1),
        (
            [{"kind": "funghi", "away": True}, {"value": 20}],
            "A funghi to take away, in 20 minutes.",
            2,
        ),
        ([{"kind": "your own"}, {"topping": "figs"}], "A pizza with figs, here.", 2),
        (
            [{"kind": "your own", "away": True}, {"topping": "figs"}, {"value": 5}],
            "A pizza with figs to take away, in 5 minutes.",
            3,
        ),
    ],
)
async def test_a_second_form_that_depends_on_the_first(
    client: Client, answers: list[Any], words: str, rounds: int
) -> None:
    """As many forms as the answers make necessary (`MRT-14`)."""
    asker = ScriptedAnswers(elicit=answers)
    assert (await client.call_tool("order_pizza", asker=asker)).text == words
    assert len(asker.asked) == rounds
    asker.check()


async def test_questions_at_once(client: Client) -> None:
    """Three questions of three kinds, in one round where the era has rounds (`MRT-05`)."""
    asker = ScriptedAnswers(elicit=[{"value": "Bob"}], sample=["Hi!"], roots=["/a", "/b"])
    assert (await client.call_tool("ask_together", asker=asker)).value() == {
        "name": "Bob",
        "greeting": "Hi!",
        "folders": 2,
    }
    assert {type(asked) for asked in asker.asked} == {
        types.ElicitRequest,
        types.CreateMessageRequest,
        types.ListRootsRequest,
    }


async def test_a_question_that_is_given_up(server: Server) -> None:
    """The person is too slow: the client is told that nobody waits for the answer, and the call
    goes on (`CAN-01`).
    """
    told_off = asyncio.Event()

    async def slow(_: Any) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            told_off.set()

    async with Client(server, revision="2025-11-25", elicit=slow) as client:
        assert (
            await client.call_tool("ask_in_a_hurry", {"seconds": 0.01})
        ).text == "That took too long."
        await asyncio.wait_for(told_off.wait(), 10)


async def test_a_table_is_paid_for_once(server: Server) -> None:
    """A no books nothing; a yes charges the deposit just once, also where the tool runs again for
    each round (`MRT-24`).
    """
    async with Client(server, elicit=lambda p: False) as client:
        assert "declined" in (await client.call_tool("book_table", {"day": "Friday"})).text
    async with Client(
        server, elicit=lambda p: {"guests": 2} if p.message.startswith("A table") else False
    ) as client:
        assert (
            await client.call_tool("book_table", {"day": "Friday"})
        ).text == "Nothing was booked."
    async with Client(server, elicit=person) as client:
        assert (await client.call_tool("book_table", {"day": "Friday"})).text.endswith(
            "deposit number 1."
        )
        assert server.lifespan_state.charged == 1


async def test_nobody_there_to_ask(server: Server) -> None:
    """A client that cannot be asked fails the call, and nothing is booked (`ERR-08`)."""
    async with Client(server, revision="2025-11-25") as client:
        assert (await client.call_tool("book_table", {"day": "Friday"})).is_error
    async with Client(server) as client:
        with pytest.raises(McpError, match="elicitation"):
            await client.call_tool("book_table", {"day": "Friday"})


async def test_prompts_and_resources_ask_too(client: Client) -> None:
    """In both eras (`MRT-01`)."""
    asking = await client.get_prompt("ask_first")
    assert [message.content for message in asking.messages] == [
        TextContent("Write a poem about Ann.")
    ]
    (contents,) = (await client.read_resource("everything://asking")).contents
    assert contents.text == "It says: Ann"


# -- pages -----------------------------------------------------------------------------------------


async def test_a_visit_and_its_end(server: Server) -> None:
    """The question has an id in 2025-11-25, and its end is told under that id; 2026-07-28 has
    neither (`ELI-18` to `ELI-20`).
    """
    for revision in ERAS:
        answers = ScriptedAnswers(elicit={"Please": True})
        received: list[Any] = []
        receive: Any = lambda method, params, received=received: received.append((method, params))  # noqa: E731 - as short as it is
        async with Client(
            server, revision=revision, answers=answers, on_notification=receive
        ) as client:
            assert (await client.call_tool("visit_page")).text == "The user has visited the page."
        (asked,) = answers.asked
        assert isinstance(asked, types.ElicitRequest)
        assert (asked.params.mode, asked.params.url) == ("url", "https://example.com/sign-in?visit")
        if revision == "2026-07-28":
            assert (asked.params.elicitation_id, received) == (None, [])
        else:
            assert asked.params.elicitation_id
            done = types.ElicitationCompleteNotificationParams(
                elicitation_id=asked.params.elicitation_id
            )
            assert received == [("notifications/elicitation/complete", done)]


async def test_an_error_that_asks_for_a_visit_first(server: Server) -> None:
    """2025-11-25: the call fails with -32042 and the page; once the page has seen the person it
    works, and once only (`ERR-18`).
    """
    received: list[Any] = []
    receive: Any = lambda method, params: received.append((method, params.elicitation_id))  # noqa: E731 - as short as it is
    async with Client(
        server, revision="2025-11-25", elicit=person, on_notification=receive
    ) as client:
        with pytest.raises(McpError) as refused:
            await client.call_tool("open_account")
        assert refused.value.code == types.URL_ELICITATION_REQUIRED
        (question,) = refused.value.data["elicitations"]
        id = question.pop("elicitationId")
        assert question == {
            "mode": "url",
            "message": "Please sign in on this page.",
            "url": "https://example.com/sign-in",
        }
        with pytest.raises(McpError):  # nobody was there yet
            await client.call_tool("open_account")
        assert (await client.call_tool("finish_visit", {"id": "0" * 24})).is_error
        assert not (await client.call_tool("finish_visit", {"id": id})).is_error
        assert received == [("notifications/elicitation/complete", id)]
        assert (await client.call_tool("open_account")).text == "The account is open."
        with pytest.raises(McpError):
            await client.call_tool("open_account")


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_visit_where_nobody_can_go(server: Server, revision: str) -> None:
    """Without URL mode no revision is sent -32042: a clear refusal in its place (`ELI-03`,
    `ELI-19`).
    """
    async with Client(
        server, revision=revision, answers=Answers(elicit=person, url=False)
    ) as client:
        if revision == "2026-07-28":
            with pytest.raises(McpError, match=r"elicitation\.url") as refused:
                await client.call_tool("open_account")
            assert refused.value.code == types.MISSING_CLIENT_CAPABILITY
        else:
            assert (await client.call_tool("open_account")).is_error


async def test_visits_are_forgotten_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many are remembered, the latest."""
    monkeypatch.setenv("INTERLOCK_EVERYTHING_VISITS", "2")
    server = everything_server()
    async with Client(server, revision="2025-11-25", elicit=person) as client:
        ids = []
        for _ in range(3):
            with pytest.raises(McpError) as refused:
                await client.call_tool("open_account")
            ids.append(refused.value.data["elicitations"][0]["elicitationId"])
        assert list(server.lifespan_state.visits) == ids[1:]


# -- the model -------------------------------------------------------------------------------------


async def sampled(client: Client, tool: str, **arguments: Any) -> CreateMessageRequestParams:
    """What the model is asked by a tool."""
    asker = ScriptedAnswers(sample={"": model}, context=True)
    assert not (await client.call_tool(tool, arguments, asker=asker)).is_error
    (asked,) = asker.asked
    assert isinstance(asked, types.CreateMessageRequest)
    return asked.params


async def test_all_that_may_be_wished_of_a_model(server: Server) -> None:
    """System prompt, temperature, stop sequences, preferences, metadata; includeContext where the
    client takes it (`SAM-05`, `SAM-10`).
    """
    for revision in ERAS:
        for takes in (True, False):
            async with Client(
                server, revision=revision, answers=Answers(sample=model, context=takes)
            ) as client:
                asked = await sampled(
                    client,
                    "ask_model_closely",
                    question="Well?",
                    temperature=0.5,
                    most=10,
                    context="allServers",
                )
                assert (asked.system_prompt or "").startswith("You are brief")
                assert (asked.temperature, asked.max_tokens, asked.stop_sequences) == (
                    0.5,
                    10,
                    ["\n\n", "END"],
                )
                assert asked.metadata == {"purpose": "a demonstration"}
                wished = asked.model_preferences
                assert wished is not None
                assert [hint.name for hint in wished.hints or []] == ["haiku", "mini"]
                assert (
                    wished.cost_priority,
                    wished.speed_priority,
                    wished.intelligence_priority,
                ) == (0.9, 0.8, 0.1)
                assert asked.include_context == ("allServers" if takes else None)  # `SAM-17`
                said = (await client.call_tool("ask_model_closely", {"question": "Well?"})).value()
                assert said == {"text": "Yes.", "model": "m-1", "stop_reason": "endTurn"}


async def test_what_a_model_is_shown(client: Client) -> None:
    """Pictures, sound, several blocks in one message, words of both sides (`SAM-11`)."""
    shown = await sampled(client, "show_model")
    assert [type(message.content) for message in shown.messages] == [
        types.ImageContent,
        types.AudioContent,
        TextContent,
    ]
    talk = await sampled(client, "talk_to_model")
    assert [message.role for message in talk.messages] == ["user", "assistant", "user"]
    assert isinstance(talk.messages[2].content, list)
    assert talk.messages[0].meta == {"example.com/made-by": "everything"}


async def test_a_model_with_tools(client: Client) -> None:
    """What it calls is run, all at once, faults too; it gets its own words back and the results,
    and nothing else beside them (`SAM-12`, `SAM-14`, `SAM-15`, `SAM-21`).
    """
    asked: list[CreateMessageRequestParams] = []

    def noting(params: CreateMessageRequestParams) -> CreateMessageResult:
        asked.append(params)
        check_tool_turns(params.messages)
        return model(params)

    answer = (
        await client.call_tool(
            "ask_model_with_tools", {"question": "Well?"}, asker=Answers(sample=noting)
        )
    ).value()
    assert answer["rounds"] == 2
    assert [(use["tool"], use["output"]) for use in answer["uses"][:2]] == [
        ("capital", {"capital": "Lima"}),
        ("total", {"sum": 3.0}),
    ]
    assert [
        "The capital of Atlantis is unknown" in (use["error"] or "") for use in answer["uses"]
    ] == [
        False,
        False,
        True,
        False,
        False,
    ]
    assert "There is no tool rm" in answer["uses"][3]["error"]
    assert "numbers" in answer["uses"][4]["error"]
    first, second = asked
    assert [tool.name for tool in first.tools or []] == ["capital", "total"]
    assert first.tool_choice == types.ToolChoice(mode="auto")
    question, uses, results = second.messages
    assert question.content == TextContent("Well?")
    assert isinstance(uses.content, list)
    assert [
        block for block in uses.content if isinstance(block, ToolUseContent)
    ] == USES  # with their `_meta`
    assert isinstance(results.content, list)
    given = [block for block in results.content if isinstance(block, ToolResultContent)]
    assert [(block.tool_use_id, block.is_error) for block in given] == [
        ("1", False),
        ("2", False),
        ("3", True),
        ("4", True),
        ("5", True),
    ]
    assert given[0].structured_content == {"capital": "Lima"}


async def test_a_model_that_never_answers(client: Client) -> None:
    """It has five rounds, and may use no tool in the last (`SAM-16`, `SAM-18`)."""
    modes: list[Any] = []

    def insisting(params: CreateMessageRequestParams) -> CreateMessageResult:
        modes.append(params.tool_choice.mode if params.tool_choice else None)
        return CreateMessageResult(
            role="assistant", content=USES[0], model="m", stop_reason="toolUse"
        )

    arguments = {"question": "Well?", "choice": "required"}
    result = await client.call_tool(
        "ask_model_with_tools", arguments, asker=Answers(sample=insisting)
    )
    assert result.is_error
    assert "5 rounds" in result.text
    assert modes == ["required", "auto", "auto", "auto", "none"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_model_that_takes_no_tools(server: Server, revision: str) -> None:
    """It is not asked with any: an error that names what is lacking, or words for the model
    (`SAM-12`).
    """
    asked: list[Any] = []
    async with Client(
        server, revision=revision, answers=Answers(sample=asked.append, tools=False)
    ) as client:
        if revision == "2026-07-28":
            with pytest.raises(McpError, match=r"sampling\.tools") as refused:
                await client.call_tool("ask_model_with_tools", {"question": "Well?"})
            assert refused.value.code == types.MISSING_CLIENT_CAPABILITY
        else:
            assert (
                "sampling"
                in (await client.call_tool("ask_model_with_tools", {"question": "Well?"})).text
            )
    assert asked == []


async def test_a_person_who_keeps_the_model_to_themselves(client: Client) -> None:
    """A refusal ends the call in words; in the stateless era the client itself does not go on with
    it (`SAM-07`).
    """
    asker = Answers(sample=lambda _: None)
    if client.revision == "2026-07-28":
        with pytest.raises(McpError, match="rejected"):
            await client.call_tool("ask_model", {"question": "Well?"}, asker=asker)
    else:
        refused = await client.call_tool("ask_model", {"question": "Well?"}, asker=asker)
        assert refused.is_error
        assert "refused" in refused.text


# -- folders ---------------------------------------------------------------------------------------


async def test_folders_that_change(server: Server) -> None:
    """They are asked for with every call: what the client allows now is what counts (`ROO-02`,
    `ROO-04`).
    """
    for revision in ERAS:
        roots = ["file:///srv"]
        async with Client(
            server,
            revision=revision,
            answers=Answers(roots=lambda: list(roots)),  # noqa: B023 - it is used in this round only
        ) as client:
            assert (await client.call_tool("list_roots")).value() == ["file:///srv"]
            roots[:] = ["file:///home/ada", "file:///tmp"]
            client.roots_changed()
            assert (await client.call_tool("list_roots")).value() == [
                "file:///home/ada",
                "file:///tmp",
            ]
            roots.clear()
            assert (await client.call_tool("list_roots")).text == "There are none."
