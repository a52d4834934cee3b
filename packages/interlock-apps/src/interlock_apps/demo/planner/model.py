"""The planner in the form of a model."""

from __future__ import annotations

import asyncio
import datetime as dt
import re
from collections.abc import AsyncGenerator, Callable
from typing import Any

from interlock import TextContent
from interlock.models.conversation import fresh_id, ids_in
from interlock.models.interface import Delta, ModelAnswer, ModelFacts, Usage
from interlock.types import CreateMessageRequestParams, CreateMessageResult, ToolUseContent

from .conversation import spoken, trip_in, wishes
from .flights import best
from .steps import MISSING, Done, Next, next_step
from .trips import question_about

REMARK = (
    "Rule-based, not a language model: it plans holidays by fixed rules "
    "and understands nothing else."
)
HELP = (
    "I am not a language model. I follow fixed rules, and I can only plan a holiday with the "
    "travel, weather, calendar and mail servers. Say where, when, for how many people and for how "
    "much, such as: a week in Lisbon for two in May, under 2,500 dollars. Or type / and choose "
    "“Plan a vacation”."
)


class Planner:
    """Plans the travel scenario without a network.

    Args:
        name: The name of the model.
        pace: The pause between two words, in seconds.
        today: The day from which "in May" or "next weekend" is counted.
    """

    def __init__(
        self,
        name: str = "planner",
        *,
        pace: float = 0.0,
        today: Callable[[], dt.date] = dt.date.today,
    ) -> None:
        self.name = name
        self._today = today
        # It reads only the names of the tools, so any number of them fits.
        self.facts = ModelFacts(
            context=10_000_000,
            output=8_192,
            images=False,
            cost=1.0,
            speed=1.0,
            intelligence=0.0,
            remark=REMARK,
        )
        self._pace = pace

    async def aclose(self) -> None:
        """Do nothing: nothing is open."""

    async def stream(
        self, request: CreateMessageRequestParams
    ) -> AsyncGenerator[Delta | ModelAnswer, None]:
        """Yield the next step of the plan: text or tool calls."""
        step = _answer(request, self._today())
        for word in re.findall(r"\S+\s*|\s+", step.text):
            yield Delta("text", word)
            if self._pace:
                await asyncio.sleep(self._pace)
        taken = ids_in(request.messages)
        content: list[Any] = [TextContent(text=step.text)] if step.text else []
        for ordinal, (name, arguments) in enumerate(step.calls):
            id = fresh_id(taken.__contains__, len(request.messages), ordinal)
            taken.add(id)
            use = ToolUseContent(id=id, name=name, input=arguments)
            content.append(use)
            yield Delta("call", name, use.id)
        result = CreateMessageResult(
            role="assistant",
            content=content,
            model=self.name,
            stop_reason="toolUse" if step.calls else "endTurn",
        )
        yield ModelAnswer(result, Usage())


def _answer(request: CreateMessageRequestParams, today: dt.date) -> Next:
    if not request.tools:  # a server asks, or no tools are available
        text = "\n".join(spoken(message) for message in request.messages)
        if (chosen := best(text)) is not None:
            return Next(chosen)
    place, trip = trip_in(request.messages, today)
    if trip is None:
        return Next(HELP)
    if not request.tools:
        return Next(MISSING)
    later = [
        message
        for message in request.messages[place + 1 :]
        if message.role == "user" and spoken(message)
    ]
    if later:
        return Next(HELP)
    wish = wishes(request.messages[: place + 1], trip)
    if wish is None:
        return Next(question_about(trip))
    names = {tool.name.rpartition("__")[2]: tool.name for tool in reversed(request.tools)}
    done = Done(request.messages[place + 1 :], {full: plain for plain, full in names.items()})
    return next_step(wish, done, names)
