"""The effort of a model's reasoning: the levels that models have, and how providers are asked."""

from __future__ import annotations

import re

from interlock.types import JSONObject

LEVELS = ("low", "medium", "high")

_CLAUDE = re.compile(r"claude-(?:(?:opus|sonnet|haiku)-)?(\d+)(?:[-.](\d{1,2}))?(?!\d)")
_GEMINI = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_REASONS = re.compile(r"(?:o\d|gpt-5|gpt-oss)")
_THINKS = (3, 7)  # the first Claude with a budget for thinking
_ADAPTS = (4, 6)  # the first Claude that decides by itself how much it thinks, within an effort
_BUDGETS = {"low": 2_048, "medium": 8_192, "high": 24_576}  # tokens of thinking
_LEAST_BUDGET = 1_024  # tokens; providers accept no smaller one
_ANSWER = 1_024  # tokens that stay for the answer after thinking


def efforts_of(model: str) -> tuple[str, ...]:
    """The levels of effort that a model has, by its name; none if it is not known to have any."""
    name = model.lower().rpartition("/")[2]
    if _REASONS.match(name):
        return LEVELS
    if (version := _version(_CLAUDE, name)) is not None:
        return LEVELS if version >= _THINKS else ()
    version = _version(_GEMINI, name)
    if version is None or version < (2, 5):
        return ()
    return LEVELS if version < (3, 0) else ("low", "high")


def anthropic_thinking(model: str, effort: str, most: int) -> JSONObject:
    """The parameters of Anthropic's messages API for an effort.

    Args:
        model: The provider's name of the model.
        effort: The level.
        most: The limit of the answer in tokens, which includes the thinking.
    """
    version = _version(_CLAUDE, model.lower())
    if version is not None and version >= _ADAPTS:
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
    budget = min(_BUDGETS.get(effort, _BUDGETS["medium"]), most - _ANSWER)
    if budget < _LEAST_BUDGET:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def gemini_thinking(model: str, effort: str) -> JSONObject:
    """The `thinkingConfig` of Gemini's generateContent API for an effort."""
    version = _version(_GEMINI, model.lower())
    if version is not None and version >= (3, 0):
        return {"thinkingLevel": effort, "includeThoughts": True}
    budget = _BUDGETS.get(effort, _BUDGETS["medium"])
    return {"thinkingBudget": budget, "includeThoughts": True}


def _version(pattern: re.Pattern[str], name: str) -> tuple[int, int] | None:
    found = pattern.search(name)
    return (int(found[1]), int(found[2] or 0)) if found else None
