"""Questions over every cell of the matrix: the same tool asks straight, suspended or replayed, and
never goes on without an answer."""

from __future__ import annotations

import asyncio

import pytest

from interlock import Answers, McpError
from interlock import types as t
from interlock.testing import ScriptedAnswers
from interlock.wire.revisions import R3, R4, R5
from tests.wired.cells import Cell, before, between, since

pytestmark = pytest.mark.asyncio(loop_scope="session")


def seats(*answers: object) -> ScriptedAnswers:
    """Answers to elicitations, in order."""
    return ScriptedAnswers(elicit=answers)


@since(R3)
async def test_a_form_and_a_yes(cell: Cell):
    """One tool, two questions, one result: the answers arrive as typed values (`ELI-04`, `ELI-05`,
    `ELI-06`, `MRT-11`)."""
    answers = seats({"row": 7, "letter": "B"}, {"confirm": True})
    start = len(cell.tape)
    result = await cell.client.call_tool("book", {"day": "Monday"}, asker=answers)
    assert result.text == "Booked B7 for Monday."
    assert answers.messages == ["Which seat?", "Book B7 for Monday?"]
    answers.check()
    form = answers.asked[0].params.requested_schema  # type: ignore[union-attr]  # an elicitation
    assert form["properties"]["row"] == {"type": "integer"}
    assert form["required"] == ["row"]
    expected = (
        ["tools/call", "elicitation/create", "elicitation/create"]
        if cell.handshake
        else ["tools/call"] * 3
    )
    assert cell.since(start).methods() == expected


@since(R3)
async def test_every_kind_of_field(cell: Cell):
    """Strings, numbers, booleans and choices, in the words that each revision has for them
    (`ELI-08`, `ELI-09`, `ELI-10`, `ELI-11`)."""
    answers = seats(
        {
            "name": "Ada",
            "mail": "ada@example.com",
            "stars": 5,
            "weight": 1.5,
            "again": True,
            "colour": "blue",
            "size": "M",
        }
    )
    result = await cell.client.call_tool("survey", asker=answers)
    assert result.text == "Ada ada@example.com 5 1.5 True blue M"
    form = answers.asked[0].params.requested_schema  # type: ignore[union-attr]  # an elicitation
    fields = form["properties"]
    assert fields["mail"]["format"] == "email"
    assert (fields["stars"]["minimum"], fields["stars"]["maximum"]) == (1, 5)
    assert fields["colour"]["enum"] == ["blue", "red"]
    assert fields["again"]["default"] is False
    assert ("default" in fields["size"]) == (cell.revision >= R4)


@since(R4)
async def test_several_of_several(cell: Cell):
    """A choice of several values, where the revision has that (`ELI-10`)."""
    result = await cell.client.call_tool("colours", asker=seats({"value": ["red", "blue"]}))
    assert result.text == "red and blue"


@since(R3)
@pytest.mark.parametrize(
    "answer, words",
    [
        (False, "The user declined to answer: Which seat?"),
        (None, "The user dismissed the question: Which seat?"),
    ],
    ids=["decline", "cancel"],
)
async def test_declining(cell: Cell, answer: object, words: str):
    """Who declines or dismisses a question ends the tool, in words for the model (`ELI-13`,
    `ELI-14`)."""
    result = await cell.client.call_tool("book", {"day": "Monday"}, asker=seats(answer))
    assert (result.is_error, result.text) == (True, words)


@since(R3)
@pytest.mark.parametrize(
    "answer", [{"confirm": False}, False, None, {}], ids=["no", "decline", "cancel", "nothing"]
)
async def test_confirming_is_only_a_yes(cell: Cell, answer: object):
    """Anything but an accepted yes is a no (`ELI-14`)."""
    result = await cell.client.call_tool("book", {"day": "Monday"}, asker=seats({"row": 1}, answer))
    assert result.text == "Nothing was booked."


@since(R3)
async def test_answers_that_do_not_fit(cell: Cell):
    """An answer is checked against the form (`ELI-35`, `MRT-20`)."""
    with pytest.raises(McpError, match="does not fit the form") as caught:
        await cell.client.call_tool("book", {"day": "Monday"}, asker=seats({"row": "first"}))
    assert caught.value.code == t.INVALID_PARAMS


@since(R3)
async def test_asking_from_a_thread(cell: Cell):
    """A plain function asks with `ctx.wait`; defaults stand where the person leaves them (`ELI-11`,
    `ELI-12`)."""
    result = await cell.client.call_tool("book_in_thread", asker=seats({"name": "Ada"}))
    assert result.text == "Ada, 30"


@since(R3)
@pytest.mark.parametrize("how", ["gather", "group"])
async def test_questions_together(cell: Cell, how: str):
    """Questions that are asked together travel together (`MRT-03`, `MRT-12`)."""
    start = len(cell.tape)
    answers = ScriptedAnswers(elicit={"First": {"value": "Ada"}, "Last": {"value": "Lovelace"}})
    result = await cell.client.call_tool("several", {"how": how}, asker=answers)
    assert result.text == '["Ada","Lovelace"]'
    assert len(answers.asked) == 2
    calls = cell.since(start).methods("client").count("tools/call")
    assert calls == (1 if cell.handshake else 2)


@since(R3)
@pytest.mark.parametrize("how", ["gather", "group"])
async def test_one_of_two_declined(cell: Cell, how: str):
    """Where one of several questions is declined the tool ends in its words, with a task group too
    (`ELI-14`)."""
    answers = ScriptedAnswers(elicit={"First": {"value": "Ada"}, "Last": False})
    result = await cell.client.call_tool("several", {"how": how}, asker=answers)
    assert (result.is_error, result.text) == (True, "The user declined to answer: Last name?")


@since(R3)
async def test_telling_after_a_question(cell: Cell):
    """What a tool tells after a question reaches whoever made the call, by whatever request that is
    now (`PRG-03`, `LOG-06`)."""
    progress: list[float] = []
    logged: list[object] = []
    cell.client._on_log = lambda message: logged.append(message.data)
    await cell.client.set_log_level("error")
    try:
        result = await cell.client.call_tool(
            "climb_after",
            {"name": "?"},
            asker=seats({"value": 9}),
            on_progress=lambda p: progress.append(p.progress),
        )
    finally:
        cell.client._on_log = None
        await cell.client.set_log_level("info")
    assert result.text == "up"
    again = (
        not cell.handshake and not cell.suspend
    )  # a replayed tool says again what it said before the question
    assert progress == ([1, 1, 2] if again else [1, 2])
    assert logged == (["before", "before", "after"] if again else ["before", "after"])


@between(R3, R5)
async def test_giving_up_while_a_person_thinks(cell: Cell):
    """A call that is cancelled while its question is open takes the question back (`CAN-01`,
    `CAN-05`)."""
    asked = asyncio.Event()
    taken_back = asyncio.Event()

    async def think(params: t.ElicitRequestParams) -> None:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            taken_back.set()

    task = asyncio.create_task(
        cell.client.call_tool("climb_after", {"name": "given up"}, asker=Answers(elicit=think))
    )
    async with asyncio.timeout(10):
        await asked.wait()
        task.cancel()
        assert (await cell.client.call_tool("ended", {"name": "given up"})).text == "true"
        await taken_back.wait()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()


@since(R4)
async def test_pages_to_visit(cell: Cell):
    """A page to visit; with an id of its own in the revision that wants it, and in no other
    (`ELI-17`, `ELI-18`, `ELI-19`)."""
    answers = seats(True)
    assert (await cell.client.call_tool("visit", asker=answers)).text == "visited"
    asked = answers.asked[0].params
    assert isinstance(asked, t.ElicitRequestParams)
    assert (asked.mode, asked.url, asked.requested_schema) == (
        "url",
        "https://example.com/sign-in",
        None,
    )
    assert (asked.elicitation_id is not None) == (cell.revision == R4)


@since(R4)
async def test_pages_not_visited(cell: Cell):
    """Who will not visit the page ends the tool (`ELI-14`)."""
    result = await cell.client.call_tool("visit", asker=seats(False))
    assert (result.is_error, result.text) == (
        True,
        "The user declined to answer: Please sign in.",
    )


@since(R3)
async def test_what_must_not_happen_twice(cell: Cell):
    """What goes through `ctx.once` happens once, though a replayed tool runs again from the top
    (`MRT-24`)."""
    name = f"charge {len(cell.tape)}"
    result = await cell.client.call_tool(
        "charge", {"name": name}, asker=seats({"value": True}, {"value": True})
    )
    replayed = not cell.handshake and not cell.suspend
    assert result.text == f"[1,1,{3 if replayed else 1}]"


async def test_sampling(cell: Cell):
    """The client's model is asked, in every revision (`SAM-03`, `SAM-04`, `SAM-05`)."""
    answers = ScriptedAnswers(sample=["Forty-two."])
    result = await cell.client.call_tool("ponder", {"question": "Why?"}, asker=answers)
    assert result.text == "unknown: Forty-two."
    params = answers.asked[0].params
    assert isinstance(params, t.CreateMessageRequestParams)
    assert (params.max_tokens, params.system_prompt, params.temperature) == (50, "Be brief.", 0.5)
    assert params.messages == [t.SamplingMessage(role="user", content=t.TextContent("Why?"))]


@before(R5)
async def test_sampling_refused(cell: Cell):
    """A person who refuses ends the tool in words for the model (`ERR-17`, `SAM-07`)."""
    refusal = ScriptedAnswers(sample=[McpError(t.USER_REJECTED, "Not today.")])
    result = await cell.client.call_tool("ponder", {"question": "Why?"}, asker=refusal)
    assert (result.is_error, result.text) == (True, "The person refused: Not today.")


@since(R5)
async def test_sampling_refused_at_the_client(cell: Cell):
    """The newest revision has no word for a refusal: the call ends at the client, and nothing more
    is sent (`SAM-04`)."""
    refusal = ScriptedAnswers(sample=[McpError(t.USER_REJECTED, "Not today.")])
    start = len(cell.tape)
    with pytest.raises(McpError, match="Not today") as caught:
        await cell.client.call_tool("ponder", {"question": "Why?"}, asker=refusal)
    assert caught.value.code == t.USER_REJECTED
    assert cell.since(start).methods("client") == ["tools/call"]


@since(R4)
async def test_sampling_with_tools(cell: Cell):
    """Tools travel with a sampling request where the revision has that (`SAM-12`, `SAM-16`)."""
    use = t.CreateMessageResult(
        role="assistant",
        content=[
            t.TextContent("Let me see."),
            t.ToolUseContent(id="1", name="add", input={"a": 2, "b": 3}),
        ],
        model="small",
        stop_reason="toolUse",
    )
    answers = ScriptedAnswers(sample=[use])
    assert (
        await cell.client.call_tool("ponder_with_tools", asker=answers)
    ).text == "toolUse: ['TextContent', 'ToolUseContent']"
    params = answers.asked[0].params
    assert isinstance(params, t.CreateMessageRequestParams)
    assert [tool.name for tool in params.tools or ()] == ["add"]


async def test_roots(cell: Cell, tmp_path):
    """The client's folders, in every revision (`ROO-01`, `ROO-04`, `ROO-05`)."""
    answers = ScriptedAnswers(roots=[tmp_path, "file:///elsewhere"])
    result = await cell.client.call_tool("folders", asker=answers)
    assert result.text == f'["{tmp_path.as_uri()}","file:///elsewhere"]'


async def test_roots_that_change(cell: Cell):
    """A change of the roots is told where the era has a word for it, and to no other server
    (`ROO-02`)."""
    start = len(cell.tape)
    cell.client.roots_changed()
    await cell.client.ping()
    told = "notifications/roots/list_changed" in cell.since(start).methods("client")
    assert told == cell.handshake


@since(R3)
async def test_prompts_and_resources_that_ask(cell: Cell):
    """Prompts and resources ask as tools do (`MRT-01`, `PRM-09`, `RES-16`)."""
    written = await cell.client.get_prompt("curious", asker=seats({"value": "tides"}))
    assert written.messages[0].content == t.TextContent("Explain tides.")
    read = await cell.client.read_resource("book://12/ask", asker=seats({"value": "Ada"}))
    assert read.contents[0].text == "Ada reads page 12"
    with pytest.raises(McpError, match="declined"):
        await cell.client.get_prompt("curious", asker=seats(False))


@since(R3)
async def test_questions_written_by_hand(cell: Cell):
    """A result that says what is needed works in the older revisions too, where it is asked on the
    tool's behalf (`TOL-22`, `MRT-02`)."""
    result = await cell.client.call_tool("by_hand", asker=seats({"name": "Ada"}))
    assert result.text == "Ada (asked once)"


# -- where nobody can be asked ---------------------------------------------------------------------

ASKING = [
    ("book", {"day": "Monday"}, "elicitation"),
    ("book_in_thread", {}, "elicitation"),
    ("several", {"how": "gather"}, "elicitation"),
    ("several", {"how": "group"}, "elicitation"),
    ("visit", {}, "elicitation"),
    ("by_hand", {}, "elicitation"),
    ("ponder", {"question": "Why?"}, "sampling"),
    ("ponder_with_tools", {}, "sampling"),
    ("folders", {}, "roots"),
]


@before(R5)
@pytest.mark.parametrize("tool, arguments, capability", ASKING)
async def test_clients_that_cannot_be_asked(
    cell: Cell, tool: str, arguments: dict, capability: str
):
    """Who has declared nothing is asked nothing, and the call fails closed, in words for the model
    (`LIF-17`, `ELI-03`, `SAM-03`)."""
    result = await (await cell.bare()).call_tool(tool, arguments)
    assert result.is_error
    assert capability in result.text


@since(R5)
@pytest.mark.parametrize("tool, arguments, capability", ASKING)
async def test_requests_that_cannot_be_asked(
    cell: Cell, tool: str, arguments: dict, capability: str
):
    """The same in the newest revision, where it is an error of its own that says what is lacking
    (`ERR-08`, `MRT-05`, `STA-17`)."""
    with pytest.raises(McpError, match=capability) as caught:
        await (await cell.bare()).call_tool(tool, arguments)
    assert caught.value.code == t.MISSING_CLIENT_CAPABILITY
    assert capability in caught.value.data["requiredCapabilities"]


@before(R4)
@pytest.mark.parametrize(
    "tool, capability", [("visit", "elicitation"), ("ponder_with_tools", "sampling.tools")]
)
async def test_questions_younger_than_the_revision(cell: Cell, tool: str, capability: str):
    """What the revision does not know is not asked, whatever the client could do (`LIF-12`,
    `LIF-16`)."""
    answers = ScriptedAnswers(elicit=[True], sample=["Yes."])
    result = await cell.client.call_tool(tool, asker=answers)
    assert result.is_error
    assert capability in result.text
    assert answers.asked == []


@before(R3)
@pytest.mark.parametrize(
    "tool, arguments", [("book", {"day": "Monday"}), ("several", {"how": "group"}), ("by_hand", {})]
)
async def test_forms_before_there_were_any(cell: Cell, tool: str, arguments: dict):
    """Revisions without elicitation: nobody is asked, and the call fails closed (`LIF-12`)."""
    answers = seats({}, {})
    result = await cell.client.call_tool(tool, arguments, asker=answers)
    assert result.is_error
    assert "elicitation" in result.text
    assert answers.asked == []


async def test_prompts_that_cannot_ask(cell: Cell):
    """The same for prompts and resources, whose misfortunes are always errors."""
    client = await cell.bare()
    for work in (client.get_prompt("curious"), client.read_resource("book://1/ask")):
        with pytest.raises(McpError, match="elicitation") as caught:
            await work
        assert caught.value.code == (
            t.INVALID_REQUEST if cell.handshake else t.MISSING_CLIENT_CAPABILITY
        )
