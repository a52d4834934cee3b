"""The prompter: brings each question to the person, and publishes it and its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from ..fleet.events import Event, QuestionAnswered, QuestionAsked
from ..fleet.questions import (
    Answer,
    AnyQuestion,
    Decision,
    Filled,
    FormQuestion,
    NotAnswered,
    NoUser,
    UrlQuestion,
    UserInterface,
)

MOST_OPEN = 100
FULL = "Too many questions are open already."
MOOT = "The question is no longer open."


class Prompter:
    """Brings questions to the person.

    `person` may change while the host runs: user interfaces come and go. At most `most_open`
    questions are open at once; further ones are denied. `open` has the open questions by id.
    """

    def __init__(self, publish: Callable[[Event], None], *, most_open: int = MOST_OPEN) -> None:
        self.person: UserInterface = NoUser()
        self.open: dict[str, AnyQuestion] = {}
        self._publish = publish
        self._most = most_open
        self._count = count(1)
        self._asked: dict[str, _QuestionTime] = {}  # by conversation, and by call
        self.clock: Callable[[], float] | None = None  # in seconds; None: the loop's time
        self._withdrawn: dict[str, asyncio.Future[Answer]] = {}

    def new_id(self) -> str:
        """Return an id for a new question."""
        return f"q{next(self._count)}"

    async def ask(self, question: AnyQuestion) -> Answer:
        """Return the person's answer, or NotAnswered; or the answer given to `withdraw`."""
        self._publish(QuestionAsked(session=question.session, question=question))
        if len(self.open) >= self._most:
            return self._settle(question, NotAnswered(words=FULL))
        self.open[question.id] = question
        withdrawn = self._withdrawn[question.id] = asyncio.get_running_loop().create_future()
        asking = asyncio.ensure_future(self._asked_of(question))
        with self._counting(question.session), self._counting(question.call):
            try:
                either: set[asyncio.Future[Any]] = {asking, withdrawn}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                self._settle(question, NotAnswered(words=MOOT))
                raise
            finally:
                del self._withdrawn[question.id]
                if not asking.done():
                    asking.cancel()
                    await asyncio.wait({asking})
        if withdrawn.done():
            return self._settle(question, withdrawn.result(), "rule")
        return self._settle(question, asking.result())

    async def _asked_of(self, question: AnyQuestion) -> Answer:
        """Ask the user interface. If it fails or is cancelled, the question is not answered."""
        try:
            return _fitting(question, await self.person.answer(question))
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            return NotAnswered(words=MOOT)
        except Exception as bad:
            return NotAnswered(words=f"The question could not be shown ({type(bad).__name__}).")

    def withdraw(self, question: str, answer: Answer) -> bool:
        """Withdraw a question that no longer needs an answer.

        Args:
            question: The id of the question.
            answer: Returned in place of the person's answer: the decision of a rule, or NotAnswered
                with the reason.

        Returns:
            Whether the question was open.
        """
        waiting = self._withdrawn.get(question)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(answer)
        self.open.pop(question, None)
        return True

    async def decide(self, question: AnyQuestion) -> Decision:
        """Return the person's decision; no answer counts as no."""
        answer = await self.ask(question)
        return (
            answer
            if isinstance(answer, Decision)
            else Decision(allow=False, reason=getattr(answer, "words", ""))
        )

    def asked_seconds(self, of: str) -> float:
        """The total time, in seconds, that questions of a conversation or call were open."""
        spent = self._asked.get(of)
        return 0.0 if spent is None else spent.seconds(self._now())

    def forget_seconds(self, of: str) -> float:
        """The same, for the last time, at the end of a call."""
        seconds = self.asked_seconds(of)
        self._asked.pop(of, None)
        return seconds

    def _now(self) -> float:
        return asyncio.get_running_loop().time() if self.clock is None else self.clock()

    def is_asking(self, session: str) -> bool:
        """Whether a question is open in a conversation."""
        return any(question.session == session for question in self.open.values())

    @contextmanager
    def _counting(self, of: str) -> Iterator[None]:
        if not of:
            yield
            return
        spent = self._asked.setdefault(of, _QuestionTime())
        spent.start(self._now())
        try:
            yield
        finally:
            spent.stop(self._now())

    def _settle(self, question: AnyQuestion, answer: Answer, by: str = "person") -> Answer:
        self.open.pop(question.id, None)
        by = "nobody" if isinstance(answer, NotAnswered) else by
        self._publish(
            QuestionAnswered(session=question.session, question=question.id, answer=answer, by=by)
        )
        return answer


class _QuestionTime:
    """The total time in which at least one question was open."""

    def __init__(self) -> None:
        self._open = 0
        self._since = 0.0
        self._before = 0.0

    def start(self, now: float) -> None:
        if not self._open:
            self._since = now
        self._open += 1

    def stop(self, now: float) -> None:
        self._open -= 1
        if not self._open:
            self._before += now - self._since

    def seconds(self, now: float) -> float:
        return self._before + (now - self._since if self._open else 0.0)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _fitting(question: AnyQuestion, answer: Answer) -> Answer:
    wanted = Filled if isinstance(question, FormQuestion | UrlQuestion) else Decision
    if isinstance(answer, wanted | NotAnswered):
        return answer
    return NotAnswered(words="The answer does not fit the question.")
