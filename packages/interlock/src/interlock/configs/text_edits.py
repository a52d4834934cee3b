"""Text edits: small replacements in a text, and the error for a text that cannot be edited."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Uneditable(ValueError):
    """A configuration cannot be edited without loss or without revealing a secret.

    The message says why, and what to do. Nothing was written.
    """


class TextEdit(NamedTuple):
    """Replaces the characters from `start` to `end` with `new`."""

    start: int
    end: int
    new: str


def apply_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """Apply edits that do not overlap. Two edits at one position keep their order."""
    numbered = ((edit.start, number, edit) for number, edit in enumerate(edits))
    for _, _, edit in sorted(numbered, reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


def newline_of(text: str) -> str:
    """Return the line ending that a text uses."""
    return "\r\n" if "\r\n" in text else "\n"


def line_start(text: str, at: int) -> int:
    """Return the start of the line that contains the position `at`."""
    return text.rfind("\n", 0, at) + 1
