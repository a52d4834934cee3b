"""Integers beyond 2**53, which JavaScript rounds: they are sent as text and restored exactly."""

from __future__ import annotations

from typing import Any, Final

MOST_EXACT: Final = 2**53 - 1
"""The largest integer that JavaScript represents exactly."""


def digits(value: Any) -> Any:
    """An integer that the page would round, as text; any other value unchanged.

    The person would otherwise approve another number than the one sent.
    """
    return str(value) if is_rounded(value) else value


def restored(edited: Any, given: Any) -> Any:
    """Restore integers in edited arguments that were sent as text, where the person left them
    unchanged.

    Args:
        edited: The arguments from the page.
        given: The arguments that were sent to the page.
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
    """Whether a value is an integer that JavaScript cannot represent exactly."""
    return isinstance(value, int) and abs(value) > MOST_EXACT
