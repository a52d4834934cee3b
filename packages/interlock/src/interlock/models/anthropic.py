"""The adapter to Anthropic's messages API."""

from __future__ import annotations

from typing import Any, ClassVar

from interlock.types import (
    CreateMessageRequestParams,
    JSONObject,
    SamplingContent,
    ToolResultContent,
    ToolUseContent,
)

from .anthropic_answers import KEY, BlockReader
from .anthropic_results import IMAGES, MOST_IMAGE, content_part, tool_result
from .content_pieces import pieces
from .conversation import IdMap, RoleTurn, begun_and_ended_by_user, kept
from .effort import anthropic_thinking
from .interface import AcceptedContent
from .provider import Provider, ProviderRequest
from .tool_schemas import Dialect, ToolDescription

_VERSION = "2023-06-01"
_KEEP = {"type": "ephemeral"}
_CHOICES = {"auto": "auto", "required": "any", "none": "none"}


class Anthropic(Provider):
    """A model at `{url}/v1/messages`; see Provider for the parameters.

    With `cache`, the request marks the prefix that stays the same between requests for the
    provider's cache: tools, system prompt and the conversation so far (`HST-06`).
    """

    title: ClassVar[str] = "Anthropic"
    dialect: ClassVar[Dialect] = "anthropic"
    default_url: ClassVar[str] = "https://api.anthropic.com"
    tool_names: ClassVar[int] = 128

    def __init__(self, name: str, *, model: str, cache: bool = True, **options: Any) -> None:
        super().__init__(name, model=model, **options)
        self._cache = cache
        self.accepts = AcceptedContent(
            images=IMAGES if self.facts.images else frozenset(),
            documents=frozenset({"application/pdf"}) if self.facts.images else frozenset(),
            most=MOST_IMAGE,
        )

    def _sent_headers(self) -> dict[str, str]:
        headers = {"anthropic-version": _VERSION}
        return headers | ({"x-api-key": self._key.value} if self._key.value else {})

    def _asked(self, request: CreateMessageRequestParams) -> ProviderRequest:
        names = self._words_of_names()
        ids = IdMap("a-zA-Z0-9_-", 64)
        notes = list[str]()
        tools = self._tools(request, names, notes)
        talk = begun_and_ended_by_user(self._talk(request))
        body: JSONObject = {
            "model": self.model,
            "max_tokens": self._output(request),
            "messages": self._messages(talk, names, ids),
        }
        if request.system_prompt:
            body["system"] = [{"type": "text", "text": request.system_prompt}]
        if request.temperature is not None:
            body["temperature"] = min(1.0, max(0.0, request.temperature))
        stops = [words for words in request.stop_sequences or [] if words.strip()]
        if stops:
            body["stop_sequences"] = stops
        if tools:
            body["tools"] = [_tool(tool) for tool in tools]
            if request.tool_choice is not None and request.tool_choice.mode is not None:
                body["tool_choice"] = {"type": _CHOICES[request.tool_choice.mode]}
        elif used := _tools_used(
            talk, names
        ):  # the provider rejects a conversation with tool calls if the request names no tools
            body["tools"] = used
            body["tool_choice"] = {"type": "none"}
        if self.effort:
            body |= anthropic_thinking(self.model, self.effort, body["max_tokens"])
        if self.streamed:
            body["stream"] = True
        body |= self._extra
        _fit_thinking(body)
        if self._cache:
            _keep_prefix(body)
        url = self.url if self.url.endswith("/v1") else f"{self.url}/v1"
        return ProviderRequest(
            f"{url}/messages",
            body,
            lambda: BlockReader(request, names, self.who, self.model),
            notes,
        )

    def _messages(self, talk: list[RoleTurn], names: IdMap, ids: IdMap) -> list[JSONObject]:
        messages = []
        for turn in talk:
            content: list[JSONObject] = []
            for block in turn.blocks:
                back = kept(block, KEY, self.who.host)
                content += _thinking(back.get("before"))
                content += self._block(block, turn.role == "assistant", names, ids)
                content += _thinking(back.get("after"))
            messages.append({"role": turn.role, "content": content})
        return messages

    def _block(
        self, block: SamplingContent, own: bool, names: IdMap, ids: IdMap
    ) -> list[JSONObject]:
        if isinstance(block, ToolUseContent):
            return [
                {
                    "type": "tool_use",
                    "id": ids.out(block.id),
                    "name": names.out(block.name),
                    "input": block.input,
                }
            ]
        if isinstance(block, ToolResultContent):
            return [tool_result(block, ids.out(block.tool_use_id), self.accepts)]
        return [
            content_part(piece)
            for piece in pieces(block, AcceptedContent() if own else self.accepts)
        ]


def _tool(tool: ToolDescription) -> JSONObject:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}


def _tools_used(talk: list[RoleTurn], names: IdMap) -> list[JSONObject]:
    used = dict.fromkeys(
        names.out(block.name)
        for turn in talk
        for block in turn.blocks
        if isinstance(block, ToolUseContent)
    )
    return [
        {"name": name, "description": "No longer available.", "input_schema": {"type": "object"}}
        for name in used
    ]


def _thinking(blocks: Any) -> list[JSONObject]:
    """The thinking blocks as the provider signed them, without anything else."""
    if not isinstance(blocks, list):
        return []
    return [
        block
        for block in blocks
        if isinstance(block, dict) and block.get("type") in ("thinking", "redacted_thinking")
    ]


def _fit_thinking(body: JSONObject) -> None:
    """Remove parameters that the provider rejects together with thinking, or remove thinking if the
    conversation does not permit it.
    """
    thinking = body.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") not in ("enabled", "adaptive"):
        return
    budget = thinking.get("budget_tokens", 0)
    forced = body.get("tool_choice", {}).get("type") == "any"
    if (
        forced
        or (isinstance(budget, int) and budget >= body["max_tokens"])
        or _calls_unthinkingly(body["messages"])
    ):
        del body["thinking"]
    else:
        body.pop("temperature", None)


def _calls_unthinkingly(messages: list[JSONObject]) -> bool:
    """Whether the current turn calls tools and does not begin with thinking, because another model
    wrote it.
    """
    results = messages[-1]["content"]
    if len(messages) < 2 or not any(block["type"] == "tool_result" for block in results):
        return False
    said = messages[-2]["content"]
    return not said or said[0]["type"] not in ("thinking", "redacted_thinking")


def _keep_prefix(body: JSONObject) -> None:
    """Mark the cache breakpoints: tools, system prompt, and the last two user messages. Four are
    allowed.
    """
    if body.get("tools"):
        body["tools"][-1] = {**body["tools"][-1], "cache_control": _KEEP}
    if isinstance(body.get("system"), list) and body["system"]:
        body["system"][-1] = {**body["system"][-1], "cache_control": _KEEP}
    for message in [message for message in body["messages"] if message["role"] == "user"][-2:]:
        if message["content"]:
            message["content"][-1] = {**message["content"][-1], "cache_control": _KEEP}
