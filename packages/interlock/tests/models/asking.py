"""What the tests of models share: requests, adapters to ask with, and a client that hands an answer
over in pieces of any size.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from interlock import Request
from interlock.models.anthropic import Anthropic
from interlock.models.gemini import Gemini
from interlock.models.interface import Delta, Model, ModelAnswer
from interlock.models.openai import OpenAI
from interlock.models.provider import Provider
from interlock.types import (
    CreateMessageRequestParams,
    SamplingMessage,
    TextContent,
    Tool,
    ToolChoice,
)

KEY = "sk-very-secret-0123456789"
ADAPTERS: dict[str, type[Provider]] = {"openai": OpenAI, "anthropic": Anthropic, "gemini": Gemini}
WEATHER = Tool(
    name="weather",
    description="Weather of a city.",
    input_schema={
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
)


def said(role: Any, *content: Any) -> SamplingMessage:
    """A message; strings are text."""
    return SamplingMessage(
        role=role,
        content=[TextContent(block) if isinstance(block, str) else block for block in content],
    )


def request(
    *messages: SamplingMessage, mode: Any = None, tools: Sequence[Tool] = (WEATHER,), **more: Any
) -> CreateMessageRequestParams:
    """A request with the weather tool; without messages somebody says "Hi"."""
    choice = ToolChoice(mode=mode) if mode else None
    more = {"max_tokens": 100, **more}
    return CreateMessageRequestParams(
        messages=list(messages) or [said("user", "Hi")],
        tools=list(tools) or None,
        tool_choice=choice,
        **more,
    )


async def received(
    model: Model, params: CreateMessageRequestParams
) -> tuple[list[Delta], ModelAnswer]:
    """What came in pieces, and the whole; exactly one whole, and at the end."""
    pieces = [piece async for piece in model.stream(params)]
    *deltas, last = pieces
    assert isinstance(last, ModelAnswer)
    assert all(isinstance(delta, Delta) for delta in deltas)
    return [delta for delta in deltas if isinstance(delta, Delta)], last


async def collect(model: Model, came: list[Any]) -> None:
    """What comes, as far as it comes."""
    async for piece in model.stream(request()):
        came.append(piece)


def text_of(deltas: list[Delta], kind: str = "text") -> str:
    """What was said in pieces of a kind."""
    return "".join(delta.text for delta in deltas if delta.kind == kind)


class Pauses:
    """Stands in for sleeping: notes how long, and does not."""

    def __init__(self) -> None:
        self.all: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.all.append(seconds)


class InPieces:
    """A client whose one answer is a stream that comes in the given pieces, and then perhaps does
    not end; it fulfils the seam `Fetch`.
    """

    def __init__(self, pieces: Sequence[bytes], *, endless: bool = False) -> None:
        self.status = 200
        self.headers = {"content-type": "text/event-stream"}
        self._pieces = pieces
        self._endless = endless
        self.closed = 0
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> InPieces:
        self.requests.append(request)
        return self

    async def read(self, limit: int) -> bytes:
        return b"".join(self._pieces)

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        if self._endless:
            await asyncio.get_running_loop().create_future()

    async def aclose(self) -> None:
        """Counted."""
        self.closed += 1
