"""Integers beyond 2**53, which JavaScript would round: they travel as text, and come back exact."""

from __future__ import annotations

from typing import Any, Final

MOST_EXACT: Final = 2**53 - 1
"""The largest integer that JavaScript holds exactly."""


def digits(value: Any) -> Any:
    """The digits of an integer that the page would round, and so approve as another; any other
    value as it is.
    """
    return str(value) if is_rounded(value) else value


def restored(edited: Any, given: Any) -> Any:
    """Arguments that a person edited, with the integers that were text on the page where nobody
    touched them.

    Args:
        edited: What the page sent.
        given: What the page was asked about.
    """
    if isinstance(edited, str) and is_rounded(given) and edited == str(given):
        return given
    if isinstance(edited, dict) and isinstance(given, dict):
        return {name: restored(inner, given.get(name)) for name, inner in edited.items()}
    if isinstance(edited, list) and isinstance(given, list):
        known = [*given, *[None] * len(edited)]
        return [restored(inner, known[place]) for place, inner in enumerate(edited)]
    return edited


def is_rounded(value: Any) -> bool:
    """Whether a value is an integer that JavaScript does not hold exactly."""
    return isinstance(value, int) and abs(value) > MOST_EXACT
