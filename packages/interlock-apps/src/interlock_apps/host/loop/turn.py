"""The turn of a conversation: model, tool calls, model, until the model answers.

A generator yields each step and receives its outcome, so a test can list every course of a turn in
a table.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from msgspec import Struct

from interlock import TextContent
from interlock.models.interface import ModelAnswer, ModelFacts, ModelFailure, Usage
from interlock.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    SamplingMessage,
    Tool,
    ToolChoice,
    ToolResultContent,
    ToolUseContent,
)

from ...fleet.events import (
    ModelAsked,
    ModelFailed,
    ModelSaid,
    PersonSaid,
    ResultsGiven,
    Trimmed,
    TurnEnded,
)
from .budget import Budget
from .context_window import ContextWindow, blocks

# in the `_meta` of a tool use whose arguments were not JSON: the original text
UNREADABLE = "io.interlock/unreadable"
STOPPED = "Not run, or not finished: the turn was ended."
HARDER = 0.5  # share of the room after the provider said that the conversation is too long


class ModelContext(Struct, frozen=True):
    """The system prompt and the tools for the model, at this moment, and the tokens of both.

    `search` says whether a tool search replaces the tools of servers.
    """

    system: str
    tools: tuple[Tool, ...]
    size: int
    search: bool = False


class AskModel(Struct, frozen=True):
    """Request: the model's answer. Sent back: a ModelAnswer, or the ModelFailure."""

    step: int
    request: CreateMessageRequestParams


class ToolUse(Struct, frozen=True):
    """A tool call of the model.

    `unreadable` is the original text if the arguments are not a JSON object.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    unreadable: str = ""


class CallTools(Struct, frozen=True):
    """Request: the results of these tools. Sent back: a ToolResultContent for each, in order."""

    uses: tuple[ToolUse, ...]


class PublishEvent(Struct, frozen=True):
    """Request: publish an event. Nothing is sent back."""

    event: Any


Step = AskModel | CallTools | PublishEvent


class TurnStopped(Exception):
    """Thrown into the generator: the person cancelled the turn, its time is over (`seconds`), or
    the host failed (`failed`).

    `results` are those that were available already.
    """

    def __init__(
        self, reason: str = "cancelled", results: Sequence[ToolResultContent] = ()
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.results = results


class TurnState(Struct):
    """The state of a conversation for a turn: its messages, which the turn extends, and its
    settings.

    `steered` returns the messages that the person wrote for the next step, each once. `model`,
    `facts` and `trimming` may change while a step runs; the next step has the new ones.
    """

    session: str
    model: str
    facts: ModelFacts
    budget: Budget
    messages: list[SamplingMessage]
    trimming: ContextWindow
    offer: Callable[[], ModelContext]
    steered: Callable[[], Sequence[PersonSaid]] = tuple


class _Spent(Struct):
    """What the answers of a turn took: tokens, and US dollars if all of them have a price."""

    usage: Usage = Usage()
    price: float | None = None
    answers: int = 0

    def add(self, usage: Usage, price: float | None) -> None:
        self.usage = self.usage + usage
        before = self.price if self.answers else 0.0
        self.price = None if before is None or price is None else before + price
        self.answers += 1


def turn(talk: TurnState) -> Generator[Step, Any, TurnEnded]:
    """Continue the conversation from the person's last message; return how the turn ended.

    The messages are consistent afterwards, whatever the outcome.
    """
    spent = _Spent()
    step = 0
    try:
        while True:
            if (over := _over(talk.budget, step, spent.usage)) is not None:
                return _ended(talk, spent, *over)
            step += 1
            model = talk.model
            facts = talk.facts
            said = yield from _asked(talk, step)
            if isinstance(said, TurnEnded):
                return _ended(talk, spent, said.reason, said.words)
            price = facts.price(said.usage)
            spent.add(said.usage, price)
            uses = _append_message(talk, said.result)
            yield PublishEvent(
                ModelSaid(
                    session=talk.session,
                    model=model,
                    step=step,
                    result=said.result,
                    usage=said.usage,
                    thought=said.thought,
                    price=price,
                )
            )
            if not uses:
                if (yield from _steered(talk)):
                    continue  # the person wrote more: the model answers that in the same turn
                return _ended(talk, spent, *_answered(said.result))
            results = yield CallTools(uses[: talk.budget.calls])
            late = [
                _not_run(use.id, f"Not called: at most {talk.budget.calls} calls in one step.")
                for use in uses[talk.budget.calls :]
            ]
            talk.messages.append(SamplingMessage(role="user", content=[*results, *late]))
            yield PublishEvent(ResultsGiven(session=talk.session, results=(*results, *late)))
            yield from _steered(talk)
    except TurnStopped as stop:
        if given := _complete(talk.messages, stop.results):
            yield PublishEvent(ResultsGiven(session=talk.session, results=given))
        words = {
            "cancelled": "Cancelled by the user.",
            "seconds": f"The turn took longer than {talk.budget.seconds:g} seconds.",
            "failed": "The host has an internal error.",
        }
        return _ended(talk, spent, stop.reason, words.get(stop.reason, ""))


def _ended(talk: TurnState, spent: _Spent, reason: Any, words: str) -> TurnEnded:
    return TurnEnded(
        session=talk.session, reason=reason, words=words, usage=spent.usage, price=spent.price
    )


def _over(budget: Budget, step: int, used: Usage) -> tuple[Any, str] | None:
    if step >= budget.steps:
        return (
            "steps",
            f"The model has taken {step} steps, the limit for one turn. Write “continue” "
            "to let it go on.",
        )
    if used.input + used.output >= budget.tokens:
        return (
            "tokens",
            f"The turn has used {used.input + used.output} tokens; the limit is {budget.tokens}.",
        )
    return None


def _steered(talk: TurnState) -> Generator[Step, Any, bool]:
    """Add what the person wrote since the last step; return whether there was something."""
    steered = talk.steered()
    for said in steered:
        talk.messages += said.messages
        yield PublishEvent(said)
    return bool(steered)


def _asked(talk: TurnState, step: int) -> Generator[Step, Any, ModelAnswer | TurnEnded]:
    """Ask the model once; if the conversation is too long, try again with less of it."""
    share = 1.0
    while True:
        offer = talk.offer()
        most = min(talk.facts.output, talk.budget.answer or talk.facts.output)
        outside = offer.size + most
        messages, trims = talk.trimming.shown(
            talk.messages, int(max(1_000, talk.facts.context - outside) * share)
        )
        for trim in trims:
            yield PublishEvent(
                Trimmed(session=talk.session, rule=trim.rule, words=trim.words, tokens=trim.tokens)
            )
        tools = list(offer.tools) if talk.facts.tools else []
        request = CreateMessageRequestParams(
            messages=messages,
            max_tokens=most,
            system_prompt=offer.system,
            tools=tools or None,
            tool_choice=ToolChoice(mode="auto") if tools else None,
        )
        size = offer.size + talk.trimming.size
        yield PublishEvent(
            ModelAsked(
                session=talk.session,
                model=talk.model,
                step=step,
                messages=len(messages),
                tools=len(tools),
                tokens=size,
                own=offer.size,
                window=talk.facts.context,
                answer=most,
                search=offer.search,
            )
        )
        came = yield AskModel(step, request)
        if isinstance(came, ModelAnswer):
            return came
        failure: ModelFailure = came
        yield PublishEvent(
            ModelFailed(
                session=talk.session,
                model=talk.model,
                step=step,
                kind=failure.kind,
                words=str(failure),
            )
        )
        if failure.kind != "too_long" or share < 1.0:
            return TurnEnded(
                session=talk.session,
                reason="refused" if failure.kind == "refused" else "failed",
                words=str(failure),
            )
        share = HARDER


def _append_message(talk: TurnState, result: CreateMessageResult) -> tuple[ToolUse, ...]:
    """Add the model's message to the conversation; return its tool uses."""
    said = SamplingMessage(role="assistant", content=result.content)
    if blocks(said):
        talk.messages.append(said)
    return tuple(_use(block) for block in blocks(said) if isinstance(block, ToolUseContent))


def _use(block: ToolUseContent) -> ToolUse:
    return ToolUse(
        block.id, block.name, dict(block.input), str((block.meta or {}).get(UNREADABLE, ""))
    )


def _answered(result: CreateMessageResult) -> tuple[str, str]:
    """The reason and the words with which a turn ends after the model's answer."""
    if result.stop_reason == "refusal":
        return "refused", "The model refuses to answer this."
    words = (
        "The answer was cut off at the length limit." if result.stop_reason == "maxTokens" else ""
    )
    if not words and not any(
        isinstance(b, TextContent) and b.text.strip()
        for b in blocks(SamplingMessage(role="assistant", content=result.content))
    ):
        words = "The model gave an empty answer."
    return "done", words


def _complete(
    messages: list[SamplingMessage], results: Sequence[ToolResultContent]
) -> tuple[ToolResultContent, ...]:
    """Add an error result to each tool use without one: providers reject a conversation otherwise
    (`SAM-15`).
    """
    if not messages or messages[-1].role != "assistant":
        return ()
    there = {result.tool_use_id: result for result in results}
    uses = [block for block in blocks(messages[-1]) if isinstance(block, ToolUseContent)]
    given = tuple(there.get(use.id) or _not_run(use.id, STOPPED) for use in uses)
    if given:
        messages.append(SamplingMessage(role="user", content=list(given)))
    return given


def _not_run(use: str, words: str) -> ToolResultContent:
    return ToolResultContent(tool_use_id=use, content=[TextContent(text=words)], is_error=True)
