"""Recorded answers: what a tape has as the answer to a question of a server.

Under 2025-11-25 and before, a question is a request of the server, and the answer is its response.
Under 2026-07-28 questions are in a result of the kind `input_required`, and the answers in the next
request of the call. Both are read as data; nothing of a tape is run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import msgspec

from interlock.cli.screen import plain
from interlock.tape import Line, TapeError, TapeFile, TapeRow
from interlock.types import CreateMessageRequestParams, ElicitRequestParams

_ASKED = b'"inputRequests"'
_ANSWERED = b'"inputResponses"'
_TYPES: dict[str, type[Any]] = {
    "elicitation/create": ElicitRequestParams,
    "sampling/createMessage": CreateMessageRequestParams,
}
# Members of params that differ from one conversation to the next.
_VARYING = frozenset({"_meta", "task", "elicitationId"})


class RecordedAnswers:
    """The answers on one tape, by question. A search reads the rows that were added since the last.

    Args:
        file: The tape.
    """

    def __init__(self, file: TapeFile) -> None:
        self._file = file
        self._next = 0
        self._answers: dict[bytes, Any] = {}
        self._asked: dict[str, dict[str, bytes]] = {}

    def find(self, method: str, params: Any) -> Any:
        """The newest answer to the same question, as JSON values; None if there is none."""
        for row in self._file.rows[self._next :]:
            self._read(row)
        self._next = len(self._file.rows)
        return self._answers.get(_key(method, plain(params)))

    def _read(self, row: TapeRow) -> None:
        if row.sender == "client" and row.kind == "response" and row.method in _TYPES:
            request = self._message(self._file.rows[row.partner]) if row.partner >= 0 else None
            response = self._message(row)
            if request is not None and response is not None:
                key = _key(row.method, _object(request.get("params")))
                self._answers[key] = response.get("result")
            return
        if row.kind not in ("request", "response"):
            return
        wanted = _ANSWERED if row.sender == "client" else _ASKED
        if wanted not in self._file.raw(row):
            return
        message = self._message(row)
        if message is None:
            return
        if row.sender == "client":
            self._answer(row.connection, _object(message.get("params")))
        else:
            self._ask(row.connection, _object(message.get("result")))

    def _ask(self, connection: str, result: dict[str, Any]) -> None:
        asked = self._asked.setdefault(connection, {})
        for name, question in _object(result.get("inputRequests")).items():
            one = _object(question)
            asked[name] = _key(str(one.get("method")), _object(one.get("params")))

    def _answer(self, connection: str, params: dict[str, Any]) -> None:
        asked = self._asked.get(connection, {})
        for name, answer in _object(params.get("inputResponses")).items():
            key = asked.pop(name, None)
            if key is not None:
                self._answers[key] = answer

    def _message(self, row: TapeRow) -> dict[str, Any] | None:
        try:
            line = self._file.read(row)
        except TapeError:
            return None
        return line.message if isinstance(line, Line) and isinstance(line.message, dict) else None


def find_recorded(tapes: Iterable[RecordedAnswers], method: str, params: Any) -> Any:
    """The answer of the first tape that has one, as JSON values; None if none has."""
    return next((found for tape in tapes if (found := tape.find(method, params)) is not None), None)


def _key(method: str, params: dict[str, Any]) -> bytes:
    """What is the same for the same question of two conversations."""
    same = {name: value for name, value in params.items() if name not in _VARYING}
    kind = _TYPES.get(method)
    with contextlib.suppress(msgspec.ValidationError):
        if kind is not None:
            same = plain(msgspec.convert(same, kind))  # without members that no type knows
    if same.get("mode") == "form":
        del same["mode"]  # it is the default
    return msgspec.json.encode([method, same], order="deterministic")


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
