"""Reads JSON with or without comments (JSONC), and keeps the position of every value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from .text_edits import Uneditable, line_start

MOST_LEVELS: Final = 100
"""The deepest nesting of objects and arrays in a configuration."""

COMMENT: Final = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)

_BLANK = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")

Pairs = list[tuple[str, Any]]


class NotJson(Uneditable):
    """A text is not JSON. The message says where."""


class JsonNode(Struct):
    """One value and its position.

    An object has `members`, an array has `items`, and any other value is in `value`.
    """

    start: int
    end: int
    value: Any = None
    members: list[JsonMember] | None = None
    items: list[JsonNode] | None = None

    def plain(self, make: Callable[[Pairs], dict[str, Any]] = dict) -> Any:
        """Return the Python value; `make` makes an object from its members."""
        if self.members is not None:
            return make([(member.key, member.node.plain(make)) for member in self.members])
        if self.items is not None:
            return [item.plain(make) for item in self.items]
        return self.value


class JsonMember(Struct):
    """One member of an object: the position of its key, its value, and the position of the comma
    after it, or -1.
    """

    key: str
    start: int
    node: JsonNode
    comma: int = -1


def plain_value(text: str) -> Any:
    """Return the value of a JSON text with or without comments.

    Raises:
        NotJson: The text is not JSON, or has no value.
    """
    root = JsonReader(text, comments=True).read()
    if root is None:
        raise NotJson("it is empty")
    return root.plain()


class JsonReader:
    """Reads one text. With `comments`, comments and trailing commas are allowed."""

    def __init__(self, text: str, *, comments: bool) -> None:
        self.text = text
        self.comments = comments
        self._at = 0

    def read(self) -> JsonNode | None:
        """Return the value of the text; None if it contains only whitespace and comments.

        Raises:
            NotJson: The text is not JSON.
        """
        self._skip()
        if self._at == len(self.text):
            return None
        root = self._value(0)
        self._skip()
        if self._at < len(self.text):
            raise self._error("text follows after the end")
        return root

    def _error(self, why: str) -> NotJson:
        line = self.text.count("\n", 0, self._at) + 1
        column = self._at - line_start(self.text, self._at) + 1
        return NotJson(f"line {line}, column {column}: {why}")

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
            raise self._error(f"more than {MOST_LEVELS} levels")
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
            raise self._error("a value is missing")
        try:
            value = json.loads(found[0])
        except ValueError:
            raise self._error("a number has too many digits") from None
        self._at = found.end()
        return JsonNode(start, self._at, value)

    def _string(self) -> str:
        found = _STRING.match(self.text, self._at)
        if found is None:
            raise self._error("a string is missing or does not end")
        try:
            value: str = json.loads(found[0])
        except ValueError:
            raise self._error("a string has an invalid escape") from None
        self._at = found.end()
        return value

    def _object(self, depth: int) -> JsonNode:
        start = self._at
        members: list[JsonMember] = []
        self._at += 1
        while not self._closes("}", bool(members) and members[-1].comma < 0):
            key_start = self._at
            key = self._string()
            self._skip()
            if self.text[self._at : self._at + 1] != ":":
                raise self._error("a colon is missing")
            self._at += 1
            self._skip()
            member = JsonMember(key, key_start, self._value(depth + 1))
            members.append(member)
            member.comma = self._comma()
        if members and members[-1].comma >= 0 and not self.comments:
            raise self._error("an object ends with a comma")
        self._at += 1
        return JsonNode(start, self._at, members=members)

    def _array(self, depth: int) -> JsonNode:
        start = self._at
        items: list[JsonNode] = []
        comma = 0
        self._at += 1
        while not self._closes("]", comma < 0):
            items.append(self._value(depth + 1))
            comma = self._comma()
        if items and comma >= 0 and not self.comments:
            raise self._error("an array ends with a comma")
        self._at += 1
        return JsonNode(start, self._at, items=items)

    def _closes(self, sign: str, must: bool) -> bool:
        """Return whether an object or array ends here. It must end here if there was no comma."""
        self._skip()
        if self.text[self._at : self._at + 1] == sign:
            return True
        if must or self._at == len(self.text):
            raise self._error(f"a comma or {sign} is missing")
        return False

    def _comma(self) -> int:
        self._skip()
        if self.text[self._at : self._at + 1] != ",":
            return -1
        self._at += 1
        return self._at - 1
