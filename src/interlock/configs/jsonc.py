"""Reads JSON with or without comments (JSONC), and keeps the position of every value."""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Struct

from .text_edits import Uneditable, line_start

MOST_LEVELS = 200
_BLANK = re.compile(r"[ \t\r\n]*")
COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


class NotJson(Uneditable):
    """A text that cannot be read as JSON; the message says where."""


class JsonNode(Struct):
    """One value and where it stands. An object has `members`, an array `items`, anything else a `value`."""

    start: int
    end: int
    value: Any = None
    members: list[JsonMember] | None = None
    items: list[JsonNode] | None = None

    def plain(self) -> Any:
        """The value as Python has it."""
        if self.members is not None:
            return {member.key: member.node.plain() for member in self.members}
        return [item.plain() for item in self.items] if self.items is not None else self.value


class JsonMember(Struct):
    """One member of an object: where its key begins, its value, and the comma behind it (-1: none)."""

    key: str
    start: int
    node: JsonNode
    comma: int = -1


def plain_value(text: str) -> Any:
    """What a JSON text with or without comments says. Raises NotJson."""
    root = JsonReader(text, comments=True).read()
    if root is None:
        raise NotJson("it is empty")
    return root.plain()


class JsonReader:
    """Reads one text. With `comments`, both kinds of them and commas at the end of lists are allowed."""

    def __init__(self, text: str, *, comments: bool) -> None:
        self.text, self.comments = text, comments
        self._at = 0

    def read(self) -> JsonNode | None:
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
            comment = COMMENT.match(self.text, self._at) if self.comments else None
            if comment is None:
                return
            self._at = comment.end()

    def _value(self, depth: int) -> JsonNode:
        if depth > MOST_LEVELS:
            raise self._wrong("too many levels")
        sign = self.text[self._at : self._at + 1]
        if sign == "{":
            return self._object(depth)
        if sign == "[":
            return self._array(depth)
        start = self._at
        if sign == '"':
            value = self._string()
            return JsonNode(start, self._at, value)
        found = _SCALAR.match(self.text, self._at)
        if found is None:
            raise self._wrong("a value is missing")
        self._at = found.end()
        return JsonNode(start, self._at, json.loads(found[0]))

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

    def _object(self, depth: int) -> JsonNode:
        start, members = self._at, list[JsonMember]()
        self._at += 1
        while not self._closes("}", bool(members) and members[-1].comma < 0):
            key_start = self._at
            key = self._string()
            self._skip()
            if self.text[self._at : self._at + 1] != ":":
                raise self._wrong("a colon is missing")
            self._at += 1
            self._skip()
            member = JsonMember(key, key_start, self._value(depth + 1))
            members.append(member)
            member.comma = self._comma()
        if members and members[-1].comma >= 0 and not self.comments:
            raise self._wrong("a comma stands before the end of an object")
        self._at += 1
        return JsonNode(start, self._at, members=members)

    def _array(self, depth: int) -> JsonNode:
        start, items, comma = self._at, list[JsonNode](), 0
        self._at += 1
        while not self._closes("]", comma < 0):
            items.append(self._value(depth + 1))
            comma = self._comma()
        if items and comma >= 0 and not self.comments:
            raise self._wrong("a comma stands before the end of an array")
        self._at += 1
        return JsonNode(start, self._at, items=items)

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
