"""The conversations of a log, with their titles."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from interlock import TextContent

from ..events import PersonSaid, SessionBegan
from . import records
from .interface import SessionRow

BEGAN = records.kind_of_type(SessionBegan)
SAID = records.kind_of_type(PersonSaid)
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
    """Collects conversations and their titles from entries, oldest first."""

    def __init__(self) -> None:
        self._began: dict[str, SessionRow] = {}
        self.turns: Counter[str] = Counter()

    def see(self, kind: str, session: str, data: bytes) -> None:
        """Process an entry; only the start of a conversation and the person's messages count."""
        if kind == SAID:
            self.turns[session] += 1
            self.name(session, data)
        elif kind == BEGAN:
            noted = records.show(data)
            if isinstance(event := noted.event, SessionBegan):
                began = self._began[session].began if session in self._began else noted.at
                self._began[session] = SessionRow(
                    id=session, title=event.title, began=began, model=event.model, turns=0
                )

    def name(self, session: str, data: bytes) -> None:
        """Title a conversation after the person's first message, unless it has a title."""
        row = self._began.get(session)
        if (
            row is not None
            and not row.title
            and isinstance(event := records.show(data).event, PersonSaid)
        ):
            self._began[session] = replace(row, title=title_of(event))

    def rows(self) -> list[SessionRow]:
        """The conversations, newest first."""
        rows = [
            SessionRow(
                id=row.id,
                title=row.title,
                began=row.began,
                model=row.model,
                turns=self.turns[row.id],
            )
            for row in self._began.values()
        ]
        return sorted(reversed(rows), key=lambda row: -row.began)
