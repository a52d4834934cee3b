"""Small changes to a text: where they go, and the text with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Uneditable(ValueError):
    """A configuration that cannot be read, or not be changed without touching what is not ours; the message says why."""


class Edit(NamedTuple):
    """What stands from `start` to `end` becomes `new`."""

    start: int
    end: int
    new: str


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with edits that do not overlap; of two at one place the first comes first."""
    for _, _, edit in sorted(((edit.start, n, edit) for n, edit in enumerate(edits)), reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


def newline_of(text: str) -> str:
    """How the text ends its lines."""
    return "\r\n" if "\r\n" in text else "\n"


def line_start(text: str, at: int) -> int:
    """Where the line begins in which `at` lies."""
    return text.rfind("\n", 0, at) + 1
