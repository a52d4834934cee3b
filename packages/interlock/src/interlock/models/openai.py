"""The adapter to OpenAI's chat completions API, which many other providers support.

Among them are Ollama, vLLM, LM Studio and OpenRouter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from interlock.types import (
    CreateMessageRequestParams,
    JSONObject,
    SamplingContent,
    ToolResultContent,
    ToolUseContent,
)

from .content_pieces import ContentPiece, pieces
from .conversation import IdMap, RoleTurn, kept
from .errors import ProviderError
from .interface import AcceptedContent
from .openai_answers import ChunkReader
from .openai_results import FROM_RESULTS, IMAGES, SOUNDS, message_content, tool_message
from .provider import Provider, ProviderRequest
from .tool_schemas import Dialect

KEY = "io.interlock/openai"
_READS_FILES = ("api.openai.com", "openrouter.ai")
_MOST_STOPS = 4
_OPTIONAL = frozenset(
    {
        "temperature",
        "stop",
        "stream_options",
        "tool_choice",
        "max_tokens",
        "reasoning_effort",
    }
)


class OpenAI(Provider):
    """A model at `{url}/chat/completions`; see Provider for the parameters.

    `output_name` is the name of the parameter that limits the answer: `max_completion_tokens` at
    OpenAI, else `max_tokens`.
    """

    title: ClassVar[str] = "OpenAI-compatible provider"
    dialect: ClassVar[Dialect] = "openai"
    default_url: ClassVar[str] = "https://api.openai.com/v1"

    def __init__(self, name: str, *, model: str, output_name: str = "", **options: Any) -> None:
        super().__init__(name, model=model, **options)
        first_hand = self.host == "api.openai.com" or self.host.endswith(".openai.azure.com")
        self._output_name = output_name or ("max_completion_tokens" if first_hand else "max_tokens")
        self._refused: set[str] = set()  # parameters that this model has rejected
        documents = frozenset({"application/pdf"}) if self.host in _READS_FILES else frozenset()
        self.accepts = AcceptedContent(
            images=IMAGES if self.facts.images else frozenset(),
            audio=frozenset(SOUNDS) if self.facts.audio else frozenset(),
            documents=documents if self.facts.images else frozenset(),
        )

    def _asked(self, request: CreateMessageRequestParams) -> ProviderRequest:
        names = self._words_of_names()
        ids = IdMap("!-~", 40)
        notes = list[str]()
        tools = self._tools(request, names, notes)
        body: JSONObject = {"model": self.model, "messages": self._messages(request, names, ids)}
        body[self._output_name] = self._output(request)
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.stop_sequences:
            body["stop"] = request.stop_sequences[:_MOST_STOPS]
        if tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.schema,
                    },
                }
                for tool in tools
            ]
            if request.tool_choice is not None and request.tool_choice.mode is not None:
                body["tool_choice"] = request.tool_choice.mode
        if self.effort and self.host == "openrouter.ai":
            body["reasoning"] = {"effort": self.effort}
        elif self.effort:
            body["reasoning_effort"] = self.effort
        if self.streamed:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        for name in self._refused:
            body.pop(name, None)
        body |= self._extra

        def reader() -> ChunkReader:
            return ChunkReader(request, names, self.who, KEY, self.model)

        return ProviderRequest(f"{self.url}/chat/completions", body, reader, notes)

    def _repair(self, asked: ProviderRequest, found: ProviderError) -> bool:
        """Remove a parameter that this model rejects; reasoning models reject a temperature, for
        example.
        """
        if (
            not found.codes & {"unsupported_parameter", "unsupported_value"}
            or found.param not in asked.body
        ):
            return False
        if found.param == "max_tokens":
            self._output_name = "max_completion_tokens"
            asked.body[self._output_name] = asked.body.pop("max_tokens")
            return True
        if found.param not in _OPTIONAL or found.param in self._extra:
            return False
        self._refused.add(found.param)
        del asked.body[found.param]
        return True

    def _messages(
        self, request: CreateMessageRequestParams, names: IdMap, ids: IdMap
    ) -> list[JSONObject]:
        messages: list[JSONObject] = []
        if request.system_prompt:
            messages.append({"role": "system", "content": request.system_prompt})
        talk = self._talk(request)
        # the current turn: everything after the last user message. Some providers need its thinking
        # again
        begun = max((at for at, turn in enumerate(talk) if _is_asking(turn)), default=0)
        for at, turn in enumerate(talk):
            if turn.role == "assistant":
                messages.append(self._assistant(turn, names, ids, at > begun))
            else:
                messages.extend(self._user(turn, ids))
        return messages

    def _assistant(self, turn: RoleTurn, names: IdMap, ids: IdMap, current: bool) -> JSONObject:
        text: list[str] = []
        calls: list[JSONObject] = []
        message: JSONObject = {"role": "assistant", "content": None}
        for block in turn.blocks:
            back = kept(block, KEY, self.who.host)
            if current and isinstance(back.get("message"), dict):
                message |= _thinking(back["message"])
            if isinstance(block, ToolUseContent):
                arguments = msgspec.json.encode(block.input).decode()
                call: JSONObject = {"id": ids.out(block.id), "type": "function"}
                call["function"] = {"name": names.out(block.name), "arguments": arguments}
                if "extra_content" in back:
                    call["extra_content"] = back["extra_content"]
                calls.append(call)
            else:
                text.extend(piece.text for piece in pieces(block, AcceptedContent()))
        message["content"] = "\n\n".join(text) if text else None
        if calls:
            message["tool_calls"] = calls
        return message

    def _user(self, turn: RoleTurn, ids: IdMap) -> list[JSONObject]:
        messages: list[JSONObject] = []
        media: list[ContentPiece] = []
        rest: list[SamplingContent] = []
        for block in turn.blocks:
            if not isinstance(block, ToolResultContent):
                rest.append(block)
                continue
            message, shown = tool_message(block, ids.out(block.tool_use_id), self.accepts)
            messages.append(message)
            media += shown
        parts = [piece for block in rest for piece in pieces(block, self.accepts)]
        if media:
            parts = [FROM_RESULTS, *media, *parts]
        if parts:
            messages.append({"role": "user", "content": message_content(parts)})
        return messages


def _is_asking(turn: RoleTurn) -> bool:
    return turn.role == "user" and any(
        not isinstance(block, ToolResultContent) for block in turn.blocks
    )


def _thinking(back: Mapping[str, Any]) -> JSONObject:
    return {
        name: back[name]
        for name in ("reasoning_content", "reasoning", "reasoning_details")
        if name in back
    }
