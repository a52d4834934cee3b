"""Edits JSON and JSONC: adds, replaces or removes one member, and changes no other byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from .jsonc import COMMENT, JsonMember, JsonNode, JsonReader
from .text_edits import TextEdit, Uneditable, apply_edits, line_start, newline_of


class JsonEditor:
    """Edits the servers in a JSON configuration: the members of the object `section` at its top."""

    def __init__(self, section: str, *, comments: bool) -> None:
        self.section = section
        self._comments = comments

    def source(self, text: str, name: str) -> str | None:
        """Return the text of an entry; None if there is none.

        Raises:
            Uneditable: The text is not a JSON object, or has the entry twice.
        """
        _, servers = self._servers(text)
        member = _member(servers, name) if servers is not None else None
        return None if member is None else text[member.node.start : member.node.end]

    def add(self, text: str, name: str, entry: dict[str, Any]) -> str:
        """Return the text with an entry added at the end, or replaced in its place.

        Args:
            text: The text of the file.
            name: The name of the server.
            entry: The entry, as JSON.

        Raises:
            Uneditable: The entry cannot be written without a change to something else.
        """
        root, servers = self._servers(text)
        if root is None or servers is None:
            after = self._put(text, root, self.section, {name: entry})
        else:
            after = apply_edits(text, _put_edits(text, root, servers, name, entry))
        return self._checked(text, after, lambda data: self._of(data).update({name: entry}))

    def remove(self, text: str, name: str) -> str:
        """Return the text without an entry; the same text if there is none.

        Raises:
            Uneditable: The entry cannot be removed without a change to something else.
        """
        _, servers = self._servers(text)
        if servers is None or _member(servers, name) is None:
            return text
        after = apply_edits(text, _removal(text, servers, name))
        _, rest = self._servers(after)
        is_empty = rest is not None and not rest.members
        if rest is not None and is_empty and not after[rest.start + 1 : rest.end - 1].strip():
            after = after[: rest.start] + "{}" + after[rest.end :]
        return self._checked(text, after, lambda data: self._of(data).pop(name))

    def put(self, text: str, key: str, value: Any) -> str:
        """Return the text with a member of the root object set.

        Args:
            text: The text of the file.
            key: The name of the member.
            value: Its value, as JSON.

        Raises:
            Uneditable: It cannot be written without a change to something else.
        """
        root, _ = self._servers(text)
        after = self._put(text, root, key, value)
        return self._checked(text, after, lambda data: data.update({key: value}))

    def append(self, text: str, key: str, value: Any) -> str:
        """Return the text with a value appended to an array of the root object, which is created if
        it is missing.

        Args:
            text: The text of the file.
            key: The name of the array.
            value: The value, as JSON.

        Raises:
            Uneditable: The member is not an array, or it cannot be written without a change to
                something else.
        """
        root, _ = self._servers(text)
        member = _member(root, key) if root is not None else None
        if root is None or member is None or member.node.items == []:
            return self.put(text, key, [value])
        if member.node.items is None:
            raise Uneditable(f"{key} must be an array")
        last = member.node.items[-1]
        indent = _own_line(text, last.start)
        if indent is None:
            new = f", {_rendered(value, text, None, '')}"
        else:
            item = _rendered(value, text, _unit(text, root), indent)
            new = f",{newline_of(text)}{indent}{item}"
        after = apply_edits(text, [TextEdit(last.end, last.end, new)])
        return self._checked(text, after, lambda data: data[key].append(value))

    def _of(self, data: dict[str, Any]) -> dict[str, Any]:
        servers: dict[str, Any] = data.setdefault(self.section, {})
        return servers

    def _servers(self, text: str) -> tuple[JsonNode | None, JsonNode | None]:
        """Return the document and the object with the servers, each None if it is missing."""
        root = JsonReader(text, comments=self._comments).read()
        if root is None:
            return None, None
        if root.members is None:
            raise Uneditable("it must be a JSON object")
        member = _member(root, self.section)
        if member is not None and member.node.members is None:
            raise Uneditable(f"{self.section} must be an object")
        return root, member.node if member is not None else None

    def _put(self, text: str, root: JsonNode | None, key: str, value: Any) -> str:
        if root is not None:
            return apply_edits(text, _put_edits(text, root, root, key, value))
        newline = newline_of(text)
        fresh = json.dumps({key: value}, indent=2, ensure_ascii=False).replace("\n", newline)
        before = text if not text or text.endswith("\n") else text + newline
        return before + fresh + newline

    def _checked(self, before: str, after: str, change: Callable[[Any], object]) -> str:
        """Check that the new text has the old data with this change only."""
        wanted = JsonReader(before, comments=self._comments).read()
        found = JsonReader(after, comments=self._comments).read()
        data = wanted.plain() if wanted is not None else {}
        change(data)
        if found is None or found.plain() != data:
            raise Uneditable("the entry cannot be written without other changes")
        return after


def _member(node: JsonNode, key: str) -> JsonMember | None:
    found = [member for member in node.members or () if member.key == key]
    if len(found) > 1:
        raise Uneditable(f"{key} is in it {len(found)} times")
    return found[0] if found else None


# -- where and how to write ------------------------------------------------------------------


def _put_edits(text: str, root: JsonNode, node: JsonNode, key: str, value: Any) -> list[TextEdit]:
    """Set a member of an object: replace it in its place, or add it at the end."""
    member = _member(node, key)
    if member is None:
        return _insertion(text, root, node, key, value)
    if member.node.plain() == value:
        return []
    style = _style(text, root, node, member)
    return [TextEdit(member.node.start, member.node.end, _rendered(value, text, *style))]


def _insertion(text: str, root: JsonNode, node: JsonNode, key: str, value: Any) -> list[TextEdit]:
    """Add a member at the end of an object, in the style of the members before it."""
    members = node.members or []
    newline = newline_of(text)
    if not members:
        return _first(text, root, node, key, value)
    last = members[-1]
    behind = last.comma + 1 if last.comma >= 0 else last.node.end
    commas = [] if last.comma >= 0 else [TextEdit(last.node.end, last.node.end, ",")]
    unit, indent = _style(text, root, node, last)
    gap = "" if unit is None and _tight(text, last) else " "
    name = json.dumps(key, ensure_ascii=False)
    member = f"{name}:{gap}{_rendered(value, text, unit, indent)}"
    if unit is None:
        gap = "" if _tight(text, last) else " "
        return [*commas, TextEdit(behind, behind, f"{gap}{member}")]
    place = _end_of_line(text, behind, node.end - 1)
    return [
        *commas,
        TextEdit(place, place, f"{newline}{indent}{member}{',' if last.comma >= 0 else ''}"),
    ]


def _first(text: str, root: JsonNode, node: JsonNode, key: str, value: Any) -> list[TextEdit]:
    """Add a member to an empty object."""
    newline = newline_of(text)
    if node is not root and "\n" not in text[root.start : root.end]:
        return [
            TextEdit(
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
    return [TextEdit(place, place, f"{newline}{base}{unit}{member}{closing}")]


def _removal(text: str, node: JsonNode, name: str) -> list[TextEdit]:
    """Remove a member with its comma, and with its line if it has a line of its own."""
    members = node.members or []
    n = next(n for n, member in enumerate(members) if member.key == name)
    member = members[n]
    previous = members[n - 1] if n else None
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
            return [TextEdit(start, members[n + 1].start, "")]
        return [TextEdit(start, member.comma + 1, "")]
    if previous is None:
        return [TextEdit(start, member.node.end, "")]
    if own_line is None:
        return [TextEdit(previous.comma, member.node.end, "")]
    return [TextEdit(previous.comma, previous.comma + 1, ""), TextEdit(start, member.node.end, "")]


def _style(text: str, root: JsonNode, node: JsonNode, member: JsonMember) -> tuple[str | None, str]:
    """Return one step of indentation (None: all on one line), and the indentation of a member."""
    indent = _own_line(text, member.start)
    return (None, "") if indent is None else (_unit(text, root), indent)


def _own_line(text: str, start: int) -> str | None:
    """Return the whitespace before a value that is the first of its line; None otherwise."""
    before = text[line_start(text, start) : start]
    return before if not before.strip(" \t") and line_start(text, start) > 0 else None


def _unit(text: str, root: JsonNode) -> str:
    for member in root.members or ():
        if indent := _own_line(text, member.start):
            return indent
    return "  "


def _tight(text: str, member: JsonMember) -> bool:
    """Return whether a value follows its colon without a space."""
    return text[member.node.start - 1] == ":"


def _rendered(value: Any, text: str, unit: str | None, indent: str) -> str:
    if unit is None:
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, indent=unit, ensure_ascii=False).replace(
        "\n", newline_of(text) + indent
    )


def _end_of_line(text: str, start: int, limit: int) -> int:
    """Return the position after the comments on the same line, which belong to the text before
    them.
    """
    place = at = start
    while at < limit:
        blank = re.compile(r"[ \t]*").match(text, at)
        at = blank.end() if blank is not None else at
        comment = COMMENT.match(text, at)
        if comment is None or "\n" in comment[0] or comment.end() > limit:
            break
        place = at = comment.end()
    return place
