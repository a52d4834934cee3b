"""Estimates of token counts, rounded up for safety."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from interlock import AudioContent, ImageContent, TextContent
from interlock.types import (
    SamplingMessage,
    Tool,
    ToolResultContent,
    ToolUseContent,
    UnknownContent,
)

LETTERS = 3.5  # characters of plain text in a token
OTHERS = 1.2  # characters of other scripts in a token
PICTURE = 1_600
SOUND = 2_000
PAGE = 2_500  # of a document: its text, and its picture
PAGE_SIZE = 50_000  # bytes of a page, if nobody has counted the pages
ENVELOPE = 8


def of_text(text: str) -> int:
    """The tokens of a text."""
    if text.isascii():
        return int(len(text) / LETTERS) + 1
    wide = sum(1 for sign in text if sign > "\u024f")
    return int((len(text) - wide) / LETTERS + wide / OTHERS) + 1


def of_block(block: Any) -> int:
    """The tokens of one block of content."""
    if isinstance(block, TextContent):
        return of_text(block.text)
    if isinstance(block, ImageContent):
        return PICTURE
    if isinstance(block, AudioContent):
        return SOUND
    if isinstance(block, UnknownContent) and (pages := pages_of(block)):
        return pages * PAGE
    if isinstance(block, ToolUseContent):
        return ENVELOPE + of_text(block.name) + of_data(block.input)
    if isinstance(block, ToolResultContent):
        return ENVELOPE + sum(of_block(inner) for inner in block.content)
    return ENVELOPE + of_data(block)


def pages_of(block: UnknownContent) -> int:
    """The pages of a document; 0 if the block is none."""
    resource = block.block.get("resource")
    blob = resource.get("blob") if isinstance(resource, dict) else None
    if not isinstance(blob, str):
        return 0
    for about in (block.block.get("_meta") or {}).values():
        if isinstance(about, dict) and isinstance(pages := about.get("pages"), int) and pages > 0:
            return pages
    return 1 + len(blob) * 3 // 4 // PAGE_SIZE


def of_data(data: Any) -> int:
    """The tokens of a value as JSON."""
    return of_text(msgspec.json.encode(data).decode())


def of_message(message: SamplingMessage) -> int:
    """The tokens of one message."""
    blocks = message.content if isinstance(message.content, list) else [message.content]
    return ENVELOPE + sum(of_block(block) for block in blocks)


def of_messages(messages: Iterable[SamplingMessage]) -> int:
    """The tokens of a conversation."""
    return sum(of_message(message) for message in messages)


def of_tools(tools: Iterable[Tool]) -> int:
    """The tokens of a list of tools."""
    return sum(
        ENVELOPE + of_text(tool.name) + of_text(tool.description or "") + of_data(tool.input_schema)
        for tool in tools
    )
