"""The call tree of a tape: which call a question, notification or log line belongs to."""

from __future__ import annotations

from array import array
from typing import Any

from interlock.tape import Line, TapeError, TapeFile, TapeRow

NO_ROW = -1
_MOST_OPEN = 1000  # running calls of a connection that are remembered


class CallTree:
    """The call that each row of a tape belongs to.

    Over HTTP, a message of the server belongs to the call of its exchange. Otherwise progress
    belongs to the call with its token, and any other message to the only running call. If several
    calls run, the protocol does not say which one a log line belongs to; it is counted to the
    newest tool call.

    Args:
        file: The tape.
    """

    def __init__(self, file: TapeFile) -> None:
        self._file = file
        self._parents = array("i")
        self._running: dict[str, dict[int, TapeRow]] = {}

    def parent(self, number: int) -> int:
        """The number of the row of the call that a row belongs to; -1 for none."""
        return self._parents[number]

    def extend(self) -> None:
        """Process the rows that were indexed since the last time."""
        rows = self._file.rows
        for number in range(len(self._parents), len(rows)):
            self._parents.append(self._place(rows[number]))

    def _place(self, row: TapeRow) -> int:
        running = self._running.setdefault(row.connection, {})
        if row.sender == "client":
            if row.kind == "request":
                running[row.number] = row
                if len(running) > _MOST_OPEN:
                    del running[next(iter(running))]
            return NO_ROW
        if row.kind in ("response", "error"):
            running.pop(row.partner, None)
            return NO_ROW
        if row.kind == "stderr" or (row.sender == "server" and row.kind != "bytes"):
            return self._call_of(row, running)
        return NO_ROW

    def _call_of(self, row: TapeRow, running: dict[int, TapeRow]) -> int:
        if row.exchange:
            same = [one.number for one in running.values() if one.exchange == row.exchange]
            if same:
                return same[-1]
        calls = [one for one in running.values() if one.method != "subscriptions/listen"]
        if len(calls) <= 1:
            return calls[0].number if calls else NO_ROW
        if row.method == "notifications/progress":
            token = _member(self._message(row), "params", "progressToken")
            for call in calls:
                given = _member(self._message(call), "params", "_meta", "progressToken")
                if given is not None and given == token:
                    return call.number
            return NO_ROW
        tools = [one.number for one in calls if one.method == "tools/call"]
        return tools[-1] if tools else calls[-1].number

    def _message(self, row: TapeRow) -> Any:
        try:
            line = self._file.read(row)
        except TapeError:
            return None
        return line.message if isinstance(line, Line) else None


def _member(value: Any, *path: str) -> Any:
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value
