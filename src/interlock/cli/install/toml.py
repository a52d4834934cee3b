"""TOML read for the place of its tables, so that one can be put in or taken out and no other byte changes."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from .text import Edit, Uneditable, apply, line_start, newline_of

# Everything that matters for finding where a statement ends; the text was accepted by tomllib before.
_TOKEN = re.compile(
    r"""
      (?P<comment>\#[^\n]*)
    | \"{3}(?:\\.|[^\\])*?\"{3}\"{0,2}
    | '{3}.*?'{3}'{0,2}
    | "(?:\\.|[^"\\])*"
    | '[^'\n]*'
    | (?P<open>[\[{])
    | (?P<close>[\]}])
    | (?P<newline>\n)
    | [^\#"'\[\]{}\n]+
    """,
    re.VERBOSE | re.DOTALL,
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class Table(Struct):
    """A table with a header of its own: its path, and the text from the header to its last statement."""

    path: tuple[str, ...]
    start: int
    end: int


class TomlConfig:
    """The servers in a TOML configuration: tables `[section.name]`. Texts in, texts out."""

    def __init__(self, section: str) -> None:
        self.section = section

    def source(self, text: str, name: str) -> str | None:
        """An entry as it is written; None where there is none. Raises Uneditable."""
        if name not in self._servers(_load(text)):
            return None
        return "\n".join(text[table.start : table.end] for table in self._own(text, name))

    def add(self, text: str, name: str, entry: dict[str, Any]) -> str:
        """The text with an entry put in behind the other servers, or in the place of the one of that name. Raises Uneditable."""
        newline = newline_of(text)
        table = _rendered((self.section, name), entry).replace("\n", newline)
        there = self._servers(_load(text))
        if there.get(name) == entry:
            return text
        if name in there:
            first, *others = self._own(text, name)
            last = (
                "" if text[: first.end].endswith("\n") else newline
            )  # the last line of the file has no end
            edits = [
                Edit(first.start, first.end, table.removesuffix(last)),
                *(_without(text, other) for other in others),
            ]
        else:
            place = max(
                (table.end for table in _tables(text) if table.path[0] == self.section),
                default=len(text),
            )
            before = text[:place]
            if not before:
                edits = [Edit(place, place, table)]
            elif before.endswith("\n"):
                edits = [Edit(place, place, newline + table)]
            else:
                edits = [Edit(place, place, newline * 2 + table.removesuffix(newline))]
        return self._checked(
            text, apply(text, edits), lambda servers: servers.update({name: entry})
        )

    def drop(self, text: str, name: str) -> str:
        """The text without an entry; the same text where there is none. Raises Uneditable."""
        if name not in self._servers(_load(text)):
            return text
        after = apply(text, [_without(text, table) for table in self._own(text, name)])
        return self._checked(text, after, lambda servers: servers.pop(name))

    def _servers(self, data: dict[str, Any]) -> dict[str, Any]:
        servers = data.get(self.section, {})
        if not isinstance(servers, dict):
            raise Uneditable(f"{self.section} in it is no table")
        return servers

    def _own(self, text: str, name: str) -> list[Table]:
        """The tables of one entry."""
        found = [table for table in _tables(text) if table.path[:2] == (self.section, name)]
        if not found:
            raise Uneditable(
                f"{name} is not written as a table of its own, [{self.section}.{name}]"
            )
        return found

    def _checked(self, before: str, after: str, change: Callable[[dict[str, Any]], object]) -> str:
        """A last look: the new text says what the old one said, but for the change."""
        wanted = _load(before)
        change(wanted.setdefault(self.section, {}))
        if not wanted[self.section]:
            del wanted[self.section]
        try:
            found = tomllib.loads(after)
        except tomllib.TOMLDecodeError as bad:
            raise Uneditable(
                f"the entry cannot be written without touching something else ({bad})"
            ) from None
        if not found.get(self.section, True):
            del found[self.section]
        if (
            repr(found) != repr(wanted) and found != wanted
        ):  # by their words too, for what is not equal to itself (nan)
            raise Uneditable("the entry cannot be written without touching something else")
        return after


def _load(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as bad:
        raise Uneditable(str(bad)) from None


def _tables(text: str) -> list[Table]:
    """Every table with a header, in order."""
    tables: list[Table] = []
    for start, end in _statements(text):
        if text[start] == "[":
            tables.append(Table(_path(text[start:end]), line_start(text, start), end))
        elif tables:
            tables[-1].end = end
    return tables


def _statements(text: str) -> Iterator[tuple[int, int]]:
    """Where each header and each pair begins and ends, its line's end included; comments and blank lines are none."""
    start, depth = -1, 0
    for token in _TOKEN.finditer(text):
        if (
            start < 0
            and token.lastgroup not in ("comment", "newline")
            and (blank := token[0].strip())
        ):
            start = token.start() + token[0].index(blank[0])
        if token.lastgroup == "open":
            depth += 1
        elif token.lastgroup == "close":
            depth -= 1
        elif token.lastgroup == "newline" and depth == 0 and start >= 0:
            yield start, token.end()
            start = -1
    if start >= 0:
        yield start, len(text)


def _path(header: str) -> tuple[str, ...]:
    """The keys of a header."""
    data: Any = tomllib.loads(header)
    path = []
    while data:
        data = data[0] if isinstance(data, list) else data
        if not data:
            break
        ((key, data),) = data.items()
        path.append(key)
    return tuple(path)


def _without(text: str, table: Table) -> Edit:
    """Take a table away with the blank line before it."""
    start, end = table.start, table.end
    for _ in range(
        1 if text[:end].endswith("\n") else 2
    ):  # at an end without a line's end, that of the line before goes too
        if text[:start].endswith("\n") and (
            text[:start].rstrip("\r").endswith(("\n\n", "\n\r\n")) or not text[:end].endswith("\n")
        ):
            start -= 2 if text[:start].endswith("\r\n") else 1
    return Edit(start, end, "")


def _rendered(path: tuple[str, ...], entry: dict[str, Any]) -> str:
    lines = [f"[{'.'.join(map(_key, path))}]"]
    lines += [f"{_key(key)} = {_value(value)}" for key, value in entry.items()]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{ "
            + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items())
            + " }"
            if value
            else "{}"
        )
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace(
        "\x7f", "\\u007f"
    )  # strings, integers and truth look as in JSON
