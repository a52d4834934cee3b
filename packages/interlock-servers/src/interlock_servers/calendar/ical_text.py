"""Splits the text of an iCalendar file into components, so that one can be replaced on its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from icalendar import Component

MOST_BYTES = 8 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_EDGE = re.compile(rb"(BEGIN|END):([A-Za-z0-9-]+)[ \t]*\r?\n?", re.IGNORECASE)
_NAME = re.compile(rb"[A-Za-z0-9-]+(?=[;:])")


class InvalidCalendar(ValueError):
    """The file violates RFC 5545. The message is a clause that names the place."""


class IcalComponent(Struct, frozen=True):
    """A component of a file: its kind (VEVENT), its bytes, its offset and its line."""

    kind: str
    raw: bytes
    start: int
    line: int


class IcalDocument:
    """One file: its components (`blocks`) and its line ending (RFC 5545, section 3.4).

    Raises InvalidCalendar.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.newline = b"\r\n" if b"\r\n" in data or b"\n" not in data else b"\n"
        self.blocks: list[IcalComponent] = []
        self._end = -1  # the offset of the last calendar's END line
        self._cut()

    def of_kind(self, kind: str) -> list[IcalComponent]:
        """The components of one kind, in file order."""
        return [block for block in self.blocks if block.kind == kind]

    def with_changes(
        self, changes: Mapping[IcalComponent, bytes | None], added: Iterable[bytes] = ()
    ) -> bytes:
        """The file with some components replaced (None: removed), and others added at its end."""
        pieces = []
        at = 0
        for block in self.blocks:
            if block in changes:
                pieces += [self.data[at : block.start], changes[block] or b""]
                at = block.start + len(block.raw)
        pieces.append(self.data[at : self._end])
        if pieces[-1] and not pieces[-1].endswith(b"\n"):
            pieces.append(self.newline)
        return b"".join([*pieces, *added, self.data[self._end :]])

    def _cut(self) -> None:
        open_kinds: list[str] = []
        start = line_of_start = 0
        for number, (at, line) in enumerate(_lines(self.data), 1):
            edge = _EDGE.fullmatch(line)
            if edge is None:
                if not open_kinds and line.strip():
                    raise InvalidCalendar(f"line {number} is outside of any calendar")
                continue
            kind = edge[2].decode().upper()
            if edge[1].upper() == b"BEGIN":
                if not open_kinds and kind != "VCALENDAR":
                    raise InvalidCalendar(f"line {number} begins a {kind} outside of any calendar")
                if len(open_kinds) == 1:
                    start = at
                    line_of_start = number
                open_kinds.append(kind)
                continue
            if not open_kinds or open_kinds.pop() != kind:
                raise InvalidCalendar(f"line {number} ends a {kind} that has not begun")
            if len(open_kinds) == 1:
                self.blocks.append(
                    IcalComponent(kind, self.data[start : at + len(line)], start, line_of_start)
                )
            elif not open_kinds:
                self._end = at
        if open_kinds:
            raise InvalidCalendar(f"it ends in the middle of a {open_kinds[-1]}")
        if self._end < 0:
            raise InvalidCalendar("there is no calendar in it")


def empty(newline: bytes = b"\r\n") -> bytes:
    """A file with an empty calendar."""
    return newline.join(
        [
            b"BEGIN:VCALENDAR",
            b"VERSION:2.0",
            b"PRODID:-//Interlock//Calendar//EN",
            b"END:VCALENDAR",
            b"",
        ]
    )


def edited(raw: bytes, properties: Component, newline: bytes, drop: Iterable[str] = ()) -> bytes:
    """A component's bytes with properties replaced by name, and those in `drop` removed.

    Its other lines and its nested components stay unchanged.
    """
    new = dict(_properties(properties.to_ical(sorted=False), newline))
    gone = new.keys() | set(drop)
    pieces: list[bytes] = []
    depth = 0
    place = -1
    for line in _logical_lines(raw):
        edge = _EDGE.fullmatch(line)
        if edge is not None:
            begins = edge[1].upper() == b"BEGIN"
            if place < 0 and (not begins or depth == 1):
                place = len(pieces)  # after the last property of the component itself
            depth += 1 if begins else -1
        elif depth == 1 and _name(line) in gone:
            continue
        pieces.append(line)
    return b"".join([*pieces[:place], *new.values(), *pieces[place:]])


def with_newline(data: bytes, newline: bytes) -> bytes:
    """Convert line endings to those of the file."""
    return data.replace(b"\r\n", newline)


def _properties(data: bytes, newline: bytes) -> Iterator[tuple[str, bytes]]:
    for line in _logical_lines(data):
        if _EDGE.fullmatch(line) is None:
            yield _name(line), with_newline(line, newline)


def _name(line: bytes) -> str:
    found = _NAME.match(line)
    return found[0].decode().upper() if found is not None else ""


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The physical lines with their offsets, without a byte order mark."""
    at = len(_BOM) if data.startswith(_BOM) else 0
    for line in data[at:].splitlines(keepends=True):
        yield at, line
        at += len(line)


def _logical_lines(data: bytes) -> Iterator[bytes]:
    """The unfolded lines (RFC 5545, section 3.1)."""
    held = b""
    for _, line in _lines(data):
        if line[:1] in (b" ", b"\t") and held:
            held += line
            continue
        if held:
            yield held
        held = line
    if held:
        yield held
