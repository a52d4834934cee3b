"""Applies edits to a text and shows them as a unified diff, without access to files."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Annotated

from msgspec import Meta, Struct

from interlock import ToolError
from interlock.untrusted.invisible import visible_line as plain

_CONTEXT = 3
_MOST_COMPARED = 4_000  # lines on each side; beyond that all are shown as replaced
MOST_DIFF = 100_000  # characters


class Edit(Struct, forbid_unknown_fields=True):
    """Replace a text that stands in the file exactly so.

    It has to stand there once, or `count` times where that is given.
    """

    old: Annotated[
        str,
        Meta(min_length=1, description="the exact text in the file, with its white space"),
    ]
    new: Annotated[str, Meta(description="the new text; empty to remove the old text")]
    count: (
        Annotated[int, Meta(ge=1, description="how many times it occurs; all of them are replaced")]
        | None
    ) = None


class LineEdit(Struct, forbid_unknown_fields=True):
    """Replace whole lines. Numbers are those of the file as it is, whatever other edits do."""

    first: Annotated[int, Meta(ge=1, description="the first line to replace, from 1")]
    last: Annotated[
        int,
        Meta(ge=0, description="the last line to replace; first - 1 to insert before the first"),
    ]
    new: Annotated[str, Meta(description="the new lines; empty to remove the old lines")]


def edited(text: str, edits: Sequence[Edit], path: str) -> tuple[str, int]:
    """Apply edits in order; return the text and the number of changed places.

    Raises ToolError, and then no edit is applied.
    """
    places = 0
    windows = _has_crlf(text)
    for number, edit in enumerate(edits, 1):
        old, new = (_crlf(edit.old), _crlf(edit.new)) if windows else (edit.old, edit.new)
        found = text.count(old)
        wanted = edit.count or 1
        if found != wanted:
            which = f"Edit {number}: " if len(edits) > 1 else ""
            if not found:
                raise ToolError(
                    f"{which}the old text is not in {plain(path)}.{_hint(text, old)} "
                    "Nothing was changed."
                )
            lines = ", ".join(map(str, _lines_of(text, old)))
            raise ToolError(
                f"{which}the old text occurs {found} times in {plain(path)} (lines "
                f"{lines}), not {wanted}. Send more of the surrounding text, or count. "
                "Nothing was changed."
            )
        text = text.replace(old, new)
        places += found
    return text, places


def line_edited(text: str, edits: Sequence[LineEdit], path: str) -> tuple[str, int]:
    """Apply line edits; return the text and the number of edits.

    Raises ToolError for missing or overlapping lines.
    """
    lines = lines_of(text)
    windows = _has_crlf(text)
    end = len(lines) + 1
    for later in sorted(edits, key=lambda edit: (edit.first, edit.last), reverse=True):
        if later.last < later.first - 1:
            raise ToolError(
                f"Lines {later.first} to {later.last} are not a valid range: last must be "
                "at least first - 1."
            )
        if later.last >= end or later.first > len(lines) + 1:
            there = (
                "overlap with another edit"
                if later.last <= len(lines) and later.first <= len(lines)
                else "do not exist"
            )
            raise ToolError(
                f"Lines {later.first} to {later.last} {there}: {plain(path)} has {len(lines)} "
                "lines. Nothing was changed."
            )
        new = lines_of(_crlf(later.new) if windows else later.new)
        ending = "\r\n" if windows else "\n"
        if new and later.last < len(lines) and not new[-1].endswith("\n"):
            new[-1] += ending  # the next line must stay on its own
        if (
            new
            and later.first > 1
            and later.first - 1 <= len(lines)
            and not lines[later.first - 2].endswith("\n")
        ):
            lines[later.first - 2] += ending
        lines[later.first - 1 : later.last] = new
        end = later.first
    return "".join(lines), len(edits)


def lines_of(text: str) -> list[str]:
    """The lines with their endings; only a line feed ends a line."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _has_crlf(text: str) -> bool:
    """Whether all lines end with CRLF."""
    return "\r\n" in text and text.count("\n") == text.count("\r\n")


def _crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _lines_of(text: str, old: str) -> list[int]:
    found: list[int] = []
    at = text.find(old)
    while at >= 0 and len(found) < 10:
        found.append(text.count("\n", 0, at) + 1)
        at = text.find(old, at + len(old))
    return found


def _hint(text: str, old: str) -> str:
    """Where the old text occurs with different white space, if it does."""
    wanted = [" ".join(line.split()) for line in old.strip().splitlines()]
    there = [" ".join(line.split()) for line in text.splitlines()]
    if wanted and len(there) <= 200_000:
        for n in range(len(there) - len(wanted) + 1):
            if there[n] == wanted[0] and there[n : n + len(wanted)] == wanted:
                return f" With other white space it is at line {n + 1}."
    return ""


def unified(before: str, after: str, path: str) -> str:
    """A unified diff of two texts; empty without changes.

    A very long diff is cut.
    """
    if before == after:
        return ""
    old = lines_of(before)
    new = lines_of(after)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    tail = 0
    while tail < min(len(old), len(new)) - start and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    first = max(
        0, start - _CONTEXT
    )  # common beginnings and ends are left out, so that long files cost nothing
    rest = max(0, tail - _CONTEXT)
    a = old[first : len(old) - rest]
    b = new[first : len(new) - rest]
    name = plain(path)
    out = [f"--- a/{name}\n", f"+++ b/{name}\n"]
    for group in _groups(a, b):
        _, a1, _, b1, _ = group[0]
        _, _, a2, _, b2 = group[-1]
        out.append(f"@@ -{_span(first + a1, first + a2)} +{_span(first + b1, first + b2)} @@\n")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                out += [_signed(" ", line) for line in a[i1:i2]]
            else:
                out += [_signed("-", line) for line in a[i1:i2]] + [
                    _signed("+", line) for line in b[j1:j2]
                ]
    whole = "".join(out)
    return (
        whole
        if len(whole) <= MOST_DIFF
        else whole[:MOST_DIFF] + "\n... the rest of the diff is left out\n"
    )


_Group = Sequence[tuple[str, int, int, int, int]]


def _groups(a: list[str], b: list[str]) -> Sequence[_Group]:
    if max(len(a), len(b)) <= _MOST_COMPARED:
        return list(SequenceMatcher(None, a, b).get_grouped_opcodes(_CONTEXT))
    return [[("replace", 0, len(a), 0, len(b))]]


def _span(start: int, stop: int) -> str:
    count = stop - start
    return f"{start + 1}" if count == 1 else f"{start + 1 if count else start},{count}"


def _signed(sign: str, line: str) -> str:
    return (
        f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"
    )
