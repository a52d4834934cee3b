"""Reads pages of the documentation: their code blocks, the titles of these, and the targets of
links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parents[2]

_FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_TITLES = {
    "python": re.compile(r"# ([\w./-]+\.py)\n"),
    "html": re.compile(r"<!-- ([\w./-]+\.html) -->\n"),
    "toml": re.compile(r"# ([\w./-]+\.toml)\n"),
}
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?)[ #]*$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: its language, its text, its file name (from the comment in its first line),
    and its place."""

    language: str
    text: str
    title: str | None
    where: str


class Command(NamedTuple):
    """A command line and its output; `...` stands for any text."""

    line: str
    output: str
    where: str


def pages() -> list[Path]:
    """The README and every page below docs/."""
    return [TOP / "README.md", *sorted((TOP / "docs").rglob("*.md"))]


def blocks(text: str, name: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    for found in _FENCE.finditer(text):
        pattern = _TITLES.get(found["language"])
        title = pattern.match(found["text"]) if pattern is not None else None
        line = text.count("\n", 0, found.start()) + 1
        yield Block(found["language"], found["text"], title[1] if title else None, f"{name}:{line}")


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        yield Command(line, output.strip("\n"), block.where)


def agrees(wanted: str, given: str) -> bool:
    """Whether an output matches the page, where `...` stands for any text."""
    pattern = ".*?".join(re.escape(part) for part in wanted.split("..."))
    return re.fullmatch(pattern, given.strip("\n"), re.DOTALL) is not None


def links(text: str) -> list[str]:
    """The targets of the links of a page, without code blocks."""
    return _LINK.findall(re.sub(r"`[^`\n]*`", "", _FENCE.sub("", text)))


def anchors(text: str) -> set[str]:
    """The anchors of the headings of a page, as hosting sites generate them."""
    found = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-"))
    return found
