"""The context window: four rules shorten a long conversation for the model.

Omitted content stays omitted, so the beginning of a request rarely changes and providers can cache
it (`HST-06`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET, Struct

from interlock import AudioContent, ImageContent, TextContent
from interlock.types import SamplingMessage, ToolResultContent, UnknownContent

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

    The last `keep` turns stay whole. The tokens of a message are estimated when it is new, and
    again where a rule shortens it. Without `images`, for a model that cannot see, a line replaces
    each picture.

    Attributes:
        size: The tokens of the messages that were shown last.
        omissions: All that was left out so far, by rule.
    """

    def __init__(self, keep: int = 2, *, images: bool = True) -> None:
        self.size = 0
        self.omissions: dict[str, Omission] = {}
        self._images = images
        self._keep = keep
        self._media = self._results = self._gone = 0  # indexes of messages
        self._steps: tuple[int, int] = (0, 0)  # omitted messages of the current turn
        self._messages: list[SamplingMessage] = []  # all of them, as the rules have shortened them
        self._sizes: list[int] = []  # their tokens
        self._newest: SamplingMessage | None = None  # the last one that was counted

    def shown(
        self, messages: Sequence[SamplingMessage], room: int
    ) -> tuple[list[SamplingMessage], list[Omission]]:
        """The messages for the model, in at most `room` tokens as far as the rules reach, and the
        new omissions.

        Args:
            messages: The conversation. Between two calls it only grows.
            room: The room in tokens.
        """
        trims: list[Omission] = []
        if hidden := self._count(messages):
            pictures = "1 picture" if hidden == 1 else f"{hidden} pictures"
            words = f"Left out, because the model cannot see pictures: {pictures}."
            trims.append(Omission("no-images", words, hidden * tokens.PICTURE))
        if self.size > room:
            trims += self._trim(messages, room)
        for trim in trims:
            before = self.omissions.get(trim.rule)
            total = trim.tokens + (before.tokens if before else 0)
            self.omissions[trim.rule] = msgspec.structs.replace(trim, tokens=total)
        return self._view(), trims

    def _trim(self, messages: Sequence[SamplingMessage], room: int) -> list[Omission]:
        """Shorten the messages by the rules, in their order, until they fit; return what went."""
        trims: list[Omission] = []
        target = int(room * SLACK)
        recent = max(0, len(messages) - RECENT)
        starts = turns(messages)
        whole = starts[-self._keep] if len(starts) > self._keep else 0
        rules: tuple[tuple[str, str, Sequence[int], Callable[[int], None]], ...] = (
            (
                "old-media",
                "pictures, sounds and documents of earlier steps",
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
            before = self.size
            for mark in marks:
                if self.size <= target:
                    break
                move(mark)
            if self.size < before:
                trims.append(
                    Omission(
                        rule,
                        f"Left out, because the conversation is too long for the model: {words}.",
                        before - self.size,
                    )
                )
        return trims

    def _count(self, messages: Sequence[SamplingMessage]) -> int:
        """Estimate the messages that are new; return how many pictures in them are hidden."""
        known = len(self._sizes)
        if known > len(messages) or (known and messages[known - 1] is not self._newest):
            self._messages.clear()  # another conversation
            self._sizes.clear()
            known = 0
        hidden = 0
        for index in range(known, len(messages)):
            message = messages[index]
            if not self._images and (pictures := _pictures_in(message)):
                message = _map_blocks(message, _hidden)
                hidden += pictures
            message = _reduced(message, media=index < self._media, results=index < self._results)
            self._messages.append(message)
            self._sizes.append(tokens.of_message(message))
        if messages:
            self._newest = messages[-1]
        self.size = self.size + sum(self._sizes[known:]) if known else self._size_of_view()
        return hidden

    def _drop_media(self, mark: int) -> None:
        self._media = mark
        self._shorten(mark - 1, media=True)

    def _drop_results(self, mark: int) -> None:
        self._results = mark
        self._shorten(mark - 1, results=True)

    def _shorten(self, index: int, *, media: bool = False, results: bool = False) -> None:
        self._messages[index] = _reduced(self._messages[index], media=media, results=results)
        size = tokens.of_message(self._messages[index])
        if index >= self._gone and not self._is_skipped(index):
            self.size += size - self._sizes[index]
        self._sizes[index] = size

    def _drop(self, mark: int) -> None:
        self._gone = mark
        self.size = self._size_of_view()

    def _skip(self, starts: Sequence[int]) -> Callable[[int], None]:
        def skip(mark: int) -> None:
            self._steps = (starts[-1] + 1 if starts else 0, mark)
            self.size = self._size_of_view()

        return skip

    def _skipped(self) -> tuple[int, int]:
        """The omitted messages after those that are gone, as (first, after); (0, 0) for none."""
        first, after = self._steps
        return (first, after) if self._gone < first < after else (0, 0)

    def _is_skipped(self, index: int) -> bool:
        """Whether a message is omitted with its step. What the person wrote during the turn stays:
        the rest of the turn has to follow it.
        """
        first, after = self._skipped()
        return first <= index < after and not _is_persons(self._messages[index])

    def _view(self) -> list[SamplingMessage]:
        first, after = self._skipped()
        view = self._messages[self._gone : first]
        view += filter(_is_persons, self._messages[first:after])
        view += self._messages[max(self._gone, after) :]
        if view and self._is_noted():
            view[0] = _with_note(view[0])
        return view

    def _size_of_view(self) -> int:
        first, after = self._skipped()
        size = sum(self._sizes[self._gone :])
        size -= sum(self._sizes[at] for at in range(first, after) if self._is_skipped(at))
        if self._gone < len(self._messages) and self._is_noted():
            begin = self._messages[self._gone]
            size += tokens.of_message(_with_note(begin)) - self._sizes[self._gone]
        return size

    def _is_noted(self) -> bool:
        """Whether the first message that is shown says that something was left out."""
        return self._gone > 0 or self._skipped() != (0, 0)


def turns(messages: Sequence[SamplingMessage]) -> list[int]:
    """The indexes at which turns begin: the person's messages."""
    return [
        index
        for index, message in enumerate(messages)
        if _is_persons(message) and (index == 0 or messages[index - 1].role == "assistant")
    ]


def _is_persons(message: SamplingMessage) -> bool:
    """Whether the person wrote a message, or it is the outcome of a task; not a tool's result."""
    return message.role == "user" and not any(
        isinstance(block, ToolResultContent) for block in blocks(message)
    )


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
        elif media and isinstance(block, UnknownContent) and tokens.pages_of(block):
            content.append(TextContent(text="(a document was here)"))
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


def _pictures_in(message: SamplingMessage) -> int:
    """How many pictures a message has, those in results included."""
    return sum(
        isinstance(each, ImageContent)
        for block in blocks(message)
        for each in (block.content if isinstance(block, ToolResultContent) else [block])
    )


def _map_blocks(message: SamplingMessage, change: Callable[[object], object]) -> SamplingMessage:
    """The message with each block changed, those in results included."""
    content = [
        msgspec.structs.replace(block, content=[change(inner) for inner in block.content])
        if isinstance(block, ToolResultContent)
        else change(block)
        for block in blocks(message)
    ]
    return msgspec.structs.replace(message, content=content)


def _hidden(block: object) -> object:
    """A line in place of a picture, for a model that cannot see."""
    if not isinstance(block, ImageContent):
        return block
    return TextContent(
        text=f"(A picture of type {block.mime_type} was left out: this model cannot see pictures.)"
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
