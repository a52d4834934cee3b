"""JSON with or without comments, read with the place of every part, so that one part can be changed and no other byte."""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Struct

from .text import Edit, Uneditable, apply, line_start, newline_of

_MOST_LEVELS = 200
_BLANK = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


class NotJson(Uneditable):
    """A text that cannot be read as JSON; the message says where."""


class Node(Struct):
    """One value and where it stands. An object has `members`, an array `items`, anything else a `value`."""

    start: int
    end: int
    value: Any = None
    members: list[Member] | None = None
    items: list[Node] | None = None

    def plain(self) -> Any:
        """The value as Python has it."""
        if self.members is not None:
            return {member.key: member.node.plain() for member in self.members}
        return [item.plain() for item in self.items] if self.items is not None else self.value


class Member(Struct):
    """One member of an object: where its key begins, its value, and the comma behind it (-1: none)."""

    key: str
    start: int
    node: Node
    comma: int = -1


def plain_value(text: str) -> Any:
    """What a JSON text with or without comments says. Raises NotJson."""
    root = Reader(text, comments=True).read()
    if root is None:
        raise NotJson("it is empty")
    return root.plain()


class Reader:
    """Reads one text. With `comments`, both kinds of them and commas at the end of lists are allowed."""

    def __init__(self, text: str, *, comments: bool) -> None:
        self.text, self.comments = text, comments
        self._at = 0

    def read(self) -> Node | None:
        """The value that the text is; None where there is nothing but blanks and comments. Raises NotJson."""
        self._skip()
        if self._at == len(self.text):
            return None
        root = self._value(0)
        self._skip()
        if self._at < len(self.text):
            raise self._wrong("something follows after the end")
        return root

    def _wrong(self, why: str) -> NotJson:
        line = self.text.count("\n", 0, self._at) + 1
        return NotJson(
            f"line {line}, column {self._at - line_start(self.text, self._at) + 1}: {why}"
        )

    def _skip(self) -> None:
        while True:
            blank = _BLANK.match(self.text, self._at)
            self._at = blank.end() if blank is not None else self._at
            comment = _COMMENT.match(self.text, self._at) if self.comments else None
            if comment is None:
                return
            self._at = comment.end()

    def _value(self, depth: int) -> Node:
        if depth > _MOST_LEVELS:
            raise self._wrong("too many levels")
        sign = self.text[self._at : self._at + 1]
        if sign == "{":
            return self._object(depth)
        if sign == "[":
            return self._array(depth)
        start = self._at
        if sign == '"':
            value = self._string()
            return Node(start, self._at, value)
        found = _SCALAR.match(self.text, self._at)
        if found is None:
            raise self._wrong("a value is missing")
        self._at = found.end()
        return Node(start, self._at, json.loads(found[0]))

    def _string(self) -> str:
        found = _STRING.match(self.text, self._at)
        if found is None:
            raise self._wrong("a string is missing or does not end")
        try:
            value: str = json.loads(found[0])
        except ValueError:
            raise self._wrong("a string has an escape that there is not") from None
        self._at = found.end()
        return value

    def _object(self, depth: int) -> Node:
        start, members = self._at, list[Member]()
        self._at += 1
        while not self._closes("}", bool(members) and members[-1].comma < 0):
            key_start = self._at
            key = self._string()
            self._skip()
            if self.text[self._at : self._at + 1] != ":":
                raise self._wrong("a colon is missing")
            self._at += 1
            self._skip()
            member = Member(key, key_start, self._value(depth + 1))
            members.append(member)
            member.comma = self._comma()
        if members and members[-1].comma >= 0 and not self.comments:
            raise self._wrong("a comma stands before the end of an object")
        self._at += 1
        return Node(start, self._at, members=members)

    def _array(self, depth: int) -> Node:
        start, items, comma = self._at, list[Node](), 0
        self._at += 1
        while not self._closes("]", comma < 0):
            items.append(self._value(depth + 1))
            comma = self._comma()
        if items and comma >= 0 and not self.comments:
            raise self._wrong("a comma stands before the end of an array")
        self._at += 1
        return Node(start, self._at, items=items)

    def _closes(self, sign: str, must: bool) -> bool:
        """Whether a list ends here; it must where no comma came before."""
        self._skip()
        if self.text[self._at : self._at + 1] == sign:
            return True
        if must or self._at == len(self.text):
            raise self._wrong(f"a comma or {sign} is missing")
        return False

    def _comma(self) -> int:
        self._skip()
        if self.text[self._at : self._at + 1] != ",":
            return -1
        self._at += 1
        return self._at - 1


class JsonConfig:
    """The servers in a JSON configuration: the members of the object `section` at its top. Texts in, texts out."""

    def __init__(self, section: str, *, comments: bool) -> None:
        self.section, self._comments = section, comments

    def source(self, text: str, name: str) -> str | None:
        """An entry as it is written; None where there is none. Raises Uneditable."""
        _, servers = self._places(text)
        member = _member(servers, name) if servers is not None else None
        return None if member is None else text[member.node.start : member.node.end]

    def add(self, text: str, name: str, entry: dict[str, Any]) -> str:
        """The text with an entry put in, at the end, or in the place of the one of that name. Raises Uneditable."""
        root, servers = self._places(text)
        if root is None:
            newline = newline_of(text)
            fresh = json.dumps({self.section: {name: entry}}, indent=2, ensure_ascii=False).replace(
                "\n", newline
            )
            return text + ("" if not text or text.endswith("\n") else newline) + fresh + newline
        if servers is None:
            edits = _insertion(text, root, root, self.section, {name: entry})
        elif (member := _member(servers, name)) is not None:
            if member.node.plain() == entry:
                return text
            style = _style(text, root, servers, member)
            edits = [Edit(member.node.start, member.node.end, _rendered(entry, text, *style))]
        else:
            edits = _insertion(text, root, servers, name, entry)
        after = apply(text, edits)
        return self._checked(text, after, lambda servers: servers.update({name: entry}))

    def drop(self, text: str, name: str) -> str:
        """The text without an entry; the same text where there is none. Raises Uneditable."""
        _, servers = self._places(text)
        if servers is None or _member(servers, name) is None:
            return text
        after = apply(text, _removal(text, servers, name))
        _, rest = self._places(after)
        if (
            rest is not None
            and not rest.members
            and not after[rest.start + 1 : rest.end - 1].strip()
        ):
            after = after[: rest.start] + "{}" + after[rest.end :]
        return self._checked(text, after, lambda servers: servers.pop(name))

    def _places(self, text: str) -> tuple[Node | None, Node | None]:
        """The whole and the object with the servers, as far as they are there."""
        root = Reader(text, comments=self._comments).read()
        if root is None:
            return None, None
        if root.members is None:
            raise Uneditable("it is no JSON object")
        member = _member(root, self.section)
        if member is not None and member.node.members is None:
            raise Uneditable(f"{self.section} in it is no object")
        return root, member.node if member is not None else None

    def _checked(self, before: str, after: str, change: Any) -> str:
        """A last look: the new text says what the old one said, but for the change."""
        wanted = Reader(before, comments=self._comments).read()
        found = Reader(after, comments=self._comments).read()
        data = wanted.plain() if wanted is not None else {}
        change(data.setdefault(self.section, {}))
        if found is None or found.plain() != data:
            raise Uneditable("the entry cannot be written without touching something else")
        return after


def _member(node: Node, key: str) -> Member | None:
    found = [member for member in node.members or () if member.key == key]
    if len(found) > 1:
        raise Uneditable(f"{key} stands in it {len(found)} times")
    return found[0] if found else None


# -- where and how to write -------------------------------------------------------------------------------


def _insertion(text: str, root: Node, node: Node, key: str, value: Any) -> list[Edit]:
    """Put a member at the end of an object, in the manner of those that are there."""
    members = node.members or []
    newline = newline_of(text)
    if not members:
        return _first(text, root, node, key, value)
    last = members[-1]
    behind = last.comma + 1 if last.comma >= 0 else last.node.end
    commas = [] if last.comma >= 0 else [Edit(last.node.end, last.node.end, ",")]
    unit, indent = _style(text, root, node, last)
    gap = "" if unit is None and _tight(text, last) else " "
    name = json.dumps(key, ensure_ascii=False)
    member = f"{name}:{gap}{_rendered(value, text, unit, indent)}"
    if unit is None:
        gap = "" if _tight(text, last) else " "
        return [*commas, Edit(behind, behind, f"{gap}{member}")]
    place = _end_of_line(text, behind, node.end - 1)
    return [
        *commas,
        Edit(place, place, f"{newline}{indent}{member}{',' if last.comma >= 0 else ''}"),
    ]


def _first(text: str, root: Node, node: Node, key: str, value: Any) -> list[Edit]:
    """Put a member into an empty object."""
    newline = newline_of(text)
    if node is not root and "\n" not in text[root.start : root.end]:
        return [
            Edit(
                node.start + 1,
                node.start + 1,
                f"{json.dumps(key, ensure_ascii=False)}: {_rendered(value, text, None, '')}",
            )
        ]
    base = re.match(r"[ \t]*", text[line_start(text, node.start) :])[0]  # type: ignore[index]  # it matches always
    unit = _unit(text, root)
    member = f"{json.dumps(key, ensure_ascii=False)}: {_rendered(value, text, unit, base + unit)}"
    place = _end_of_line(text, node.start + 1, node.end - 1)
    closing = "" if "\n" in text[place : node.end] else newline + base
    return [Edit(place, place, f"{newline}{base}{unit}{member}{closing}")]


def _removal(text: str, node: Node, name: str) -> list[Edit]:
    """Take a member out of an object, with the comma and the line that it alone had."""
    members = node.members or []
    n = next(n for n, member in enumerate(members) if member.key == name)
    member, previous = members[n], members[n - 1] if n else None
    start = member.start
    own_line = _own_line(text, start)
    if own_line is not None:
        start = line_start(text, start) - 1
        start -= text[start - 1 : start + 1] == "\r\n"
    if member.comma >= 0:
        if (
            own_line is None
            and n + 1 < len(members)
            and _own_line(text, members[n + 1].start) is None
        ):
            return [Edit(start, members[n + 1].start, "")]
        return [Edit(start, member.comma + 1, "")]
    if previous is None:
        return [Edit(start, member.node.end, "")]
    if own_line is None:
        return [Edit(previous.comma, member.node.end, "")]
    return [Edit(previous.comma, previous.comma + 1, ""), Edit(start, member.node.end, "")]


def _style(text: str, root: Node, node: Node, member: Member) -> tuple[str | None, str]:
    """One step of indentation (None: all on one line) and the indentation of a member."""
    indent = _own_line(text, member.start)
    return (None, "") if indent is None else (_unit(text, root), indent)


def _own_line(text: str, start: int) -> str | None:
    """The blanks before something that is the first on its line; None where it is not."""
    before = text[line_start(text, start) : start]
    return before if not before.strip(" \t") and line_start(text, start) > 0 else None


def _unit(text: str, root: Node) -> str:
    for member in root.members or ():
        if indent := _own_line(text, member.start):
            return indent
    return "  "


def _tight(text: str, member: Member) -> bool:
    """Whether no blank stands between a key's colon and its value."""
    return text[member.node.start - 1] == ":"


def _rendered(value: Any, text: str, unit: str | None, indent: str) -> str:
    if unit is None:
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, indent=unit, ensure_ascii=False).replace(
        "\n", newline_of(text) + indent
    )


def _end_of_line(text: str, start: int, limit: int) -> int:
    """Behind the comments that follow on the same line: they speak of what stands before them."""
    place = at = start
    while at < limit:
        blank = re.compile(r"[ \t]*").match(text, at)
        at = blank.end() if blank is not None else at
        comment = _COMMENT.match(text, at)
        if comment is None or "\n" in comment[0] or comment.end() > limit:
            break
        place = at = comment.end()
    return place
