"""The effort of reasoning in requests to providers, and prices from a configuration."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.models.anthropic import Anthropic
from interlock.models.configured import BadModels, read_models
from interlock.models.gemini import Gemini
from interlock.models.interface import ModelFacts, ThinkingModel, Usage
from interlock.models.known_models import known
from interlock.models.openai import OpenAI
from interlock.types import CreateMessageRequestParams, SamplingMessage, TextContent

ASKED = CreateMessageRequestParams(
    messages=[SamplingMessage(role="user", content=TextContent("Why?"))], max_tokens=20_000
)


def body(model: Any) -> Any:
    """The body of a request to the provider of a model."""
    return model._asked(ASKED).body


def place(sent: Any) -> Any:
    """The effort in the body of a request, whichever provider it is for."""
    config = sent.get("generationConfig", {})
    return sent.get("thinking") or config.get("thinkingConfig") or sent.get("reasoning_effort")


@pytest.mark.parametrize(
    "provider, model, effort, part",
    [
        (Anthropic, "claude-sonnet-4-5", "low", {"type": "enabled", "budget_tokens": 2_048}),
        (Anthropic, "claude-haiku-4-5", "high", {"type": "enabled", "budget_tokens": 7_168}),
        (Anthropic, "claude-opus-4-20250514", "high", {"type": "enabled", "budget_tokens": 18_976}),
        (Anthropic, "claude-opus-4-6", "high", {"type": "adaptive"}),
        (Gemini, "gemini-2.5-pro", "medium", {"thinkingBudget": 8_192, "includeThoughts": True}),
        (Gemini, "gemini-3-pro", "low", {"thinkingLevel": "low", "includeThoughts": True}),
        (OpenAI, "gpt-5", "high", "high"),
        (OpenAI, "o3-mini", "low", "low"),
    ],
)
def test_each_provider_is_asked_in_its_way(
    provider: Any, model: str, effort: str, part: Any
) -> None:
    """And not at all without an effort; the model itself stays as it is."""
    plain = provider("m", model=model, key="k")
    assert isinstance(plain, ThinkingModel)
    asked = body(plain.with_effort(effort))
    assert place(asked) == part
    assert place(body(plain)) is None
    assert asked.get("output_config") == (
        {"effort": effort} if part == {"type": "adaptive"} else None
    )
    again: Any = plain.with_effort(effort)
    assert place(body(again.with_effort(""))) is None


def test_openrouter_has_its_own_parameter() -> None:
    model = OpenAI("m", model="anthropic/claude-sonnet-4.5", url="https://openrouter.ai/api/v1")
    assert body(model.with_effort("low"))["reasoning"] == {"effort": "low"}
    assert (
        body(OpenAI("m", model="o3", extra={"reasoning_effort": "high"}).with_effort("low"))[
            "reasoning_effort"
        ]
        == "high"
    )


@pytest.mark.parametrize("model", ["claude-3-5-haiku-latest", "gemini-2.0-flash", "gpt-4o", "x"])
def test_a_model_without_levels_refuses_one(model: str) -> None:
    with pytest.raises(ValueError, match="has no effort 'high'. It has: none"):
        OpenAI("m", model=model).with_effort("high")
    assert known(model).efforts == ()


def test_prices_and_efforts_of_a_configuration() -> None:
    """A price is that of the tokens in dollars; without a configuration there is none."""
    entry = {"provider": "ollama", "model": "x", "price_in": 3, "price_out": 15, "efforts": ["low"]}
    [model] = read_models({"mine": entry}).models
    assert model.facts.price(Usage(input=1_000_000, output=200_000, kept=5)) == 6.0
    assert model.with_effort("low").effort == "low"
    assert ModelFacts().price(Usage(input=5)) is None
    assert known("claude-sonnet-4-5").price_in is None


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"price_in": -1, "price_out": 1}, "price_in must be the price"),
        ({"price_in": 1}, "give both price_in and price_out"),
        ({"efforts": "low"}, "Expected `array"),
    ],
)
def test_wrong_prices_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(BadModels, match=words):
        read_models({"mine": {"provider": "ollama", "model": "x", **wrong}})
