"""Results of the thinking server: data, and chains as an outline or a diagram."""

from __future__ import annotations

from msgspec import Struct

from .chains import MAIN, Chain, Thought, numbers, words_of

_SHORT = 60  # characters of a thought in a diagram or a list


class ThoughtResult(Struct, rename="camel"):
    """What became of a thought.

    `chain` goes with the next one; `branch` is the line that it stands on.

    `revised` are the thoughts of that line that others revise.
    """

    thought_number: int
    total_thoughts: int
    next_thought_needed: bool
    branches: list[str]
    thought_history_length: int
    chain: str
    branch: str
    revised: list[int]


class ChainSummary(Struct, rename="camel"):
    """A chain in a list: its first thought, shortened, and its length."""

    chain: str
    begins: str
    thoughts: int
    branches: list[str]
    finished: bool


class ChainList(Struct):
    """The chains of a caller, the most recently used first."""

    chains: list[ChainSummary]


class ChainReview(Struct, rename="camel"):
    """A whole chain."""

    chain: str
    finished: bool
    branches: list[str]
    thoughts: list[Thought]


class DeleteResult(Struct):
    """Whether the chain existed. It is gone now."""

    chain: str
    forgotten: bool


def outline(chain: Chain) -> str:
    """A chain in Markdown, line by line.

    Thoughts are quoted, so that their text cannot become part of the outline.
    """
    revised = chain.revised()
    parts = [
        "# Thoughts",
        f"{len(chain.thoughts)} thoughts, {'finished' if chain.finished else 'not finished yet'}.",
    ]
    for line in [MAIN, *chain.forks]:
        if line != MAIN:
            fork = chain.forks[line]
            parts.append(f"## Branch {line}, from thought {fork.number} of {words_of(fork.line)}")
        for one in (one for one in chain.thoughts if one.branch == line):
            by = revised.get((line, one.thought_number))
            marks = [f"revises thought {one.revises_thought}"] * (one.revises_thought is not None)
            marks += [f"revised by {numbers(by)}"] if by else []
            parts.append(
                f"**{one.thought_number}** of "
                f"{one.total_thoughts}{''.join(f', {mark}' for mark in marks)}"
            )
            parts.append("\n".join(f"> {row}" for row in one.thought.splitlines() or [""]))
    return "\n\n".join(parts) + "\n"


def drawing(chain: Chain) -> str:
    """A chain as a Mermaid flowchart: lines downwards, revisions as dotted arrows back."""
    places = {(one.branch, one.thought_number): f"t{n}" for n, one in enumerate(chain.thoughts)}
    rows = ["flowchart TD"]
    for one in chain.thoughts:
        place = places[one.branch, one.thought_number]
        rows.append(f'    {place}["{one.thought_number}: {_drawn(one.thought)}"]')
        before = [number for number in chain.along(one.branch) if number < one.thought_number]
        if before:
            earlier = chain.along(one.branch)[max(before)]
            name = f'|"{_drawn(one.branch)}"| ' if earlier.branch != one.branch else " "
            rows.append(f"    {places[earlier.branch, earlier.thought_number]} -->{name}{place}")
        if (
            one.revises_thought is not None
            and (old := chain.along(one.branch).get(one.revises_thought)) is not None
        ):
            rows.append(f"    {place} -.->|revises| {places[old.branch, old.thought_number]}")
    return "\n".join(rows) + "\n"


def _drawn(text: str) -> str:
    """A text for a diagram: short, and without Mermaid syntax."""
    return "".join(
        one if one.isalnum() or one in " .,-" else f"#{ord(one)};" for one in short(text)
    )


def short(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 4]} ..."
