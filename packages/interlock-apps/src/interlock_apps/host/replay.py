"""Replay of a conversation from the log: its messages, its model and the results of its calls."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Literal

import msgspec

from interlock import TextContent
from interlock.models.interface import Delta, ModelAnswer, ModelFacts, ModelFailure
from interlock.types import (
    CreateMessageRequestParams,
    SamplingMessage,
    ToolResultContent,
    ToolUseContent,
)

from ..fleet.events import (
    AnyEvent,
    CallDecided,
    CallEnded,
    CallProposed,
    LogEntry,
    MessageQueued,
    MessageUnqueued,
    ModelAsked,
    ModelChosen,
    ModelFailed,
    ModelSaid,
    PersonSaid,
    ResultsGiven,
    SessionBegan,
    SessionResumed,
    TaskEnded,
    TaskGiven,
    ToolOfferChosen,
    TurnEnded,
)
from ..fleet.log.interface import LogError
from ..fleet.log.records import UnreadableEvent
from ..fleet.log.session_titles import SessionTitles
from .conversations.branches import branch_of
from .loop.turn import STOPPED


class Replay:
    """A conversation from the log. `session` selects it if the entries contain several.

    Of its branches, it is the one that was chosen last, or the newest one through the entry `at`.

    `events` are the events of that branch, `messages` its messages, `tasks` the ended tasks whose
    outcome is not yet among the messages, `queued` the messages that still wait for the model,
    `effort` and `offer` what the person chose last; `model` and `results` are for a loop that runs
    it again without a network. `calls` counts the calls of all branches, and `all_events` has their
    events. Raises LogError if the conversation or its beginning is missing, or was written by
    another version of Interlock and cannot be read.
    """

    def __init__(
        self,
        notes: Iterable[LogEntry],
        session: str = "",
        *,
        at: int = 0,
        facts: ModelFacts = ModelFacts(),  # noqa: B008 - a frozen value
    ) -> None:
        kept = [noted for noted in notes if noted.seq and noted.event.kept]
        sessions = dict.fromkeys(noted.event.session for noted in kept if noted.event.session)
        if not session and len(sessions) > 1:
            raise LogError(
                f"The entries are of {len(sessions)} conversations; choose one: "
                f"{', '.join(list(sessions)[:10])}."
            )
        self.session = session or next(iter(sessions), "")
        everything = tuple(noted for noted in kept if noted.event.session == self.session)
        for event in (noted.event for noted in everything):
            if isinstance(event, UnreadableEvent):
                raise LogError(
                    f"The conversation was written by another version of Interlock. {event.words}"
                )
        if not self.session or not everything:
            raise LogError(
                f"There is no conversation {self.session!r} here."
                if self.session
                else "There is no conversation here."
            )
        if not isinstance(began := everything[0].event, SessionBegan):
            raise LogError(f"The beginning of the conversation {self.session!r} is missing.")
        titles = SessionTitles()
        for noted in everything:
            titles.see(noted)
        self.title = titles.rows()[0].title
        self.project = began.project
        self.branch = branch_of(everything, at)
        self.notes = self.branch.entries
        self.events = self.branch.events
        self.messages = messages_of(self.events)
        # In all branches: a task was given to one of them, and the ids of calls are unique in all.
        self.all_events = events = tuple(noted.event for noted in everything)
        self.calls = sum(isinstance(event, CallProposed) for event in events)
        given = {event.call for event in events if isinstance(event, TaskGiven)}
        self.tasks = tuple(
            event for event in events if isinstance(event, TaskEnded) and event.call not in given
        )
        self.queued = _queued(events)
        self.effort = ""
        self.offer: Literal["auto", "all", "search"] = "auto"
        name = began.model
        for event in events:
            if isinstance(event, SessionResumed):
                name = event.model
            elif isinstance(event, ModelChosen):
                name = event.model
                self.effort = event.effort
            elif isinstance(event, ToolOfferChosen):
                self.offer = event.offer
        self.model = RecordedModel(name, self.events, facts)
        self.results = RecordedResults(self.events)


class RecordedModel:
    """A Model that repeats the answers of a conversation whatever it is asked, and fails where the
    original failed.

    An answer that was never finished, because the person cancelled it, is cancelled again.
    """

    def __init__(self, name: str, events: Iterable[AnyEvent], facts: ModelFacts) -> None:
        self.name = name
        self.facts = facts
        self._left: deque[ModelAnswer | ModelFailure | None] = deque()
        asked = False
        for event in events:
            if isinstance(event, ModelAsked | TurnEnded) and asked:
                self._left.append(None)
            if isinstance(event, ModelSaid):
                self._left.append(ModelAnswer(event.result, event.usage, event.thought))
            elif isinstance(event, ModelFailed):
                self._left.append(ModelFailure(event.words, event.kind))  # type: ignore[arg-type]  # the log keeps the kind as text
            asked = isinstance(event, ModelAsked) or (
                asked and not isinstance(event, ModelSaid | ModelFailed | TurnEnded)
            )

    @property
    def left(self) -> int:
        """How many answers are left."""
        return len(self._left)

    async def stream(
        self, request: CreateMessageRequestParams
    ) -> AsyncIterator[Delta | ModelAnswer]:
        """See Model."""
        if not self._left:
            raise ModelFailure("The recorded conversation ends here.", "unreachable")
        next_one = self._left.popleft()
        if next_one is None:
            raise asyncio.CancelledError
        if isinstance(next_one, ModelFailure):
            raise next_one
        yield next_one

    async def aclose(self) -> None:
        """See Model."""


class RecordedResults:
    """The results of a conversation's calls, each in its original order and number."""

    def __init__(self, events: Iterable[AnyEvent]) -> None:
        self._ended: dict[tuple[str, bytes], deque[CallEnded]] = {}
        proposed: dict[str, CallProposed] = {}
        edited: dict[str, dict[str, Any]] = {}
        for event in events:
            if isinstance(event, CallProposed):
                if event.by != "model":
                    continue  # a call of an app or the person: the model does not wait for it
                proposed[event.call] = event
            elif isinstance(event, CallDecided) and event.arguments is not None:
                edited[event.call] = event.arguments
            elif isinstance(event, CallEnded) and event.call in proposed:
                call = proposed.pop(event.call)
                self._ended.setdefault(
                    _key(call.name, edited.get(event.call, call.arguments)), deque()
                ).append(event)

    def take(self, name: str, arguments: Mapping[str, Any]) -> CallEnded:
        """Return the result of the next call with these arguments (those that the tool received).

        `name` is the tool's name for models.

        Raises LogError if the conversation has no such call, or no more of them.
        """
        ended = self._ended.get(_key(name, arguments))
        if not ended:
            raise LogError(
                f"The recorded conversation has no such call of {name}, or fewer of them."
            )
        return ended.popleft()

    @property
    def left(self) -> int:
        """How many calls are left."""
        return sum(map(len, self._ended.values()))


def _key(name: str, arguments: Mapping[str, Any]) -> tuple[str, bytes]:
    return name, msgspec.json.encode(dict(arguments), order="sorted")


def messages_of(events: Iterable[AnyEvent]) -> list[SamplingMessage]:
    """The messages as the model got them. Unfinished tool calls have an error result."""
    messages: list[SamplingMessage] = []
    wanted: tuple[ToolUseContent, ...] = ()
    for event in events:
        if isinstance(event, ResultsGiven):
            messages.append(SamplingMessage(role="user", content=list(event.results)))
            wanted = ()
        elif isinstance(event, ModelAsked | PersonSaid | TaskGiven | TurnEnded):
            messages += _stopped(wanted)
            wanted = ()
        if isinstance(event, PersonSaid | TaskGiven):
            messages += event.messages
        elif isinstance(event, ModelSaid):
            content = (
                event.result.content
                if isinstance(event.result.content, list)
                else [event.result.content]
            )
            if content:
                messages.append(SamplingMessage(role="assistant", content=event.result.content))
            wanted = tuple(block for block in content if isinstance(block, ToolUseContent))
    return messages + _stopped(wanted)


def _queued(events: Iterable[AnyEvent]) -> tuple[MessageQueued, ...]:
    """The messages that the person wrote during a turn and that the model did not get."""
    waiting: dict[str, MessageQueued] = {}
    for event in events:
        if isinstance(event, MessageQueued):
            waiting[event.id] = event
        elif isinstance(event, MessageUnqueued):
            waiting.pop(event.id, None)
        elif isinstance(event, PersonSaid):
            waiting.pop(event.queued, None)
    return tuple(waiting.values())


def _stopped(wanted: tuple[ToolUseContent, ...]) -> list[SamplingMessage]:
    if not wanted:
        return []
    content: list[Any] = [
        ToolResultContent(tool_use_id=use.id, content=[TextContent(text=STOPPED)], is_error=True)
        for use in wanted
    ]
    return [SamplingMessage(role="user", content=content)]
