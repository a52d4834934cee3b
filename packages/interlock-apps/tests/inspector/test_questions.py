"""Who answers a question: rules by their conditions, a model, the limits, and recorded answers of
both forms.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from interlock import McpError
from interlock.models.scripted import Scripted
from interlock.tape import TapeFile
from interlock.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestParams,
    ElicitResult,
    SamplingMessage,
    TextContent,
)
from interlock_apps.inspector.model_replies import ModelReplies
from interlock_apps.inspector.questions import (
    MOST_OPEN,
    AnswerRule,
    ConnectionQuestions,
    GivenAnswer,
)
from interlock_apps.inspector.recorded_answers import RecordedAnswers

SCHEMA = {
    "type": "object",
    "properties": {
        "size": {"type": "string", "enum": ["S", "L"]},
        "gift": {"type": "boolean", "default": False},
    },
    "required": ["size"],
}
FORM = ElicitRequestParams(message="Which size?", requested_schema=SCHEMA)
SAMPLE = CreateMessageRequestParams(
    messages=[SamplingMessage(role="user", content=TextContent("Which is best?"))], max_tokens=100
)


def questions(**options: Any) -> ConnectionQuestions:
    return ConnectionQuestions("shop", lambda event: None, **options)


async def elicited(of: ConnectionQuestions, params: ElicitRequestParams, tool: str = "") -> Any:
    return await of.answers_for("c1", tool).ask(ElicitRequest(params))


async def sampled(of: ConnectionQuestions) -> Any:
    return await of.answers_for("c1", "").ask(CreateMessageRequest(SAMPLE))


@pytest.mark.parametrize(
    "rule, fits",
    [
        (AnswerRule("decline"), True),
        (AnswerRule("decline", method="elicitation/create"), True),
        (AnswerRule("decline", method="sampling/createMessage"), False),
        (AnswerRule("decline", tool="order"), True),
        (AnswerRule("decline", tool="orders"), False),
        (AnswerRule("decline", message="which SIZE"), True),
        (AnswerRule("decline", message="colour"), False),
    ],
)
def test_the_conditions_of_a_rule(rule: AnswerRule, fits: bool) -> None:
    assert rule.fits("elicitation/create", "order", "Which size?") is fits


async def test_a_rule_sends_its_values_and_the_defaults() -> None:
    of = questions()
    of.set_rules([AnswerRule("accept", content={"size": "L"})])
    assert await elicited(of, FORM) == ElicitResult(
        action="accept", content={"size": "L", "gift": False}
    )


async def test_a_rule_that_does_not_fit_leaves_the_question_to_the_user() -> None:
    of = questions()
    of.set_rules([AnswerRule("accept", content={"size": "XL"})])
    asking = asyncio.create_task(elicited(of, FORM))
    await asyncio.sleep(0)
    (question,) = of.state()
    assert "size" in question["problem"]
    await of.give(question["id"], GivenAnswer("send", content={"size": "XL"}, unchecked=True))
    assert (await asking).content == {"size": "XL"}


async def test_a_model_answers_sampling_and_fills_in_forms() -> None:
    model = Scripted("The first.", 'Here: {"size": "S"}', "I do not know.")
    stirred = asyncio.Event()
    replies = ModelReplies(lambda: [model])
    of = ConnectionQuestions("shop", lambda event: stirred.set(), replies=replies)
    of.set_rules([AnswerRule("model")])
    assert (await sampled(of)).text == "The first."
    assert (await elicited(of, FORM)).content == {"size": "S"}
    asking = asyncio.create_task(elicited(of, FORM))
    stirred.clear()
    await stirred.wait()
    (question,) = of.state()
    assert "JSON object" in question["problem"]
    of.cancel()
    with pytest.raises(McpError):
        await asking


async def test_without_a_model_the_user_is_asked() -> None:
    def none() -> Any:
        raise ValueError("No model is configured.")

    of = questions(replies=ModelReplies(none))
    assert ModelReplies(none).names() == []
    of.set_rules([AnswerRule("model")])
    asking = asyncio.create_task(sampled(of))
    await asyncio.sleep(0)
    (question,) = of.state()
    assert "No model is configured." in question["problem"]
    await of.give(question["id"], GivenAnswer("send", text="The second."))
    assert (await asking).text == "The second."


async def test_questions_beyond_the_limit_are_cancelled() -> None:
    of = questions()
    waiting = [asyncio.create_task(elicited(of, FORM)) for _ in range(MOST_OPEN)]
    await asyncio.sleep(0)
    assert len(of.state()) == MOST_OPEN
    assert (await elicited(of, FORM)).action == "cancel"
    of.cancel()
    done = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(one, McpError) for one in done)
    assert of.state() == []


async def test_a_form_that_cannot_be_shown_is_answered_with_json() -> None:
    nested = {"type": "object", "properties": {"a": {"type": "object"}}}
    of = questions()
    params = ElicitRequestParams(message="?", requested_schema=nested)
    asking = asyncio.create_task(elicited(of, params))
    await asyncio.sleep(0)
    (question,) = of.state()
    assert question["fields"] == []
    assert "Answer with JSON" in question["words"]
    given = GivenAnswer("send", content={"a": {"b": 1}}, unchecked=True)
    await of.give(question["id"], given)
    assert (await asking).content == {"a": {"b": 1}}


OLDER = """{"tape": 1}
{"at": 0.1, "connection": "1", "server": {"jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": {"mode": "form", "message": "Which size?", "requestedSchema": {"type": "object", "properties": {"size": {"type": "string"}}}, "_meta": {"x": 1}}}}
{"at": 0.2, "connection": "1", "client": {"jsonrpc": "2.0", "id": 5, "result": {"action": "accept", "content": {"size": "L"}}}}
"""  # noqa: E501 - a line of a tape is one message
NEWER = """{"tape": 1}
{"at": 0.1, "connection": "1", "client": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "order"}}}
{"at": 0.2, "connection": "1", "server": {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "input_required", "inputRequests": {"k": {"method": "elicitation/create", "params": {"message": "Which size?", "requestedSchema": {"type": "object", "properties": {"size": {"type": "string"}}}}}}}}}
{"at": 0.3, "connection": "1", "client": {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "order", "inputResponses": {"k": {"action": "accept", "content": {"size": "L"}}}}}}
"""  # noqa: E501 - a line of a tape is one message


@pytest.mark.parametrize("text", [OLDER, NEWER], ids=["2025-11-25", "2026-07-28"])
def test_the_recorded_answer_to_the_same_question(text: str, tmp_path: Path) -> None:
    path = tmp_path / "old.tape"
    path.write_text(text, encoding="utf-8")
    schema = {"type": "object", "properties": {"size": {"type": "string"}}}
    same = ElicitRequestParams(message="Which size?", requested_schema=schema)
    other = ElicitRequestParams(message="Which colour?", requested_schema=schema)
    with TapeFile(path) as tape:
        answers = RecordedAnswers(tape)
        found = answers.find("elicitation/create", same)
        assert found == {"action": "accept", "content": {"size": "L"}}
        assert answers.find("elicitation/create", other) is None
        assert answers.find("sampling/createMessage", SAMPLE) is None
