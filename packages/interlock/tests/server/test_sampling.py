"""ctx.sample: typed answers with retries, and a fallback model where the client has none."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import pytest

from interlock import Client, Context, McpError, QuestionSettings, Server
from interlock import types as t
from interlock.client.answers import Answers, check_tool_turns
from interlock.server.calls.sampling import AnswerType, BadAnswer
from interlock.testing import EVERY_WAY, Way, connect
from interlock.wire.revisions import REVISIONS
from tests.workers.neighbours import neighbours

ways = pytest.mark.parametrize("way", EVERY_WAY, ids=str)


@dataclass
class Dish:
    """What is cooked."""

    name: str
    minutes: int


RIGHT = '{"name":"Soup","minutes":20}'
WRONG = '{"name":"Soup","minutes":"long"}'


class Model:
    """A client's or a server's model: says what it was given, in order, and keeps what it was
    asked.
    """

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[t.CreateMessageRequestParams] = []

    async def __call__(self, params: t.CreateMessageRequestParams) -> Any:
        check_tool_turns(params.messages)
        self.asked.append(params)
        return self.answers.pop(0)


def said(*content: t.SamplingContent, stop: str = "endTurn") -> t.CreateMessageResult:
    """A message of a model."""
    blocks: Any = list(content) if len(content) > 1 else content[0]
    return t.CreateMessageResult(role="assistant", content=blocks, model="m", stop_reason=stop)


def use(id: str, **arguments: Any) -> t.CreateMessageResult:
    """A message that calls the tool of the answer."""
    return said(t.ToolUseContent(id=id, name="answer", input=arguments), stop="toolUse")


def cook(**options: Any) -> Server:
    """A server that lets a model choose a dish; `runs` counts how often its tool began."""
    server = Server("cook", **options)
    server.runs = []  # type: ignore[attr-defined]  # for the tests only

    @server.tool
    async def choose(ctx: Context) -> str:
        server.runs.append(1)  # type: ignore[attr-defined]  # as above
        dish = await ctx.sample("Choose a dish.", result_type=Dish, system="Be brief.")
        assert isinstance(dish, Dish)
        return f"{dish.name}, {dish.minutes} minutes"

    @server.tool
    async def words(ctx: Context) -> str:
        text = await ctx.sample("Say something.", result_type=str)
        whole = await ctx.sample("Say something else.")
        return f"{text} {whole.text}"

    @server.tool
    async def careful(ctx: Context) -> str:
        answer = await ctx.sample("Choose.", result_type=str)
        sure = await ctx.confirm(f"{answer}?")
        again = await ctx.sample("Choose.", result_type=str)
        return f"{answer} {sure} {again}"

    return server


async def choose(client: Client) -> t.CallToolResult:
    """The outcome of the tool that asks for a dish."""
    return await client.call_tool("choose")


# Typed answers.


@ways
async def test_a_typed_answer_in_text(way: Way):
    """A client whose model takes no tools is told the schema, and its words are read."""
    model = Model(f"Here you are:\n```json\n{RIGHT}\n```")
    answers = Answers(sample=model, tools=False)
    async with connect(
        cook(), revision=way.revision, suspend=way.suspend, answers=answers
    ) as client:
        assert (await choose(client)).text == "Soup, 20 minutes"
    (asked,) = model.asked
    assert asked.tools is None
    assert asked.system_prompt is not None
    assert asked.system_prompt.startswith("Be brief.\n\nAnswer with one JSON object")
    schema = json.loads(asked.system_prompt.rpartition("\n\n")[2])
    assert schema["required"] == ["name", "minutes"]


@pytest.mark.parametrize("way", [w for w in EVERY_WAY if w.revision >= REVISIONS[3]], ids=str)
async def test_a_typed_answer_by_tool(way: Way):
    """A model that takes tools is made to call one; what is wrong with its arguments is told as
    that call's result.
    """
    model = Model(use("1", name="Soup"), use("2", name="Soup", minutes=20))
    async with connect(
        cook(), revision=way.revision, suspend=way.suspend, answers=Answers(sample=model)
    ) as client:
        assert (await choose(client)).text == "Soup, 20 minutes"
    first, second = model.asked
    assert first.tool_choice == t.ToolChoice(mode="required")
    assert [tool.name for tool in first.tools or ()] == ["answer"]
    assert first.system_prompt == "Be brief."
    result = second.messages[-1].content
    assert isinstance(result, list)
    assert isinstance(result[0], t.ToolResultContent)
    assert (result[0].tool_use_id, result[0].is_error) == ("1", True)
    assert "minutes" in result[0].content[0].text  # type: ignore[union-attr]  # it is text


@ways
@pytest.mark.parametrize("wrong", ["I do not know.", "{", WRONG, "", '["a"]'])
async def test_a_model_may_try_again(way: Way, wrong: str):
    """It is told what was wrong, and asked twice more at the most."""
    model = Model(wrong, wrong, RIGHT)
    answers = Answers(sample=model, tools=False)
    async with connect(
        cook(), revision=way.revision, suspend=way.suspend, answers=answers
    ) as client:
        assert (await choose(client)).text == "Soup, 20 minutes"
    assert [len(asked.messages) for asked in model.asked] == [1, 3, 5]
    told = model.asked[1].messages[-1]
    assert told.role == "user"
    assert "not the answer that was asked for" in told.content.text  # type: ignore[union-attr]  # it is text


async def test_a_model_that_never_learns():
    """After the last try the tool fails with words for its own model; nothing that does not fit is
    returned.
    """
    model = Model(WRONG, WRONG, WRONG)
    async with connect(cook(), answers=Answers(sample=model, tools=False)) as client:
        result = await choose(client)
    assert result.is_error
    assert "no answer of the form that was asked for" in result.text
    assert len(model.asked) == 3


async def test_an_answer_that_was_cut_off():
    """It is not asked for again: the next would be cut off as well."""
    model = Model(said(t.TextContent('{"name":'), stop="maxTokens"))
    async with connect(cook(), answers=Answers(sample=model, tools=False)) as client:
        result = await choose(client)
    assert result.is_error
    assert "cut off after 1024 tokens" in result.text


@ways
async def test_text_and_whole_messages(way: Way):
    """`str` is the text; without a type the whole message is returned."""
    model = Model("one", said(t.TextContent("two")))
    async with connect(
        cook(), revision=way.revision, suspend=way.suspend, answers=Answers(sample=model)
    ) as client:
        assert (await client.call_tool("words")).text == "one two"


@pytest.mark.parametrize(
    "kind, text, expected",
    [
        (Dish, RIGHT, Dish("Soup", 20)),
        (int, '{"value": 4}', 4),
        (int, "4", 4),
        (list[Dish], f'{{"value": [{RIGHT}]}}', [Dish("Soup", 20)]),
        (Literal["a", "b"], 'Well: {"value": "b"} is it.', "b"),
        (dict[str, int], '{"value": 1}', {"value": 1}),
        ({"type": "object", "required": ["x"]}, '{"x": [1]}', {"x": [1]}),
        ({"type": "integer"}, '{"value": 3}', 3),
        (bool | None, '{"value": null}', None),
    ],
    ids=str,
)
def test_what_is_read(kind: Any, text: str, expected: Any):
    """Every type that a tool could take, and JSON Schemas; what is no object is wrapped in one."""
    wanted = AnswerType(kind)
    assert wanted.schema["type"] == "object"
    assert wanted.read(said(t.TextContent(text))) == expected


@pytest.mark.parametrize(
    "kind, text",
    [
        (Dish, "{}"),
        (int, '{"value": "four"}'),
        (Literal["a", "b"], '{"value": "c"}'),
        ({"type": "object", "required": ["x"]}, "{}"),
        (Dish, "[" * 100_000),
        (Dish, '{"name": ' + '{"a":' * 100_000),
        (Dish, '{"name": "Soup", "minutes": %s}' % ("9" * 9000)),
        (Dish, '{"name": "\\ud800", "minutes": 20}'),
        (Dish, '{"name": "Soup", "minutes": NaN}'),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_does_not_fit(kind: Any, text: str):
    """Is never returned, and brings nothing down."""
    with pytest.raises(BadAnswer):
        AnswerType(kind).read(said(t.TextContent(text)))


def test_schemas_with_definitions():
    """References still lead to their definitions where a type is wrapped."""

    class Tree(msgspec.Struct):
        branches: list[Tree]

    schema = AnswerType(list[Dish]).schema
    assert schema["properties"]["value"]["type"] == "array"
    assert "$defs" not in schema["properties"]["value"]


async def test_not_with_tools():
    """An answer cannot be a value and a tool use."""
    server = Server("both")
    server.dev = True

    @server.tool
    async def both(ctx: Context) -> Any:
        return await ctx.sample("x", result_type=int, tools=[])  # type: ignore[call-overload]  # refused by checkers too

    async with Client(server, answers=Answers(sample=Model("1"))) as client:
        assert "tools or a result_type" in (await client.call_tool("both")).text


# A fallback model.


@asynccontextmanager
async def over_http(
    make: Callable[[], Server], revision: str, **options: Any
) -> AsyncIterator[Client]:
    """A client of the server over HTTP."""
    async with (
        neighbours(1, make) as made,
        Client(made.at(0), revision=revision, **options) as client,
    ):
        yield client


@ways
async def test_the_fallback_answers_where_the_client_cannot(way: Way):
    """A client without a model; what it says is typed, corrected and told as the client's own would
    be.
    """
    fallback = Model(WRONG, said(t.TextContent(RIGHT)))
    server = cook(questions=QuestionSettings(fallback_model=fallback))
    async with connect(server, revision=way.revision, suspend=way.suspend) as client:
        assert (await choose(client)).text == "Soup, 20 minutes"
    assert [asked.tools for asked in fallback.asked] == [None, None]


@pytest.mark.parametrize("revision", REVISIONS[1:])
@pytest.mark.parametrize("preferred", [False, True])
async def test_over_http(revision: str, preferred: bool):
    """The fallback answers clients without a model; with `prefer_fallback_model` all of them."""
    fallback = Model("a", "b")
    own = Model("c", "d")
    server = cook(
        questions=QuestionSettings(fallback_model=fallback, prefer_fallback_model=preferred)
    )
    options: dict[str, Any] = {"answers": Answers(sample=own)} if preferred else {}
    async with over_http(lambda: server, revision, **options) as client:
        assert (await client.call_tool("words")).text == "a b"
    assert not own.asked


@ways
async def test_a_client_with_a_model_is_asked(way: Way):
    """The fallback is not."""
    fallback = Model()
    own = Model("one", "two")
    server = cook(questions=QuestionSettings(fallback_model=fallback))
    async with connect(
        server, revision=way.revision, suspend=way.suspend, answers=Answers(sample=own)
    ) as client:
        assert (await client.call_tool("words")).text == "one two"
    assert not fallback.asked


@ways
async def test_never_after_a_refusal(way: Way):
    """A person who refused is not got round: the tool hears of it, or on 2026-07-28 the client does
    not go on.
    """
    fallback = Model("never")
    server = cook(questions=QuestionSettings(fallback_model=fallback))
    refusing = Model(None)
    async with connect(
        server, revision=way.revision, suspend=way.suspend, answers=Answers(sample=refusing)
    ) as client:
        try:
            words = (await client.call_tool("words")).text
        except McpError as bad:
            assert way.revision == REVISIONS[4]
            words = str(bad)
    assert "reject" in words or "refused" in words
    assert len(refusing.asked) == 1
    assert not fallback.asked


@pytest.mark.parametrize("way", [w for w in EVERY_WAY if w.revision >= REVISIONS[2]], ids=str)
async def test_what_the_fallback_said_is_kept(way: Way):
    """A call that runs again from the top does not ask it again; each request of the call has its
    own answer.
    """
    fallback = Model("red", "blue")
    asked: list[str] = []

    def elicit(params: t.ElicitRequestParams) -> dict[str, Any]:
        asked.append(params.message)
        return {"confirm": True}

    server = cook(questions=QuestionSettings(fallback_model=fallback))
    async with connect(server, revision=way.revision, suspend=way.suspend, elicit=elicit) as client:
        assert (await client.call_tool("careful")).text == "red True blue"
    assert asked == ["red?"]
    assert len(fallback.asked) == 2  # though the replayed call began twice


async def test_the_fallback_of_one_request():
    """What is given with the request comes before the server's, as does whether it is preferred."""
    server = Server("own", questions=QuestionSettings(fallback_model=Model("server")))

    @server.tool
    async def own(ctx: Context) -> list[str]:
        mine = Model("request", "request again")
        return [
            await ctx.sample("x", result_type=str),
            await ctx.sample("x", result_type=str, prefer_fallback_model=True),
            await ctx.sample("x", result_type=str, fallback_model=mine),
            await ctx.sample("x", result_type=str, fallback_model=mine, prefer_fallback_model=True),
        ]

    async with Client(server, answers=Answers(sample=Model("client", "client again"))) as client:
        assert (await client.call_tool("own")).value() == [
            "client",
            "server",
            "client again",
            "request",
        ]


@pytest.mark.parametrize("sample", [None, Model("unused")], ids=["no model", "no tools"])
async def test_without_a_fallback(sample: Any):
    """Nobody answers, and the error says so."""
    server = Server("own")

    @server.tool
    async def own(ctx: Context) -> str:
        tools: Sequence[t.Tool] | None = None
        if sample is not None:
            tools = [t.Tool(name="x", input_schema={"type": "object"})]
        try:
            return (await ctx.sample("x", tools=tools)).text
        except t.Unanswerable as bad:
            return bad.capability

    answers = Answers(sample=sample, tools=False)
    async with Client(server, answers=answers) as client:
        expected = "sampling" if sample is None else "sampling.tools"
        assert (await client.call_tool("own")).text == expected


async def test_a_fallback_that_returns_nonsense():
    """The tool fails, and the author sees why."""

    async def nonsense(params: t.CreateMessageRequestParams) -> Any:
        return 4

    server = cook(questions=QuestionSettings(fallback_model=nonsense))
    server.dev = True
    async with Client(server) as client:
        result = await client.call_tool("words")
    assert result.is_error
    assert "a fallback model returns a CreateMessageResult or text, not int" in result.text
