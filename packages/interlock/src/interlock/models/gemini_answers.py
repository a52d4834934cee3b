"""Reads answers of Gemini's generateContent API, streamed or whole."""

from __future__ import annotations

from typing import Any

from interlock.types import CreateMessageRequestParams, JSONObject

from ..untrusted.invisible import plain_line as plain
from .answer_builder import AnswerBuilder, Stop
from .conversation import IdMap
from .errors import ProviderIdentity, of, trouble
from .interface import Delta, ModelAnswer, ModelFailure, Usage
from .lenient_json import count_of, list_of, object_of, parsed, text_of

KEY = "io.interlock/gemini"
_STOPS: dict[str, Stop] = {
    "STOP": "endTurn",
    "MAX_TOKENS": "maxTokens",
    "FINISH_REASON_UNSPECIFIED": "endTurn",
    "OTHER": "endTurn",
}
_MUDDLED = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MISSING_THOUGHT_SIGNATURE",
    }
)


class CandidateReader:
    """Decodes a response; it implements the interface `Reader` of the providers.

    A stream has no end marker: it ends with the body.
    """

    def __init__(
        self, request: CreateMessageRequestParams, names: IdMap, who: ProviderIdentity, model: str
    ) -> None:
        self.complete = self.over = False
        self._who = who
        self._model = model
        self._speech = AnswerBuilder(request, names, KEY, who.host)
        self._reason = self._why = ""
        self._signed = False  # the last text has a signature, so no text may be appended to it
        self._usage = Usage()

    def process_event(self, name: str, data: bytes) -> list[Delta]:
        """Process the next event."""
        return self._read(parsed(data)) if data.strip() else []

    def whole(self, body: Any) -> list[Delta]:
        """Process a response that was not streamed."""
        deltas = self._read(body)
        if not self.complete and not self._speech.parts:
            raise ModelFailure(
                f"{self._who.words} gave an answer without content; check the URL.", "bad_answer"
            )
        self.complete = self.over = True
        return deltas

    def said(self) -> ModelAnswer:
        """The whole answer.

        Raises ModelFailure if a filter blocked it, or a tool call was malformed.
        """
        why = f": {self._who.quote(self._why)}" if self._why else ""
        if self._reason in _MUDDLED:
            raise ModelFailure(
                f"{self._who.words} wrote a tool call that it cannot make "
                f"({self._reason}{why}). Ask again.",
                "bad_answer",
            )
        stop = _STOPS.get(self._reason, "refusal") if self._reason else "endTurn"
        if stop == "refusal" and not self._speech.parts:
            raise ModelFailure(
                f"{self._who.words} refuses to answer this ({plain(self._reason, 60)}{why}).",
                "refused",
            )
        return self._speech.said(stop, self._model, self._usage)

    def _read(self, body: Any) -> list[Delta]:
        if isinstance(body, list) and body:
            body = body[0]
        piece = object_of(body)
        if piece.get("error"):
            raise of(self._who, trouble(piece), 0)
        blocked = text_of(object_of(piece, "promptFeedback"), "blockReason")
        if blocked:
            raise ModelFailure(
                f"{self._who.words} refuses to answer this: the request was blocked "
                f"({plain(blocked, 60)}).",
                "refused",
            )
        self._model = plain(text_of(piece, "modelVersion"), 200) or self._model
        usage = object_of(piece, "usageMetadata")
        if usage:
            out = count_of(usage, "candidatesTokenCount") + count_of(usage, "thoughtsTokenCount")
            self._usage = Usage(
                input=count_of(usage, "promptTokenCount"),
                output=out,
                kept=count_of(usage, "cachedContentTokenCount"),
            )
        deltas: list[Delta] = []
        for candidate in list_of(piece, "candidates")[:1]:
            for part in list_of(object_of(candidate, "content"), "parts"):
                deltas += self._part(object_of(part))
            reason = text_of(candidate, "finishReason")
            if reason:
                self.complete = True
                self._reason = reason
                self._why = text_of(candidate, "finishMessage")
        return deltas

    def _part(self, part: JSONObject) -> list[Delta]:
        signature = text_of(part, "thoughtSignature")
        text = text_of(part, "text")
        back: JSONObject = {"signature": signature} if signature else {}
        if "functionCall" in part:
            call = object_of(part, "functionCall")
            id = text_of(call, "id")
            made = self._speech.call(id, text_of(call, "name"), object_of(call, "args"))
            made.back = back | ({"id": id} if id else {})
            return [Delta("call", made.name, made.id)]
        if part.get("thought") is True:
            return [Delta("thought", text)] if text else []
        if "inlineData" in part:
            data = object_of(part, "inlineData")
            mime = text_of(data, "mimeType")
            if mime.startswith(("image/", "audio/")):
                self._speech.media(text_of(data, "data"), mime).back = back
            return []
        if not text:
            if signature and self._speech.parts:
                self._speech.parts[-1].back["trailing"] = signature
            return []
        if (
            signature
            or self._signed
            or not self._speech.parts
            or self._speech.parts[-1].kind != "text"
        ):
            begun = self._speech.begin_text()
            begun.back = back
            self._signed = bool(signature)
            return self._speech.grow(begun, text)
        return self._speech.text(text)
