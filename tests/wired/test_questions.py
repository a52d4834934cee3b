"""Questions over every cell of the matrix: the same tool asks straight, parked or replayed, and never goes on without an answer."""

from __future__ import annotations

import pytest

from interlock import McpError, ToolError
from interlock import types as t
from interlock.testing import ScriptedAnswers
from interlock.wire.revisions import R2, R3, R4

from .cells import Cell

pytestmark = pytest.mark.asyncio(loop_scope="session")


def seats(*answers: object) -> ScriptedAnswers:
    """Answers to elicitations, in order."""
    return ScriptedAnswers(elicit=answers)


async def unanswerable(cell: Cell, tool: str, arguments: dict | None, answers: ScriptedAnswers, capability: str) -> bool:
    """Where the revision does not know the question: the call fails closed, and nobody was asked (`LIF-17`, `ERR-08`)."""
    result = await cell.client.call_tool(tool, arguments, asker=answers)
    assert result.is_error
    assert capability in result.text
    assert answers.asked == []
    return True


async def test_a_form_and_a_yes(cell: Cell):
    """One tool, two questions, one result: the answers arrive as typed values (`ELI-04`, `ELI-05`, `ELI-06`, `MRT-11`)."""
    answers = seats({"row": 7, "letter": "B"}, {"confirm": True})
    if cell.revision < R3:
        await unanswerable(cell, "book", {"day": "Monday"}, answers, "elicitation")
        return
    start = len(cell.tape)
    result = await cell.client.call_tool("book", {"day": "Monday"}, asker=answers)
    assert result.text == "Booked B7 for Monday."
    assert answers.messages == ["Which seat?", "Book B7 for Monday?"]
    answers.check()
    form = answers.asked[0].params.requested_schema  # type: ignore[union-attr]  # an elicitation
    assert form["properties"]["row"] == {"type": "integer"}
    assert form["required"] == ["row"]
    methods = cell.since(start).methods()
    if cell.handshake:
        assert methods == ["tools/call", "elicitation/create", "elicitation/create"]
    else:
        assert methods == ["tools/call"] * 3


@pytest.mark.parametrize(
    "answers, words",
    [
        ([False], "The person declined to answer: Which seat?"),
        ([None], "The person dismissed the question: Which seat?"),
    ],
)
async def test_declining(cell: Cell, answers: list, words: str):
    """Who declines or dismisses a question ends the tool, in words for the model (`ELI-13`, `ELI-14`)."""
    if cell.revision >= R3:
        result = await cell.client.call_tool("book", {"day": "Monday"}, asker=seats(*answers))
        assert (result.is_error, result.text) == (True, words)


@pytest.mark.parametrize("answer", [{"confirm": False}, False, None, {}])
async def test_confirming_is_only_a_yes(cell: Cell, answer: object):
    """Anything but an accepted yes is a no (`ELI-14`)."""
    if cell.revision >= R3:
        result = await cell.client.call_tool("book", {"day": "Monday"}, asker=seats({"row": 1}, answer))
        assert result.text == "Nothing was booked."


async def test_answers_that_do_not_fit(cell: Cell):
    """An answer is checked against the form (`ELI-35`, `MRT-20`)."""
    if cell.revision >= R3:
        with pytest.raises(McpError, match="does not fit the form") as caught:
            await cell.client.call_tool("book", {"day": "Monday"}, asker=seats({"row": "first"}))
        assert caught.value.code == t.INVALID_PARAMS


async def test_asking_from_a_thread(cell: Cell):
    """A plain function asks with `ctx.wait`; defaults stand where the person leaves them (`ELI-11`, `ELI-12`)."""
    if cell.revision < R3:
        return
    result = await cell.client.call_tool("book_in_thread", asker=seats({"name": "Ada"}))
    assert result.text == "Ada, 30"


@pytest.mark.parametrize("how", ["gather", "group"])
async def test_questions_together(cell: Cell, how: str):
    """Questions that are asked together travel together (`MRT-03`, `MRT-12`)."""
    if cell.revision < R3:
        return
    start = len(cell.tape)
    answers = ScriptedAnswers(elicit={"First": {"value": "Ada"}, "Last": {"value": "Lovelace"}})
    result = await cell.client.call_tool("several", {"how": how}, asker=answers)
    assert result.text == '["Ada","Lovelace"]'
    assert len(answers.asked) == 2
    calls = cell.since(start).methods("client").count("tools/call")
    assert calls == (1 if cell.handshake else 2)


async def test_one_of_two_declined(cell: Cell):
    """Where one of several questions is declined the tool ends in its words, with a task group too."""
    if cell.revision < R3:
        return
    for how in ("gather", "group"):
        answers = ScriptedAnswers(elicit={"First": {"value": "Ada"}, "Last": False})
        result = await cell.client.call_tool("several", {"how": how}, asker=answers)
        assert (result.is_error, result.text) == (True, "The person declined to answer: Last name?")


async def test_pages_to_visit(cell: Cell):
    """A page to visit, where the revision has that; with an id of its own only in the one that wants it (`ELI-17`, `ELI-18`, `ELI-19`)."""
    answers = seats(True)
    if cell.revision < R4:
        await unanswerable(cell, "visit", None, answers, "elicitation")
        return
    assert (await cell.client.call_tool("visit", asker=answers)).text == "visited"
    asked = answers.asked[0].params
    assert isinstance(asked, t.ElicitRequestParams)
    assert (asked.mode, asked.url, asked.requested_schema) == ("url", "https://example.com/sign-in", None)
    assert (asked.elicitation_id is not None) == (cell.revision == R4)


async def test_what_must_not_happen_twice(cell: Cell):
    """What goes through `ctx.once` happens once, though a replayed tool runs again from the top (`MRT-24`)."""
    if cell.revision < R3:
        return
    name = f"charge {len(cell.tape)}"
    result = await cell.client.call_tool("charge", {"name": name}, asker=seats({"value": True}, {"value": True}))
    replayed = not cell.handshake and not cell.park
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


async def test_sampling_refused(cell: Cell):
    """A person who refuses ends the tool in words for the model (`ERR-17`, `SAM-07`)."""
    refusal = ScriptedAnswers(sample=[McpError(t.USER_REJECTED, "Not today.")])
    if cell.handshake:
        result = await cell.client.call_tool("ponder", {"question": "Why?"}, asker=refusal)
        assert (result.is_error, result.text) == (True, "The person refused: Not today.")
    else:
        with pytest.raises(McpError, match="Not today"):  # nothing was said to the server: the call ends at the client
            await cell.client.call_tool("ponder", {"question": "Why?"}, asker=refusal)


async def test_sampling_with_tools(cell: Cell):
    """Tools travel with a sampling request where the revision has that; else the call fails closed (`SAM-12`, `SAM-16`)."""
    use = t.CreateMessageResult(
        role="assistant",
        content=[t.TextContent("Let me see."), t.ToolUseContent(id="1", name="add", input={"a": 2, "b": 3})],
        model="small",
        stop_reason="toolUse",
    )
    answers = ScriptedAnswers(sample=[use])
    if cell.revision < R4:
        await unanswerable(cell, "ponder_with_tools", None, answers, "sampling.tools")
        return
    assert (await cell.client.call_tool("ponder_with_tools", asker=answers)).text == "toolUse: ['TextContent', 'ToolUseContent']"
    params = answers.asked[0].params
    assert isinstance(params, t.CreateMessageRequestParams)
    assert [tool.name for tool in params.tools or ()] == ["add"]


async def test_roots(cell: Cell, tmp_path):
    """The client's folders, in every revision (`ROO-01`, `ROO-04`, `ROO-05`)."""
    answers = ScriptedAnswers(roots=[tmp_path, "file:///elsewhere"])
    result = await cell.client.call_tool("folders", asker=answers)
    assert result.text == f'["{tmp_path.as_uri()}","file:///elsewhere"]'


async def test_prompts_and_resources_that_ask(cell: Cell):
    """Prompts and resources ask as tools do (`MRT-01`, `PRM-09`, `RES-16`)."""
    if cell.revision < R3:
        return
    written = await cell.client.get_prompt("curious", asker=seats({"value": "tides"}))
    assert written.messages[0].content == t.TextContent("Explain tides.")
    read = await cell.client.read_resource("book://12/ask", asker=seats({"value": "Ada"}))
    assert read.contents[0].text == "Ada reads page 12"
    with pytest.raises(McpError, match="declined"):
        await cell.client.get_prompt("curious", asker=seats(False))


async def test_questions_written_by_hand(cell: Cell):
    """A result that says what is needed works in the older revisions too, where it is asked on the tool's behalf (`TOL-22`, `MRT-02`)."""
    if cell.revision < R3:
        return
    result = await cell.client.call_tool("by_hand", asker=seats({"name": "Ada"}))
    assert result.text == "Ada (asked once)"


@pytest.mark.parametrize(
    "tool, arguments, capability",
    [
        ("book", {"day": "Monday"}, "elicitation"),
        ("book_in_thread", {}, "elicitation"),
        ("several", {"how": "group"}, "elicitation"),
        ("visit", {}, "elicitation"),
        ("by_hand", {}, "elicitation"),
        ("ponder", {"question": "Why?"}, "sampling"),
        ("folders", {}, "roots"),
    ],
)
async def test_clients_that_cannot_be_asked(cell: Cell, tool: str, arguments: dict, capability: str):
    """A client that has declared nothing is asked nothing, and the call fails closed: an error of its own in the newest revision, else words (`LIF-17`, `ERR-08`, `MRT-05`, `ELI-03`, `STA-17`)."""
    client = await cell.bare()
    if cell.handshake:
        result = await client.call_tool(tool, arguments)
        assert result.is_error
        assert capability in result.text
    else:
        with pytest.raises(McpError, match=capability) as caught:
            await client.call_tool(tool, arguments)
        assert caught.value.code == t.MISSING_CLIENT_CAPABILITY
        assert capability in caught.value.data["requiredCapabilities"]


async def test_prompts_that_cannot_ask(cell: Cell):
    """The same for prompts and resources, whose misfortunes are always errors."""
    client = await cell.bare()
    for work in (client.get_prompt("curious"), client.read_resource("book://1/ask")):
        with pytest.raises(McpError, match="elicitation") as caught:
            await work
        assert caught.value.code == (t.INVALID_REQUEST if cell.handshake else t.MISSING_CLIENT_CAPABILITY)


async def test_script_errors_reach_the_caller(cell: Cell):
    """An answer that fails at the client is an error, not an answer."""
    if cell.revision < R2:
        return
    with pytest.raises((McpError, ToolError)):
        (await cell.client.call_tool("ponder", {"question": "Why?"}, asker=ScriptedAnswers(sample=[]))).value()
