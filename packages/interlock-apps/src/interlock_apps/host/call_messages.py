"""The messages of a call: kept in a ring buffer, and shown as the inspector shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from interlock.tape import TapeBuffer, TapeExcerpt, TapeRow
from interlock.types import JSONObject

from ..web.tape_view.call_tree import CallTree
from ..web.tape_view.details import message_state
from ..web.tape_view.rows import row_state

GONE = (
    "The messages of this call are no longer kept. The host keeps the last ones in memory; "
    "--record keeps all of them in a file."
)

_current: ContextVar[str] = ContextVar("interlock_call", default="")


class CallMessages:
    """The last messages of all servers, by the call that they belong to.

    Attributes:
        buffer: Keeps the messages; give it to the hub.
    """

    def __init__(self) -> None:
        self.buffer = TapeBuffer(mark=_current.get)

    @contextmanager
    def belonging_to(self, call: str) -> Iterator[None]:
        """Requests that are sent within the block belong to a call."""
        token = _current.set(call)
        try:
            yield
        finally:
            _current.reset(token)

    def rows(self, call: str, revision: str = "") -> list[JSONObject]:
        """The messages of a call in order, as JSON values for a page; empty if none is kept.

        Args:
            call: The id of the call.
            revision: The revision of the server.
        """
        found = self._of(call, revision)
        return [] if found is None else [row_state(found, row) for row in found.belonging]

    def message(self, call: str, number: int, revision: str = "") -> JSONObject:
        """One message of a call in detail, as JSON values for a page.

        Args:
            call: The id of the call.
            number: The number of its row.
            revision: The revision of the server.

        Raises:
            ValueError: It is no longer kept.
        """
        found = self._of(call, revision)
        if found is None or not 0 <= number < len(found.rows):
            raise ValueError(GONE)
        return message_state(found, found.rows[number])

    def _of(self, call: str, revision: str) -> _CallExcerpt | None:
        excerpt = self.buffer.excerpt(call, revision=revision)
        return None if excerpt is None else _CallExcerpt(call, excerpt)


class _CallExcerpt:
    """The messages around a call, as a tape that a page shows."""

    connections: Mapping[str, str] = {}

    def __init__(self, call: str, excerpt: TapeExcerpt) -> None:
        self.name = call
        self.file = excerpt
        self.tree = CallTree(excerpt)
        self.tree.extend()

    @property
    def rows(self) -> list[TapeRow]:
        """All rows of the excerpt."""
        return self.file.rows

    @property
    def belonging(self) -> list[TapeRow]:
        """The rows of the call: its requests, what came during them, and the responses."""
        own = {
            number
            for number, mark in enumerate(self.file.marks)
            if mark == self.name and self.rows[number].kind in ("request", "notification")
        }
        found = set(own)
        for row in self.rows:
            if row.partner in own or self.tree.parent(row.number) in own:
                found.add(row.number)
        for number in list(found):
            if (partner := self.rows[number].partner) >= 0:
                found.add(partner)
        return [self.rows[number] for number in sorted(found)]
