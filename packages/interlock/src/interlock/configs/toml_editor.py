"""Edits TOML: adds, replaces or removes one table, and changes no other byte.

`tomllib` determines where a table begins and ends: text up to the end of a statement parses without
an error. tomlkit writes the new table. It does not edit the rest of the text, because it would move
comments along with tables, and parts of an interrupted array of tables. The result is compared with
the old data before it is used.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

from .extra import require
from .text_edits import TextEdit, Uneditable, apply_edits, newline_of

_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)
_MOST_HEADERS = 10_000  # of a text, or lines of arrays that look like headers
_UNSAFE = "the entry cannot be written without other changes"


class _Table(NamedTuple):
    """A table with a header: its path, and its text from the header to its last statement."""

    path: tuple[str, ...]
    start: int
    end: int


class TomlEditor:
    """Edits the servers in a TOML configuration: the tables `[section.name]`."""

    def __init__(self, section: str) -> None:
        self.section = section

    def source(self, text: str, name: str) -> str | None:
        """Return the text of an entry; None if there is none.

        Raises:
            Uneditable: The text is not TOML, or the entry is not a table of its own.
        """
        if name not in self._servers(_load(text)):
            return None
        return "\n".join(text[table.start : table.end] for table in self._own(text, name))

    def add(self, text: str, name: str, entry: dict[str, Any]) -> str:
        """Return the text with an entry added after the other servers, or replaced in its place.

        Raises:
            Uneditable: The entry cannot be written without a change to something else.
        """
        servers = self._servers(_load(text))
        if servers.get(name) == entry:
            return text
        newline = newline_of(text)
        table = self._rendered(name, entry).replace("\n", newline)
        if name in servers:
            first, *others = self._own(text, name)
            # The last line of a file may have no line ending.
            last = "" if text[: first.end].endswith("\n") else newline
            edits = [
                TextEdit(first.start, first.end, table.removesuffix(last)),
                *(_removal(text, other) for other in others),
            ]
        else:
            ends = [table.end for table in _tables(text) if table.path[0] == self.section]
            place = max(ends, default=len(text))
            if not text[:place]:
                new = table
            elif text[:place].endswith("\n"):
                new = newline + table
            else:
                new = newline * 2 + table.removesuffix(newline)
            edits = [TextEdit(place, place, new)]
        after = apply_edits(text, edits)
        return self._checked(text, after, lambda servers: servers.update({name: entry}))

    def remove(self, text: str, name: str) -> str:
        """Return the text without an entry; the same text if there is none.

        Raises:
            Uneditable: The entry cannot be removed without a change to something else.
        """
        if name not in self._servers(_load(text)):
            return text
        after = apply_edits(text, [_removal(text, table) for table in self._own(text, name)])
        return self._checked(text, after, lambda servers: servers.pop(name))

    def _servers(self, data: dict[str, Any]) -> dict[str, Any]:
        servers = data.get(self.section, {})
        if not isinstance(servers, dict):
            raise Uneditable(f"{self.section} is not a table")
        return servers

    def _own(self, text: str, name: str) -> list[_Table]:
        """Return the tables of one entry."""
        found = [table for table in _tables(text) if table.path[:2] == (self.section, name)]
        if not found:
            raise Uneditable(f"{name} must be a table of its own, [{self.section}.{name}]")
        return found

    def _rendered(self, name: str, entry: dict[str, Any]) -> str:
        """Write an entry as one table. Its objects become inline tables."""
        require("tomlkit", "TOML")
        import tomlkit

        table = tomlkit.table()
        for key, value in entry.items():
            table.add(tomlkit.key(key), _inline(value))
        section = tomlkit.table(is_super_table=True)
        section.add(tomlkit.key(name), table)
        document = tomlkit.document()
        document.add(self.section, section)
        return document.as_string().strip("\n") + "\n"

    def _checked(self, before: str, after: str, change: Callable[[dict[str, Any]], object]) -> str:
        """Check that the new text has the old data with this change only."""
        wanted = _load(before)
        change(wanted.setdefault(self.section, {}))
        if not wanted[self.section]:
            del wanted[self.section]
        try:
            found = tomllib.loads(after)
        except tomllib.TOMLDecodeError as bad:
            raise Uneditable(f"{_UNSAFE} ({bad})") from None
        if not found.get(self.section, True):
            del found[self.section]
        # The representations are compared too, because nan is not equal to itself.
        if found != wanted and repr(found) != repr(wanted):
            raise Uneditable(_UNSAFE)
        return after


def _load(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as bad:
        raise Uneditable(str(bad)) from None
    except RecursionError:
        raise Uneditable("it has too many levels") from None


def _tables(text: str) -> list[_Table]:
    """Return every table that has a header, in order."""
    starts: list[int] = []
    for number, found in enumerate(_HEADER.finditer(text)):
        if number > _MOST_HEADERS:
            raise Uneditable(f"it has more than {_MOST_HEADERS} tables")
        # The text before a bracket within an array or a string is incomplete.
        if _is_complete(text[starts[-1] if starts else 0 : found.start()]):
            starts.append(found.start())
    tables = []
    for start, end in pairwise([*starts, len(text)]):
        body = text[start:end]
        tables.append(_Table(_path(body.partition("\n")[0]), start, start + _content_end(body)))
    return tables


def _content_end(table: str) -> int:
    """Return where the last statement of a table ends, with its line ending."""
    end = len(table)
    for line in reversed(table.splitlines(keepends=True)):
        if line.strip() and not line.lstrip().startswith("#"):
            break
        if not _is_complete(table[: end - len(line)]):  # a line of a string
            break
        end -= len(line)
    return end


def _is_complete(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _path(header: str) -> tuple[str, ...]:
    """Return the keys of a header."""
    data: Any = tomllib.loads(header.strip())
    path = []
    while data:
        data = data[0] if isinstance(data, list) else data
        if not data:
            break
        ((key, data),) = data.items()
        path.append(key)
    return tuple(path)


def _removal(text: str, table: _Table) -> TextEdit:
    """Remove a table, and the blank line before it."""
    start = table.start
    has_end = text[: table.end].endswith("\n")
    # If the file has no line ending at its end, that of the line before is removed too.
    for _ in range(1 if has_end else 2):
        before = text[:start]
        blank = before.rstrip("\r").endswith(("\n\n", "\n\r\n"))
        if before.endswith("\n") and (blank or not has_end):
            start -= 2 if before.endswith("\r\n") else 1
    return TextEdit(start, table.end, "")


def _inline(value: Any) -> Any:
    import tomlkit

    if not isinstance(value, dict):
        return value
    table = tomlkit.inline_table()
    for key, inner in value.items():
        table.add(tomlkit.key(key), _inline(inner))
    return table
