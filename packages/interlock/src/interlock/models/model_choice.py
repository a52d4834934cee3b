"""Chooses a model by the preferences of a sampling request (2026-07-28, "Sampling")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from interlock.types import ModelPreferences

from .interface import Model

M = TypeVar("M", bound=Model)


def choose(models: Sequence[M], preferences: ModelPreferences | None = None) -> M:
    """Return the model that fits best (`SAM-10`); without preferences the first, which the user
    chose.

    Hints are parts of names (the configured ones or the provider's), in any case. The first hint
    that matches a model decides. Among several matches, or without a match, the priorities for
    cost, speed and intelligence decide, each between 0 and 1, weighed against what is known about
    the models. The first of equals is chosen. Raises LookupError if there are no models.
    """
    if not models:
        raise LookupError("There is no model to choose from. Configure one.")
    if preferences is None:
        return models[0]
    left = list(models)
    for hint in preferences.hints or []:
        wanted = (hint.name or "").strip().casefold()
        fitting = [
            model for model in models if wanted and any(wanted in name for name in _names(model))
        ]
        if fitting:
            left = fitting
            break
    weights = [
        _weight(of)
        for of in (
            preferences.cost_priority,
            preferences.speed_priority,
            preferences.intelligence_priority,
        )
    ]
    if not any(weights):
        return left[0]

    def fits(model: M) -> float:
        facts = model.facts
        return sum(
            weight * of
            for weight, of in zip(
                weights, (facts.cost, facts.speed, facts.intelligence), strict=True
            )
        )

    return max(left, key=fits)  # max returns the first of equals


def _names(model: Model) -> tuple[str, str]:
    of = getattr(model, "model", "")
    return model.name.casefold(), of.casefold() if isinstance(of, str) else ""


def _weight(priority: float | None) -> float:
    """A priority between 0 and 1; NaN and None count as 0."""
    return min(1.0, max(0.0, priority)) if priority is not None and priority == priority else 0.0
