"""A scripted model for tests and demonstrations."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

from interlock.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    SamplingContent,
    TextContent,
    ToolUseContent,
)

from .conversation import fresh_id, ids_in
from .interface import Delta, ModelAnswer, ModelFacts, ModelFailure, Usage

Call = tuple[str, dict[str, Any]]
"""A tool's name and arguments."""

Answer = (
    str
    | Call
    | SamplingContent
    | Sequence[str | Call | SamplingContent]
    | CreateMessageResult
    | ModelAnswer
    | BaseException
)
"""Text; a tool call; several of these; a complete result or `ModelAnswer`; or an exception to
raise.
"""

Scripts = Answer | Callable[[CreateMessageRequestParams], Answer | Awaitable[Answer]]


def call(name: str, /, **arguments: Any) -> Call:
    """Return a tool call for a script: `Scripted(call("weather", city="Paris"))`."""
    return name, arguments


class Scripted:
    """A model that returns its answers one after the other, and streams text word by word.

    Args:
        answers: The answers. An answer may be a function of the request, also an async one. After
            the last answer it raises ModelFailure.
        name: Its name.
        facts: What is known about it.
        forever: Repeats the last answer instead.
        before: Awaited before each piece, with the number of the piece, so that a test can stop it
            anywhere.

    Attributes:
        requests: The requests that it received.
        closed: How many answers were not read to the end.
    """

    def __init__(
        self,
        *answers: Scripts,
        name: str = "scripted",
        facts: ModelFacts | None = None,
        forever: bool = False,
        before: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        self.name = self.model = name
        self.facts = facts or ModelFacts(remark="gives scripted answers")
        self.requests: list[CreateMessageRequestParams] = []
        self.closed = 0
        self._answers = list(answers)
        self._forever = forever
        self._before = before
        self._next = 0

    @property
    def left(self) -> int:
        """How many answers have not been given yet."""
        return len(self._answers) - self._next

    def add(self, *answers: Scripts) -> None:
        """Add answers at the end."""
        self._answers.extend(answers)

    async def aclose(self) -> None:
        """Do nothing: nothing is open."""

    async def stream(
        self, request: CreateMessageRequestParams
    ) -> AsyncGenerator[Delta | ModelAnswer, None]:
        """Stream the next answer. Raises ModelFailure, or the exception of the script."""
        self.requests.append(request)
        said = await self._said(request)
        read_whole = False
        number = 0
        try:
            for delta in _deltas(said.result):
                if self._before is not None:
                    await self._before(number)
                number += 1
                yield delta
            read_whole = True
            yield said
        finally:
            self.closed += not read_whole

    async def _said(self, request: CreateMessageRequestParams) -> ModelAnswer:
        if self._next >= len(self._answers):
            if not (self._forever and self._answers):
                raise ModelFailure(
                    f"The scripted model {self.name} has no answer left.", "bad_answer"
                )
            script = self._answers[-1]
        else:
            script = self._answers[self._next]
            self._next += 1
        answer: Any = (
            script(request) if callable(script) and not isinstance(script, type) else script
        )
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, ModelAnswer):
            return answer
        if isinstance(answer, CreateMessageResult):
            return ModelAnswer(answer)
        return self._made(request, answer)

    def _made(self, request: CreateMessageRequestParams, answer: Any) -> ModelAnswer:
        parts = (
            [answer]
            if isinstance(answer, str | SamplingContent) or _is_call(answer)
            else list(answer)
        )
        taken = ids_in(request.messages)
        content: list[SamplingContent] = []
        for part in parts:
            if isinstance(part, str):
                content.append(TextContent(part))
            elif _is_call(part):
                id = fresh_id(
                    taken.__contains__,
                    len(request.messages),
                    sum(isinstance(block, ToolUseContent) for block in content),
                )
                content.append(ToolUseContent(id=id, name=part[0], input=part[1]))
            else:
                content.append(part)
        stop = (
            "toolUse" if any(isinstance(block, ToolUseContent) for block in content) else "endTurn"
        )
        result = CreateMessageResult(
            role="assistant", content=content, model=self.model, stop_reason=stop
        )
        words = sum(len(block.text.split()) for block in content if isinstance(block, TextContent))
        return ModelAnswer(result, Usage(input=len(request.messages), output=words))


def _is_call(part: Any) -> bool:
    return (
        isinstance(part, tuple)
        and len(part) == 2
        and isinstance(part[0], str)
        and isinstance(part[1], dict)
    )


def _deltas(result: CreateMessageResult) -> list[Delta]:
    content = result.content if isinstance(result.content, list) else [result.content]
    deltas = []
    for block in content:
        if isinstance(block, TextContent):
            deltas += [
                Delta("text", words) for words in re.findall(r"\s*\S+\s*?(?=\s|$)|\s+", block.text)
            ]
        elif isinstance(block, ToolUseContent):
            deltas.append(Delta("call", block.name, block.id))
    return deltas
