"""A docstring parser for the Google, NumPy and Sphinx styles."""

from __future__ import annotations

import re
from collections.abc import Iterable
from inspect import cleandoc

from msgspec import Struct, field

_PARAMETERS = frozenset(
    {
        "args",
        "arguments",
        "parameters",
        "params",
        "keyword args",
        "keyword arguments",
        "other parameters",
        "attributes",
    },
)
_RETURNS = frozenset({"returns", "return", "yields", "yield"})

_UNDERLINE = re.compile(r"[-=]{3,}")
_GOOGLE = re.compile(r"\*{0,2}([^\W\d]\w*) *(?:\(.*?\))? *:(?: +(.*)|$)")
_TYPE = re.compile(r"[\w.]+(?:\[\])?(?: ?\| ?[\w.]+(?:\[\])?)*")
_IN_BRACKETS = re.compile(r"(?<=\[).*(?=\])")
_NUMPY = re.compile(r"(\*{0,2}[^\W\d]\w*(?: *, *\*{0,2}[^\W\d]\w*)*) *(?::.*)?")
_SPHINX = re.compile(r":(\w+)(?: +([^:]*?))? *:(?: +(.*)|$)")
_SPHINX_PARAMETERS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})
_SPHINX_RETURNS = frozenset({"return", "returns", "yield", "yields"})
_SPHINX_DROPPED = frozenset({"type", "rtype", "ytype"})
_BULLET = re.compile(r"(?:[-*+]|\d+[.)]) ")


class Docstring(Struct, frozen=True):
    """A parsed docstring.

    Attributes:
        summary_and_text: The text without the sections on parameters and the return value.
        params: The description of each parameter, on one line unless it is a list.
        returns: The description of the return value.
    """

    summary_and_text: str = ""
    params: dict[str, str] = field(default_factory=dict)
    returns: str | None = None


def parse(doc: str | None) -> Docstring:
    """Parse a docstring as well as possible. It never raises."""
    if not isinstance(doc, str) or not doc.strip():
        return Docstring()
    lines = [line.rstrip() for line in cleandoc(doc).splitlines()]
    text: list[str] = []
    params: dict[str, str] = {}
    returns: str | None = None
    at = 0
    while at < len(lines):
        title, first = _header(lines, at)
        if title in _PARAMETERS or title in _RETURNS:
            end = _end(lines, at, first)
            body = _flush(lines[first:end])
            entries = _numpy if _underlined(lines, at) else _google
            if title in _PARAMETERS:
                params.update(entries(body))
            else:
                returns = returns or _returned(body, numpy=entries is _numpy)
            at = end
        elif (found := _SPHINX.fullmatch(lines[at].strip())) is not None and _is_field(found):
            end = _field_end(lines, at)
            words = _prose([found[3] or "", *lines[at + 1 : end]])
            if found[1] in _SPHINX_PARAMETERS:
                params[found[2].split()[-1].lstrip("*")] = words
            elif found[1] in _SPHINX_RETURNS:
                returns = returns or words or None
            at = end
        else:
            text.append(lines[at])
            at += 1
    return Docstring(
        re.sub(r"\n{3,}", "\n\n", "\n".join(text)).strip(),
        {name: words for name, words in params.items() if words},
        returns,
    )


def _header(lines: list[str], at: int) -> tuple[str, int]:
    """The title of the section that starts here, in lower case, and the line after its header; an
    empty title if no section starts here.
    """
    line = lines[at]
    if _underlined(lines, at):
        return line.strip().rstrip(":").lower(), at + 2
    first = at + 2 if at + 1 < len(lines) and not lines[at + 1] else at + 1
    if (
        line.endswith(":")
        and first < len(lines)
        and lines[first]
        and _indent(lines[first]) > _indent(line)
    ):
        return line.strip()[:-1].lower(), first
    return "", at


def _underlined(lines: list[str], at: int) -> bool:
    return (
        bool(lines[at].strip())
        and at + 1 < len(lines)
        and _UNDERLINE.fullmatch(lines[at + 1].strip()) is not None
    )


def _end(lines: list[str], at: int, first: int) -> int:
    """The line after a section.

    A Google section consists of indented lines. A NumPy section ends at the next header, or at
    prose.
    """
    margin = _indent(lines[at])
    numpy = _underlined(lines, at)
    for n in range(first, len(lines)):
        depth = _indent(lines[n])
        if not lines[n] or depth > margin:
            continue
        if not numpy or depth < margin or _underlined(lines, n):
            return n
        if n > first and not lines[n - 1] and not _NUMPY.fullmatch(lines[n].strip()):
            return n
    return len(lines)


def _google(body: list[str]) -> Iterable[tuple[str, str]]:
    """`name (type): words`, with continuation lines indented."""
    name = ""
    words = list[str]()
    for line in body:
        if not line.startswith(" ") and (found := _GOOGLE.fullmatch(line)) is not None:
            yield from _entry(name, words)
            name = found[1]
            words = [found[2] or ""]
        else:
            words.append(line)
    yield from _entry(name, words)


def _numpy(body: list[str]) -> Iterable[tuple[str, str]]:
    """`name : type` or `one, other : type`, with the description indented below."""
    names = ""
    words = list[str]()
    for line in body:
        if line and not line.startswith(" ") and (found := _NUMPY.fullmatch(line)) is not None:
            yield from _entry(names, words)
            names = found[1]
            words = []
        else:
            words.append(line)
    yield from _entry(names, words)


def _entry(names: str, words: list[str]) -> Iterable[tuple[str, str]]:
    return [(name.strip().lstrip("*"), _prose(words)) for name in names.split(",") if name.strip()]


def _returned(body: list[str], *, numpy: bool) -> str | None:
    deeper = [line for line in body if line.startswith(" ")]
    if numpy and deeper:
        return _prose(deeper) or None
    words = _prose(body)
    kind, colon, rest = words.partition(": ")
    typed = not numpy and colon and _TYPE.fullmatch(_IN_BRACKETS.sub("", kind))
    return (rest if typed else words) or None


def _is_field(found: re.Match[str]) -> bool:
    if found[1] in _SPHINX_PARAMETERS:
        return bool(found[2])
    return found[1] in _SPHINX_RETURNS or found[1] in _SPHINX_DROPPED


def _field_end(lines: list[str], at: int) -> int:
    """The line after a field, which includes the lines indented below it."""
    end = at + 1
    while end < len(lines) and lines[end].strip() and _indent(lines[end]) > _indent(lines[at]):
        end += 1
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _flush(lines: list[str]) -> list[str]:
    """The lines without their common indentation."""
    margin = min((_indent(line) for line in lines if line), default=0)
    return [line[margin:] for line in lines]


def _prose(lines: Iterable[str]) -> str:
    """Lines joined into running text. Items of a list stay on separate lines."""
    text = ""
    for line in (line.strip() for line in lines):
        if text and line:
            text += "\n" if _BULLET.match(line) else " "
        text += line
    return text
