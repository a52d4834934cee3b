"""Which model a server's wishes lead to."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.models.interface import ModelFacts
from interlock.models.known_models import UNKNOWN, known
from interlock.models.model_choice import choose
from interlock.models.openai import OpenAI
from interlock.models.scripted import Scripted
from interlock.types import ModelHint, ModelPreferences


def model(name: str, cost: float, speed: float, intelligence: float) -> Scripted:
    return Scripted(name=name, facts=ModelFacts(cost=cost, speed=speed, intelligence=intelligence))


MODELS = [
    model("claude-sonnet-4", 0.4, 0.6, 0.9),
    model("claude-haiku-3.5", 0.7, 0.9, 0.6),
    model("gpt-nano", 0.95, 0.95, 0.4),
    model("claude-opus-4", 0.1, 0.3, 1.0),
]


def wishes(*hints: str, **priorities: float) -> ModelPreferences:
    return ModelPreferences(hints=[ModelHint(name=hint) for hint in hints], **priorities)


@pytest.mark.parametrize(
    "preferences, name",
    [
        (None, "claude-sonnet-4"),
        (wishes(), "claude-sonnet-4"),
        (wishes("haiku"), "claude-haiku-3.5"),
        (wishes("HAIKU"), "claude-haiku-3.5"),
        (wishes("mistral", "gpt", "opus"), "gpt-nano"),
        (wishes("claude", intelligence_priority=1), "claude-opus-4"),
        (wishes("claude", speed_priority=1), "claude-haiku-3.5"),
        (wishes("mistral", cost_priority=1), "gpt-nano"),
        (wishes("", intelligence_priority=1, cost_priority=0.1), "claude-opus-4"),
        (wishes("claude"), "claude-sonnet-4"),
        (wishes(cost_priority=math.nan), "claude-sonnet-4"),
        (ModelPreferences(hints=[ModelHint()]), "claude-sonnet-4"),
    ],
)
def test_choices(preferences: ModelPreferences | None, name: str) -> None:
    """SAM-10: hints are parts of names, in their order; among those that fit the priorities decide;
    else the person's first.
    """
    assert choose(MODELS, preferences).name == name


def test_the_providers_name_counts_too() -> None:
    """SAM-10: a model may be called "mine" in the configuration."""
    mine = OpenAI("mine", model="meta/Llama-3.1-70B", url="http://here")
    assert choose([*MODELS, mine], wishes("llama")) is mine


@given(
    st.lists(st.text(max_size=6), max_size=4),
    st.lists(st.floats() | st.none(), min_size=3, max_size=3),
)
def test_any_wishes_lead_to_a_model(hints: list[str], priorities: list[float | None]) -> None:
    """SAM-10: they are wishes; whatever they are, one of ours is chosen, and always the same."""
    cost, speed, intelligence = priorities
    preferences = wishes(
        *hints, cost_priority=cost, speed_priority=speed, intelligence_priority=intelligence
    )
    assert choose(MODELS, preferences) in MODELS
    assert choose(MODELS, preferences) is choose(MODELS, preferences)


def test_no_models() -> None:
    """SAM-10: without models there are words."""
    with pytest.raises(LookupError, match="Configure one"):
        choose([])


@pytest.mark.parametrize(
    "name, context, images",
    [
        ("claude-sonnet-4-5", 200_000, True),
        ("anthropic/claude-opus-4.1", 200_000, True),
        ("gpt-4o-mini-2024-07-18", 128_000, True),
        ("o3-mini", 200_000, True),
        ("models/gemini-2.5-flash", 1_000_000, True),
        ("qwen2.5vl:7b", 32_000, True),
        ("llama3.2:3b", 128_000, False),
        ("foo3-bar", UNKNOWN.context, False),
    ],
)
def test_what_names_tell(name: str, context: int, images: bool) -> None:
    """SAM-10: sensible facts for known names, cautious ones for unknown names."""
    assert (known(name).context, known(name).images) == (context, images)
