"""YAML read just far enough to find the entries of one mapping, and refused where that is not certain."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from .text import Edit, Uneditable, apply, newline_of

_KEY = re.compile(
    r"""("(?:\\.|[^"\\\n])*"|'(?:[^'\n]|'')*'|[A-Za-z_][^\s:#,\[\]{}"'&*!|>%@`]*(?:[ ]+[^\s:#,\[\]{}"'&*!|>%@`]+)*)[ ]*:(?=[ \r\n]|$)"""
)
_INTRODUCTION = re.compile(
    r"(?:-[ ]+|(?:\"(?:\\.|[^\"\\\n])*\"|'(?:[^'\n]|'')*'|[^\s\"'\[{#][^\n#]*?)[ ]*:[ ]+)*(?:[&!]\S+[ ]+)*"
)
_BLOCK = re.compile(r"(?:[&!]\S*[ ]+)*[|>](?P<keep>[-+0-9]*)[ ]*(?:#.*)?\r?$")
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NOT_BARE = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
_EMPTY = re.compile(r"[ ]*(?P<value>\{[ ]*\}|null|~)?[ ]*(?:#.*)?\r?$")


class Item(Struct):
    """One key of a block mapping: its name, the line it begins on, where its value begins, and where all of it ends."""

    name: str
    start: int
    value: int
    end: int


class YamlConfig:
    """The servers in a YAML configuration: the keys of the block mapping `section` at its top. Texts in, texts out.

    Only plain block style is edited: a section in flow style, with anchors, tags or tabs is refused.
    """

    def __init__(self, section: str) -> None:
        self.section = section

    def source(self, text: str, name: str) -> str | None:
        """An entry as it is written; None where there is none. Raises Uneditable."""
        return next(
            (text[item.start : item.end] for item in self._servers(text)[1] if item.name == name),
            None,
        )

    def add(self, text: str, name: str, entry: dict[str, Any]) -> str:
        """The text with an entry put in behind the others, or in the place of the one of that name. Raises Uneditable."""
        section, items, indent = self._servers(text)
        newline = newline_of(text)
        if not text.endswith("\n") and _ends_in_block(text):
            raise Uneditable(
                "its last line is part of a block scalar and has no end"
            )  # an end would become part of it
        lines = newline.join(_rendered({name: entry}, " " * indent))
        own = next((item for item in items if item.name == name), None)
        edits = []
        if own is not None:
            end = (
                own.end
                - len(text[own.start : own.end])
                + len(text[own.start : own.end].rstrip("\r\n"))
            )
            edits.append(Edit(own.start, end, lines))
        elif section is None:
            head = f"{_scalar(self.section)}:{newline}"
            edits.append(
                Edit(len(text), len(text), _attached(text, len(text), head + lines, newline))
            )
        else:
            if (
                not items
                and (empty := _EMPTY.match(_line(text, section.value))) is not None
                and empty["value"]
            ):
                start = section.value + empty.start("value")
                edits.append(Edit(start - 1, section.value + empty.end("value"), ""))
            place = items[-1].end if items else section.end
            edits.append(Edit(place, place, _attached(text, place, lines, newline)))
        after = apply(text, edits)
        return self._checked(
            text, after, [item.name for item in items] + ([name] if own is None else [])
        )

    def drop(self, text: str, name: str) -> str:
        """The text without an entry; the same text where there is none. Raises Uneditable."""
        section, items, _ = self._servers(text)
        own = next((item for item in items if item.name == name), None)
        if section is None or own is None:
            return text
        start = own.start
        if not text[: own.end].endswith(
            "\n"
        ):  # the last line has no end: that of the line before goes in its place
            start -= 2 if text[:start].endswith("\r\n") else 1
        edits = [Edit(section.value, section.value, " {}")] if len(items) == 1 else []
        edits.append(Edit(start, own.end, ""))
        return self._checked(
            text, apply(text, edits), [item.name for item in items if item is not own]
        )

    def _servers(self, text: str) -> tuple[Item | None, list[Item], int]:
        """The section, the entries in it and how far they are indented."""
        tops = list(_items(text, 0, len(text), 0))
        found = [item for item in tops if item.name == self.section]
        if len(found) > 1:
            raise Uneditable(f"{self.section} stands in it {len(found)} times")
        usual = next((indent for item in tops if (indent := _indent_below(text, item))), 2)
        if not found:
            return None, [], usual
        section = found[0]
        indent = _indent_below(text, section)
        empty = _EMPTY.match(_line(text, section.value))
        below = section.end > text.find("\n", section.value) + 1 > 0
        if empty is None or (below and (empty["value"] or not indent)):
            raise Uneditable(f"{self.section} in it is not written as a block of entries")
        if not indent:
            return section, [], usual
        first = text.index("\n", section.value) + 1
        items = list(_items(text, first, section.end, indent))
        if len({item.name for item in items}) < len(items):
            raise Uneditable(f"{self.section} in it names an entry twice")
        return section, items, indent

    def _checked(self, before: str, after: str, names: list[str]) -> str:
        """A last look: the same keys at the top, and the wanted ones in the section."""
        tops = [item.name for item in _items(before, 0, len(before), 0)]
        wanted = tops if self.section in tops else [*tops, self.section]
        if [item.name for item in _items(after, 0, len(after), 0)] != wanted or [
            item.name for item in self._servers(after)[1]
        ] != names:
            raise Uneditable("the entry cannot be written without touching something else")
        return after


def _items(text: str, start: int, end: int, indent: int) -> Iterator[Item]:
    """The keys of a block mapping whose lines lie between two places. Raises Uneditable for what is no plain one."""
    item: Item | None = None
    for line_at, end_at in _lines(text, start, end):
        line = _line(text, line_at)
        depth = len(line) - len(line.lstrip(" "))
        inside = depth > indent or (
            depth == indent and re.match(r"-(?:[ ]|\r?$)", line[depth:])
        )  # a list may stand level with its key
        if inside and item is not None:
            item.end = end_at
            continue
        if indent == 0 and item is None and re.fullmatch(r"---[ ]*(?:#.*)?\r?", line):
            continue
        key = _KEY.match(text, line_at + depth, line_at + len(line))
        if depth != indent or key is None:
            number = text.count("\n", 0, line_at) + 1
            raise Uneditable(
                f"line {number} is nothing that can be edited with certainty: {line.strip()[:60]}"
            )
        if item is not None:
            yield item
        item = Item(_name(key[1]), line_at, key.end(), end_at)
    if item is not None:
        yield item


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where each line with content begins, and where it ends with all that belongs to a scalar or a bracket begun on it."""
    at = start
    while at < end:
        line = _line(text, at)
        after = min(at + len(line) + 1, end)
        bare = line.strip()
        if not bare or bare.startswith("#"):
            at = after
            continue
        if "\t" in line[: len(line) - len(line.lstrip())]:
            raise Uneditable(f"line {text.count(chr(10), 0, at) + 1} is indented with tabs")
        depth = len(line) - len(line.lstrip(" "))
        introduction = _INTRODUCTION.match(text, at + depth, at + len(line))
        value = introduction.end() if introduction is not None else at + depth
        if block := _BLOCK.match(text[value : at + len(line)]):
            if not text[at + depth : value].strip() or text[at + depth] in "&!|>":
                raise Uneditable(
                    f"line {text.count(chr(10), 0, at) + 1} begins a block scalar away from its key"
                )
            after = _block_end(text, after, end, depth, keep="+" in block["keep"])
        elif text[value : value + 1] and text[value] in "\"'[{":
            closed = _closed(text, value, end)
            after = min(text.find("\n", closed) + 1 or end, end)
        yield at, after
        at = after


def _block_end(text: str, at: int, end: int, depth: int, *, keep: bool) -> int:
    """The end of a block scalar: the lines that are deeper; blank ones at the end count where it keeps them."""
    last = at
    while at < end:
        line = _line(text, at)
        after = min(at + len(line) + 1, end)
        if line.strip():
            if len(line) - len(line.lstrip(" ")) <= depth:
                break
            last = after
        elif keep:
            last = after
        at = after
    return last


def _ends_in_block(text: str) -> bool:
    """Whether the text ends within a block scalar to whose value a line's end would be added."""
    begins = [at for at, _ in _lines(text, 0, len(text))]
    line = _line(text, begins[-1]) if begins else ""
    depth = len(line) - len(line.lstrip(" "))
    introduction = _INTRODUCTION.match(line, depth)
    block = _BLOCK.match(line[introduction.end() :]) if introduction is not None else None
    return block is not None and "-" not in block["keep"]


_FLOW = re.compile(
    r""""(?:\\.|[^"\\])*"|'(?:[^']|'')*'|(?P<open>[\[{])|(?P<close>[\]}])|(?<=\s)\#[^\n]*|[^\[\]{}"'#]+|.""",
    re.DOTALL,
)


def _closed(text: str, at: int, end: int) -> int:
    """Where a quoted scalar or a bracket that begins here has ended. Raises Uneditable where it does not."""
    depth = 0
    for token in _FLOW.finditer(text, at, end):
        if token["open"]:
            depth += 1
        elif token["close"]:
            depth -= 1
        elif depth == 0 and token[0] in ('"', "'"):
            break
        if depth == 0:
            return token.end()
    raise Uneditable(f"line {text.count(chr(10), 0, at) + 1} begins something that does not end")


def _line(text: str, at: int) -> str:
    end = text.find("\n", at)
    return text[at:] if end < 0 else text[at:end]


def _indent_below(text: str, item: Item) -> int:
    """How far the first line below a key is indented; 0 where there is none."""
    first = text.find("\n", item.value) + 1
    if not first or first >= item.end or not _EMPTY.match(_line(text, item.value)):
        return 0
    for at, _ in _lines(text, first, item.end):
        line = _line(text, at)
        return len(line) - len(line.lstrip(" "))
    return 0


def _name(key: str) -> str:
    if key.startswith("'"):
        return key[1:-1].replace("''", "'")
    if not key.startswith('"'):
        return key
    try:
        name: str = json.loads(key)
    except ValueError:
        raise Uneditable(f"the key {key} has an escape that is not read here") from None
    return name


def _attached(text: str, place: int, lines: str, newline: str) -> str:
    """Lines as they go in at a place: on lines of their own, and the end of the file as it was."""
    if not place:
        return lines + newline
    return lines + newline if text[:place].endswith("\n") else newline + lines


def _rendered(entry: dict[str, Any], indent: str) -> list[str]:
    """A mapping in block style, line by line."""
    lines = []
    for key, value in entry.items():
        head = f"{indent}{_scalar(key)}:"
        if isinstance(value, dict) and value:
            lines += [head, *_rendered(value, indent + "  ")]
        elif isinstance(value, list) and value:
            lines += [head, *(f"{indent}  - {_scalar(item)}" for item in value)]
        else:
            lines.append(f"{head} {_scalar(value)}")
    return lines


def _scalar(value: Any) -> str:
    """A value on one line. A string that is not a plain word is written as in JSON, which YAML reads alike."""
    if isinstance(value, str) and _BARE.fullmatch(value) and value.lower() not in _NOT_BARE:
        return value
    text = json.dumps(value, ensure_ascii=False)
    return re.sub(r"[\x7f-\x9f\u2028\u2029\ufeff]", lambda found: f"\\u{ord(found[0]):04x}", text)
