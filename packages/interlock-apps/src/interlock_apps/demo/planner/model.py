"""The planner in the form of a model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Any

from interlock import TextContent
from interlock.models.conversation import fresh_id, ids_in
from interlock.models.interface import Delta, ModelAnswer, ModelFacts, Usage
from interlock.types import CreateMessageRequestParams, CreateMessageResult, ToolUseContent

from .flights import best
from .steps import MISSING, Done, Next, next_step
from .wishes import spoken, wishes

REMARK = (
    "Rule-based, not a language model: it plans holidays by fixed rules "
    "and understands nothing else."
)
HELP = (
    "I am not a language model. I follow fixed rules, and I can only plan a holiday with the "
    "travel, weather, calendar and mail servers. Choose the prompt “Plan a vacation” (type /) and "
    "give a destination, a departure date and a return date. Or write: Barcelona, 2024-06-15 to "
    "2024-06-22, a budget of 3000 for two."
)
DATES = (
    "To plan a trip I need a departure date and a later return date. Write both, such as "
    "2024-06-15 to 2024-06-22, or choose the prompt “Plan a vacation” (type /) and fill them in."
)


class Planner:
    """Plans the travel scenario without a network.

    `pace` is the pause between two words, in seconds.
    """

    def __init__(self, name: str = "planner", *, pace: float = 0.0) -> None:
        self.name = name
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
        step = _answer(request)
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


def _answer(request: CreateMessageRequestParams) -> Next:
    place, wish = wishes(request.messages)
    if not request.tools:  # a server asks, or no tools are available
        text = "\n".join(spoken(message) for message in request.messages)
        return Next(best(text) or (MISSING if wish is not None else HELP))
    if wish is None:
        return Next(HELP if place < 0 else DATES)
    later = [
        message
        for message in request.messages[place + 1 :]
        if message.role == "user" and spoken(message)
    ]
    if later:
        return Next(HELP)
    names = {tool.name.rpartition("__")[2]: tool.name for tool in reversed(request.tools)}
    done = Done(request.messages[place + 1 :], {full: plain for plain, full in names.items()})
    return next_step(wish, done, names)
