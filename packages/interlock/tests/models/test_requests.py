"""What goes out to each provider, to the letter."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from interlock.models.interface import ModelFacts, ModelFailure
from interlock.types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    Tool,
    ToolResultContent,
    ToolUseContent,
    UnknownContent,
)
from tests.models.asking import ADAPTERS, KEY, WEATHER, received, request, said
from tests.models.providers import Act, Answer, Site

PIXEL = base64.b64encode(b"not really a picture").decode()
SEEING = ModelFacts(images=True, audio=True)
BLIND = ModelFacts(images=False, audio=False)


def use(id: str = "c1", name: str = "weather", **more: Any) -> ToolUseContent:
    return ToolUseContent(id=id, name=name, input={"city": "Paris"}, **more)


def result(*content: Any, id: str = "c1", **more: Any) -> ToolResultContent:
    return ToolResultContent(
        tool_use_id=id,
        content=[TextContent(one) if isinstance(one, str) else one for one in content],
        **more,
    )


async def sent(speaks: str, params: Any, **more: Any) -> dict[str, Any]:
    """The body that goes out."""
    async with Site("Yes.") as site:
        model = ADAPTERS[speaks](
            "m", model="model-1", url=getattr(site, speaks), **{"facts": SEEING, "key": KEY, **more}
        )
        await received(model, params)
        await model.aclose()
        return site.asked[0].body


RICH = request(
    said("user", "Look: ", ImageContent(data=PIXEL, mime_type="image/png")),
    said("assistant", "I will.", use(), use("c2")),
    said(
        "user",
        result("Sunny.", ImageContent(data=PIXEL, mime_type="image/png")),
        result("No such city.", id="c2", is_error=True),
    ),
    said("user", "And?"),
    system_prompt="Be brief.",
    temperature=0.5,
    stop_sequences=["END"],
    mode="auto",
)


async def test_the_whole_of_a_request_to_openai() -> None:
    """SAM-08, HST-06: what a tool shows follows its text in a message of the user."""
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    calls = [
        {
            "id": id,
            "type": "function",
            "function": {"name": "weather", "arguments": '{"city":"Paris"}'},
        }
        for id in ("c1", "c2")
    ]
    assert await sent("openai", RICH) == {
        "model": "model-1",
        "max_tokens": 100,
        "temperature": 0.5,
        "stop": ["END"],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tool_choice": "auto",
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "description": "Weather of a city.",
                    "parameters": WEATHER.input_schema,
                },
            }
        ],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Look: "}, picture]},
            {"role": "assistant", "content": "I will.", "tool_calls": calls},
            {
                "role": "tool",
                "tool_call_id": "c1",
                "content": "Sunny.\n[What is not text follows in the next message.]",
            },
            {"role": "tool", "tool_call_id": "c2", "content": "[The call failed.]\nNo such city."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "[From the results of the calls above:]"},
                    picture,
                    {"type": "text", "text": "And?"},
                ],
            },
        ],
    }


async def test_the_whole_of_a_request_to_anthropic() -> None:
    """HST-06: tools, system prompt and the last two times of the user are marked to be kept, so
    that the prefix is not paid for twice.
    """
    keep = {"cache_control": {"type": "ephemeral"}}
    picture = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
    }
    failed = {
        "type": "tool_result",
        "tool_use_id": "c2",
        "content": [{"type": "text", "text": "No such city."}],
        "is_error": True,
    }
    worked = {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [{"type": "text", "text": "Sunny."}, picture],
    }
    body = await sent("anthropic", RICH)
    assert body == {
        "model": "model-1",
        "max_tokens": 100,
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "stream": True,
        "system": [{"type": "text", "text": "Be brief.", **keep}],
        "tool_choice": {"type": "auto"},
        "tools": [
            {
                "name": "weather",
                "description": "Weather of a city.",
                "input_schema": WEATHER.input_schema,
                **keep,
            }
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Look: "}, {**picture, **keep}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I will."},
                    {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris"}},
                    {"type": "tool_use", "id": "c2", "name": "weather", "input": {"city": "Paris"}},
                ],
            },
            {"role": "user", "content": [worked, failed, {"type": "text", "text": "And?", **keep}]},
        ],
    }
    assert "cache_control" not in str(await sent("anthropic", RICH, cache=False))


async def test_the_whole_of_a_request_to_gemini() -> None:
    """SAM-08: roles, parts and names as the interface has them."""
    picture = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
    call = {"functionCall": {"name": "weather", "args": {"city": "Paris"}}}
    assert await sent("gemini", RICH) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"maxOutputTokens": 100, "temperature": 0.5, "stopSequences": ["END"]},
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "weather",
                        "description": "Weather of a city.",
                        "parametersJsonSchema": WEATHER.input_schema,
                    }
                ]
            }
        ],
        "contents": [
            {"role": "user", "parts": [{"text": "Look: "}, picture]},
            {"role": "model", "parts": [{"text": "I will."}, call, call]},
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "name": "weather",
                            "response": {"output": "Sunny.\n[What is not text follows.]"},
                        }
                    },
                    {
                        "functionResponse": {
                            "name": "weather",
                            "response": {"error": "No such city."},
                        }
                    },
                    {"text": "[From the result of weather:]"},
                    picture,
                    {"text": "And?"},
                ],
            },
        ],
    }


@pytest.mark.parametrize("speaks", list(ADAPTERS))
@pytest.mark.parametrize("mode", ["auto", "required", "none"])
async def test_tool_choice_in_the_words_of_each(speaks: str, mode: str) -> None:
    """SAM-16."""
    words = {
        "openai": mode,
        "anthropic": {"required": "any"}.get(mode, mode),
        "gemini": {"required": "ANY"}.get(mode, mode.upper()),
    }
    async with Site("Yes.") as site:
        model = ADAPTERS[speaks]("m", model="model-1", url=getattr(site, speaks))
        try:
            await received(model, request(mode=mode))
        except ModelFailure:
            assert mode == "required"
        await model.aclose()
        body = site.asked[0].body
    found = {
        "openai": lambda: body["tool_choice"],
        "anthropic": lambda: body["tool_choice"]["type"],
        "gemini": lambda: body["toolConfig"]["functionCallingConfig"]["mode"],
    }
    assert found[speaks]() == words[speaks]


@pytest.mark.parametrize("speaks", list(ADAPTERS))
@pytest.mark.parametrize(
    "block, words",
    [
        (
            ImageContent(data=PIXEL, mime_type="image/png"),
            "A picture (image/png, 20 bytes) was left out: this model does not take any.",
        ),
        (
            AudioContent(data=PIXEL, mime_type="audio/wav"),
            "A sound (audio/wav, 20 bytes) was left out: this model does not take any.",
        ),
        (UnknownContent(block={"type": "hologram"}), "Content of the kind hologram was left out"),
    ],
    ids=["image", "audio", "unknown"],
)
async def test_what_a_model_cannot_take_is_said(speaks: str, block: Any, words: str) -> None:
    """SAM-11: nothing is left out in silence, neither of the person's words nor of a tool's
    result.
    """
    body = str(await sent(speaks, request(said("user", "See", block)), facts=BLIND))
    assert words in body
    assert PIXEL not in body
    if not isinstance(block, UnknownContent):
        inside = request(said("user", "Go"), said("assistant", use()), said("user", result(block)))
        assert words in str(await sent(speaks, inside, facts=BLIND))


@pytest.mark.parametrize("speaks", list(ADAPTERS))
@pytest.mark.parametrize(
    "block, words",
    [
        (ImageContent(data="@@@", mime_type="image/png"), "its data is broken"),
        (ImageContent(data=PIXEL, mime_type="image/tiff"), "does not take this type"),
        (ImageContent(data="A" * 28_000_000, mime_type="image/png"), "too large"),
    ],
    ids=["broken", "tiff", "large"],
)
async def test_pictures_that_would_be_refused(speaks: str, block: Any, words: str) -> None:
    """SAM-19: one bad picture does not have the whole request refused."""
    assert words in str(await sent(speaks, request(said("user", "See", block))))


@pytest.mark.parametrize("speaks", list(ADAPTERS))
async def test_resources_of_results(speaks: str) -> None:
    """SAM-11: links are named, texts included, pictures shown, the rest named; structured content
    is told where no text does.
    """
    blob = ResourceContents(uri="file:///a.bin", blob=PIXEL, mime_type="application/x-thing")
    picture = ResourceContents(uri="file:///a.png", blob=PIXEL, mime_type="image/png")
    content = [
        ResourceLink(
            uri="file:///report.pdf",
            name="report",
            title="The report",
            mime_type="application/pdf",
            size=10,
        ),
        EmbeddedResource(
            resource=ResourceContents(uri="file:///a.txt", text="inside", mime_type="text/plain")
        ),
        EmbeddedResource(resource=blob),
        EmbeddedResource(resource=picture),
    ]
    uses = said("assistant", use(), use("c2"), use("c3"))
    results = said(
        "user",
        result(*content),
        result(id="c2", structured_content={"temperature": 21}),
        result(id="c3"),
    )
    body = str(await sent(speaks, request(said("user", "Go"), uses, results)))
    for words in (
        "The report, file:///report.pdf (application/pdf, 10 bytes)",
        "inside",
        "file:///a.bin",
        "was left out",
        PIXEL,
    ):
        assert words in body
    assert '{"temperature":21}' in body
    assert "The tool gave nothing." in body


async def test_sound_and_documents() -> None:
    """SAM-11: sound where it is heard, documents where they are read."""
    sound = AudioContent(data=PIXEL, mime_type="audio/wav")
    paper = EmbeddedResource(
        resource=ResourceContents(uri="file:///report.pdf", blob=PIXEL, mime_type="application/pdf")
    )
    asked = request(
        said("user", "Go"),
        said("assistant", use()),
        said("user", result("Here", paper)),
        said("user", sound),
    )
    parts = (await sent("openai", asked))["messages"][-1]["content"]
    assert {"type": "input_audio", "input_audio": {"data": PIXEL, "format": "wav"}} in parts
    inside = (await sent("anthropic", asked))["messages"][-1]["content"][0]["content"]
    source = {"type": "base64", "media_type": "application/pdf", "data": PIXEL}
    assert {"type": "document", "source": source, "title": "report.pdf"} in inside
    parts = (await sent("gemini", asked))["contents"][-1]["parts"]
    assert {"inlineData": {"mimeType": "application/pdf", "data": PIXEL}} in parts
    assert {"inlineData": {"mimeType": "audio/wav", "data": PIXEL}} in parts


@pytest.mark.parametrize("speaks", list(ADAPTERS))
async def test_names_that_are_refused_are_replaced_and_turned_back(speaks: str) -> None:
    """TOL-20: a server may call its tool as it likes; the model gets a name that its provider
    takes, and the call comes back with ours.
    """
    odd = Tool(name="größe.of/it " * 6, input_schema={"type": "object"})
    params = request(tools=[odd])
    async with Site("Yes.") as site:
        model = ADAPTERS[speaks]("m", model="model-1", url=getattr(site, speaks))
        await received(model, params)
        body = site.asked[0].body
        tool = body["tools"][0]
        name = {"openai": lambda: tool["function"]["name"], "anthropic": lambda: tool["name"]}.get(
            speaks, lambda: tool["functionDeclarations"][0]["name"]
        )()
        assert len(name) <= 128
        assert name.replace("_", "").replace("-", "").isalnum()
        assert name.isascii()
        site.acts = [Act(Answer(((name, {}),)))]
        [block] = (await received(model, params))[1].result.content
        assert block.name == odd.name
        await model.aclose()


@pytest.mark.parametrize("speaks", list(ADAPTERS))
async def test_a_model_without_tools(speaks: str) -> None:
    """SAM-12: tools are not sent to a model that takes none, what they did is told as text, and the
    person is told.
    """
    deaf = ModelFacts(tools=False)
    params = request(said("user", "Go"), said("assistant", use()), said("user", result("Sunny.")))
    async with Site("Yes.") as site:
        model = ADAPTERS[speaks]("m", model="model-1", url=getattr(site, speaks), facts=deaf)
        deltas, _ = await received(model, params)
        assert "does not support tools" in deltas[0].text
        body = site.asked[0].body
        assert "tools" not in body
        assert "Sunny." in str(body)
        with pytest.raises(ModelFailure, match="does not support tools"):
            await received(model, request(mode="required"))
        await model.aclose()


@pytest.mark.parametrize("speaks", list(ADAPTERS))
async def test_nothing_to_ask(speaks: str) -> None:
    """SAM-19: a conversation of nothing is not sent."""
    model = ADAPTERS[speaks]("m", model="model-1", url="http://127.0.0.1:1")
    with pytest.raises(ModelFailure, match="empty") as caught:
        await received(model, request(said("user", "  "), said("assistant")))
    assert caught.value.kind == "bad_request"
    await model.aclose()


async def test_the_limit_of_words_is_kept() -> None:
    """SAM-09: no more than was asked for, and no more than the model can."""
    few = ModelFacts(output=50)
    assert (await sent("openai", request(), facts=few))["max_tokens"] == 50
    assert (await sent("anthropic", request(max_tokens=7)))["max_tokens"] == 7
    assert (await sent("gemini", request(max_tokens=7)))["generationConfig"]["maxOutputTokens"] == 7
    assert (await sent("openai", request(), output_name="max_completion_tokens"))[
        "max_completion_tokens"
    ] == 100


async def test_what_is_put_over_a_request() -> None:
    """SAM-08: `extra` is heard last; Gemini's objects are put together."""
    assert (await sent("openai", request(), extra={"seed": 7, "max_tokens": 9}))["seed"] == 7
    body = await sent(
        "gemini", request(), extra={"generationConfig": {"topK": 3}, "safetySettings": []}
    )
    assert body["generationConfig"] == {"maxOutputTokens": 100, "topK": 3}
    assert body["safetySettings"] == []


async def test_parameters_that_a_model_does_not_take_are_left_out() -> None:
    """SAM-08: reasoning models refuse a temperature.

    It is asked once more without, and remembered.
    """
    refusal = {
        "error": {
            "message": "Unsupported",
            "param": "temperature",
            "code": "unsupported_value",
            "type": "invalid_request_error",
        }
    }
    limit = {
        "error": {
            "message": "Use 'max_completion_tokens'",
            "param": "max_tokens",
            "code": "unsupported_parameter",
        }
    }
    async with Site(Act(status=400, body=refusal), Act(status=400, body=limit), "Yes.") as site:
        model = ADAPTERS["openai"]("m", model="o9", url=site.openai)
        for _ in range(2):
            await received(model, request(temperature=0.3))
        assert ["temperature" in asked.body for asked in site.asked] == [True, False, False, False]
        assert ["max_completion_tokens" in asked.body for asked in site.asked] == [
            False,
            False,
            True,
            True,
        ]
        await model.aclose()


async def test_thinking_of_anthropic_where_it_is_not_allowed() -> None:
    """SAM-21: thinking is switched off for a turn that another model began, and where a tool is
    demanded; else no temperature goes with it.
    """
    extra = {"thinking": {"type": "enabled", "budget_tokens": 50}}
    plain = await sent("anthropic", request(temperature=0.3), extra=extra)
    assert plain["thinking"] == extra["thinking"]
    assert "temperature" not in plain
    foreign = request(said("user", "Go"), said("assistant", use()), said("user", result("Sunny.")))
    assert "thinking" not in await sent("anthropic", foreign, extra=extra)
    assert "thinking" not in await sent("anthropic", request(max_tokens=50), extra=extra)


async def test_calls_without_tools_at_anthropic() -> None:
    """SAM-15: a conversation with calls is taken also where no tools are offered any more."""
    body = await sent(
        "anthropic",
        request(
            said("user", "Go"), said("assistant", use()), said("user", result("Sunny.")), tools=()
        ),
    )
    assert body["tools"][0]["name"] == "weather"
    assert body["tool_choice"] == {"type": "none"}


async def test_calls_of_others_at_gemini_3() -> None:
    """SAM-21: where a signature is demanded, and another model made the call, the documented
    stand-in is sent with the first call.
    """
    params = request(
        said("user", "Go"),
        said("assistant", use(), use("c2")),
        said("user", result("Sunny."), result("Rain.", id="c2")),
    )
    async with Site("Yes.") as site:
        model = ADAPTERS["gemini"]("m", model="models/gemini-3-pro", url=site.gemini)
        await received(model, params)
        parts = site.asked[0].body["contents"][1]["parts"]
        assert ["thoughtSignature" in part for part in parts] == [True, False]
        assert site.asked[0].path == "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"
        await model.aclose()


@pytest.mark.parametrize(
    "speaks, header, path",
    [
        ("openai", ("authorization", f"Bearer {KEY}"), "/v1/chat/completions"),
        ("anthropic", ("x-api-key", KEY), "/v1/messages"),
        ("gemini", ("x-goog-api-key", KEY), "/v1beta/models/model-1:streamGenerateContent?alt=sse"),
    ],
)
async def test_the_key_is_in_a_header(speaks: str, header: tuple[str, str], path: str) -> None:
    """SEC-01: never in a url; and a version where one is demanded."""
    async with Site("Yes.") as site:
        model = ADAPTERS[speaks](
            "m", model="model-1", url=getattr(site, speaks), key=KEY, headers={"X-Team": "blue"}
        )
        await received(model, request())
        [asked] = site.asked
        assert asked.headers[header[0]] == header[1]
        assert asked.headers["x-team"] == "blue"
        assert asked.path == path
        assert ("anthropic-version" in asked.headers) == (speaks == "anthropic")
        await model.aclose()
