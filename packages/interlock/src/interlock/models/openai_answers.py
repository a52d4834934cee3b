"""Reads answers of OpenAI's chat completions API, streamed or whole."""

from __future__ import annotations

from typing import Any

from interlock.types import CreateMessageRequestParams, JSONObject

from ..untrusted.invisible import plain_line as plain
from .answer_builder import AnswerBuilder, AnswerPart, Stop
from .conversation import IdMap
from .errors import ProviderIdentity, of, trouble
from .interface import Delta, ModelAnswer, ModelFailure, Usage
from .lenient_json import count_of, list_of, object_of, parsed, text_of

_STOPS: dict[str, Stop] = {
    "stop": "endTurn",
    "length": "maxTokens",
    "tool_calls": "toolUse",
    "function_call": "toolUse",
    "content_filter": "refusal",
}


class ChunkReader:
    """Decodes a response; it implements the interface `Reader` of the providers."""

    def __init__(
        self,
        request: CreateMessageRequestParams,
        names: IdMap,
        who: ProviderIdentity,
        key: str,
        model: str,
    ) -> None:
        self.complete = self.over = False
        self._who = who
        self._model = model
        self._speech = AnswerBuilder(request, names, key, who.host)
        self._stops = request.stop_sequences or []
        self._calls: dict[
            int, tuple[str, AnswerPart]
        ] = {}  # by index: the provider's ID, and the growing call
        self._announced: set[str] = set()
        self._usage = Usage()
        self._stop: Stop = "endTurn"
        self._refused = False
        self._thinking: dict[str, list[str]] = {}
        self._details: list[JSONObject] = []

    def process_event(self, name: str, data: bytes) -> list[Delta]:
        """Process the next chunk."""
        if data.strip() == b"[DONE]":
            self.complete = self.over = True
            return []
        if not data.strip():
            return []
        chunk = parsed(data)
        if name == "error" or object_of(chunk).get("error") or text_of(chunk, "object") == "error":
            raise of(self._who, trouble(chunk), 0)
        self._count(chunk)
        deltas: list[Delta] = []
        for choice in list_of(chunk, "choices"):
            if count_of(choice, "index"):
                continue  # only one answer was requested
            deltas += self._speak(object_of(choice, "delta"))
            self._end(choice)
        return deltas

    def whole(self, body: Any) -> list[Delta]:
        """Process a response that was not streamed."""
        if object_of(body).get("error"):
            raise of(self._who, trouble(body), 0)
        self._count(body)
        choices = list_of(body, "choices")
        if not choices:
            raise ModelFailure(
                f"{self._who.words} gave an answer without content; check the URL.", "bad_answer"
            )
        deltas = self._speak(object_of(choices[0], "message"))
        self._end(choices[0])
        self.complete = self.over = True
        return deltas

    def said(self) -> ModelAnswer:
        """The whole answer. Raises ModelFailure if a filter blocked it."""
        if self._refused:
            self._stop = "refusal"
        if self._stop == "refusal" and not self._speech.parts:
            raise ModelFailure(
                f"{self._who.words} refuses to answer this: its filter let nothing through.",
                "refused",
            )
        thinking: dict[str, Any] = {
            field: "".join(pieces) for field, pieces in self._thinking.items()
        }
        if self._details:
            thinking["reasoning_details"] = self._details
        if thinking and self._speech.parts:
            self._speech.parts[0].back["message"] = thinking
        return self._speech.said(self._stop, self._model, self._usage)

    def _count(self, chunk: Any) -> None:
        self._model = plain(text_of(chunk, "model"), 200) or self._model
        usage = object_of(chunk, "usage")
        if usage:
            kept = count_of(object_of(usage, "prompt_tokens_details"), "cached_tokens") or count_of(
                usage, "prompt_cache_hit_tokens"
            )
            self._usage = Usage(
                input=count_of(usage, "prompt_tokens"),
                output=count_of(usage, "completion_tokens"),
                kept=kept,
            )

    def _end(self, choice: Any) -> None:
        reason = text_of(choice, "finish_reason")
        if not reason:
            return
        if reason == "error":
            raise of(self._who, trouble(choice), 0)
        self.complete = True
        self._stop = _STOPS.get(reason, "endTurn")
        if (
            reason == "stop" and text_of(choice, "stop_reason") in self._stops
        ):  # some servers say which one
            self._stop = "stopSequence"

    def _speak(self, delta: JSONObject) -> list[Delta]:
        deltas: list[Delta] = []
        for field in ("reasoning_content", "reasoning"):
            thought = text_of(delta, field)
            if thought:
                self._thinking.setdefault(field, []).append(thought)
                if field == "reasoning_content" or not text_of(delta, "reasoning_content"):
                    deltas.append(Delta("thought", thought))
        for detail in list_of(delta, "reasoning_details"):
            self._keep(object_of(detail))
        content = delta.get("content")
        if isinstance(content, str):
            deltas += self._speech.text(content)
        for part in list_of(content):
            if text_of(part, "type") == "text":
                deltas += self._speech.text(text_of(part, "text"))
        refusal = text_of(delta, "refusal")
        if refusal:
            self._refused = True
            deltas += self._speech.text(refusal)
        for call in list_of(delta, "tool_calls"):
            deltas += self._call(object_of(call))
        return deltas

    def _call(self, call: JSONObject) -> list[Delta]:
        """Process a piece of a tool call. A new ID with a name starts a call whatever the index is,
        because some servers omit the index or never increment it.
        """
        id = text_of(call, "id")
        function = object_of(call, "function")
        name = text_of(function, "name")
        arguments = function.get("arguments")
        index = call.get("index")
        place = index if isinstance(index, int) else -1
        raw, part = self._calls.get(place, ("", None))
        if part is None or (name and (id != raw if id else place == -1)):
            part = self._speech.call(id, name)
            self._calls[place] = (id, part)
        elif name and not part.name:
            part.name = self._speech.named(name)
        if isinstance(arguments, str):
            part.pieces.append(arguments)
        elif isinstance(arguments, dict):
            part.input = arguments
        if "extra_content" in call:
            part.back["extra_content"] = call["extra_content"]
        if part.name and part.id not in self._announced:
            self._announced.add(part.id)
            return [Delta("call", part.name, part.id)]
        return []

    def _keep(self, detail: JSONObject) -> None:
        """Collect the reasoning details that the provider needs again: pieces of the same type and
        index are joined.
        """
        last = self._details[-1] if self._details else {}
        if not detail:
            return
        if last and (last.get("type"), last.get("index")) == (
            detail.get("type"),
            detail.get("index"),
        ):
            for field, value in detail.items():
                if field in ("text", "summary", "data") and isinstance(value, str):
                    last[field] = text_of(last, field) + value
                elif value is not None:
                    last[field] = value
        elif len(self._details) < 256:
            self._details.append(dict(detail))
