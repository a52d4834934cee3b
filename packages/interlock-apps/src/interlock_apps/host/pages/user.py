"""The person at the page: any open page can answer the host's questions."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from ...fleet.questions import Answer, AnyQuestion, CallQuestion, Decision
from ...web.integers import restored


class PageUser:
    """Answers questions with what a page sends. A question waits until a page is opened."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[Answer]] = {}

    async def answer(self, question: AnyQuestion) -> Answer:
        """See UserInterface."""
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[question.id] = waiting
        try:
            answer = await waiting
        finally:
            del self._waiting[question.id]
        if not isinstance(question, CallQuestion) or not isinstance(answer, Decision):
            return answer
        if answer.arguments is None:
            return answer
        return replace(answer, arguments=restored(answer.arguments, question.arguments))

    def settle(self, question: str, answer: Answer) -> bool:
        """Answer a question; False if it is closed already, or another page answered first."""
        waiting = self._waiting.get(question)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(answer)
        return True
