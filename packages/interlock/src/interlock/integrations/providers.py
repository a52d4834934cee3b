"""Function lists for the interfaces of OpenAI, Anthropic and Gemini."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from .. import types as t
from ..client.app import Client
from ..models import anthropic_results as anthropic
from ..models import gemini_results as gemini
from ..models import openai_results as openai
from ..models.content_pieces import ContentPiece, text_of_pieces
from ..models.interface import AcceptedContent
from ..models.tool_schemas import Dialect, ToolDescription
from .functions import FunctionCall, FunctionList
from .model_calls import ModelCalls, OnToolProgress, as_block, pieces_of

_PDF = frozenset({"application/pdf"})


Interface = Literal["openai", "openai-responses", "anthropic", "gemini"]
"""An interface of a provider: OpenAI's Chat Completions, which many other providers have too;
OpenAI's Responses; Anthropic's Messages; Gemini's generateContent."""


async def function_list(
    client: Client,
    interface: Interface,
    *,
    only: str | Iterable[str] | None = None,
    images: bool = True,
    on_progress: OnToolProgress | None = None,
) -> FunctionList:
    """Return the tools of a client as functions for the models of a provider, as plain data.

    Args:
        client: An open client.
        interface: The interface of the provider.
        only: The tools to offer, as names or shell patterns; None for all. Calls of other tools
            fail.
        images: Whether the model accepts images and PDF, and sound in the case of Gemini.
            Otherwise a text says what was left out.
        on_progress: Called with the name of a tool and the progress of its call.

    Raises:
        ValueError: There is no such interface.
        McpError: The server answers with an error.
        Unreachable: The server does not respond, or the connection is lost.
    """
    kind = _KINDS.get(interface)
    if kind is None:
        raise ValueError(f"there is no interface {interface!r}; there are {', '.join(_KINDS)}")
    calls = ModelCalls(client, only, on_progress, kind.longest_name)
    functions = kind(calls, kind.accepted if images else AcceptedContent())
    await functions.refresh()
    return functions


class _ChatFunctions(FunctionList):
    dialect: ClassVar[Dialect] = "openai"
    accepted: ClassVar[AcceptedContent] = AcceptedContent(openai.IMAGES, documents=_PDF)

    def _define(self, tools: Sequence[ToolDescription]) -> list[t.JSONObject]:
        return [
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

    def _read(self, answer: Any) -> list[FunctionCall]:
        message = _object(answer, "a chat completion or its message")
        for choice in message.get("choices") or ():
            message = choice["message"]
            break
        return [
            FunctionCall(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
            if call.get("type", "function") == "function"
        ]

    def _answer(
        self, calls: Sequence[FunctionCall], results: Sequence[t.CallToolResult]
    ) -> list[t.JSONObject]:
        messages: list[t.JSONObject] = []
        media: list[ContentPiece] = []
        for call, result in zip(calls, results, strict=True):
            message, shown = openai.tool_message(as_block(result, call.id), call.id, self._accepted)
            messages.append(message)
            media += shown
        if media:
            content = openai.message_content([openai.FROM_RESULTS, *media])
            messages.append({"role": "user", "content": content})
        return messages


class _ResponsesFunctions(FunctionList):
    dialect: ClassVar[Dialect] = "openai"
    accepted: ClassVar[AcceptedContent] = AcceptedContent(openai.IMAGES, documents=_PDF)

    def _define(self, tools: Sequence[ToolDescription]) -> list[t.JSONObject]:
        # Strict mode, the default here, rejects most schemas: it wants every property required.
        return [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
                "strict": False,
            }
            for tool in tools
        ]

    def _read(self, answer: Any) -> list[FunctionCall]:
        items = answer.get("output") if isinstance(answer, Mapping) else answer
        return [
            FunctionCall(item["call_id"], item["name"], item["arguments"])
            for item in _list(items, "a response or its output")
            if item.get("type") == "function_call"
        ]

    def _answer(
        self, calls: Sequence[FunctionCall], results: Sequence[t.CallToolResult]
    ) -> list[t.JSONObject]:
        return [
            {
                "type": "function_call_output",
                "call_id": call.id,
                "output": self._output(result),
            }
            for call, result in zip(calls, results, strict=True)
        ]

    def _output(self, result: t.CallToolResult) -> str | list[t.JSONObject]:
        pieces = pieces_of(result, self._accepted)
        if result.is_error:
            pieces = [ContentPiece("text", "[The call failed.]"), *pieces]
        if all(piece.kind == "text" for piece in pieces):
            return text_of_pieces(pieces)
        return [_input_part(piece) for piece in pieces]


class _AnthropicFunctions(FunctionList):
    dialect: ClassVar[Dialect] = "anthropic"
    longest_name: ClassVar[int] = 128
    accepted: ClassVar[AcceptedContent] = AcceptedContent(
        anthropic.IMAGES, documents=_PDF, most=anthropic.MOST_IMAGE
    )

    def _define(self, tools: Sequence[ToolDescription]) -> list[t.JSONObject]:
        return [
            {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
            for tool in tools
        ]

    def _read(self, answer: Any) -> list[FunctionCall]:
        blocks = answer.get("content") if isinstance(answer, Mapping) else answer
        if isinstance(blocks, str):  # the content of a message without calls
            return []
        return [
            FunctionCall(block["id"], block["name"], block["input"])
            for block in _list(blocks, "a message or its content")
            if block.get("type") == "tool_use"
        ]

    def _answer(
        self, calls: Sequence[FunctionCall], results: Sequence[t.CallToolResult]
    ) -> list[t.JSONObject]:
        content = [
            anthropic.tool_result(as_block(result, call.id), call.id, self._accepted)
            for call, result in zip(calls, results, strict=True)
        ]
        return [{"role": "user", "content": content}]


class _GeminiFunctions(FunctionList):
    dialect: ClassVar[Dialect] = "gemini"
    accepted: ClassVar[AcceptedContent] = AcceptedContent(
        gemini.IMAGES,
        gemini.SOUNDS,
        _PDF,
        most=gemini.MOST_MEDIA,
        most_document=gemini.MOST_MEDIA,
    )

    def _define(self, tools: Sequence[ToolDescription]) -> list[t.JSONObject]:
        if not tools:
            return []
        return [{"functionDeclarations": [gemini.declared(tool) for tool in tools]}]

    def _read(self, answer: Any) -> list[FunctionCall]:
        content = _object(answer, "a response or the content of a candidate")
        if "parts" not in content:
            for candidate in content.get("candidates") or ():
                content = candidate.get("content") or {}
                break
        parts = content.get("parts") or ()
        used = [part["functionCall"] for part in parts if "functionCall" in part]
        return [FunctionCall(call.get("id") or "", call["name"], call.get("args")) for call in used]

    def _answer(
        self, calls: Sequence[FunctionCall], results: Sequence[t.CallToolResult]
    ) -> list[t.JSONObject]:
        responses: list[t.JSONObject] = []
        media: list[t.JSONObject] = []
        for call, result in zip(calls, results, strict=True):
            named: t.JSONObject = {"name": call.name} | ({"id": call.id} if call.id else {})
            response, shown = gemini.function_response(
                as_block(result, call.id), named, self._accepted
            )
            responses.append(response)
            media += shown
        return [{"role": "user", "parts": [*responses, *media]}]


def _input_part(piece: ContentPiece) -> t.JSONObject:
    """A part of an output in OpenAI's Responses."""
    if piece.kind == "text":
        return {"type": "input_text", "text": piece.text}
    url = f"data:{piece.mime};base64,{piece.data}"
    if piece.kind == "image":
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    return {"type": "input_file", "filename": piece.name or "document.pdf", "file_data": url}


def _object(given: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise TypeError(f"run() takes {what}, not {type(given).__name__}")
    return given


def _list(given: Any, what: str) -> Sequence[Any]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise TypeError(f"run() takes {what}, not {type(given).__name__}")
    return given


_KINDS: Mapping[str, type[FunctionList]] = {
    "openai": _ChatFunctions,
    "openai-responses": _ResponsesFunctions,
    "anthropic": _AnthropicFunctions,
    "gemini": _GeminiFunctions,
}
