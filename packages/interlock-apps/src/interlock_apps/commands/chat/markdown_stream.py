"""Splits the stream of a model's words into finished Markdown blocks and the rest."""

from __future__ import annotations

import re

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)


class MarkdownStream:
    """Takes in pieces. `rest` is what does not make a whole block yet."""

    def __init__(self) -> None:
        self.rest = ""
        self.said = False

    def hear(self, piece: str) -> list[str]:
        """Take in a piece; the blocks that became whole by it."""
        self.said = True
        self.rest += piece
        whole = []
        while (cut := _cut(self.rest)) is not None:
            block = self.rest[:cut]
            self.rest = self.rest[cut:].lstrip("\n")
            if block.strip():
                whole.append(block.rstrip())
        return whole

    def end(self) -> list[str]:
        """What is left; the next piece begins anew."""
        left = self.rest
        self.rest = ""
        self.said = False
        return [left.rstrip()] if left.strip() else []


def _cut(text: str) -> int | None:
    """Where the first whole block ends: at an empty line that is not inside of a fence of code."""
    place = 0
    while (empty := re.compile(r"\n[ \t]*\n").search(text, place)) is not None:
        fences = _FENCE.findall(text[: empty.start() + 1])
        if not _is_open(fences):
            return empty.end()
        place = empty.end() - 1
    return None


def _is_open(fences: list[str]) -> bool:
    """Whether the last of these fences has begun a block of code."""
    opened = ""
    for fence in fences:
        if not opened:
            opened = fence
        elif fence[0] == opened[0] and len(fence) >= len(opened):
            opened = ""
    return bool(opened)
