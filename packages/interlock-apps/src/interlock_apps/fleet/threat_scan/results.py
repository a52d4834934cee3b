"""Prompt injection in results: the texts of a result, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET

from interlock import CallToolResult

# scanned characters of one result: three quarters from its beginning, the rest from its end
MOST_SCANNED = 64_000
PIECE = 4_000  # characters scanned without a pause
OVERLAP = 400  # characters that two neighbouring pieces share: no phrase is longer
_DEPTH = 32
# Ordinary in results, such as a page with soft hyphens. The model's copy is cleaned anyway.
UNREMARKABLE = frozenset({"hidden"})


def pieces(result: CallToolResult, texts: Iterator[str]) -> Iterator[str]:
    """The pieces of a result to scan: first its texts, then those of its structured content.

    Args:
        result: The result of a tool.
        texts: The texts of its content.
    """
    whole = "\n".join(texts)
    if result.structured_content is not UNSET:
        inside = (each for each in _strings(result.structured_content, 0) if each not in whole)
        whole = "\n".join((whole, *_first(inside, MOST_SCANNED)))
    if len(whole) > MOST_SCANNED:
        head = MOST_SCANNED * 3 // 4
        yield from _cut(whole[:head])
        yield from _cut(whole[head - MOST_SCANNED :])
    else:
        yield from _cut(whole)


def _cut(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE):
        yield text[max(0, start - OVERLAP) : start + PIECE]


def _strings(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < _DEPTH and isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _strings(inner, depth + 1)
    elif depth < _DEPTH and isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner, depth + 1)


def _first(texts: Iterator[str], most: int) -> Iterator[str]:
    """Texts up to `most` characters in all."""
    for text in texts:
        yield text
        most -= len(text)
        if most < 0:
            return
