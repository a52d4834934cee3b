"""The runs of a host: its open conversations, and what each of them is doing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from ..fleet.events import (
    LogEntry,
    ModelAsked,
    PersonSaid,
    SessionBegan,
    SessionResumed,
    TaskGiven,
    TurnEnded,
)
from ..fleet.questions import AnyQuestion
from .session import Session

RunState = Literal["idle", "running", "waiting", "done", "stopped", "failed"]
_ENDS: Mapping[str, RunState] = {"done": "done", "cancelled": "stopped"}


class Run(Struct, kw_only=True, rename="camel"):
    """A conversation that is open in this host.

    Attributes:
        session: Its id.
        title: Its title; "" before the first message.
        model: The name of its model.
        state: "idle" before the first message; "waiting" while a question is open; "done",
            "stopped" or "failed" after a turn.
        since: When it came into this state, apart from questions, in seconds of the wall clock.
        background: Whether another program gave it to this host.
        questions: How many questions wait for the person.
        words: Why the last turn ended; "" if it is obvious.
    """

    session: str
    title: str
    model: str
    state: RunState
    since: float
    background: bool = False
    questions: int = 0
    words: str = ""


class Runs:
    """Keeps the state of each open conversation.

    Args:
        sessions: The open conversations.
        questions: The open questions.
    """

    def __init__(
        self, sessions: Mapping[str, Session], questions: Mapping[str, AnyQuestion]
    ) -> None:
        self._sessions = sessions
        self._questions = questions
        self._states: dict[str, tuple[RunState, float, str]] = {}
        self.background: set[str] = set()
        """The conversations that another program started."""

    def receive(self, entry: LogEntry) -> None:
        """Handle an event."""
        event = entry.event
        match event:
            case SessionBegan() | SessionResumed():
                self._states[event.session] = ("idle", entry.at, "")
            case PersonSaid() | ModelAsked() | TaskGiven():
                if self._states.get(event.session, ("",))[0] != "running":
                    self._states[event.session] = ("running", entry.at, "")
            case TurnEnded():
                state = _ENDS.get(event.reason, "failed")
                self._states[event.session] = (state, entry.at, event.words)
            case _:
                return

    def all(self) -> list[Run]:
        """The runs; those that changed last come first."""
        found = []
        for session in self._sessions.values():
            state, since, words = self._states.get(session.id, ("idle", 0.0, ""))
            asked = sum(one.session == session.id for one in self._questions.values())
            found.append(
                Run(
                    session=session.id,
                    title=session.title,
                    model=session.model.name,
                    state="waiting" if asked else state,
                    since=since,
                    background=session.id in self.background,
                    questions=asked,
                    words=words,
                )
            )
        return sorted(found, key=lambda run: -run.since)
