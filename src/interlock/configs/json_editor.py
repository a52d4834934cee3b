"""Edits JSON and JSONC: adds, replaces or removes one member, and changes no other byte."""

from __future__ import annotations

import json
import re
from typing import Any

from .jsonc import COMMENT, JsonMember, JsonNode, JsonReader
from .text_edits import TextEdit, Uneditable, apply_edits, line_start, newline_of


class JsonEditor:
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
            edits = [TextEdit(member.node.start, member.node.end, _rendered(entry, text, *style))]
        else:
            edits = _insertion(text, root, servers, name, entry)
        after = apply_edits(text, edits)
        return self._checked(text, after, lambda servers: servers.update({name: entry}))

    def remove(self, text: str, name: str) -> str:
        """The text without an entry; the same text where there is none. Raises Uneditable."""
        _, servers = self._places(text)
        if servers is None or _member(servers, name) is None:
            return text
        after = apply_edits(text, _removal(text, servers, name))
        _, rest = self._places(after)
        if (
            rest is not None
            and not rest.members
            and not after[rest.start + 1 : rest.end - 1].strip()
        ):
            after = after[: rest.start] + "{}" + after[rest.end :]
        return self._checked(text, after, lambda servers: servers.pop(name))

    def _places(self, text: str) -> tuple[JsonNode | None, JsonNode | None]:
        """The whole and the object with the servers, as far as they are there."""
        root = JsonReader(text, comments=self._comments).read()
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
        wanted = JsonReader(before, comments=self._comments).read()
        found = JsonReader(after, comments=self._comments).read()
        data = wanted.plain() if wanted is not None else {}
        change(data.setdefault(self.section, {}))
        if found is None or found.plain() != data:
            raise Uneditable("the entry cannot be written without touching something else")
        return after


def _member(node: JsonNode, key: str) -> JsonMember | None:
    found = [member for member in node.members or () if member.key == key]
    if len(found) > 1:
        raise Uneditable(f"{key} stands in it {len(found)} times")
    return found[0] if found else None


# -- where and how to write -------------------------------------------------------------------------------


def _insertion(text: str, root: JsonNode, node: JsonNode, key: str, value: Any) -> list[TextEdit]:
    """Put a member at the end of an object, in the manner of those that are there."""
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
    """Put a member into an empty object."""
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
            return [TextEdit(start, members[n + 1].start, "")]
        return [TextEdit(start, member.comma + 1, "")]
    if previous is None:
        return [TextEdit(start, member.node.end, "")]
    if own_line is None:
        return [TextEdit(previous.comma, member.node.end, "")]
    return [TextEdit(previous.comma, previous.comma + 1, ""), TextEdit(start, member.node.end, "")]


def _style(text: str, root: JsonNode, node: JsonNode, member: JsonMember) -> tuple[str | None, str]:
    """One step of indentation (None: all on one line) and the indentation of a member."""
    indent = _own_line(text, member.start)
    return (None, "") if indent is None else (_unit(text, root), indent)


def _own_line(text: str, start: int) -> str | None:
    """The blanks before something that is the first on its line; None where it is not."""
    before = text[line_start(text, start) : start]
    return before if not before.strip(" \t") and line_start(text, start) > 0 else None


def _unit(text: str, root: JsonNode) -> str:
    for member in root.members or ():
        if indent := _own_line(text, member.start):
            return indent
    return "  "


def _tight(text: str, member: JsonMember) -> bool:
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
        comment = COMMENT.match(text, at)
        if comment is None or "\n" in comment[0] or comment.end() > limit:
            break
        place = at = comment.end()
    return place
