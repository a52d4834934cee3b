"""Which conversations a log has, read from its entries."""

from __future__ import annotations

from collections import Counter

from ..events import PersonSaid, SessionBegan
from . import records
from .seam import SessionRow

BEGAN, SAID = records.kind_of_type(SessionBegan), records.kind_of_type(PersonSaid)


class Titles:
    """Sees entries as they come, oldest first, and knows the conversations in them."""

    def __init__(self) -> None:
        self._began: dict[str, SessionRow] = {}
        self.turns: Counter[str] = Counter()

    def see(self, kind: str, session: str, data: bytes) -> None:
        """An entry: those that begin a conversation, or have the person say something, count."""
        if kind == SAID:
            self.turns[session] += 1
        elif kind == BEGAN:
            noted = records.show(data)
            if isinstance(event := noted.event, SessionBegan):
                began = self._began[session].began if session in self._began else noted.at
                self._began[session] = SessionRow(id=session, title=event.title, began=began, model=event.model, turns=0)

    def rows(self) -> list[SessionRow]:
        """The conversations, newest first."""
        rows = [
            SessionRow(id=row.id, title=row.title, began=row.began, model=row.model, turns=self.turns[row.id])
            for row in self._began.values()
        ]
        return sorted(reversed(rows), key=lambda row: -row.began)
