"""Splits the stream of a model's text into finished Markdown blocks and the rest."""

from __future__ import annotations

import re

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)


class MarkdownStream:
    """Collects pieces of text. `rest` is the block that is not finished yet."""

    def __init__(self) -> None:
        self.rest = ""
        self.said = False

    def feed(self, piece: str) -> list[str]:
        """Add a piece, and return the blocks that it finishes."""
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
        """Return the rest; the next piece starts a new stream."""
        left = self.rest
        self.rest = ""
        self.said = False
        return [left.rstrip()] if left.strip() else []


def _cut(text: str) -> int | None:
    """Where the first finished block ends: at an empty line outside a fenced code block."""
    place = 0
    while (empty := re.compile(r"\n[ \t]*\n").search(text, place)) is not None:
        fences = _FENCE.findall(text[: empty.start() + 1])
        if not _is_open(fences):
            return empty.end()
        place = empty.end() - 1
    return None


def _is_open(fences: list[str]) -> bool:
    """Whether the last of these fences opens a code block."""
    opened = ""
    for marker in fences:
        if not opened:
            opened = marker
        elif marker[0] == opened[0] and len(marker) >= len(opened):
            opened = ""
    return bool(opened)
