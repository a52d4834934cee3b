"""The conversations of a log, with their titles."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from interlock import TextContent

from ..events import LogEntry, PersonSaid, SessionBegan, SessionChanged, SessionDeleted
from . import records
from .interface import SessionRow

BEGAN = records.kind_of_type(SessionBegan)
SAID = records.kind_of_type(PersonSaid)
CHANGED = records.kind_of_type(SessionChanged)
LONGEST = 60  # characters


def title_of(said: PersonSaid) -> str:
    """The title of a conversation, made from the person's first message.

    It is the prompt with its first argument, or the typed text.
    """
    if said.prompt:
        first = next(iter(said.arguments.values()), "")
        text = f"{said.prompt}: {first}" if first else said.prompt
    else:
        last = said.messages[-1].content if said.messages else []
        blocks = last if isinstance(last, list) else [last]
        texts = [block for block in blocks if isinstance(block, TextContent)]
        # A block with metadata comes from a file, and only names a conversation without words.
        text = next((block.text for block in reversed(texts) if not block.meta), "")
        text = text or (texts[0].text if texts else "")
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


class SessionTitles:
    """The conversations of a log, with their titles, collected from entries, oldest first.

    Args:
        rows: The conversations that are known already.
    """

    def __init__(self, rows: Iterable[SessionRow] = ()) -> None:
        self._rows: dict[str, SessionRow] = {}
        self.replace(rows)

    def replace(self, rows: Iterable[SessionRow]) -> None:
        """Replace all conversations by these."""
        self._rows = {row.id: row for row in reversed(list(rows))}

    def see(self, noted: LogEntry) -> None:
        """Process an entry; only those that a list of conversations shows count."""
        event = noted.event
        if isinstance(event, SessionBegan):
            self.begin(noted)
        elif isinstance(event, PersonSaid):
            if (row := self._rows.get(event.session)) is not None:
                self.spoken(event.session, row.turns + 1, noted.at)
            self.name(noted)
        elif isinstance(event, SessionChanged):
            self.change(event)
        elif isinstance(event, SessionDeleted):
            self._rows.pop(event.conversation, None)

    def begin(self, noted: LogEntry) -> None:
        """Add a conversation."""
        if not isinstance(event := noted.event, SessionBegan):
            return
        known = self._rows.get(event.session)
        self._rows[event.session] = SessionRow(
            id=event.session,
            title=event.title,
            began=noted.at if known is None else known.began,
            model=event.model,
            turns=0 if known is None else known.turns,
            spoke=0.0 if known is None else known.spoke,
            project=event.project,
        )

    def name(self, noted: LogEntry) -> None:
        """Title a conversation after the person's first message, unless it has a title."""
        row = self._rows.get(noted.event.session)
        if row is not None and not row.title and isinstance(event := noted.event, PersonSaid):
            self._rows[row.id] = replace(row, title=title_of(event))

    def spoken(self, session: str, turns: int, at: float) -> None:
        """Set how often the person spoke in a conversation, and when last."""
        if (row := self._rows.get(session)) is not None:
            self._rows[session] = replace(row, turns=turns, spoke=at)

    def change(self, event: SessionChanged) -> None:
        """Apply a change by the person: another title, or whether the conversation is pinned."""
        if (row := self._rows.get(event.session)) is not None:
            self._rows[row.id] = replace(
                row,
                title=row.title if event.title is None else event.title,
                pinned=row.pinned if event.pinned is None else event.pinned,
            )

    def rows(self) -> list[SessionRow]:
        """The conversations, newest first."""
        return sorted(reversed(self._rows.values()), key=lambda row: -row.began)
