"""Edits YAML with ruamel.yaml: adds, replaces or removes one entry, and changes no other byte.

ruamel.yaml finds the beginning and end of an entry, and writes the new one. Only these characters
are replaced. The result is parsed and compared with the old document before it is used.
"""

from __future__ import annotations

import io
import re
import sys
import warnings
from typing import Any, NamedTuple

from .extra import require
from .text_edits import TextEdit, Uneditable, apply_edits, line_start, newline_of

# Strings that every version of YAML reads as a string without quotes.
_PLAIN = re.compile(
    r"(?!(?:true|false|yes|no|on|off|null|y|n)$)[A-Za-z_][A-Za-z0-9_-]*", re.IGNORECASE
)


class _Span(NamedTuple):
    """One entry of the section: from the start of its first line to the end of its last."""

    name: str
    start: int
    end: int


class _Section(NamedTuple):
    """The present section: its value, its entries, and the column for new entries."""

    value: Any
    colon: int
    spans: list[_Span]
    indent: int


class YamlEditor:
    """Edits the servers in a YAML configuration: the keys of the mapping `section` at its top.

    Only block style is edited. A section in flow style, or with an anchor or tag, is refused.
    """

    def __init__(self, section: str) -> None:
        self.section = section

    def source(self, text: str, name: str) -> str | None:
        """Return the text of an entry; None if there is none.

        Raises:
            Uneditable: The text is not YAML, or the section cannot be edited.
        """
        section = self._section(text, _compose(text))
        spans = section.spans if section is not None else []
        return next((text[span.start : span.end] for span in spans if span.name == name), None)

    def add(self, text: str, name: str, entry: dict[str, Any]) -> str:
        """Return the text with an entry added after the others, or replaced in its place.

        Raises:
            Uneditable: The entry cannot be written without a change to something else.
        """
        root = _compose(text)
        section = self._section(text, root)
        newline = newline_of(text)
        if section is None:
            lines = _rendered({self.section: {name: entry}}, _usual_indent(root), newline)
            edits = [_insertion(text, len(text), lines, newline)]
        else:
            lines = _rendered({name: entry}, section.indent, newline, outer=section.indent)
            own = next((span for span in section.spans if span.name == name), None)
            if own is not None:
                end = len(text[: own.end].rstrip("\r\n"))
                edits = [TextEdit(own.start, end, lines)]
            elif section.spans:
                edits = [_insertion(text, section.spans[-1].end, lines, newline)]
            else:
                edits = _first_entry(text, section, lines, newline)
        return self._checked(root, text, apply_edits(text, edits), name, entry)

    def remove(self, text: str, name: str) -> str:
        """Return the text without an entry; the same text if there is none.

        Raises:
            Uneditable: The entry cannot be removed without a change to something else.
        """
        root = _compose(text)
        section = self._section(text, root)
        own = next((span for span in section.spans if span.name == name), None) if section else None
        if section is None or own is None:
            return text
        start = own.start
        if not text[: own.end].endswith("\n"):
            # The last line of the file has no line ending, so that of the line before it is removed
            # instead.
            start = len(text[:start].removesuffix("\n").removesuffix("\r"))
        edits = [TextEdit(start, own.end, "")]
        if len(section.spans) == 1:
            edits.insert(0, TextEdit(section.colon, section.colon, " {}"))
        return self._checked(root, text, apply_edits(text, edits), name, None)

    def _section(self, text: str, root: Any) -> _Section | None:
        if root is None:
            return None
        if not _is_block_mapping(root):
            raise Uneditable("the document must be a mapping in block style")
        found = [(key, value) for key, value in root.value if key.value == self.section]
        if not found:
            return None
        if len(found) > 1:
            raise Uneditable(f"{self.section} is in it {len(found)} times")
        key, value = found[0]
        if value.anchor is not None:
            raise Uneditable(f"{self.section} has an anchor or a tag")
        colon = text.index(":", key.end_mark.index) + 1
        if _is_empty(value):
            return _Section(value, colon, [], _usual_indent(root))
        if not _is_block_mapping(value) or text[colon : line_end(text, colon)].strip()[:1] in (
            "&",
            "!",
        ):
            raise Uneditable(f"{self.section} must be a mapping in block style")
        spans = []
        for name, entry in value.value:
            start = line_start(text, name.start_mark.index)
            if text[start : name.start_mark.index].strip(" ") or not isinstance(name.value, str):
                raise Uneditable(f"{self.section} must be a mapping in block style")
            spans.append(_Span(name.value, start, _content_end(text, entry)))
        if len({span.name for span in spans}) < len(spans):
            raise Uneditable(f"{self.section} names an entry twice")
        return _Section(value, colon, spans, value.value[0][0].start_mark.column)

    def _checked(
        self, root: Any, before: str, after: str, name: str, entry: dict[str, Any] | None
    ) -> str:
        """Check that the new text has the old document with this change only."""
        try:
            changed = _compose(after)
        except Uneditable as bad:
            raise Uneditable(f"the entry cannot be written without other changes ({bad})") from None
        wanted = dict(_tree(root)) if root is not None else {}
        found = dict(_tree(changed))
        section = ("tag:yaml.org,2002:str", self.section)
        key = ("tag:yaml.org,2002:str", name)
        old = _entries(wanted.pop(section, ()))
        new = _entries(found.pop(section, ()))
        if entry is None:
            old.pop(key)
        else:
            old[key] = _tree(_compose(_rendered(entry, 2, "\n")))
        same = wanted == found and list(wanted) == list(found)
        if not same or old != new or list(old) != list(new):
            raise Uneditable("the entry cannot be written without other changes")
        return after


def line_end(text: str, at: int) -> int:
    """Return the end of the line that contains the position `at`, without its line ending."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _compose(text: str) -> Any:
    """Return the node tree of a text; None if it contains only whitespace and comments."""
    require("ruamel.yaml", "YAML")
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        with warnings.catch_warnings(action="ignore"):  # an anchor that is used twice
            return YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as bad:
        mark = bad.problem_mark or bad.context_mark
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise Uneditable(f"{where}this is not YAML") from None
    except (YAMLError, ValueError, RecursionError):
        raise Uneditable("this is not YAML") from None


def _tree(node: Any) -> Any:
    """Return tags and values of a node as plain data, so that two nodes can be compared."""
    if isinstance(node.value, str):
        return node.tag, node.value
    if node.id == "mapping":
        return tuple((_tree(key), _tree(value)) for key, value in node.value)
    return node.tag, tuple(_tree(item) for item in node.value)


def _entries(tree: Any) -> dict[Any, Any]:
    """Return the entries of a section; an empty one may be written as null."""
    return dict(tree) if tree and isinstance(tree[0], tuple) else {}


def _is_block_mapping(node: Any) -> bool:
    return bool(node.id == "mapping" and not node.flow_style)


def _is_empty(node: Any) -> bool:
    if node.id == "mapping":
        return bool(node.flow_style) and not node.value
    return bool(node.id == "scalar" and node.tag == "tag:yaml.org,2002:null")


def _usual_indent(root: Any) -> int:
    """Return the indentation of the first nested mapping in the document."""
    for _, value in root.value if root is not None else ():
        if value.id != "scalar" and not value.flow_style and value.start_mark.column:
            return int(value.start_mark.column)
    return 2


def _content_end(text: str, node: Any) -> int:
    """Return the end of a node's last line, including a comment on it and its line ending."""
    while node.id != "scalar" and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    end = node.end_mark.index
    if node.id == "scalar" and node.style in ("|", ">"):
        header = text[node.start_mark.index : line_end(text, node.start_mark.index)]
        if "+" in header.partition("#")[0]:
            return int(end)
        end = len(text[:end].rstrip(" \t\r\n"))
    return min(line_end(text, end) + 1, len(text))


def _first_entry(text: str, section: _Section, lines: str, newline: str) -> list[TextEdit]:
    """Add an entry to an empty section, and remove the `{}` or null of the empty section."""
    value = section.value
    edits = []
    end = section.colon
    if value.start_mark.index < value.end_mark.index:
        end = value.end_mark.index
        edits.append(TextEdit(section.colon, end, ""))
    place = min(line_end(text, end) + 1, len(text))
    return [*edits, _insertion(text, place, lines, newline)]


def _insertion(text: str, place: int, lines: str, newline: str) -> TextEdit:
    """Insert lines. The end of the file stays the same, with or without a line ending."""
    if not place or text[:place].endswith("\n"):
        return TextEdit(place, place, lines + newline)
    return TextEdit(place, place, newline + lines)


def _rendered(data: dict[str, Any], step: int, newline: str, *, outer: int = 0) -> str:
    """Return data in block style, without the last line ending."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt", pure=True)
    yaml.width = sys.maxsize
    yaml.indent(mapping=2, sequence=4, offset=2)
    written = io.StringIO()
    yaml.dump(_quoted(data), written)
    lines = written.getvalue().rstrip("\n").split("\n")
    if step != 2 and not outer:
        # The first level has the indentation of the rest of the document.
        lines = [lines[0], *(" " * (step - 2) + line for line in lines[1:])]
    return newline.join(" " * outer + line for line in lines)


def _quoted(value: Any) -> Any:
    """Quote every string that a version of YAML could read as something else."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    if isinstance(value, dict):
        return {_quoted(key): _quoted(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_quoted(inner) for inner in value]
    if isinstance(value, str) and not _PLAIN.fullmatch(value):
        return DoubleQuotedScalarString(value)
    return value
