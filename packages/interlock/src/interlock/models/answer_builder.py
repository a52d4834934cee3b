"""Builds a sampling result from the pieces of a streamed answer."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, structs

from interlock.types import (
    AudioContent,
    CreateMessageRequestParams,
    CreateMessageResult,
    ImageContent,
    JSONObject,
    SamplingContent,
    TextContent,
    ToolUseContent,
)

from .conversation import IdMap, fresh_id, ids_in, keeping
from .interface import Delta, ModelAnswer, ModelFailure, Usage
from .lenient_json import joined, parsed

UNREADABLE = "io.interlock/unreadable"
"""The key in a tool use's `_meta` for arguments that the model wrote and that are not a JSON
object.
"""

_MOST_UNREADABLE = 4_000  # characters that are kept
_MOST_PARTS = 512  # of one answer

Stop = Literal["endTurn", "maxTokens", "toolUse", "stopSequence", "refusal"]


class AnswerPart(Struct):
    """A part of an answer that is still growing.

    `back` is the data that the provider needs again with this part in the next request.
    """

    kind: Literal["text", "call", "media"]
    pieces: list[str] = []
    id: str = ""
    name: str = ""
    input: JSONObject | None = None  # if the provider sent it as an object
    media: SamplingContent | None = None
    back: dict[str, Any] = {}


class AnswerBuilder:
    """Collects the parts of an answer in order.

    Args:
        request: The request.
        names: Maps the provider's tool names back to the original names.
        key: The key in `_meta` for data that the provider needs again.
        source: The host of the provider, which that data is for.
    """

    def __init__(
        self, request: CreateMessageRequestParams, names: IdMap, key: str, source: str
    ) -> None:
        self.parts: list[AnswerPart] = []
        self._names = names
        self._key = key
        self._source = source
        self._ids = ids_in(request.messages)
        self._messages = len(request.messages)
        self._calls = 0

    def begin_text(self) -> AnswerPart:
        """Start a text part."""
        return self._add(AnswerPart("text", []))

    def grow(self, part: AnswerPart, words: str) -> list[Delta]:
        """Append to a text part."""
        if not words:
            return []
        part.pieces.append(words)
        return [Delta("text", words)]

    def text(self, words: str) -> list[Delta]:
        """Append to the last part if it is text, else start a text part."""
        if not words:
            return []
        last = self.parts[-1] if self.parts else None
        return self.grow(
            last if last is not None and last.kind == "text" else self.begin_text(), words
        )

    def call(self, id: str, name: str, input: JSONObject | None = None) -> AnswerPart:
        """Start a tool call.

        A call without an ID gets one that depends only on its position.
        """
        if not id or id in self._ids:
            id = fresh_id(self._ids.__contains__, self._messages, self._calls)
        self._ids.add(id)
        self._calls += 1
        return self._add(AnswerPart("call", [], id, self._names.back(name), input))

    def named(self, name: str) -> str:
        """The original name of a tool."""
        return self._names.back(name)

    def media(self, data: str, mime: str) -> AnswerPart:
        """Add a complete image or sound."""
        kind = ImageContent if mime.startswith("image/") else AudioContent
        return self._add(AnswerPart("media", media=kind(data=data, mime_type=mime)))

    def _add(self, part: AnswerPart) -> AnswerPart:
        if len(self.parts) >= _MOST_PARTS:
            raise ModelFailure(
                f"The model's answer has more than {_MOST_PARTS} parts; the request was abandoned.",
                "bad_answer",
            )
        part.back = {}
        self.parts.append(part)
        return part

    @property
    def calls(self) -> list[AnswerPart]:
        """The tool calls."""
        return [part for part in self.parts if part.kind == "call"]

    def said(self, stop: Stop, model: str, usage: Usage) -> ModelAnswer:
        """Return the whole answer.

        A refused answer has no tool calls. An answer with tool calls has the stop reason `toolUse`.
        """
        content: list[SamplingContent] = []
        for part in self.parts:
            if part.kind == "call":
                if stop == "refusal":
                    continue
                block: SamplingContent = _use(part)
            elif part.media is not None:
                block = part.media
            elif part.pieces:
                block = TextContent("".join(part.pieces))
            else:
                continue
            content.append(keeping(block, self._key, self._source, part.back))
        if stop == "endTurn" and self.calls:
            stop = "toolUse"
        elif stop == "toolUse" and not self.calls:
            stop = "endTurn"
        return ModelAnswer(
            CreateMessageResult(role="assistant", content=content, model=model, stop_reason=stop),
            usage,
        )


def _use(part: AnswerPart) -> ToolUseContent:
    if part.input is not None:
        return ToolUseContent(id=part.id, name=part.name, input=part.input)
    raw = "".join(part.pieces)
    if not raw.strip():
        return ToolUseContent(id=part.id, name=part.name, input={})
    try:
        value = parsed(raw)
        if isinstance(value, str):  # an object that was encoded as a string
            value = parsed(value)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return ToolUseContent(id=part.id, name=part.name, input=value)
    return ToolUseContent(
        id=part.id, name=part.name, input={}, meta={UNREADABLE: joined([raw], _MOST_UNREADABLE)}
    )


def without_calls(said: ModelAnswer) -> ModelAnswer:
    """The answer without its tool calls, for a model that called a tool although it must not."""
    content = (
        said.result.content if isinstance(said.result.content, list) else [said.result.content]
    )
    rest = [block for block in content if not isinstance(block, ToolUseContent)]
    stop = "endTurn" if said.result.stop_reason == "toolUse" else said.result.stop_reason
    return ModelAnswer(structs.replace(said.result, content=rest, stop_reason=stop), said.usage)


def has_calls(said: ModelAnswer) -> bool:
    """Whether the answer has a tool call."""
    content = said.result.content
    return isinstance(content, list) and any(isinstance(block, ToolUseContent) for block in content)
