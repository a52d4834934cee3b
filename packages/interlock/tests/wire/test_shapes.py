"""The few changes of shape between revisions, each as a table of before and after."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import msgspec
import pytest

from interlock import types as t
from interlock.wire.codec import encode
from interlock.wire.revisions import REVISIONS

R1, R2, R3, R4, R5 = REVISIONS
TEXT = t.TextContent("words")
PICTURE = t.ImageContent(data="AAAA", mime_type="image/png")


def written(value: Any, revision: str) -> Any:
    return json.loads(encode(value, revision))


@dataclasses.dataclass
class Point:
    x: int


class Place(msgspec.Struct):
    x: int


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "data, is_object",
    [({}, True), ({"a": 1}, True), (Point(1), True), (Place(1), True), ([1], False), (None, False)],
)
def test_structured_content_is_an_object_before_the_newest(
    data: Any, is_object: bool, revision: str
) -> None:
    """Older clients get none rather than one that their schema forbids, and before 2025-06-18 there
    is none at all (`TOL-06`).
    """
    said = written(t.CallToolResult(content=[TEXT], structured_content=data), revision)
    assert ("structuredContent" in said) == (revision == R5 or (revision >= R3 and is_object))
    assert said["content"] == [{"type": "text", "text": "words"}]


@pytest.mark.parametrize("data", ["a", 1, 1.5, True, b"x", (1,), {1}, frozenset({1})], ids=repr)
def test_no_scalar_and_no_list_is_an_object(data: Any) -> None:
    """Whatever Python has that becomes something other than a JSON object (`TOL-06`)."""
    assert "structuredContent" not in written(
        t.CallToolResult(content=[], structured_content=data), R4
    )
    assert "structuredContent" in written(t.CallToolResult(content=[], structured_content=data), R5)


@pytest.mark.parametrize(
    "schema, kept_before",
    [({"type": "object"}, True), ({"type": "array"}, False), ({"anyOf": []}, False)],
)
def test_an_output_schema_describes_an_object_before_the_newest(
    schema: dict[str, Any], kept_before: bool
) -> None:
    """(`TOL-06`, `TOL-07`)"""
    tool = t.Tool(name="a", input_schema={"type": "object"}, output_schema=schema)
    assert [("outputSchema" in written(tool, r)) for r in REVISIONS] == [
        False,
        False,
        kept_before,
        kept_before,
        True,
    ]


def test_a_sampling_message_holds_one_block_before_2025_11_25() -> None:
    """A message of several blocks becomes several messages of the same role, in order
    (`SAM-11`).
    """
    params = t.CreateMessageRequestParams(
        max_tokens=1,
        messages=[
            t.SamplingMessage(role="user", content=[TEXT, PICTURE]),
            t.SamplingMessage(role="assistant", content=TEXT),
        ],
    )
    flat = [(m["role"], m["content"]["type"]) for m in written(params, R3)["messages"]]
    assert flat == [("user", "text"), ("user", "image"), ("assistant", "text")]
    assert [type(m["content"]) for m in written(params, R4)["messages"]] == [list, dict]


ANSWERS: list[tuple[Any, dict[str, Any]]] = [
    (TEXT, {"type": "text", "text": "words"}),
    ([TEXT], {"type": "text", "text": "words"}),
    ([TEXT, PICTURE, t.TextContent("more")], {"type": "text", "text": "words\nmore"}),
    ([PICTURE, PICTURE], {"type": "image", "data": "AAAA", "mimeType": "image/png"}),
    (
        [t.ToolUseContent(id="1", name="add", input={})],
        {"type": "text", "text": "[the model asked for the tool add]"},
    ),
    ([], {"type": "text", "text": ""}),
]


@pytest.mark.parametrize("content, before", ANSWERS, ids=range(len(ANSWERS)))
def test_a_models_answer_is_one_block_before_2025_11_25(
    content: Any, before: dict[str, Any]
) -> None:
    """Texts are joined, else the first block stands for all (`SAM-11`)."""
    answer = t.CreateMessageResult(role="assistant", model="m", content=content)
    assert written(answer, R3)["content"] == before
    assert isinstance(written(answer, R4)["content"], list) == isinstance(content, list)


STRANGERS: list[tuple[Any, str, str]] = [
    # a block, the first revision that knows it, and the words that stand in before
    (t.AudioContent(data="A" * 400, mime_type="audio/wav"), R2, "[audio, audio/wav, 300 bytes]"),
    (t.ResourceLink(uri="x:y", name="n"), R3, "[resource n: x:y]"),
    (t.ResourceLink(uri="x:y", name="n", title="The N"), R3, "[resource The N: x:y]"),
]


@pytest.mark.parametrize("block, since, words", STRANGERS, ids=[words for _, _, words in STRANGERS])
def test_words_stand_in_for_a_block_that_a_revision_does_not_know(
    block: Any, since: str, words: str
) -> None:
    """In a tool's result and in a prompt: nothing is lost without a trace."""
    for revision in REVISIONS:
        said = written(t.CallToolResult(content=[TEXT, block]), revision)["content"][1]
        shown = written(
            t.GetPromptResult(messages=[t.PromptMessage(role="user", content=block)]), revision
        )["messages"][0]["content"]
        assert said == shown
        assert (said == {"type": "text", "text": words}) == (revision < since)


def test_words_stand_in_for_tools_in_sampling_before_2025_11_25() -> None:
    """A tool's result becomes its text (`SAM-11`)."""
    result = t.ToolResultContent(tool_use_id="1", content=[TEXT, PICTURE, t.TextContent("more")])
    params = t.CreateMessageRequestParams(
        max_tokens=1, messages=[t.SamplingMessage(role="user", content=[result])]
    )
    assert written(params, R3)["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "words\nmore"}}
    ]
    assert written(params, R4)["messages"][0]["content"][0]["type"] == "tool_result"


CHOICE = {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b"}], "default": "a"}
FORMS: list[tuple[Any, Any]] = [
    ({"type": "boolean", "default": True}, {"type": "boolean", "default": True}),
    ({"type": "string", "default": "x", "minLength": 1}, {"type": "string", "minLength": 1}),
    ({"type": "number", "default": 0}, {"type": "number"}),
    (CHOICE, {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "b"]}),
    ({"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["a"]}),
    (True, True),
]


@pytest.mark.parametrize("field, before", FORMS, ids=range(len(FORMS)))
def test_2025_06_18_knows_fewer_forms(field: Any, before: Any) -> None:
    """Defaults for booleans only, choices by enum and enumNames (`ELI-09`); newer revisions get the
    form as it is (`ELI-10`, `ELI-11`).
    """
    schema = {"type": "object", "properties": {"f": field}, "required": ["f"]}
    params = t.ElicitRequestParams(message="?", requested_schema=schema)
    assert written(params, R3)["requestedSchema"] == {
        "type": "object",
        "properties": {"f": before},
        "required": ["f"],
    }
    for revision in (R4, R5):
        assert written(params, revision)["requestedSchema"] == schema
    assert schema["properties"]["f"] is field


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"properties": None},
        {"properties": []},
        {"properties": {"f": {"oneOf": "x"}}},
    ],
    ids=repr,
)
def test_a_form_that_is_none_does_not_break_the_writer(schema: dict[str, Any]) -> None:
    """Raw forms are the author's own; what makes no sense is passed on for the client to refuse."""
    params = t.ElicitRequestParams(message="?", requested_schema=schema)
    assert written(params, R3)["message"] == "?"


@pytest.mark.parametrize("choices", [[], ["a"], [1, None], [{}]], ids=repr)
def test_choices_that_are_none_do_not_break_the_writer(choices: list[Any]) -> None:
    """The same for code under `oneOf`."""
    schema = {"type": "object", "properties": {"f": {"type": "string", "oneOf": choices}}}
    said = written(t.ElicitRequestParams(message="?", requested_schema=schema), R3)
    assert set(said["requestedSchema"]["properties"]["f"]) <= {"type", "oneOf", "enum", "enumNames"}
