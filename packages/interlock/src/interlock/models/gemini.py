"""The adapter to Gemini's generateContent API."""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import quote

from interlock.types import (
    CreateMessageRequestParams,
    JSONObject,
    SamplingContent,
    ToolResultContent,
    ToolUseContent,
)

from .content_pieces import pieces
from .conversation import IdMap, RoleTurn, begun_and_ended_by_user, kept
from .effort import gemini_thinking
from .gemini_answers import KEY, CandidateReader
from .gemini_results import (
    IMAGES,
    MOST_MEDIA,
    SOUNDS,
    content_part,
    declared,
    function_response,
)
from .interface import AcceptedContent
from .provider import Provider, ProviderRequest
from .tool_schemas import Dialect

_MOST_STOPS = 5
_CHOICES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
_UNSIGNED = "skip_thought_signature_validator"
"""The documented placeholder for calls that another model made, if the provider requires a
signature.
"""


class Gemini(Provider):
    """A model at `{url}/models/{model}:generateContent`; see Provider for the parameters.

    An object in `extra`, such as `generationConfig`, is merged member by member into the one of the
    request.
    """

    title: ClassVar[str] = "Gemini"
    dialect: ClassVar[Dialect] = "gemini"
    default_url: ClassVar[str] = "https://generativelanguage.googleapis.com/v1beta"

    def __init__(self, name: str, *, model: str, **options: Any) -> None:
        super().__init__(name, model=model.removeprefix("models/"), **options)
        self.accepts = AcceptedContent(
            images=IMAGES if self.facts.images else frozenset(),
            audio=SOUNDS if self.facts.audio else frozenset(),
            documents=frozenset({"application/pdf"}) if self.facts.images else frozenset(),
            most=MOST_MEDIA,
            most_document=MOST_MEDIA,
        )

    def _sent_headers(self) -> dict[str, str]:
        return {"x-goog-api-key": self._key.value} if self._key.value else {}

    def _words_of_names(self) -> IdMap:
        return IdMap("a-zA-Z0-9_-", self.tool_names, first="a-zA-Z_")

    def _asked(self, request: CreateMessageRequestParams) -> ProviderRequest:
        names = self._words_of_names()
        notes = list[str]()
        tools = self._tools(request, names, notes)
        body: JSONObject = {
            "contents": self._contents(begun_and_ended_by_user(self._talk(request)), names)
        }
        if request.system_prompt:
            body["systemInstruction"] = {"parts": [{"text": request.system_prompt}]}
        wanted: JSONObject = {"maxOutputTokens": self._output(request)}
        if request.temperature is not None:
            wanted["temperature"] = min(2.0, max(0.0, request.temperature))
        if request.stop_sequences:
            wanted["stopSequences"] = request.stop_sequences[:_MOST_STOPS]
        if self.effort:
            wanted["thinkingConfig"] = gemini_thinking(self.model, self.effort)
        body["generationConfig"] = wanted
        if tools:
            body["tools"] = [{"functionDeclarations": [declared(tool) for tool in tools]}]
            if request.tool_choice is not None and request.tool_choice.mode is not None:
                body["toolConfig"] = {
                    "functionCallingConfig": {"mode": _CHOICES[request.tool_choice.mode]}
                }
        for name, value in self._extra.items():
            there = body.get(name)
            body[name] = (
                {**there, **value} if isinstance(there, dict) and isinstance(value, dict) else value
            )
        how = "streamGenerateContent?alt=sse" if self.streamed else "generateContent"
        url = f"{self.url}/models/{quote(self.model, safe='')}:{how}"
        return ProviderRequest(
            url, body, lambda: CandidateReader(request, names, self.who, self.model), notes
        )

    def _contents(self, talk: list[RoleTurn], names: IdMap) -> list[JSONObject]:
        used: dict[str, JSONObject] = {}  # by ID of a tool use: the name that its result must have
        contents = []
        for turn in talk:
            if turn.role == "assistant":
                contents.append({"role": "model", "parts": self._spoken(turn, names, used)})
            else:
                contents.append({"role": "user", "parts": self._user_parts(turn, used)})
        return contents

    def _spoken(
        self, turn: RoleTurn, names: IdMap, used: dict[str, JSONObject]
    ) -> list[JSONObject]:
        parts: list[JSONObject] = []
        # these models require a signature on the first call
        unsigned = self.model.startswith("gemini-3")
        for block in turn.blocks:
            back = kept(block, KEY, self.who.host)
            signature = back.get("signature")
            signed = {"thoughtSignature": signature} if isinstance(signature, str) else {}
            if isinstance(block, ToolUseContent):
                named: JSONObject = {"name": names.out(block.name)} | (
                    {"id": back["id"]} if isinstance(back.get("id"), str) else {}
                )
                used[block.id] = named
                if unsigned and not signed:
                    signed = {"thoughtSignature": _UNSIGNED}
                unsigned = False
                parts.append({"functionCall": {**named, "args": block.input}, **signed})
            else:
                parts += [
                    {**content_part(piece), **signed} for piece in pieces(block, AcceptedContent())
                ]
            if isinstance(back.get("trailing"), str):
                parts.append({"text": "", "thoughtSignature": back["trailing"]})
        return parts

    def _user_parts(self, turn: RoleTurn, used: dict[str, JSONObject]) -> list[JSONObject]:
        responses: list[JSONObject] = []
        shown: list[JSONObject] = []
        rest: list[SamplingContent] = []
        for block in turn.blocks:
            if not isinstance(block, ToolResultContent):
                rest.append(block)
                continue
            named = used.get(block.tool_use_id, {"name": "unknown"})
            response, media = function_response(block, named, self.accepts)
            responses.append(response)
            shown += media
        return [
            *responses,
            *shown,
            *(content_part(piece) for block in rest for piece in pieces(block, self.accepts)),
        ]
