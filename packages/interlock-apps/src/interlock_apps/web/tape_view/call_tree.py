"""The call tree of a tape: which call a question, notification or log line belongs to."""

from __future__ import annotations

from array import array
from typing import Any

from interlock.tape import IndexedTape, Line, TapeError, TapeRow

NO_ROW = -1
_MOST_OPEN = 1000  # running calls of a connection that are remembered


class CallTree:
    """The call that each row of a tape belongs to.

    Over HTTP, a message of the server belongs to the call of its exchange. Otherwise progress
    belongs to the call with its token, and any other message to the only running call. If several
    calls run, the protocol does not say which one a log line belongs to; it is counted to the
    newest tool call.

    A request that goes on after an `input_required` result belongs to the first request of its
    chain: the one with its state, or the only one of the same method and name that waits for it.

    Args:
        file: The tape.
    """

    def __init__(self, file: IndexedTape) -> None:
        self._file = file
        self._parents = array("i")
        self._running: dict[str, dict[int, TapeRow]] = {}
        # Requests that were answered with questions, by connection, method and name.
        self._asked: dict[tuple[str, str, str], list[TapeRow]] = {}
        self._retries: dict[int, list[int]] = {}

    def retries(self, number: int) -> list[int]:
        """The numbers of the rows of the requests that go on with a request."""
        return self._retries.get(number, [])

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
                if row.retries:
                    return self._first_of(row)
            return NO_ROW
        if row.kind in ("response", "error"):
            running.pop(row.partner, None)
            if row.asks and row.partner >= 0:
                asked = self._asked.setdefault((row.connection, row.method, row.name), [])
                asked.append(row)
                del asked[:-_MOST_OPEN]
            return NO_ROW
        if row.kind == "stderr" or (row.sender == "server" and row.kind != "bytes"):
            return self._call_of(row, running)
        return NO_ROW

    def _first_of(self, retry: TapeRow) -> int:
        """The first request of the chain that a retry continues."""
        asked = self._asked.get((retry.connection, retry.method, retry.name), [])
        chosen = asked[-1] if len(asked) == 1 else None
        if len(asked) > 1:
            state = _member(self._message(retry), "params", "requestState")
            for each in asked:
                if _member(self._message(each), "result", "requestState") == state:
                    chosen = each
        if chosen is None:
            return NO_ROW
        asked.remove(chosen)
        first = self._parents[chosen.partner]
        if first == NO_ROW:
            first = chosen.partner
        self._retries.setdefault(first, []).append(retry.number)
        return first

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
