"""Reads answers of Anthropic's messages API, streamed or whole."""

from __future__ import annotations

from typing import Any

from interlock.types import CreateMessageRequestParams, JSONObject

from ..untrusted.invisible import plain_line as plain
from .answer_builder import AnswerBuilder, AnswerPart, Stop
from .conversation import IdMap
from .errors import ProviderIdentity, of, trouble
from .interface import Delta, ModelAnswer, ModelFailure, Usage
from .lenient_json import count_of, list_of, object_of, parsed, text_of

KEY = "io.interlock/anthropic"
_STOPS: dict[str, Stop] = {
    "end_turn": "endTurn",
    "pause_turn": "endTurn",
    "max_tokens": "maxTokens",
    "model_context_window_exceeded": "maxTokens",
    "stop_sequence": "stopSequence",
    "tool_use": "toolUse",
    "refusal": "refusal",
}


class BlockReader:
    """Decodes a response; it implements the interface `Reader` of the providers."""

    def __init__(
        self, request: CreateMessageRequestParams, names: IdMap, who: ProviderIdentity, model: str
    ) -> None:
        self.complete = self.over = False
        self._who = who
        self._model = model
        self._speech = AnswerBuilder(request, names, KEY, who.host)
        # by index: a part, or a thinking block
        self._growing: dict[int, AnswerPart | JSONObject] = {}
        self._thinking: list[JSONObject] = []  # thinking blocks before the next block
        self._numbers: dict[str, int] = {}
        self._stop: Stop = "endTurn"

    def process_event(self, name: str, data: bytes) -> list[Delta]:
        """Process the next event. Unknown types are ignored, as the API requires."""
        event = object_of(parsed(data))
        kind = text_of(event, "type") or name
        if kind == "error":
            raise of(self._who, trouble(event), 0)
        if kind == "message_start":
            message = object_of(event, "message")
            self._model = plain(text_of(message, "model"), 200) or self._model
            self._count(object_of(message, "usage"))
        elif kind == "content_block_start":
            return self._start(count_of(event, "index"), object_of(event, "content_block"))
        elif kind == "content_block_delta":
            return self._grow(count_of(event, "index"), object_of(event, "delta"))
        elif kind == "message_delta":
            self._stop = _STOPS.get(text_of(object_of(event, "delta"), "stop_reason"), self._stop)
            self._count(object_of(event, "usage"))
        elif kind == "message_stop":
            self.complete = self.over = True
        return []

    def whole(self, body: Any) -> list[Delta]:
        """Process a response that was not streamed."""
        body = object_of(body)
        if text_of(body, "type") == "error":
            raise of(self._who, trouble(body), 0)
        if not isinstance(body.get("content"), list):
            raise ModelFailure(
                f"{self._who.words} gave an answer without content; check the URL.", "bad_answer"
            )
        self._model = plain(text_of(body, "model"), 200) or self._model
        self._count(object_of(body, "usage"))
        deltas: list[Delta] = []
        for index, block in enumerate(list_of(body, "content")):
            deltas += self._start(index, object_of(block))
        self._stop = _STOPS.get(text_of(body, "stop_reason"), self._stop)
        self.complete = self.over = True
        return deltas

    def said(self) -> ModelAnswer:
        """The whole answer. Raises ModelFailure if the model only refused."""
        if self._stop == "refusal" and not self._speech.parts:
            raise ModelFailure(f"{self._who.words} refuses to answer this.", "refused")
        if self._thinking and self._speech.parts:
            self._speech.parts[-1].back["after"] = self._thinking
        of = self._numbers.get
        kept = of("cache_read_input_tokens", 0)
        went_in = of("input_tokens", 0) + of("cache_creation_input_tokens", 0) + kept
        return self._speech.said(
            self._stop, self._model, Usage(input=went_in, output=of("output_tokens", 0), kept=kept)
        )

    def _count(self, usage: JSONObject) -> None:
        """Record the usage. Its numbers are cumulative, so later ones replace earlier ones."""
        for name in (
            "input_tokens",
            "output_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
        ):
            if usage.get(name) is not None:
                self._numbers[name] = count_of(usage, name)

    def _start(self, index: int, block: JSONObject) -> list[Delta]:
        kind = text_of(block, "type")
        if kind in ("thinking", "redacted_thinking"):
            held = dict(block)
            self._thinking.append(held)
            self._growing[index] = held
            thought = text_of(block, "thinking")
            return [Delta("thought", thought)] if thought else []
        if kind == "text":
            self._growing[index] = part = self._speech.begin_text()
            self._precede(part)
            return self._speech.grow(part, text_of(block, "text"))
        if kind == "tool_use":
            given = object_of(block, "input")
            part = self._speech.call(text_of(block, "id"), text_of(block, "name"), given or None)
            self._growing[index] = part
            self._precede(part)
            return [Delta("call", part.name, part.id)]
        return []

    def _precede(self, part: AnswerPart) -> None:
        if self._thinking:
            part.back["before"] = self._thinking
            self._thinking = []

    def _grow(self, index: int, delta: JSONObject) -> list[Delta]:
        part = self._growing.get(index)
        kind = text_of(delta, "type")
        if isinstance(part, dict):
            if kind == "thinking_delta":
                thought = text_of(delta, "thinking")
                part["thinking"] = text_of(part, "thinking") + thought
                return [Delta("thought", thought)] if thought else []
            if kind == "signature_delta":
                part["signature"] = text_of(part, "signature") + text_of(delta, "signature")
        elif part is not None and kind == "text_delta" and part.kind == "text":
            return self._speech.grow(part, text_of(delta, "text"))
        elif part is not None and kind == "input_json_delta" and part.kind == "call":
            part.pieces.append(text_of(delta, "partial_json"))
        return []
