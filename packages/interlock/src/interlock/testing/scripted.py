"""Scripted answers to a server's questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import types as t
from ..client.answers import Answers, RootsGiven

Script = Sequence[Any] | Mapping[str, Any]


class ScriptedAnswers(Answers):
    """Answers questions by a script and records them; for `Client(answers=...)` or `asker=`.

    A script is a list, whose answers are used in order, or a dict that maps a part of the
    question's text to an answer, which may be used again. An answer may be any result of the
    functions of Answers. An exception is raised. A function is called with the question's params.

    Args:
        elicit: The script for elicitation.
        sample: The script for sampling.
        roots: As for Answers.
        url: As for Answers.
        tools: As for Answers.
        context: As for Answers.
    """

    def __init__(
        self,
        *,
        elicit: Script | None = None,
        sample: Script | None = None,
        roots: RootsGiven | None = None,
        url: bool = True,
        tools: bool = True,
        context: bool = False,
    ) -> None:
        self.asked: list[t.InputRequest] = []
        self._left: dict[str, list[Any]] = {}
        super().__init__(
            elicit=self._function("elicitation", elicit),
            sample=self._function("sampling", sample),
            roots=roots,
            url=url,
            tools=tools,
            context=context,
        )

    async def ask(self, request: t.InputRequest, key: str | None = None) -> t.InputResponse:
        """Record the question and answer it. Raises McpError if the script has no answer."""
        self.asked.append(request)
        return await super().ask(request, key)

    @property
    def messages(self) -> list[str]:
        """The messages of the elicitation requests, in order."""
        return [
            request.params.message for request in self.asked if isinstance(request, t.ElicitRequest)
        ]

    def check(self) -> None:
        """Raise AssertionError if answers of a list are left."""
        for what, left in self._left.items():
            if left:
                raise AssertionError(f"{len(left)} answers to {what} were not asked for: {left!r}")

    def _function(self, what: str, script: Script | None) -> Callable[[Any], Any] | None:
        if script is None:
            return None
        if isinstance(script, Mapping):
            return lambda params: _given(_matching(what, script, params), params)
        left = self._left[what] = list(script)

        def next_one(params: Any) -> Any:
            if not left:
                raise t.McpError(
                    t.INTERNAL_ERROR,
                    f"The script has no answer left for this {what}: {_words(params)}",
                )
            return _given(left.pop(0), params)

        return next_one


def _matching(what: str, script: Mapping[str, Any], params: Any) -> Any:
    words = _words(params)
    for part, answer in script.items():
        if part in words:
            return answer
    raise t.McpError(t.INTERNAL_ERROR, f"The script has no answer for this {what}: {words}")


def _given(answer: Any, params: Any) -> Any:
    if isinstance(answer, BaseException):
        raise answer
    return answer(params) if callable(answer) else answer


def _words(params: t.ElicitRequestParams | t.CreateMessageRequestParams) -> str:
    """The text of a question, for matching and for error messages."""
    if isinstance(params, t.ElicitRequestParams):
        return params.message
    blocks = [
        block
        for m in params.messages
        for block in (m.content if isinstance(m.content, list) else [m.content])
    ]
    return "\n".join(block.text for block in blocks if isinstance(block, t.TextContent))
