"""The context window: four rules shorten a long conversation for the model.

Omitted content stays omitted, so the beginning of a request rarely changes and providers can cache
it (`HST-06`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET, Struct

from interlock import AudioContent, ImageContent, TextContent
from interlock.types import SamplingMessage, ToolResultContent

from . import tokens

SLACK = 0.7  # the share of the room that trimming aims for, so that the next steps fit too
RECENT = 4  # messages at the end that are never trimmed
SHORT = 400  # characters of an old result that are kept
GONE = "(Earlier parts of this conversation were left out because it is long.)"


class Omission(Struct, frozen=True):
    """What a rule left out, in words, and about how many tokens that saves."""

    rule: str
    words: str
    tokens: int


class ContextWindow:
    """The marks of one conversation: messages before a mark are shortened or left out.

    The last `keep` turns stay whole.
    """

    def __init__(self, keep: int = 2) -> None:
        self._keep = keep
        self._media = self._results = self._gone = 0  # indexes of messages
        self._steps: tuple[int, int] = (0, 0)  # omitted messages of the current turn

    def shown(
        self, messages: Sequence[SamplingMessage], room: int
    ) -> tuple[list[SamplingMessage], list[Omission]]:
        """The messages for the model, in at most `room` tokens as far as the rules reach, and the
        new omissions.
        """
        trims: list[Omission] = []
        view = self._view(messages)
        size = tokens.of_messages(view)
        if size <= room:
            return view, trims
        target = int(room * SLACK)
        recent = max(0, len(messages) - RECENT)
        starts = turns(messages)
        whole = starts[-self._keep] if len(starts) > self._keep else 0
        rules: tuple[tuple[str, str, Sequence[int], Callable[[int], None]], ...] = (
            (
                "old-media",
                "images and sounds of earlier steps",
                range(self._media + 1, recent + 1),
                self._drop_media,
            ),
            (
                "old-results",
                "long results of earlier steps, except their beginning",
                range(self._results + 1, recent + 1),
                self._drop_results,
            ),
            (
                "old-turns",
                "the oldest turns of the conversation",
                [s for s in starts if self._gone < s <= whole],
                self._drop,
            ),
            (
                "old-steps",
                "earlier steps of this turn",
                _steps(messages, starts, recent),
                self._skip(starts),
            ),
        )
        for rule, words, marks, move in rules:
            before = size
            for mark in marks:
                if size <= target:
                    break
                move(mark)
                size = tokens.of_messages(self._view(messages))
            if size < before:
                trims.append(
                    Omission(
                        rule,
                        f"Left out, because the conversation is too long for the model: {words}.",
                        before - size,
                    )
                )
        return self._view(messages), trims

    def _drop_media(self, mark: int) -> None:
        self._media = mark

    def _drop_results(self, mark: int) -> None:
        self._results = mark

    def _drop(self, mark: int) -> None:
        self._gone = mark

    def _skip(self, starts: Sequence[int]) -> Callable[[int], None]:
        def skip(mark: int) -> None:
            self._steps = (starts[-1] + 1 if starts else 0, mark)

        return skip

    def _view(self, messages: Sequence[SamplingMessage]) -> list[SamplingMessage]:
        first, after = self._steps
        skipped = first < after and first > self._gone
        view = []
        for index in range(self._gone, len(messages)):
            if skipped and first <= index < after:
                continue
            view.append(
                _reduced(messages[index], media=index < self._media, results=index < self._results)
            )
        if (self._gone or skipped) and view:
            view[0] = _with_note(view[0])
        return view


def turns(messages: Sequence[SamplingMessage]) -> list[int]:
    """The indexes at which turns begin: the person's messages."""
    return [
        index
        for index, message in enumerate(messages)
        if message.role == "user"
        and not any(isinstance(block, ToolResultContent) for block in blocks(message))
        and (index == 0 or messages[index - 1].role == "assistant")
    ]


def blocks(message: SamplingMessage) -> list[object]:
    """The content blocks of a message, also if it has only one."""
    return list(message.content) if isinstance(message.content, list) else [message.content]


def _steps(messages: Sequence[SamplingMessage], starts: Sequence[int], recent: int) -> list[int]:
    """Where steps of the current turn end, so that tool uses and their results stay together."""
    begin = starts[-1] + 1 if starts else 0
    return [
        index
        for index in range(begin + 1, recent + 1)
        if index < len(messages) and messages[index].role == "assistant"
    ]


def _reduced(message: SamplingMessage, *, media: bool, results: bool) -> SamplingMessage:
    if not media and not results:
        return message
    content: list[object] = []
    for block in blocks(message):
        if media and isinstance(block, ImageContent | AudioContent):
            content.append(TextContent(text=_instead(block)))
        elif isinstance(block, ToolResultContent):
            content.append(_reduced_result(block, media, results))
        else:
            content.append(block)
    return msgspec.structs.replace(message, content=content)


def _reduced_result(result: ToolResultContent, media: bool, results: bool) -> ToolResultContent:
    content: list[object] = []
    for block in result.content:
        if media and isinstance(block, ImageContent | AudioContent):
            content.append(TextContent(text=_instead(block)))
        elif results and isinstance(block, TextContent) and len(block.text) > SHORT:
            content.append(
                TextContent(
                    text=(
                        f"{block.text[:SHORT]}\n(... {len(block.text) - SHORT} more characters "
                        "were left out.)"
                    )
                )
            )
        else:
            content.append(block)
    return msgspec.structs.replace(
        result, content=content, structured_content=UNSET if results else result.structured_content
    )


def _instead(block: ImageContent | AudioContent) -> str:
    return (
        f"({'an image' if isinstance(block, ImageContent) else 'a sound'} of type "
        f"{block.mime_type} was here)"
    )


def _with_note(message: SamplingMessage) -> SamplingMessage:
    if any(isinstance(block, ToolResultContent) for block in blocks(message)):
        return message  # such a message contains only tool results (`SAM-14`)
    return msgspec.structs.replace(message, content=[TextContent(text=GONE), *blocks(message)])
