"""Blanking: replaces the values of a recorded conversation that differ in each run by blanks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from .format import Line, Sender

VOLATILE = ("requestState", "elicitationId")
"""The members that differ in each run, which `Tape.blanked` replaces by default."""

RECORDED_VOLATILE = (*VOLATILE, "taskId", "nextCursor", "createdAt", "lastUpdatedAt")
"""The members that differ in each run of any server."""

_REFERENCE = re.compile(r"\(reference [0-9a-f]+\)")
_LITERAL = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_.-]*\}")  # text that looks like a blank
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?",
    re.ASCII,
)


class Blanking:
    """Replaces values of one conversation by blanks. The same value gets the same blank.

    Args:
        names: The members of objects whose text differs in each run.
    """

    def __init__(self, names: Sequence[str] = VOLATILE) -> None:
        self._names = frozenset(names)
        self._known: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def frame(self, line: Line) -> bytes:
        """Return a message with blanks. It is the same bytes if it has none."""
        message = line.message
        if message is None:
            return line.frame
        blanked = self._walk(message, line.sender)
        return line.frame if blanked == message else msgspec.json.encode(blanked)

    def _walk(self, value: Any, sender: Sender) -> Any:
        if isinstance(value, dict):
            return {
                key: self._blank(key, part)
                if key in self._names and isinstance(part, str)
                else self._member(key, part, sender)
                for key, part in value.items()
            }
        if isinstance(value, list):
            return [self._walk(item, sender) for item in value]
        return self._text(value, sender) if isinstance(value, str) else value

    def _member(self, _name: str, value: Any, sender: Sender) -> Any:
        return self._walk(value, sender)

    def _text(self, text: str, _sender: Sender) -> str:
        return _REFERENCE.sub("(reference ${_})", text)

    def _blank(self, name: str, value: str) -> str:
        if value not in self._known:
            self._counts[name] = self._counts.get(name, 0) + 1
            self._known[value] = f"${{{name}-{self._counts[name]}}}"
        return self._known[value]


class RecordedBlanking(Blanking):
    """Blanking of a recording of any server: besides volatile members also the UUIDs and the times
    that the server makes, the version of the server, and text that looks like a blank itself.

    `literals` has the values of the blanks for such text.
    """

    def __init__(self, names: Sequence[str] = RECORDED_VOLATILE) -> None:
        super().__init__(names)
        self.literals: dict[str, str] = {}
        self._of_client: set[str] = set()  # UUIDs of the client, which the server repeats

    def _member(self, name: str, value: Any, sender: Sender) -> Any:
        if sender == "server" and name.endswith("serverInfo") and isinstance(value, dict):
            return {**self._walk(value, sender), "version": "${_}"}
        return self._walk(value, sender)

    def _text(self, text: str, sender: Sender) -> str:
        if text in self._known:
            return self._known[text]
        text = _LITERAL.sub(self._literal, text)
        if sender == "client":
            return _UUID.sub(self._uuid_of_client, text)
        text = _UUID.sub(self._uuid_of_server, text)
        return _TIME.sub("${_}", super()._text(text, sender))

    def _literal(self, found: re.Match[str]) -> str:
        blank = self._blank("literal", found[0])
        self.literals[blank[2:-1]] = found[0]
        return blank

    def _uuid_of_client(self, found: re.Match[str]) -> str:
        if found[0] in self._known:
            return self._known[found[0]]
        self._of_client.add(found[0])
        return found[0]

    def _uuid_of_server(self, found: re.Match[str]) -> str:
        return found[0] if found[0] in self._of_client else self._blank("uuid", found[0])
