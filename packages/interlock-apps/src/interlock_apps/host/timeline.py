"""The timeline of a conversation: model steps, calls, questions, and how long each of them took."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from interlock.models.interface import Usage
from interlock.types import TextContent

from ..fleet import events as e

MOST_LABEL = 120  # characters
Kind = Literal["said", "model", "call", "question", "sample", "read"]
State = Literal["running", "done", "failed", "denied"]
_TITLES = {
    "CallQuestion": "Approval",
    "ResultQuestion": "Review of the result",
    "SampleQuestion": "May a model be asked?",
    "SampledQuestion": "Review of the model's answer",
    "FormQuestion": "Form",
    "UrlQuestion": "Page to visit",
    "PinQuestion": "Changed features",
    "StartQuestion": "Start of a server",
}


class TimelineEntry(Struct, kw_only=True, rename="camel"):
    """Something that took time. Times are seconds of the wall clock.

    Attributes:
        kind: A message of the person, a step of the model, a call, a question, a model that a
            server asked, or a resource that was read.
        id: The id of the call or question; for others, a number that is unique in its kind.
        label: What it was, in a few words. It may come from a server.
        server: The server; "" for none.
        began: When it began.
        ended: When it ended; None while it goes on.
        waited: The times, as pairs, in which it waited for the person.
        state: How it ended.
        input: The tokens that the model got; 0 if it got none, or it is not known.
        output: The tokens that the model gave.
        call: The call that a question belongs to; "" for none.
    """

    kind: Kind
    id: str
    label: str
    began: float
    server: str = ""
    ended: float | None = None
    waited: list[tuple[float, float | None]] = []
    state: State = "running"
    input: int = 0
    output: int = 0
    call: str = ""


class TimelineTurn(Struct, kw_only=True, rename="camel"):
    """A message of the person and all that followed until the next one.

    Attributes:
        label: The beginning of the message.
        began: When it was sent.
        ended: The end of the last entry; None while something goes on.
        entries: What happened, in the order in which it began.
        waited: Seconds in which the turn waited for the person.
        model: Seconds in which a model was asked.
        calls: Seconds in which calls ran, without the time of questions.
        input: The tokens that models got.
        output: The tokens that models gave.
    """

    label: str
    began: float
    ended: float | None = None
    entries: list[TimelineEntry] = []
    waited: float = 0.0
    model: float = 0.0
    calls: float = 0.0
    input: int = 0
    output: int = 0


class TimelineBuilder:
    """Builds the turns of a conversation, event by event."""

    def __init__(self) -> None:
        self.turns: list[TimelineTurn] = []
        self._calls: dict[str, TimelineEntry] = {}
        self._questions: dict[str, TimelineEntry] = {}
        self._tasks: set[str] = set()  # calls that go on as tasks
        self._step: TimelineEntry | None = None
        self._numbers = {"said": 0, "model": 0, "sample": 0, "read": 0}

    def result(self, now: float) -> list[TimelineTurn]:
        """The turns with their sums.

        Args:
            now: Seconds of the wall clock, for what still goes on.
        """
        for turn in self.turns:
            _sum(turn, now)
        return self.turns

    def add(self, entry: e.LogEntry) -> None:
        """Add the next event."""
        at = entry.at
        match entry.event:
            case e.PersonSaid() as event:
                self.turns.append(TimelineTurn(label=_label(event), began=at))
                self._numbered("said", at, "You", ended=at, state="done")
            case e.ModelAsked() as event:
                self._step = self._numbered("model", at, event.model)
            case e.ModelSaid() as event:
                self._end_step(at, "done", event.usage)
            case e.ModelFailed():
                self._end_step(at, "failed", Usage())
            case e.CallProposed() as event:
                self._calls[event.call] = self._entry(
                    "call", event.call, event.title or event.tool or event.name, at, event.server
                )
            case e.CallDecided() as event if not event.allow:
                self._end_call(event.call, at, "denied")
            case e.CallEnded() as event:
                failed = event.result is None or event.result.is_error is True
                self._end_call(event.call, at, "failed" if failed else "done")
            case e.TaskBegan() as event:
                self._reopen(event.call)
            case e.TaskEnded() as event:
                failed = event.result is None or event.result.is_error is True
                self._end_call(event.call, at, "failed" if failed else "done", task=True)
            case e.QuestionAsked() as event:
                self._ask(event, at)
            case e.QuestionAnswered() as event:
                self._answer(event, at)
            case e.SampleEnded() as event:
                self._sampled(event, at)
            case e.ResourceRead() as event:
                state: State = "failed" if event.error else "done"
                self._numbered("read", at, event.uri, event.server, ended=at, state=state)
            case e.TurnEnded():
                self._end_turn(at)
            case _:
                pass

    def _entry(
        self,
        kind: Kind,
        id: str,
        label: str,
        at: float,
        server: str = "",
        *,
        ended: float | None = None,
        state: State = "running",
    ) -> TimelineEntry:
        if not self.turns:
            self.turns.append(TimelineTurn(label="", began=at))
        found = TimelineEntry(
            kind=kind,
            id=id,
            label=label[:MOST_LABEL],
            server=server,
            began=at,
            ended=ended,
            state=state,
        )
        self.turns[-1].entries.append(found)
        return found

    def _numbered(
        self,
        kind: Literal["said", "model", "sample", "read"],
        at: float,
        label: str,
        server: str = "",
        *,
        ended: float | None = None,
        state: State = "running",
    ) -> TimelineEntry:
        self._numbers[kind] += 1
        number = str(self._numbers[kind])
        return self._entry(kind, number, label, at, server, ended=ended, state=state)

    def _end_step(self, at: float, state: State, usage: Usage) -> None:
        step = self._step or self._numbered("model", at, "")
        self._step = None
        step.ended = at
        step.state = state
        step.input = usage.input
        step.output = usage.output

    def _end_call(self, call: str, at: float, state: State, *, task: bool = False) -> None:
        found = self._calls.get(call)
        if found is None or (found.ended is not None and not task):
            return
        if call in self._tasks and not task:
            return  # the call ended with a message to the model; its task goes on
        self._tasks.discard(call)
        found.ended = at
        found.state = state
        found.waited = [(since, until or at) for since, until in found.waited]

    def _reopen(self, call: str) -> None:
        self._tasks.add(call)
        found = self._calls.get(call)
        if found is not None:
            found.ended = None
            found.state = "running"

    def _ask(self, event: e.QuestionAsked, at: float) -> None:
        question = event.question
        label = _TITLES.get(type(question).__name__, "Question")
        asked = self._entry("question", question.id, label, at, question.server)
        asked.call = question.call
        asked.waited = [(at, None)]
        self._questions[question.id] = asked
        call = self._calls.get(question.call)
        if call is not None and call.ended is None:
            call.waited = [*call.waited, (at, None)]

    def _answer(self, event: e.QuestionAnswered, at: float) -> None:
        asked = self._questions.get(event.question)
        if asked is None or asked.ended is not None:
            return
        began = asked.began
        asked.ended = at
        asked.waited = [(began, at)]
        asked.state = "denied" if event.by == "nobody" or _is_no(event.answer) else "done"
        if (call := self._calls.get(asked.call)) is not None:
            call.waited = [
                (since, at) if since == began and until is None else (since, until)
                for since, until in call.waited
            ]

    def _sampled(self, event: e.SampleEnded, at: float) -> None:
        asked = self._questions.get(event.question)
        began = asked.ended if asked is not None and asked.ended is not None else at
        state: State = "failed" if event.error else "done"
        found = self._numbered("sample", began, event.model, event.server, ended=at, state=state)
        found.input = event.usage.input
        found.output = event.usage.output

    def _end_turn(self, at: float) -> None:
        """What the turn left open has ended with it, except tasks."""
        if not self.turns:
            return
        for entry in self.turns[-1].entries:
            if entry.ended is None and entry.id not in self._tasks:
                entry.ended = at
                entry.state = "failed"
                entry.waited = [(since, until or at) for since, until in entry.waited]
        self._step = None


def _is_no(answer: object) -> bool:
    allow = getattr(answer, "allow", None)
    action = getattr(answer, "action", "accept")
    return allow is False or action != "accept"


def _label(said: e.PersonSaid) -> str:
    if said.prompt:
        return said.prompt
    for message in said.messages:
        blocks = message.content if isinstance(message.content, list) else [message.content]
        for block in blocks:
            if isinstance(block, TextContent) and block.text.strip():
                return " ".join(block.text.split())[:MOST_LABEL]
    return ""


def _sum(turn: TimelineTurn, now: float) -> None:
    """Fill the sums of a turn. Parallel times count once."""
    going = any(entry.ended is None for entry in turn.entries)
    if turn.entries and not going:
        turn.ended = max(entry.ended or entry.began for entry in turn.entries)
    waits = _union((since, until or now) for entry in turn.entries for since, until in entry.waited)
    turn.waited = _length(waits)
    turn.model = _length(_union(_spans(turn, ("model", "sample"), now)))
    turn.calls = _length(_without(_union(_spans(turn, ("call",), now)), waits))
    turn.input = sum(entry.input for entry in turn.entries)
    turn.output = sum(entry.output for entry in turn.entries)


_Spans = list[tuple[float, float]]


def _spans(turn: TimelineTurn, kinds: tuple[str, ...], now: float) -> _Spans:
    return [
        (entry.began, now if entry.ended is None else entry.ended)
        for entry in turn.entries
        if entry.kind in kinds and entry.state != "denied"
    ]


def _union(spans: Iterable[tuple[float, float]]) -> _Spans:
    """Spans that do not overlap, in order."""
    found: _Spans = []
    for since, until in sorted(spans):
        if found and since <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], until))
        else:
            found.append((since, until))
    return found


def _without(spans: _Spans, holes: _Spans) -> _Spans:
    """The parts of spans that are outside of other spans."""
    found: _Spans = []
    for since, until in spans:
        at = since
        for begin, end in holes:
            if end <= at or begin >= until:
                continue
            if begin > at:
                found.append((at, begin))
            at = max(at, end)
        if at < until:
            found.append((at, until))
    return found


def _length(spans: _Spans) -> float:
    return round(sum(until - since for since, until in spans), 6)
